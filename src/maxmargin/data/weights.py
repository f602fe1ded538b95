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


def box_sizes(C: float, weight: FloatVector) -> FloatVector:
    """C times the weights; no weight is no box, even where C is infinite."""
    sizes = np.zeros(len(weight))
    return np.multiply(C, weight, out=sizes, where=weight > 0.0)
