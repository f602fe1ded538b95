"""How are features brought to one range, and kept there for data still to come?

Feature j goes from [low_j, high_j] to [lower, upper] by a straight line. A feature that
does not vary (low = high) becomes zero: it can tell no samples apart. What is absent
from a sparse row counts as zero, as LIBSVM's svm-scale has it.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from maxmargin.typing import BoolVector, FloatMatrix, FloatVector, IntVector


@dataclass(frozen=True)
class Scaling:
    """Where features are (`low`, `high`) and where they go (`lower`, `upper`)."""

    lower: float
    upper: float
    low: FloatVector
    high: FloatVector

    @property
    def n_features(self) -> int:
        return len(self.low)

    @property
    def varies(self) -> BoolVector:
        """Which features have two values to be told apart by."""
        return self.high != self.low

    def move(self, values: FloatVector, feature: IntVector) -> FloatVector:
        """New values of single entries, whose features are given."""
        low, high = self.low[feature], self.high[feature]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            part = (self.upper - self.lower) * (values - low) / (high - low)
        moved = np.where(values == low, self.lower, self.lower + part)
        moved = np.where(values == high, self.upper, moved)  # exactly, not nearly
        return np.where(high == low, 0.0, moved)

    def of_zero(self) -> FloatVector:
        """What an absent value becomes, feature by feature."""
        return self.move(np.zeros(self.n_features), np.arange(self.n_features))

    def apply(self, X: sparse.csr_matrix | FloatMatrix) -> sparse.csr_matrix:
        """Scale every row; sparse where zeros remain zeros, and dense otherwise.

        Columns that the scaling has not seen are left out, missing ones are zero.
        """
        X = fitted_to(sparse.csr_matrix(X), self.n_features)
        if not self.of_zero().any():
            moved = X.copy()
            moved.data = self.move(X.data, X.indices)
            moved.eliminate_zeros()
            return moved
        every = np.arange(self.n_features)
        return self.move(X.toarray(), every)


def fitted_to(X: sparse.csr_matrix, n_features: int) -> sparse.csr_matrix:
    """X with exactly so many columns: cut, or filled with zeros."""
    if X.shape[1] > n_features:
        return X[:, :n_features]
    wider = X.copy()
    wider.resize(X.shape[0], n_features)
    return wider


def find_scaling(
    X: sparse.csr_matrix, lower: float = -1.0, upper: float = 1.0
) -> Scaling:
    """The smallest and the largest value of each feature, absent zeros included."""
    if X.shape[0] == 0:
        nothing = np.zeros(X.shape[1])
        return Scaling(lower, upper, nothing, nothing)
    return Scaling(lower, upper, _extremes(X, np.fmin), _extremes(X, np.fmax))


def _extremes(X: sparse.csr_matrix, choose: np.ufunc) -> FloatVector:
    """`choose` over each column, with a zero wherever a column has a gap."""
    found = np.full(X.shape[1], np.nan)
    choose.at(found, X.indices, X.data)
    has_gap = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
    found[has_gap] = choose(found[has_gap], 0.0)
    return found


def symmetric_scaling(X: sparse.csr_matrix) -> Scaling:
    """Divide each feature by its largest magnitude, so that zeros remain zeros."""
    plain = find_scaling(X)
    largest = np.maximum(np.abs(plain.low), np.abs(plain.high))
    return Scaling(-1.0, 1.0, -largest, largest)
