"""Is a dual problem solved? Asked of NumPy alone, in float64, from scratch."""

from __future__ import annotations

import naive
import numpy as np
import problems_zoo as zoo
import pytest
from problems_zoo import Case

from maxmargin.solvers import Solution, Status

TOL = 1e-6


def violation_of(solved: naive.Solved) -> tuple[float, float]:
    """KKT violation and error of the levels, in float64, from scratch."""
    grad = solved.K @ solved.beta + solved.linear
    if not solved.sums:
        return naive.projected_violation(solved, grad), 0.0
    return naive.group_violation(solved, grad)


def assert_solved(
    case: Case, solution: Solution, tol: float = TOL, precision: float = 1e-9
) -> None:
    """Feasible, optimal to tol, and honest about it."""
    problem, beta = case.problem, solution.beta
    solved = zoo.stated(problem, case.gram, beta, solution.level)
    violation, level_error = violation_of(solved)
    noise = 1e-12 * max(1.0, float(np.abs(solved.K).max() * np.abs(beta).sum()))

    assert solution.status is Status.CONVERGED
    assert np.all((problem.lower <= beta) & (beta <= problem.upper))
    for g, total in enumerate(solved.sums):
        scale = max(1.0, float(np.abs(beta).sum()))
        assert abs(beta[problem.group == g].sum() - total) <= 1e-9 * scale
    assert violation <= tol + noise
    assert level_error <= tol + noise
    assert solution.violation == pytest.approx(max(violation, 0.0), abs=noise)
    objective = naive.objective(solved._replace(kink=0.0))
    objective += float(problem.kink @ np.abs(beta))
    size = np.abs(beta)
    parts = size @ (0.5 * np.abs(solved.K) @ size + np.abs(solved.linear))
    assert abs(solution.objective - objective) <= precision * parts + noise
