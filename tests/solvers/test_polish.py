"""Does the last step go from the tolerance to rounding, and never uphill?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import problems_zoo as zoo
import pytest
from problems_zoo import CASES, NAMES, Case

from maxmargin.problems import DualProblem, dual_objective, kkt_violation
from maxmargin.problems.dual import is_interior
from maxmargin.solvers import Options, solve
from maxmargin.solvers.polish import (
    MAX_FREE,
    FreeBlock,
    free_block,
    newton_step,
    polish,
    take_step,
)

Floats = npt.NDArray[np.float64]

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


def in_order(case: Case) -> Case:
    """The same problem with its variables sorted by group, as the solver has them."""
    order = np.argsort(case.problem.group, kind="stable")
    return case._replace(problem=DualProblem(*(part[order] for part in case.problem)))


def roughly(case: Case) -> tuple[Floats, Floats]:
    """A point that is converged to a coarse tolerance, and its gradient."""
    rough = Options(tol=0.03, polish=False)
    beta = solve(case.problem, case.gram, rough).beta
    K = zoo.matrix_of(case.gram)[np.ix_(case.problem.row, case.problem.row)]
    return beta, K @ beta + case.problem.linear


@every_case
def test_free_block_is_a_part_of_the_kernel(case: Case) -> None:
    case = in_order(case)
    beta, _ = roughly(case)

    block = free_block(case.problem, case.gram, beta)

    free = np.flatnonzero(is_interior(case.problem, beta))
    if not len(free):
        assert block is None
        return
    K = zoo.matrix_of(case.gram)
    rows = case.problem.row[free]
    assert np.array_equal(block.variables, free)
    np.testing.assert_allclose(block.columns, K[:, rows], atol=1e-12)
    np.testing.assert_allclose(block.square, K[np.ix_(rows, rows)], atol=1e-12)


def test_free_block_keeps_its_order_when_everybody_is_free() -> None:
    """The variables of two groups are not in the order of their rows."""
    case = in_order(CASES[NAMES.index("nu_svc all free")])
    beta = np.where(case.problem.upper > 0, 0.5, -0.5)

    block = free_block(case.problem, case.gram, beta)

    assert len(block.variables) == zoo.N
    K = zoo.matrix_of(case.gram)
    np.testing.assert_allclose(block.columns, K[:, case.problem.row])


def test_too_many_free_variables_are_left_alone() -> None:
    n = MAX_FREE + 1
    X, y, _ = zoo.draw(n)
    case = Case("many", zoo.c_svc(y, zoo.ones(n)), zoo.gram_of(zoo.Linear(), X))

    assert free_block(case.problem, case.gram, 0.5 * y) is None
    assert free_block(case.problem, case.gram, np.where(y > 0, 1.0, 0.0)) is None


@every_case
def test_polish_is_feasible_exact_and_never_uphill(case: Case) -> None:
    case = in_order(case)
    beta, grad = roughly(case)
    block = free_block(case.problem, case.gram, beta)
    if block is None:
        pytest.skip("nothing is free")

    better = polish(case.problem, block, beta, grad)

    problem = case.problem
    K = zoo.matrix_of(case.gram)[np.ix_(problem.row, problem.row)]
    scale = max(1.0, float(np.abs(better).sum()))
    assert np.all((problem.lower <= better) & (better <= problem.upper))
    for g in range(problem.n_groups):
        inside = problem.group == g
        assert abs((better - beta)[inside].sum()) <= 1e-12 * scale
    its_grad = K @ better + problem.linear
    before = dual_objective(problem, beta, grad)
    noise = 1e-9 * max(1.0, abs(before))
    assert dual_objective(problem, better, its_grad) <= before + noise


@pytest.mark.parametrize("name", ["c_svc", "svr", "nu_svr", "one_class", "c_svc free"])
def test_polish_reaches_rounding(name: str) -> None:
    case = in_order(CASES[NAMES.index(name)])
    solution = solve(case.problem, case.gram, Options(tol=1e-4, polish=False))
    K = zoo.matrix_of(case.gram)[np.ix_(case.problem.row, case.problem.row)]
    grad = K @ solution.beta + case.problem.linear
    block = free_block(case.problem, case.gram, solution.beta)

    better = polish(case.problem, block, solution.beta, grad)

    after = K @ better + case.problem.linear
    assert kkt_violation(case.problem, better, after) <= 1e-12


@pytest.mark.parametrize(
    "case", [c for c in CASES if zoo.is_convex(c)], ids=lambda c: c.name
)
def test_solver_with_polish_reaches_rounding(case: Case) -> None:
    solution = solve(case.problem, case.gram, Options(tol=1e-3))

    scale = max(1.0, float(np.abs(case.problem.linear).max()))
    largest = np.abs(zoo.matrix_of(case.gram)).max() * np.abs(solution.beta).sum()
    assert solution.violation <= 1e-10 * max(scale, largest)


# ----------------------------------------------------------------------- the two steps
@pytest.mark.parametrize("groups", [[0, 0, 0, 0], [0, 0, 1, 1], [-1, -1, -1, -1]])
@pytest.mark.parametrize("rank", [4, 2])
def test_newton_step_solves_the_kkt_system(groups: list[int], rank: int) -> None:
    rng = np.random.default_rng(rank)
    factor = rng.normal(size=(4, rank))
    K, group = factor @ factor.T, np.array(groups)
    slope = K @ rng.normal(size=4)  # in the range of K, so that there is a solution

    step = newton_step(K, slope, group)

    after = slope + K @ step
    for g in np.unique(group[group >= 0]):
        assert step[group == g].sum() == pytest.approx(0.0, abs=1e-9)
        assert np.ptp(after[group == g]) <= 1e-8
    if groups[0] < 0:
        np.testing.assert_allclose(after, 0.0, atol=1e-8)


def box(lower: Floats, upper: Floats, kink: Floats) -> DualProblem:
    n = len(lower)
    zero, nobody = np.zeros(n), np.full(n, -1)
    return DualProblem(zero, kink, lower, upper, nobody, np.arange(n), zero)


def test_step_ends_at_the_first_bound() -> None:
    problem = box(np.full(3, -1.0), np.ones(3), np.zeros(3))
    beta = np.array([0.5, 0.0, -0.5])

    blocked = take_step(problem, beta, np.arange(3), np.array([2.0, 1.0, 0.0]))

    assert blocked.tolist() == [True, False, False]
    np.testing.assert_allclose(beta, [1.0, 0.25, -0.5])


def test_step_ends_at_a_kink() -> None:
    problem = box(np.full(2, -1.0), np.ones(2), np.array([0.1, 0.0]))
    beta = np.array([0.25, 0.25])

    blocked = take_step(problem, beta, np.arange(2), np.array([-0.5, -0.5]))

    assert blocked.tolist() == [True, False]
    assert beta[0] == 0.0
    assert beta[1] == pytest.approx(0.0, abs=1e-15)


def test_step_that_fits_is_taken_whole() -> None:
    problem = box(np.full(2, -np.inf), np.full(2, np.inf), np.zeros(2))
    beta = np.array([0.25, 0.25])

    blocked = take_step(problem, beta, np.arange(2), np.array([5.0, -5.0]))

    assert not blocked.any()
    assert np.array_equal(beta, [5.25, -4.75])


def test_polish_gives_up_on_what_is_not_convex() -> None:
    K = np.diag([-1.0, -1.0])
    problem = box(np.full(2, -1.0), np.ones(2), np.zeros(2))
    beta = np.array([0.1, -0.2])
    block = FreeBlock(np.arange(2), K, K)

    same = polish(problem, block, beta, K @ beta)

    assert np.array_equal(same, beta)
