"""Are the products of a design those of the matrix that it stands for?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from maxmargin.data.design import Design

Floats = npt.NDArray[np.float64]
LAYOUTS = {
    "dense": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
    "int64 CSR": lambda X: _long(sp.csr_array(X)),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
every_bias = pytest.mark.parametrize("bias", [0.0, 1.0, 2.5])


def _long(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def draw(n: int = 60, d: int = 7) -> Floats:
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (n, d)) * (rng.random((n, d)) < 0.6)
    X[3], X[:, 4] = 0, 0  # a row and a column of zeros
    return X.astype(np.float64)


def with_bias(X: Floats, bias: float) -> Floats:
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X


@pytest.mark.nojit
@pytest.mark.boundscheck
@every_layout
@every_bias
def test_products(layout: Any, bias: float) -> None:
    X = draw()
    design, whole = Design(layout(X), bias), with_bias(X, bias)
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=design.n_columns), rng.normal(size=design.n)
    theta = rng.normal(size=design.n) * (rng.random(design.n) < 0.7)
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(design.times(w), whole @ w, **near)
    np.testing.assert_allclose(design.transposed_times(v), whole.T @ v, **near)
    np.testing.assert_allclose(
        design.curved_times(theta, w), whole.T @ (theta * (whole @ w)), **near
    )
    np.testing.assert_allclose(design.squares_times(theta), theta @ whole**2, **near)
    np.testing.assert_allclose(
        design.square(theta), (whole.T * theta) @ whole, rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(design.squared_norms, (whole**2).sum(axis=1), **near)
    assert (design.column_sizes() == np.abs(X).max(axis=0)).all()


@every_layout
def test_nothing_depends_on_the_number_of_threads(layout: Any) -> None:
    rng = np.random.default_rng(0)
    X = layout(rng.normal(size=(40_000, 11)))
    one, two = Design(X, 1.0, 1), Design(X, 1.0, 2)
    w, v = rng.normal(size=12), rng.normal(size=40_000)
    assert len(one.chunks) > 1
    assert (one.times(w) == two.times(w)).all()
    assert (one.transposed_times(v) == two.transposed_times(v)).all()
    assert (one.square(np.abs(v)) == two.square(np.abs(v))).all()


def test_a_design_does_not_copy() -> None:
    X = draw()
    assert Design(X, 1.0).rows[0] is X
    S = sp.csr_array(X)
    assert Design(S, 1.0).rows[0] is S.data


def test_taking_rows() -> None:
    X, index = draw(), np.array([5, 2, 9])
    some = Design(X, 1.0).take(index)
    assert (X[index] == some.X).all()
    assert some.bias == 1.0
