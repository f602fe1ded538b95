"""Do dense and sparse rows give the same answers to the same questions?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from maxmargin.data import rows as layouts
from maxmargin.data.rows import (
    CITY_BLOCK,
    SQUARED,
    DenseRows,
    SparseRows,
    as_rows,
    densify_if_better,
)

Floats = npt.NDArray[np.float64]

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]


def draw(n: int = 19, d: int = 6, seed: int = 0) -> Floats:
    """Mostly zeros; the second row and the last column are nothing else."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.4, rng.normal(size=(n, d)), 0.0)
    X[1], X[:, -1] = 0.0, 0.0
    return X


def sparse(X: Floats, dtype: Any = np.float64, index: Any = np.int32) -> SparseRows:
    csr = sp.csr_matrix(X.astype(dtype))
    parts = csr.data, csr.indices.astype(index), csr.indptr.astype(index)
    return SparseRows(parts, X.shape[1])


LAYOUTS = {
    "dense": DenseRows,
    "float32": lambda X: DenseRows(X.astype(np.float32)),
    "sparse": sparse,
    "sparse int64": lambda X: sparse(X, index=np.int64),
    "sparse float32": lambda X: sparse(X, np.float32),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def values(rows: DenseRows | SparseRows) -> Floats:
    return rows.dense().values if isinstance(rows, SparseRows) else rows.values


def make(layout: str, seed: int = 0) -> tuple[Any, Floats]:
    """Rows of a layout, and the same numbers in float64."""
    X = draw(seed=seed)
    rows = LAYOUTS[layout](X)
    return rows, X.astype(np.float32).astype(float) if "float32" in layout else X


@every_layout
def test_rows_keep_their_values_in_float64(layout: str) -> None:
    rows, X = make(layout)

    assert len(rows) == len(X)
    assert rows.n_columns == X.shape[1]
    assert values(rows).dtype == np.float64
    assert np.array_equal(values(rows), X)


@every_layout
def test_dots_and_norms(layout: str) -> None:
    (a, A), (b, B) = make(layout), make(layout, seed=1)

    np.testing.assert_allclose(a.dots(b), A @ B.T, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(a.squared_norms(), (A * A).sum(axis=1), rtol=1e-13)
    assert a.squared_norms() is a.squared_norms()


@pytest.mark.parametrize("power", [CITY_BLOCK, SQUARED])
@every_layout
def test_distances(layout: str, power: int) -> None:
    (a, A), (b, B) = make(layout), make(layout, seed=1)

    expected = (np.abs(A[:, None] - B[None]) ** power).sum(axis=2)

    np.testing.assert_allclose(a.distances(b, power), expected, rtol=1e-13)
    assert np.all(a.distances(a, power).diagonal() == 0.0)


@pytest.mark.parametrize(
    "index",
    [slice(2, 9), slice(0, 19), slice(15, 40), np.array([7, 1, 1, 18])],
    ids=str,
)
@every_layout
def test_take(layout: str, index: Any) -> None:
    rows, X = make(layout)

    part = rows.take(index)

    assert np.array_equal(values(part), X[index])
    np.testing.assert_allclose(part.squared_norms(), (X[index] ** 2).sum(axis=1))
    np.testing.assert_allclose(part.dots(rows), X[index] @ X.T, rtol=1e-13, atol=1e-14)


@every_layout
def test_taking_from_what_was_taken(layout: str) -> None:
    rows, X = make(layout)

    part = rows.take(slice(4, 16)).take(np.array([3, 0])).take(slice(0, 1))

    assert np.array_equal(values(part), X[7:8])


@every_layout
def test_products_with_matrices(layout: str) -> None:
    rows, X = make(layout)
    rng = np.random.default_rng(2)
    weight, columns = rng.normal(size=(3, len(X))), rng.normal(size=(X.shape[1], 2))

    np.testing.assert_allclose(rows.weighted_sum(weight), weight @ X, atol=1e-13)
    np.testing.assert_allclose(rows.times(columns), X @ columns, atol=1e-13)


def test_centred_rows_have_mean_zero() -> None:
    rows = DenseRows(draw() + 100.0)

    moved = rows.centred_on(rows.middle())

    np.testing.assert_allclose(moved.middle(), 0.0, atol=1e-13)
    assert np.array_equal(rows.values, draw() + 100.0)


def test_dense_rows_of_another_order_are_copied() -> None:
    X = np.asfortranarray(draw())

    rows = as_rows(X)

    assert rows.values.flags.c_contiguous
    assert np.array_equal(rows.values, X)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_as_rows_knows_both_layouts(kind: Any) -> None:
    assert isinstance(as_rows(draw()), DenseRows)
    assert isinstance(as_rows(kind(draw())), SparseRows)
    assert np.array_equal(values(as_rows(kind(draw()))), draw())


def test_small_or_full_sparse_sets_are_written_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layouts, "SMALL_CELLS", 10)
    full = sparse(np.ones((10, 2)))
    empty = sparse(np.eye(10))

    assert isinstance(densify_if_better(empty.take(slice(0, 1))), DenseRows)
    assert isinstance(densify_if_better(full), DenseRows)
    assert isinstance(densify_if_better(empty), SparseRows)
