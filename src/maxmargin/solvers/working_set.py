"""Which variables should move next? (Fan, Chen & Lin, JMLR 6, 2005.)

Sweeps run over slices handed to small functions whose bodies have no branch: that is
the form that LLVM turns into vector instructions. The winner's place is then searched
for in the winning slice alone. Arrays are taken out of `work` before a loop: inside it
each mention would count references, which costs more than the arithmetic.
"""

import numpy as np

from maxmargin._jit import jit, jit_fast, larger, smaller
from maxmargin.solvers.work import Work
from maxmargin.typing import FloatVector, KernelMatrix

SLICE = 256
SINGLE = 4  # bytes of a float32


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
    work_slice: tuple[FloatVector, FloatVector, FloatVector],
    row_i: KernelMatrix,
    lowest: float,
    diagonal_i: float,
    min_curvature: float,
) -> float:
    """The largest slope² / curvature that a partner in this slice promises."""
    grad, fall, diagonal = work_slice
    best = 0.0
    for k in range(grad.size):
        slope = larger(grad[k] + fall[k] - lowest, 0.0)
        curvature = diagonal_i + diagonal[k] - 2.0 * np.float64(row_i[k])
        best = larger(best, slope * slope / larger(curvature, min_curvature))
    return best


@jit_fast
def best_single_gain(
    work_slice: tuple[FloatVector, FloatVector, FloatVector],
    row_i: KernelMatrix,
    lowest: float,
    diagonal_i: float,
    min_curvature: float,
) -> float:
    """The same where rows are in float32: a choice needs no more, and costs half."""
    grad, fall, diagonal = work_slice
    best, nothing, two = np.float32(0.0), np.float32(0.0), np.float32(2.0)
    least = np.float32(min_curvature)
    for k in range(grad.size):
        slope = larger(np.float32(grad[k] + fall[k] - lowest), nothing)
        curvature = np.float32(diagonal_i + diagonal[k]) - two * row_i[k]
        best = larger(best, slope * slope / larger(curvature, least))
    return float(best)


@jit
def find_lowest(work: Work, first: int, last: int) -> int:
    """The variable of a range whose slope of going up is lowest."""
    grad, rise = work.grad, work.rise
    best, found = np.inf, first
    for k in range(first, last):
        slope = grad[k] + rise[k]
        if slope < best:
            best, found = slope, k
    return found


@jit
def find_highest(work: Work, first: int, last: int) -> int:
    """The variable of a range whose slope of coming from below is highest."""
    grad, fall = work.grad, work.fall
    best, found = -np.inf, first
    for k in range(first, last):
        slope = grad[k] + fall[k]
        if slope > best:
            best, found = slope, k
    return found


@jit
def worst_group(work: Work) -> tuple[int, int, float, float]:
    """(first of the slice with the lowest slope, group, lowest slope, violation)."""
    grad, rise, fall = work.grad, work.rise, work.fall
    worst_slice, worst, worst_lowest, violation = 0, 0, 0.0, -np.inf
    for g in range(len(work.start) - 1):
        lowest, highest, in_slice = np.inf, -np.inf, work.start[g]
        for s in range(work.start[g], work.start[g + 1], SLICE):
            e = min(s + SLICE, work.start[g + 1])
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
    work: Work, row_i: KernelMatrix, i: int, g: int, lowest: float
) -> int:
    """The j of i's group with the largest gain."""
    grad, fall, diagonal = work.grad, work.fall, work.diagonal
    own, least = diagonal[i], work.min_curvature
    best, in_slice = -1.0, work.start[g]
    for s in range(work.start[g], work.start[g + 1], SLICE):
        e = min(s + SLICE, work.start[g + 1])
        near = grad[s:e], fall[s:e], diagonal[s:e]
        if row_i.itemsize == SINGLE:
            gain = best_single_gain(near, row_i[s:e], lowest, own, least)
        else:
            gain = best_pair_gain(near, row_i[s:e], lowest, own, least)
        if gain > best:
            best, in_slice = gain, s
    last = min(in_slice + SLICE, work.start[g + 1])
    return _best_in_range(work, row_i, i, (in_slice, last), lowest)


@jit
def _best_in_range(
    work: Work, row_i: KernelMatrix, i: int, ends: tuple[int, int], lowest: float
) -> int:
    grad, fall, diagonal = work.grad, work.fall, work.diagonal
    best, found = -1.0, ends[0]
    for k in range(ends[0], ends[1]):
        slope = grad[k] + fall[k] - lowest
        if slope <= 0.0:
            continue
        curvature = diagonal[i] + diagonal[k] - 2.0 * np.float64(row_i[k])
        gain = slope * slope / max(curvature, work.min_curvature)
        if gain > best:
            best, found = gain, k
    return found


@jit
def first_order_partner(work: Work, g: int) -> int:
    """The j of a group that completes the maximal violating pair."""
    return find_highest(work, work.start[g], work.start[g + 1])
