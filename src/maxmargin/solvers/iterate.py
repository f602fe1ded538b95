"""Where is a solver, and what does float64 say of that point?"""

from typing import NamedTuple

import numpy as np

from maxmargin.problems.dual import DualProblem, dual_gap, measured
from maxmargin.solvers.result import Solution, Status
from maxmargin.typing import FloatVector


class Iterate(NamedTuple):
    """A point with its slopes and its evidence; every solver ends with one.

    Without a status it is not the solution, and another solver has to go on from it.
    """

    beta: FloatVector
    grad: FloatVector
    violation: float
    objective: float
    levels: FloatVector  # the multiplier of each equality
    status: Status | None = None
    cache_hits: int = 0
    cache_misses: int = 0
    gap: float | None = None  # where it is known already


def make_iterate(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> Iterate:
    """A point with its evidence, read off the gradient."""
    found = measured(problem, beta, grad)
    return Iterate(beta, grad, found.violation, found.objective, found.levels)


def solution_at(
    problem: DualProblem, iterate: Iterate, tol: float, n_iter: int
) -> Solution:
    """What a solver returns of the point where it ended."""
    assert iterate.status is not None, "another solver has to go on"
    gap, levels = iterate.gap, iterate.levels
    if gap is None:
        gap = dual_gap(problem, iterate.beta, iterate.grad, levels, tol)
    return Solution(
        beta=iterate.beta,
        level=levels,
        status=iterate.status,
        n_iter=n_iter,
        violation=iterate.violation,
        objective=iterate.objective,
        gap=gap,
        cache_hits=iterate.cache_hits,
        cache_misses=iterate.cache_misses,
        grad=iterate.grad,
    )


def without_solution(problem: DualProblem) -> Iterate:
    """Where a problem starts, for the solver that goes on after one that failed."""
    n = len(problem.start)
    return Iterate(problem.start, np.full(n, np.nan), np.inf, np.inf, np.zeros(0))
