"""Are L1-penalised weights optimal, proven so, and the same however computed?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from maxmargin._threads import one_blas_thread
from maxmargin.data.design import Design
from maxmargin.problems.linear import LinearProblem, Loss
from maxmargin.solvers import l1, l1_columns
from maxmargin.solvers.l1 import solve_l1
from maxmargin.solvers.result import Options, Progress, Solution, Status

Floats = npt.NDArray[np.float64]

TIGHT = Options(tol=1e-6)
LOSSES = [Loss.SQUARED_HINGE, Loss.LOGISTIC]
INTERCEPTS = {"none": (0.0, False), "penalised": (2.0, False), "free": (1.0, True)}
LAYOUTS = ["dense", "float32", "csr", "long"]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


class Task(NamedTuple):
    """A problem and what a naive twin needs to judge its solution."""

    problem: LinearProblem
    A: Floats  # columns, the constant one included
    penalty: Floats


def draw(n: int = 120, d: int = 30, seed: int = 0) -> tuple[Floats, Floats]:
    """Correlated features, a few of which make the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    X[np.abs(X) < 0.6] = 0.0
    y = np.where(X[:, :4].sum(axis=1) + rng.normal(size=n) > 1.0, 1.0, -1.0)
    return X, y


def as_layout(X: Floats, layout: str) -> Any:
    if layout == "dense":
        return X
    if layout == "float32":
        return X.astype(np.float32)
    rows = sp.csr_matrix(X)
    if layout == "long":
        rows.indices = rows.indices.astype(np.int64)
        rows.indptr = rows.indptr.astype(np.int64)
    return rows


def make(
    X: Any,
    y: Floats,
    C: float | Floats = 1.0,
    loss: Loss = Loss.SQUARED_HINGE,
    intercept: str = "penalised",
    n_threads: int = 1,
) -> Task:
    bias, is_free = INTERCEPTS[intercept]
    design = Design(X, bias, n_threads)
    cost = np.broadcast_to(np.asarray(C, dtype=np.float64), len(y)).copy()
    problem = LinearProblem(design, y, cost, loss, is_intercept_free=is_free)
    A = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    penalty = np.ones(design.n_columns)
    if bias != 0.0:
        A = np.column_stack([A, np.full(len(y), bias)])
        penalty[-1] = 0.0 if is_free else 1.0
    return Task(problem, A.astype(np.float64), penalty)


# -------------------------------------------------------------- twins in plain NumPy
def losses(task: Task, w: Floats) -> tuple[float, Floats]:
    """Their sum, and its slope by each decision value."""
    y, C = task.problem.target, task.problem.cost
    margin = y * (task.A @ w)
    if task.problem.loss is Loss.LOGISTIC:
        slope = -y * C * np.exp(-np.logaddexp(0.0, margin))
        return float(C @ np.logaddexp(0.0, -margin)), slope
    miss = np.maximum(1.0 - margin, 0.0)
    return float(C @ miss**2), -2.0 * y * C * miss


def naive_objective(task: Task, w: Floats) -> float:
    return losses(task, w)[0] + float(task.penalty @ np.abs(w))


def naive_dual(task: Task, beta: Floats) -> float:
    y, C = task.problem.target, task.problem.cost
    if task.problem.loss is Loss.LOGISTIC:
        share = np.clip(y * beta / C, 1e-300, 1.0)
        rest = np.maximum(1.0 - share, 1e-300)
        return -float(C @ (share * np.log(share) + rest * np.log(rest)))
    return float(y @ beta - (beta**2 / (4.0 * C)).sum())


def naive_violation(task: Task, w: Floats) -> float:
    gradient = task.A.T @ losses(task, w)[1]
    worst = 0.0
    for g, x, p in zip(gradient, w, task.penalty, strict=True):
        worst = max(worst, abs(g + p * np.sign(x)) if x else max(abs(g) - p, 0.0))
    return worst


def assert_proven(task: Task, found: Solution, tol: float) -> None:
    """What the solution says of itself is true, and it is a solution."""
    w, beta = found.weight, found.beta
    assert w is not None
    primal = naive_objective(task, w)
    assert found.status is Status.CONVERGED
    assert naive_violation(task, w) <= 1.01 * tol
    assert found.objective == pytest.approx(primal, rel=1e-10)
    assert (np.abs(task.A.T @ beta) <= task.penalty + 1e-9).all()
    gap = primal - naive_dual(task, beta)
    assert found.gap == pytest.approx(gap, abs=1e-9 * primal)
    assert -1e-9 * primal <= gap <= 1.01 * tol * primal


# -------------------------------------------------------------------------- solutions
@every_loss
@every_intercept
@pytest.mark.parametrize("layout", LAYOUTS)
def test_solution_is_proven(loss: Loss, intercept: str, layout: str) -> None:
    X, y = draw()
    for C in (0.02, 1.0, 50.0):
        task = make(as_layout(X, layout), y, C, loss, intercept)

        found = solve_l1(task.problem, TIGHT)

        assert_proven(task, found, TIGHT.tol)


@every_loss
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_columns_and_their_square_find_the_same(
    loss: Loss, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw(200, 80)
    task = make(as_layout(X, layout), y, 0.2, loss, "free")
    by_square = solve_l1(task.problem, TIGHT)
    monkeypatch.setattr(l1_columns, "MOST_SQUARE", 0)

    by_columns = solve_l1(task.problem, TIGHT)

    assert_proven(task, by_square, TIGHT.tol)
    assert_proven(task, by_columns, TIGHT.tol)
    assert by_columns.objective == pytest.approx(by_square.objective, rel=1e-6)


def test_data_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(50, 1)  # one column is a row as it lies
    before = X.copy()
    monkeypatch.setattr(l1_columns, "MOST_SQUARE", 0)

    solve_l1(make(X, y).problem, TIGHT)

    np.testing.assert_array_equal(X, before)


@every_loss
def test_sweeps_over_columns_of_a_small_set(
    loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw(200, 300)
    task = make(sp.csr_matrix(X), y, 0.5, loss)
    monkeypatch.setattr(l1, "FEW_SWEEPS", 0)  # a square is never cheaper
    monkeypatch.setattr(l1_columns, "SPARSE_VISIT", 0.1)

    found = solve_l1(task.problem, TIGHT)

    assert_proven(task, found, TIGHT.tol)


@every_loss
def test_weights_are_zero_below_the_smallest_useful_cost(loss: Loss) -> None:
    X, y = draw()
    slope = 2.0 if loss is Loss.SQUARED_HINGE else 0.5
    bound = 1.0 / (slope * np.abs(X.T @ y).max())

    below = solve_l1(make(X, y, 0.999 * bound, loss, "none").problem, TIGHT)
    above = solve_l1(make(X, y, 1.01 * bound, loss, "none").problem, TIGHT)

    assert not below.weight.any()
    assert below.status is Status.CONVERGED
    assert below.n_iter == 0
    assert np.count_nonzero(above.weight) == 1


@every_loss
@every_intercept
def test_a_weight_of_two_is_the_sample_twice(loss: Loss, intercept: str) -> None:
    X, y = draw()
    times = 1 + np.arange(len(y)) % 3
    weighted = make(X, y, 0.1 * times, loss, intercept)
    repeated = make(np.repeat(X, times, axis=0), y.repeat(times), 0.1, loss, intercept)
    options = Options(tol=1e-9)

    one, other = (solve_l1(t.problem, options) for t in (weighted, repeated))

    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    np.testing.assert_allclose(one.weight, other.weight, atol=1e-7)


# ---------------------------------------------------------------- the same every time
@every_loss
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_threads_change_no_byte(loss: Loss, layout: str) -> None:
    X, y = draw(6000, 90)
    rows = as_layout(X, layout)

    with one_blas_thread():
        found = [
            solve_l1(make(rows, y, 0.1, loss, n_threads=k).problem, TIGHT)
            for k in (1, 2, 3)
        ]

    assert len(make(rows, y).problem.design.chunks) > 1
    for other in found[1:]:
        assert other.weight.tobytes() == found[0].weight.tobytes()
        assert other.beta.tobytes() == found[0].beta.tobytes()
        assert other.n_iter == found[0].n_iter


def test_seeds_agree_within_tol() -> None:
    X, y = draw(300, 200)
    task = make(X, y, 1.0)

    found = [solve_l1(task.problem, Options(tol=1e-6, seed=k)) for k in range(3)]

    for one in found:
        assert one.objective == pytest.approx(found[0].objective, rel=2e-6)


# ------------------------------------------------------------------------ warm starts
@every_loss
def test_warm_start_needs_few_steps(loss: Loss) -> None:
    X, y = draw(300, 100)
    cold = solve_l1(make(X, y, 1.0, loss).problem, TIGHT)
    before = cold.weight.copy()

    again = solve_l1(make(X, y, 1.0, loss).problem, TIGHT, cold.weight)
    nearby = make(X, y, 1.1, loss)
    warm = solve_l1(nearby.problem, TIGHT, cold.weight)

    assert again.n_iter == 0
    assert_proven(nearby, warm, TIGHT.tol)
    assert warm.n_iter < cold.n_iter
    np.testing.assert_array_equal(cold.weight, before)


def test_a_bad_start_does_no_harm() -> None:
    X, y = draw()
    task = make(X, y)
    start = np.random.default_rng(0).normal(scale=100.0, size=31)

    found = solve_l1(task.problem, TIGHT, start)

    assert_proven(task, found, TIGHT.tol)


# -------------------------------------------------------------------- hostile inputs
def hostile() -> dict[str, tuple[Floats, Floats]]:
    X, y = draw(60, 12)
    empty, twins = X.copy(), np.column_stack([X, X, -X])
    empty[::3], empty[:, ::4] = 0.0, 0.0
    millions, near = X.copy(), np.column_stack([X, X + 1e-7 * X[::-1]])
    millions[:, 3] *= 1e6
    return {
        "empty rows and columns": (empty, y),
        "twins": (twins, y),
        "one feature in millionths": (millions, y),
        "nearly twins": (near, y),
        "shifted far": (X + 1e3, y),
        "one sample": (X[:1], y[:1]),
        "one class": (X, np.ones(60)),
        "nothing": (np.zeros((5, 3)), y[:5]),
        "wide": draw(20, 400),
    }


@every_loss
@pytest.mark.parametrize("name", hostile())
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_hostile_data_are_solved(loss: Loss, name: str, intercept: str) -> None:
    X, y = hostile()[name]
    for rows in (X, sp.csr_matrix(X)):
        task = make(rows, y, 1.0, loss, intercept)

        found = solve_l1(task.problem, Options(tol=1e-5))

        assert_proven(task, found, 1e-5)


@pytest.mark.parametrize("name", sorted(set(hostile()) - {"one class", "one sample"}))
def test_hostile_data_are_solved_with_a_free_intercept(name: str) -> None:
    X, y = hostile()[name]
    task = make(X, y, 1.0, Loss.LOGISTIC, "free")

    found = solve_l1(task.problem, Options(tol=1e-5))

    assert_proven(task, found, 1e-5)


def test_empty_columns_lose_the_weight_they_start_with() -> None:
    X, y = draw()
    X[:, 7] = 0.0
    start = np.zeros(31)
    start[7] = 5.0

    found = solve_l1(make(X, y).problem, TIGHT, start)

    assert found.weight[7] == 0.0


# ------------------------------------------------------------------- how a fit ended
@every_loss
def test_limits_end_the_fit_and_are_named(loss: Loss) -> None:
    X, y = draw(300, 100)
    task = make(X, y, 10.0, loss)

    short = solve_l1(task.problem, Options(tol=1e-6, max_iter=2))
    late = solve_l1(task.problem, Options(tol=1e-6, time_limit=0.0))

    assert (short.status, short.n_iter) == (Status.MAX_ITER, 2)
    assert late.status is Status.TIME_LIMIT
    for found in (short, late):
        assert found.violation == pytest.approx(naive_violation(task, found.weight))
        assert found.objective == pytest.approx(naive_objective(task, found.weight))
        assert found.gap > 1e-6 * found.objective


def test_rounding_is_named_when_it_ends_the_fit() -> None:
    X, y = draw()
    X[:, 0] *= 1e12

    found = solve_l1(make(X, y, 100.0).problem, Options(tol=1e-9))

    assert found.status is Status.PRECISION_LIMIT
    assert found.n_iter < 500


def test_callback_hears_of_the_end() -> None:
    told: list[Progress] = []
    X, y = draw()

    found = solve_l1(make(X, y).problem, Options(tol=1e-6, callback=told.append))

    assert told[-1].objective == found.objective
    assert told[-1].n_iter == found.n_iter
    assert told[-1].n_active >= np.count_nonzero(found.weight)


# ---------------------------------------------------------------------------- a peer
@pytest.mark.agreement
@every_loss
@every_intercept
def test_objective_is_no_larger_than_that_of_liblinear(
    loss: Loss, intercept: str
) -> None:
    peer = pytest.importorskip("liblinear.liblinearutil")
    X, y = draw(400, 60, seed=3)
    task = make(X, y, 0.3, loss, intercept)
    solver = 5 if loss is Loss.SQUARED_HINGE else 6
    bias, is_free = INTERCEPTS[intercept]
    words = f"-s {solver} -c 0.3 -e 1e-7 -q -B {bias or -1}" + " -R" * is_free

    model = peer.train(peer.problem(y, sp.csr_matrix(X)), peer.parameter(words))
    found = solve_l1(task.problem, TIGHT)

    size = task.A.shape[1]
    w = np.ctypeslib.as_array(model.w, shape=(size,)) * model.get_labels()[0]
    theirs = naive_objective(task, w)
    assert found.objective <= theirs * (1.0 + 1e-6)
    assert found.objective == pytest.approx(theirs, rel=1e-4)
