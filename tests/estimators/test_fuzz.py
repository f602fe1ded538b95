"""Is every small problem that chance can state solved, or refused for a reason?"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, NamedTuple

import datasets
import naive
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

pytestmark = pytest.mark.slow

INFEASIBLE = "specified nu is infeasible"
# Of the largest kernel value. The margin of nu-SVC is beta' K beta / (nu S), the size
# of |K beta| squared: decisions below 1e-6 leave a margin of 1e-12, which is rounding.
NO_MARGIN = 1e-6
often = settings(
    max_examples=max(10, int(200 * datasets.SCALE)),
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # the problems are small as they are
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Draw(NamedTuple):
    """Rows with targets, labels and weights, and a kernel."""

    X: Any
    labels: npt.NDArray[np.intp]
    targets: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64] | None
    kernel: dict[str, Any]


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    """Up to 30 rows, often with equal ones, sometimes sparse, sometimes weighted.

    Some are shifted by up to 1e4 times their spread, some targets are of size 1e8.
    """
    n, d = draw(st.integers(2, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(-2, 3, size=(n, d)).astype(float)
    if draw(st.booleans()):
        X = rng.normal(size=(n, d)) * draw(st.sampled_from([0.01, 1.0, 3.0]))
    X += X.std() * draw(st.sampled_from([0.0, 0.0, 10.0, 1e4]))
    labels = rng.integers(0, draw(st.integers(2, 3)), size=n)
    kinds = [None, rng.integers(0, 4, size=n).astype(float), rng.exponential(size=n)]
    kinds.append(rng.normal(size=n))  # half of these rows are dropped
    weight = kinds[draw(st.integers(0, 3))]
    targets = X[:, 0] + rng.normal(size=n) * draw(st.sampled_from([0.0, 1.0]))
    targets *= draw(st.one_of(st.just(1.0), powers(-6, 8)))
    layout = draw(st.sampled_from([np.asarray, sp.csr_matrix, sp.csr_array]))
    return Draw(layout(X), labels, targets, weight, draw(kernels()))


@st.composite
def kernels(draw: st.DrawFn) -> dict[str, Any]:
    """A kernel with its parameters."""
    name = draw(st.sampled_from(["linear", "rbf", "laplacian", "poly", "sigmoid"]))
    gammas = ["scale", "auto", 0.1] + [0.01, 1.0, 30.0] * (name != "poly")
    return {
        "kernel": name,
        "gamma": draw(st.sampled_from(gammas)),
        "coef0": draw(st.sampled_from([0.0, 1.0] + [-0.5] * (name == "sigmoid"))),
        "degree": draw(st.integers(1, 3)),
    }


def powers(low: int, high: int) -> st.SearchStrategy[float]:
    """10^p with p between two whole numbers."""
    return st.floats(low, high).map(lambda p: 10.0**p)


solving = {
    "tol": st.sampled_from([1e-3, 1e-6]),
    "working_set": st.sampled_from(["first_order", "second_order"]),
    "shrinking": st.booleans(),
    "cache_size": st.sampled_from(["auto", 1e-6]),
}


def options(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters of a machine, the solver's among them."""
    return st.fixed_dictionaries({**solving, **more})


def positive(drawn: Draw) -> npt.NDArray[np.float64]:
    """The weights that count."""
    given_weight = np.ones(len(drawn.labels)) if drawn.weight is None else drawn.weight
    return np.maximum(given_weight, 0.0)


def weight_by_class(drawn: Draw) -> npt.NDArray[np.float64]:
    """How much weight each class that occurs has."""
    present = np.unique(drawn.labels)
    total = np.bincount(drawn.labels, weights=positive(drawn))
    return total[present]


def fit_aloud(machine: Any, X: Any, y: Any, weight: Any) -> list[Warning]:
    """The warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(X, y, sample_weight=weight)
    return [warning.message for warning in caught]


def assert_right(machine: Any, X: Any, y: Any, weight: Any) -> None:
    """The fit is optimal, or says once and truly that float64 does not resolve more."""
    assert_judged(fit_aloud(machine, X, y, weight), machine, X, y, weight)


def assert_judged(
    caught: list[Warning], machine: Any, X: Any, y: Any, weight: Any
) -> None:
    """The same, of a machine that is fitted."""
    if machine.status_.name == "CONVERGED":
        assert not caught
        naive.assert_optimal(machine, X, y, weight)
        return
    assert [type(warning) for warning in caught] == [ConvergenceWarning]
    assert machine.status_.name == "PRECISION_LIMIT"
    naive.assert_stated(machine, naive.certify(machine, X, y, weight))


@often
@given(draws(), options(C=powers(-6, 8), fit_intercept=st.booleans()))
def test_svc(drawn: Draw, chosen: dict[str, Any]) -> None:
    by_class = weight_by_class(drawn)
    assume(len(by_class) > 1 and by_class.min() > 0.0)
    machine = SVC(**chosen, **drawn.kernel)

    assert_right(machine, drawn.X, drawn.labels, drawn.weight)


@often
@given(draws(), options(nu=st.floats(0.01, 1.0)))
def test_nu_svc(drawn: Draw, chosen: dict[str, Any]) -> None:
    by_class = weight_by_class(drawn)
    assume(len(by_class) > 1 and by_class.min() > 0.0)
    assume(drawn.kernel["kernel"] != "sigmoid")  # its margin may be negative
    largest = min(2 * min(a, b) / (a + b) for a, b in combinations(by_class, 2))
    assume(abs(chosen["nu"] - largest) > 1e-9)
    machine = NuSVC(**chosen, **drawn.kernel)
    given_rows = drawn.X, drawn.labels, drawn.weight
    try:
        caught = fit_aloud(machine, *given_rows)
    except ValueError as error:
        assert chosen["nu"] > largest
        assert INFEASIBLE in str(error)
        return

    assert chosen["nu"] < largest
    if any("vanishes" in str(warning) for warning in caught):
        assert has_no_margin(machine, drawn), caught
    else:
        assert_judged(caught, machine, *given_rows)


def has_no_margin(machine: Any, drawn: Draw) -> bool:
    """Whether a feasible beta of some pair of classes makes all decisions equal."""
    K, weight = naive.training_gram(machine, drawn.X), positive(drawn)
    K = K / max(np.abs(K).max(), 1e-300)  # linprog's tolerances are absolute
    return any(
        smallest_decision(
            K[np.ix_(rows, rows)], drawn.labels[rows] == i, weight[rows], machine.nu
        )
        <= NO_MARGIN
        for i, j in combinations(np.unique(drawn.labels), 2)
        for rows in [np.flatnonzero(np.isin(drawn.labels, (i, j)) & (weight > 0))]
    )


def smallest_decision(
    K: npt.NDArray[np.float64],
    is_positive: npt.NDArray[np.bool_],
    weight: npt.NDArray[np.float64],
    nu: float,
) -> float:
    """The least possible max |K beta| over the feasible set of nu-SVC, by an LP."""
    n, half = len(K), nu * weight.sum() / 2
    signed = K * np.where(is_positive, 1.0, -1.0)
    ones = np.ones((n, 1))
    found = linprog(
        np.r_[np.zeros(n), 1.0],
        A_ub=np.block([[signed, -ones], [-signed, -ones]]),
        b_ub=np.zeros(2 * n),
        A_eq=np.c_[[is_positive, ~is_positive], np.zeros(2)].astype(float),
        b_eq=[half, half],
        bounds=[*((0.0, w) for w in weight), (0.0, None)],
    )
    return float(found.fun)


@often
@given(
    draws(),
    options(C=powers(-6, 8), epsilon=powers(-4, 1), fit_intercept=st.booleans()),
)
def test_svr(drawn: Draw, chosen: dict[str, Any]) -> None:
    assume(positive(drawn).any())
    machine = SVR(**chosen, **drawn.kernel)

    assert_right(machine, drawn.X, drawn.targets, drawn.weight)


@often
@given(draws(), options(C=powers(-6, 8), nu=st.floats(0.01, 1.0)))
def test_nu_svr(drawn: Draw, chosen: dict[str, Any]) -> None:
    assume(positive(drawn).any())
    machine = NuSVR(**chosen, **drawn.kernel)

    assert_right(machine, drawn.X, drawn.targets, drawn.weight)


@often
@given(draws(), options(nu=st.floats(0.01, 1.0)))
def test_one_class(drawn: Draw, chosen: dict[str, Any]) -> None:
    assume(positive(drawn).any())
    machine = OneClassSVM(**chosen, **drawn.kernel)

    assert_right(machine, drawn.X, None, drawn.weight)
