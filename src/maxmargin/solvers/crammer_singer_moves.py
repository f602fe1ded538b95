r"""What does a visit to one sample do? It spreads the sample's cost anew, exactly.

With all other samples fixed, the best shares :math:`t_i` of sample i are, with
:math:`d_m = g_i^m + A t_i^m`, :math:`A = \|x_i\|^2` and their bounds :math:`l_m`,

.. math:: t_i^m = \max(l_m, (d_m - \beta) / A), \qquad \sum_m t_i^m = 0

Every set of classes gives a :math:`\beta` that is too small or right; those that it
leaves above their bounds are the next set. So Newton's method needs no sorting, and
from the set of the last visit mostly one step. (Keerthi et al. 2008; Michelot 1986.)
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit_fast, jit_new, larger, smaller
from maxmargin.data.lanes import LANES, row_add_outer, row_times
from maxmargin.data.row_verbs import RowParts
from maxmargin.problems.crammer_singer import FAR
from maxmargin.solvers.dcd_sweep import shuffle
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

IDLE = 1e-15  # of the largest slope: violations no larger are rounding
FADE = 0.5  # what a quiet visit leaves of the memory of a violation
LONGEST_NAP = 31  # rounds that a sample at rest may be passed over


class Moves(NamedTuple):
    """All that visits read and move, as plain arrays.

    Each sample lists the blocks of classes in an order of its own: first that of its
    own class, then others that matter to it. Its shares lie in the same order.
    """

    W: FloatMatrix
    share: FloatMatrix  # t, block by block of the list
    listed: IntVector  # blocks, a row for every sample
    n_live: IntVector  # of them, those that narrow visits meet
    code: IntVector
    cost: FloatVector
    norm: FloatVector  # <x_i, x_i>
    offset: FloatVector
    memory: FloatVector  # violations seen lately: a quiet visit does not erase them
    nap: IntVector  # rounds until the next visit of a sample at rest
    length: IntVector  # of its last nap


class Pace(NamedTuple):
    """What a sweep is told."""

    bias: float
    is_wide: bool  # whether all classes are met
    calm: float  # a sample that leads by more may rest, and so may blocks that trail
    threshold: float  # memories above it keep a sample in the order


@jit_new
def sweep(
    rows: RowParts, moves: Moves, pace: Pace, order: IntVector, tally: FloatVector
) -> int:
    """Visit samples in order; those above the threshold move to its front.

    `tally` adds up violations squared and gaps, and keeps the largest violation and the
    largest slope. Returns the number of samples kept.
    """
    W, share, listed, n_live = moves.W, moves.share, moves.listed, moves.n_live
    code, cost, norm, offset = moves.code, moves.cost, moves.norm, moves.offset
    memory, nap, length = moves.memory, moves.nap, moves.length
    bias, every, calm, threshold = pace
    margin = calm if calm < np.inf else 0.0
    slope, reach = np.empty(W.shape[1]), np.empty(W.shape[1])
    bound = np.zeros(W.shape[1])
    n_kept = 0
    for s in range(len(order)):
        i = order[s]
        own = code[i] % LANES
        is_wide = every or length[i] > 0
        n_blocks = listed.shape[1] if is_wide else n_live[i]
        blocks, t = listed[i, :n_blocks], share[i, : LANES * n_blocks]
        g, d, low = slope[: len(t)], reach[: len(t)], bound[: len(t)]
        row_times((rows, i, bias), W, offset, blocks, g)
        g[own] -= 1.0
        low[own] = -cost[i]
        top, least, spent, lead = _survey(g, t, low)
        violation = top - least
        memory[i] = max(violation, FADE * memory[i])
        length[i] = min(2 * length[i] + 1, LONGEST_NAP) if lead > calm else 0
        nap[i] = length[i]
        tally[0] += violation * violation
        tally[1] += cost[i] * (top - g[own]) - spent
        tally[2] = max(tally[2], violation)
        tally[3] = max(tally[3], abs(top))
        if memory[i] > threshold:
            order[n_kept] = i
            n_kept += 1
        is_moving = violation > IDLE * tally[3]
        if is_moving:
            spread(g, t, low, own, norm[i], d)
        n_live[i] = n_blocks = _list_live(g, t, d, least - margin, blocks)
        if is_moving:
            row_add_outer((rows, i, bias), W, blocks[:n_blocks], d)
        low[own] = 0.0
    return n_kept


@jit_new
def pursue(
    rows: RowParts,
    moves: Moves,
    pace: Pace,
    order: IntVector,
    random: np.ndarray,
    budget: int,
) -> tuple[int, int]:
    """Sweep over those above the threshold until none is, or the budget is spent.

    Returns how many are left, and the visits made.
    """
    tally = np.zeros(4)
    n_left, n_visits = len(order), 0
    while n_left > 0 and n_visits < budget:
        shuffle(order, n_left, random)
        n_visits += n_left
        n_left = sweep(rows, moves, pace, order[:n_left], tally)
    return n_left, n_visits


@jit_fast
def _list_live(
    slope: FloatVector, t: FloatVector, step: FloatVector, low: float, blocks: IntVector
) -> int:
    """Move blocks with a share, or with a slope not below `low`, to the front."""
    n_live = 1
    for b in range(1, len(blocks)):
        first = LANES * b
        is_live = False
        for m in range(first, first + LANES):
            is_live |= t[m] > 0.0 or slope[m] >= low
        if not is_live:
            continue
        blocks[b], blocks[n_live] = blocks[n_live], blocks[b]
        for m in range(LANES):
            here, there = first + m, LANES * n_live + m
            t[here], t[there] = t[there], t[here]
            step[here], step[there] = step[there], step[here]
        n_live += 1
    return n_live


@jit_fast
def _survey(
    slope: FloatVector, t: FloatVector, low: FloatVector
) -> tuple[float, float, float, float]:
    """(largest slope, least above its bound, <t, slope>, lead of one alone there)."""
    top, least, rival = -FAR, FAR, -FAR
    spent, n_held = 0.0, 0.0
    for m in range(len(slope)):
        is_held = t[m] > low[m]
        top = larger(top, slope[m])
        least = smaller(least, slope[m] if is_held else FAR)
        rival = larger(rival, -FAR if is_held else slope[m])
        spent += t[m] * slope[m]
        n_held += 1.0 if is_held else 0.0
    return top, least, spent, least - rival if n_held == 1.0 else 0.0


@jit_fast
def spread(
    slope: FloatVector,
    t: FloatVector,
    low: FloatVector,
    own: int,
    norm: float,
    step: FloatVector,
) -> None:
    """The best shares, in t, and the step of the dual point that leads there."""
    total, count = _reach(slope, t, low, norm, step)
    level = total / count
    while True:
        before, last = total, level
        total, count = _above(step, low, norm, level)
        if count == 0.0 or total == before:
            break
        level = max(last, total / count)
        if level == last:
            break
    given = _take(step, low, norm, level)
    if count == 0.0 or not given < FAR:
        _take_all(slope, low, own, step)
    elif given > -low[own] or step[own] == low[own]:
        _scale(-low[own] / given, step)
        step[own] = low[own]
    else:
        step[own] = -given
    _settle(step, t)


@jit_fast
def _reach(
    slope: FloatVector,
    t: FloatVector,
    low: FloatVector,
    norm: float,
    reach: FloatVector,
) -> tuple[float, float]:
    """d = g + A t; what sets the level if the same classes stay above their bounds."""
    total, count = 0.0, 0.0
    for m in range(len(slope)):
        is_held = t[m] > low[m]
        reach[m] = slope[m] + norm * t[m]
        total += reach[m] if is_held else norm * low[m]
        count += 1.0 if is_held else 0.0
    return total, count


@jit_fast
def _above(
    reach: FloatVector, low: FloatVector, norm: float, level: float
) -> tuple[float, float]:
    """The same for the classes that this level leaves above their bounds."""
    total, count = 0.0, 0.0
    for m in range(len(reach)):
        least = norm * low[m]
        is_above = reach[m] - least > level
        total += reach[m] if is_above else least
        count += 1.0 if is_above else 0.0
    return total, count


@jit_fast
def _take(reach: FloatVector, low: FloatVector, norm: float, level: float) -> float:
    """New shares, in `reach`, and the sum of what is given."""
    given, inverse = 0.0, 1.0 / norm
    for m in range(len(reach)):
        reach[m] = larger(low[m], (reach[m] - level) * inverse)
        given += larger(reach[m], 0.0)
    return given


@jit_fast
def _take_all(
    slope: FloatVector, low: FloatVector, own: int, share: FloatVector
) -> None:
    """All cost to the largest slope: the sample is too short for anything finer."""
    best = own
    for m in range(len(slope)):
        share[m] = 0.0
        if slope[m] > slope[best]:
            best = m
    if best != own:
        share[best], share[own] = -low[own], low[own]


@jit_fast
def _scale(factor: float, share: FloatVector) -> None:
    for m in range(len(share)):
        share[m] = factor * larger(share[m], 0.0)


@jit_fast
def _settle(new: FloatVector, t: FloatVector) -> None:
    """New shares to t, the step of the dual point where they were."""
    for m in range(len(t)):
        before = t[m]
        t[m] = new[m]
        new[m] = before - t[m]
