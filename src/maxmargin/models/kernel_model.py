"""What is left of a kernel machine once it is fitted, and how does that predict?

A value that knows neither estimators nor files. Words, layout and signs are LIBSVM's:
the machine of classes i < j is positive for the i-th of `classes`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from maxmargin._threads import one_blas_thread
from maxmargin.data.rows import as_rows
from maxmargin.errors import InvalidInput, refuse
from maxmargin.kernels.functions import (
    RBF,
    ExactRBF,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from maxmargin.models.expansion import KernelSum, MatrixSum
from maxmargin.models.multiclass import class_parts, pair_decisions, vote
from maxmargin.models.probability import (
    couple,
    inlier_probability,
    pair_probabilities,
    sharpen,
)
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

MachineWord = Literal["c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"]
CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSORS = ("epsilon_svr", "nu_svr")
MACHINES = (*CLASSIFIERS, "one_class", *REGRESSORS)
MANY_COLUMNS = 1 << 14  # from here on only the columns that hold something are kept


@dataclass(frozen=True, eq=False)
class KernelModel:
    """decision(x) = sum of coef_i K(x_i, x) + intercept, one column per pair.

    Samples may have fewer columns than the support vectors, or more: what is missing
    counts as zero on either side.
    """

    machine: str  # one of MACHINES
    kernel: Kernel | None  # None: precomputed
    support: Any  # CSR or dense, float32 or float64; None: precomputed
    support_index: IntVector | None  # rows of the training set, from 0
    dual_coef: FloatMatrix  # (max(1, n_classes - 1), n_SV)
    intercept: FloatVector  # -rho, one per pair
    classes: Any = None  # in the model's own order; None: not a classifier
    n_support: IntVector | None = None  # per class
    prob_a: FloatVector | None = None  # one per pair; of a regressor, its sigma
    prob_b: FloatVector | None = None
    prob_power: float = 1.0  # of coupled probabilities; LIBSVM knows only 1
    density_marks: FloatVector | None = None  # ten, of a one-class machine
    n_features: int = 0
    index_base: int = 1  # the index of the first column in text files

    @property
    def is_classifier(self) -> bool:
        return self.machine in CLASSIFIERS

    @property
    def is_regressor(self) -> bool:
        return self.machine in REGRESSORS

    @property
    def n_classes(self) -> int:
        """As LIBSVM counts: 2 for machines without classes."""
        return 2 if self.classes is None else len(self.classes)

    @property
    def n_vectors(self) -> int:
        """Support vectors."""
        return int(self.dual_coef.shape[1])

    @property
    def has_probabilities(self) -> bool:
        """Whether `probabilities`, or for a regressor `sigma`, can be asked for."""
        if self.machine == "one_class":
            return self.density_marks is not None
        if self.is_regressor:
            return self.prob_a is not None
        return self.prob_a is not None and self.prob_b is not None

    @property
    def sigma(self) -> float:
        """Scale of the Laplace distribution of a regressor's errors."""
        if not self.is_regressor or self.prob_a is None:
            raise InvalidInput(
                "This model holds no sigma: only a regressor trained with probability "
                "estimates (-b 1) has one."
            )
        return float(self.prob_a[0])

    def decisions(self, X: Any, n_threads: int = 1) -> FloatMatrix:
        """One column per pair of classes; one in all where there are no classes."""
        parts = self._parts()
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            if self.kernel is None:
                sums = self._sums_of_matrix(X, parts)
            else:
                sums = self._sums_of_vectors(X, parts, n_threads)
            if self.is_classifier:
                out = pair_decisions(sums, self.intercept)
            else:
                out = sums[0] + self.intercept
        if not np.isfinite(out).all():
            raise InvalidInput(
                "Decision values are not finite: X or the model holds values so large "
                "(or none at all) that the kernel overflows; scale the features."
            )
        return out

    def predict(self, X: Any, n_threads: int = 1) -> Any:
        """Labels by votes; +1 or -1 of a one-class machine; numbers of a regressor."""
        return self.read(self.decisions(X, n_threads))

    def read(self, decisions: FloatMatrix) -> Any:
        """What these decision values predict."""
        if self.is_classifier:
            return self.classes[vote(decisions, self.n_classes)]
        if self.is_regressor:
            return decisions[:, 0].copy()
        return np.where(decisions[:, 0] > 0.0, 1, -1)

    def probabilities(self, X: Any, n_threads: int = 1) -> FloatMatrix:
        """How likely each of `classes` is; of a one-class machine, ordinary or not."""
        return self.read_probabilities(self.decisions(X, n_threads))

    def read_probabilities(self, decisions: FloatMatrix) -> FloatMatrix:
        """What these decision values say about the probability of each class."""
        if self.is_regressor or not self.has_probabilities:
            raise InvalidInput(
                "This model cannot tell probabilities: it is a regressor, or was "
                "trained without probability estimates (-b 1)."
            )
        if self.density_marks is not None:
            inside = inlier_probability(decisions[:, 0], self.density_marks)
            return np.column_stack((inside, 1.0 - inside))
        assert self.prob_a is not None and self.prob_b is not None
        pairwise = pair_probabilities(decisions, self.prob_a, self.prob_b)
        if self.n_classes == 1:
            return np.ones((len(decisions), 1))
        return sharpen(couple(pairwise, self.n_classes), self.prob_power)

    # Kernel sums.

    def _parts(self) -> list[tuple[slice, FloatMatrix]]:
        if self.is_classifier:
            assert self.n_support is not None
            return class_parts(self.dual_coef, self.n_support)
        return [(slice(0, self.n_vectors), np.ascontiguousarray(self.dual_coef.T))]

    def _sums_of_matrix(self, X: Any, parts: Any) -> list[FloatMatrix]:
        assert self.support_index is not None
        K = _canonical(X) if sp.issparse(X) else _as_floats(X)
        needed = int(self.support_index.max(initial=-1)) + 1
        if K.shape[1] < needed:
            raise InvalidInput(
                f"X has {K.shape[1]} columns, but this model's kernel is precomputed "
                f"and needs that with at least {needed} training samples."
            )
        K = dense_columns(K, self.support_index)
        return MatrixSum(np.arange(self.n_vectors)).of_matrix(K, parts)

    def _sums_of_vectors(self, X: Any, parts: Any, n_threads: int) -> list[FloatMatrix]:
        near, far = self._split(X)
        fading = 1.0 if far is None else self._fading(far)
        sums = self._kernel_sum.of(as_rows(near), parts, n_threads)
        return sums if far is None else [total * fading for total in sums]

    def _fading(self, far: Any) -> FloatMatrix | float:
        """What features that no support vector has make of all kernel values."""
        kernel = self.kernel
        assert kernel is not None, "a precomputed kernel has no features"
        if isinstance(kernel, Linear | Polynomial | Sigmoid):
            return 1.0  # dot products stay as they are
        if isinstance(kernel, RBF | ExactRBF | Laplacian):
            size = abs(far) if isinstance(kernel, Laplacian) else _squares(far)
            beyond = np.asarray(size.sum(axis=1, dtype=np.float64)).reshape(-1, 1)
            return np.exp(-kernel.gamma * beyond)
        refuse(kernel, "X with features that no support vector has")

    @cached_property
    def _kernel_sum(self) -> KernelSum:
        assert self.kernel is not None
        support = self.support
        if self._columns is not None:
            support, _ = pick_columns(support, self._columns)
        return KernelSum(self.kernel, as_rows(support))

    @cached_property
    def _columns(self) -> IntVector | None:
        """The columns in which support vectors hold something; None: all count."""
        is_wide = sp.issparse(self.support) and self.support.shape[1] > MANY_COLUMNS
        return np.unique(self.support.indices) if is_wide else None

    def _split(self, X: Any) -> tuple[Any, Any]:
        """X in the columns of the support vectors, and what it has in others."""
        if sp.issparse(X):
            X = _canonical(X)
            if self._columns is not None:
                return pick_columns(X, self._columns)
        else:
            X = _as_floats(X)
            if sp.issparse(self.support):
                X = _canonical(sp.csr_matrix(X))
                if self._columns is not None:
                    return pick_columns(X, self._columns)
        width = int(self.support.shape[1])
        if X.shape[1] < width:
            return _widened(X, width), None
        if X.shape[1] == width:
            return X, None
        if sp.issparse(X):
            return pick_columns(X, np.arange(width))
        return np.ascontiguousarray(X[:, :width]), X[:, width:]


def _as_floats(X: Any) -> Any:
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if X.ndim != 2:
        raise InvalidInput(
            f"X must have two dimensions, a row per sample, got {X.ndim}; reshape a "
            "single sample with X.reshape(1, -1)."
        )
    _require_finite(X)
    return np.ascontiguousarray(X)


def _require_finite(values: Any) -> None:
    """Distances would lose a NaN on their way."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            "X holds NaN or infinity, so that decision values are not finite: drop or "
            "fill in what is missing."
        )


def _squares(X: Any) -> Any:
    return X.multiply(X) if sp.issparse(X) else X * X


def _canonical(X: Any) -> Any:
    """CSR with sorted indices, no duplicates, floats."""
    X = X.tocsr()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    _require_finite(X.data)
    return X


def _widened(X: Any, width: int) -> Any:
    if sp.issparse(X):
        shape = (X.shape[0], width)
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape)
    wide = np.zeros((len(X), width), dtype=X.dtype)
    wide[:, : X.shape[1]] = X
    return wide


def dense_columns(X: Any, columns: IntVector) -> FloatMatrix:
    """These columns, in this order, of a dense matrix or of a CSR one of any width."""
    if sp.issparse(X):
        used, columns = np.unique(columns, return_inverse=True)
        X = pick_columns(X, used)[0].toarray()
    found: FloatMatrix = X[:, columns]
    return found


def pick_columns(X: Any, columns: IntVector) -> tuple[Any, Any]:
    """The part of a CSR matrix in these (sorted) columns, and the rest."""
    place = np.searchsorted(columns, X.indices)
    place[place == len(columns)] = 0
    is_near = (
        columns[place] == X.indices if len(columns) else np.zeros(X.nnz, dtype=bool)
    )
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))

    def part(chosen: Any, indices: Any, n_columns: int) -> Any:
        ends = np.cumsum(np.bincount(row[chosen], minlength=X.shape[0]))
        indptr = np.concatenate(([0], ends))
        shape = (X.shape[0], n_columns)
        return sp.csr_matrix((X.data[chosen], indices[chosen], indptr), shape=shape)

    far = None if is_near.all() else part(~is_near, X.indices, X.shape[1])
    return part(is_near, place, len(columns)), far
