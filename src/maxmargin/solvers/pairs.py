"""How do two variables move together? One step of SMO (Platt, 1998), box and kink."""

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.cache import NOBODY, RowCache, claim_slot, find_row
from maxmargin.kernels.source import NO_KIND, RowSource, compute_row
from maxmargin.solvers.work import Work, set_mask
from maxmargin.solvers.working_set import (
    SLICE,
    add_difference,
    find_lowest,
    first_order_partner,
    second_order_partner,
    worst_group,
)

CONVERGED, NEEDS_ROW, OUT_OF_MOVES = 0, 1, 2  # why an epoch came back


@jit
def pair_epoch(
    work: Work,
    cache: RowCache,
    source: RowSource,
    tol: float,
    max_moves: int,
    is_second_order: bool,
) -> tuple[int, int, float, int]:
    """Move pairs until `tol`, `max_moves`, or a row that is not in the cache.

    Returns (why, moves made, violation, variable whose row is missing).
    """
    violation = np.inf
    for made in range(max_moves + 1):
        in_slice, g, lowest, violation = worst_group(work)
        if violation <= tol:
            return CONVERGED, made, violation, NOBODY
        if made == max_moves:
            break
        i = find_lowest(work, in_slice, min(in_slice + SLICE, work.start[g + 1]))
        slot_i = obtain_row(cache, source, work.row[i], i)
        if slot_i == NOBODY:
            return NEEDS_ROW, made, violation, i
        row_i = cache.rows[slot_i]
        if is_second_order:
            j = second_order_partner(work, row_i, i, g, lowest)
        else:
            j = first_order_partner(work, g)
        slot_j = obtain_row(cache, source, work.row[j], j)
        if slot_j == NOBODY:
            return NEEDS_ROW, made, violation, j
        curvature = work.diagonal[i] + work.diagonal[j] - 2.0 * np.float64(row_i[j])
        step = move_pair(work, i, j, max(curvature, work.min_curvature))
        add_difference(work.grad, row_i, cache.rows[slot_j], step)
    return OUT_OF_MOVES, max_moves, violation, NOBODY


@jit
def obtain_row(cache: RowCache, source: RowSource, row: int, variable: int) -> int:
    """The slot of a row, computed here if it can be; NOBODY if Python must."""
    slot = find_row(cache, row)
    if slot != NOBODY or source.kind == NO_KIND:
        return slot
    slot = claim_slot(cache, row)
    compute_row(source, variable, cache.rows[slot])
    return slot


@jit
def move_pair(work: Work, i: int, j: int, curvature: float) -> float:
    """Raise beta_i and lower beta_j by the best common step; return it.

    Along the step the slope falls linearly, and by 2 kink where a variable crosses
    zero: stop where it vanishes, at such a kink, or at the box.
    """
    slope = work.grad[j] + work.fall[j] - work.grad[i] - work.rise[i]
    step = 0.0
    for _ in range(3):  # at most two kinks lie before the end
        stop_i, stop_j = stop_above(work, i), stop_below(work, j)
        room_i, room_j = stop_i - work.beta[i], work.beta[j] - stop_j
        part = min(slope / curvature, room_i, room_j)
        work.gained[0] += part * (slope - 0.5 * curvature * part)
        step += part
        work.beta[i] = stop_i if part == room_i else work.beta[i] + part
        work.beta[j] = stop_j if part == room_j else work.beta[j] - part
        slope -= curvature * part
        if part == room_i:
            slope = slope - 2.0 * work.kink[i] if stop_i != work.upper[i] else 0.0
        if part == room_j:
            slope = slope - 2.0 * work.kink[j] if stop_j != work.lower[j] else 0.0
        if slope <= 0.0 or (part < room_i and part < room_j):
            break
    set_mask(work, i)
    set_mask(work, j)
    return step


@jit
def stop_above(work: Work, k: int) -> float:
    """Where a rising beta_k must look up: zero if a kink lies ahead, or its bound."""
    if work.beta[k] < 0.0 and work.kink[k] > 0.0 and work.upper[k] > 0.0:
        return 0.0
    return work.upper[k]


@jit
def stop_below(work: Work, k: int) -> float:
    """Where a falling beta_k must look up: zero if a kink lies ahead, or its bound."""
    if work.beta[k] > 0.0 and work.kink[k] > 0.0 and work.lower[k] < 0.0:
        return 0.0
    return work.lower[k]
