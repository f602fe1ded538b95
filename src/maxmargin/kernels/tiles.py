"""How is the kernel between many rows computed? In float64, by tiles, on threads."""

from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.rows import DenseRows, Rows
from maxmargin.kernels.double_panels import sum_in_panels
from maxmargin.kernels.functions import RBF, Kernel
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

TILE_ROWS = 64
TILE_ENTRIES = 1 << 16  # a tile of float64 nearly fits the second-level cache
BLOCK_ENTRIES = 1 << 21  # kernel values written out at once: 16 MB
WIDEST = 192  # columns: of longer rows, BLAS makes products faster


def fill_tiles(
    kernel: Kernel, a: Rows, b: Rows, out: KernelMatrix, n_threads: int
) -> None:
    """The kernel between all rows of a and b."""
    height = max(min(len(a), TILE_ROWS), 1)
    width = TILE_ENTRIES // height
    if len(a) <= height and len(b) <= width:
        kernel.fill(a, b, out, (0, 0))
        return
    tiles = [
        partial(
            _fill_tile, kernel, a, b, out, slice(i, i + height), slice(j, j + width)
        )
        for i in range(0, len(a), height)
        for j in range(0, len(b), width)
    ]
    run_all(tiles, n_threads)


def _fill_tile(
    kernel: Kernel, a: Rows, b: Rows, out: KernelMatrix, here: slice, there: slice
) -> None:
    raise_if_stopped()
    kernel.fill(a.take(here), b.take(there), out, (here.start, there.start))


def sum_rows(
    kernel: Kernel,
    samples: Rows,
    rows: IntVector,
    weight: FloatVector,
    columns: IntVector,
    n_threads: int,
) -> FloatVector:
    """The weighted sum of rows of K, between all samples, in some columns."""
    is_narrow = samples.n_columns <= WIDEST
    if isinstance(kernel, RBF) and isinstance(samples, DenseRows) and is_narrow:
        return sum_in_panels(kernel, samples, rows, weight, columns, n_threads)
    everything = len(columns) == len(samples) and columns[0] == 0
    others = samples if everything else samples.take(columns)
    out = np.zeros(len(columns))
    step = max(1, BLOCK_ENTRIES // max(len(columns), 1))
    room = np.empty((min(step, len(rows)), len(columns)))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        own = samples.take(rows[part])
        block = room[: len(own)]
        fill_tiles(kernel, own, others, block, n_threads)
        out += weight[part] @ block
    return out
