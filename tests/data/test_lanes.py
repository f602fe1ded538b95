"""Do rows meet all classes at once as NumPy would have them do?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin._jit import jit
from maxmargin.data.design import Design
from maxmargin.data.lanes import LANES, lane_zeros, row_add_outer, row_times

N, D = 7, 13


@jit
def times(rows: Any, bias: float, W: Any, offset: Any, blocks: Any, out: Any) -> None:
    for i in range(len(out)):
        row_times((rows, i, bias), W, offset, blocks, out[i])


@jit
def outer(rows: Any, bias: float, W: Any, blocks: Any, step: Any) -> None:
    for i in range(len(step)):
        row_add_outer((rows, i, bias), W, blocks, step[i])


def draw(layout: str) -> tuple[Any, Any]:
    """Rows as compiled code sees them, and as one plain matrix with the bias."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
    X[3] = 0.0
    given = X if layout == "dense" else sp.csr_matrix(X)
    return Design(given, 1.5).rows, np.column_stack([X, np.full(N, 1.5)])


@pytest.mark.nojit
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 20, 51])
def test_products_are_those_of_the_listed_blocks(layout: str, n_classes: int) -> None:
    rows, X = draw(layout)
    rng = np.random.default_rng(1)
    W = lane_zeros(D + 1, n_classes)
    W[:] = rng.normal(size=W.shape)
    offset = rng.normal(size=W.shape[1])
    blocks = np.arange(W.shape[1] // LANES)[::-1][:6].copy()
    at = (LANES * blocks[:, None] + np.arange(LANES)).ravel()
    out = np.empty((N, len(at)))

    times(rows, 1.5, W, offset, blocks, out)
    moved = W.copy()
    outer(rows, 1.5, moved, blocks, out)

    assert np.allclose(out, X @ W[:, at] + offset[at])
    assert np.allclose(moved[:, at], W[:, at] + X.T @ out)
    others = np.setdiff1d(np.arange(W.shape[1]), at)
    assert np.array_equal(moved[:, others], W[:, others])


def test_rows_of_lanes_begin_cache_lines_and_hold_whole_blocks() -> None:
    W = lane_zeros(5, 20)

    assert W.shape == (5, 24)
    assert W.ctypes.data % 64 == 0
    assert W.flags.c_contiguous
    assert not W.any()
