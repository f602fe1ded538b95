"""What do the machines do with data nobody would wish on them?

Every fit ends soon, and with the right answer (certified by ``naive``), or with a
ConvergenceWarning that owns up to the violation, or with an error that says what is
wrong and leaves nothing half-fitted behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import datasets
import naive
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
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

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

Floats = npt.NDArray[np.float64]

MACHINES = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]
WITH_C = [SVC(), SVR(), NuSVR()]
SHORT_NAME = [type(machine).__name__ for machine in MACHINES]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=SHORT_NAME)
every_classifier = pytest.mark.parametrize("machine", MACHINES[:2], ids=SHORT_NAME[:2])


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before the clock starts."""
    X, y = overlapping(12)
    for machine in MACHINES:
        clone(machine).fit(X, y).predict(X)
        clone(machine).fit(sp.csr_matrix(X), y).predict(sp.csr_matrix(X))


@pytest.fixture(autouse=True)
def clock(compiled: None) -> Iterator[None]:
    """Fail a test that takes too long, instead of waiting for it."""
    with alarm():
        yield


def fit_certified(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """A fitted copy whose answer is right."""
    fitted = clone(machine).fit(X, y, sample_weight=sample_weight)
    naive.assert_optimal(fitted, X, y, sample_weight)
    return fitted


def fit_or_own_up(machine: Any, X: Any, y: Any) -> Any:
    """A fitted copy: right, or with one warning and the true violation beside it."""
    fitted = fit_aloud(machine, X, y)
    if fitted.status_.name == "CONVERGED":
        naive.assert_optimal(fitted, X, y)
        return fitted
    found = naive.certify(fitted, X, y)
    assert found.violation > fitted.tol
    excess = np.max(fitted.kkt_violation_) - found.violation
    if not isinstance(machine, NuSVR):  # whose stored differences bound it only
        assert abs(excess) <= 1e-3 * found.violation + found.noises.max()
    return fitted


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@every_machine
def test_duplicate_points(machine: Any, kernel: str, layout: Any) -> None:
    X, y = overlapping(20)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    smallest = {"cache_size": 1e-6}  # two rows are kept, however little is allowed
    machine = clone(machine).set_params(kernel=kernel, coef0=1.0, **smallest)
    if isinstance(machine, NuSVC):
        machine.set_params(nu=0.8)  # below the share of errors the margin vanishes
    fit_certified(machine, layout(X), y)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e8])
@pytest.mark.parametrize("machine", WITH_C, ids=["SVC", "SVR", "NuSVR"])
def test_equal_points_with_contradicting_targets(machine: Any, C: float) -> None:
    X = np.repeat([[0.0, 1.0], [2.0, 1.0]], 10, axis=0)
    y = np.arange(20) % 2
    fit_certified(clone(machine).set_params(C=C, kernel="rbf", gamma=1.0), X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize(
    "machine", [SVC(), SVR(), NuSVR(), OneClassSVM()], ids=lambda m: type(m).__name__
)
def test_every_feature_constant(machine: Any, value: float, kernel: str) -> None:
    X, y = np.full((12, 3), value), np.arange(12) % 2
    fitted = fit_certified(clone(machine).set_params(kernel=kernel), X, y)
    assert np.ptp(fitted.predict(X)) == 0


def test_nu_svc_without_any_margin_says_so() -> None:
    X, y = np.ones((12, 3)), np.arange(12) % 2
    with pytest.warns(UserWarning, match="margin between classes 0 and 1 vanishes"):
        machine = NuSVC(nu=0.5).fit(X, y)
    assert np.isfinite(machine.decision_function(X)).all()


@every_machine
def test_two_rows(machine: Any) -> None:
    fit_certified(machine, np.array([[0.0], [1.0]]), np.array([0, 1]))


@pytest.mark.parametrize("machine", MACHINES[2:], ids=SHORT_NAME[2:])
def test_one_row(machine: Any) -> None:
    fitted = fit_certified(machine, np.array([[0.5, 1.0]]), np.array([2.0]))
    if not isinstance(machine, OneClassSVM):
        assert fitted.predict([[7.0, 7.0]]) == pytest.approx([2.0], abs=0.1001)


@every_machine
def test_all_weights_zero_but_two(machine: Any) -> None:
    X, y = overlapping(30)
    weight = np.zeros(30)
    weight[[4, 7]] = 2.0, 3.0
    fitted = fit_certified(machine, X, y, weight)
    assert set(fitted.support_) <= {4, 7}


@every_machine
def test_a_constant_feature_and_negative_weights(machine: Any) -> None:
    X, y = overlapping(30)
    weight = np.where(np.arange(30) % 3, 1.0, -1e6)
    fit_certified(machine, np.c_[X, np.ones(30)], y, weight)


@pytest.mark.parametrize("weight", [0.0, -1.0])
@every_machine
def test_no_weight_at_all(machine: Any, weight: float) -> None:
    X, y = overlapping(10)
    assert_refused(machine, X, y, "(?i)weight", np.full(10, weight))


@every_classifier
def test_one_class_only(machine: Any) -> None:
    X, y = overlapping(10)
    assert_refused(machine, X, np.ones_like(y), "(?i)class")
    assert_refused(machine, X, y, "class|label|nu is infeasible", y.astype(float))


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("machine", WITH_C, ids=["SVC", "SVR", "NuSVR"])
def test_small_and_large_C(machine: Any, C: float) -> None:
    X, y = datasets.load("heart", 150)
    fit_certified(clone(machine).set_params(C=C, gamma=0.5), X, y)


@pytest.mark.parametrize("C", [1e4, 1e8, np.inf])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("machine", [SVC(), SVR(epsilon=0.4)], ids=["SVC", "SVR"])
def test_hard_margin(machine: Any, kernel: str, C: float) -> None:
    X, y = separable(40)
    fitted = fit_certified(clone(machine).set_params(C=C, kernel=kernel), X, y)
    assert np.array_equal(fitted.predict(X) > 0.5, y)


@pytest.mark.parametrize("C", [1e4, 1e8, np.inf])
@pytest.mark.parametrize("machine", [SVC(), SVR()], ids=["SVC", "SVR"])
def test_hard_margin_that_does_not_exist(machine: Any, C: float) -> None:
    X, y = overlapping(40)
    fit_or_own_up(clone(machine).set_params(C=C, kernel="linear", time_limit=5.0), X, y)


@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@every_machine
def test_small_and_large_gamma(machine: Any, kernel: str, gamma: float) -> None:
    X, y = datasets.load("heart", 120)
    machine = clone(machine).set_params(gamma=gamma, kernel=kernel)
    if isinstance(machine, NuSVC) and kernel == "poly":
        machine.set_params(degree=2, coef0=1.0)
    fit_or_own_up(machine, X, y)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@every_machine
def test_unscaled_features(machine: Any, kernel: str) -> None:
    X, y = datasets.load("heart", 150)
    machine = clone(machine).set_params(kernel=kernel)
    if isinstance(machine, NuSVC):
        machine.set_params(nu=0.6)
    fit_or_own_up(machine, 1e4 * X, y)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("coef0", [-1.0, 0.0])
@every_machine
def test_indefinite_sigmoid(machine: Any, coef0: float, layout: Any) -> None:
    X, y = datasets.load("heart", 120)
    K = naive.sigmoid(X, X, 0.5, coef0)
    assert np.linalg.eigvalsh(K).min() < -1.0
    machine = clone(machine).set_params(kernel="sigmoid", gamma=0.5, coef0=coef0)
    fit_certified(machine, layout(X), y)


@pytest.mark.parametrize("nu", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("machine", [NuSVR(), OneClassSVM()])
def test_small_and_large_nu(machine: Any, nu: float) -> None:
    X, y = datasets.load("mpg", 120)
    fit_certified(clone(machine).set_params(nu=nu), X, y)


def test_infeasible_nu_names_the_largest_feasible_one() -> None:
    X, y = np.arange(10.0).reshape(10, 1), np.arange(10) < 3
    assert_refused(NuSVC(nu=0.61), X, y, r"specified nu is infeasible(.|\n)*0\.6\b")
    fit_certified(NuSVC(nu=0.6), X, y)


def test_no_early_stop_is_silent() -> None:
    X, y = overlapping(60)
    for limit in ({"max_iter": 3}, {"time_limit": 1e-9}):
        fitted = fit_or_own_up(SVC(C=100.0, gamma=5.0, **limit), X, y)
        assert fitted.status_.name != "CONVERGED"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@every_machine
def test_what_is_not_finite(machine: Any, value: float) -> None:
    has_targets = not isinstance(machine, OneClassSVM)
    assert_refuses_what_is_not_finite(machine, value, has_targets=has_targets)


@pytest.mark.parametrize("size", [1e160, 1e300])
@every_machine
def test_kernels_that_overflow(machine: Any, size: float) -> None:
    X, y = overlapping(10)
    assert_refused(clone(machine).set_params(kernel="linear"), size * X, y, "finite")


@every_machine
def test_precomputed_must_be_square(machine: Any) -> None:
    X, y = overlapping(10)
    machine = clone(machine).set_params(kernel="precomputed")
    assert_refused(machine, np.ones((10, 4)), y, "(?i)square")
    fitted = machine.fit(X @ X.T + np.eye(10), y)
    with pytest.raises(ValueError, match=r"4.*10|10.*4"):
        fitted.predict(np.ones((2, 4)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@every_machine
def test_feature_count_differs_at_predict(machine: Any, layout: Any) -> None:
    X, y = overlapping(10)
    fitted = clone(machine).fit(layout(X), y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* 2 features"):
        fitted.predict(layout(np.ones((4, 3))))


@every_machine
def test_wrong_shapes(machine: Any) -> None:
    has_targets = not isinstance(machine, OneClassSVM)
    assert_refuses_wrong_shapes(machine, has_targets=has_targets)


BAD = {
    "C": [0.0, -1.0, np.nan],
    "nu": [0.0, -0.1, 1.5, np.nan],
    "tol": [-1.0],
    "gamma": [-0.5, "large"],
    "degree": [-1],
    "kernel": ["no such kernel"],
    "cache_size": [-5],
    "max_iter": [-7],
    "time_limit": [-1.0],
    "working_set": ["third_order"],
    "solver": ["no such solver"],
    "n_jobs": ["two"],
    "callback": [3],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named(name: str) -> None:
    X, y = overlapping(10)
    for kind, value in product((NuSVC, NuSVR, OneClassSVM), BAD[name]):
        known = kind if name in kind().get_params() else SVC
        assert_refused(known(**{name: value}), X, y, name)


@pytest.mark.parametrize("answer", [np.ones((2, 2)), np.full((10, 10), np.nan)])
def test_callable_that_answers_nonsense(answer: Floats) -> None:
    X, y = overlapping(10)
    assert_refused(SVC(kernel=lambda a, b: answer), X, y, "(?i)kernel|finite")


@pytest.mark.parametrize("dtype", ["U3", bool, int, float, object])
@every_classifier
def test_any_label_type(machine: Any, dtype: Any) -> None:
    X, y = separable(20)
    y = np.array(["no", "yes"], dtype)[y] if dtype is object else y.astype(dtype)
    fitted = fit_certified(machine, X, y)
    assert fitted.predict(X).dtype == y.dtype
    assert np.array_equal(fitted.predict(X), y)


@every_classifier
def test_labels_that_are_none_of_that(machine: Any) -> None:
    X, y = separable(20)
    assert_refused(machine, X, np.array([None, "yes"], dtype=object)[y], "None|label")
    assert_refused(machine, X, np.full(20, None), "None|label")
    assert_refused(machine, X, y + 0.5, "label")
    assert_refused(machine, X, None, "y")


@every_machine
def test_a_failed_refit_changes_nothing(machine: Any) -> None:
    assert_failed_refit_changes_nothing(machine)


@every_machine
def test_an_interrupted_fit_leaves_nothing(machine: Any) -> None:
    assert_interrupted_fit_leaves_nothing(clone(machine).set_params(gamma=5.0))


def test_stalling_below_rounding_is_a_limit_of_precision() -> None:
    offset = [
        [9.96, 11.79, 11.33],
        [11.72, 12.82, 11.89],
        [9.94, 10.65, 10.12],
        [11.44, 12.16, 10.84],
        [13.8, 10.91, 9.65],
        [10.13, 11.48, 12.17],
        [9.73, 13.28, 11.15],
        [10.28, 11.57, 10.67],
        [11.23, 11.23, 11.06],
        [10.84, 10.13, 11.8],
        [10.61, 10.51, 10.05],
    ]
    X = 9860.0 + np.array(offset)  # K is about 1e16
    y = [0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0]
    machine = SVC(kernel="poly", gamma="auto", coef0=1.0, degree=2, C=9.1444)

    with pytest.warns(ConvergenceWarning, match="float64"):
        machine.fit(X, y)

    assert machine.status_.name == "PRECISION_LIMIT"
