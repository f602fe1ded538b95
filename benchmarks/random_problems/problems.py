"""Which problem is number i of a seed? A set, some of its rows, a machine, parameters.

Everything is drawn from (seed, i) alone, so that every process can make the problem by
itself. Parameters spread over what a search would try, not over what is sensible.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.sets import BUNDLED, load_raw, load_whole

FEWEST_ROWS, MOST_ROWS = 300, 8000
MACHINES = {"SVC": 0.6, "NuSVC": 0.14, "SVR": 0.08, "NuSVR": 0.04, "OneClassSVM": 0.14}
KERNELS = {"rbf": 0.6, "linear": 0.2, "poly": 0.2}
LOG10_C = -1.0, 3.0
LOG2_GAMMA = -4.0, 3.0  # times 1 / (features x variance)
LOG10_EPSILON = -2.0, -0.3  # of targets with variance 1
LOG10_NU_ONE_CLASS = -2.5, -0.3
NU_SHARE = 0.1, 0.9  # of the largest nu that is feasible
MOST_LABELS = 100  # distinct values: more are targets, not labels
MOST_CLASSES = 50  # that targets are cut into where a classifier needs labels
MANY_CLASSES_SHARE = 0.15  # of the classifiers that are given targets to cut
SETS_KEPT = 8  # in memory


class Problem(NamedTuple):
    """A machine with its parameters, and the samples to fit."""

    name: str  # of the set
    machine: str
    parameters: dict[str, Any]
    X: Any
    y: np.ndarray | None

    @property
    def n_classes(self) -> int:
        is_classified = self.machine in ("SVC", "NuSVC")
        return len(np.unique(self.y)) if is_classified else 0

    def __str__(self) -> str:
        settings = ", ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in self.parameters.items()
        )
        n, d = self.X.shape
        kind = "sparse, " if sp.issparse(self.X) else ""
        classes = f", {self.n_classes} classes" if self.n_classes else ""
        return f"{self.machine}({settings}) on {self.name}: {kind}{n} x {d}{classes}"


def make_problem(seed: int, index: int, folder: Path | None) -> Problem:
    """Problem number `index` of a seed."""
    rng = np.random.default_rng([seed, index])
    machine = str(rng.choice(list(MACHINES), p=list(MACHINES.values())))
    names = names_for(machine, rng, folder)
    while True:
        name = str(rng.choice(names))
        X, y = read(name, folder)
        rows = draw_rows(rng, X.shape[0])
        X, targets = scaled(X[rows], rng), targets_for(machine, y[rows], rng)
        if targets is None or len(np.unique(targets)) > 1:
            break
    return Problem(name, machine, draw_parameters(machine, X, targets, rng), X, targets)


# ---------------------------------------------------------------------------- samples
def names_for(machine: str, rng: np.random.Generator, folder: Path | None) -> list[str]:
    """Sets with targets for regression, with labels for classes, and any of them."""
    names = set_names(folder)
    if machine == "OneClassSVM":
        return names
    wants_targets = machine in ("SVR", "NuSVR") or rng.random() < MANY_CLASSES_SHARE
    return [name for name in names if has_targets(name, folder) == wants_targets]


@cache
def set_names(folder: Path | None) -> list[str]:
    """All that the folder holds, else what scikit-learn brings."""
    if folder is None:
        return sorted(BUNDLED)
    return sorted({path.name.split(".")[0] for path in folder.glob("*.npz")})


@cache
def has_targets(name: str, folder: Path | None) -> bool:
    """Whether y is a quantity rather than a label."""
    y = read(name, folder)[1]
    return len(np.unique(y)) > MOST_LABELS or not np.all(y == np.round(y))


@lru_cache(maxsize=SETS_KEPT)
def read(name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
    """The training rows of a set."""
    return load_whole(name) if folder is None else load_raw(name, folder)


def draw_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """Some rows; as many as there are, or a number between two limits."""
    low, high = np.log(FEWEST_ROWS), np.log(MOST_ROWS)
    size = int(np.exp(rng.uniform(low, high)))
    return np.sort(rng.permutation(n)[:size])


def scaled(X: Any, rng: np.random.Generator) -> Any:
    """Dense features with variance 1, or in [-1, 1]; sparse ones as they are."""
    is_standardised = rng.random() < 0.5
    if sp.issparse(X):
        return X
    if is_standardised:
        spread = X.std(axis=0)
        return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    low, high = X.min(axis=0), X.max(axis=0)
    return 2.0 * (X - low) / np.where(high > low, high - low, 1.0) - 1.0


def targets_for(
    machine: str, y: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """What the machine is fitted to; targets become classes of equal size."""
    if machine == "OneClassSVM":
        return None
    if machine in ("SVR", "NuSVR"):
        spread = y.std()
        return (y - y.mean()) / (spread if spread > 0.0 else 1.0)
    n_classes = int(np.exp(rng.uniform(np.log(2), np.log(MOST_CLASSES + 1))))
    if len(np.unique(y)) > MOST_LABELS or not np.all(y == np.round(y)):
        edges = np.quantile(y, np.arange(1, n_classes) / n_classes)
        return np.searchsorted(edges, y, side="right")
    return y


# ------------------------------------------------------------------------- parameters
def draw_parameters(
    machine: str, X: Any, y: np.ndarray | None, rng: np.random.Generator
) -> dict[str, Any]:
    """The kernel and its parameters, then those of the machine."""
    kernel = str(rng.choice(list(KERNELS), p=list(KERNELS.values())))
    found: dict[str, Any] = {"kernel": kernel}
    gamma = default_gamma(X) * 2.0 ** rng.uniform(*LOG2_GAMMA)
    if kernel != "linear":
        found["gamma"] = float(gamma)
    if kernel == "poly":
        found |= {"degree": int(rng.integers(2, 5)), "coef0": float(rng.integers(2))}
    C = float(10.0 ** rng.uniform(*LOG10_C))
    share = float(rng.uniform(*NU_SHARE))
    if machine in ("SVC", "SVR", "NuSVR"):
        found["C"] = C
    if machine == "SVR":
        found["epsilon"] = float(10.0 ** rng.uniform(*LOG10_EPSILON))
    if machine == "NuSVR":
        found["nu"] = share
    if machine == "NuSVC":
        found["nu"] = share * largest_nu(y)
    if machine == "OneClassSVM":
        found["nu"] = float(10.0 ** rng.uniform(*LOG10_NU_ONE_CLASS))
    return found


def default_gamma(X: Any) -> float:
    """scikit-learn's "scale"."""
    if sp.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = X.var()
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0.0 else 1.0


def largest_nu(y: Any) -> float:
    """That of the pair of classes whose sizes differ most."""
    counts = np.unique(y, return_counts=True)[1]
    fewest, most = counts.min(), counts.max()
    return float(2 * fewest / (fewest + most))
