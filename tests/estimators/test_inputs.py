"""Does odd input get an answer or a clear error, whatever way it comes in?"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.kernels import gram as gram_module

MACHINES = [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()]
every_machine = pytest.mark.parametrize(
    "machine", MACHINES, ids=[type(machine).__name__ for machine in MACHINES]
)


def two_classes() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X[50:], y[50:]


def outcome(machine: Any, X: Any) -> Any:
    if hasattr(machine, "decision_function"):
        return machine.decision_function(X)
    return machine.predict(X)


@every_machine
def test_read_only_kernel_matrix(machine: Any) -> None:
    X, y = two_classes()
    K = X @ X.T
    K.flags.writeable = False
    given = clone(machine).set_params(kernel="precomputed").fit(K, y)
    computed = clone(machine).set_params(kernel="linear").fit(X, y)
    np.testing.assert_allclose(outcome(given, K), outcome(computed, X), atol=1e-9)


def lopsided(a: Any, b: Any) -> Any:
    return a @ np.triu(np.ones((4, 4))) @ b.T


@pytest.mark.parametrize("kernel", ["precomputed", lopsided])
def test_asymmetric_kernel_is_refused(kernel: Any) -> None:
    X, y = two_classes()
    K = lopsided(X, X) if kernel == "precomputed" else X
    with pytest.raises(ValueError, match=r"must be symmetric(.|\n)*K \+ K\.T"):
        SVC(kernel=kernel).fit(K, y)


def test_time_limit_counts_the_kernel_too() -> None:
    X, y = two_classes()

    def slow(a: Any, b: Any) -> Any:
        time.sleep(0.3)
        return np.exp(-(((a[:, None] - b) ** 2).sum(-1)))

    machine = SVC(kernel=slow, C=1e6, tol=1e-9, time_limit=0.2)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0\.2"):
        machine.fit(X, y)
    assert machine.status_.name == "TIME_LIMIT"


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"cache_size": np.inf}, "finite number of MB"),
        ({"C": 10**400}, "above 0"),
        ({"kernel": "poly", "degree": 10**30}, "whole number from 0"),
        ({"class_weight": np.array([1, 2])}, "'balanced' or a dict"),
        ({"probability": "yes"}, "True or False"),
        ({"predict_by": "dice"}, "'decision' or 'probability'"),
        ({"predict_by": "probability"}, "needs probability=True"),
        ({"calibration": "none"}, "'folds' or 'leave_one_out'"),
        ({"random_state": -1}, "None, a whole number"),
        ({"verbose": "loud"}, "True, False or a number"),
    ],
)
def test_parameters_out_of_range(parameters: dict[str, Any], words: str) -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match=words):
        SVC(**parameters).fit(X, y)


def test_any_kind_of_number_is_a_cost() -> None:
    X, y = two_classes()
    machine = SVC(C=Fraction(1, 2)).fit(X, y)
    np.testing.assert_array_equal(machine.dual_coef_, SVC(C=0.5).fit(X, y).dual_coef_)


@pytest.mark.parametrize(
    "answer, words",
    [
        (None, "real numbers, got NoneType"),
        ("x", "real numbers, got str"),
        (1.0, r"expected shape \(100, 100\)"),
        (1j * np.eye(100), "real numbers, got ndarray of dtype complex"),
        (np.full((100, 100), np.nan), "NaN or infinity"),
    ],
)
def test_callable_kernel_that_returns_nonsense(answer: Any, words: str) -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match=words):
        SVC(kernel=lambda a, b: answer).fit(X, y)


def test_no_samples_for_a_callable() -> None:
    with pytest.raises(ValueError, match="no samples"):
        SVC(kernel=lambda a, b: a @ b.T).fit(np.empty((0, 2)), [])


@pytest.mark.parametrize("machine", MACHINES[:4])
def test_missing_targets(machine: Any) -> None:
    with pytest.raises(ValueError, match="requires y to be passed"):
        clone(machine).fit(two_classes()[0], None)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_prediction_that_overflows(kernel: str) -> None:
    X, y = two_classes()
    machine = SVC(kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        machine.predict(1e307 * X)


def test_kernel_changed_after_fit_waits_for_the_next_fit() -> None:
    X, y = two_classes()
    machine = SVC().fit(X, y)
    before = machine.decision_function(X)
    machine.set_params(kernel=lambda a, b: a @ b.T)
    np.testing.assert_array_equal(machine.decision_function(X), before)


def test_coef_before_fit() -> None:
    with pytest.raises(NotFittedError):
        _ = SVC(kernel="linear").coef_


def test_infeasible_nu_names_the_classes() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    with pytest.raises(ValueError, match="classes a and c"):
        NuSVC(nu=0.5).fit(X[:110], names[:110])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_a_row_is_predicted_the_same_in_any_company(kernel: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = SVC(kernel=kernel, degree=2).fit(X, y)
    among_others = machine.decision_function(X)
    for k in (0, 31, 32, 300, 568):
        assert machine.decision_function(X[k : k + 1])[0] == among_others[k]
    beside_outlier = machine.decision_function(np.vstack((X[:40], 1e4 * X[40:41])))
    np.testing.assert_array_equal(beside_outlier[:40], among_others[:40])


def test_large_callable_is_asked_for_its_diagonal_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gram_module, "CALL_ENTRIES", 1000)
    X, y = load_iris(return_X_y=True)
    asked = []

    def kernel(a: Any, b: Any) -> Any:
        asked.append(len(a))
        return a @ b.T

    by_rows = SVC(kernel=kernel, max_iter=0)
    with pytest.warns(ConvergenceWarning):
        by_rows.fit(X, y)  # on threads, three pairs: nobody asks a second time
    assert sum(asked) == len(X)
    by_rows.set_params(max_iter=-1).fit(X, y)
    assert max(asked) <= 1000 // len(X)
    at_once = SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(
        by_rows.decision_function(X), at_once.decision_function(X), atol=1e-9
    )
    asked.clear()
    OneClassSVM(kernel=kernel).fit(X)
    assert sum(asked) < 4 * len(X)
