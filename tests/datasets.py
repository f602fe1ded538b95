"""Where do the tests get data? A folder of .npz files, else scikit-learn's own sets.

``MAXMARGIN_DATA`` names the folder (NAME.npz, or NAME.train.npz where a set has a
standard split). The name of a set that is not there stands for a bundled one of the
same kind, large enough for what the tests ask, so that the suite passes for anyone who
clones the project alone. Tests that load a set are marked ``data`` (see conftest.py).
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import sklearn.datasets

Floats = npt.NDArray[np.float64]

SCALE = float(os.environ.get("MAXMARGIN_TEST_SCALE", "1"))


class StandIn(NamedTuple):
    """The set of scikit-learn that is used where the real one is missing."""

    name: str
    classes: tuple[int, ...] = ()  # these only, numbered in this order
    n_sparse: int | None = None  # a sparse set of so many classes, made of the digits
    n_features: int | None = None  # those that vary most: real sets are narrower


STAND_INS = {
    "heart": StandIn("breast_cancer"),
    "a1a": StandIn("digits", n_sparse=2),
    "svmguide1": StandIn("breast_cancer"),
    "splice": StandIn("breast_cancer"),
    "satimage": StandIn("digits", classes=(0, 1, 2, 3, 4, 5), n_features=36),
    "vehicle": StandIn("digits", classes=(3, 0, 1, 2), n_features=18),
    "glass": StandIn("digits", classes=(0, 1, 2, 3, 4, 5), n_features=9),
    "mpg": StandIn("diabetes"),
    "abalone": StandIn("diabetes"),
    "housing": StandIn("diabetes"),
    "ad_pendigits": StandIn("digits"),
    "ad_musk": StandIn("breast_cancer"),
    "a9a": StandIn("digits", n_sparse=2),
    "phishing": StandIn("digits", n_sparse=2),
    "reuters_lasvm": StandIn("digits", n_sparse=2),
    "20newsgroups": StandIn("digits", n_sparse=10),
    "dna": StandIn("digits", classes=(0, 1, 2)),
    "cadata": StandIn("diabetes"),
}


def folder() -> Path | None:
    """The folder of real sets, or None; one that is named must be there."""
    named = os.environ.get("MAXMARGIN_DATA")
    if not named:
        return None
    if not Path(named).is_dir():
        raise FileNotFoundError(
            f"MAXMARGIN_DATA is {named!r}, which is not a folder: name one that holds "
            "NAME.npz files, or unset it to test on scikit-learn's sets."
        )
    return Path(named)


def load(name: str, rows: int) -> tuple[Any, npt.NDArray[Any]]:
    """At most ``rows`` rows of a set: features in [-1, 1], targets standardised.

    Classification labels are whole numbers from 0; of an outlier set only the ordinary
    rows are returned. Sets that are stored sparse stay sparse, and unscaled.
    """
    X, y, is_regression = _raw(name)
    if name.startswith("ad_"):
        X, y = X[y == 0], y[y == 0]
    picked = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
    X, y = X[picked], y[picked]
    if not sp.issparse(X):
        X = scaled(X)
    if is_regression:
        return X, (y - y.mean()) / y.std()
    return X, np.unique(y, return_inverse=True)[1]


def scaled(X: npt.NDArray[Any]) -> Floats:
    """Each feature mapped to [-1, 1]; one that never changes becomes 0."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2 * (X - low) / spread - 1, 0.0)


def many(rows: int) -> int:
    """A number of rows, enlarged (or reduced) with MAXMARGIN_TEST_SCALE."""
    return int(rows * SCALE**0.5)


@cache
def _raw(name: str) -> tuple[Any, npt.NDArray[Any], bool]:
    """X, y as stored, and whether y is a regression target."""
    real = folder()
    paths = [real / f"{name}.npz", real / f"{name}.train.npz"] if real else []
    for path in paths:
        if path.exists():
            X, y = _read(path)
            return X, y, STAND_INS[name].name == "diabetes"
    return _bundled(name)


def _read(path: Path) -> tuple[Any, npt.NDArray[Any]]:
    """One file: dense X, or the three parts of a CSR matrix; and y."""
    with np.load(path, allow_pickle=False) as parts:
        if "indptr" not in parts.files:
            return parts["X"], parts["y"]
        csr = (
            parts["data"].astype(np.float64),
            parts["indices"].astype(np.int32),
            parts["indptr"].astype(np.int32),
        )
        return sp.csr_matrix(csr, shape=tuple(parts["shape"])), parts["y"]


def _bundled(name: str) -> tuple[Any, npt.NDArray[Any], bool]:
    """The set of scikit-learn that stands in for ``name``."""
    kind, classes, n_sparse, n_features = STAND_INS[name]
    X, y = getattr(sklearn.datasets, f"load_{kind}")(return_X_y=True)
    X = X[:, np.sort(np.argsort(-X.var(axis=0), kind="stable")[:n_features])]
    if n_sparse is not None:
        return sp.csr_matrix(X > 8, dtype=np.float64), y % n_sparse, False
    if classes:
        kept = np.isin(y, classes)
        return X[kept], np.array([*map(classes.index, y[kept])]), False
    if name.startswith("ad_"):
        return X, np.zeros(len(y), dtype=int), False
    return X, y, kind == "diabetes"
