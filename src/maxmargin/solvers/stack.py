"""What is a stack of problems, and what does float64 say of their solutions?

The problems of all pairs of classes stand one after the other. What their variables
have is a matrix with a row for each property, and so are the answers: compiled code
takes each array apart into seven arguments, of every function that gets one.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.problems.dual import SUM_ROUNDING, DualProblem, least_cost
from maxmargin.solvers.result import Solution, Status
from maxmargin.solvers.work import is_free
from maxmargin.typing import BoolVector, FloatMatrix, FloatVector, IntMatrix, IntVector

# What the matrices hold, by their first index.
LINEAR, KINK, LOWER, UPPER, START, DIAGONAL = 0, 1, 2, 3, 4, 5  # of `numbers`
GROUP, ROW, PLACE = 0, 1, 2  # of `places`: the row of K counts from 0 in each problem
BETA, GRAD = 0, 1  # of `points`
N_MOVES, N_COMPUTED, IS_MET = 0, 1, 2  # of `counts`, an entry a problem
VIOLATION, OBJECTIVE, GAP, LEVEL = 0, 1, 2, 3  # of `evidence`; one more a group


class Stack(NamedTuple):
    """Problems one after the other, each with its variables sorted by group."""

    numbers: FloatMatrix  # a column a variable
    places: IntMatrix
    end: IntVector  # of each problem, among the variables
    n_rows: IntVector  # of K, of each problem
    n_groups: int


class StackSolution(NamedTuple):
    """The points reached, and what float64 says about them."""

    points: FloatMatrix  # a column a variable
    counts: IntMatrix  # a column a problem
    evidence: FloatMatrix

    @property
    def has_converged(self) -> BoolVector:
        """Of each problem, whether it is solved as it was asked for."""
        return self.counts[IS_MET] != 0

    def levels(self, n_groups: int) -> FloatMatrix:
        """A row a problem, a column a group."""
        return self.evidence[LEVEL : LEVEL + n_groups].T

    def solution(self, n_groups: int) -> Solution:
        """What a solver returns for the only problem of a stack."""
        violation, objective, gap = map(float, self.evidence[:LEVEL, 0])
        return Solution(
            beta=self.points[BETA],
            level=self.levels(n_groups)[0],
            status=Status.CONVERGED,
            n_iter=int(self.counts[N_MOVES, 0]),
            violation=violation,
            objective=objective,
            gap=gap,
            cache_misses=int(self.counts[N_COMPUTED, 0]),
            grad=self.points[GRAD],
        )


def stack_of(
    problem: DualProblem, place: IntVector, diagonal: FloatVector, end: IntVector
) -> Stack:
    """A stack of problems; `diagonal` and `place` are those of their variables in K.

    `problem.row` counts the rows of K of each problem from 0, in the order of `place`.
    """
    numbers = np.array(
        [
            problem.linear,
            problem.kink,
            problem.lower,
            problem.upper,
            problem.start,
            diagonal,
        ]
    )
    places = np.array([problem.group, problem.row, place])
    n_rows = np.maximum.reduceat(problem.row, np.concatenate(([0], end[:-1]))) + 1
    return Stack(numbers, places, end, n_rows, problem.n_groups)


@jit
def certify(
    stack: Stack, out: StackSolution, number: int, a: int, b: int, tol: float
) -> None:
    """Violation, objective, gap and levels as in `problems.dual`, in one place.

    That is for any number of groups; this is for at most two, without any array.
    """
    numbers, beta, grad = stack.numbers, out.points[BETA], out.points[GRAD]
    worst, total, objective, n_outside, first = 0.0, 0.0, 0.0, 0, a
    for g in range(max(stack.n_groups, 1)):
        lowest, highest, mean, n_free = np.inf, -np.inf, 0.0, 0
        residual, size, last = 0.0, 0.0, first
        while last < b and max(stack.places[GROUP, last], 0) == g:
            k, kink = last, numbers[KINK, last]
            right = grad[k] + (kink if beta[k] >= 0.0 else -kink)
            left = grad[k] + (kink if beta[k] > 0.0 else -kink)
            lower, upper = numbers[LOWER, k], numbers[UPPER, k]
            if np.isnan(right):
                lowest, highest = -np.inf, np.inf
            if beta[k] < upper:
                lowest = min(lowest, right)
            if beta[k] > lower:
                highest = max(highest, left)
            if is_free(beta[k], kink, lower, upper):
                mean += right
                n_free += 1
            n_outside += not lower <= beta[k] <= upper
            residual += beta[k] - numbers[START, k]
            size += max(abs(beta[k]), abs(numbers[START, k]))
            objective += 0.5 * beta[k] * (grad[k] + numbers[LINEAR, k])
            objective += kink * abs(beta[k])
            last += 1
        # The level: that of the free variables, or the middle of what the others leave.
        level = 0.0
        if stack.n_groups > 0:
            low = lowest if np.isfinite(lowest) else highest
            high = highest if np.isfinite(highest) else low
            if n_free > 0:
                level = mean / n_free
            elif np.isfinite(high):
                level = 0.5 * (low + high)
            worst = max(worst, highest - lowest)
            if abs(residual) > SUM_ROUNDING * size:
                worst = np.inf
            out.evidence[LEVEL + g, number] = level
            total += abs(level * residual)
        else:
            worst = max(highest, -lowest, 0.0)
        for k in range(first, last):
            slope, kink = grad[k] - level, numbers[KINK, k]
            up = least_cost(slope + kink, numbers[UPPER, k], tol)
            down = least_cost(kink - slope, -numbers[LOWER, k], tol)
            total += slope * beta[k] + kink * abs(beta[k]) - min(up, down)
        first = last
    out.evidence[VIOLATION, number] = np.inf if n_outside > 0 else worst
    out.evidence[OBJECTIVE, number], out.evidence[GAP, number] = (
        objective,
        max(total, 0.0),
    )
