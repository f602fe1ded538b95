"""How much does each sample count?"""

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.typing import FloatVector, IntVector


def counted_samples(weight: FloatVector) -> IntVector:
    """The samples of positive weight: the others are as if they were not there."""
    kept = np.flatnonzero(weight > 0.0)
    if not len(kept):
        raise InvalidInput(
            "Invalid input - all samples have zero or negative weights. At least one "
            "sample_weight must be positive."
        )
    return kept


def weighted_variance(
    total: float, total_of_squares: float, weight_of_entries: float
) -> float:
    """E[x²] - E[x]² from sums over all entries of a matrix."""
    mean = total / weight_of_entries
    return total_of_squares / weight_of_entries - mean * mean
