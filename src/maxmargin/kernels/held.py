"""What if all of K is in memory, shared by many problems? Then rows are only read.

Searches for C solve dozens of problems on one kernel matrix, which differ in their
boxes alone. In float64, no slope is ever in doubt. Those of two classes read their part
of K where it stands.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin.kernels.source import RowSource
from maxmargin.kernels.sums import add_rows_from, dot
from maxmargin.kernels.tiles import is_all
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

POSITIVE = 1.0 + 1e-6  # times the largest K_ii: definite kernels have no larger value
SHORT = 16  # columns that stand together: fewer are not worth a pass of their own


class Part(NamedTuple):
    """K between some samples, in the rows and columns of more."""

    K: KernelMatrix
    at: IntVector  # where the samples are in K
    ends: IntVector  # of runs of samples that are neighbours in K too


def part_of_kernel(K: KernelMatrix, index: IntVector) -> Part:
    """K between the samples there."""
    return Part(K, index, run_ends(index))


def run_ends(index: IntVector) -> IntVector:
    """Where runs of neighbours end."""
    is_last = np.ones(len(index), dtype=np.bool_)
    is_last[:-1] = index[1:] != index[:-1] + 1
    return np.flatnonzero(is_last) + 1


def _run_length(part: Part) -> float:
    """How many neighbours follow each other, on average."""
    return len(part.at) / max(len(part.ends), 1)


class HeldRows:
    """A provider that has nothing to compute."""

    products = 1.0  # reading a value costs no more than that
    n_bytes = 0  # nothing beyond what is shared

    def __init__(self, part: Part) -> None:
        self.part = part
        self.errors = np.full(len(part.at), np.finfo(part.K.dtype).eps)

    def fill(
        self, rows: IntVector, columns: IntVector | None, out: KernelMatrix
    ) -> None:
        """K between these rows and columns; None is all columns."""
        if columns is None:
            take_rows(self.part, rows, out)
        else:
            take_block(self.part, rows, columns, out)

    def extend(self, rows: IntVector, n: int, square: KernelMatrix) -> None:
        """K between these rows, of which the first n have met already."""
        m = len(rows)
        take_block(self.part, rows[n:], rows, square[n:m])
        copy_turned(square, (n, m), (0, n), square, (0, n))

    def fill_square(self, out: KernelMatrix) -> None:
        """All of K."""
        take_rows(self.part, np.arange(len(out)), out)

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""
        add_part(self.part, rows, weight, out)


class HeldGram:
    """K in memory."""

    n_threads = 1  # problems are what threads share
    shift: FloatVector | None = None

    def __init__(
        self,
        K: KernelMatrix,
        bound: float | None = None,
        index: IntVector | None = None,
    ) -> None:
        """`bound` is the largest value of K in size, where it is known.

        With an index, only the samples there count. Where the kernel is definite, they
        have a bound of their own, whatever distant samples are left out.
        """
        bound = float(max(K.max(), -K.min())) if bound is None else bound
        self._diagonal: FloatVector = K.diagonal().astype(np.float64)
        if index is None:
            index = np.arange(len(K))
        else:
            is_definite = bound <= POSITIVE * float(np.abs(self._diagonal).max())
            self._diagonal = self._diagonal[index]
            if is_definite:
                bound = float(np.abs(self._diagonal).max(initial=0.0))
        self.n, self.part, self._bound = len(index), part_of_kernel(K, index), bound

    @property
    def K(self) -> KernelMatrix:
        """Where it is stored."""
        return self.part.K

    def diagonal(self) -> FloatVector:
        return self._diagonal

    def bound(self) -> float:
        return self._bound

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        self._rows.fill(rows, None if is_all(columns, self.n) else columns, out)

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        if not len(columns):
            return np.empty(0)
        asked = part_of_kernel(self.K, self.part.at[columns])
        known = part_of_kernel(self.K, self.part.at[rows])
        out = np.zeros(len(columns))
        if _run_length(known) > max(_run_length(asked), SHORT):
            _dot_runs(known, asked.at, weight, out)
            return out
        if _run_length(asked) > SHORT:
            add_runs(asked, known.at, weight, out)
            return out
        everywhere = np.zeros(self.n)
        add_part(self.part, rows, weight, everywhere)
        return everywhere[columns]

    def image(self, weight: FloatVector) -> FloatVector:
        """K times a vector of which most may be zero."""
        support = np.flatnonzero(weight)
        return self.sums(support, weight[support], np.arange(self.n))

    def source(self, columns: IntVector) -> RowSource | None:
        return None

    def provider(self) -> HeldRows:
        return self._rows

    @cached_property
    def _rows(self) -> HeldRows:
        return HeldRows(self.part)

    def among(self, index: IntVector) -> "HeldGram":
        """K between these samples alone: where it is, if they stand together there."""
        own = HeldGram(self.K, self._bound, self.part.at[index])
        return own if _run_length(own.part) > SHORT else self.take(index)

    def take(self, index: IntVector) -> "HeldGram":
        """A copy of K between these samples alone."""
        own = HeldGram(self.K, self._bound, self.part.at[index])
        return HeldGram(copy_of(own.part), own.bound())


def copy_of(part: Part) -> KernelMatrix:
    """All of it, in rows of its own."""
    n = len(part.at)
    K: KernelMatrix = np.empty((n, n), dtype=part.K.dtype)
    take_rows(part, np.arange(n), K)
    return K


@jit
def take_rows(part: Part, rows: IntVector, out: KernelMatrix) -> None:
    """out = these rows of the part, a run of neighbours at a time."""
    for i in range(len(rows)):
        source, target, first = part.K[part.at[rows[i]]], out[i], 0
        for last in part.ends:
            run = part.at[first] - first
            for j in range(first, last):
                target[j] = source[run + j]
            first = last


@jit_new
def take_block(
    part: Part, rows: IntVector, columns: IntVector, out: KernelMatrix
) -> None:
    """out = K between these rows and columns of the part."""
    where = np.empty(len(columns), dtype=np.intp)
    for j in range(len(columns)):
        where[j] = part.at[columns[j]]
    for i in range(len(rows)):
        source, target = part.K[part.at[rows[i]]], out[i]
        for j in range(len(where)):
            target[j] = source[where[j]]


@jit_new
def add_part(
    part: Part, rows: IntVector, weight: FloatVector, out: FloatVector
) -> None:
    """out += the weighted sum of these rows of the part."""
    add_runs(part, part.at[rows], weight, out)


@jit
def add_runs(
    part: Part, rows: IntVector, weight: FloatVector, out: FloatVector
) -> None:
    """out += the weighted sum of rows of K at the part's columns."""
    first = 0
    for last in part.ends:
        add_rows_from(part.K, rows, weight, part.at[first], out[first:last])
        first = last


@jit
def _dot_runs(
    part: Part, rows: IntVector, weight: FloatVector, out: FloatVector
) -> None:
    """out = each of these rows of K, times the weights of the part's columns."""
    for i in range(len(rows)):
        first = 0
        for last in part.ends:
            run = part.at[first]
            own = part.K[rows[i]][run : run + last - first]
            out[i] += dot(own, weight[first:last])
            first = last
