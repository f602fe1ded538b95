"""How is the kernel between many rows computed? In float64, by tiles, on threads."""

from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.rows import DenseRows, Rows, SparseRows
from maxmargin.kernels.double_panels import sum_in_panels
from maxmargin.kernels.functions import RBF, Kernel, Linear
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

TILE_ROWS = 64
TILE_ENTRIES = 1 << 16  # a tile of float64 nearly fits the second-level cache
SQUARE_ROWS, SPARSE_SQUARE_ROWS = 128, 1024  # of tiles of a symmetric matrix
VALUE_PRODUCTS = 20  # what an exponential costs
THREAD_PRODUCTS = 1e7  # half a millisecond: with fewer, a thread comes too late
BLOCK_ENTRIES = 1 << 21  # kernel values written out at once: 16 MB
WIDEST = 192  # columns: of longer rows, BLAS makes products faster


def is_all(index: IntVector, n: int) -> bool:
    """Whether these are all of n, in their order."""
    return len(index) == n and bool((index == np.arange(n)).all())


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


def symmetric(kernel: Kernel, rows: Rows, n_threads: int) -> FloatMatrix:
    """The kernel between all rows: half is computed, the rest copied."""
    n, step = len(rows), _step(rows)
    out = np.empty((n, n))
    corners = [(i, j) for i in range(0, n, step) for j in range(i, n, step)]
    parts = [rows.take(slice(i, i + step)) for i in range(0, n, step)]
    tasks = [
        partial(_fill_both, kernel, parts[i // step], parts[j // step], out, i, j)
        for i, j in corners
    ]
    n_products = 0.5 * n * (rows.n_values + VALUE_PRODUCTS * n)
    run_all(tasks, n_threads if n_products > THREAD_PRODUCTS else 1)
    return out


def _fill_both(
    kernel: Kernel, a: Rows, b: Rows, out: FloatMatrix, i: int, j: int
) -> None:
    """A tile and, unless it is on the diagonal, its transpose."""
    raise_if_stopped()
    kernel.fill(a, b, out, (i, j))
    if i != j:
        copy_turned(out, (i, i + len(a)), (j, j + len(b)), out, (j, i))


def rectangle(kernel: Kernel, a: Rows, b: Rows) -> FloatMatrix:
    """The kernel between all rows of a and b."""
    step = _step(a)
    out = np.empty((len(a), len(b)))
    for i in range(0, len(a), step):
        own = a.take(slice(i, i + step))
        for j in range(0, len(b), step):
            raise_if_stopped()
            kernel.fill(own, b.take(slice(j, j + step)), out, (i, j))
    return out


def _step(rows: Rows) -> int:
    """Sparse rows need a buffer of all columns for every tile: fewer are better."""
    return SPARSE_SQUARE_ROWS if isinstance(rows, SparseRows) else SQUARE_ROWS


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
    others = samples if is_all(columns, len(samples)) else samples.take(columns)
    if isinstance(kernel, Linear):
        w = samples.take(rows).weighted_sum(weight[None])
        return others.times(w.T)[:, 0]
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
