"""Does a working set that grows find the optimum? With sets and memory of all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from problems_zoo import CASES, Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial, VectorGram
from maxmargin.kernels import arena as arenas
from maxmargin.kernels.arena import Arena
from maxmargin.kernels.gram import gram_block
from maxmargin.problems import (
    DualProblem,
    c_svc,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
)
from maxmargin.solvers import Options, Progress, Status, grow, kernel, rounds, solve
from maxmargin.solvers import square as squares
from maxmargin.solvers.square import Square
from maxmargin.solvers.tuning import TUNING

Floats = npt.NDArray[np.float64]

N = 300
PLENTY = 200 << 20


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are made by Python, however few variables there are."""
    monkeypatch.setattr(grow, "QUICK", 0)


@pytest.fixture
def few_at_a_time(growing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of four, so that small problems take many."""
    monkeypatch.setattr(grow, "FEWEST_NEW", 4)


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


@pytest.mark.usefixtures("few_at_a_time")
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_problem_of_the_zoo(case: Case, tol: float) -> None:
    solution = solve(case.problem, case.gram, Options(tol=tol, method="grow"))

    assert_solved(case, solution, tol, precision=1e-5)


@pytest.mark.parametrize("n_new", [4, 32, None])  # None: all at once
@pytest.mark.parametrize("is_quick", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@every_machine
def test_the_optimum_of_sequential_minimal_optimisation(
    machine: str,
    C: float,
    n_new: int | None,
    is_quick: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_quick:
        monkeypatch.setattr(grow, "QUICK", 0)
    if n_new is not None:
        monkeypatch.setattr(grow, "FEWEST_NEW", n_new)
        monkeypatch.setattr(rounds, "FEWEST_NEW", n_new)
    problem, X = posed(machine, C)
    gram = VectorGram(RBF(0.5), as_rows(X))

    found = solve(problem, gram, Options(tol=1e-4, method="grow"))
    other = solve(problem, gram, Options(tol=1e-4, method="smo"))

    assert_solved(Case(machine, problem, gram), found, 1e-4, precision=1e-6)
    slack = 1e-4 * float(np.abs(found.beta).sum()) + 1e-6 * abs(other.objective)
    assert abs(found.objective - other.objective) <= slack


@pytest.mark.usefixtures("few_at_a_time")
@pytest.mark.parametrize(
    "kernel_of", [Linear(), Polynomial(0.3, 1.0, 2), RBF(2000.0), Laplacian(0.5)]
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_other_kernels_and_sparse_rows(kernel_of: Any, is_sparse: bool) -> None:
    problem, X = posed("svc", 0.5)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    gram = VectorGram(kernel_of, as_rows(sp.csr_matrix(X) if is_sparse else X))

    solution = solve(problem, gram, Options(method="grow"))

    assert_solved(Case("", problem, gram), solution, 1e-3, precision=1e-6)


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("n_bytes", [1, 4 * N * 10, 4 * N * 100, PLENTY])
def test_little_memory_is_enough(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grow, "FEWEST_NEW", 16)
    problem, X = posed("svc", 10.0)
    gram = VectorGram(RBF(0.5), as_rows(X))

    solution = solve(problem, gram, Options(method="grow", cache_bytes=n_bytes))

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


@pytest.mark.usefixtures("growing")
def test_a_start_is_used() -> None:
    problem, X = posed("svc")
    gram = VectorGram(RBF(0.5), as_rows(X))
    cold = solve(problem, gram, Options(method="grow", tol=1e-4))

    warm = solve(problem._replace(start=cold.beta), gram, Options(method="grow"))

    assert warm.n_iter == 0
    assert np.array_equal(warm.beta, cold.beta)


@pytest.mark.usefixtures("growing")
def test_limits_are_kept_and_told() -> None:
    problem, X = posed("svc", 100.0)
    gram = VectorGram(RBF(0.5), as_rows(X))

    by_moves = solve(problem, gram, Options(method="grow", max_iter=50))
    by_time = solve(problem, gram, Options(method="grow", time_limit=0.0))

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


def test_large_problems_grow_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, X = posed("svc", n=TUNING.max_samples + 1)
    gram = VectorGram(RBF(0.5), as_rows(X))
    by_growing = solve(problem, gram, Options())
    monkeypatch.setattr(kernel, "MANY", 2000)

    by_pairs = solve(problem, gram, Options())

    assert np.array_equal(by_pairs.beta, solve_as("smo", problem, gram).beta)
    assert np.array_equal(by_growing.beta, solve_as("grow", problem, gram).beta)
    assert not np.array_equal(by_pairs.beta, by_growing.beta)


def solve_as(method: str, problem: DualProblem, gram: VectorGram) -> Any:
    return solve(problem, gram, Options(method=method))


# What the working set knows.


@pytest.mark.parametrize("side", [30, 60])
@pytest.mark.parametrize("kernel_of", [RBF(0.5), Laplacian(0.5)])
def test_members_come_and_go(
    kernel_of: Any, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(squares, "SPARE_SIDE", side)
    _, X = posed("svc", n=60)
    gram = VectorGram(kernel_of, as_rows(X))
    arena, square, row = Arena(gram, PLENTY, 1), Square(60), np.arange(60)
    K = gram_block(gram, row, row)
    rng = np.random.default_rng(0)

    for share in (0.0, 0.1, 0.5, 0.05, 0.9):
        square.keep(rng.random(len(square)) >= share)
        others = np.setdiff1d(row, square.members)
        square.add(rng.permutation(others)[:20], row, arena)

        members = square.members
        assert len(np.unique(members)) == len(members)
        values = square.rows[:, : len(members)]
        np.testing.assert_allclose(values, K[np.ix_(members, members)], atol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 5, 40, 60])
@pytest.mark.parametrize("kernel_of", [RBF(0.5), Laplacian(0.5)])
def test_sums_of_rows_do_not_depend_on_what_is_kept(
    kernel_of: Any, n_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arenas, "NARROW", 0)
    _, X = posed("svc", n=60)
    gram = VectorGram(kernel_of, as_rows(X))
    K = gram_block(gram, np.arange(60), np.arange(60))
    copies = X.size * 4 if isinstance(kernel_of, RBF) else 0
    arena = Arena(gram, copies + 4 * 60 * n_rows, 1)
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
