"""Which kernel machines are timed, on which rows, and with which settings?

Sets that come with test rows keep them. Of the others, the first 80 % of a fixed
permutation are for training. All scaling is by the training rows that are used.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.sets import Split, has_set, load_parts, scale_to_range, take_rows

TRAINING_SHARE = 0.8
MOST_TEST_ROWS = 20_000  # some peers predict more slowly than they learn
COVTYPE_CLASS = 2  # against the rest
NORMAL = 0  # the label of sets for the detection of outliers
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
LARGE_ROWS = (10_000, 31_623, 100_000)
GROUPS = ("main", "C", "small", "large", "bundled")


# What is fitted.


def keep_raw(split: Split) -> Split:
    """Features as they are."""
    return split


def standardise(split: Split) -> Split:
    """Mean 0 and variance 1 in the training rows; a constant feature becomes 0."""
    mean, spread = split.X.mean(axis=0), split.X.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    X, X_test = ((part - mean) / spread for part in (split.X, split.X_test))
    return split._replace(X=X, X_test=X_test)


def scale_bytes(split: Split) -> Split:
    """Grey levels from 0 to 1."""
    return split._replace(X=split.X / 255.0, X_test=split.X_test / 255.0)


class Case(NamedTuple):
    """A machine, the rows it learns from, and what it is fitted with."""

    machine: str
    set: str
    scale: Callable[[Split], Split]
    settings: dict[str, Any]
    rows: int | None = None  # of the training rows; None: all
    group: str = "main"


def of_classes(
    name: str, scale: Callable[[Split], Split], C: float, gamma: float, **kind: Any
) -> Case:
    return Case("SVC", name, scale, {"C": C, "gamma": gamma}, **kind)


def of_values(name: str, gamma: float, **kind: Any) -> Case:
    settings = {"C": 1.0, "gamma": gamma, "epsilon": 0.1}
    return Case("SVR", name, standardise, settings, **kind)


MAIN = {
    "letter": of_classes("letter", scale_to_range, 10.0, 1.0),
    "usps": of_classes("usps", keep_raw, 10.0, 1.0 / 128.0),
    "satimage": of_classes("satimage", scale_to_range, 16.0, 1.0),
    "shuttle": of_classes("shuttle", scale_to_range, 100.0, 8.0),
    "a9a": of_classes("a9a", keep_raw, 1.0, 1.0 / 123.0),
    "ijcnn1": of_classes("ijcnn1", keep_raw, 10.0, 1.0),
    "magic04": of_classes("magic04", standardise, 10.0, 0.1),
    "covtype": of_classes("covtype", scale_to_range, 10.0, 8.0, rows=20_000),
    "mnist": of_classes("mnist", scale_bytes, 10.0, 0.02, rows=10_000),
    "reuters_lasvm": of_classes("reuters_lasvm", keep_raw, 10.0, 1.0),
    "cadata": of_values("cadata", 0.5),
    "casp": of_values("casp", 0.5, rows=10_000),
    "ad_shuttle": Case(
        "OneClassSVM", "ad_shuttle", standardise, {"nu": 0.05, "gamma": 0.1}, 30_000
    ),
}
OVER_PENALTIES = {
    f"{name}-C{C:g}": MAIN[name]._replace(
        settings=MAIN[name].settings | {"C": C}, group="C"
    )
    for name in ("a9a", "covtype", "magic04")
    for C in PENALTIES
}
SMALL = {
    name: Case("SVC", name, standardise, {"C": 1.0, "gamma": "scale"}, group="small")
    for name in ("iris", "heart", "breast-cancer")
}
LARGE = {"mnist-60000": MAIN["mnist"]._replace(rows=None, group="large")} | {
    f"covtype-{n}": MAIN["covtype"]._replace(rows=n, group="large") for n in LARGE_ROWS
}
BUNDLED = {
    "digits": of_classes("digits", scale_to_range, 10.0, 1 / 64, group="bundled"),
    "breast_cancer": of_classes(
        "breast_cancer", standardise, 10.0, 1 / 30, group="bundled"
    ),
    "blobs": of_classes("blobs", standardise, 10.0, 0.05, group="bundled"),
    "friedman": of_values("friedman", 0.1, group="bundled"),
    "blobs-one-class": Case(
        "OneClassSVM",
        "blobs",
        standardise,
        {"nu": 0.05, "gamma": 0.05},
        None,
        "bundled",
    ),
}
CASES = MAIN | OVER_PENALTIES | SMALL | LARGE | BUNDLED


def cases_of(group: str, folder: Path | None) -> list[str]:
    """The cases of a group whose sets are there; if none is, those that are bundled."""
    asked = [g for g in GROUPS if g != "bundled"] if group == "all" else [group]
    found = [
        name
        for name, case in CASES.items()
        if case.group in asked and has_set(case.set, folder)
    ]
    return found or list(BUNDLED)


# The rows.


def prepare_split(case: Case, folder: Path | None) -> Split:
    """Training and test rows of a case, scaled, with the targets it is fitted to."""
    parts = load_parts(case.set, folder)
    split = hold_out(*parts[0]) if len(parts) == 1 else Split(*parts[0], *parts[1])
    split = take_rows(limit_test_rows(split), case.rows)
    if case.set == "covtype":
        y, y_test = ((y == COVTYPE_CLASS).astype(int) for y in (split.y, split.y_test))
        split = split._replace(y=y, y_test=y_test)
    if case.machine == "OneClassSVM":
        is_normal = split.y == NORMAL
        split = split._replace(X=split.X[is_normal], y=split.y[is_normal])
    if case.machine == "SVR":
        split = standardise_targets(split)
    return case.scale(split)


def hold_out(X: Any, y: np.ndarray) -> Split:
    """The first 80 % of a fixed permutation for training, the rest for testing."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [int(TRAINING_SHARE * len(y))])
    return Split(X[train], y[train], X[test], y[test])


def limit_test_rows(split: Split) -> Split:
    """At most so many test rows, in a fixed order."""
    n = len(split.y_test)
    if n <= MOST_TEST_ROWS:
        return split
    picked = np.random.default_rng(0).permutation(n)[:MOST_TEST_ROWS]
    return split._replace(X_test=split.X_test[picked], y_test=split.y_test[picked])


def standardise_targets(split: Split) -> Split:
    mean, spread = split.y.mean(), split.y.std()
    return split._replace(
        y=(split.y - mean) / spread, y_test=(split.y_test - mean) / spread
    )


def as_dense(split: Split) -> Split:
    """The same rows as arrays."""
    X, X_test = (X.toarray() if sp.issparse(X) else X for X in (split.X, split.X_test))
    return split._replace(X=X, X_test=X_test)
