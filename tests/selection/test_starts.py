"""Are folds begun at points that are feasible, and near enough to be worth it?"""

import numpy as np
import pytest

from maxmargin.data.rows import as_rows
from maxmargin.kernels.functions import RBF
from maxmargin.kernels.gram import VectorGram, gram_block
from maxmargin.kernels.held import HeldGram
from maxmargin.problems import DualProblem, dual_objective, kkt_violation
from maxmargin.selection.formulations import CSvc, Place, Start
from maxmargin.selection.sides import Sides
from maxmargin.solvers import Options
from maxmargin.solvers.kernel import solve

N = 240


def kernel_and_labels() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    X = random.normal(size=(N, 3))
    y = np.where(X[:, 0] + 0.7 * random.normal(size=N) > 0.4, 1.0, -1.0)
    everybody = np.arange(N)
    return gram_block(VectorGram(RBF(0.3), as_rows(X)), everybody, everybody), y


def weights(kind: str, y: np.ndarray) -> np.ndarray:
    weight = np.ones(N)
    if kind == "balanced":
        weight = np.where(y > 0.0, N / (y > 0.0).sum(), N / (y < 0.0).sum()) / 2.0
    elif kind == "any":
        weight = np.random.default_rng(4).uniform(0.1, 3.0, size=N)
    weight[::5] = 0.0
    return weight


FOLD_OF = np.arange(N) % 5  # fold 0 is held out


def begun_by(
    form: CSvc, problem: DualProblem, K: np.ndarray, y: np.ndarray
) -> Start | None:
    return form.begin(problem, lambda: Sides(HeldGram(K), y, FOLD_OF), 0)


def value(problem: DualProblem, K: np.ndarray, beta: np.ndarray) -> float:
    return dual_objective(problem, beta, K @ beta + problem.linear)


@pytest.mark.parametrize("kind", ["balanced", "any"])
def test_boxes_of_different_size_are_begun_at_zero(kind: str) -> None:
    (K, y), form = kernel_and_labels(), CSvc()
    problem = form.problem(y, weights(kind, y), Place(1e-4))

    assert begun_by(form, problem, K, y) is None


@pytest.mark.parametrize("C", [1e-4, 0.003])
def test_a_small_box_is_begun_with_all_that_fit_into_it(C: float) -> None:
    (K, y), form = kernel_and_labels(), CSvc()
    problem = form.problem(y, weights("plain", y), Place(C))

    begun = begun_by(form, problem, K, y)

    assert begun is not None
    beta = begun.beta
    assert begun.image == pytest.approx(K @ beta, rel=1e-12)
    assert ((problem.lower <= beta) & (beta <= problem.upper)).all()
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    is_free = (beta != problem.lower) & (beta != problem.upper)
    assert not is_free.any()
    found = solve(problem._replace(start=beta), HeldGram(K), Options(tol=1e-3))
    plain = solve(problem, HeldGram(K), Options(tol=1e-3))
    assert found.n_iter <= 0.2 * plain.n_iter
    assert kkt_violation(problem, found.beta, K @ found.beta + problem.linear) <= 1e-3
    assert value(problem, K, found.beta) == pytest.approx(
        value(problem, K, plain.beta), rel=1e-4
    )


@pytest.mark.parametrize("C", [10.0, np.inf])
def test_a_large_box_is_begun_at_zero(C: float) -> None:
    (K, y), form = kernel_and_labels(), CSvc()
    problem = form.problem(y, weights("plain", y), Place(C))

    assert begun_by(form, problem, K, y) is None


def test_without_an_intercept_nobody_needs_a_partner() -> None:
    (K, y), form = kernel_and_labels(), CSvc(has_intercept=False)
    problem = form.problem(y, weights("plain", y), Place(1e-4))

    assert begun_by(form, problem, K, y) is None


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0, 300.0])
def test_the_next_start_is_feasible_and_no_worse_than_the_last_solution(
    C: float,
) -> None:
    (K, y), form = kernel_and_labels(), CSvc()
    weight = weights("plain", y)
    first_problem = form.problem(y, weight, Place(C))
    first = solve(first_problem, HeldGram(K), Options(tol=1e-6))
    problem = form.problem(y, weight, Place(16.0 * C))

    image = first.grad - first_problem.linear
    start = form.start(problem, Start(first.beta, image), 16.0)

    assert ((problem.lower <= start.beta) & (start.beta <= problem.upper)).all()
    assert abs(start.beta.sum()) <= 1e-9 * np.abs(start.beta).sum()
    assert start.image is not None
    assert np.allclose(start.image, K @ start.beta, atol=1e-7)
    size = np.abs(first.beta[first.beta != 0.0])
    if C >= 10.0:
        assert (size >= C).mean() < 2.0 / 3.0
        assert value(problem, K, start.beta) <= value(problem, K, first.beta)
    else:
        assert (size >= C).mean() > 2.0 / 3.0
        assert np.allclose(start.beta, 16.0 * first.beta, rtol=1e-9)


@pytest.mark.parametrize("fold", [0, 3])
@pytest.mark.parametrize("n_bound", [5, N // 2, N])
def test_sums_over_classes_tell_what_the_bounds_make(fold: int, n_bound: int) -> None:
    K, y = kernel_and_labels()
    order = np.argsort(2 * FOLD_OF + (y > 0.0), kind="stable")
    for index in (np.arange(N), order):
        sides = Sides(HeldGram(K, index=index), y[index], FOLD_OF[index])
        beta = np.where(np.arange(N) < n_bound, 0.25 * y[index], 0.0)
        beta[FOLD_OF[index] == fold] = 0.0
        own = K[np.ix_(index, index)]

        assert sides.image(beta, fold) == pytest.approx(own @ beta, rel=1e-12)
        distance, lean = sides.distance, sides.lean
        positive = own[:, y[index] > 0.0].mean(axis=1)
        negative = own[:, y[index] < 0.0].mean(axis=1)
        assert lean == pytest.approx(positive - negative, rel=1e-9, abs=1e-12)
        assert distance == pytest.approx(
            lean[y[index] > 0.0].mean() - lean[y[index] < 0.0].mean(), rel=1e-12
        )
