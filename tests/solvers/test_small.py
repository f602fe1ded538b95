"""Are tiny problems solved to the last digit by one call?"""

from __future__ import annotations

import numpy as np
import pytest
from problems_zoo import CASES, Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Linear, MatrixGram, Polynomial, VectorGram
from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.problems import DualProblem, c_svc, epsilon_svr
from maxmargin.solvers import Options, solve
from maxmargin.solvers.small import FEW, MOST, is_tiny, solve_tiny

TINY = [
    case for case in CASES if case.problem.n_groups <= 1 and case.problem.linear.any()
]
# Moves alone would take too long:
ENDLESS = {"svr linear", "svr polynomial", "svr free line"}


@pytest.mark.parametrize("case", TINY, ids=lambda case: case.name)
def test_what_is_found_is_exact(case: Case) -> None:
    ending = solve_tiny(case.problem, case.gram, Options())

    assert ending is not None
    assert ending.has_converged or case.name in ENDLESS
    assert_solved(case, solve(case.problem, case.gram, Options()), 1e-8)


def test_whoever_listens_or_limits_gets_the_long_way() -> None:
    problem = TINY[0].problem

    assert is_tiny(problem, Options())
    assert not is_tiny(problem, Options(callback=print))
    assert not is_tiny(problem, Options(time_limit=1.0))
    assert not is_tiny(problem, Options(max_iter=10))
    assert not is_tiny(problem, Options(polish=False))
    one_class = [case for case in CASES if case.name.startswith("one")]
    assert one_class
    assert not any(is_tiny(case.problem, Options()) for case in one_class)


def test_moves_are_counted() -> None:
    case = TINY[0]

    found = solve(case.problem, case.gram, Options())

    assert 0 < found.n_iter < 30 * len(case.problem.linear)
    assert np.count_nonzero(found.beta) > 0


def posed(n: int, C: float = 1.0, d: int = 4) -> tuple[DualProblem, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n)
    return c_svc(np.where(score > 0.0, 1.0, -1.0), np.full(n, C)), X


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("d", [4, 40])
@pytest.mark.parametrize("n", [FEW, MOST - 1])
def test_larger_ones_are_solved_to_the_tolerance(
    n: int, d: int, is_given: bool
) -> None:
    problem, X = posed(n, d=d)
    gram: Gram = VectorGram(RBF(1.0 / d), as_rows(X))
    everything = np.arange(n)
    if is_given:
        gram = MatrixGram(gram_block(gram, everything, everything))

    ending = solve_tiny(problem, gram, Options(tol=1e-4))

    assert ending is not None and ending.has_converged
    solution = ending.solution(ending.n_moves)
    assert_solved(Case("", problem, gram), solution, 1e-4, precision=1e-12)


@pytest.mark.parametrize("is_given", [False, True])
def test_variables_may_stand_for_any_rows(is_given: bool) -> None:
    problem, X = posed(20)
    gram: Gram = VectorGram(RBF(0.5), as_rows(X))
    everything = np.arange(20)
    if is_given:
        gram = MatrixGram(gram_block(gram, everything, everything))
    problem = problem._replace(row=np.roll(everything, 7) // 2 * 2)

    solution = solve(problem, gram, Options())

    assert_solved(Case("", problem, gram), solution, 1e-8)


def test_only_rows_that_are_needed_are_computed() -> None:
    problem, X = posed(FEW)
    everything = np.arange(FEW)
    gram = VectorGram(RBF(0.1), as_rows(X))
    given = MatrixGram(gram_block(gram, everything, everything))

    some = solve(problem, gram, Options())

    assert np.count_nonzero(some.beta) <= some.cache_misses < FEW
    assert solve(problem, given, Options()).cache_misses == FEW


def test_tubes_and_warm_starts_of_larger_ones() -> None:
    _, X = posed(FEW)
    problem = epsilon_svr(X[:, 0] * X[:, 1], np.ones(FEW), 0.1)
    gram = VectorGram(RBF(0.5), as_rows(X))

    cold = solve(problem, gram, Options(tol=1e-6))
    warm = solve(problem._replace(start=cold.beta), gram, Options(tol=1e-6))

    assert_solved(Case("", problem, gram), cold, 1e-6, precision=1e-12)
    assert warm.n_iter <= 2
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)


def test_who_needs_more_than_moves_goes_on_where_they_ended() -> None:
    problem, X = posed(FEW, 100.0)
    gram = VectorGram(RBF(0.1), as_rows(X))

    ending = solve_tiny(problem, gram, Options())
    solution = solve(problem, gram, Options())

    assert ending is not None and not ending.has_converged
    assert solution.n_iter > ending.n_moves == 4 * FEW
    assert_solved(Case("", problem, gram), solution, 1e-3, precision=1e-5)


def test_larger_ones_of_a_line_or_of_little_memory_take_the_long_way() -> None:
    problem, X = posed(FEW)
    bent, straight = (
        VectorGram(kernel, as_rows(X)) for kernel in (Polynomial(1.0, 1.0, 2), Linear())
    )

    assert solve_tiny(problem, bent, Options()) is not None
    assert solve_tiny(problem, straight, Options()) is None
    assert solve_tiny(problem, bent, Options(cache_bytes=8 * FEW**2 - 1)) is None


def test_values_that_overflow_are_left_to_others() -> None:
    problem, X = posed(20)
    X[3] = 1e200
    gram = VectorGram(Polynomial(1.0, 0.0, 2), as_rows(X))

    ending = solve_tiny(problem, gram, Options())

    assert ending is not None and not ending.has_converged
    with pytest.raises(ValueError, match="not finite"):
        solve(problem, gram, Options())
