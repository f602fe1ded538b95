"""What do linear machines do with data nobody would wish on them?

Every fit ends soon, and with the right answer (certified by ``naive_linear``), or with
a ConvergenceWarning that owns up, or with an error that leaves nothing half-fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_machines import (
    CLASSIFIERS,
    FREE,
    MACHINES,
    every_classifier,
    every_machine,
)
from naive_linear import assert_optimal_linear, certify_linear
from naive_linear import machine as name_of
from sklearn.base import clone
from surface import (
    alarm,
    assert_failed_refit_changes_nothing,
    assert_interrupted_fit_leaves_nothing,
    assert_refused,
    assert_refuses_what_is_not_finite,
    assert_refuses_wrong_shapes,
    fit_aloud,
    overlapping,
    separable,
)

from maxmargin import LinearOneClassSVM, LinearSVC, LinearSVR, LogisticRegression

EVERYTHING = MACHINES | FREE
WITH_C = {name: m for name, m in EVERYTHING.items() if "nu" not in m.get_params()}
both_layouts = pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
really_every_machine = pytest.mark.parametrize(
    "machine", EVERYTHING.values(), ids=EVERYTHING
)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before the clock starts."""
    for machine in EVERYTHING.values():
        X, y = rows_for(machine, 12)
        for layout in (np.asarray, sp.csr_matrix):
            fit_aloud(machine, layout(X), y).predict(layout(X))


@pytest.fixture(autouse=True)
def clock(compiled: None) -> Iterator[None]:
    """Fail a test that takes too long, instead of waiting for it."""
    with alarm():
        yield


def rows_for(machine: Any, n: int) -> tuple[Any, Any]:
    """Two classes that overlap; for the one-class machine, away from the origin."""
    X, y = overlapping(n)
    return X + 4.0 * (name_of(machine) == "LinearOneClassSVM"), y


def fit_certified(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """A fitted copy whose answer is right."""
    fitted = clone(machine).fit(X, y, sample_weight=sample_weight)
    assert_optimal_linear(fitted, X, y, sample_weight)
    return fitted


def fit_or_own_up(machine: Any, X: Any, y: Any) -> Any:
    """A fitted copy: right, or with one warning and its true objective beside it."""
    fitted = fit_aloud(machine, X, y)
    if fitted.status_.name == "CONVERGED":
        assert_optimal_linear(fitted, X, y)
    else:
        assert_honest(fitted, X, y)
    return fitted


def assert_honest(fitted: Any, X: Any, y: Any) -> None:
    """The objective is what it says, and no lower than it can be."""
    found = certify_linear(fitted, X, y)
    np.testing.assert_allclose(fitted.objective_, found.objectives, rtol=1e-6)
    assert np.all(found.gaps >= -1e-9)
    if fitted.status_.name == "CONVERGED":
        assert np.all(fitted.dual_gap_ <= 1.001 * fitted.tol * np.abs(found.objectives))


# ------------------------------------------------------------------------ odd samples
@both_layouts
@really_every_machine
def test_duplicate_points(machine: Any, layout: Any) -> None:
    X, y = rows_for(machine, 20)
    fit_certified(machine, layout(np.repeat(X, 5, axis=0)), np.repeat(y, 5))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("name", WITH_C)
def test_equal_points_with_contradicting_targets(name: str, C: float) -> None:
    X = np.repeat([[0.0, 1.0], [2.0, 1.0]], 10, axis=0)
    fit_certified(clone(WITH_C[name]).set_params(C=C), X, np.arange(20) % 2)


@pytest.mark.parametrize("value", [0.0, 3.0])
@both_layouts
@really_every_machine
def test_every_feature_constant(machine: Any, layout: Any, value: float) -> None:
    X, y = layout(np.full((12, 3), value)), np.arange(12) % 2
    if value == 0.0 and name_of(machine) == "LinearOneClassSVM":
        fitted = clone(machine).fit(X)  # the objective is 0, and no gap relative to it
    else:
        fitted = fit_certified(machine, X, y)
    assert np.ptp(fitted.predict(X)) == 0


@both_layouts
@really_every_machine
def test_an_empty_row_and_an_empty_feature(machine: Any, layout: Any) -> None:
    X, y = rows_for(machine, 30)
    X = np.c_[np.zeros(30), X, np.zeros(30)]
    X[[3, 4, 29]] = 0.0  # of the one-class machine, outliers
    fitted = fit_certified(machine, layout(X), y)
    assert not np.atleast_2d(fitted.coef_)[:, [0, 3]].any()


@both_layouts
@really_every_machine
def test_a_feature_a_million_times_larger(machine: Any, layout: Any) -> None:
    X, y = rows_for(machine, 60)
    X = layout(X * [1.0, 1e6])  # too far apart for the naive bound to be sharp
    assert_honest(fit_aloud(machine, X, y), X, y)


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e3, 1e5])
@really_every_machine
def test_small_and_large_samples(machine: Any, size: float) -> None:
    X, y = rows_for(machine, 40)
    assert_honest(fit_aloud(machine, size * X, y), size * X, y)


@pytest.mark.parametrize("size", [1e160, 1e300])
@both_layouts
@every_machine
def test_samples_that_overflow(machine: Any, layout: Any, size: float) -> None:
    X, y = overlapping(10)
    assert_refused(machine, layout(size * X), y, "finite")


def test_targets_and_costs_that_overflow() -> None:
    X, y = overlapping(10)
    assert_refused(LinearSVR(), X, 1e200 * X[:, 0], "scale y")
    for C, weight in ((1e200, 1e200), (1e-200, 1e-200)):
        for machine in (LinearSVR(C=C), LinearSVC(C=C), LogisticRegression(C=C)):
            assert_refused(machine, X, y, "C times the weights", np.full(10, weight))


@pytest.mark.parametrize("size", [1e-12, 1e6, 1e12])
@pytest.mark.parametrize("name", ["tube", "squared tube", "tube, free"])
def test_small_and_large_targets(name: str, size: float) -> None:
    X, _ = overlapping(40)
    y = size * (X[:, 0] + np.cos(np.arange(40)))
    machine = clone(EVERYTHING[name]).set_params(epsilon=0.1 * size)
    fit_or_own_up(machine, X, y)


@pytest.mark.parametrize("value", [0.0, 2.5])
@pytest.mark.parametrize("name", ["tube", "squared tube", "tube, free"])
def test_constant_target(name: str, value: float) -> None:
    X, _ = overlapping(30)
    if value == 0.0 or "free" in name:  # nothing is missed: the objective is 0
        fitted = clone(EVERYTHING[name]).fit(X, np.full(30, value))
        assert not fitted.coef_.any()
        assert fitted.objective_ == fitted.dual_gap_ == 0.0
        np.testing.assert_allclose(fitted.predict(X), value, atol=fitted.epsilon)
    else:
        fit_certified(EVERYTHING[name], X, np.full(30, value))


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("name", WITH_C)
def test_small_and_large_C(name: str, C: float) -> None:
    X, y = overlapping(60)
    fit_or_own_up(clone(WITH_C[name]).set_params(C=C), X, y)


@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_separable_classes(name: str, C: float) -> None:
    X, y = separable(40)
    fitted = fit_or_own_up(clone(CLASSIFIERS[name]).set_params(C=C), X, y)
    assert np.array_equal(fitted.predict(X), y)


@pytest.mark.parametrize("nu", [1e-6, 1e-3, 1.0])
def test_small_and_large_nu(nu: float) -> None:
    X, y = rows_for(LinearOneClassSVM(), 40)
    fit_certified(LinearOneClassSVM(nu=nu), X, y)


@both_layouts
def test_one_class_around_the_origin(layout: Any) -> None:
    X, y = overlapping(40)
    machine = LinearOneClassSVM(nu=0.9).fit(layout(X - X.mean(axis=0)), y)
    np.testing.assert_allclose(machine.coef_, 0.0, atol=1e-3)
    np.testing.assert_allclose(machine.offset_, 0.0, atol=1e-3)
    assert abs(machine.objective_) <= 1e-3


# --------------------------------------------------------------------- few, and many
@really_every_machine
def test_two_rows(machine: Any) -> None:
    fit_certified(machine, np.array([[0.5], [1.0]]), np.array([0, 1]))


@pytest.mark.parametrize(
    "machine", [LinearSVR(), LinearOneClassSVM()], ids=["tube", "one class"]
)
def test_one_row(machine: Any) -> None:
    fit_certified(machine, np.array([[0.5, 1.0]]), np.array([2.0]))


@every_classifier
def test_one_row_or_one_class_is_not_enough(machine: Any) -> None:
    X, y = overlapping(10)
    assert_refused(machine, X[:1], y[:1], "(?i)class")
    assert_refused(machine, X, np.ones_like(y), "(?i)class")
    assert_refused(machine, X, y, "class|label", y.astype(float))


@both_layouts
@every_classifier
def test_one_row_per_class(machine: Any, layout: Any) -> None:
    X = np.random.default_rng(0).normal(size=(7, 12))
    fitted = fit_certified(machine, layout(X), np.arange(7))
    assert fitted.decision_function(layout(X)).shape == (7, 7)


@pytest.mark.parametrize(
    "machine",
    [LinearSVC(), LinearSVC(multi_class="crammer_singer"), LogisticRegression()],
    ids=["squared hinge", "joint", "logistic"],
)
def test_a_hundred_and_five_classes(machine: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(420) % 105
    X = rng.normal(size=(105, 30))[y] + 0.3 * rng.normal(size=(420, 30))

    fitted = clone(machine).fit(X, y)

    assert fitted.coef_.shape == (105, 30)
    assert fitted.decision_function(X).shape == (420, 105)
    assert np.mean(fitted.predict(X) == y) > 0.9
    assert np.all(fitted.dual_gap_ <= fitted.tol * fitted.objective_ * (1 + 1e-9))


@both_layouts
@every_machine
def test_more_features_than_rows(machine: Any, layout: Any) -> None:
    X = np.random.default_rng(1).normal(size=(12, 50)) + 0.5
    fit_certified(machine, layout(X), np.arange(12) % 2)


# -------------------------------------------------------------------------- weights
@really_every_machine
def test_all_weights_zero_but_two(machine: Any) -> None:
    X, y = rows_for(machine, 30)
    weight = np.zeros(30)
    weight[[4, 7]] = 2.0, 3.0
    fit_certified(machine, X, y, weight)


@pytest.mark.parametrize("weight", [0.0, -1.0])
@every_machine
def test_no_weight_at_all(machine: Any, weight: float) -> None:
    X, y = overlapping(10)
    assert_refused(machine, X, y, "(?i)weight", np.full(10, weight))


# ------------------------------------------------------------------- what is refused
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@every_machine
def test_what_is_not_finite(machine: Any, value: float) -> None:
    has_targets = name_of(machine) != "LinearOneClassSVM"
    assert_refuses_what_is_not_finite(machine, value, has_targets=has_targets)


@every_machine
def test_wrong_shapes(machine: Any) -> None:
    has_targets = name_of(machine) != "LinearOneClassSVM"
    assert_refuses_wrong_shapes(machine, has_targets=has_targets)


@both_layouts
@every_machine
def test_predictions_that_cannot_be(machine: Any, layout: Any) -> None:
    X, y = rows_for(machine, 10)
    fitted = clone(machine).fit(layout(X), y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* 2 features"):
        fitted.predict(layout(np.ones((4, 3))))
    fitted.coef_ = np.full(fitted.coef_.shape, 10.0)
    with pytest.raises(ValueError, match="not finite"):
        fitted.predict(layout(np.full((1, 2), 1e308)))


@every_machine
def test_a_failed_refit_changes_nothing(machine: Any) -> None:
    assert_failed_refit_changes_nothing(machine)


@every_machine
def test_an_interrupted_fit_leaves_nothing(machine: Any) -> None:
    assert_interrupted_fit_leaves_nothing(machine)
