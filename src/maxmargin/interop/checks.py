"""Do the parts of a model fit together? Asked of every model read or written."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import ModelFormatError
from maxmargin.kernels.functions import Polynomial
from maxmargin.models.kernel_model import MACHINES, KernelModel
from maxmargin.models.linear_model import ONE_CLASS, SOLVERS, LinearModel

LARGEST_LABEL = 2**31 - 1  # what the other programs can hold
N_MARKS = 10  # of a one-class machine's densities
LARGEST_DEGREE = 10_000


class _Judge:
    """Refuses what does not hold."""

    def __init__(self, path: str | None) -> None:
        self.path = path

    def require(self, holds: Any, message: str) -> None:
        if not holds:
            raise ModelFormatError(f"{message}.", path=self.path)

    def finite(self, name: str, values: Any) -> None:
        self.require(
            values.dtype.kind in "fiu" and np.isfinite(values).all(),
            f"{name} must hold finite numbers",
        )

    def shape(self, name: str, values: Any, *expected: int) -> None:
        self.require(
            values is not None and tuple(values.shape) == expected,
            f"{name} must be of shape {expected}, "
            f"got {None if values is None else tuple(values.shape)}",
        )


def check_kernel_model(model: KernelModel, path: str | None = None) -> None:
    """Raise ModelFormatError where sizes or values contradict one another."""
    judge = _Judge(path)
    judge.require(model.machine in MACHINES, f"unknown machine {model.machine!r}")
    _check_classes(judge, model)
    n_pairs = model.n_classes * (model.n_classes - 1) // 2
    judge.shape(
        "dual_coef", model.dual_coef, max(1, model.n_classes - 1), model.n_vectors
    )
    judge.finite("dual_coef", model.dual_coef)
    judge.shape("intercept", model.intercept, n_pairs)
    judge.finite("intercept", model.intercept)
    judge.require(model.n_features >= 0, "n_features must be 0 or more")
    _check_kernel(judge, model)
    _check_support(judge, model)
    sizes = ("prob_a", n_pairs), ("prob_b", n_pairs), ("density_marks", N_MARKS)
    for name, size in sizes:
        values = getattr(model, name)
        if values is not None:
            judge.shape(name, values, size)
            judge.finite(name, values)
    is_power = np.isfinite(model.prob_power) and model.prob_power > 0.0
    judge.require(is_power, "prob_power must be finite and above 0")


def _check_classes(judge: _Judge, model: KernelModel) -> None:
    if not model.is_classifier:
        is_bare = model.classes is None and model.n_support is None
        judge.require(is_bare, f"{model.machine} has no classes")
        return
    _check_labels(judge, model.classes)
    judge.shape("n_support", model.n_support, len(model.classes))
    assert model.n_support is not None
    is_count = model.n_support.dtype.kind in "iu" and (model.n_support >= 0).all()
    judge.require(is_count, "n_support must hold counts")
    total = sum(model.n_support.tolist())
    judge.require(
        total == model.n_vectors,
        f"n_support must sum to the {model.n_vectors} support vectors, got {total}",
    )


def _check_labels(judge: _Judge, classes: Any) -> None:
    judge.require(
        classes is not None and classes.ndim == 1 and len(classes) > 0,
        "a classifier needs classes",
    )
    if classes.dtype.kind == "f":
        judge.finite("classes", classes)
    is_distinct = len(set(classes.tolist())) == len(classes)
    judge.require(is_distinct, "classes must differ from one another")


def _check_kernel(judge: _Judge, model: KernelModel) -> None:
    kernel = model.kernel
    if kernel is None:
        return
    for name in kernel._fields:
        judge.require(np.isfinite(getattr(kernel, name)), f"{name} must be finite")
    gamma = getattr(kernel, "gamma", 0.0)
    judge.require(gamma >= 0.0, f"gamma must be 0 or above, got {gamma:g}")
    if isinstance(kernel, Polynomial):
        is_usable = 0 <= kernel.degree <= LARGEST_DEGREE
        judge.require(is_usable, f"degree must be 0 to {LARGEST_DEGREE}")


def _check_support(judge: _Judge, model: KernelModel) -> None:
    index = model.support_index
    if model.kernel is None:
        judge.require(model.support is None, "a precomputed kernel has no vectors")
        judge.require(index is not None, "a precomputed kernel needs support_index")
    else:
        judge.shape("support", model.support, model.n_vectors, model.n_features)
        if sp.issparse(model.support):
            _check_rows(judge, model.support)
        else:
            judge.finite("support", model.support)
    if index is not None:
        judge.shape("support_index", index, model.n_vectors)
        is_place = index.dtype.kind in "iu" and (index >= 0).all()
        judge.require(is_place, "support_index must hold places from 0 on")
        if model.kernel is None:
            is_inside = index.max(initial=-1) < model.n_features
            judge.require(is_inside, "support_index must lie within n_features")


def _check_rows(judge: _Judge, support: Any) -> None:
    """A CSR matrix that nobody can be led out of."""
    data, indices, indptr = support.data, support.indices, support.indptr
    judge.finite("support", data)
    is_ordered = (
        indptr.ndim == 1
        and len(indptr) == support.shape[0] + 1
        and indptr[0] == 0
        and indptr[-1] == len(data) == len(indices)
        and (np.diff(indptr) >= 0).all()
    )
    judge.require(is_ordered, "the rows of support must follow one another")
    is_inside = (
        indices.min(initial=0) >= 0 and indices.max(initial=-1) < support.shape[1]
    )
    judge.require(is_inside, "the columns of support must lie within n_features")
    ascends = np.diff(indices.astype(np.int64)) > 0
    starts = indptr[1:-1]
    ascends[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    judge.require(ascends.all(), "the columns of a support vector must ascend")


def check_linear_model(model: LinearModel, path: str | None = None) -> None:
    """Raise ModelFormatError where sizes or values contradict one another."""
    judge = _Judge(path)
    judge.require(model.solver in SOLVERS, f"unknown solver {model.solver!r}")
    judge.require(model.coef.ndim == 2, "coef must have two dimensions")
    judge.finite("coef", model.coef)
    n_planes = 1
    if model.is_classifier:
        _check_labels(judge, model.classes)
        n_classes = len(model.classes)
        is_one = n_classes == 2 and model.solver != "MCSVM_CS"
        n_planes = 1 if is_one else n_classes
    else:
        judge.require(model.classes is None, f"{model.solver} has no classes")
    judge.shape("coef", model.coef, n_planes, model.n_features)
    is_finite = np.isfinite(model.bias) and np.isfinite(model.rho)
    judge.require(is_finite, "bias and rho must be finite")
    is_placed = model.solver == ONE_CLASS or model.rho == 0.0
    judge.require(is_placed, "only a one-class machine has a rho")
    if model.bias >= 0.0:
        judge.shape("bias_weight", model.bias_weight, n_planes)
        judge.finite("bias_weight", model.bias_weight)


def whole_labels(classes: Any, whose: str) -> list[int]:
    """Labels as whole numbers, or a clear refusal."""
    is_number = classes.dtype.kind in "iuf"
    if is_number and (np.abs(classes.astype(np.float64)) <= LARGEST_LABEL).all():
        labels = [int(label) for label in classes.tolist()]
        if labels == classes.tolist():
            return labels
    shown = ", ".join(repr(label) for label in classes.tolist()[:3])
    raise ModelFormatError(
        f"{whose}'s file holds labels that are whole numbers below 2**31, but the "
        f"classes are {shown}, ...: number them, or save in the native form."
    )
