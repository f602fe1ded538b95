"""Is a dual problem solved? Asked of NumPy alone, in float64, from scratch."""

from __future__ import annotations

import naive
import numpy as np
import problems_zoo as zoo
import pytest
from problems_zoo import Case

from benchmarks.optimality import sums_off
from maxmargin.solvers import Solution, Status

TOL = 1e-6


def assert_solved(
    case: Case, solution: Solution, tol: float = TOL, precision: float = 1e-9
) -> None:
    """Feasible, optimal to tol, and honest about it."""
    solved = zoo.stated(case.problem, case.gram, solution.beta, solution.level)
    found = naive.measure(solved)
    noise = max(1e-12, found.rounding)
    start = 8 * np.finfo(np.float64).eps * float(np.abs(case.problem.start).sum())

    assert solution.status is Status.CONVERGED
    assert found.box_error == 0.0
    assert found.sum_error <= 1.0 or max(sums_off(solved)) <= start
    assert max(found.violation_beyond, found.level_beyond) <= tol + 1e-12
    assert solution.violation == pytest.approx(max(found.violation, 0.0), abs=noise)
    error = abs(solution.objective - found.objective)
    assert error <= precision * found.objective_terms + noise
