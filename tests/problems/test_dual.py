"""Are the problems stated right, and is what is said about their solutions true?"""

from __future__ import annotations

import re

import naive
import numpy as np
import numpy.typing as npt
import problems_zoo as zoo
import pytest
from problems_zoo import CASES, NAMES, Case

from maxmargin.errors import InfeasibleProblem
from maxmargin.problems import (
    DualProblem,
    c_svc,
    dual_gap,
    dual_objective,
    epsilon_svr,
    group_levels,
    kkt_violation,
    nu_svc,
    nu_svr,
    one_class,
    project_start,
)
from maxmargin.problems.classification import largest_nu, round_down
from maxmargin.problems.dual import fill_in_order, is_interior, snapped
from maxmargin.solvers import Options, solve

Floats = npt.NDArray[np.float64]

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


def gradient(case: Case, beta: Floats) -> Floats:
    K = zoo.matrix_of(case.gram)[np.ix_(case.problem.row, case.problem.row)]
    return K @ beta + case.problem.linear


def some_point(case: Case, seed: int = 0) -> Floats:
    """A feasible point, some of its variables at a bound or at zero."""
    rng = np.random.default_rng(seed)
    beta = rng.choice([-9.0, 0.0, 0.3, -0.2, 9.0], size=len(case.problem.linear))
    return snapped(case.problem, project_start(case.problem, beta))


def room(problem: DualProblem) -> float:
    return float(np.maximum(problem.upper, -problem.lower).sum())


# ----------------------------------------------------------------- measures of a point
@every_case
def test_violation_is_that_of_the_twin(case: Case) -> None:
    for seed in range(5):
        beta = some_point(case, seed)
        grad = gradient(case, beta)
        levels = np.zeros(case.problem.n_groups)
        solved = zoo.stated(case.problem, case.gram, beta, levels)

        expected = naive.measure(solved).violation

        assert kkt_violation(case.problem, beta, grad) == pytest.approx(expected)


@every_case
def test_objective_is_that_of_the_twin(case: Case) -> None:
    beta = some_point(case)
    K = zoo.matrix_of(case.gram)[np.ix_(case.problem.row, case.problem.row)]

    expected = 0.5 * beta @ K @ beta + case.problem.linear @ beta
    expected += case.problem.kink @ np.abs(beta)

    found = dual_objective(case.problem, beta, gradient(case, beta))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@every_case
def test_gap_closes_at_the_optimum_only(case: Case) -> None:
    if np.isinf(room(case.problem)):
        pytest.skip("without bounds the primal is infinite away from the optimum")
    best = solve(case.problem, case.gram, Options(tol=1e-9))
    levels = best.level

    at_best = dual_gap(case.problem, best.beta, gradient(case, best.beta), levels, 0.0)
    assert 0.0 <= at_best <= 1e-8 * max(1.0, room(case.problem))

    beta = some_point(case)
    grad = gradient(case, beta)
    elsewhere = dual_gap(
        case.problem, beta, grad, group_levels(case.problem, beta, grad), 0.0
    )
    assert elsewhere >= 0.0
    if zoo.is_convex(case):
        behind = dual_objective(case.problem, beta, grad) - best.objective
        assert elsewhere >= behind - 1e-9 * max(1.0, abs(best.objective))


def test_gap_forgives_small_misses_where_the_box_is_infinite() -> None:
    problem = c_svc(np.array([1.0, -1.0]), np.full(2, np.inf))
    beta, grad = np.zeros(2), np.array([-1e-4, 1e-4])

    assert dual_gap(problem, beta, grad, np.zeros(1), 1e-3) == 0.0
    assert dual_gap(problem, beta, grad, np.zeros(1), 1e-5) == np.inf


# ------------------------------------------------------------------------------ levels
def test_level_is_the_slope_of_the_free_variables() -> None:
    problem = c_svc(np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4))
    beta = np.array([0.5, 1.0, -1.0, -0.5])
    grad = np.array([0.2, -5.0, 5.0, 0.4])

    assert group_levels(problem, beta, grad) == pytest.approx([0.3])


def test_level_without_free_variables_is_the_middle() -> None:
    problem = c_svc(np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4))
    beta = np.array([1.0, 0.0, -1.0, 0.0])
    grad = np.array([-3.0, 2.0, 4.0, -1.0])  # left: -3, -1; right: 2, 4

    assert group_levels(problem, beta, grad) == pytest.approx([0.5])


def test_level_with_one_end_only_is_that_end() -> None:
    problem = one_class(np.ones(3), 1.0)
    grad = np.array([1.0, 2.0, 1.5])

    assert group_levels(problem, problem.start, grad) == pytest.approx([2.0])


def test_level_counts_the_kink_once() -> None:
    problem = epsilon_svr(np.zeros(3), np.ones(3), 0.1)
    beta = np.array([0.5, -0.5, 0.0])
    grad = np.array([0.2, 0.4, 9.0])

    assert group_levels(problem, beta, grad) == pytest.approx([0.3])


def test_zero_is_a_bound_where_there_is_a_kink() -> None:
    flat = c_svc(np.array([1.0, -1.0, 1.0]), np.ones(3))
    bent = epsilon_svr(np.zeros(3), np.ones(3), 0.1)
    smooth = epsilon_svr(np.zeros(3), np.ones(3), 0.0)
    beta = np.array([0.0, -0.3, 1.0])

    assert is_interior(flat, beta).tolist() == [False, True, False]
    assert is_interior(bent, beta).tolist() == [False, True, False]
    assert is_interior(smooth, beta).tolist() == [True, True, False]


# ------------------------------------------------------------------------------ starts
@every_case
def test_every_start_is_feasible(case: Case) -> None:
    problem = case.problem

    assert np.all((problem.lower <= problem.start) & (problem.start <= problem.upper))


@every_case
def test_projected_start_is_feasible(case: Case) -> None:
    problem = case.problem
    for seed in range(5):
        wild = 3.0 * np.random.default_rng(seed).normal(size=len(problem.linear))

        beta = project_start(problem, wild)

        assert np.all((problem.lower <= beta) & (beta <= problem.upper))
        for g in range(problem.n_groups):
            inside = problem.group == g
            scale = max(1.0, np.abs(beta[inside]).sum())
            error = beta[inside].sum() - problem.start[inside].sum()
            assert abs(error) <= 1e-9 * scale


@every_case
def test_projection_leaves_a_feasible_point_alone(case: Case) -> None:
    """To rounding, and bounds exactly: a variable that leaves one is a violator."""
    beta = solve(case.problem, case.gram, Options()).beta

    again = project_start(case.problem, beta)

    np.testing.assert_allclose(again, beta, rtol=0, atol=1e-12 * np.abs(beta).sum())
    at_bound = (beta == case.problem.lower) | (beta == case.problem.upper)
    assert np.array_equal(again[at_bound], beta[at_bound])


@pytest.mark.nojit
@pytest.mark.parametrize("total", [0.0, 0.5, 2.0, 2.5, 5.5, 6.0])
def test_filling_in_order(total: float) -> None:
    weight = np.array([2.0, 0.5, 3.0, 0.5])

    filled = fill_in_order(weight, total)

    assert filled.sum() == pytest.approx(total)
    assert np.all((filled >= 0.0) & (filled <= weight))
    n_full = np.count_nonzero(filled == weight)
    assert np.all(filled[n_full + 1 :] == 0.0)


# ----------------------------------------------------------------- the five statements
def test_c_svc_statement() -> None:
    y, C = np.array([1.0, -1.0]), np.array([2.0, 3.0])

    problem = c_svc(y, C)

    assert np.array_equal(problem.linear, [-1.0, 1.0])
    assert np.array_equal(problem.lower, [0.0, -3.0])
    assert np.array_equal(problem.upper, [2.0, 0.0])
    assert problem.n_groups == 1
    assert not problem.is_free_of_equalities
    assert c_svc(y, C, has_intercept=False).is_free_of_equalities


def test_nu_svc_statement() -> None:
    problem = nu_svc(
        np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 2.0, 3.0, 4.0]), 0.4
    )

    assert np.array_equal(problem.lower, [0.0, -2.0, 0.0, -4.0])
    assert np.array_equal(problem.upper, [1.0, 0.0, 3.0, 0.0])
    assert np.array_equal(problem.group, [0, 1, 0, 1])
    assert problem.start[[0, 2]].sum() == pytest.approx(2.0)
    assert problem.start[[1, 3]].sum() == pytest.approx(-2.0)


def test_svr_statement() -> None:
    problem = epsilon_svr(np.array([0.5, -1.0]), np.array([2.0, 3.0]), 0.1)

    assert np.array_equal(problem.linear, [-0.5, 1.0])
    assert np.array_equal(problem.kink, [0.1, 0.1])
    assert np.array_equal(problem.lower, [-2.0, -3.0])
    assert np.array_equal(problem.upper, [2.0, 3.0])


def test_nu_svr_statement() -> None:
    problem = nu_svr(np.array([0.5, -1.0]), np.array([2.0, 3.0]), 0.6)

    assert np.array_equal(problem.linear, [-0.5, 1.0, -0.5, 1.0])
    assert np.array_equal(problem.row, [0, 1, 0, 1])
    assert np.array_equal(problem.group, [0, 0, 1, 1])
    assert np.array_equal(problem.lower, [0.0, 0.0, -2.0, -3.0])
    assert np.array_equal(problem.upper, [2.0, 3.0, 0.0, 0.0])
    assert problem.start[:2].sum() == pytest.approx(1.5)
    assert problem.start[2:].sum() == pytest.approx(-1.5)


def test_one_class_statement() -> None:
    problem = one_class(np.array([1.0, 2.0, 1.0]), 0.5)

    assert np.array_equal(problem.upper, [1.0, 2.0, 1.0])
    assert np.array_equal(problem.start, [1.0, 1.0, 0.0])


# ------------------------------------------------------------------------ feasible nu
@pytest.mark.parametrize("seed", range(20))
def test_infeasible_nu_is_refused_with_one_that_works(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(11) < rng.integers(1, 5), 1.0, -1.0)
    weight = rng.uniform(0.01, 3.0, size=11)

    with pytest.raises(InfeasibleProblem, match="specified nu is infeasible") as caught:
        nu_svc(y, weight, 1.0)

    named = float(re.search(r"\(0, ([^\]]*)\]", str(caught.value)).group(1))
    assert 0.99 * largest_nu(y, weight) <= named <= largest_nu(y, weight)
    nu_svc(y, weight, named)


def test_largest_nu_itself_is_feasible() -> None:
    y, weight = np.array([1.0, -1.0, -1.0]), np.array([0.1, 0.2, 0.3])

    problem = nu_svc(y, weight, largest_nu(y, weight))

    assert problem.start[0] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.6, 0.6), (0.66667, 0.666), (0.00123456, 0.00123), (0, 0)]
)
def test_rounding_down(value: float, rounded: float) -> None:
    assert round_down(value) == pytest.approx(rounded, rel=1e-12)
    assert float(f"{round_down(value):g}") <= value * (1 + 1e-12)


@pytest.mark.parametrize(
    ("where", "expected"),
    [(1.0 - 3e-14, 1.0), (0.999, 0.999), (3e-14, 0.0), (0.001, 0.001), (1.2, 1.0)],
)
def test_who_is_off_a_bound_by_rounding_is_put_there(
    where: float, expected: float
) -> None:
    problem = c_svc(np.array([1.0, -1.0]), np.full(2, 0.3))
    endless = c_svc(np.array([1.0, -1.0]), np.full(2, np.inf))
    beta = 0.3 * np.array([where, -where])

    assert snapped(problem, beta) == pytest.approx([0.3 * expected, -0.3 * expected])
    assert (snapped(problem, beta) == problem.upper + problem.lower).all() == (
        expected == 1.0
    )
    assert np.array_equal(snapped(endless, beta), beta)
