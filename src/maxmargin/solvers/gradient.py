"""What is the gradient really? K β + linear in float64, by a running sum.

While some variables are shrunk away, or rows are kept in float32, the gradient at hand
is partial or rounded. This one is neither. It remembers the last point it summed: a
variable that rests at its bound since then costs nothing, which is what LIBSVM's
G_bar is for, and only rows of variables that moved are computed. The sum starts again
from zero before its own rounding could be seen. And the point is feasible: rounding in
the group sums is taken back before the gradient is computed.
"""

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.kernels.gram import Gram
from maxmargin.problems.dual import DualProblem, restored
from maxmargin.solvers.iterate import Iterate, make_iterate
from maxmargin.typing import FloatVector

EPSILON = float(np.finfo(np.float64).eps)
VISIBLE = 0.01  # of tol: rounding that a running sum may have gathered


class RunningGradient:
    """The gradient at any point, cheapest near the last point asked for."""

    def __init__(self, problem: DualProblem, gram: Gram, tol: float) -> None:
        self.problem, self.gram = problem, gram
        self.resolution = VISIBLE * tol
        self.largest = float(np.abs(gram.diagonal()).max())
        self._forget()

    def _forget(self) -> None:
        self.weight: FloatVector = np.zeros(self.gram.n)  # beta summed per Gram row
        self.image = np.zeros(self.gram.n)  # K @ weight
        self.n_moved = 0.0  # sum of all changes so far, in absolute value

    def at(self, beta: FloatVector) -> Iterate:
        """The feasible point with these variables, up to rounding in their sums."""
        beta = restored(self.problem, beta)
        weight = weight_of(self.problem, beta, self.gram.n)
        if self._is_fresh_sum_better(weight):
            self._forget()
        change = weight - self.weight
        changed = np.flatnonzero(change)
        everything = np.arange(self.gram.n)
        with np.errstate(over="ignore", invalid="ignore"):
            self.image = self.image + self.gram.sums(
                changed, change[changed], everything
            )
        self.weight = weight
        self.n_moved += float(np.abs(change).sum())
        grad: FloatVector = self.image[self.problem.row] + self.problem.linear
        check_finite(grad)
        return make_iterate(self.problem, beta, grad)

    def _is_fresh_sum_better(self, weight: FloatVector) -> bool:
        """Whether that has fewer terms, or what was summed so far has left its mark."""
        change = weight != self.weight
        if np.count_nonzero(change) >= np.count_nonzero(weight):
            return True
        rounding = EPSILON * self.largest * self.n_moved
        return rounding > self.resolution and self.n_moved > float(np.abs(weight).sum())


def weight_of(problem: DualProblem, beta: FloatVector, n: int) -> FloatVector:
    """beta summed per Gram row."""
    return np.bincount(problem.row, beta, minlength=n).astype(np.float64, copy=False)


def check_finite(values: FloatVector) -> None:
    """Refuse kernel values, or sums of them, that float64 cannot hold."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            "The dual coefficients or intercepts are not finite. The input data may "
            "contain large values and need to be preprocessed: kernel values, or their "
            "products with C, exceed what float64 can hold; scale the features or "
            "lower gamma, coef0, degree or C."
        )
