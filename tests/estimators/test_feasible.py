"""Is every answer feasible, whatever the scale of the data, and does every fit end?

Work is counted in moves, not in seconds. Optimality and feasibility are judged by the
checker of the hostile problems, which shares no code with the solvers.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import make_circles
from surface import fit_aloud

from benchmarks.fitted import judge
from maxmargin import SVC, SVR, NuSVC, NuSVR
from maxmargin.solvers.tuning import TUNING

Floats = npt.NDArray[np.float64]


def large_targets() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(290, 5))
    return X, 1e6 * (3 + np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=290))


def assert_certified(fitted: Any, X: Any, y: Any) -> None:
    assert fitted.status_.name == "CONVERGED"
    assert all(found.is_optimal(fitted.tol) for found in judge(fitted, X, y))


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 0.2},
        {"gamma": 0.2, "solver": "smo"},
        {"gamma": 0.2, "solver": "grow"},
        {"gamma": 0.2, "working_set": "first_order"},
        {"gamma": 0.2, "kernel": "laplacian"},
        {"kernel": "linear"},
    ],
    ids=str,
)
def test_unscaled_targets_end_at_a_feasible_optimum(
    options: dict[str, Any], tol: float
) -> None:
    X, y = large_targets()

    fitted = SVR(C=1e6, epsilon=2345.8, tol=tol, **options).fit(X, y)

    beta = fitted.dual_coef_.ravel()
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    assert fitted.n_iter_ <= 100 * len(y)
    assert fitted.dual_gap_ > 0.0 or options.get("kernel") == "linear"
    assert fitted.score(X, y) > 0.8 or options.get("kernel") == "linear"
    assert_certified(fitted, X, y)


# ------------------------------------------------------------------- vanishing margins
def noisy_labels(n: int = 400) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 5))
    return X, (rng.random(n) < 0.5).astype(float)


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 0.02, "nu": 0.15},
        {"gamma": 1e-4, "nu": 0.5},
        {"kernel": "poly", "degree": 2, "nu": 0.1},
    ],
    ids=str,
)
def test_vanishing_margin_is_said_soon(options: dict[str, Any]) -> None:
    X, y = noisy_labels()

    with pytest.warns(UserWarning, match=r"margin between classes .* vanishes"):
        fitted = NuSVC(**options).fit(X, y)

    assert fitted.n_iter_.max() <= 200 * len(y)
    assert np.isfinite(fitted.decision_function(X)).all()


def test_concentric_circles_have_no_linear_margin() -> None:
    X, y = make_circles(400, noise=0.05, factor=0.5, random_state=0)

    with pytest.warns(UserWarning, match="vanishes"):
        fitted = NuSVC(nu=0.6, kernel="linear").fit(X, y)

    assert fitted.n_iter_.max() <= 200 * len(y)


def test_a_margin_among_small_rows_is_not_taken_for_rounding_of_large_ones() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] > 0.0
    X[:, 0] += np.where(y, 1.0, -1.0)
    X[0] = 1e4 * (1.0 if y[0] else -1.0), 0.0  # far on its own side: no support vector

    fitted = NuSVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, nu=0.2, tol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fitted.fit(X, y)

    assert all(found.is_optimal(1e-4) for found in judge(fitted, X, y))


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_overflow_is_reported_where_there_is_none(scale: float, kernel: str) -> None:
    X, y = make_circles(300, noise=0.05, factor=0.5, random_state=0)

    for machine in (NuSVC(nu=0.6, kernel=kernel), NuSVR(nu=0.5, kernel=kernel)):
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # margins may vanish, and say so
            fitted = machine.fit(scale * X, y)

        assert np.isfinite(fitted.dual_coef_).all()


@pytest.mark.parametrize("machine", [NuSVC(nu=0.5), NuSVR(nu=0.5), SVC(), SVR()])
def test_matrix_of_noise_is_fitted(machine: Any) -> None:
    rng = np.random.default_rng(0)
    K = rng.normal(size=(300, 300))
    y = (rng.random(300) < 0.5).astype(float)

    fitted = fit_aloud(machine.set_params(kernel="precomputed"), K + K.T, y)

    assert np.isfinite(fitted.dual_coef_).all()
    assert all(found.is_feasible for found in judge(fitted, K + K.T, y))


# ------------------------------------------------------------------------------- shifts
@pytest.mark.parametrize("shift", [10.0, 400.0, 1e4])
@pytest.mark.parametrize(
    "machine",
    [
        SVC(kernel="linear", C=10.0),
        SVR(kernel="linear", C=10.0),
        NuSVC(kernel="linear", nu=0.5),
        NuSVR(kernel="linear", nu=0.5),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_linear_kernels_do_not_see_a_shift(machine: Any, shift: float) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 5))
    score = X[:, 0] + 0.3 * rng.normal(size=400)
    y = np.sign(score) if isinstance(machine, SVC | NuSVC) else score
    machine = machine.set_params(tol=1e-5)
    expected = machine.fit(X, y).decision_function(X) if y is not score else None
    expected = machine.fit(X, y).predict(X) if expected is None else expected
    n_iter = np.max(machine.n_iter_)

    moved = machine.fit(X + shift, y)

    found = moved.decision_function if y is not score else moved.predict
    np.testing.assert_allclose(found(X + shift), expected, atol=1e-3)
    assert np.max(moved.n_iter_) <= 3 * n_iter + 1000
    assert_certified(moved, X + shift, y)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("n", [150, 600])
def test_shifted_classes_are_told_apart_alike(n: int, n_classes: int) -> None:
    """Pairs of classes share one origin; probabilities read the same decisions."""
    rng = np.random.default_rng(n)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 4)) + 1.5 * np.eye(n_classes, 4)[y]
    machine = SVC(kernel="linear", tol=1e-6, probability=True, random_state=0)
    expected = machine.fit(X, y).decision_function(X)
    likely = machine.predict_proba(X)

    moved = machine.fit(X + 500.0, y)

    np.testing.assert_allclose(moved.decision_function(X + 500.0), expected, atol=1e-3)
    np.testing.assert_allclose(moved.predict_proba(X + 500.0), likely, atol=2e-3)


def test_repeated_shifted_rows_and_one_of_the_other_class() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 30))[rng.integers(0, 200, 1000)] + 400
    y = np.ones(1000, dtype=int)
    y[1] = 0

    fitted = SVC(kernel="linear", C=1810).fit(X, y)

    assert fitted.n_iter_.max() <= 1000
    assert_certified(fitted, X, y)


def test_cancelled_variables_of_nu_svr_do_not_move_the_intercept() -> None:
    """Where the tube closes, both variables of a row are large; differences are stored.

    What rounding leaves in the sum of these is multiplied by the origin's square.
    """
    rng = np.random.default_rng(5)
    y, X = rng.normal(size=16), rng.normal(size=(16, 16)) + 300.0

    fitted = NuSVR(kernel="linear", C=2.6e7, nu=0.0143, tol=2e-4).fit(X, y)

    assert np.abs(fitted.predict(X) - y).max() <= fitted.tol
    assert_certified(fitted, X, y)


# -------------------------------------------------------------------- without intercept
@pytest.mark.parametrize("solver", ["auto", "smo", "grow"])
def test_rows_that_are_alike_need_few_moves_without_intercept(solver: str) -> None:
    """K is nearly a constant: single steps alone undo one another, 3 million times."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.normal(size=600) > 0.0
    machine = SVC(gamma=1e-3, C=1e3, fit_intercept=False, solver=solver)

    fitted = machine.fit(X, y)

    assert fitted.n_iter_.max() <= 20 * len(y)
    assert_certified(fitted, X, y)


# -------------------------------------------------------------------- beyond float64
@pytest.mark.boundscheck
@pytest.mark.parametrize("solver", ["auto", "smo", "grow"])
@pytest.mark.parametrize("gamma", [1.0, 1e3, 1e12])
def test_kernel_values_beyond_resolution_end_early(solver: str, gamma: float) -> None:
    """No kernel value may become an index, and nothing is repeated for ever."""
    rng = np.random.default_rng(3)
    X = np.tile(rng.standard_cauchy(size=(250, 2)) * 1e3, (2, 1))
    y = rng.integers(0, 2, len(X))
    machine = SVC(kernel="poly", degree=5, gamma=gamma, C=172.0, solver=solver)

    fitted = fit_aloud(machine, X, y)

    assert fitted.status_.name in ("PRECISION_LIMIT", "STALLED")
    assert fitted.n_iter_.max() <= 2 * TUNING.patience.moves_of_fit
    beta = fitted.dual_coef_.ravel()
    assert abs(beta.sum()) <= 1e-9 * max(np.abs(beta).sum(), 1e-300)


@pytest.mark.boundscheck
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid", "laplacian"])
def test_extreme_values_stay_in_bounds(kernel: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_cauchy(size=(60, 3)) * 10.0 ** rng.integers(-8, 8, size=(60, 1))
    y = rng.integers(0, 3, len(X))

    fitted = fit_aloud(SVC(kernel=kernel, C=1e6, gamma=1.0), X, y)

    assert np.isfinite(fitted.dual_coef_).all()
