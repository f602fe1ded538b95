"""Do exact steps lead where moves lead, and is the inverse one?"""

import numpy as np
import pytest

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF
from maxmargin.kernels.cache import hold_all
from maxmargin.kernels.gram import VectorGram, gram_block
from maxmargin.kernels.held import HeldGram
from maxmargin.problems import DualProblem, epsilon_svr
from maxmargin.problems.classification import c_svc, nu_svc
from maxmargin.problems.dual import dual_objective, is_interior, kkt_violation
from maxmargin.solvers import Options, Status
from maxmargin.solvers.active_set import (
    ActiveSetLimits,
    moves_before,
    solve_active_set,
)
from maxmargin.solvers.free_inverse import (
    CONSTANT,
    MAX_FREE,
    VARIABLE,
    FreeSet,
    KernelRows,
    N,
    make_free_set,
)
from maxmargin.solvers.kernel import solve
from maxmargin.solvers.work import Work, gather_work
from maxmargin.typing import FloatMatrix

LEVEL = 1e-6


def rows_of(K: FloatMatrix) -> KernelRows:
    everything = np.arange(len(K))
    return KernelRows(hold_all(K), None, everything, everything)


def solve_all(
    work: Work, K: FloatMatrix, free: FreeSet, n_groups: int
) -> tuple[int, bool]:
    """All variables are members."""
    limits = ActiveSetLimits(LEVEL, 10_000, n_groups)
    members = np.arange(len(work.beta))
    slot = np.arange(len(K))
    return solve_active_set(work, members, K, slot, rows_of(K), free, limits)


def samples(n: int, seed: int) -> tuple[FloatMatrix, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.3 * random.normal(size=n)


def kernel_between(X: FloatMatrix) -> FloatMatrix:
    everybody = np.arange(len(X))
    return gram_block(VectorGram(RBF(0.5), as_rows(X)), everybody, everybody)


def problem_of(target: np.ndarray, C: float, kind: str) -> DualProblem:
    box = np.full(len(target), C)
    if kind == "tube":
        return epsilon_svr(target, box, 0.1)
    return c_svc(np.sign(target), box, has_intercept=kind == "classes")


def test_an_inverse_of_many_variables_is_left_until_moves_cost_as_much() -> None:
    n = 200
    X, target = samples(n, seed=2)
    K, members = np.eye(n) + 1e-3 * kernel_between(X), np.arange(n)
    problem = c_svc(np.sign(target), np.full(n, 10.0), has_intercept=False)
    beta = 0.5 * np.sign(target)  # all of them are free
    grad = K @ beta + problem.linear
    work = gather_work(problem, members, beta, grad, K.diagonal().copy())
    free = make_free_set(n)

    before = moves_before(free, work, members)
    _, is_there = solve_all(work, K, free, 0)

    assert before > 10 * n
    assert is_there
    assert moves_before(free, work, members) == 0, "the inverse is there now"


def test_two_groups_keep_both_sums() -> None:
    X, target = samples(120, seed=6)
    K = kernel_between(X)
    problem = nu_svc(np.sign(target), np.ones(120), 0.3)
    order = np.argsort(problem.group, kind="stable")
    problem, K = (
        problem.reordered(order)._replace(row=np.arange(120)),
        K[order][:, order],
    )
    work, free = work_of(problem, K), make_free_set(len(K))

    steps, is_there = solve_all(work, K, free, 2)

    assert is_there
    assert 0 < steps < 600
    grad = K @ work.beta
    assert kkt_violation(problem, work.beta, grad) <= 2.0 * LEVEL
    for group in range(2):
        inside = problem.group == group
        sums = work.beta[inside].sum(), problem.start[inside].sum()
        assert sums[0] == pytest.approx(sums[1], rel=1e-12)


def work_of(problem: DualProblem, K: FloatMatrix) -> Work:
    everybody = np.arange(len(K))
    grad = K @ problem.start + problem.linear
    return gather_work(problem, everybody, problem.start, grad, K.diagonal())


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("kind", ["classes", "no intercept", "tube"])
def test_steps_end_at_the_optimum_of_all_members(kind: str, C: float) -> None:
    X, target = samples(150, seed=1)
    K = kernel_between(X)
    problem = problem_of(target, C, kind)
    work, free = work_of(problem, K), make_free_set(len(K))
    is_bound = not problem.is_free_of_equalities

    steps, is_there = solve_all(work, K, free, problem.n_groups)

    grad = K @ work.beta + problem.linear
    assert is_there
    assert 0 < steps < 600
    assert kkt_violation(problem, work.beta, grad) <= 2.0 * LEVEL
    assert ((problem.lower <= work.beta) & (work.beta <= problem.upper)).all()
    assert abs(work.beta.sum()) <= 1e-9 * C or not is_bound
    assert np.allclose(-work.gained[0], dual_objective(problem, work.beta, grad))


def test_inverse_is_kept_from_call_to_call() -> None:
    X, target = samples(150, seed=2)
    K = kernel_between(X)
    first, second = (problem_of(target, C, "classes") for C in (1.0, 30.0))
    work, free = work_of(first, K), make_free_set(len(K))
    solve_all(work, K, free, 1)

    later = work_of(second._replace(start=work.beta), K)
    solve_all(later, K, free, 1)

    n = free.counts[N]
    variable, inverse = free.indices[VARIABLE, :n], free.inverse[:n, :n]
    system = K[np.ix_(variable, variable)] + free.level[CONSTANT]
    is_interior = (later.beta > second.lower) & (later.beta < second.upper)
    assert np.array_equal(np.sort(variable), np.flatnonzero(is_interior))
    assert np.abs(inverse @ system - np.eye(n)).max() < 1e-6


def test_more_free_members_than_there_is_room_for_are_left_to_moves() -> None:
    X, target = samples(2 * MAX_FREE, seed=3)
    K = kernel_between(X) + np.eye(len(X))  # of full rank
    problem = problem_of(target, 1.0, "classes")
    start = 0.5 * (problem.lower + problem.upper)
    work, free = work_of(problem._replace(start=start), K), make_free_set(len(K))

    steps, is_there = solve_all(work, K, free, 1)

    assert (steps, is_there) == (0, False)
    assert np.array_equal(work.beta, start)


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("kind", ["classes", "no intercept", "tube"])
def test_singular_kernels_need_no_more_free_variables_than_their_rank(
    kind: str, C: float
) -> None:
    X, target = samples(300, seed=7)
    K = X @ X.T
    problem = problem_of(target, C, kind)
    work, free = work_of(problem, K), make_free_set(len(K))

    steps, is_there = solve_all(work, K, free, problem.n_groups)

    grad = K @ work.beta + problem.linear
    assert is_there
    assert 0 < steps < 3000
    assert kkt_violation(problem, work.beta, grad) <= 2.0 * LEVEL
    assert abs(work.beta.sum()) <= 1e-9 * C or problem.is_free_of_equalities
    assert np.count_nonzero(is_interior(problem, work.beta)) <= 4
    assert np.allclose(-work.gained[0], dual_objective(problem, work.beta, grad))


def test_free_variables_beyond_the_rank_are_moved_to_bounds() -> None:
    X, target = samples(300, seed=8)
    K = X @ X.T
    problem = problem_of(target, 1.0, "tube")
    rng = np.random.default_rng(0)
    start = rng.choice([-0.5, 0.5], 300)
    work = work_of(problem._replace(start=start), K)

    _, is_there = solve_all(work, K, make_free_set(len(K)), 1)

    assert is_there
    assert work.beta.sum() == pytest.approx(start.sum(), abs=1e-10)
    assert np.count_nonzero(is_interior(problem, work.beta)) <= 4


@pytest.mark.parametrize("kind", ["classes", "no intercept", "tube"])
def test_equal_samples_of_either_class_are_certified(kind: str) -> None:
    X, target = samples(120, seed=4)
    X, target = np.concatenate((X, X)), np.concatenate((target, -target[::-1]))
    K = kernel_between(X)
    problem = problem_of(target, 1e3, kind)

    found = solve(problem, HeldGram(K), Options(tol=1e-3))

    grad = K @ found.beta + problem.linear
    assert found.status is Status.CONVERGED
    assert kkt_violation(problem, found.beta, grad) <= 1.0001e-3


def test_large_boxes_need_few_steps() -> None:
    X, target = samples(400, seed=5)
    K = kernel_between(X)
    problem = problem_of(target, 1e5, "classes")

    found = solve(problem, HeldGram(K), Options(tol=1e-3))

    assert found.status is Status.CONVERGED
    assert found.n_iter < 5 * len(target)  # moves alone: more than a hundred times that
