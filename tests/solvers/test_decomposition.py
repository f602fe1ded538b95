"""Does decomposition find the optimum? With working sets and memory of all sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from problems_zoo import CASES, Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial, VectorGram
from maxmargin.kernels.arena import Arena, RowCosts
from maxmargin.kernels.gram import gram_block
from maxmargin.problems import (
    DualProblem,
    c_svc,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
)
from maxmargin.solvers import Options, Progress, Status, solve
from maxmargin.solvers.decomposition import decompose
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.tuning import TUNING, Tuning

Floats = npt.NDArray[np.float64]

N = 300
PLENTY = 200 << 20


# Rounds are made by Python, however few variables there are.
BY_PYTHON = TUNING._replace(max_compiled_rounds=0)


def admitting(n_new: int, tuning: Tuning = TUNING) -> Tuning:
    """At least so many variables a round, in compiled rounds and others."""
    return tuning._replace(
        compiled_rounds=tuning.compiled_rounds._replace(min_new=n_new),
        threaded_rounds=tuning.threaded_rounds._replace(min_new=n_new),
    )


FEW_AT_A_TIME = admitting(4, BY_PYTHON)  # so that small problems take many rounds


def draw(n: int = N, d: int = 4, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Rows, labels that cannot be told apart well, and noisy targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, np.where(score > 0.0, 1.0, -1.0), score


def posed(machine: str, C: float = 1.0, n: int = N) -> tuple[DualProblem, Floats]:
    X, y, target = draw(n)
    if machine == "svr":
        return epsilon_svr(target, np.full(n, C), 0.1), X
    if machine == "one-class":
        return one_class(np.ones(n), 0.3), X
    if machine == "nu-svc":
        return nu_svc(y, np.ones(n), 0.3 / C**0.5 if C > 1.0 else 0.5), X
    if machine == "nu-svr":
        return nu_svr(target, np.full(n, C), 0.4), X
    has_intercept = machine == "svc"
    return c_svc(y, np.full(n, C), has_intercept=has_intercept), X


every_machine = pytest.mark.parametrize(
    "machine",
    ["svc", "svc without intercept", "svr", "one-class", "nu-svc", "nu-svr"],
)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_problem_of_the_zoo(case: Case, tol: float) -> None:
    options = Options(tol=tol, method="grow", tuning=FEW_AT_A_TIME)

    solution = solve(case.problem, case.gram, options)

    assert_solved(case, solution, tol, precision=1e-5)


@pytest.mark.parametrize("n_new", [4, 32, None])  # None: all at once
@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@every_machine
def test_the_optimum_of_sequential_minimal_optimisation(
    machine: str,
    C: float,
    n_new: int | None,
    is_compiled: bool,
) -> None:
    tuning = TUNING if is_compiled else BY_PYTHON
    if n_new is not None:
        tuning = admitting(n_new, tuning)
    problem, X = posed(machine, C)
    gram = VectorGram(RBF(0.5), as_rows(X))

    found = solve(problem, gram, Options(tol=1e-4, method="grow", tuning=tuning))
    other = solve(problem, gram, Options(tol=1e-4, method="smo"))

    assert_solved(Case(machine, problem, gram), found, 1e-4, precision=1e-6)
    slack = 1e-4 * float(np.abs(found.beta).sum()) + 1e-6 * abs(other.objective)
    assert abs(found.objective - other.objective) <= slack


@pytest.mark.parametrize("machine", ["svc", "svr", "nu-svr"])
def test_all_variables_may_become_members(machine: str) -> None:
    tuning = BY_PYTHON._replace(max_samples=10, max_kept_samples=10)
    options = Options(tol=1e-4, tuning=tuning)
    problem, X = posed(machine, 100.0)
    gram = VectorGram(RBF(50.0), as_rows(X))  # most samples are support vectors

    n = len(problem.linear)
    found = decompose(problem, gram, Pace(options, n))

    assert np.count_nonzero(found.beta) > 0.8 * N
    assert found.status is Status.CONVERGED and found.violation <= 1e-4


@pytest.mark.parametrize(
    "kernel_of", [Linear(), Polynomial(0.3, 1.0, 2), RBF(2000.0), Laplacian(0.5)]
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_other_kernels_and_sparse_rows(kernel_of: Any, is_sparse: bool) -> None:
    problem, X = posed("svc", 0.5)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    gram = VectorGram(kernel_of, as_rows(sp.csr_matrix(X) if is_sparse else X))

    solution = solve(problem, gram, Options(method="grow", tuning=FEW_AT_A_TIME))

    assert_solved(Case("", problem, gram), solution, 1e-3, precision=1e-6)


@pytest.mark.parametrize("n_bytes", [1, 4 * N * 10, 4 * N * 100, PLENTY])
def test_little_memory_is_enough(n_bytes: int) -> None:
    problem, X = posed("svc", 10.0)
    gram = VectorGram(RBF(0.5), as_rows(X))

    options = Options(
        method="grow", cache_bytes=n_bytes, tuning=admitting(16, BY_PYTHON)
    )

    solution = solve(problem, gram, options)

    assert_solved(Case("", problem, gram), solution, 1e-3, precision=1e-6)


@every_machine
def test_threads_change_nothing(machine: str) -> None:
    problem, X = posed(machine, n=700)
    found = [
        solve(problem, VectorGram(RBF(0.5), as_rows(X), k), Options(method="grow"))
        for k in (1, 2, 3)
    ]

    for other in found[1:]:
        assert np.array_equal(found[0].beta, other.beta)
        assert found[0].n_iter == other.n_iter
        assert found[0].objective == other.objective


def test_a_start_is_used() -> None:
    problem, X = posed("svc")
    gram = VectorGram(RBF(0.5), as_rows(X))
    cold = solve(problem, gram, Options(method="grow", tol=1e-4, tuning=BY_PYTHON))

    warm = solve(
        problem._replace(start=cold.beta),
        gram,
        Options(method="grow", tuning=BY_PYTHON),
    )

    assert warm.n_iter == 0
    assert np.array_equal(warm.beta, cold.beta)


def test_limits_are_kept_and_told() -> None:
    problem, X = posed("svc", 100.0)
    gram = VectorGram(RBF(0.5), as_rows(X))

    options = Options(method="grow", tuning=BY_PYTHON)
    by_moves = solve(problem, gram, replace(options, max_iter=50))
    by_time = solve(problem, gram, replace(options, time_limit=0.0))

    assert by_moves.status is Status.MAX_ITER
    assert by_moves.n_iter == 50
    assert by_time.status is Status.TIME_LIMIT
    for found in (by_moves, by_time):
        grad = gram_block(gram, np.arange(N), np.arange(N)) @ found.beta
        grad += problem.linear
        right = np.where(found.beta < problem.upper, grad, np.inf).min()
        left = np.where(found.beta > problem.lower, grad, -np.inf).max()
        assert found.violation == pytest.approx(left - right, abs=1e-9)
        assert found.violation > 1e-3


def test_the_callback_hears_of_the_end() -> None:
    told: list[Progress] = []
    problem, X = posed("svc")
    gram = VectorGram(RBF(0.5), as_rows(X))

    found = solve(problem, gram, Options(method="grow", callback=told.append))

    assert len(told) >= 2
    assert told[-1].n_iter == found.n_iter
    assert told[-1].violation == found.violation
    assert told[-1].cache_misses > 0


def test_large_problems_are_decomposed_by_default() -> None:
    problem, X = posed("svc", n=TUNING.max_samples + 1)
    gram = VectorGram(RBF(0.5), as_rows(X))
    later = Options(tuning=TUNING._replace(min_decomposed=2000))

    by_rounds = solve(problem, gram, Options())
    by_pairs = solve(problem, gram, later)

    assert np.array_equal(by_pairs.beta, solve_as("smo", problem, gram).beta)
    assert np.array_equal(by_rounds.beta, solve_as("grow", problem, gram).beta)
    assert not np.array_equal(by_pairs.beta, by_rounds.beta)


def solve_as(method: str, problem: DualProblem, gram: VectorGram) -> Any:
    return solve(problem, gram, Options(method=method))


# Rows of K.


@pytest.mark.parametrize("n_rows", [0, 5, 40, 60])
@pytest.mark.parametrize("kernel_of", [RBF(0.5), Laplacian(0.5)])
def test_sums_of_rows_do_not_depend_on_what_is_kept(
    kernel_of: Any, n_rows: int
) -> None:
    _, X = posed("svc", n=60)
    gram = VectorGram(kernel_of, as_rows(X))
    K = gram_block(gram, np.arange(60), np.arange(60))
    copies = X.size * 4 if isinstance(kernel_of, RBF) else 0
    arena = Arena(gram, copies + 4 * 60 * n_rows, 1, RowCosts(narrow=0.0))
    rng = np.random.default_rng(0)
    total, expected = np.zeros(60), np.zeros(60)

    for _ in range(6):
        rows = rng.permutation(60)[:25]
        weight = rng.normal(size=25)
        arena.add_rows(rows, weight, total)
        expected += weight @ K[rows]

    np.testing.assert_allclose(total, expected, atol=1e-5)
    assert np.count_nonzero(arena.owner >= 0) <= n_rows
    assert (arena.n_hits > 0) == (n_rows > 0)


def test_narrow_rows_are_never_kept() -> None:
    _, X = posed("svc", n=60)
    arena = Arena(VectorGram(RBF(0.5), as_rows(X)), PLENTY, 1)

    for _ in range(3):
        arena.add_rows(np.arange(10), np.ones(10), np.zeros(60))

    assert arena.n_computed == 30
    assert arena.rows.size == 0
