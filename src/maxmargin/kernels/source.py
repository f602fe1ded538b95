"""How does compiled code compute a row of K by itself?

For small dense sets a row costs less than the trip to Python and back. The samples lie
column by column there, so that one sweep per feature serves all of them.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin.data.row_verbs import add_multiple
from maxmargin.data.rows import DenseRows
from maxmargin.kernels.elementwise import integer_power, rbf_row
from maxmargin.kernels.functions import RBF, Kernel, Linear, Polynomial, Sigmoid
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

LINEAR, POLYNOMIAL, GAUSSIAN, SIGMOID, IN_MEMORY = 0, 1, 2, 3, 4
SPAN = 1024  # samples at a time: their sums stay in the first-level cache


class RowSource(NamedTuple):
    """Samples by column, and the kernel as numbers.

    Of kind IN_MEMORY, `columns` is all of K, and sample i is row `place[i]` of it.
    """

    kind: int
    gamma: float
    coef0: float
    degree: int
    columns: FloatMatrix  # features x samples
    norms: FloatVector
    place: IntVector


def memory_source(K: FloatMatrix, place: IntVector) -> RowSource:
    """Rows of a matrix in memory, at some of its columns."""
    return RowSource(IN_MEMORY, 0.0, 0.0, 0, K, np.empty(0), place)


def make_source(kernel: Kernel, rows: DenseRows) -> RowSource | None:
    """The source of rows over these samples; None where Python must compute."""
    kinds = {Linear: LINEAR, Polynomial: POLYNOMIAL, RBF: GAUSSIAN, Sigmoid: SIGMOID}
    kind = kinds.get(type(kernel))
    if kind is None:
        return None
    return RowSource(
        kind=kind,
        gamma=float(getattr(kernel, "gamma", 0.0)),
        coef0=float(getattr(kernel, "coef0", 0.0)),
        degree=int(getattr(kernel, "degree", 0)),
        columns=np.ascontiguousarray(rows.values.T),
        norms=np.ascontiguousarray(rows.squared_norms()),
        place=np.empty(0, dtype=np.intp),
    )


def keep_samples(source: RowSource | None, keep: IntVector) -> RowSource | None:
    """The source over fewer samples."""
    if source is None:
        return None
    columns = np.ascontiguousarray(source.columns[:, keep])
    return source._replace(columns=columns, norms=source.norms[keep])


@jit_new
def compute_row(source: RowSource, i: int, row: KernelMatrix) -> None:
    """K between sample i and all samples; zero where the row is longer."""
    columns = source.columns
    if source.kind == IN_MEMORY:
        n = len(source.place)
        _gather_row(columns[source.place[i]], source.place, row[:n])
        _fill(row[n:], 0.0)
        return
    n, sums = columns.shape[1], np.empty(SPAN)
    _fill(row[n:], 0.0)
    for first in range(0, n, SPAN):
        last = min(first + SPAN, n)
        dots = sums[: last - first]
        _fill(dots, 0.0)
        for k in range(columns.shape[0]):
            add_multiple(columns[k][first:last], columns[k, i], dots)
        if source.kind == GAUSSIAN:
            norms = source.norms
            rbf_row(dots, norms[i], norms[first:last], source.gamma, row[first:last])
        else:
            _of_dots(source, dots, row[first:last])


@jit
def _gather_row(values: FloatVector, place: IntVector, row: KernelMatrix) -> None:
    for j in range(row.size):
        row[j] = values[place[j]]


@jit
def _fill(values: KernelMatrix, number: float) -> None:
    for j in range(values.size):
        values[j] = number


@jit
def _of_dots(source: RowSource, dots: FloatVector, row: KernelMatrix) -> None:
    gamma, coef0, degree = source.gamma, source.coef0, source.degree
    for j in range(dots.size):
        inner = gamma * dots[j] + coef0
        if source.kind == LINEAR:
            row[j] = dots[j]
        elif source.kind == SIGMOID:
            row[j] = math.tanh(inner)
        else:
            row[j] = integer_power(inner, degree)
