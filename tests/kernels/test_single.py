"""Are float32 kernel values as good as they say?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.data.rows import DenseRows
from maxmargin.kernels import RBF, VectorGram
from maxmargin.kernels.gram import gram_block
from maxmargin.kernels.memory import forget_spares, pass_on, promised_square
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.kernels.single import SingleRows
from maxmargin.kernels.turning import copy_turned

Floats = npt.NDArray[np.float64]

KINDS = ["narrow", "wide", "wider", "heavy tails", "far away", "equal rows"]


def draw(kind: str, n: int = 700) -> Floats:
    rng = np.random.default_rng(0)
    if kind in ("wide", "wider"):
        return rng.normal(size=(n, 300 if kind == "wide" else 400)) / 12.0
    X = rng.normal(size=(n, 5))
    if kind == "heavy tails":
        return 0.5 * rng.standard_t(5, size=(n, 5))
    if kind == "far away":
        return X + 30.0
    return X[rng.integers(0, 20, size=n)] if kind == "equal rows" else X


def both(kind: str, gamma: float) -> tuple[SingleRows | PanelRows, Floats]:
    """Kernel values in float32, and the same in float64."""
    gram = VectorGram(RBF(gamma), DenseRows(draw(kind)))
    single = gram.provider()
    assert single is not None
    everything = np.arange(gram.n)
    return single, gram_block(gram, everything, everything)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("kind", KINDS)
def test_no_value_is_further_off_than_said(kind: str, gamma: float) -> None:
    single, K = both(kind, gamma)
    out = np.empty(K.shape, dtype=np.float32)

    single.fill_square(out)

    assert np.all(np.abs(out - K) <= single.errors[:, None])
    assert np.median(single.errors) <= 1e-4
    assert np.all((out >= 0.0) & (out <= 1.0))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("kind", ["narrow", "wide", "wider"])
def test_every_way_to_ask_gives_the_same(kind: str, n_threads: int) -> None:
    single, K = both(kind, 0.1)
    single.n_threads = n_threads
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(K))[:600], rng.permutation(len(K))[:50]
    weight, total = rng.normal(size=600), np.zeros(len(K))
    square = np.empty(K.shape, dtype=np.float32)
    block = np.empty((600, 50), dtype=np.float32)

    single.fill_square(square)
    single.fill(rows, columns, block)
    single.add_rows(rows, weight, total)

    grown = np.zeros((700, 700), dtype=np.float32)
    grown[:40, :40] = square[np.ix_(rows[:40], rows[:40])]
    single.extend(rows, 40, grown)

    np.testing.assert_allclose(block, square[np.ix_(rows, columns)], atol=1e-6)
    np.testing.assert_allclose(grown[:600, :600], square[np.ix_(rows, rows)], atol=1e-6)
    assert not grown[600:].any() and not grown[:, 600:].any()
    np.testing.assert_allclose(total, weight @ K[rows], atol=1e-4)
    np.testing.assert_allclose(square, square.T, atol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 40), (16, 16), (37, 50)])
def test_blocks_are_turned(m: int, n: int) -> None:
    source = np.arange(60.0 * 60.0).reshape(60, 60)
    out = np.zeros((80, 80))

    copy_turned(source, (2, 2 + m), (5, 5 + n), out, (7, 9))

    expected = np.zeros((80, 80))
    expected[7 : 7 + n, 9 : 9 + m] = source[2 : 2 + m, 5 : 5 + n].T
    assert np.array_equal(out, expected)


def test_memory_is_passed_on_and_given_back() -> None:
    forget_spares()
    first = promised_square(50)
    address = first.ctypes.data

    pass_on(first)
    smaller = promised_square(30)
    other = promised_square(30)

    assert smaller.shape == (30, 30)
    assert smaller.ctypes.data == address
    assert other.ctypes.data != address
    pass_on(other)
    forget_spares()
    assert promised_square(0).shape == (0, 0)


def test_large_squares_are_promised_only() -> None:
    square = promised_square(20_000)  # 1.6 GB, were it written to

    square[0, :10] = 1.0
    square[-1, -1] = 2.0

    assert square[0, :10].sum() + square[-1, -1] == 12.0
    pass_on(square)
    assert promised_square(10).base is not square.base
