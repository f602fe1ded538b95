"""How are rows of K added up? A span of columns at a time, in float64."""

import numpy as np

from maxmargin._jit import jit, jit_fast
from maxmargin.data.row_verbs import add_multiple
from maxmargin.typing import FloatVector, IntVector, KernelMatrix


@jit
def add_rows(
    rows: KernelMatrix,
    at: IntVector,
    weight: FloatVector,
    span: tuple[int, int],
    out: FloatVector,
) -> None:
    """out += the weighted sum of rows in a span of columns."""
    add_rows_from(rows, at, weight, span[0], out[span[0] : span[1]])


@jit
def add_rows_from(
    rows: KernelMatrix, at: IntVector, weight: FloatVector, first: int, out: FloatVector
) -> None:
    """The same from this column on, as many as `out` has; four rows at a time."""
    last = first + len(out)
    n_fours = len(at) // 4 * 4
    for k in range(0, n_fours, 4):
        _add_four(
            (
                rows[at[k]][first:last],
                rows[at[k + 1]][first:last],
                rows[at[k + 2]][first:last],
                rows[at[k + 3]][first:last],
            ),
            (weight[k], weight[k + 1], weight[k + 2], weight[k + 3]),
            out,
        )
    for k in range(n_fours, len(at)):
        add_multiple(rows[at[k]][first:last], weight[k], out)


Four = tuple[KernelMatrix, KernelMatrix, KernelMatrix, KernelMatrix]


@jit_fast
def _add_four(
    rows: Four, weight: tuple[float, float, float, float], out: FloatVector
) -> None:
    a, b, c, d = rows
    p, q, r, s = weight
    for j in range(out.size):
        out[j] += (p * np.float64(a[j]) + q * np.float64(b[j])) + (
            r * np.float64(c[j]) + s * np.float64(d[j])
        )


@jit_fast
def dot(a: KernelMatrix, weight: FloatVector) -> float:
    """Part of a row times weights, in float64."""
    total = 0.0
    for j in range(weight.size):
        total += weight[j] * np.float64(a[j])
    return total


@jit
def total(values: FloatVector, n: int) -> float:
    """The sum of the first n, in their order."""
    found = 0.0
    for k in range(n):
        found += values[k]
    return found
