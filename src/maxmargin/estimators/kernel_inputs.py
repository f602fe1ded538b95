"""Which kernel do the words mean? Turned into a Gram matrix of checked samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _clock
from maxmargin.data.rows import as_rows
from maxmargin.errors import InvalidInput, NotAvailable
from maxmargin.estimators.inputs import TrainingSet, check_samples, gather
from maxmargin.kernels import Gram, Kernel
from maxmargin.kernels.functions import KERNELS
from maxmargin.kernels.gram import (
    MatrixGram,
    VectorGram,
    check_symmetric,
    count_samples,
    gram_of_function,
)
from maxmargin.solvers.gradient import check_finite


def check_kernel_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a C-ordered float array or CSR matrix; untouched for a callable kernel."""
    kernel = estimator.kernel if reset else estimator._fitted_kernel
    if callable(kernel):
        return X
    if reset and sp.issparse(X) and kernel == "precomputed":
        raise TypeError(
            "Sparse precomputed kernels are not supported: pass K.toarray()."
        )
    return check_samples(estimator, X, reset=reset)


def check_kernel_set(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
    """Everything fit needs to know about X and the weights, or a clear error."""
    started = _clock.now()
    X = check_kernel_samples(estimator, X, reset=True)
    is_precomputed = estimator.kernel == "precomputed"
    if is_precomputed and X.shape[1] != count_samples(X):
        raise InvalidInput(
            "Precomputed matrix must be a square matrix. Input is a "
            f"{X.shape[0]}x{X.shape[1]} matrix: pass the kernel between all training "
            "samples."
        )
    has_vectors = not callable(estimator.kernel)
    return gather(X, y, sample_weight, started=started, has_vectors=has_vectors)


def resolve_kernel(estimator: Any, training: TrainingSet) -> Kernel | None:
    """The kernel the words stand for; None where K is given or a function gives it."""
    if callable(estimator.kernel) or estimator.kernel == "precomputed":
        return None
    kind = KERNELS[estimator.kernel]
    values: dict[str, Callable[[], Any]] = {
        "gamma": lambda: resolve_gamma(estimator, training),  # reads all samples
        "coef0": lambda: float(estimator.coef0),
        "degree": lambda: int(estimator.degree),
    }
    unknown = set(kind._fields) - set(values)
    if unknown:
        raise NotAvailable(
            f"The kernel {kind.__name__} has the parameters {', '.join(kind._fields)}, "
            f"and estimators have only {', '.join(values)}."
        )
    return kind(**{name: values[name]() for name in kind._fields})


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
    X = training.samples
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
    rows = as_rows(training.samples)
    is_balanced = estimator._is_balanced()
    return VectorGram(kernel, rows, n_threads, is_balanced=is_balanced)
