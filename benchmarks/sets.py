"""Which data are measured on? A folder of .npz files, else what scikit-learn brings.

The folder holds NAME.npz, or NAME.train.npz and NAME.test.npz, with `X` and `y`, or
with the parts of a CSR matrix (`data`, `indices`, `indptr`, `shape`) and `y`.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

BUNDLED = ("digits", "breast_cancer", "iris", "wine", "diabetes", "blobs", "friedman")


class Split(NamedTuple):
    """Training rows and test rows."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def find_folder(given: str | None) -> Path | None:
    """The folder asked for, else that of MAXMARGIN_DATA, else none."""
    named = given or os.environ.get("MAXMARGIN_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not a folder: pass --data FOLDER.")
    return folder


def has_set(name: str, folder: Path | None) -> bool:
    """Whether `load` knows this name."""
    if name in BUNDLED:
        return True
    return folder is not None and bool(_files(name, folder))


def load(name: str, folder: Path | None, rows: int | None = None) -> Split:
    """A set by its name, in [-1, 1]; with `rows`, some of its training rows."""
    parts = load_parts(name, folder)
    split = _hold_out(*parts[0]) if len(parts) == 1 else Split(*parts[0], *parts[1])
    return scale_to_range(take_rows(split, rows))


def take_rows(split: Split, rows: int | None) -> Split:
    """A random part of the training rows, in their order."""
    if rows is None or rows >= len(split.y):
        return split
    picked = np.sort(np.random.default_rng(0).permutation(len(split.y))[:rows])
    return split._replace(X=split.X[picked], y=split.y[picked])


def load_parts(name: str, folder: Path | None) -> list[tuple[Any, np.ndarray]]:
    """Rows and targets as they are: all of them, or training and test rows."""
    if name in BUNDLED:
        return [_bundled(name)]
    return [_read(file) for file in _needed_files(name, folder)]


def load_raw(name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
    """The training rows of a set of the folder, all of them where there is no split."""
    return _read(_needed_files(name, folder)[0])


def load_whole(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set that scikit-learn brings."""
    return _bundled(name)


def _needed_files(name: str, folder: Path | None) -> list[Path]:
    files = _files(name, folder) if folder else []
    if not files:
        where = f"in {folder}" if folder else "without a folder of data sets"
        raise SystemExit(
            f"There is no {name}.npz {where}: pass --data FOLDER or set MAXMARGIN_DATA."
        )
    return files


def _files(name: str, folder: Path) -> list[Path]:
    whole = folder / f"{name}.npz"
    parts = [folder / f"{name}.train.npz", folder / f"{name}.test.npz"]
    if whole.exists():
        return [whole]
    return parts if all(part.exists() for part in parts) else []


def _read(path: Path) -> tuple[Any, np.ndarray]:
    with np.load(path, allow_pickle=False) as parts:
        if "indptr" not in parts.files:
            return np.ascontiguousarray(parts["X"], dtype=np.float64), parts["y"]
        csr = (
            parts["data"].astype(np.float64),
            parts["indices"].astype(np.int32),
            parts["indptr"].astype(np.int32),
        )
        return sp.csr_matrix(csr, shape=tuple(parts["shape"])), parts["y"]


def _bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    if name == "blobs":
        return datasets.make_classification(
            n_samples=5000, n_features=20, n_informative=10, random_state=0
        )
    if name == "friedman":
        return datasets.make_friedman1(n_samples=5000, noise=1.0, random_state=0)
    return getattr(datasets, f"load_{name}")(return_X_y=True)


def _hold_out(X: Any, y: np.ndarray) -> Split:
    """Every fifth row is kept for testing, after a fixed shuffle."""
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[::5], np.delete(order, np.s_[::5])
    return Split(X[train], y[train], X[test], y[test])


def scale_to_range(split: Split) -> Split:
    """Dense features in [-1, 1] by the training rows, sparse ones as they are."""
    if sp.issparse(split.X):
        return split
    low, high = split.X.min(axis=0), split.X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    X, X_test = (2.0 * (part - low) / width - 1.0 for part in (split.X, split.X_test))
    return split._replace(X=X, X_test=X_test)
