"""Is a dual problem solved? Asked of NumPy alone, in float64, from scratch."""

from __future__ import annotations

import naive
import numpy as np
import problems_zoo as zoo
import pytest
from problems_zoo import Case

from benchmarks.optimality import AT_BOUND
from maxmargin.solvers import Solution, Status

TOL = 1e-6


def assert_solved(
    case: Case, solution: Solution, tol: float = TOL, precision: float = 1e-9
) -> None:
    """Feasible, optimal to tol, and honest about it."""
    problem, beta = case.problem, solution.beta
    box = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    dust = np.where(np.isfinite(box), AT_BOUND * box, 0.0)  # rounding of the start
    beta = np.where(np.abs(beta) <= dust, 0.0, beta)
    found = naive.measure(zoo.stated(problem, case.gram, beta, solution.level))
    noise = max(1e-12, found.rounding)

    assert solution.status is Status.CONVERGED
    assert found.box_error == 0.0
    assert found.sum_error <= 1.0
    assert found.is_optimal(tol + 1e-12)
    assert solution.violation == pytest.approx(max(found.violation, 0.0), abs=noise)
    error = abs(solution.objective - found.objective)
    assert error <= precision * found.objective_terms + noise
