"""Where do the tests get real data? A folder of .npz files, else scikit-learn's own.

``MAXMARGIN_DATA`` names the folder (NAME.npz, or NAME.train.npz where a set has a
standard split). Without it every name stands for a bundled set of the same kind, so
that the suite passes for anyone who clones the project alone.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import sklearn.datasets

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("MAXMARGIN_DATA", ROOT / ".." / "shared" / "data"))
SCALE = float(os.environ.get("MAXMARGIN_TEST_SCALE", "1"))

BUNDLED = {  # which scikit-learn set stands in for a name
    "heart": "breast_cancer",
    "a1a": "digits",
    "svmguide1": "breast_cancer",
    "splice": "breast_cancer",
    "satimage": "digits",
    "vehicle": "wine",
    "glass": "iris",
    "mpg": "diabetes",
    "abalone": "diabetes",
    "housing": "diabetes",
    "ad_pendigits": "digits",
    "ad_musk": "breast_cancer",
    "a9a": "digits",
    "phishing": "digits",
    "reuters_lasvm": "digits",
    "20newsgroups": "digits",
    "dna": "wine",
    "cadata": "diabetes",
}
SPARSE = {  # stored sparse, and the classes of what stands in
    "a1a": 2,
    "a9a": 2,
    "phishing": 2,
    "reuters_lasvm": 2,
    "20newsgroups": 10,
}


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
    for path in (FOLDER / f"{name}.npz", FOLDER / f"{name}.train.npz"):
        if path.exists():
            X, y = _read(path)
            return X, y, BUNDLED[name] == "diabetes"
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
    kind = BUNDLED[name]
    X, y = getattr(sklearn.datasets, f"load_{kind}")(return_X_y=True)
    if name in SPARSE:
        return sp.csr_matrix(X > 8, dtype=np.float64), y % SPARSE[name], False
    if name.startswith("ad_"):
        return X, np.zeros(len(y), dtype=int), False
    return X, y, kind == "diabetes"
