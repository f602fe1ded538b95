"""Are weights copies for linear machines too, to what rounding leaves?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_machines import FREE, MACHINES, every_classifier, every_machine
from naive_linear import assert_optimal_linear
from naive_linear import machine as name_of
from sklearn.base import clone
from surface import assert_refused, draw, noisy, repetitions, values

from maxmargin import LinearOneClassSVM, LinearSVC, LinearSVR, LogisticRegression

TOL = 1e-9
RTOL = 1e-5  # of the largest decision value: a gap of 1e-9 leaves its root, at worst


def tight(machine: Any) -> Any:
    return clone(machine).set_params(tol=TOL, max_iter=100_000)


def rows_for(machine: Any) -> tuple[Any, Any]:
    X, y = noisy(name_of(machine) in ("LinearSVC", "LogisticRegression"))
    return X + 2.0 * (name_of(machine) == "LinearOneClassSVM"), y


def assert_same(one: Any, other: Any, X: Any) -> None:
    """Two fitted machines decide alike."""
    expected = values(other, X)
    atol = RTOL * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(values(one, X), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "machine", [*MACHINES.values(), *FREE.values()], ids=[*MACHINES, *FREE]
)
def test_weight_is_repetition(machine: Any, layout: Any) -> None:
    X, y = rows_for(machine)
    times = repetitions(len(y))
    rows = np.repeat(np.arange(len(y)), times)

    weighted = tight(machine).fit(layout(X), y, sample_weight=times)
    copied = tight(machine).fit(layout(X)[rows], y[rows])

    assert_optimal_linear(weighted, X, y, times)
    assert_same(weighted, copied, X)
    np.testing.assert_allclose(weighted.objective_, copied.objective_, rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(loss="hinge"),
        LinearSVC(dual=True),
        LinearSVC(penalize_intercept=False),
        LinearSVR(),
        LinearSVR(fit_intercept=False, tol=TOL),
        LinearSVR(penalize_intercept=False),
        LogisticRegression(dual=True),
        LinearOneClassSVM(nu=0.1),
    ],
    ids=str,
)
def test_weights_of_few_samples_are_copies_to_seven_digits(
    machine: Any, layout: Any, seed: int
) -> None:
    """As in scikit-learn's check_sample_weight_equivalence, for other samples."""
    draw = np.random.default_rng(seed)
    X, y = draw.uniform(size=(15, 30)), draw.integers(0, 3, 15)
    times = draw.integers(0, 5, 15)

    weighted = clone(machine).fit(layout(X), y, sample_weight=times)
    copied = clone(machine).fit(layout(X.repeat(times, axis=0)), y.repeat(times))

    expected = values(copied, X)
    np.testing.assert_allclose(values(weighted, X), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("useless", [0.0, -1.5])
@every_machine
def test_rows_without_weight_do_not_count(
    machine: Any, useless: float, layout: Any
) -> None:
    X, y = rows_for(machine)
    kept = np.arange(len(y)) % 3 > 0
    weight = np.where(kept, 1.5, useless)

    weighted = clone(machine).fit(layout(X), y, sample_weight=weight)
    removed = clone(machine).fit(layout(X[kept]), y[kept], sample_weight=weight[kept])

    assert weighted.coef_.tobytes() == removed.coef_.tobytes()
    assert np.all(weighted.intercept_ == removed.intercept_)


@every_machine
def test_weights_need_not_be_whole(machine: Any) -> None:
    X, y = rows_for(machine)
    weight = np.random.default_rng(7).uniform(0.2, 3.0, size=len(y))

    fitted = clone(machine).fit(X, y, sample_weight=weight)

    assert_optimal_linear(fitted, X, y, weight)


@pytest.mark.parametrize("name", [name for name in MACHINES if name != "one class"])
def test_doubling_weights_is_doubling_C(name: str) -> None:
    X, y = rows_for(MACHINES[name])
    machine = tight(MACHINES[name])

    weighted = clone(machine).fit(X, y, sample_weight=np.full(len(y), 2.0))

    assert_same(weighted, machine.set_params(C=2.0).fit(X, y), X)


@pytest.mark.parametrize("class_weight", [{0: 1.5, 2: 0.8}, "balanced"])
@every_classifier
def test_class_weights_are_sample_weights(machine: Any, class_weight: Any) -> None:
    X, y = rows_for(machine)
    share = len(y) / (3 * np.bincount(y))
    each = share if class_weight == "balanced" else np.array([1.5, 1.0, 0.8])

    by_class = clone(machine).set_params(class_weight=class_weight).fit(X, y)
    by_sample = clone(machine).fit(X, y, sample_weight=each[y])

    np.testing.assert_allclose(by_class.class_weight_, each)
    assert_optimal_linear(by_class, X, y)
    np.testing.assert_allclose(by_class.coef_, by_sample.coef_, rtol=1e-9, atol=1e-12)


@every_classifier
def test_class_and_sample_weights_multiply(machine: Any) -> None:
    X, y = rows_for(machine)
    weight = np.random.default_rng(9).uniform(0.5, 2.0, size=len(y))
    both = clone(machine).set_params(class_weight={1: 2.0})

    both.fit(X, y, sample_weight=weight)
    product = clone(machine).fit(X, y, sample_weight=weight * np.where(y == 1, 2, 1))

    assert both.coef_.tobytes() == product.coef_.tobytes()


@every_classifier
def test_a_class_without_weight_is_no_class(machine: Any) -> None:
    X, y = draw()
    weight = np.where(y == 1, 0.0, 1.0)

    fitted = clone(machine).fit(X, y, sample_weight=weight)
    removed = clone(machine).fit(X[y != 1], y[y != 1])

    assert fitted.classes_.tolist() == [0, 2]
    assert fitted.coef_.tobytes() == removed.coef_.tobytes()
    assert_refused(machine, X, y, "at least two classes", 1.0 * (y == 1))


@pytest.mark.parametrize("class_weight", [{0: 0.0}, {0: -1.0}, {0: np.inf}])
def test_class_weights_are_positive(class_weight: Any) -> None:
    X, y = draw()

    assert_refused(LinearSVC(class_weight=class_weight), X, y, "Class weights must be")
