"""Which linear machines must keep every promise? One of each formulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import surface
from naive_linear import machine as name_of
from sklearn.base import clone

from maxmargin import LinearOneClassSVM, LinearSVC, LinearSVR, LogisticRegression

SQUARED = "squared_epsilon_insensitive"
MACHINES = {
    "squared hinge": LinearSVC(),
    "hinge": LinearSVC(loss="hinge"),
    "L1": LinearSVC(penalty="l1", dual=False),
    "joint": LinearSVC(multi_class="crammer_singer"),
    "logistic": LogisticRegression(),
    "L1 logistic": LogisticRegression(penalty="l1"),
    "tube": LinearSVR(epsilon=0.1),
    "squared tube": LinearSVR(loss=SQUARED, epsilon=0.1),
    "one class": LinearOneClassSVM(nu=0.3),
}
FREE = {  # the intercept costs nothing
    f"{name}, free": clone(machine).set_params(penalize_intercept=False)
    for name, machine in MACHINES.items()
    if name not in ("joint", "one class")
}
CLASSIFIERS = {
    name: machine
    for name, machine in MACHINES.items()
    if isinstance(machine, LinearSVC | LogisticRegression)
}
KINDS = [LinearSVC, LinearSVR, LinearOneClassSVM, LogisticRegression]

every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
every_classifier = pytest.mark.parametrize(
    "machine", CLASSIFIERS.values(), ids=CLASSIFIERS
)
every_kind = pytest.mark.parametrize("kind", KINDS)


def with_long_indices(X: Any) -> Any:
    """CSR with int64 indices, as for more than 2^31 values."""
    X = sp.csr_array(X)
    long = (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64))
    out = sp.csr_array(X.shape)
    out.data, out.indices, out.indptr = long
    return out


def scrambled(X: Any) -> Any:
    """CSR with unsorted indices and a value in two parts."""
    X = sp.coo_array(X)
    parts = np.concatenate([0.25 * X.data, 0.75 * X.data])
    rows, columns = (np.tile(at, 2)[::-1] for at in X.coords)
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    return sp.csr_array((parts[::-1][order], columns[order], indptr), shape=X.shape)


LAYOUTS = {
    "dense": np.asarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
    "float32 csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "int64": with_long_indices,
    "scrambled": scrambled,
}


def data_for(machine: Any, n_classes: int = 3) -> tuple[Any, npt.NDArray[Any]]:
    """Classes for a classifier, a noisy function for the others."""
    X, y = surface.draw(n_classes=n_classes)
    if name_of(machine) in ("LinearSVC", "LogisticRegression"):
        return X, y
    noise = np.random.default_rng(0).normal(size=len(y))
    shift = 2.0 if name_of(machine) == "LinearOneClassSVM" else 0.0
    return X + shift, X[:, 0] + 0.5 * noise + 1.0
