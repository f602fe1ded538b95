"""Does every cell satisfy the KKT conditions, for any number of threads?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import load

from maxmargin.data.labels import encode_labels
from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.kernels.gram import VectorGram, gram_block
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.shared import SharedPairs
from maxmargin.problems import epsilon_svr
from maxmargin.problems.classification import c_svc
from maxmargin.problems.dual import kkt_violation
from maxmargin.selection.engine import Engine
from maxmargin.selection.folds import plain_folds, stratified_folds
from maxmargin.selection.formulations import CSvc, Place, Setting, Start
from maxmargin.selection.lines import Answer
from maxmargin.selection.plan import FoldTask, Task, plain_task
from maxmargin.solvers import Options, Status
from maxmargin.solvers.kernel import solve

GAMMAS = 0.01, 0.3
SETTINGS = [(k, C) for k in range(2) for C in (0.1, 10.0, 1000.0)]
ROOMY, NARROW = 1 << 30, 1 << 17  # bytes: all of K fits, or it does not


def task_of(name: str, n: int) -> tuple[Any, Task]:
    X, y = load(name, n)
    if name == "mpg":
        target: Any = y
        folds = plain_folds(len(y), 3)
    else:
        target = encode_labels(y)
        folds = stratified_folds(target.code, 3)
    closed = []
    for fold in folds:
        weight = np.ones(len(y))
        weight[fold.outside] = 0.0
        closed.append(FoldTask(weight, fold.outside))
    return X, plain_task(target, closed)


def answers_of(
    X: Any, task: Task, n_threads: int = 1, n_bytes: int = ROOMY
) -> list[list[Answer]]:
    kernels = [RBF(gamma) for gamma in GAMMAS]
    options = Options(cache_bytes=n_bytes)
    engine = Engine(as_rows(X), kernels, task, options, n_threads)
    assert engine.is_held is (n_bytes == ROOMY)
    return [engine.solve([Setting(k, C, 0.1)])[0] for k, C in SETTINGS]


@pytest.mark.parametrize("name", ["splice", "vehicle", "mpg"])
def test_threads_change_no_byte(name: str) -> None:
    X, task = task_of(name, 300)

    one, two = answers_of(X, task), answers_of(X, task, n_threads=2)

    for a, b in zip(one, two, strict=True):
        for p, q in zip(a, b, strict=True):
            assert p.decisions.tobytes() == q.decisions.tobytes()
            assert p.n_iter == q.n_iter


@pytest.mark.parametrize("name", ["splice", "vehicle", "mpg"])
def test_kernels_that_do_not_fit_memory_lead_to_the_same_answers(name: str) -> None:
    X, task = task_of(name, 350)

    held, computed = answers_of(X, task), answers_of(X, task, n_bytes=NARROW)

    for a, b in zip(held, computed, strict=True):
        for p, q in zip(a, b, strict=True):
            assert p.status is q.status is Status.CONVERGED
            assert max(p.violation, q.violation) <= 1e-3
            assert np.mean(np.abs(p.decisions - q.decisions)) < 0.02


@pytest.mark.parametrize("n", [120, 400, 1600])
@pytest.mark.parametrize("is_regression", [False, True])
def test_points_along_C_satisfy_kkt_in_float64(n: int, is_regression: bool) -> None:
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 4))
    y = np.sign(X[:, 0] + 0.5 * random.normal(size=n))
    inside = np.arange(n) % 5 != 0
    K = gram_block(VectorGram(RBF(0.2), as_rows(X)), np.arange(n), np.arange(n))
    gram, image, beta, last = HeldGram(K), None, np.zeros(n), 1.0
    for C in (0.5, 4.0, 32.0):
        box = C * inside
        problem = epsilon_svr(y, box, 0.1) if is_regression else c_svc(y, box)
        ratio = C / last
        start = None if image is None else ratio * image
        problem = problem._replace(start=ratio * beta)
        found = solve(problem, gram, Options(tol=1e-3), start)
        beta, image, last = found.beta, found.grad - problem.linear, C

        assert found.status is Status.CONVERGED
        assert not beta[~inside].any()
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        assert np.allclose(image, K @ beta, atol=1e-9 * max(1.0, np.abs(beta).sum()))
        assert kkt_violation(problem, beta, K @ beta + problem.linear) <= 1.0001e-3


@pytest.mark.parametrize(
    "kernel",
    [RBF(0.7), RBF(5e4), Laplacian(0.3), Polynomial(0.5, 1.0, 3), Sigmoid(0.1, 0.2)],
    ids=str,
)
def test_shared_pairs_lead_to_the_same_kernel(kernel: Kernel) -> None:
    rows = as_rows(np.random.default_rng(0).normal(size=(300, 5)) + 3.0)
    everything = np.arange(300)

    shared = SharedPairs([kernel, kernel._replace(gamma=0.1)], rows, 1)
    K = shared.fill(kernel, np.empty((300, 300)))

    expected = gram_block(VectorGram(kernel, rows), everything, everything)
    assert np.allclose(K, expected, rtol=1e-9, atol=1e-12)


def test_the_linear_kernel_is_shared_too() -> None:
    X = np.random.default_rng(0).normal(size=(30, 5))

    K = SharedPairs([Linear()], as_rows(X), 1).fill(Linear(), np.empty((30, 30)))

    assert np.allclose(K, X @ X.T)


@pytest.mark.parametrize(
    ("n", "width", "n_kept", "is_held"),
    [(300, 4, 0, True), (2100, 4, 0, False), (2100, 256, 0, True), (2100, 4, 1, True)],
)
def test_one_point_holds_a_kernel_only_where_that_pays(
    n: int, width: int, n_kept: int, is_held: bool
) -> None:
    X = np.zeros((n, width))
    weight = np.ones(n)
    weight[:10] = 0.0
    task = plain_task(np.arange(float(n)), [FoldTask(weight, np.arange(10))])

    options = Options(cache_bytes=ROOMY)
    engine = Engine(as_rows(X), [RBF(1.0)], task, options, 1, n_kept)

    assert engine.is_held is is_held
    assert (engine.gram(0, np.arange(n)) is None) is not (is_held and n_kept == 0)


def test_a_start_is_scaled_where_most_were_at_their_bound() -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0])
    wide = CSvc().problem(y, np.ones(4), Place(2.0))
    steep = 10.0 * y  # K @ beta: so large that a smaller beta is the better one
    bound = Start(np.array([1.0, 1.0, -1.0, -1.0]), steep)
    free = Start(np.array([0.5, 0.3, -0.8, 0.0]), steep)

    scaled = CSvc().start(wide, bound, 2.0)
    kept = CSvc().start(wide, free, 2.0)

    assert np.array_equal(scaled.beta, 2.0 * bound.beta)
    assert scaled.image is not None
    assert np.array_equal(scaled.image, 2.0 * steep)
    assert kept is free


@pytest.mark.parametrize("n_bytes", [ROOMY, NARROW])
def test_samples_held_out_may_come_in_any_order(n_bytes: int) -> None:
    X, task = task_of("vehicle", 350)
    turned = [FoldTask(fold.weight, fold.outside[::-1]) for fold in task.folds]

    plain = answers_of(X, task, n_bytes=n_bytes)
    other = answers_of(X, task._replace(folds=turned), n_bytes=n_bytes)

    for a, b in zip(plain, other, strict=True):
        for p, q in zip(a, b, strict=True):
            assert np.allclose(p.decisions, q.decisions[::-1], atol=0.05)
