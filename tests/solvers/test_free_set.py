"""Do free variables find their common optimum, whatever bounds they meet?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from problems_zoo import Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, VectorGram
from maxmargin.kernels.gram import gram_block
from maxmargin.problems import DualProblem, c_svc, epsilon_svr, nu_svc, one_class
from maxmargin.solvers import Options, free_set, solve
from maxmargin.solvers.free_set import Leaps, common_optimum, forget, free_in
from maxmargin.solvers.tuning import TUNING
from maxmargin.solvers.work import Work, gather_work

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


@every_machine
def test_a_leap_goes_down_and_stays_within_all_bounds(machine: str) -> None:
    problem, work, K = halfway(machine)
    linear, before = work.grad - K @ work.beta, work.beta.copy()
    free = free_in(work)
    is_bound = not problem.is_free_of_equalities
    leaps = Leaps(is_bound, lambda: False)

    change = leaps.leap(work, free, K[np.ix_(free, free)].astype(np.float32))

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
def test_who_is_left_is_at_rest(machine: str) -> None:
    problem, work, K = halfway(machine)
    free = free_in(work)
    is_bound = not problem.is_free_of_equalities
    block = K[np.ix_(free, free)].astype(np.float32)
    slope, start = work.grad[free] + work.rise[free], work.beta[free]

    beta, n_met = common_optimum(work, free, block, is_bound, lambda: False)

    slope = slope + K[np.ix_(free, free)] @ (beta - start)
    inside = (beta > work.lower[free]) & (beta < work.upper[free])
    inside &= (beta != 0.0) | (work.kink[free] == 0.0)
    assert np.count_nonzero(~inside) == n_met
    group = np.searchsorted(work.start, free, side="right") - 1
    for g in np.unique(group[inside]):
        left = slope[inside & (group == g)]
        level = left.mean() if is_bound else 0.0
        np.testing.assert_allclose(left, level, atol=1e-3)


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
def test_large_costs_take_fewer_moves(
    machine: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = TUNING if n <= 400 else TUNING._replace(max_compiled_rounds=0)
    options = Options(method="grow", tuning=tuning)
    problem, gram = posed(machine, n=n, C=1e3)

    found = solve(problem, gram, options)
    monkeypatch.setattr(free_set, "MOST_FREE", 0)
    without = solve(problem, gram, options)

    assert_solved(Case(machine, problem, gram), found, 1e-3, precision=1e-4)
    assert found.n_iter < 0.5 * without.n_iter


def test_equal_samples_have_a_common_optimum_too() -> None:
    _, work, K = halfway("svc")
    free = free_in(work)
    twin = np.zeros((len(free), len(free)), dtype=np.float32) + 1.0

    beta, _ = common_optimum(work, free, twin, True, lambda: False)

    assert np.isfinite(beta).all()
    assert K.shape == (N, N)


def test_a_leap_that_leads_up_is_not_taken() -> None:
    _, work, K = halfway("svc")
    free, before = free_in(work), work.beta.copy()
    leaps = Leaps(True, lambda: False)
    wrong = -K[np.ix_(free, free)].astype(np.float32)  # no inverse makes sense of it

    change = leaps.leap(work, free, wrong)

    assert not change.any()
    assert np.array_equal(work.beta, before)
    leaps.effort = 1e300
    assert leaps.who(work) is None


def test_leaps_wait_until_moves_have_cost_as_much() -> None:
    _, work, _ = halfway("svc")
    leaps = Leaps(True, lambda: False)

    assert leaps.who(work) is None
    leaps.effort = 1e9
    assert np.array_equal(leaps.who(work), free_in(work))


@pytest.mark.nojit
@pytest.mark.boundscheck
@pytest.mark.parametrize("n", [2, 5, 40])
def test_the_inverse_forgets_one(n: int) -> None:
    factor = np.random.default_rng(n).normal(size=(n, n))
    A = factor @ factor.T + np.eye(n)
    inverse = np.linalg.inv(A)

    forget(inverse, inverse[0].copy(), inverse[0, 0])

    np.testing.assert_allclose(inverse[1:, 1:], np.linalg.inv(A[1:, 1:]), atol=1e-9)
