"""Is a problem in other boxes solved as if it had never had its own?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.data.rows import as_rows
from maxmargin.kernels.arena import Arena
from maxmargin.kernels.functions import RBF
from maxmargin.kernels.gram import VectorGram, gram_block
from maxmargin.problems import DualProblem, epsilon_svr, one_class
from maxmargin.problems.classification import c_svc
from maxmargin.problems.dual import kkt_violation
from maxmargin.solvers import Options, Status, solve
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.refits import WarmRefitter
from maxmargin.solvers.result import PairRule
from maxmargin.solvers.tuning import TUNING, Tuning
from maxmargin.solvers.working_set import N as N_MEMBERS

Floats = npt.NDArray[np.float64]
N, TOL = 400, 1e-4
ALL_SAMPLES = np.arange(N)
NAMES = ["c_svc", "c_svc without intercept", "epsilon_svr", "one_class"]


def draw(C: float = 2.0) -> tuple[VectorGram, dict[str, DualProblem]]:
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 5))
    z = X[:, 0] + 0.8 * random.normal(size=N)
    y, box = np.where(z > 0, 1.0, -1.0), C * random.uniform(0.5, 2.0, N)
    problems = {
        "c_svc": c_svc(y, box),
        "c_svc without intercept": c_svc(y, box, has_intercept=False),
        "epsilon_svr": epsilon_svr(z, box, 0.1),
        "one_class": one_class(box, 0.2),
    }
    return VectorGram(RBF(0.3), as_rows(X)), problems


def admitting(n: int) -> Tuning:
    sizes = TUNING.rounds_on_kept._replace(min_new=n, max_first=n, max_new=n)
    return TUNING._replace(rounds_on_kept=sizes)


def looking_after(n_moves: int) -> Tuning:
    newton = TUNING.newton._replace(moves_before_look=n_moves)
    return TUNING._replace(newton=newton)


def solved(
    problem: DualProblem, gram: VectorGram, tuning: Tuning = TUNING
) -> WarmRefitter:
    found = solve(problem, gram, Options(tol=TOL))
    assert found.grad is not None
    return WarmRefitter(problem, found.beta, found.grad, Arena(gram, 0, 1), tuning)


def without(problem: DualProblem, fold: npt.NDArray[np.intp]) -> DualProblem:
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[fold] = upper[fold] = 0.0
    total = problem.start.sum()
    if total > 0.0:
        return one_class(upper, total / problem.upper.sum())
    return problem._replace(lower=lower, upper=upper)


def violation(problem: DualProblem, gram: VectorGram, beta: Floats) -> float:
    """In float64, from nothing but the point, which has to be feasible."""
    assert ((beta >= problem.lower) & (beta <= problem.upper)).all()
    if not problem.is_free_of_equalities:
        assert beta.sum() == pytest.approx(problem.start.sum(), abs=1e-10)
    K = gram_block(gram, ALL_SAMPLES, ALL_SAMPLES)
    return kkt_violation(problem, beta, K @ beta + problem.linear)


@pytest.mark.parametrize("working_set", PairRule)
@pytest.mark.parametrize("name", NAMES)
def test_every_fold_is_solved(name: str, working_set: PairRule) -> None:
    gram, problems = draw()
    refit = solved(problems[name], gram)
    options = Options(tol=TOL, working_set=working_set)

    for k in range(4):
        problem = without(problems[name], ALL_SAMPLES[k::4])
        pace = Pace(options, N)
        found = refit.solve(problem, pace)
        assert found.status is Status.CONVERGED
        assert violation(problem, gram, found.beta) < 1.05 * TOL
        assert pace.n_iter > 0


@pytest.mark.parametrize("name", NAMES)
def test_violators_are_admitted(name: str) -> None:
    gram, problems = draw()
    refit = solved(problems[name], gram, admitting(4))
    n_free, n_support = int(refit.working_set.counts[N_MEMBERS]), refit.n_kept

    found = [
        refit.solve(without(problems[name], fold), Pace(Options(tol=TOL), N))
        for fold in (ALL_SAMPLES[:150], ALL_SAMPLES[150:200])
    ]

    n_members = int(refit.working_set.counts[N_MEMBERS])
    assert all(one.status is Status.CONVERGED for one in found)
    assert n_free < n_members
    assert n_support < refit.n_kept < N
    members = refit.working_set.members[:n_members]
    assert len(np.unique(members)) == n_members
    K = gram_block(gram, ALL_SAMPLES, ALL_SAMPLES)
    square = refit.working_set.square.rows[:n_members, :n_members]
    rows, place = refit.kept
    assert np.abs(square - K[np.ix_(members, members)]).max() < 1e-6
    assert np.abs(rows[place[members]] - K[members]).max() < 1e-6


def test_no_variable_has_to_be_free() -> None:
    gram, problems = draw(C=1e-3)
    problem = problems["c_svc without intercept"]
    refit = solved(problem, gram)

    found = refit.solve(without(problem, ALL_SAMPLES[::5]), Pace(Options(tol=TOL), N))

    assert found.status is Status.CONVERGED
    assert (found.beta[::5] == 0.0).all()
    assert found.beta.any()


def test_many_moves_give_way_to_newton_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    gram, problems = draw(C=1e4)
    steps, take = [], NewtonSteps.take

    def counted(*given: Any) -> Floats:
        steps.append(take(*given))
        return steps[-1]

    refit = solved(problems["c_svc"], gram, looking_after(1))
    monkeypatch.setattr(NewtonSteps, "take", counted)
    problem = without(problems["c_svc"], ALL_SAMPLES[::5])

    found = refit.solve(problem, Pace(Options(tol=1e-3), N))

    assert found.status is Status.CONVERGED
    assert violation(problem, gram, found.beta) < 2e-3
    assert any(change.any() for change in steps)


def test_limits_hold() -> None:
    gram, problems = draw()
    refit = solved(problems["c_svc"], gram)
    problem = without(problems["c_svc"], ALL_SAMPLES[::5])

    pace = Pace(Options(tol=TOL, max_iter=5), N)
    found = refit.solve(problem, pace)

    assert found.status is Status.MAX_ITER
    assert pace.n_iter == 5
    assert violation(problem, gram, found.beta) > TOL
    refit = solved(problems["c_svc"], gram, looking_after(0))
    late = Pace(Options(tol=TOL, time_limit=1e-9, started=0.0), N)
    assert refit.solve(problem, late).status is Status.TIME_LIMIT


def test_a_sum_without_room_is_left_to_others() -> None:
    """Support vectors cannot take more than their boxes hold."""
    gram, problems = draw()
    refit = solved(problems["one_class"], gram)
    problem = problems["one_class"]._replace(start=problems["one_class"].upper)

    found = refit.solve(problem, Pace(Options(tol=TOL), N))

    assert found.status is None
