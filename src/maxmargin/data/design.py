"""What does a linear machine do with its samples? Five products, on threads.

A `Design` is X with a constant column at its end (none where `bias` is 0), read where
it lies: C-ordered or CSR, float32 or float64, never copied. Sums over rows are taken in
fixed chunks and added in order, so that the number of threads changes no byte of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._blas import add_square
from maxmargin._jit import jit
from maxmargin._threads import run_all
from maxmargin.data.row_verbs import (
    RowParts,
    row_add,
    row_add_squares,
    row_dot,
    row_square,
)
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

Span = tuple[int, int]  # first row and the one after the last

MOST_CHUNKS = 8
CHUNK_VALUES = 1 << 17  # stored values that are worth a thread's while
SQUARE_CELLS = 1 << 23  # all partial d x d sums together
TASK_PRODUCTS = 1 << 21  # worth a thread's while
TILE_CELLS = 1 << 19  # written out at once for BLAS


class Design:
    """Samples as rows, with the constant feature that carries the intercept."""

    def __init__(self, X: Any, bias: float = 0.0, n_threads: int = 1) -> None:
        self.X = X
        self.bias = float(bias)
        self.n_threads = n_threads
        self.n, self.n_features = X.shape
        self.n_columns = self.n_features + int(bias != 0.0)
        self.is_sparse = sp.issparse(X)

    @property
    def rows(self) -> RowParts:
        """The parts that compiled code sees."""
        if self.is_sparse:
            return self.X.data, self.X.indices, self.X.indptr
        return (self.X,)

    @property
    def n_values(self) -> int:
        """Stored values."""
        return int(self.X.nnz) if self.is_sparse else self.n * self.n_features

    @cached_property
    def squared_norms(self) -> FloatVector:
        """<x_i, x_i>, the constant column included."""
        out = np.empty(self.n)
        _norms(self.rows, self.bias * self.bias, out)
        return out

    @cached_property
    def square_cost(self) -> float:
        """Multiplications that one weighted XᵀX takes, in units of dense ones."""
        if self.is_sparse:
            counts = np.diff(self.X.indptr).astype(np.float64)
            return float(counts @ counts) * SCATTERED
        return 0.5 * float(self.n) * self.n_features**2

    @cached_property
    def chunks(self) -> list[Span]:
        """Ranges of rows, the same on every machine."""
        enough = max(CHUNK_VALUES, 4 * self.n_columns)
        return _ranges(self.n, min(MOST_CHUNKS, self.n_values // enough))

    def column_sizes(self) -> FloatVector:
        """The largest value of each column, without its sign."""
        if not self.is_sparse:
            return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(float)
        sizes = np.zeros(self.n_features)
        _largest(self.X.data, self.X.indices, sizes)
        return sizes

    def take(self, index: IntVector) -> Design:
        """These rows alone, copied."""
        return Design(self.X[index], self.bias, self.n_threads)

    def columns(self) -> RowParts:
        """The rows of Xᵀ, copied; the constant column is not among them."""
        if self.is_sparse:
            turned = self.X.tocsc()
            return turned.data, turned.indices, turned.indptr
        return (np.array(self.X.T, order="C"),)

    def times(self, w: FloatVector) -> FloatVector:
        """X w."""
        out = np.empty(self.n)
        self.in_chunks(lambda span: _times(self.rows, self.bias, w, span, out))
        return out

    def transposed_times(self, v: FloatVector) -> FloatVector:
        """Xᵀ v; rows where v is 0 cost nothing."""
        return self._sum(
            lambda span, out: _transposed(self.rows, self.bias, v, span, out)
        )

    def curved_times(self, theta: FloatVector, v: FloatVector) -> FloatVector:
        """Xᵀ diag(theta) X v, each row met once."""
        return self._sum(
            lambda span, out: _curved(self.rows, self.bias, theta, v, span, out)
        )

    def squares_times(self, theta: FloatVector) -> FloatVector:
        """The diagonal of Xᵀ diag(theta) X."""
        return self._sum(
            lambda span, out: _diagonal(self.rows, self.bias, theta, span, out)
        )

    def square(self, theta: FloatVector) -> FloatMatrix:
        """Xᵀ diag(theta) X; rows where theta is 0 cost nothing. Signs are allowed.

        Where theta is the same for all, the product is kept: every class begins there.
        """
        if theta[0] != 0.0 and (theta == theta[0]).all():
            return theta[0] * self._whole_square
        return self._square(theta)

    @cached_property
    def _whole_square(self) -> FloatMatrix:
        return self._square(np.ones(self.n))

    def _square(self, theta: FloatVector) -> FloatMatrix:
        at = np.flatnonzero(theta)
        d = self.n_columns
        room = max(2, SQUARE_CELLS // (d * d))
        work = int(self.square_cost * len(at) / self.n) // TASK_PRODUCTS
        ranges = _ranges(len(at), min(MOST_CHUNKS, room, work))
        add = self._add_scattered if self.is_sparse else self._add_tiles
        tasks = [partial(add, theta, at[a:b]) for a, b in ranges]
        parts = run_all(tasks, self.n_threads)
        total = parts[0]
        for part in parts[1:]:
            total += part
        mirror(total)
        return total

    def _add_tiles(self, theta: FloatVector, at: IntVector) -> FloatMatrix:
        """By BLAS, rows scaled by the root of |theta|, a tile at a time."""
        d = self.n_columns
        total = np.zeros((d, d))
        height = max(64, TILE_CELLS // d)
        room = np.empty((min(height, len(at)), d))
        for part in _by_sign(theta, at):
            sign = 1.0 if theta[part[0]] > 0.0 else -1.0
            for first in range(0, len(part), height):
                tile = part[first : first + height]
                scaled = room[: len(tile)]
                _scaled_rows(self.X, self.bias, theta, tile, scaled)
                add_square(sign, scaled, total)
        return total

    def _add_scattered(self, theta: FloatVector, at: IntVector) -> FloatMatrix:
        """By outer products of the few values that a sparse row has."""
        total = np.zeros((self.n_columns, self.n_columns))
        _outer_products(self.rows, self.bias, theta, at, total)
        return total

    def in_chunks(self, work: Callable[[Span], Any]) -> list[Any]:
        """What `work` returns for each range of rows, on threads."""
        tasks = [partial(work, span) for span in self.chunks]
        return run_all(tasks, self.n_threads)

    def _sum(self, add: Callable[[Span, FloatVector], None]) -> FloatVector:
        def part(span: Span) -> FloatVector:
            out = np.zeros(self.n_columns)
            add(span, out)
            return out

        parts = self.in_chunks(part)
        total: FloatVector = parts[0]
        for other in parts[1:]:
            total += other
        return total


SCATTERED = 8.0  # what a product of two sparse values costs, in products by BLAS


def _ranges(n: int, n_parts: int) -> list[Span]:
    edges = np.linspace(0, n, max(1, n_parts) + 1).astype(int).tolist()
    return list(pairwise(edges))


def _by_sign(theta: FloatVector, at: IntVector) -> list[IntVector]:
    is_positive = theta[at] > 0.0
    return [part for part in (at[is_positive], at[~is_positive]) if len(part)]


@jit
def _norms(rows: RowParts, constant: float, out: FloatVector) -> None:
    for i in range(len(out)):
        out[i] = row_square(rows, i) + constant


@jit
def _largest(data: FloatVector, indices: IntVector, out: FloatVector) -> None:
    for p in range(len(data)):
        out[indices[p]] = max(out[indices[p]], abs(data[p]))


@jit
def _times(
    rows: RowParts, bias: float, w: FloatVector, span: Span, out: FloatVector
) -> None:
    constant = bias * w[-1] if bias != 0.0 else 0.0
    for i in range(span[0], span[1]):
        out[i] = row_dot(rows, i, w) + constant


@jit
def _transposed(
    rows: RowParts, bias: float, v: FloatVector, span: Span, out: FloatVector
) -> None:
    total = 0.0
    for i in range(span[0], span[1]):
        if v[i] != 0.0:
            row_add(rows, i, v[i], out)
            total += v[i]
    if bias != 0.0:
        out[-1] += bias * total


@jit
def _curved(
    rows: RowParts,
    bias: float,
    theta: FloatVector,
    v: FloatVector,
    span: Span,
    out: FloatVector,
) -> None:
    constant = bias * v[-1] if bias != 0.0 else 0.0
    total = 0.0
    for i in range(span[0], span[1]):
        if theta[i] != 0.0:
            weight = theta[i] * (row_dot(rows, i, v) + constant)
            row_add(rows, i, weight, out)
            total += weight
    if bias != 0.0:
        out[-1] += bias * total


@jit
def _diagonal(
    rows: RowParts, bias: float, theta: FloatVector, span: Span, out: FloatVector
) -> None:
    total = 0.0
    for i in range(span[0], span[1]):
        if theta[i] != 0.0:
            row_add_squares(rows, i, theta[i], out)
            total += theta[i]
    if bias != 0.0:
        out[-1] += bias * bias * total


@jit
def _scaled_rows(
    values: FloatMatrix,
    bias: float,
    theta: FloatVector,
    at: IntVector,
    out: FloatMatrix,
) -> None:
    d = values.shape[1]
    for k in range(len(at)):
        root = np.sqrt(abs(theta[at[k]]))
        x, scaled = values[at[k]], out[k]
        for j in range(d):
            scaled[j] = root * x[j]
        if bias != 0.0:
            scaled[d] = root * bias


@jit
def _outer_products(
    rows: RowParts, bias: float, theta: FloatVector, at: IntVector, out: FloatMatrix
) -> None:
    """The lower triangle: the indices of a row are sorted."""
    data, indices, indptr = rows
    last = out.shape[1] - 1
    for k in range(len(at)):
        i = at[k]
        for p in range(indptr[i], indptr[i + 1]):
            row, weight = out[indices[p]], theta[i] * data[p]
            for q in range(indptr[i], p + 1):
                row[np.uintp(indices[q])] += weight * data[q]
            if bias != 0.0:
                out[last, indices[p]] += weight * bias
        if bias != 0.0:
            out[last, last] += theta[i] * bias * bias


@jit
def mirror(square: FloatMatrix) -> None:
    for i in range(len(square)):
        for j in range(i):
            square[j, i] = square[i, j]
