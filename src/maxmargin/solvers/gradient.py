"""What is the gradient really? K β + linear in float64, by a running sum.

While some variables are shrunk away, or rows are kept in float32, the gradient at hand
is partial or rounded. This one is neither. It remembers the last point it summed: a
variable that rests at its bound since then costs nothing, which is what LIBSVM's
G_bar is for, and only rows of variables that moved are computed.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.kernels.gram import Gram
from maxmargin.problems.dual import (
    DualProblem,
    dual_gap,
    dual_objective,
    group_levels,
    kkt_violation,
)
from maxmargin.solvers.result import Solution, Status
from maxmargin.typing import FloatVector


class Point(NamedTuple):
    """Where the variables are, and what float64 says about it."""

    beta: FloatVector
    grad: FloatVector
    violation: float
    objective: float


def make_point(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> Point:
    """A point with its evidence."""
    return Point(
        beta,
        grad,
        kkt_violation(problem, beta, grad),
        dual_objective(problem, beta, grad),
    )


def solution_at(
    problem: DualProblem,
    point: Point,
    status: Status,
    tol: float,
    n_iter: int,
    cache: tuple[int, int] = (0, 0),
) -> Solution:
    """What a solver returns of the point where it ended; `cache`: hits and misses."""
    levels = group_levels(problem, point.beta, point.grad)
    return Solution(
        beta=point.beta,
        level=levels,
        status=status,
        n_iter=n_iter,
        violation=point.violation,
        objective=point.objective,
        gap=dual_gap(problem, point.beta, point.grad, levels, tol),
        cache_hits=cache[0],
        cache_misses=cache[1],
        grad=point.grad,
    )


class RunningGradient:
    """The gradient at any point, cheapest near the last point asked for."""

    def __init__(self, problem: DualProblem, gram: Gram) -> None:
        self.problem, self.gram = problem, gram
        self.weight: FloatVector = np.zeros(gram.n)  # beta summed per Gram row
        self.image = np.zeros(gram.n)  # K @ weight

    def at(self, beta: FloatVector) -> Point:
        """The point with these variables."""
        weight = self._weight(beta)
        changed = np.flatnonzero(weight != self.weight)
        if len(changed) >= np.count_nonzero(weight):
            self.weight, self.image = np.zeros(self.gram.n), np.zeros(self.gram.n)
            changed = np.flatnonzero(weight)
        everything = np.arange(self.gram.n)
        change = (weight - self.weight)[changed]
        self.image = self.image + self.gram.sums(changed, change, everything)
        self.weight = weight
        grad: FloatVector = self.image[self.problem.row] + self.problem.linear
        check_finite(grad)
        return make_point(self.problem, beta, grad)

    def known(self, beta: FloatVector, grad: FloatVector) -> Point:
        """The point with these variables, whose float64 gradient is known already."""
        self.weight = self._weight(beta)
        self.image = np.empty(self.gram.n)
        self.image[self.problem.row] = grad - self.problem.linear
        return make_point(self.problem, beta, grad)

    def _weight(self, beta: FloatVector) -> FloatVector:
        return weight_of(self.problem, beta, self.gram.n)


def weight_of(problem: DualProblem, beta: FloatVector, n: int) -> FloatVector:
    """beta summed per Gram row."""
    return np.bincount(problem.row, beta, minlength=n).astype(np.float64, copy=False)


def check_finite(values: FloatVector) -> None:
    """Stop before a loop would chase NaN or infinity."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            "The dual coefficients or intercepts are not finite. The input data may "
            "contain large values and need to be preprocessed: kernel values "
            "overflowed; scale the features or lower gamma, coef0 or degree."
        )
