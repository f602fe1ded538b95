"""What does K sum up to over a class? For machines that begin at their bounds."""

import numpy as np

from maxmargin._jit import jit_fast, jit_new
from maxmargin.kernels.held import HeldGram, Part, run_ends
from maxmargin.typing import FloatMatrix, FloatVector, IntVector


class Sides:
    """Sums of K over those of either class that a fold holds out."""

    def __init__(self, gram: HeldGram, y: FloatVector, fold_of: IntVector) -> None:
        """y is ±1; `fold_of` is who holds a sample out. O(n²), one pass over K."""
        self.gram, self.y, self.fold_of = gram, y, fold_of
        n_folds = int(fold_of.max()) + 1
        group = 2 * fold_of + (y > 0.0)
        is_end = np.append(np.diff(group) != 0, True)
        is_end[run_ends(gram.part.at) - 1] = True
        part = gram.part._replace(ends=np.flatnonzero(is_end) + 1)
        self.sums = _sum_groups(part, group, 2 * n_folds)
        self.lean = self._lean()
        far, near = self.lean[y > 0.0].mean(), self.lean[y <= 0.0].mean()
        self.distance = float(far - near)  # of the two means, squared

    def _lean(self) -> FloatVector:
        """How far each sample is on the positive side of the two means."""
        n_positive = int((self.y > 0.0).sum())
        n_negative = len(self.y) - n_positive
        up, down = self.sums[:, 1::2].sum(axis=1), self.sums[:, ::2].sum(axis=1)
        lean: FloatVector = up / n_positive - down / n_negative
        return lean

    def image(self, beta: FloatVector, fold: int) -> FloatVector:
        """K times variables, many of which are at the bound of a box that all share.

        Summed over those who are not, if they are fewer.
        """
        box = float(np.abs(beta).max())
        all_bound = np.where(self.fold_of != fold, box * self.y, 0.0)
        size = np.tile([-box, box], self.sums.shape[1] // 2)
        size[2 * fold : 2 * fold + 2] = 0.0
        rest = beta - all_bound
        if np.count_nonzero(rest) >= np.count_nonzero(beta):
            rest, size = beta, np.zeros(len(size))
        others = np.flatnonzero(rest)
        sums = self.gram.sums(others, rest[others], np.arange(self.gram.n))
        return self.sums @ size + sums


@jit_new
def _sum_groups(part: Part, group: IntVector, n_groups: int) -> FloatMatrix:
    """Each row of K, summed over each group; runs are of one group each."""
    sums = np.zeros((len(part.at), n_groups))
    for i in range(len(part.at)):
        row, first = part.K[part.at[i]], 0
        for last in part.ends:
            run = part.at[first]
            sums[i, group[first]] += _total(row[run : run + last - first])
            first = last
    return sums


@jit_fast
def _total(values: FloatVector) -> float:
    total = 0.0
    for k in range(values.size):
        total += values[k]
    return total
