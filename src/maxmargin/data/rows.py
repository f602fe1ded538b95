"""What is a training set once inside? Rows, dense or sparse, with the same verbs.

Both layouts answer in float64, whatever they were given: kernel values are differences
of large numbers, and float32 would lose them. Who knows how much is lost may ask for
their float32 copies.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from maxmargin._jit import jit, jit_fast
from maxmargin.data.row_verbs import dot
from maxmargin.data.sparse_meeting import sparse_dots
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

SMALL_CELLS = 1 << 22  # 32 MB written out
NARROW = 192  # columns: dense rows this short have float32 kernel values from registers
# Of nonzero values. A product costs 0.06 ns a stored value of one row, and 0.02 to 0.04
# ns a column by BLAS (AMD EPYC, AVX-512; half of a symmetric matrix).
DENSE_SHARE = 0.3
CITY_BLOCK, SQUARED = 1, 2  # powers of a distance
BLOCK_CELLS = 1 << 16  # of a copy that is made block by block


class DenseRows:
    """Rows of a C-ordered matrix."""

    def __init__(
        self,
        values: Any,
        norms: FloatVector | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.values: FloatMatrix = np.ascontiguousarray(values, dtype=dtype)
        self._norms = norms

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_columns(self) -> int:
        return int(self.values.shape[1])

    @property
    def n_values(self) -> int:
        """Stored values."""
        return int(self.values.size)

    def norms_about(self, middle: FloatVector) -> FloatVector:
        """|x_i - middle|², block by block."""
        blocks = self._blocks()
        return np.concatenate([self._moved(block, middle)[1] for block in blocks])

    def single(self, middle: FloatVector) -> DenseRows:
        """Rows minus `middle` in float32, block by block."""
        out = np.empty(self.values.shape, dtype=np.float32)
        for block in self._blocks():
            out[block] = self._moved(block, middle)[0]
        return DenseRows(out, dtype=np.float32)

    def _blocks(self) -> list[slice]:
        step = max(1, BLOCK_CELLS // max(self.n_columns, 1))
        return [slice(k, k + step) for k in range(0, len(self), step)]

    def _moved(
        self, block: slice, middle: FloatVector
    ) -> tuple[FloatMatrix, FloatVector]:
        values = self.values[block] - middle
        return values, np.einsum("ij,ij->i", values, values)

    def take(self, index: IntVector | slice) -> DenseRows:
        """These rows alone."""
        norms = self.squared_norms()[index]
        return DenseRows(self.values[index], norms, self.values.dtype)

    def centred_on(self, middle: FloatVector) -> DenseRows:
        """Rows minus `middle`: smaller norms, so less cancellation in distances."""
        return DenseRows(self.values - middle)

    def middle(self) -> FloatVector:
        """The mean row."""
        return self.values.mean(axis=0)

    def dots(self, other: Any, out: KernelMatrix | None = None) -> KernelMatrix:
        """<x_i, z_j> for every row here and every row of `other`."""
        return np.matmul(self.values, other.values.T, out=out)

    def squared_norms(self) -> FloatVector:
        """<x_i, x_i>, computed once."""
        if self._norms is None:
            self._norms = np.einsum("ij,ij->i", self.values, self.values)
        return self._norms

    def distances(self, other: Any, power: int) -> FloatMatrix:
        """Sum of |x_i - z_j| ** power over the columns, difference by difference."""
        out = np.empty((len(self), len(other)))
        _dense_distances(self.values, other.values, power == SQUARED, out)
        return out

    def weighted_sum(self, weight: FloatMatrix) -> FloatMatrix:
        """weight @ rows."""
        return weight @ self.values

    def times(self, columns: FloatMatrix) -> FloatMatrix:
        """rows @ columns, one row at a time: what else is asked for changes nothing."""
        out = np.empty((len(self), columns.shape[1]))
        _dense_times(self.values, np.ascontiguousarray(columns.T), out)
        return out

    def padded(self, n: int) -> DenseRows:
        """These rows and rows of zeros after them, n in all."""
        if len(self) == n:
            return self
        values = np.zeros((n, self.n_columns))
        values[: len(self)] = self.values
        return DenseRows(values)


class SparseRows:
    """Rows of a CSR matrix with sorted int32 or int64 indices and no duplicates.

    `indptr` may begin anywhere, so that neighbouring rows are taken without copying.
    """

    def __init__(
        self,
        parts: tuple[Any, Any, Any],
        n_columns: int,
        norms: FloatVector | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        data, self.indices, self.indptr = parts
        self.data: FloatVector = np.asarray(data, dtype=dtype)
        self.n_columns = n_columns
        self._norms = norms

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def parts(self) -> tuple[FloatVector, IntVector, IntVector]:
        """data, indices, indptr."""
        return self.data, self.indices, self.indptr

    @property
    def n_values(self) -> int:
        """Stored values."""
        return int(self.indptr[-1] - self.indptr[0])

    def single(self) -> SparseRows:
        """The same rows in float32."""
        return self._alike(self.parts, self.squared_norms(), np.float32)

    def _alike(
        self, parts: Any, norms: FloatVector, dtype: DTypeLike | None = None
    ) -> SparseRows:
        return SparseRows(parts, self.n_columns, norms, dtype or self.data.dtype)

    def take(self, index: IntVector | slice) -> SparseRows:
        """These rows alone."""
        norms = self.squared_norms()[index]
        if isinstance(index, slice):
            first, last, _ = index.indices(len(self))
            near = self.indptr[first : last + 1]
            return self._alike((self.data, self.indices, near), norms)
        first, n_values = self.indptr[index], np.diff(self.indptr)[index]
        indptr = np.zeros(len(index) + 1, dtype=self.indptr.dtype)
        np.cumsum(n_values, out=indptr[1:])
        where = np.arange(indptr[-1]) + np.repeat(first - indptr[:-1], n_values)
        return self._alike((self.data[where], self.indices[where], indptr), norms)

    def dense(self) -> DenseRows:
        """The same rows with their zeros written out."""
        values = np.zeros((len(self), self.n_columns))
        _write_out(*self.parts, values)
        return DenseRows(values)

    def dots(self, other: Any, out: KernelMatrix | None = None) -> KernelMatrix:
        """<x_i, z_j> for every row here and every row of `other`."""
        if out is None:
            out = np.empty((len(self), len(other)), dtype=self.data.dtype)
        sparse_dots(self.parts, other.parts, self.n_columns, out)
        return out

    def squared_norms(self) -> FloatVector:
        """<x_i, x_i>, computed once."""
        if self._norms is None:
            norms = np.zeros(len(self))
            _sparse_squared_norms(self.data, self.indptr, norms)
            self._norms = norms  # only now: other threads may be reading
        return self._norms

    def distances(self, other: Any, power: int) -> FloatMatrix:
        """Sum of |x_i - z_j| ** power over the columns, difference by difference."""
        out = np.empty((len(self), len(other)))
        _sparse_distances(self.parts, other.parts, power == SQUARED, out)
        return out

    def weighted_sum(self, weight: FloatMatrix) -> FloatMatrix:
        """weight @ rows, dense."""
        out = np.zeros((len(weight), self.n_columns))
        _sparse_weighted_sum(*self.parts, weight, out)
        return out

    def times(self, columns: FloatMatrix) -> FloatMatrix:
        """rows @ columns, dense."""
        out = np.zeros((len(self), columns.shape[1]))
        _sparse_times(*self.parts, columns, out)
        return out


Rows: TypeAlias = DenseRows | SparseRows


def as_rows(X: Any) -> Rows:
    """Rows of a validated matrix: a NumPy array, or CSR."""
    if isinstance(X, np.ndarray):
        return DenseRows(X)
    return SparseRows((X.data, X.indices, X.indptr), X.shape[1])


def densify_if_better(rows: Rows) -> Rows:
    """Dense where that is small and narrow, or hardly larger.

    Narrow small sparse sets thus give the same bytes as their dense twins.
    """
    if isinstance(rows, DenseRows):
        return rows
    n_cells = len(rows) * rows.n_columns
    is_small = rows.n_columns <= NARROW and n_cells <= SMALL_CELLS
    if is_small or rows.n_values >= DENSE_SHARE * n_cells:
        return rows.dense()
    return rows


@jit
def _dense_times(values: FloatMatrix, columns: FloatMatrix, out: FloatMatrix) -> None:
    for i in range(out.shape[0]):
        for m in range(out.shape[1]):
            out[i, m] = dot(values[i], columns[m])


@jit
def _dense_distances(
    a: FloatMatrix, b: FloatMatrix, is_squared: bool, out: FloatMatrix
) -> None:
    for i in range(len(a)):
        for j in range(len(b)):
            out[i, j] = _distance(a[i], b[j], is_squared)


@jit_fast
def _distance(x: FloatVector, z: FloatVector, is_squared: bool) -> float:
    total = 0.0
    if is_squared:
        for k in range(x.size):
            total += (x[k] - z[k]) * (x[k] - z[k])
    else:
        for k in range(x.size):
            total += abs(x[k] - z[k])
    return total


@jit
def _write_out(
    data: FloatVector, indices: IntVector, indptr: IntVector, out: FloatMatrix
) -> None:
    for i in range(len(out)):
        for p in range(indptr[i], indptr[i + 1]):
            out[i, indices[p]] = data[p]


@jit
def _sparse_squared_norms(
    data: FloatVector, indptr: IntVector, out: FloatVector
) -> None:
    for i in range(len(out)):
        for p in range(indptr[i], indptr[i + 1]):
            out[i] += data[p] * data[p]


@jit
def _sparse_distances(
    a: tuple[FloatVector, IntVector, IntVector],
    b: tuple[FloatVector, IntVector, IntVector],
    is_squared: bool,
    out: FloatMatrix,
) -> None:
    """Merge two sorted rows at a time."""
    a_data, a_indices, a_indptr = a
    b_data, b_indices, b_indptr = b
    for i in range(out.shape[0]):
        x = slice(a_indptr[i], a_indptr[i + 1])
        for j in range(out.shape[1]):
            z = slice(b_indptr[j], b_indptr[j + 1])
            out[i, j] = _merged_distance(
                a_data[x], a_indices[x], b_data[z], b_indices[z], is_squared
            )


@jit
def _merged_distance(
    x: FloatVector,
    x_at: IntVector,
    z: FloatVector,
    z_at: IntVector,
    is_squared: bool,
) -> float:
    total, p, q = 0.0, 0, 0
    while p < len(x) or q < len(z):
        if q == len(z) or (p < len(x) and x_at[p] < z_at[q]):
            difference, p = x[p], p + 1
        elif p == len(x) or z_at[q] < x_at[p]:
            difference, q = z[q], q + 1
        else:
            difference, p, q = x[p] - z[q], p + 1, q + 1
        total += difference * difference if is_squared else abs(difference)
    return total


@jit
def _sparse_weighted_sum(
    data: FloatVector,
    indices: IntVector,
    indptr: IntVector,
    weight: FloatMatrix,
    out: FloatMatrix,
) -> None:
    for m in range(len(weight)):
        for i in range(weight.shape[1]):
            for p in range(indptr[i], indptr[i + 1]):
                out[m, indices[p]] += weight[m, i] * data[p]


@jit
def _sparse_times(
    data: FloatVector,
    indices: IntVector,
    indptr: IntVector,
    columns: FloatMatrix,
    out: FloatMatrix,
) -> None:
    for i in range(len(out)):
        for p in range(indptr[i], indptr[i + 1]):
            for m in range(columns.shape[1]):
                out[i, m] += data[p] * columns[indices[p], m]
