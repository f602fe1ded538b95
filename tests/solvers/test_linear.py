"""Do all linear solvers end at the same optimum, with a certificate that holds?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes

from maxmargin._threads import one_blas_thread
from maxmargin.data.design import Design
from maxmargin.errors import InvalidInput
from maxmargin.problems.linear import LinearProblem, Loss, certify
from maxmargin.solvers import Options, Progress, Solution, Status
from maxmargin.solvers import linear as driver
from maxmargin.solvers.linear import solve_linear

Floats = npt.NDArray[np.float64]
SMOOTH = ("auto", "dual", "primal", "dcd", "newton", "newton-cg")
CORNERS = ("auto", "dual", "dcd", "proximal", "interior", "corners")
TIGHT = Options(tol=1e-7, max_iter=100_000)


def draw(loss: Loss, n: int = 120, d: int = 6) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(int(loss))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    X[0] = 0.0
    heights = X @ rng.normal(size=d) + rng.normal(size=n)
    if loss is Loss.ONE_CLASS:
        return X + 2.0, np.ones(n)
    return X, heights if loss.is_regression else np.where(heights > 0.3, 1.0, -1.0)


def stated(
    loss: Loss, X: Any, y: Floats, *, is_free: bool = False, **more: Any
) -> LinearProblem:
    n = len(y)
    cost = np.random.default_rng(5).uniform(0.2, 2.0, n)
    is_one = loss is Loss.ONE_CLASS
    return LinearProblem(
        design=Design(X, 1.0, **more),
        target=y,
        cost=cost,
        loss=loss,
        epsilon=0.2 if loss.is_regression else 0.0,
        is_intercept_free=is_free or is_one,
        total=0.3 * float(cost.sum()) if is_one else 0.0,
    )


def solved(problem: LinearProblem, method: str, options: Options = TIGHT) -> Solution:
    with one_blas_thread():
        return solve_linear(problem, options, method)


def methods(loss: Loss, is_free: bool) -> list[str]:
    all_of_them = SMOOTH if loss.is_smooth else CORNERS
    return [m for m in all_of_them if not (is_free and m == "dcd")]


@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize("loss", Loss)
def test_every_method_finds_the_same_optimum(loss: Loss, is_free: bool) -> None:
    X, y = draw(loss)
    found = {}
    for layout in (np.ascontiguousarray, sp.csr_array):
        problem = stated(loss, layout(X), y, is_free=is_free)
        for method in methods(loss, problem.is_intercept_free):
            solution = solved(problem, method)
            assert solution.status is Status.CONVERGED, method
            assert solution.gap <= 1e-7 * abs(solution.objective)
            assert solution.violation <= 1e-7
            found[method, layout] = solution
    objectives = [solution.objective for solution in found.values()]
    np.testing.assert_allclose(objectives, objectives[0], rtol=3e-7)
    weights = np.stack([solution.weight for solution in found.values()])
    np.testing.assert_allclose(weights, weights[:1].repeat(len(weights), 0), atol=2e-3)


@pytest.mark.parametrize("loss", Loss)
def test_a_certificate_sees_a_wrong_answer(loss: Loss) -> None:
    X, y = draw(loss)
    problem = stated(loss, X, y)
    good = solved(problem, "auto")
    assert good.weight is not None
    spoilt = good.weight + 0.05
    found = certify(problem, good.beta, spoilt)
    assert found.gap > 1e-4 * abs(found.primal)
    assert not found.meets(1e-4)
    shifted = certify(problem, 0.5 * good.beta, good.weight)
    assert not shifted.meets(1e-4)


@pytest.mark.parametrize("loss", [Loss.HINGE, Loss.SQUARED_HINGE, Loss.LOGISTIC])
@pytest.mark.parametrize("is_free", [False, True])
def test_more_columns_than_can_be_formed(
    loss: Loss, is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sweeps first, then a matrix over the samples, or conjugate gradients."""
    X, y = draw(loss)
    problem = stated(loss, sp.csr_array(X), y, is_free=is_free)
    want = solved(problem, "auto").objective
    monkeypatch.setattr(driver, "MOST_FORMED", 3)
    monkeypatch.setattr(driver, "TYPICAL_STEPS", 0)  # give up the sweeps early
    options = Options(tol=1e-9, max_iter=100_000)
    assert solved(problem, "auto", options).objective == pytest.approx(want, rel=1e-7)


def test_raw_features_of_very_different_scales_go_along_the_path() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    problem = stated(Loss.HINGE, np.ascontiguousarray(X), 2.0 * y - 1.0)
    auto = solved(problem, "auto", Options(tol=1e-4))
    path = solved(problem, "interior", Options(tol=1e-4))
    assert auto.status is Status.CONVERGED
    assert auto.gap <= path.gap  # it begins where the path ends
    assert path.gap <= 1e-4 * path.objective


@pytest.mark.parametrize("seed", [0, 3])
def test_rounding_that_ends_a_round_early_does_not_end_the_fit(seed: int) -> None:
    """The next round is tied tighter, and Newton's method sees clearly again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 6))
    y = X @ rng.normal(size=6) + 0.3 * rng.normal(size=300)
    problem = stated(Loss.EPSILON, X * 10.0 ** np.arange(-3, 3), y)
    problem = problem._replace(cost=np.full(300, 1e6), epsilon=0.1)
    solution = solved(problem, "auto", Options(tol=1e-8))
    assert solution.status is Status.CONVERGED
    assert solution.n_iter < 60


def test_regression_on_raw_targets() -> None:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    problem = stated(Loss.EPSILON, np.ascontiguousarray(X), y)
    solution = solved(problem, "auto", Options(tol=1e-4))
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 1e-4 * solution.objective


@pytest.mark.parametrize("loss", [Loss.HINGE, Loss.SQUARED_HINGE, Loss.EPSILON])
def test_many_samples_begin_with_some_of_them(loss: Loss) -> None:
    X, y = draw(loss, n=45_000, d=4)
    problem = stated(loss, X, y)
    solution = solved(problem, "auto", Options(tol=1e-4))
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.beta, solution.weight).meets(1e-4)
    few = stated(loss, X[:30_000], y[:30_000])
    assert solved(few, "auto", Options(tol=1e-4)).n_iter > solution.n_iter


@pytest.mark.parametrize("loss", Loss)
def test_threads_change_no_byte(loss: Loss) -> None:
    X, y = draw(loss, n=70_000, d=5)
    one, two = (stated(loss, X, y, n_threads=k) for k in (1, 2))
    options = Options(tol=1e-3)
    a, b = solved(one, "auto", options), solved(two, "auto", options)
    assert (a.beta == b.beta).all()
    assert a.objective == b.objective


@pytest.mark.parametrize("loss", [Loss.HINGE, Loss.SQUARED_HINGE, Loss.LOGISTIC])
def test_a_start_saves_work(loss: Loss) -> None:
    X, y = draw(loss)
    problem = stated(loss, X, y)
    first = solved(problem, "auto")
    again = solve_linear(problem, TIGHT, "auto", first.beta)
    assert again.status is Status.CONVERGED
    assert again.n_iter <= max(2, first.n_iter // 3)
    assert again.objective == pytest.approx(first.objective, rel=1e-7)


@pytest.mark.parametrize("method", ["dcd", "newton", "proximal", "interior"])
def test_limits_are_kept_and_said(method: str) -> None:
    loss = Loss.SQUARED_HINGE if method == "newton" else Loss.HINGE
    X, y = draw(loss)
    problem = stated(loss, X, y)
    short = solved(problem, method, Options(tol=1e-12, max_iter=2))
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 2
    assert np.isfinite(short.objective)
    late = solved(problem, method, Options(tol=1e-12, time_limit=1e-9))
    assert late.status is Status.TIME_LIMIT


@pytest.mark.parametrize("method", ["dcd", "newton", "proximal", "interior"])
def test_callbacks_are_told(method: str) -> None:
    loss = Loss.SQUARED_HINGE if method == "newton" else Loss.HINGE
    X, y = draw(loss)
    told: list[Progress] = []
    options = Options(tol=1e-6, max_iter=10_000, callback=told.append)
    solution = solved(stated(loss, X, y), method, options)
    assert told[-1].n_iter == solution.n_iter
    assert told[-1].objective == solution.objective


def test_sweeps_need_a_penalised_intercept() -> None:
    X, y = draw(Loss.HINGE)
    with pytest.raises(InvalidInput, match="penalised"):
        solved(stated(Loss.HINGE, X, y, is_free=True), "dcd")


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_hardly_any_samples(loss: Loss, n: int) -> None:
    X, y = draw(loss)
    problem = stated(loss, X[1 : n + 1], y[1 : n + 1])
    for method in methods(loss, problem.is_intercept_free):
        solution = solved(problem, method, Options(tol=1e-5, max_iter=10_000))
        assert solution.status is Status.CONVERGED, method


@pytest.mark.parametrize("loss", Loss)
def test_samples_that_are_all_zero(loss: Loss) -> None:
    X, y = draw(loss)
    problem = stated(loss, 0.0 * X, y)._replace(design=Design(0.0 * X))
    if loss is Loss.ONE_CLASS:
        return  # without an intercept it has nothing to say
    for method in methods(loss, False):
        solution = solved(problem, method, Options(tol=1e-5))
        assert solution.status is Status.CONVERGED, method
        assert solution.weight is not None
        assert not solution.weight.any()
