"""Does the joint machine reach the optimum, and prove it, whatever the samples are?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import sklearn.datasets

from maxmargin._threads import one_blas_thread
from maxmargin.data.design import Design
from maxmargin.data.lanes import lane_zeros
from maxmargin.problems.crammer_singer import CrammerSingerProblem
from maxmargin.solvers.crammer_singer import solve_crammer_singer
from maxmargin.solvers.crammer_singer_newton import finish
from maxmargin.solvers.result import Options, Progress, Solution, Status
from maxmargin.solvers.watch import Watch

Floats = npt.NDArray[np.float64]

TOL = 1e-6


def pose(X: Any, code: Any, C: Any = 1.0, bias: float = 1.0) -> CrammerSingerProblem:
    """A problem with one cost, or one for each sample."""
    code = np.asarray(code)
    cost = np.broadcast_to(np.asarray(C, dtype=float), code.shape).copy()
    return CrammerSingerProblem(Design(X, bias), code, cost, int(code.max()) + 1)


def solve(problem: CrammerSingerProblem, start: Any = None, **options: Any) -> Solution:
    """With BLAS on one thread, as estimators have it."""
    with one_blas_thread():
        return solve_crammer_singer(problem, Options(**{"tol": TOL} | options), start)


def plain(problem: CrammerSingerProblem) -> Floats:
    """X with the constant column, as one dense matrix."""
    design = problem.design
    X = design.X.toarray() if design.is_sparse else design.X
    X = X.astype(np.float64)
    if design.bias == 0.0:
        return X
    return np.column_stack([X, np.full(len(X), design.bias)])


def primal_of(problem: CrammerSingerProblem, W: Floats) -> float:
    """½|W|² and what the samples miss by, with a row of W for every class."""
    own = np.arange(len(problem.code)), problem.code
    z = plain(problem) @ W.T
    miss = 1.0 + z - z[own][:, None]
    miss[own] = 0.0
    return 0.5 * float((W**2).sum()) + float(problem.cost @ miss.max(axis=1))


def assert_certified(
    problem: CrammerSingerProblem, found: Solution, tol: float = TOL
) -> None:
    """All that a solution claims follows from its alpha, by NumPy alone."""
    n, k = len(problem.code), problem.n_classes
    own = np.arange(n), problem.code
    alpha = found.beta.reshape(n, k)
    upper = np.zeros((n, k))
    upper[own] = problem.cost
    other = np.ones((n, k))
    other[own] = 0.0
    largest = max(1.0, float(problem.cost.max()))
    X = plain(problem)
    W = alpha.T @ X
    primal = primal_of(problem, W)
    dual = -0.5 * float((W**2).sum()) - float((other * alpha).sum())
    slope = X @ W.T + other
    least = np.where(alpha < upper, slope, np.inf).min(axis=1)
    violation = float((slope.max(axis=1) - least).max())

    assert found.status is Status.CONVERGED
    assert (alpha <= upper).all()
    assert np.abs(alpha.sum(axis=1)).max() <= 1e-13 * largest
    assert found.weight is not None
    assert np.allclose(found.weight.reshape(k, -1), W, rtol=1e-9, atol=1e-10)
    rounding = 1e-9 * primal + 1e-13 * float(problem.cost.sum())  # as the weights
    assert found.objective == pytest.approx(primal, abs=rounding)
    assert found.gap == pytest.approx(primal - dual, abs=rounding)
    assert found.gap <= tol * primal
    assert max(found.violation, violation) <= tol + 1e-9


def blobs(
    n: int = 120, d: int = 5, k: int = 4, seed: int = 0
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Overlapping clouds, one for each class."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % k
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(k, d))[code], code


def digits(rows: int = 400) -> tuple[Floats, npt.NDArray[np.intp]]:
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    return np.ascontiguousarray(X[:rows] / 16.0), y[:rows]


# ------------------------------------------------------------------------- the optimum
@pytest.mark.boundscheck
@pytest.mark.parametrize("bias", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("k", [2, 3, 9])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_solution_is_certified(bias: float, k: int, is_sparse: bool) -> None:
    X, code = blobs(k=k)
    problem = pose(sp.csr_matrix(X) if is_sparse else X, code, bias=bias)

    found = solve(problem)

    assert_certified(problem, found)


def test_many_classes() -> None:
    rng = np.random.default_rng(0)
    code = np.arange(840) % 105
    X = sp.random(840, 600, density=0.03, random_state=0, format="csr")
    X = sp.csr_matrix(X + sp.csr_matrix(rng.random((105, 600)) < 0.01)[code])
    problem = pose(X, code, bias=0.0)

    found = solve(problem)

    assert_certified(problem, found)


@pytest.mark.parametrize("C", [1e-4, 1e3, 1e6])
def test_small_and_large_costs(C: float) -> None:
    X, code = digits()
    problem = pose(X, code, C)

    found = solve(problem)

    assert_certified(problem, found)


def test_two_classes_are_one_hyperplane() -> None:
    X, code = blobs(k=2)

    found = solve(pose(X, code))

    assert found.weight is not None
    first, second = found.weight.reshape(2, -1)
    assert np.allclose(first, -second, atol=1e-9)


def test_features_of_any_scale_are_no_obstacle() -> None:
    X, code = blobs(n=300, d=6, k=5)
    problem = pose(np.ascontiguousarray(100.0 + X * [1, 10, 100, 1000, 1, 0.1]), code)

    found = solve(problem, tol=1e-5)

    assert_certified(problem, found, tol=1e-5)


def test_newton_arrives_where_sweeps_do() -> None:
    X, code = digits(200)
    problem = pose(X, code)
    swept = solve(problem)

    with one_blas_thread():
        found = finish(problem, lane_zeros(200, 10), TOL, Watch(Options()))

    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(swept.objective, rel=2 * TOL)


# --------------------------------------------------------------------- unusual samples
def test_samples_without_features() -> None:
    X, code = blobs()
    X[::7] = 0.0
    problem = pose(X, code, bias=0.0)

    found = solve(problem)

    assert_certified(problem, found)


def test_nothing_but_zeros() -> None:
    problem = pose(np.zeros((4, 3)), [0, 1, 2, 0], bias=0.0)

    found = solve(problem)

    assert_certified(problem, found)
    assert found.objective == 4.0


def test_one_row() -> None:
    problem = CrammerSingerProblem(
        Design(np.array([[1.0, 2.0]])), np.array([1]), np.array([1.0]), 3
    )

    found = solve(problem)

    assert_certified(problem, found)


def test_duplicates_and_contradictions() -> None:
    X, code = blobs(n=40)
    X, code = np.tile(X, (5, 1)), np.concatenate([code, code, code, code[::-1], code])
    problem = pose(X, code)

    found = solve(problem)

    assert_certified(problem, found)


def test_tiny_samples_beside_large_ones() -> None:
    X, code = blobs()
    X[::3] *= 1e-9
    X[1::3] *= 1e3
    problem = pose(X, code, bias=0.0)

    found = solve(problem, tol=1e-4)

    assert_certified(problem, found, tol=1e-4)


def test_weights_equal_repetition() -> None:
    X, code = blobs(n=60)
    times = np.arange(60) % 3 + 1

    weighted = solve(pose(X, code, times))
    repeated = solve(pose(np.repeat(X, times, axis=0), np.repeat(code, times)))

    assert weighted.objective == pytest.approx(repeated.objective, rel=2 * TOL)
    assert np.allclose(weighted.weight, repeated.weight, atol=1e-3)


def test_samples_without_cost_are_as_good_as_absent() -> None:
    X, code = blobs(n=60)
    is_there = np.arange(60) % 3 > 0

    some = solve(pose(X, code, is_there.astype(float)))
    without = solve(pose(X[is_there], code[is_there]))

    assert some.status is Status.CONVERGED
    assert some.objective == pytest.approx(without.objective, rel=2 * TOL)
    assert not some.beta.reshape(60, -1)[~is_there].any()


# ------------------------------------------------------------------ layouts and threads
def test_float32_and_long_indices_change_nothing() -> None:
    X, code = digits(150)  # sixteenths: exact in float32; but other machine code runs
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = map(np.int64, (wide.indices, wide.indptr))

    dense = solve(pose(X, code))
    single = solve(pose(X.astype(np.float32), code))
    sparse = solve(pose(sp.csr_matrix(X), code))
    long = solve(pose(wide, code))

    near = 2.0 * np.sqrt(2.0 * TOL * dense.objective)  # what the gaps leave open
    for other in single, sparse, long:
        assert other.status is Status.CONVERGED
        assert other.objective == pytest.approx(dense.objective, rel=2 * TOL)
        assert other.weight == pytest.approx(dense.weight, abs=near)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_threads_change_no_byte(scale: float) -> None:
    X, code = blobs(n=30_000, d=8, k=3)
    X *= scale

    one, two = (
        solve(pose(X, code)._replace(design=Design(X, 1.0, n)), tol=1e-2)
        for n in (1, 2)
    )

    assert np.array_equal(one.beta, two.beta)
    assert np.array_equal(one.weight, two.weight)
    assert (one.gap, one.violation, one.n_iter) == (two.gap, two.violation, two.n_iter)


def test_seed_decides_everything() -> None:
    X, code = digits(200)

    first, again, other = (solve(pose(X, code), seed=seed) for seed in (1, 1, 2))

    assert np.array_equal(first.beta, again.beta)
    assert not np.array_equal(first.beta, other.beta)
    assert first.objective == pytest.approx(other.objective, rel=2 * TOL)


# ------------------------------------------------------------------- starts and endings
def test_warm_start_is_there_at_once() -> None:
    X, code = digits()
    problem = pose(X, code)
    cold = solve(problem)

    warm = solve(problem, start=cold.beta)

    assert_certified(problem, warm)
    assert warm.n_iter <= 3 < cold.n_iter


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_start_from_another_cost(C: float) -> None:
    X, code = digits()
    start = solve(pose(X, code)).beta
    problem = pose(X, code, C)

    found = solve(problem, start=start)

    assert_certified(problem, found)


@pytest.mark.parametrize("value", [np.nan, 1e300, -7.0])
def test_start_may_be_nonsense(value: float) -> None:
    X, code = blobs()
    problem = pose(X, code)

    found = solve(problem, start=np.full(len(code) * 4, value))

    assert_certified(problem, found)


@pytest.mark.parametrize("max_iter", [0, 1, 4])
def test_limit_of_sweeps(max_iter: int) -> None:
    X, code = digits()

    found = solve(pose(X, code), max_iter=max_iter)

    assert found.status is Status.MAX_ITER
    assert found.n_iter == max_iter
    assert found.gap > 0.0
    assert found.weight is not None
    assert found.objective == pytest.approx(
        primal_of(pose(X, code), found.weight.reshape(10, -1))
    )


def test_limit_of_time() -> None:
    X, code = digits()

    found = solve(pose(X, code), time_limit=0.0)

    assert found.status is Status.TIME_LIMIT


def test_tolerance_beyond_rounding_is_named() -> None:
    X, code = digits(100)

    found = solve(pose(X, code), tol=0.0)

    assert found.status is Status.PRECISION_LIMIT
    assert found.gap <= 1e-11 * found.objective


def test_callback_is_told() -> None:
    X, code = digits()
    told: list[Progress] = []

    found = solve(pose(X, code), callback=told.append)

    assert told[-1].violation == found.violation
    assert told[-1].objective == found.objective
    assert all(progress.objective > 0.0 for progress in told)


# ---------------------------------------------------------------------------- LIBLINEAR
def liblinear_weights(problem: CrammerSingerProblem, eps: float) -> Floats:
    """Its weights, a row for every class, in the order of the codes."""
    util = pytest.importorskip(
        "liblinear.liblinearutil", reason="liblinear-official is not installed"
    )
    bias = problem.design.bias or -1.0
    options = util.parameter(f"-s 4 -c {problem.cost[0]} -e {eps} -B {bias} -q")
    X = sp.csr_matrix(problem.design.X)
    theirs = util.problem(problem.code.astype(float), X, bias=bias)
    model = util.train(theirs, options)
    k, d = model.nr_class, problem.design.n_columns
    w = np.ctypeslib.as_array(model.w, shape=(d * k,)).reshape(d, k)
    W = np.empty((k, d))
    W[model.get_labels()] = w.T
    return W


@pytest.mark.agreement
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", ["iris", "digits"])
def test_agrees_with_liblinear(name: str, is_sparse: bool) -> None:
    X, code = sklearn.datasets.load_iris(return_X_y=True)
    if name == "digits":
        X, code = digits()
    problem = pose(sp.csr_matrix(X) if is_sparse else X, code)

    found = solve(problem)
    theirs = liblinear_weights(problem, 1e-4)

    assert_certified(problem, found)
    value = primal_of(problem, theirs)
    assert found.objective - found.gap <= value
    assert value == pytest.approx(found.objective, rel=1e-3)
    assert found.weight is not None
    assert np.allclose(found.weight.reshape(theirs.shape), theirs, atol=0.02)
