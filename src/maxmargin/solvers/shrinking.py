"""Which variables will not move again? (Joachims, 1998; LIBSVM's rule.)

A variable at a bound, or at its kink, whose slopes lie beyond those of every possible
partner cannot be part of a violating pair now, and rarely is later. It is set aside;
the final check looks at all variables, so a wrong guess costs time and nothing else.
"""

import numpy as np

from maxmargin.solvers.work import Work
from maxmargin.typing import IntVector


def survivors(
    work: Work, is_free_of_equalities: bool, min_share: float
) -> IntVector | None:
    """The active variables to keep, or None where a smaller share would go."""
    up, down = work.grad + work.rise, work.grad + work.fall
    keep = np.empty(len(up), dtype=bool)
    for g in range(len(work.start) - 1):
        inside = slice(work.start[g], work.start[g + 1])
        if inside.start == inside.stop:
            continue
        lowest, highest = up[inside].min(), down[inside].max()
        if is_free_of_equalities:
            highest = max(highest, -lowest, 0.0)
            lowest = -highest
        keep[inside] = (up[inside] <= highest) | (down[inside] >= lowest)
    n_gone = len(keep) - np.count_nonzero(keep)
    if n_gone < min_share * len(keep) or n_gone == len(keep):
        return None
    return np.flatnonzero(keep)
