"""What is the gradient really? K β + linear in float64, by a running sum.

While some variables are shrunk away, or rows are kept in float32, the gradient at hand
is partial or rounded. This one is neither. It remembers the last point it summed: a
variable that rests at its bound since then costs nothing, which is what LIBSVM's
G_bar is for, and only rows of variables that moved are computed. The sum starts again
from zero before its own rounding could be seen. And the point is feasible: rounding in
the group sums is taken back before the gradient is computed.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.kernels.gram import Gram
from maxmargin.problems.dual import (
    DualProblem,
    dual_gap,
    measured,
    restored,
)
from maxmargin.solvers.result import Solution, Status
from maxmargin.typing import FloatVector, IntVector

EPSILON = float(np.finfo(np.float64).eps)
BLURRED = 5e-7  # of the objective: float32 may leave less
CERTAIN = 3.0  # standard errors, by which a mean differs from zero
VISIBLE = 0.01  # of tol: rounding that a running sum may have gathered


class Point(NamedTuple):
    """Where the variables are, with its evidence in float64."""

    beta: FloatVector
    grad: FloatVector
    violation: float
    objective: float
    levels: FloatVector  # the multiplier of each equality


class Reached(NamedTuple):
    """Where the rounds ended; without a status, another solver must go on."""

    beta: FloatVector
    grad: FloatVector
    violation: float  # in float64, if there is a status
    status: Status | None
    cache_hits: int
    cache_misses: int

    def point(self, problem: DualProblem) -> Point:
        """The same with its objective and levels."""
        point = make_point(problem, self.beta, self.grad)
        return point._replace(violation=self.violation)


def make_point(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> Point:
    """A point with its evidence."""
    found = measured(problem, beta, grad)
    return Point(beta, grad, found.violation, found.objective, found.levels)


def solution_at(
    problem: DualProblem,
    point: Point,
    status: Status,
    tol: float,
    n_iter: int,
    cache: tuple[int, int] = (0, 0),
) -> Solution:
    """What a solver returns of the point where it ended; `cache`: hits and misses."""
    return Solution(
        beta=point.beta,
        level=point.levels,
        status=status,
        n_iter=n_iter,
        violation=point.violation,
        objective=point.objective,
        gap=dual_gap(problem, point.beta, point.grad, point.levels, tol),
        cache_hits=cache[0],
        cache_misses=cache[1],
        grad=point.grad,
    )


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

    def at(self, beta: FloatVector) -> Point:
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
        return make_point(self.problem, beta, grad)

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


def is_blurred(
    objective: float, weight: FloatVector, rows: IntVector, error: FloatVector
) -> bool:
    """Whether rounding shows in an objective, where only these rows are exact.

    `weight` is beta summed per Gram row, `error` by how much K @ beta was off in the
    rows before, as it still is elsewhere. Errors of either sign add up as the root of
    their number; what their mean is beyond doubt, with all of them.
    """
    terms = (weight[rows] * error)[weight[rows] != 0.0]
    n_left = int(np.count_nonzero(weight)) - len(terms)
    if n_left == 0 or len(terms) < 2:
        return False
    spread = float(terms.std())
    doubt = CERTAIN * spread / np.sqrt(len(terms))
    biased = max(abs(float(terms.mean())) - doubt, 0.0) * n_left
    return max(biased, spread * np.sqrt(n_left)) > BLURRED * abs(objective)


def check_finite(values: FloatVector) -> None:
    """Refuse kernel values, or sums of them, that float64 cannot hold."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            "The dual coefficients or intercepts are not finite. The input data may "
            "contain large values and need to be preprocessed: kernel values, or their "
            "products with C, exceed what float64 can hold; scale the features or "
            "lower gamma, coef0, degree or C."
        )
