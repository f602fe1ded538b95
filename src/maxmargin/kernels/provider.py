"""What does decomposition ask of a kernel? Whole rows of K, and sums of them.

A provider extends the kernel matrix between members of a working set by new members,
and adds a weighted sum of rows of K to the gradient of all variables. How it comes by
kernel values is its own affair: in registers (`panel_rows`, `pair_panels`), in tiles
(`single`), from memory (`held`), or as here, in float64 by the Gram matrix.
"""

from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from maxmargin._threads import run_all
from maxmargin.kernels.single import ROUNDING
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

if TYPE_CHECKING:
    from maxmargin.kernels.gram import Gram

SPAN = 4096  # columns summed at a time: their sums stay in the first-level cache
BLOCK_ENTRIES = 1 << 21  # kernel values of rows that are not kept: 8 MB
EPSILON = float(np.finfo(np.float64).eps)


class KernelProvider(Protocol):
    """Rows of K as decomposition needs them, on threads."""

    products: float  # in one value: what it costs to compute it again
    errors: FloatVector  # of values of each row, at most, relative to the largest

    @property
    def n_bytes(self) -> int:
        """Memory that its copies of samples take."""

    def extend(self, rows: IntVector, n: int, square: KernelMatrix) -> None:
        """K between these rows, of which the first n have met already."""

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""

    def fill(
        self, rows: IntVector, columns: IntVector | None, out: KernelMatrix
    ) -> None:
        """K between these rows and columns; None is all columns."""

    def fill_square(self, out: KernelMatrix) -> None:
        """K between all rows."""


class GramRows:
    """Rows computed in float64, for kernels that float32 is not good enough for."""

    products = np.inf  # a row that is needed again is always kept
    n_bytes = 0

    def __init__(self, gram: "Gram", n_threads: int) -> None:
        self.gram, self.n_threads = gram, n_threads
        self.everything = np.arange(gram.n)
        self.errors: FloatVector = np.full(gram.n, ROUNDING)  # rows are kept in float32

    def fill(
        self, rows: IntVector, columns: IntVector | None, out: KernelMatrix
    ) -> None:
        """K between these rows and columns; None is all columns."""
        if columns is None:
            self.gram.fill(rows, self.everything, out)
            return
        wanted, place = np.unique(columns, return_inverse=True)
        values = np.empty((len(rows), len(wanted)), dtype=out.dtype)
        self.gram.fill(rows, wanted, values)
        np.take(values, place, axis=1, out=out)

    def extend(self, rows: IntVector, n: int, square: KernelMatrix) -> None:
        """K between these rows, of which the first n have met already."""
        m = len(rows)
        self.fill(rows[n:], rows, square[n:m, :m])
        copy_turned(square, (n, m), (0, n), square, (0, n))

    def fill_square(self, out: KernelMatrix) -> None:
        """K between all rows."""
        self.fill(self.everything, None, out)

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""
        step = max(1, BLOCK_ENTRIES // self.gram.n)
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            block = np.empty((len(rows[part]), self.gram.n), dtype=np.float32)
            self.fill(rows[part], None, block)
            own = np.arange(len(block))
            add_on_threads(block, own, weight[part], out, self.n_threads)


class LinearRows(GramRows):
    """A linear kernel: a weighted sum of its rows is X (Xᵀ w), exact to float64."""

    products = 0.0  # a vector w and its products with samples cost less than any row

    def __init__(self, gram: "Gram", n_threads: int) -> None:
        super().__init__(gram, n_threads)
        self.errors = np.full(gram.n, EPSILON)  # only the square is in float32

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""
        out += self.gram.sums(rows, weight, self.everything)


def add_on_threads(
    rows: KernelMatrix,
    at: IntVector,
    weight: FloatVector,
    out: FloatVector,
    n_threads: int,
) -> None:
    """out += the weighted sum of rows `at` of a matrix."""
    spans = [(k, min(k + SPAN, len(out))) for k in range(0, len(out), SPAN)]
    tasks = [partial(add_rows, rows, at, weight, span, out) for span in spans]
    run_all(tasks, n_threads)
