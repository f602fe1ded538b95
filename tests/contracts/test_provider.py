"""Does every provider of kernel values give the rows of K, however it is asked?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin._threads import one_blas_thread
from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Gram, Laplacian, Linear, MatrixGram, VectorGram
from maxmargin.kernels.arena import ROW_COSTS
from maxmargin.kernels.classes import Sizes, share_classes
from maxmargin.kernels.gram import gram_block
from maxmargin.kernels.held import HeldGram, HeldRows
from maxmargin.kernels.pair_panels import PairPanels
from maxmargin.kernels.panel_rows import WIDEST, PanelRows
from maxmargin.kernels.provider import GramRows, KernelProvider, LinearRows
from maxmargin.kernels.single import SingleRows

N = 130  # more than one panel, and not a multiple of a strip
ALL = np.arange(N)
ATOL = 2e-6  # of a value; rows are sums of 37


def vectors(kernel: Any, n_columns: int, layout: Any = np.asarray) -> VectorGram:
    X = np.random.default_rng(0).normal(size=(N, n_columns)) / np.sqrt(n_columns)
    if layout is sp.csr_matrix:
        X[np.abs(X) < 2.5 / np.sqrt(n_columns)] = 0.0
    return VectorGram(kernel, as_rows(layout(X)), 2)


def pair(n_columns: int) -> Gram:
    members = [np.arange(k, N, 3) for k in range(3)]
    gram = vectors(RBF(0.5), n_columns)
    return share_classes(gram, members, Sizes(0, N, 1 << 30, ROW_COSTS.short)).of(0, 2)


def matrix(kind: Any) -> Gram:
    gram: Gram = kind(gram_block(vectors(RBF(0.5), 5), ALL, ALL))
    return gram


PROVIDERS: dict[str, tuple[Callable[[], Gram], type]] = {
    "panels": (lambda: vectors(RBF(0.5), 5), PanelRows),
    "tiles of long rows": (lambda: vectors(RBF(0.5), WIDEST + 1), SingleRows),
    "tiles of sparse rows": (
        lambda: vectors(RBF(0.5), 9000, sp.csr_matrix),
        SingleRows,
    ),
    "two classes in panels": (lambda: pair(WIDEST // 2), PairPanels),
    "two classes joined": (lambda: pair(5), PanelRows),
    "linear": (lambda: vectors(Linear(), 5), LinearRows),
    "sparse linear": (lambda: vectors(Linear(), 9000, sp.csr_matrix), LinearRows),
    "float64": (lambda: vectors(Laplacian(0.5), 5), GramRows),
    "too sharp for float32": (lambda: vectors(RBF(1e4), 5), GramRows),
    "a matrix": (lambda: matrix(MatrixGram), GramRows),
    "in memory": (lambda: matrix(HeldGram), HeldRows),
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_gives_the_rows_of_the_kernel(name: str) -> None:
    make, kind = PROVIDERS[name]
    gram = make()
    provider: KernelProvider = gram.provider()
    n, rng = gram.n, np.random.default_rng(1)
    K = gram_block(gram, np.arange(n), np.arange(n))
    rows, columns = rng.permutation(n)[:37], rng.permutation(n)[:50]
    weight, total = rng.normal(size=len(rows)), np.ones(n)
    block = np.empty((len(rows), len(columns)), dtype=np.float32)
    whole, square = np.empty((n, n), np.float32), np.zeros((n, n), np.float32)

    with one_blas_thread():
        provider.fill(rows, columns, block)
        provider.fill_square(whole)
        for first, last in [(0, 20), (20, 21), (21, len(rows))]:
            provider.extend(rows[:last], first, square)
        provider.add_rows(rows, weight, total)

    m, atol = len(rows), ATOL * gram.bound()
    assert isinstance(provider, kind)
    assert provider.errors.shape == (n,) and (provider.errors < 1e-4).all()
    np.testing.assert_allclose(block, K[np.ix_(rows, columns)], rtol=0.0, atol=atol)
    np.testing.assert_allclose(whole, K, rtol=0.0, atol=atol)
    np.testing.assert_allclose(square[:m, :m], K[np.ix_(rows, rows)], atol=atol)
    assert not square[m:].any()
    np.testing.assert_allclose(total - 1.0, weight @ K[rows], atol=50.0 * atol)
