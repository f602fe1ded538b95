"""How does compiled code meet one row without knowing its layout?

Rows reach compiled code as a tuple: `(values,)` for a C-ordered matrix, `(data,
indices, indptr)` for CSR. Each verb has a body for either; the compiler picks one by
the length of the tuple, so that an algorithm is written once.

Positions in CSR are unsigned: a signed index is compared with 0 at every access, to
count from the end where it is negative, which makes a pass over a row a fifth slower.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin._jit import compiled_as, jit, jit_fast
from maxmargin.typing import FloatVector

RowParts = tuple[Any, ...]


def row_dot(rows: RowParts, i: int, w: FloatVector) -> float:
    """<x_i, w>, over the columns of x_i: w may be longer."""
    return _pick(rows, _dense_dot, _sparse_dot)(rows, i, w)


def row_add(rows: RowParts, i: int, step: float, w: FloatVector) -> None:
    """Add step * x_i to w."""
    _pick(rows, _dense_add, _sparse_add)(rows, i, step, w)


def row_add_weighted(
    rows: RowParts, i: int, step: float, weight: FloatVector, out: FloatVector
) -> None:
    """Add step * weight * x_i, value by value, to out."""
    _pick(rows, _dense_add_weighted, _sparse_add_weighted)(rows, i, step, weight, out)


def row_add_squares(rows: RowParts, i: int, step: float, out: FloatVector) -> None:
    """Add step * x_i², value by value, to out."""
    _pick(rows, _dense_add_squares, _sparse_add_squares)(rows, i, step, out)


def row_square(rows: RowParts, i: int) -> float:
    """<x_i, x_i>."""
    return _pick(rows, _dense_square, _sparse_square)(rows, i)


def _pick(rows: Any, dense: Callable[..., Any], sparse: Callable[..., Any]) -> Any:
    return dense if len(rows) == 1 else sparse


def _dense_dot(rows: Any, i: Any, w: Any) -> Any:
    return dot(rows[0][i], w)


def _sparse_dot(rows: Any, i: Any, w: Any) -> Any:
    """Four sums at a time, each in its own order: no vector of gathered values.

    Gather instructions are six times slower than scalar loads on processors that have
    been made safe against Gather Data Sampling.
    """
    data, indices, indptr = rows
    a = b = c = d = 0.0
    first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
    whole = last - ((last - first) & np.uintp(3))
    for p in range(first, whole, np.uintp(4)):
        q, r, s = p + np.uintp(1), p + np.uintp(2), p + np.uintp(3)
        a += data[p] * w[np.uintp(indices[p])]
        b += data[q] * w[np.uintp(indices[q])]
        c += data[r] * w[np.uintp(indices[r])]
        d += data[s] * w[np.uintp(indices[s])]
    for p in range(whole, last):
        a += data[p] * w[np.uintp(indices[p])]
    return (a + b) + (c + d)


def _dense_add(rows: Any, i: Any, step: Any, w: Any) -> Any:
    add_multiple(rows[0][i], step, w)


def _sparse_add(rows: Any, i: Any, step: Any, w: Any) -> Any:
    data, indices, indptr = rows
    for p in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
        w[np.uintp(indices[p])] += step * data[p]


def _dense_add_weighted(rows: Any, i: Any, step: Any, weight: Any, out: Any) -> Any:
    _plain_add_weighted(rows[0][i], step, weight, out)


def _sparse_add_weighted(rows: Any, i: Any, step: Any, weight: Any, out: Any) -> Any:
    data, indices, indptr = rows
    for p in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
        k = np.uintp(indices[p])
        out[k] += step * weight[k] * data[p]


def _dense_add_squares(rows: Any, i: Any, step: Any, out: Any) -> Any:
    _plain_add_squares(rows[0][i], step, out)


def _sparse_add_squares(rows: Any, i: Any, step: Any, out: Any) -> Any:
    data, indices, indptr = rows
    for p in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
        out[np.uintp(indices[p])] += step * np.float64(data[p]) * np.float64(data[p])


def _dense_square(rows: Any, i: Any) -> Any:
    return _squared_length(rows[0][i])


def _sparse_square(rows: Any, i: Any) -> Any:
    data, _, indptr = rows
    return _squared_length(data[indptr[i] : indptr[i + 1]])


@jit_fast
def dot(x: Any, w: FloatVector) -> float:
    """<x, w>, over the places of x."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * w[k]
    return total


@jit
def add_multiple(x: Any, step: float, w: FloatVector) -> None:
    """Add step * x to w."""
    for k in range(x.size):
        w[k] += step * x[k]


@jit
def _plain_add_weighted(
    x: Any, step: float, weight: FloatVector, out: FloatVector
) -> None:
    for k in range(x.size):
        out[k] += step * weight[k] * x[k]


@jit
def _plain_add_squares(x: Any, step: float, out: FloatVector) -> None:
    for k in range(x.size):
        out[k] += step * np.float64(x[k]) * np.float64(x[k])


@jit_fast
def _squared_length(x: Any) -> float:
    total = 0.0
    for k in range(x.size):
        total += np.float64(x[k]) * np.float64(x[k])
    return total


@compiled_as(row_dot)
def _compile_dot(rows: Any, i: Any, w: Any) -> Any:
    return _pick(rows, _dense_dot, _sparse_dot)


@compiled_as(row_add)
def _compile_add(rows: Any, i: Any, step: Any, w: Any) -> Any:
    return _pick(rows, _dense_add, _sparse_add)


@compiled_as(row_add_weighted)
def _compile_add_weighted(rows: Any, i: Any, step: Any, weight: Any, out: Any) -> Any:
    return _pick(rows, _dense_add_weighted, _sparse_add_weighted)


@compiled_as(row_add_squares)
def _compile_add_squares(rows: Any, i: Any, step: Any, out: Any) -> Any:
    return _pick(rows, _dense_add_squares, _sparse_add_squares)


@compiled_as(row_square)
def _compile_square(rows: Any, i: Any) -> Any:
    return _pick(rows, _dense_square, _sparse_square)
