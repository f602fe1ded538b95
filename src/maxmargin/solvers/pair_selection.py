"""Which variables should move next? (Fan, Chen & Lin, JMLR 6, 2005.)

Sweeps run over slices handed to small functions whose bodies have no branch: that is
the form that LLVM turns into vector instructions. The winner's place is then looked up
in the winning slice in the same manner: which variable has that value? Arrays are
handed over one by one: taken out of a tuple, or handed on with one, they count
references, which costs more than the arithmetic.
"""

import numpy as np

from maxmargin._jit import jit, jit_fast, larger, smaller
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

SLICE = 256
SHORT_SLICE = 64  # variables: where the place of a maximum is looked up one by one
AS_GOOD = 1.0 - 1e-5  # of the best gain: float32 cannot distinguish it


@jit_fast
def bounds(
    grad: FloatVector, rise: FloatVector, fall: FloatVector
) -> tuple[float, float]:
    """(lowest slope of going up, highest slope of coming from below)."""
    lowest, highest = np.inf, -np.inf
    for k in range(grad.size):
        lowest = smaller(lowest, grad[k] + rise[k])
        highest = larger(highest, grad[k] + fall[k])
    return lowest, highest


@jit_fast
def add_difference(
    grad: FloatVector, row_i: KernelMatrix, row_j: KernelMatrix, step: float
) -> None:
    """grad += step (K_i - K_j), in float64 whatever the rows are."""
    for k in range(grad.size):
        grad[k] += step * (np.float64(row_i[k]) - np.float64(row_j[k]))


@jit_fast
def add_row(grad: FloatVector, row_i: KernelMatrix, step: float) -> None:
    """grad += step K_i."""
    for k in range(grad.size):
        grad[k] += step * np.float64(row_i[k])


@jit_fast
def best_pair_gain(
    grad: FloatVector,
    fall: FloatVector,
    diagonal: FloatVector,
    row_i: KernelMatrix,
    lowest: float,
    diagonal_i: float,
    min_curvature: float,
) -> float:
    """The largest slope² / curvature that a partner promises.

    Where rows are in float32, so is the gain: a choice needs no more, and costs half.
    """
    real = row_i.dtype.type
    best, zero, two, least = real(0.0), real(0.0), real(2.0), real(min_curvature)
    for k in range(grad.size):
        slope = larger(real(grad[k] + fall[k] - lowest), zero)
        curvature = real(diagonal_i + diagonal[k]) - two * row_i[k]
        best = larger(best, slope * slope / larger(curvature, least))
    return float(best)


@jit_fast
def place_of_lowest(grad: FloatVector, rise: FloatVector, lowest: float) -> int:
    """The first variable whose slope of going up is this one."""
    found = grad.size
    for k in range(grad.size):
        found = min(found, k if grad[k] + rise[k] == lowest else grad.size)
    return found


@jit_fast
def place_of_gain(
    grad: FloatVector,
    fall: FloatVector,
    diagonal: FloatVector,
    row_i: KernelMatrix,
    lowest: float,
    diagonal_i: float,
    min_curvature: float,
    gain: float,
) -> int:
    """The first variable that promises such a gain; their number, if none does."""
    for k in range(grad.size):
        slope = grad[k] + fall[k] - lowest
        curvature = diagonal_i + diagonal[k] - 2.0 * np.float64(row_i[k])
        enough = gain * larger(curvature, min_curvature)
        if (slope > 0.0) & (slope * slope >= enough):
            return k
    return grad.size


@jit
def find_highest(grad: FloatVector, fall: FloatVector, first: int, last: int) -> int:
    """The variable of a range whose slope of coming from below is highest."""
    best, found = -np.inf, first
    for k in range(first, last):
        slope = grad[k] + fall[k]
        if slope > best:
            best, found = slope, k
    return found


@jit
def worst_group(
    grad: FloatVector, rise: FloatVector, fall: FloatVector, start: IntVector
) -> tuple[int, int, float, float]:
    """(first of the slice with the lowest slope, group, lowest slope, violation)."""
    worst_slice, worst, worst_lowest, violation = 0, 0, 0.0, -np.inf
    for g in range(len(start) - 1):
        lowest, highest, in_slice = np.inf, -np.inf, start[g]
        for s in range(start[g], start[g + 1], SLICE):
            e = min(s + SLICE, start[g + 1])
            low, high = bounds(grad[s:e], rise[s:e], fall[s:e])
            highest = max(highest, high)
            if low < lowest:
                lowest, in_slice = low, s
        if highest - lowest > violation:
            violation = highest - lowest
            worst_slice, worst, worst_lowest = in_slice, g, lowest
    return worst_slice, worst, worst_lowest, violation


@jit
def second_order_partner(
    grad: FloatVector,
    fall: FloatVector,
    diagonal: FloatVector,
    row_i: KernelMatrix,
    own: float,
    ends: tuple[int, int],
    lowest: float,
    least: float,
) -> int:
    """The j of a range with the largest gain; `own` is K_ii, `least` a curvature.

    Where none is beyond `lowest`, or gains are too small for float32, the one with the
    highest slope.
    """
    best, s = -1.0, ends[0]
    for first in range(ends[0], ends[1], SHORT_SLICE):
        last = min(first + SHORT_SLICE, ends[1])
        gain = best_pair_gain(
            grad[first:last],
            fall[first:last],
            diagonal[first:last],
            row_i[first:last],
            lowest,
            own,
            least,
        )
        if gain > best:
            best, s = gain, first
    e = min(s + SHORT_SLICE, ends[1])
    k = place_of_gain(
        grad[s:e],
        fall[s:e],
        diagonal[s:e],
        row_i[s:e],
        lowest,
        own,
        least,
        AS_GOOD * best,
    )
    if s + k < e:
        return s + k
    return find_highest(grad, fall, ends[0], ends[1])
