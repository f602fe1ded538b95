"""What if all of K is in memory, shared by many problems? Then rows are only read.

Searches for C solve dozens of problems on one kernel matrix, which differ in their
boxes alone. In float64, no slope is ever in doubt.
"""

from functools import cached_property

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.source import RowSource, no_source
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix


class HeldRows:
    """The verbs of `SingleRows`, without anything to compute."""

    products = 1.0  # reading a value costs no more than that
    n_bytes = 0  # nothing beyond what is shared

    def __init__(self, K: KernelMatrix) -> None:
        self.K = K
        self.errors = np.full(len(K), np.finfo(K.dtype).eps)

    def fill(
        self, rows: IntVector, columns: IntVector | None, out: KernelMatrix
    ) -> None:
        """K between these rows and columns; None is all columns."""
        if columns is None:
            out[...] = self.K[rows]
        else:
            take_block(self.K, rows, columns, out)

    def extend(self, rows: IntVector, n: int, square: KernelMatrix) -> None:
        """K between these rows, of which the first n have met already."""
        m = len(rows)
        take_block(self.K, rows[n:], rows, square[n:m])
        copy_turned(square, (n, m), (0, n), square, (0, n))

    def fill_square(self, out: KernelMatrix) -> None:
        """All of K."""
        out[...] = self.K

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""
        add_rows(self.K, rows, weight, (0, len(out)), out)


class HeldGram:
    """K in memory."""

    n_threads = 1  # problems are what threads share

    def __init__(self, K: KernelMatrix, bound: float | None = None) -> None:
        """`bound` is the largest value in size, where it is known."""
        self.n, self.K = len(K), K
        self._diagonal: FloatVector = K.diagonal().astype(np.float64)
        self._bound = float(max(K.max(), -K.min())) if bound is None else bound

    def diagonal(self) -> FloatVector:
        return self._diagonal

    def bound(self) -> float:
        return self._bound

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        whole_rows = len(columns) == self.n and columns[0] == 0
        out[...] = self.K[rows] if whole_rows else self.K[np.ix_(rows, columns)]

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        if not len(columns):
            return np.empty(0)
        span = int(columns.min()), int(columns.max()) + 1
        out = np.zeros(self.n)
        add_rows(self.K, rows, weight, span, out)
        return out[columns]

    def source(self, columns: IntVector) -> RowSource:
        return no_source()

    def single(self) -> HeldRows:
        return self._single

    @cached_property
    def _single(self) -> HeldRows:
        return HeldRows(self.K)

    def take(self, index: IntVector, room: FloatMatrix | None = None) -> "HeldGram":
        """K between these rows alone, written to a room if there is one."""
        K = np.empty((len(index), len(index))) if room is None else room
        _take_square(self.K, index, _run_ends(index), K)
        return HeldGram(K, self._bound)


def _run_ends(index: IntVector) -> IntVector:
    """Where neighbours cease to follow each other, and the end."""
    return np.append(np.flatnonzero(np.diff(index) != 1) + 1, len(index))


@jit
def _take_square(
    K: KernelMatrix, index: IntVector, ends: IntVector, out: KernelMatrix
) -> None:
    """out = K between these rows, a run of neighbours at a time."""
    for i in range(len(index)):
        source, target, first = K[index[i]], out[i], 0
        for last in ends:
            run = index[first]
            target[first:last] = source[run : run + last - first]
            first = last


@jit
def take_block(
    K: KernelMatrix, rows: IntVector, columns: IntVector, out: KernelMatrix
) -> None:
    """out = K between these rows and columns."""
    for i in range(len(rows)):
        source, target = K[rows[i]], out[i]
        for j in range(len(columns)):
            target[j] = source[columns[j]]
