"""Who violates most? The extremes of each group, and those next to them."""

from typing import Any

import numpy as np

from maxmargin.problems.dual import DualProblem
from maxmargin.typing import BoolVector, FloatVector, IntVector

NEAR_SHARE = 0.5  # of the violation: who violates more is kept


class Front:
    """The extremes of each group, that two slopes are measured against."""

    def __init__(
        self, problem: DualProblem, right: FloatVector, left: FloatVector
    ) -> None:
        n_groups = max(problem.n_groups, 1)
        self.group = np.maximum(problem.group, 0)
        self.members: list[Any] = [slice(None)]
        if n_groups > 1:
            self.members = [self.group == g for g in range(n_groups)]
        self.lowest = np.array([right[inside].min() for inside in self.members])
        self.highest = np.array([left[inside].max() for inside in self.members])
        if problem.is_free_of_equalities:
            self.top = self.bottom = np.zeros(1)
            self.violations = np.maximum(np.maximum(self.highest, -self.lowest), 0.0)
        else:
            self.top, self.bottom = self.highest, self.lowest
            self.violations = self.highest - self.lowest
        self.violation = float(self.violations.max())

    def is_near(
        self, right: FloatVector, left: FloatVector, among: IntVector
    ) -> BoolVector:
        """Who violates by more than a share of the worst violation."""
        margin = NEAR_SHARE * self.violation
        low = np.minimum(self.top, self.lowest + margin)
        high = np.maximum(self.bottom, self.highest - margin)
        group = self.group[among]
        near: BoolVector = (right[among] < low[group]) | (left[among] > high[group])
        return near

    def worst(
        self, right: FloatVector, left: FloatVector, among: IntVector, n: int
    ) -> IntVector:
        """Up to n variables that violate most, as many on either side of a group."""
        n_each = max(n // (2 * len(self.members)), 1)
        chosen = []
        for g, inside in enumerate(self.members):
            own = among if len(self.members) == 1 else among[inside[among]]
            up = _smallest(right[own], self.top[g], n_each)
            down = _smallest(-left[own], -self.bottom[g], n_each)
            chosen.append(own[np.unique(np.concatenate((up, down)))])
        return np.concatenate(chosen)


def _smallest(values: FloatVector, limit: float, n: int) -> IntVector:
    """Where the n smallest values below the limit are."""
    at = np.flatnonzero(values < limit)
    if len(at) > n:
        at = at[np.argpartition(values[at], n - 1)[:n]]
    return at
