"""Is a strip that meets a panel the kernel of their rows?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.kernels.panel_code import STRIP
from maxmargin.kernels.panels import (
    DOUBLE_PANEL,
    PANEL,
    Side,
    add_values,
    exponents_for,
    pack,
    repack,
    room_for,
    store_values,
)

Floats = npt.NDArray[np.float64]

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]
GAMMA = 0.3
every_shape = pytest.mark.parametrize(
    ("m", "n", "d"),
    [(1, 1, 1), (STRIP, PANEL, 3), (STRIP + 1, PANEL + 1, 7), (11, 2 * PANEL - 3, 16)],
)


def draw(m: int, n: int, d: int) -> tuple[Side, Side, Floats]:
    """Strips of some rows, panels of all, and the kernel between them."""
    rng = np.random.default_rng(m + n + d)
    X, middle = rng.normal(size=(n, d)), rng.normal(size=d)
    index = rng.integers(0, n, size=m)
    panels, strips = room_for(n, d, PANEL), room_for(m, d, STRIP)
    pack(X, middle, panels)
    repack(panels, index, strips)
    norms = np.square(X - middle).sum(axis=1)
    squared = np.square(X[index, None] - X).sum(axis=2)
    own = strips, exponents_for(-GAMMA * norms[index], STRIP)
    others = panels, exponents_for(-GAMMA * norms, PANEL)
    return own, others, np.exp(-GAMMA * squared)


def spans(strips: Side, panels: Side) -> tuple[tuple[int, int], tuple[int, int]]:
    return (0, len(strips[0])), (0, len(panels[0]))


@every_shape
def test_values_are_stored_and_nothing_beside_them(m: int, n: int, d: int) -> None:
    strips, panels, K = draw(m, n, d)
    out = np.full((m, n), 7.0, dtype=np.float32)

    twice = np.float32(2.0 * GAMMA)
    store_values(strips, panels, twice, out, spans(strips, panels), ((0, 0), out.shape))

    np.testing.assert_allclose(out, K, atol=1e-5)


@every_shape
def test_sums_are_those_of_the_values(m: int, n: int, d: int) -> None:
    strips, panels, K = draw(m, n, d)
    weight = np.zeros(len(strips[1]))
    weight[:m] = np.random.default_rng(0).normal(size=m)
    out = np.ones(len(panels[1]))

    twice = np.float32(2.0 * GAMMA)
    add_values(strips, panels, twice, weight, out, spans(strips, panels))

    np.testing.assert_allclose(out[:n], 1.0 + weight[:m] @ K, atol=1e-4)


@every_shape
def test_sums_in_float64_have_all_digits(m: int, n: int, d: int) -> None:
    rng = np.random.default_rng(m + n + d)
    X, Z, nothing = rng.normal(size=(n, d)), rng.normal(size=(m, d)), np.zeros(d)
    panels = room_for(n, d, DOUBLE_PANEL, np.float64)
    strips = room_for(m, d, STRIP, np.float64)
    pack(X, nothing, panels)
    pack(Z, nothing, strips)
    norms = [-GAMMA * np.square(rows).sum(axis=1) for rows in (Z, X)]
    own = strips, exponents_for(norms[0], STRIP, np.float64)
    others = panels, exponents_for(norms[1], DOUBLE_PANEL, np.float64)
    weight, out = np.zeros(len(own[1])), np.zeros(len(others[1]))
    weight[:m] = rng.normal(size=m)

    add_values(own, others, np.float64(2.0 * GAMMA), weight, out, spans(own, others))

    K = np.exp(-GAMMA * np.square(Z[:, None] - X).sum(axis=2))
    np.testing.assert_allclose(out[:n], weight[:m] @ K, atol=1e-13)


@pytest.mark.parametrize("exponent", [0.0, -1e-3, -1.0, -20.0, -86.0, -88.0, -1e4])
def test_exponentials_near_and_far(exponent: float) -> None:
    strips = room_for(1, 1, STRIP), exponents_for(np.array([exponent]), STRIP)
    panels = room_for(1, 1, PANEL), exponents_for(np.zeros(1), PANEL)
    out = np.empty((1, 1), dtype=np.float32)

    store_values(
        strips, panels, np.float32(1.0), out, ((0, 1), (0, 1)), ((0, 0), (1, 1))
    )

    expected = np.exp(max(exponent, -87.0))
    assert out[0, 0] == pytest.approx(expected, rel=5e-6 if exponent < -1 else 3e-7)


def test_rows_lie_in_whole_lines_of_the_cache() -> None:
    assert room_for(100, 3, PANEL).ctypes.data % 64 == 0
    assert exponents_for(np.zeros(5), PANEL).ctypes.data % 64 == 0
    assert exponents_for(np.ones(5), PANEL)[5:].sum() == 0.0
