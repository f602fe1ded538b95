"""How do two variables move together? One step of SMO (Platt, 1998), box and kink."""

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.cache import N_USES, NOBODY, RowCache, claim_slot, find_row
from maxmargin.kernels.source import RowSource, compute_row
from maxmargin.solvers.pair_selection import (
    SLICE,
    add_difference,
    find_highest,
    place_of_lowest,
    second_order_partner,
    worst_group,
)
from maxmargin.solvers.work import Work, mask_of

# Why an epoch came back. STALLED: the pair with the largest gain cannot move by as
# much as the spacing of float64, or a slope is not a number.
CONVERGED, NEEDS_ROW, OUT_OF_MOVES, STALLED = 0, 1, 2, 3

SLIGHT = 1e-3  # of the violation: a partner with less promises little
EQUAL = 1e-12  # of K_ii: less curvature between two samples is rounding
ROUNDINGS = 1e-15  # relative: what float64 leaves between two slopes that are equal


@jit
def pair_epoch(
    work: Work,
    cache: RowCache,
    source: RowSource | None,
    tol: float,
    max_moves: int,
    is_second_order: bool,
) -> tuple[int, int, float, int]:
    """Move pairs until `tol`, `max_moves`, or a row that is not in the cache.

    Without a `source` no code that computes rows is compiled.
    Returns (why, moves made, violation, variable whose row is missing).
    """
    beta, grad, rise, fall = work.beta, work.grad, work.rise, work.fall
    lower, upper, kink, gained = work.lower, work.upper, work.kink, work.gained
    diagonal, row, start = work.diagonal, work.row, work.start
    rows, slot_of = cache.rows, cache.slot
    last_use, counts = cache.last_use, cache.counts
    violation = np.inf
    for made in range(max_moves + 1):
        first, g, lowest, violation = worst_group(grad, rise, fall, start)
        if violation <= tol:
            return CONVERGED, made, violation, NOBODY
        if made == max_moves:
            break
        last = min(first + SLICE, start[g + 1])
        i = first + place_of_lowest(grad[first:last], rise[first:last], lowest)
        if i >= last:  # NaN equals nothing
            return STALLED, made, np.inf, NOBODY
        slot_i = slot_of[row[i]]
        if slot_i == NOBODY:
            slot_i = compute_missing(cache, source, row[i], i)
            if slot_i == NOBODY:
                return NEEDS_ROW, made, violation, i
        last_use[slot_i] = counts[N_USES]
        counts[N_USES] += 1
        row_i, ends, own = rows[slot_i], (start[g], start[g + 1]), diagonal[i]
        least = max(EQUAL * own, work.min_curvature)
        if is_second_order:
            beyond = lowest + least_slope(lowest, violation, kink[i])
            j = second_order_partner(
                grad, fall, diagonal, row_i, own, ends, beyond, least
            )
        else:
            j = find_highest(grad, fall, ends[0], ends[1])
        if j == i:  # nothing but rounding is between the two extremes
            return STALLED, made, violation, NOBODY
        slot_j = slot_of[row[j]]
        if slot_j == NOBODY:
            slot_j = compute_missing(cache, source, row[j], j)
            if slot_j == NOBODY:
                return NEEDS_ROW, made, violation, j
        last_use[slot_j] = counts[N_USES]
        counts[N_USES] += 1
        curvature = max(own + diagonal[j] - 2.0 * np.float64(row_i[j]), least)
        beta[i], beta[j], step, gain = exchange(
            beta[i],
            beta[j],
            grad[j] + fall[j] - grad[i] - rise[i],
            curvature,
            kink[i],
            kink[j],
            upper[i],
            lower[j],
        )
        gained[0] += gain
        rise[i], fall[i] = mask_of(beta[i], kink[i], lower[i], upper[i])
        rise[j], fall[j] = mask_of(beta[j], kink[j], lower[j], upper[j])
        if step == 0.0:
            return STALLED, made, violation, NOBODY
        add_difference(grad, row_i, rows[slot_j], step)
    return OUT_OF_MOVES, max_moves, violation, NOBODY


@jit
def least_slope(lowest: float, violation: float, kink: float) -> float:
    """How far beyond the lowest slope a partner has to be.

    Of equal samples, and of a variable and itself, rounding is all that is between the
    slopes. Divided by a curvature of zero, it would promise the largest gain.
    """
    rounding = ROUNDINGS * (2.0 * abs(lowest) + violation + kink)
    return max(SLIGHT * violation, rounding)


@jit
def obtain_row(
    cache: RowCache, source: RowSource | None, row: int, variable: int
) -> int:
    """The slot of a row, computed here if it can be; NOBODY if Python must."""
    slot = find_row(cache, row)
    if slot != NOBODY:
        return slot
    return compute_missing(cache, source, row, variable)


@jit
def compute_missing(
    cache: RowCache, source: RowSource | None, row: int, variable: int
) -> int:
    """A slot for a row that has none, computed here; NOBODY if Python must."""
    if source is None:
        return NOBODY
    slot = claim_slot(cache, row)
    compute_row(source, variable, cache.rows[slot])
    return slot


@jit
def exchange(
    above: float,
    below: float,
    slope: float,
    curvature: float,
    kink_i: float,
    kink_j: float,
    upper_i: float,
    lower_j: float,
) -> tuple[float, float, float, float]:
    """Raise beta_i and lower beta_j by the best common step: (both, step, gain).

    Along the step the slope falls linearly, and by 2 kink where a variable crosses
    zero: stop where it vanishes, at such a kink, or at the box. One variable gives what
    the other takes, as float64 has it: the sum of the two does not drift.
    """
    beta_i, beta_j, gain = above, below, 0.0
    is_at_stop_i = is_at_stop_j = False
    for _ in range(3):  # at most two kinks lie before the end
        stop_i = stop_above(above, kink_i, upper_i)
        stop_j = stop_below(below, kink_j, lower_j)
        room_i, room_j = stop_i - above, below - stop_j
        part = min(slope / curvature, room_i, room_j)
        gain += part * (slope - 0.5 * curvature * part)
        is_at_stop_i, is_at_stop_j = part == room_i, part == room_j
        above = stop_i if is_at_stop_i else above + part
        below = stop_j if is_at_stop_j else below - part
        slope -= curvature * part
        if is_at_stop_i:
            slope = slope - 2.0 * kink_i if stop_i != upper_i else 0.0
        if is_at_stop_j:
            slope = slope - 2.0 * kink_j if stop_j != lower_j else 0.0
        if slope <= 0.0 or not (is_at_stop_i or is_at_stop_j):
            break
    # The variable at a stop, or else the larger one, whose spacing is coarser, decides.
    if is_at_stop_i or (not is_at_stop_j and abs(above) >= abs(below)):
        step = above - beta_i
        if not is_at_stop_j:
            below = max(beta_j - step, lower_j)
    else:
        step = beta_j - below
        above = min(beta_i + step, upper_i)
    return above, below, step, gain


@jit
def stop_above(beta: float, kink: float, upper: float) -> float:
    """Where a rising beta must look up: zero if a kink lies ahead, or its bound."""
    return 0.0 if beta < 0.0 and kink > 0.0 and upper > 0.0 else upper


@jit
def stop_below(beta: float, kink: float, lower: float) -> float:
    """Where a falling beta must look up: zero if a kink lies ahead, or its bound."""
    return 0.0 if beta > 0.0 and kink > 0.0 and lower < 0.0 else lower
