"""Is a point that leaves its box or its group sums seen, and brought back?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import problems_zoo as zoo
import pytest
from problems_zoo import CASES, NAMES, Case

from maxmargin.problems import dual_gap, epsilon_svr, group_levels, kkt_violation
from maxmargin.problems.dual import is_feasible, restored
from maxmargin.solvers import Options, solve

Floats = npt.NDArray[np.float64]

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


def gradient(case: Case, beta: Floats) -> Floats:
    K = zoo.matrix_of(case.gram)[np.ix_(case.problem.row, case.problem.row)]
    return K @ beta + case.problem.linear


def sums_of(case: Case, beta: Floats) -> list[float]:
    groups = range(case.problem.n_groups)
    return [float(beta[case.problem.group == g].sum()) for g in groups]


def free_variable(case: Case, beta: Floats) -> int:
    room = np.minimum(case.problem.upper - beta, beta - case.problem.lower)
    k = int(np.where(np.isfinite(room), room, -1.0).argmax())
    if room[k] <= 1e-3:
        pytest.skip("no variable has room to leave its sum")
    return k


@every_case
def test_solutions_are_feasible(case: Case) -> None:
    solution = solve(case.problem, case.gram, Options())

    assert is_feasible(case.problem, solution.beta)
    assert restored(case.problem, solution.beta) is solution.beta


@every_case
def test_a_point_off_its_sums_is_no_solution(case: Case) -> None:
    if case.problem.is_free_of_equalities:
        pytest.skip("no sums")
    beta = solve(case.problem, case.gram, Options()).beta.copy()
    k = free_variable(case, beta)
    before = gradient(case, beta)
    levels = group_levels(case.problem, beta, before)

    beta[k] += 1e-4
    grad = gradient(case, beta)

    assert not is_feasible(case.problem, beta)
    assert kkt_violation(case.problem, beta, grad) == np.inf
    level = abs(levels[case.problem.group[k]])
    assert dual_gap(case.problem, beta, grad, levels, 0.0) >= 0.99e-4 * level


@every_case
def test_a_point_off_its_box_is_no_solution(case: Case) -> None:
    solution = solve(case.problem, case.gram, Options())
    ends = np.flatnonzero(np.isfinite(case.problem.upper))
    if not len(ends):
        pytest.skip("no box")
    outside = solution.beta.copy()
    outside[ends[0]] = case.problem.upper[ends[0]] + 1e-6

    assert not is_feasible(case.problem, outside)
    assert kkt_violation(case.problem, outside, gradient(case, outside)) == np.inf


@every_case
@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.2])
def test_sums_are_restored_inside_the_box(case: Case, size: float) -> None:
    solution = solve(case.problem, case.gram, Options())
    noise = np.random.default_rng(0).normal(scale=size, size=len(solution.beta))

    near = restored(case.problem, solution.beta + noise)

    assert is_feasible(case.problem, near)
    expected = sums_of(case, case.problem.start)
    np.testing.assert_allclose(sums_of(case, near), expected, atol=1e-12, rtol=1e-12)


def test_variables_at_a_bound_stay_there_when_a_free_one_has_room() -> None:
    problem = epsilon_svr(np.zeros(4), np.ones(4), 0.1)
    beta = np.array([1.0, -1.0, 0.5, -0.5 + 1e-6])

    near = restored(problem, beta)

    assert near[0] == 1.0
    assert near[1] == -1.0
    assert np.count_nonzero(near != beta) == 1
    assert abs(near.sum()) <= 1e-15


def test_not_a_number_is_replaced_by_the_start() -> None:
    problem = epsilon_svr(np.zeros(3), np.ones(3), 0.1)

    near = restored(problem, np.array([0.1, np.nan, -0.1]))

    np.testing.assert_array_equal(near, problem.start)
    assert not is_feasible(problem, np.full(3, np.nan))
