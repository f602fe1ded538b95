"""How is a Gaussian kernel computed in registers? By products of strips and panels.

BLAS writes dot products to memory, and the exponential fetches them from there. For
rows of up to some hundred features that traffic costs more than the arithmetic. Here a
strip of four rows meets a panel of 64: their products are summed in registers, become
kernel values there, and are stored, or added up, at once. Strips and panels hold their
rows side by side, feature by feature. (`panel_code` has the inner loop.)

Where every digit counts, panels are in float64, and half as wide.
"""

from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import DTypeLike

from maxmargin._jit import PLAIN, jit, jit_new
from maxmargin.data.lanes import aligned_zeros
from maxmargin.kernels.panel_code import (
    IN_DOUBLE,
    IN_SINGLE,
    STRIP,
    add_block,
    store_block,
)
from maxmargin.kernels.single import Singles
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

PANEL, DOUBLE_PANEL = IN_SINGLE.panel, IN_DOUBLE.panel


def room_for(
    n: int, n_columns: int, width: int, dtype: DTypeLike = np.float32
) -> KernelMatrix:
    """Zeros for n rows in strips or panels of a width, in whole lines of the cache."""
    shape = -(-n // width), n_columns, width
    return aligned_zeros(shape[0] * shape[1] * shape[2], dtype).reshape(shape)


def exponents_for(
    values: FloatVector | Singles, width: int, dtype: DTypeLike = np.float32
) -> KernelMatrix:
    """Filled up with zeros to whole strips or panels."""
    out = aligned_zeros(-(-len(values) // width) * width, dtype)
    out[: len(values)] = values
    return out


@jit
def pack(values: FloatMatrix, middle: FloatVector, panels: KernelMatrix) -> None:
    """Rows of a matrix, less their middle, side by side in strips or panels."""
    width = panels.shape[2]
    for i in range(len(values)):
        row, panel, lane = values[i], panels[i // width], i % width
        for c in range(len(row)):
            panel[c, lane] = row[c] - middle[c]


@jit_new
def repack(panels: Singles, index: IntVector, packed: Singles) -> None:
    """Some rows of all panels, side by side in new strips or panels."""
    n_blocks, n_columns, width = packed.shape
    flat, place = panels.reshape(-1), np.empty(width, dtype=np.intp)
    for b in range(n_blocks):
        n_lanes = min(width, len(index) - b * width)
        for lane in range(n_lanes):
            k = index[b * width + lane]
            place[lane] = k // PANEL * n_columns * PANEL + k % PANEL
        for c in range(n_columns):
            row = packed[b, c]
            for lane in range(n_lanes):
                row[lane] = flat[place[lane] + c * PANEL]


@jit
def join_panels(first: Singles, n_first: int, second: Singles, out: Singles) -> None:
    """The n_first rows of some panels, and after them those of others, in one row."""
    n_columns = out.shape[1]
    for p in range(len(first)):
        for c in range(n_columns):
            _copy_lanes(first[p, c], (0, PANEL), out[p, c], 0)
    base, shift = n_first // PANEL, n_first % PANEL
    rest = PANEL - shift
    for p in range(len(second)):
        for c in range(n_columns):
            _copy_lanes(second[p, c], (0, rest), out[base + p, c], shift)
            if shift > 0 and base + p + 1 < len(out):
                _copy_lanes(second[p, c], (rest, PANEL), out[base + p + 1, c], 0)


@jit
def _copy_lanes(source: Singles, span: "Pair", target: Singles, place: int) -> None:
    for k in range(span[0], span[1]):
        target[place + k - span[0]] = source[k]


@jit
def cut_strips(panels: Singles, strips: Singles) -> None:
    """The same rows, in the same order, side by side in strips."""
    for p in range(len(panels)):
        first = p * PANEL // STRIP
        _cut_panel(panels[p], strips[first : first + PANEL // STRIP])


@jit
def _cut_panel(panel: Singles, strips: Singles) -> None:
    n_strips = len(strips)
    for c in range(len(panel)):
        row = panel[c]
        for k in range(n_strips * STRIP):
            strips[k // STRIP, c, k % STRIP] = row[k]


Pair = tuple[int, int]
Side = tuple[
    KernelMatrix, KernelMatrix
]  # strips or panels, and their part of the exponent


@jit_new
def store_values(
    strips: Side,
    panels: Side,
    twice: np.float32,
    out: Singles,
    spans: tuple[Pair, Pair],
    block: tuple[Pair, Pair],
) -> None:
    """Write the kernel between rows of strips and of panels to their place in `out`.

    Together they fill a block: its first row and column, and its shape. The spans are
    those of the strips and of the panels.
    """
    corner, shape = block
    room = np.empty((STRIP, PANEL), dtype=np.float32)
    for p in range(spans[1][0], spans[1][1]):
        width = min(PANEL, shape[1] - p * PANEL)
        left = corner[1] + p * PANEL
        for s in range(spans[0][0], spans[0][1]):
            height = min(STRIP, shape[0] - s * STRIP)
            top = corner[0] + s * STRIP
            if width == PANEL and height == STRIP:
                meet_and_store(strips, panels, (s, p), twice, out, (top, left))
                continue
            meet_and_store(strips, panels, (s, p), twice, room, (0, 0))
            copy_part(room, (height, width), out, (top, left))


@jit
def copy_part(room: Singles, shape: Pair, out: Singles, corner: Pair) -> None:
    """The first rows and columns of a block, to `out` from a corner on."""
    for i in range(shape[0]):
        for j in range(shape[1]):
            out[corner[0] + i, corner[1] + j] = room[i, j]


@jit
def add_values(
    strips: Side,
    panels: Side,
    twice: np.floating[Any],
    weight: FloatVector,
    out: FloatVector,
    spans: tuple[Pair, Pair],
) -> None:
    """out += the weighted sum of rows; weight and out fill strips and panels up."""
    for p in range(spans[1][0], spans[1][1]):
        for s in range(spans[0][0], spans[0][1]):
            meet_and_add(strips, panels, (s, p), twice, weight, out)


def meet_and_store(
    strips: Side,
    panels: Side,
    which: Pair,
    twice: np.float32,
    out: Singles,
    corner: Pair,
) -> None:
    """The kernel of one strip and one panel, written to `out` from a corner on."""
    top, left = corner
    out[top : top + STRIP, left : left + PANEL] = _values(strips, panels, which, twice)


def meet_and_add(
    strips: Side,
    panels: Side,
    which: Pair,
    twice: np.float32,
    weight: FloatVector,
    out: FloatVector,
) -> None:
    """The kernel of one strip and one panel, weighted and added to the panel's sums."""
    s, p = which
    values = _values(strips, panels, which, twice).astype(np.float64)
    width = values.shape[1]
    out[p * width : (p + 1) * width] += weight[s * STRIP : (s + 1) * STRIP] @ values


def _values(
    strips: Side, panels: Side, which: Pair, twice: np.floating[Any]
) -> KernelMatrix:
    s, p = which
    width = panels[0].shape[2]
    smallest = (IN_SINGLE if width == PANEL else IN_DOUBLE).smallest
    own = strips[1][s * STRIP : (s + 1) * STRIP]
    others = panels[1][p * width : (p + 1) * width]
    exponents = (own[:, None] + others) + twice * (strips[0][s].T @ panels[0][p])
    values: KernelMatrix = np.exp(np.clip(exponents, smallest, 0.0))
    return values


@overload(meet_and_store, jit_options=PLAIN)
def _compile_store(
    strips: Any, panels: Any, which: Any, twice: Any, out: Any, corner: Any
) -> Any:
    def store(
        strips: Any, panels: Any, which: Any, twice: Any, out: Any, corner: Any
    ) -> Any:
        place = corner[0] * out.shape[1] + corner[1]
        ends = which[0], which[1], strips[0].shape[1]
        store_block(strips, panels, ends, twice, (out, place, out.shape[1]))

    return store


@overload(meet_and_add, jit_options=PLAIN)
def _compile_add(
    strips: Any, panels: Any, which: Any, twice: Any, weight: Any, out: Any
) -> Any:
    def add(
        strips: Any, panels: Any, which: Any, twice: Any, weight: Any, out: Any
    ) -> Any:
        ends = which[0], which[1], strips[0].shape[1]
        add_block(strips, panels, ends, twice, (weight, out))

    return add
