"""What did the user hand in? Checked, sorted out, and turned into a Gram matrix."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    validate_data,
)

from maxmargin.data.rows import as_rows
from maxmargin.data.weights import counted_samples
from maxmargin.errors import InvalidInput
from maxmargin.kernels import RBF, Gram, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.kernels.gram import (
    MatrixGram,
    VectorGram,
    check_symmetric,
    count_samples,
    gram_of_function,
)
from maxmargin.solvers.gradient import check_finite
from maxmargin.typing import FloatVector, IntVector

FLOATS = [np.float64, np.float32]


@dataclass(frozen=True)
class TrainingSet:
    """Samples that count, with their weights."""

    X: Any  # as validated, all rows
    kept: IntVector  # rows of positive weight
    weight: FloatVector  # of the kept rows
    is_sparse: bool
    started: float  # on the monotonic clock

    @property
    def is_whole(self) -> bool:
        return len(self.kept) == count_samples(self.X)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What a warm start must find unchanged: samples, features, who is left out."""
        X = self.X
        n_features = X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else None
        return count_samples(X), n_features, self.kept.tobytes()


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a C-ordered float array or CSR matrix; untouched for a callable kernel."""
    kernel = estimator.kernel if reset else estimator._fitted_kernel
    if callable(kernel):
        return X
    if reset and sp.issparse(X) and kernel == "precomputed":
        raise TypeError(
            "Sparse precomputed kernels are not supported: pass K.toarray()."
        )
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype=FLOATS,
        order="C",
    )
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_training_set(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> TrainingSet:
    """Everything fit needs to know about X and the weights, or a clear error."""
    started = time.monotonic()
    X = check_samples(estimator, X, reset=True)
    if y is not None:
        check_consistent_length(X, y)
    n = count_samples(X)
    if n == 0:
        raise InvalidInput("Found no samples in X, while a minimum of 1 is required.")
    if estimator.kernel == "precomputed" and X.shape[1] != n:
        raise InvalidInput(
            "Precomputed matrix must be a square matrix. Input is a "
            f"{n}x{X.shape[1]} matrix: pass the kernel between all training samples."
        )
    weight = check_weights(sample_weight, n)
    kept = counted_samples(weight)
    is_sparse = sp.issparse(X) and not callable(estimator.kernel)
    return TrainingSet(X, kept, weight[kept], is_sparse, started)


def require_targets(estimator: Any, y: Any) -> None:
    """Say so where y was left out, in scikit-learn's words."""
    if y is None:
        raise InvalidInput(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None."
        )


def check_weights(sample_weight: Any, n: int) -> FloatVector:
    """One finite weight per sample; ones where none are given."""
    if sample_weight is None:
        return np.ones(n)
    weight: FloatVector = _check_sample_weight(
        sample_weight,
        np.empty((n, 1)),
        dtype=np.float64,
        allow_all_zero_weights=True,  # refused later, with negative ones
    )
    return weight


def resolve_kernel(estimator: Any, training: TrainingSet) -> Kernel | None:
    """The kernel the words stand for; None where K is given or a function gives it."""
    if callable(estimator.kernel) or estimator.kernel == "precomputed":
        return None
    gamma, coef0 = resolve_gamma(estimator, training), float(estimator.coef0)
    choices: dict[str, Kernel] = {
        "linear": Linear(),
        "poly": Polynomial(gamma, coef0, int(estimator.degree)),
        "rbf": RBF(gamma),
        "sigmoid": Sigmoid(gamma, coef0),
        "laplacian": Laplacian(gamma),
    }
    return choices[estimator.kernel]


def resolve_gamma(estimator: Any, training: TrainingSet) -> float:
    """'scale' is 1 / (n_features * variance of X), weighted; 'auto' 1 / n_features."""
    if not isinstance(estimator.gamma, str):
        return float(estimator.gamma)
    n_features = training.X.shape[1]
    if estimator.gamma == "auto":
        return 1.0 / n_features
    with np.errstate(over="ignore", invalid="ignore"):  # checked in the next line
        variance = _variance(training)
    check_finite(np.array([variance]))
    return 1.0 / (n_features * variance) if variance > 0.0 else 1.0


def _variance(training: TrainingSet) -> float:
    X = training.X if training.is_whole else training.X[training.kept]
    weight = training.weight
    mass = float(weight.sum()) * X.shape[1]
    if training.is_sparse:
        values = X.data.astype(np.float64)
        per_value = np.repeat(weight, np.diff(X.indptr))
        mean = float(per_value @ values) / mass
        zeros = mass - float(per_value.sum())
        return (float(per_value @ (values - mean) ** 2) + zeros * mean**2) / mass
    X = X.astype(np.float64, copy=False)
    mean = float(weight @ X.sum(axis=1)) / mass
    return float(weight @ np.square(X - mean).sum(axis=1)) / mass


def make_gram(
    estimator: Any, kernel: Kernel | None, training: TrainingSet, n_threads: int
) -> Gram:
    """The Gram matrix of the samples that count."""
    X, kept = training.X, training.kept
    if callable(estimator.kernel):
        return gram_of_function(estimator.kernel, X, kept)
    if kernel is None:
        check_symmetric(X)
        return MatrixGram(X if training.is_whole else X[np.ix_(kept, kept)])
    rows = as_rows(X if training.is_whole else X[kept])
    return VectorGram(kernel, rows, n_threads)
