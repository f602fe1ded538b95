"""Do sparse rows that meet side by side have their dot products?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data.rows import as_rows

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]


def draw(n: int, seed: int, index: Any = np.int32) -> sp.csr_matrix:
    """Rows of very different lengths, some of them empty."""
    rng = np.random.default_rng(seed)
    share = rng.choice([0.0, 0.05, 0.6], size=(n, 1))
    X = sp.csr_matrix(rng.normal(size=(n, 60)) * (rng.random((n, 60)) < share))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (33, 17), (70, 5)])
def test_dots_are_those_of_the_dense_rows(shape: tuple[int, int], index: Any) -> None:
    a, b = draw(shape[0], 0, index), draw(shape[1], 1, index)
    expected = a.toarray() @ b.toarray().T

    found = as_rows(a).dots(as_rows(b))
    single = as_rows(a).single().dots(as_rows(b).single())

    assert (found.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_allclose(single, expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (33, 17), (70, 5)])
def test_columns_that_occur_are_enough(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = as_rows(draw(shape[0], 0)), as_rows(draw(shape[1], 1))
    whole = a.dots(b)
    monkeypatch.setattr("maxmargin.data.sparse_meeting.MOST_BUFFER", 0)

    part = a.take(slice(0, shape[0])).dots(b)

    np.testing.assert_array_equal(part, whole)
    empty = as_rows(sp.csr_matrix((3, 60)))
    np.testing.assert_array_equal(empty.dots(b), np.zeros((3, shape[1])))


def test_rows_among_others_meet_as_they_do_alone() -> None:
    a, b = as_rows(draw(50, 2)), as_rows(draw(40, 3))
    whole = a.dots(b)

    part = a.take(slice(7, 41)).dots(b.take(np.array([39, 2, 11])))

    np.testing.assert_array_equal(part, whole[7:41][:, [39, 2, 11]])
