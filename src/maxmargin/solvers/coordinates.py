"""How does one variable move alone? Coordinate descent for machines without intercept.

No equality ties the variables together then, so each may take its own best step; the
gradient is kept up to date with a row of K per step (Hsieh et al., ICML 2008, for the
idea; with a maintained gradient the variable with the largest gain can be chosen).
Where all rows of K are alike, the best step of one variable undoes that of another, and
single steps zigzag: each is followed by an exchange between two variables, which leaves
the sum alone. (Steinwart, Hush & Scovel, JMLR 12, 2011, on working sets of two for
machines without intercept.)
"""

from collections.abc import Callable

import numpy as np

from maxmargin._jit import jit, jit_fast, larger
from maxmargin.kernels.cache import NOBODY, RowCache
from maxmargin.kernels.source import RowSource
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.pair_selection import SLICE, add_row
from maxmargin.solvers.pairs import (
    CONVERGED,
    NEEDS_ROW,
    OUT_OF_MOVES,
    STALLED,
    obtain_row,
    pair_epoch,
    stop_above,
    stop_below,
)
from maxmargin.solvers.work import Work, set_masks
from maxmargin.typing import FloatVector

EXCHANGED = 0.1  # of the violation: two slopes no further apart exchange nothing


def epoch_of(problem: DualProblem) -> Callable[..., tuple[int, int, float, int]]:
    """The compiled moves for a problem: of pairs, where an equality binds variables."""
    return coordinate_epoch if problem.is_free_of_equalities else pair_epoch


@jit
def coordinate_epoch(
    work: Work,
    cache: RowCache,
    source: RowSource | None,
    tol: float,
    max_moves: int,
    is_second_order: bool,
) -> tuple[int, int, float, int]:
    """Move variables until `tol`, `max_moves`, or a row that is missing.

    A move is the best step of one variable, and then the best exchange between two.
    Returns (why, moves made, violation, variable whose row is missing).
    """
    violation = np.inf
    for made in range(max_moves + 1):
        k, violation = choose(work, is_second_order)
        if violation <= tol:
            return CONVERGED, made, violation, NOBODY
        if made == max_moves:
            break
        slot = obtain_row(cache, source, work.row[k], k)
        if slot == NOBODY:
            return NEEDS_ROW, made, violation, k
        step = move_one(work, k, max(work.diagonal[k], work.min_curvature))
        if step == 0.0 or not np.isfinite(violation):
            return STALLED, made, violation, NOBODY
        add_row(work.grad, cache.rows[slot], step)
        # By gain, since the steepest exchanges follow rounding where K is large.
        why, _, _, variable = pair_epoch(
            work, cache, source, EXCHANGED * violation, 1, True
        )
        if why == NEEDS_ROW:
            return NEEDS_ROW, made + 1, violation, variable
    return OUT_OF_MOVES, max_moves, violation, NOBODY


@jit_fast
def best_gain(
    work_slice: tuple[FloatVector, FloatVector, FloatVector, FloatVector],
    min_curvature: float,
) -> tuple[float, float]:
    """(largest projected gradient² / curvature, largest projected gradient)."""
    grad, rise, fall, diagonal = work_slice
    best, violation = 0.0, 0.0
    for k in range(grad.size):
        slope = larger(larger(grad[k] + fall[k], -grad[k] - rise[k]), 0.0)
        violation = larger(violation, slope)
        best = larger(best, slope * slope / larger(diagonal[k], min_curvature))
    return best, violation


@jit
def choose(work: Work, is_second_order: bool) -> tuple[int, float]:
    """The variable to move, and the largest projected gradient of all."""
    best, violation, in_slice = -1.0, 0.0, 0
    n = len(work.grad)
    for s in range(0, n, SLICE):
        e = min(s + SLICE, n)
        gain, slope = best_gain(
            (work.grad[s:e], work.rise[s:e], work.fall[s:e], work.diagonal[s:e]),
            work.min_curvature,
        )
        violation = max(violation, slope)
        worth = gain if is_second_order else slope
        if worth > best:
            best, in_slice = worth, s
    return _best_in_slice(work, in_slice, is_second_order), violation


@jit
def _best_in_slice(work: Work, first: int, is_second_order: bool) -> int:
    grad, rise, fall, diagonal = work.grad, work.rise, work.fall, work.diagonal
    best, found = -1.0, first
    for k in range(first, min(first + SLICE, len(grad))):
        slope = max(grad[k] + fall[k], -grad[k] - rise[k])
        if slope <= 0.0:
            continue
        gain = slope * slope / max(diagonal[k], work.min_curvature)
        worth = gain if is_second_order else slope
        if worth > best:
            best, found = worth, k
    return found


@jit
def move_one(work: Work, k: int, curvature: float) -> float:
    """Take beta_k to its own optimum, past a kink if that pays; return the change."""
    before = work.beta[k]
    is_rising = work.grad[k] + work.rise[k] < 0.0
    slope = -work.grad[k] - work.rise[k] if is_rising else work.grad[k] + work.fall[k]
    for _ in range(2):  # at most one kink lies before the end
        stop = stop_below(work.beta[k], work.kink[k], work.lower[k])
        if is_rising:
            stop = stop_above(work.beta[k], work.kink[k], work.upper[k])
        room = abs(stop - work.beta[k])
        part = min(slope / curvature, room)
        work.gained[0] += part * (slope - 0.5 * curvature * part)
        slope -= curvature * part + 2.0 * work.kink[k]
        if part < room:
            work.beta[k] += part if is_rising else -part
            break
        work.beta[k] = stop
        if stop == work.upper[k] or stop == work.lower[k] or slope <= 0.0:
            break
    set_masks(work, k, k + 1)
    return work.beta[k] - before
