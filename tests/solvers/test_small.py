"""Are tiny problems solved to the last digit by one call?"""

from __future__ import annotations

import numpy as np
import pytest
from problems_zoo import CASES, Case
from solved import assert_solved

from maxmargin.solvers import Options, solve
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.small import is_tiny, solve_tiny

TINY = [case for case in CASES if case.problem.n_groups <= 1]
# Moves alone would take too long:
ENDLESS = {"c_svc hard line", "c_svc large C", "svr polynomial", "svr free line"}


def solve_at_once(case: Case, options: Options) -> object:
    pace = Pace(options, len(case.problem.linear))
    return solve_tiny(case.problem, case.gram, options, pace)


@pytest.mark.parametrize("case", TINY, ids=lambda case: case.name)
def test_what_is_found_is_exact(case: Case) -> None:
    found = solve_at_once(case, Options())

    if found is None:
        assert case.name in ENDLESS
        found = solve(case.problem, case.gram, Options())
    assert_solved(case, found, 1e-8)


def test_whoever_listens_or_limits_gets_the_long_way() -> None:
    problem = TINY[0].problem

    assert is_tiny(problem, Options())
    assert not is_tiny(problem, Options(callback=print))
    assert not is_tiny(problem, Options(time_limit=1.0))
    assert not is_tiny(problem, Options(max_iter=10))
    assert not is_tiny(problem, Options(polish=False))
    groups = [case for case in CASES if case.problem.n_groups > 1]
    assert not any(is_tiny(case.problem, Options()) for case in groups)


def test_moves_are_counted() -> None:
    case = TINY[0]

    found = solve(case.problem, case.gram, Options())

    assert 0 < found.n_iter < 30 * len(case.problem.linear)
    assert np.count_nonzero(found.beta) > 0
