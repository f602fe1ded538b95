"""Are problems of few variables solved by one call, alone and in stacks?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from problems_zoo import CASES, Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, MatrixGram, Polynomial, VectorGram
from maxmargin.kernels.gram import Gram, RowsGram, gram_block
from maxmargin.kernels.source import memory_source
from maxmargin.problems import DualProblem, c_svc, epsilon_svr, nu_svc
from maxmargin.problems.dual import (
    dual_gap,
    dual_objective,
    group_levels,
    kkt_violation,
)
from maxmargin.solvers import Options, Status, solve
from maxmargin.solvers.in_memory import (
    can_solve,
    fits_in_memory,
    solve_in_memory,
)
from maxmargin.solvers.iterate import solution_at
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.stack import LANES, LEVEL, Stack, stack_of
from maxmargin.solvers.stack_solver import solve_stack
from maxmargin.solvers.tuning import TUNING

FEW = TUNING.exact_below


IN_MEMORY = [
    case
    for case in CASES
    if case.problem.n_groups <= 2
    and not isinstance(case.gram, RowsGram)
    and not (case.problem.n_groups == 1 and not case.problem.linear.any())
]


@pytest.mark.parametrize("case", IN_MEMORY, ids=lambda case: case.name)
def test_answers_of_few_samples_are_exact(case: Case) -> None:
    assert fits_in_memory(case.problem, case.gram, Options(), FEW)
    assert_solved(case, solve(case.problem, case.gram, Options()), 1e-8)


def test_callbacks_and_limits_are_for_solvers_in_slices() -> None:
    assert can_solve(Options())
    assert not can_solve(Options(callback=print))
    assert not can_solve(Options(time_limit=1.0))
    assert not can_solve(Options(max_iter=10))
    assert not can_solve(Options(method="smo"))
    assert can_solve(Options(time_limit=1.0), is_held=True)
    assert not can_solve(Options(max_iter=10), is_held=True)


def posed(n: int, C: float = 1.0, d: int = 4) -> tuple[DualProblem, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n)
    return c_svc(np.where(score > 0.0, 1.0, -1.0), np.full(n, C)), X


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("d", [4, 40])
@pytest.mark.parametrize("n", [FEW, TUNING.max_samples - 1])
def test_more_samples_are_solved_to_the_tolerance(
    n: int, d: int, is_given: bool
) -> None:
    problem, X = posed(n, d=d)
    gram: Gram = VectorGram(RBF(1.0 / d), as_rows(X))
    everything = np.arange(n)
    if is_given:
        gram = MatrixGram(gram_block(gram, everything, everything))

    pace = Pace(Options(tol=1e-4), n)
    reached = solve_in_memory(problem, gram, pace)
    solution = solution_at(problem, reached, 1e-4, pace.n_iter)

    assert solution.status is Status.CONVERGED
    assert_solved(Case("", problem, gram), solution, 1e-4, precision=1e-12)


@pytest.mark.parametrize("n", [LANES - 1, LANES, LANES + 1])
@pytest.mark.parametrize("is_given", [False, True])
def test_variables_may_stand_for_any_rows(is_given: bool, n: int) -> None:
    problem, X = posed(n)
    gram: Gram = VectorGram(RBF(0.5), as_rows(X))
    everything = np.arange(n)
    if is_given:
        gram = MatrixGram(gram_block(gram, everything, everything))
    problem = problem._replace(row=np.roll(everything, 7) // 2 * 2)

    solution = solve(problem, gram, Options())

    assert_solved(Case("", problem, gram), solution, 1e-8)


def test_only_rows_that_are_needed_are_computed() -> None:
    problem, X = posed(FEW)
    gram = VectorGram(RBF(0.1), as_rows(X))

    solution = solve(problem, gram, Options())

    assert np.count_nonzero(solution.beta) <= solution.cache_misses < FEW


def test_tubes_and_warm_starts() -> None:
    _, X = posed(FEW)
    problem = epsilon_svr(X[:, 0] * X[:, 1], np.ones(FEW), 0.1)
    gram = VectorGram(RBF(0.5), as_rows(X))

    cold = solve(problem, gram, Options(tol=1e-6))
    warm = solve(problem._replace(start=cold.beta), gram, Options(tol=1e-6))

    assert_solved(Case("", problem, gram), cold, 1e-6, precision=1e-12)
    assert warm.n_iter <= 2
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)


def test_what_is_left_is_solved_from_where_the_call_ended() -> None:
    problem, X = posed(FEW, 100.0, d=3)
    gram = VectorGram(RBF(0.1), as_rows(X))
    given_up = TUNING.stack._replace(
        moves_before_active_set=1, min_moves_before_active_set=1, max_moves=0
    )
    options = Options(tuning=TUNING._replace(stack=given_up))

    pace = Pace(options, FEW)
    begun = solve_in_memory(problem, gram, pace)
    solution = solve(problem, gram, options)

    assert begun.status is None
    assert 0 < pace.n_iter < solution.n_iter
    assert_solved(Case("", problem, gram), solution, 1e-3, precision=1e-5)


def test_little_memory_is_kept_to() -> None:
    problem, X = posed(FEW)
    gram = VectorGram(Polynomial(1.0, 1.0, 2), as_rows(X))

    enough = Options(cache_bytes=16 * FEW**2)
    less = replace(enough, cache_bytes=enough.cache_bytes - 1)

    assert fits_in_memory(problem, gram, enough, FEW)
    assert not fits_in_memory(problem, gram, less, FEW)
    assert not fits_in_memory(problem, gram, enough, FEW - 1)


def test_values_that_overflow_are_refused() -> None:
    problem, X = posed(20)
    X[3] = 1e200
    gram = VectorGram(Polynomial(1.0, 0.0, 2), as_rows(X))

    reached = solve_in_memory(problem, gram, Pace(Options(), 20))

    assert reached.status is None
    with pytest.raises(ValueError, match="not finite"):
        solve(problem, gram, Options())


def stacked(
    problems: list[DualProblem], rows: list[np.ndarray], K: np.ndarray
) -> Stack:
    together = DualProblem(*map(np.concatenate, zip(*problems, strict=True)))
    end, place = np.cumsum([len(own) for own in rows]), np.concatenate(rows)
    return stack_of(together, place, K.diagonal()[place], end)


@pytest.mark.parametrize("machine", ["c_svc", "nu_svc"])
@pytest.mark.parametrize("is_exact", [False, True])
def test_each_problem_of_a_stack_has_the_answer_it_has_alone(
    machine: str, is_exact: bool
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    gram = VectorGram(RBF(0.5), as_rows(X))
    K = gram_block(gram, np.arange(90), np.arange(90))
    rows = [np.sort(rng.permutation(90)[:n]) for n in (40, 3, 33, 64)]
    problems = []
    for own in rows:
        y = np.where(np.arange(len(own)) < (len(own) + 1) // 2, 1.0, -1.0)
        made = c_svc(y, np.full(len(own), 5.0))
        problems.append(
            made if machine == "c_svc" else nu_svc(y, np.ones(len(own)), 0.4)
        )
    stack, place = stacked(problems, rows, K), np.concatenate(rows)

    found = [
        solve_stack(stack, memory_source(K, place), Options(), is_exact, n_threads)
        for n_threads in (1, 2)
    ]

    assert found[0].has_converged.all()
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()
    first, levels = 0, found[0].levels(stack.n_groups)
    for number, (problem, own) in enumerate(zip(problems, rows, strict=True)):
        beta, grad = found[0].points[:, first : first + len(own)]
        violation, objective, gap = found[0].evidence[:LEVEL, number]
        first += len(own)
        np.testing.assert_allclose(K[np.ix_(own, own)] @ beta + problem.linear, grad)
        level = group_levels(problem, beta, grad)
        np.testing.assert_allclose(levels[number], level)
        assert violation == pytest.approx(kkt_violation(problem, beta, grad), abs=1e-13)
        assert violation <= (1e-9 if is_exact else 1e-3)
        assert objective == pytest.approx(dual_objective(problem, beta, grad))
        bound = dual_gap(problem, beta, grad, level, 1e-3)
        assert gap == pytest.approx(bound, abs=1e-12)
        alone = solve(problem, MatrixGram(K[np.ix_(own, own)]), Options())
        assert objective == pytest.approx(alone.objective, rel=1e-4)


def test_values_too_large_for_an_inverse_are_left_to_smo() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(15, 3)) + 11_370.0  # K is 1e24, and singular to float64
    y = np.where(rng.random(15) < 0.3, 1.0, -1.0)
    gram = VectorGram(Polynomial(0.4, 0.0, 3), as_rows(X))
    problem = c_svc(y, np.full(15, 1.4e-4))

    found = solve(problem, gram, Options(tol=1e-6))

    assert abs(found.beta.sum()) <= 1e-14 * np.abs(found.beta).sum()
    assert found.objective < 0.0
    assert found.grad is not None
    assert found.violation <= 1e-2 * np.abs(found.grad).max()  # rounding
