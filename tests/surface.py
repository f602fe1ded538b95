"""What do the tests of all estimators share? Small data, and what must not happen."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

SECONDS = 20.0  # ten, and as many again for a busy machine and its compiler


# --------------------------------------------------------------------------- small data
def draw(n: int = 150, n_classes: int = 3) -> tuple[Floats, Ints]:
    """Classes that overlap, in six dimensions."""
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, class_sep=0.5, random_state=0
    )


def overlapping(n: int) -> tuple[Floats, Ints]:
    """Two classes in the plane that no line separates."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    X[::2] += 1.0
    return X, np.arange(n) % 2


def separable(n: int) -> tuple[Floats, Ints]:
    """Two classes in the plane with a gap between them."""
    X, y = overlapping(n)
    return X + 10.0 * y[:, np.newaxis], y


def noisy(is_classifier: bool) -> tuple[Floats, npt.NDArray[Any]]:
    """Random rows with three overlapping classes, or a noisy function."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    if is_classifier:
        noise = X[:, 0] + 0.3 * rng.normal(size=len(X))
        return X, 1 * (noise > -0.5) + 1 * (noise > 0.5)
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=len(X))


def repetitions(n: int) -> Ints:
    """Whole weights from 0 to 3."""
    return np.random.default_rng(5).integers(0, 4, size=n)


# -------------------------------------------------------------------- fitted machines
def values(fitted: Any, X: Any) -> Floats:
    """Decision values, which a regressor calls predictions."""
    return getattr(fitted, "decision_function", fitted.predict)(X)


def public_names(fitted: Any) -> set[str]:
    """The attributes that fit has set."""
    return {n for n in vars(fitted) if n.endswith("_") and not n.startswith("_")}


def assert_unfitted(machine: Any) -> None:
    """No method works, and no fitted attribute has been set."""
    with pytest.raises(NotFittedError):
        check_is_fitted(machine)
    names = {name for name in vars(machine) if name.endswith("_")}
    assert names <= {"n_features_in_", "feature_names_in_"}


def assert_refused(
    machine: Any, X: Any, y: Any, match: str, sample_weight: Any = None
) -> None:
    """fit raises ValueError with these words, and nothing half-fitted is left."""
    fresh = clone(machine)
    with pytest.raises(ValueError, match=match):
        fresh.fit(X, y, sample_weight=sample_weight)
    assert_unfitted(fresh)


def assert_refuses_what_is_not_finite(
    machine: Any, value: float, *, has_targets: bool
) -> None:
    """NaN or infinity in X, the weights or y."""
    X, y = overlapping(10)
    bad = np.where(np.arange(10) == 3, value, y)
    for layout in (np.asarray, sp.csr_matrix):
        assert_refused(machine, layout(np.c_[X, bad]), y, "NaN|infinity")
    assert_refused(machine, X, y, "NaN|infinity|finite", sample_weight=bad)
    if has_targets:
        assert_refused(machine, X, bad, "NaN|infinity|finite")


def assert_refuses_wrong_shapes(machine: Any, *, has_targets: bool) -> None:
    """Of X, the weights or y."""
    X, y = overlapping(10)
    assert_refused(machine, X[:, 0], y, "2D")
    assert_refused(machine, X[:0], y[:0], "0 sample|minimum of")
    assert_refused(machine, X, y, "(?i)weight", sample_weight=np.ones(9))
    assert_refused(machine, X, y, "(?i)weight", sample_weight=np.ones((10, 2)))
    if has_targets:
        assert_refused(machine, X, y[:9], "inconsistent|(?i:shape)|samples")
        assert_refused(machine, X, np.c_[y, y], "1d|1D")
        assert_refused(machine, X, None, "requires y to be passed")


def assert_failed_refit_changes_nothing(machine: Any) -> None:
    """The second fit meets NaN in three columns."""
    X, y = overlapping(20)
    fitted = clone(machine).fit(X, y)
    before = fitted.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full((10, 3), np.nan), y[:10])
    assert np.array_equal(fitted.predict(X), before)
    assert fitted.n_features_in_ == 2


def assert_interrupted_fit_leaves_nothing(machine: Any) -> None:
    """Ctrl-C while fitting."""
    X, y = overlapping(60)
    fresh = clone(machine).set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert_unfitted(fresh)


def fit_aloud(machine: Any, X: Any, y: Any) -> Any:
    """A fitted copy; its one warning, or none, says how the fit ended."""
    fitted = clone(machine)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted.fit(X, y)
    is_converged = fitted.status_.name == "CONVERGED"
    expected = [] if is_converged else [ConvergenceWarning]
    assert [warning.category for warning in caught] == expected
    return fitted


def interrupt(progress: Any) -> None:
    """A callback that acts like Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def alarm() -> Iterator[None]:
    """Fail what takes too long, instead of waiting for it."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"still not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
