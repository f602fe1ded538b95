"""What did the user hand in? Samples and weights, checked and sorted out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    validate_data,
)

from maxmargin import _clock
from maxmargin.data.weights import counted_samples
from maxmargin.errors import InvalidInput
from maxmargin.kernels.gram import count_samples
from maxmargin.typing import FloatVector, IntVector

FLOATS = [np.float64, np.float32]
FEW_VALUES = 1 << 20  # a fit to more hardly notices scikit-learn's checks


@dataclass(frozen=True)
class TrainingSet:
    """Samples that count, with their weights."""

    X: Any  # as validated, all rows
    kept: IntVector  # rows of positive weight
    weight: FloatVector  # of the kept rows
    is_sparse: bool
    started: float  # on the clock of `_clock`

    @property
    def is_whole(self) -> bool:
        return len(self.kept) == count_samples(self.X)

    @property
    def samples(self) -> Any:
        """The rows that count; X itself where all do."""
        return self.X if self.is_whole else self.X[self.kept]

    @property
    def shape(self) -> tuple[Any, ...]:
        """What a warm start must find unchanged: samples, features, who is left out."""
        X = self.X
        n_features = X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else None
        return count_samples(X), n_features, self.kept.tobytes()


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a C-ordered float array or canonical CSR matrix, copied if it is neither."""
    if reset and _is_checked(X) and not hasattr(estimator, "feature_names_in_"):
        estimator.n_features_in_ = X.shape[1]
        return X
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


def _is_checked(X: Any) -> bool:
    """Whether scikit-learn's long look at X would find nothing to say or to do."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in FLOATS:
        return False
    if not (0 < X.size <= FEW_VALUES and X.flags.c_contiguous):
        return False
    return bool(np.isfinite(X).all())


def check_training_set(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> TrainingSet:
    """Everything fit needs to know about X and the weights, or a clear error."""
    started = _clock.now()
    X = check_samples(estimator, X, reset=True)
    return gather(X, y, sample_weight, started=started)


def gather(
    X: Any, y: Any, sample_weight: Any, *, started: float, has_vectors: bool = True
) -> TrainingSet:
    """Checked samples with their weights; those without weight are left out."""
    if y is not None:
        check_consistent_length(X, y)
    n = count_samples(X)
    if n == 0:
        raise InvalidInput("Found no samples in X, while a minimum of 1 is required.")
    weight = check_weights(sample_weight, n)
    kept = counted_samples(weight)
    is_sparse = sp.issparse(X) and has_vectors
    return TrainingSet(X, kept, weight[kept], is_sparse, started)


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
