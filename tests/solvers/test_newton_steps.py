"""Do free variables find their common optimum, whatever bounds they meet?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import problems_zoo as zoo
import pytest
from problems_zoo import CASES, NAMES, Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Polynomial, VectorGram
from maxmargin.kernels.gram import gram_block
from maxmargin.problems import DualProblem, c_svc, epsilon_svr, nu_svc, one_class
from maxmargin.problems.dual import dual_objective, is_interior, kkt_violation
from maxmargin.solvers import Options, Status, solve
from maxmargin.solvers.iterate import make_iterate
from maxmargin.solvers.newton_steps import (
    MAX_FREE,
    MAX_GROUPS,
    NewtonSteps,
    common_optimum,
    free_variables,
)
from maxmargin.solvers.tuning import TUNING
from maxmargin.solvers.work import Work, gather_work

NEWTON = TUNING.newton
Floats = npt.NDArray[np.float64]

N = 60
MACHINES = ["svc", "svc without intercept", "svr", "nu-svc", "one-class"]
every_machine = pytest.mark.parametrize("machine", MACHINES)


def posed(machine: str, n: int = N, C: float = 5.0) -> tuple[DualProblem, VectorGram]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    y, gram = np.where(score > 0.0, 1.0, -1.0), VectorGram(RBF(0.5), as_rows(X))
    if machine == "svr":
        return epsilon_svr(score, np.full(n, C), 0.1), gram
    if machine == "nu-svc":
        return nu_svc(y, np.ones(n), 0.4), gram
    if machine == "one-class":
        return one_class(np.ones(n), 0.4), gram
    return c_svc(y, np.full(n, C), has_intercept=machine == "svc"), gram


def halfway(machine: str) -> tuple[DualProblem, Work, Floats]:
    """Variables that some moves have brought inside their box; grouped."""
    problem, gram = posed(machine)
    order = np.argsort(problem.group, kind="stable")
    everybody = np.arange(N)
    K = gram_block(gram, everybody, everybody)[np.ix_(order, order)]
    found = solve(problem, gram, Options(tol=0.3, method="smo", polish=False))
    grad = gram_block(gram, everybody, everybody) @ found.beta + problem.linear
    return problem, gather_work(problem, order, found.beta, grad, np.ones(N)), K


def objective(work: Work, beta: Floats, K: Floats, linear: Floats) -> float:
    return float(0.5 * beta @ K @ beta + linear @ beta + work.kink @ np.abs(beta))


def free_in(work: Work) -> npt.NDArray[np.intp]:
    return np.flatnonzero(is_interior(work, work.beta))


@every_machine
def test_a_step_goes_down_and_stays_within_all_bounds(machine: str) -> None:
    problem, work, K = halfway(machine)
    linear, before = work.grad - K @ work.beta, work.beta.copy()
    free = free_in(work)
    is_bound = not problem.is_free_of_equalities
    steps = NewtonSteps(is_bound, lambda: False, NEWTON)

    change = steps.take(work, free, K[np.ix_(free, free)].astype(np.float32))

    assert len(free) > 5
    assert np.abs(change).max() > 1e-3
    fall = objective(work, before, K, linear) - objective(work, work.beta, K, linear)
    assert fall > 0.0
    assert work.gained[0] == pytest.approx(fall, rel=1e-3)
    assert np.all((work.lower <= work.beta) & (work.beta <= work.upper))
    ends = zip(work.start[:-1], work.start[1:], strict=True)
    for a, b in ends if is_bound else []:
        assert work.beta[a:b].sum() == pytest.approx(before[a:b].sum(), abs=1e-12)
    if machine == "svr":  # a kink is a bound
        assert np.all(work.beta[free] * before[free] >= 0.0)


@every_machine
@pytest.mark.parametrize("most", [10**9, 0], ids=["one call", "a step a call"])
def test_who_is_left_is_at_rest(machine: str, most: int) -> None:
    problem, work, K = halfway(machine)
    free = free_in(work)
    is_bound = not problem.is_free_of_equalities
    tuning, before = NEWTON._replace(values_per_call=most), work.beta[free].copy()
    steps = NewtonSteps(is_bound, lambda: False, tuning)
    slope = work.grad[free] + work.rise[free]

    change = steps.take(work, free, K[np.ix_(free, free)].astype(np.float32))

    beta = work.beta[free]
    np.testing.assert_array_equal(change, beta - before)
    slope = slope + K[np.ix_(free, free)] @ change
    inside = is_interior(work, work.beta)[free]
    n_met = np.count_nonzero(~inside)
    assert n_met == round(steps.share_met * len(free))
    group = np.searchsorted(work.start, free, side="right") - 1
    for g in np.unique(group[inside]):
        left = slope[inside & (group == g)]
        level = left.mean() if is_bound else 0.0
        np.testing.assert_allclose(left, level, atol=1e-3)


def test_a_step_that_is_stopped_ends_where_it_is() -> None:
    _, work, K = halfway("svr")
    free = free_in(work)
    steps = NewtonSteps(True, lambda: True, NEWTON._replace(values_per_call=0))

    change = steps.take(work, free, K[np.ix_(free, free)].astype(np.float32))

    assert not change.any()


@pytest.mark.parametrize(
    ("machine", "n"),
    [
        ("svc", 400),
        ("svc without intercept", 400),
        ("svr", 400),
        ("svc", 1200),  # rounds by Python: a working set of part of these
        ("svc without intercept", 1200),
    ],
)
def test_large_costs_take_fewer_moves(machine: str, n: int) -> None:
    tuning = TUNING if n <= 400 else TUNING._replace(max_compiled_rounds=0)
    no_steps = tuning._replace(newton=NEWTON._replace(max_variables=0))
    problem, gram = posed(machine, n=n, C=1e3)

    found = solve(problem, gram, Options(method="grow", tuning=tuning))
    without = solve(problem, gram, Options(method="grow", tuning=no_steps))

    assert_solved(Case(machine, problem, gram), found, 1e-3, precision=1e-4)
    assert found.n_iter < 0.5 * without.n_iter


def test_equal_samples_have_a_common_optimum_too() -> None:
    _, work, _ = halfway("svc")
    free, total = free_in(work), work.beta.sum()
    twin = np.zeros((len(free), len(free)), dtype=np.float32) + 1.0

    NewtonSteps(True, lambda: False, NEWTON).take(work, free, twin)

    assert np.isfinite(work.beta).all()
    assert work.beta.sum() == pytest.approx(total, abs=1e-12)


def test_a_step_that_leads_up_is_not_taken() -> None:
    _, work, K = halfway("svc")
    free, before = free_in(work), work.beta.copy()
    steps = NewtonSteps(True, lambda: False, NEWTON)
    wrong = -K[np.ix_(free, free)].astype(np.float32)  # no inverse makes sense of it

    change = steps.take(work, free, wrong)

    assert not change.any()
    assert np.array_equal(work.beta, before)
    steps.effort = 1e300
    assert steps.due(work) is None


def test_steps_wait_until_moves_have_cost_as_much() -> None:
    _, work, _ = halfway("svc")
    steps = NewtonSteps(True, lambda: False, NEWTON)

    assert steps.due(work) is None
    steps.effort = 1e9
    assert np.array_equal(steps.due(work), free_in(work))


# In float64, for sequential minimal optimisation.

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


def in_order(case: Case) -> Case:
    """The same problem with its variables sorted by group, as the solver has them."""
    order = np.argsort(case.problem.group, kind="stable")
    return case._replace(problem=DualProblem(*(part[order] for part in case.problem)))


def kernel_of(case: Case) -> Floats:
    return zoo.matrix_of(case.gram)[np.ix_(case.problem.row, case.problem.row)]


def after_a_step(case: Case, tol: float) -> tuple[Floats, Floats]:
    """Where the solver comes to `tol`, and where the free variables go from there."""
    problem = case.problem
    beta = solve(problem, case.gram, Options(tol=tol, polish=False)).beta
    free = free_variables(problem, beta)
    if len(free) == 0:
        return beta, beta
    point = make_iterate(problem, beta, kernel_of(case) @ beta + problem.linear)
    return beta, common_optimum(problem, case.gram, point, free, 1e-13, NEWTON)


@every_case
def test_the_common_optimum_is_feasible_and_below_where_k_is_positive(
    case: Case,
) -> None:
    case = in_order(case)
    problem, K = case.problem, kernel_of(case)

    beta, better = after_a_step(case, 0.03)

    scale = max(1.0, float(np.abs(better).sum()))
    assert np.all((problem.lower <= better) & (better <= problem.upper))
    for g in range(problem.n_groups):
        inside = problem.group == g
        assert abs((better - beta)[inside].sum()) <= 1e-12 * scale
    before = dual_objective(problem, beta, K @ beta + problem.linear)
    noise = 1e-9 * max(1.0, abs(before))
    after = dual_objective(problem, better, K @ better + problem.linear)
    assert after <= before + noise or not zoo.is_convex(case)


@pytest.mark.parametrize("name", ["c_svc", "svr", "nu_svr", "one_class", "c_svc free"])
def test_the_common_optimum_is_exact_to_rounding(name: str) -> None:
    case = in_order(CASES[NAMES.index(name)])
    problem = case.problem

    _, better = after_a_step(case, 1e-4)

    grad = kernel_of(case) @ better + problem.linear
    assert kkt_violation(problem, better, grad) <= 1e-12


def test_too_many_free_variables_are_left_alone() -> None:
    n = MAX_FREE + 1
    problem = c_svc(np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n))

    assert len(free_variables(problem, 0.5 * problem.upper + 0.5 * problem.lower)) == 0
    assert len(free_variables(problem, problem.upper)) == 0


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if zoo.is_convex(c) and c.problem.n_groups <= MAX_GROUPS],
    ids=lambda c: c.name,
)
def test_smo_ends_at_rounding(case: Case) -> None:
    solution = solve(case.problem, case.gram, Options(tol=1e-3, method="smo"))

    scale = max(1.0, float(np.abs(case.problem.linear).max()))
    largest = np.abs(zoo.matrix_of(case.gram)).max() * np.abs(solution.beta).sum()
    assert solution.violation <= 1e-10 * max(scale, largest)


@pytest.mark.parametrize("seed", range(4))
def test_samples_far_from_the_origin_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = 100.0 + rng.normal(size=(100, 2))  # K is about 1e8, of which 1 matters
    y = np.where(rng.random(100) < 0.5, 1.0, -1.0)
    gram = VectorGram(Polynomial(0.5, 1.0, 2), as_rows(X))

    solution = solve(c_svc(y, np.ones(100)), gram, Options())

    assert solution.status is Status.CONVERGED
    assert solution.n_iter < 100_000
