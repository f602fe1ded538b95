"""How are the rounds of a small problem made in no time? All in compiled code.

A problem of one or two thousand variables, as pairs of classes mostly are, has few
support vectors, and few rows of K decide it. The rounds are those of `grow`: take in
who violates most, move pairs on the square of the members, sum the rows of those that
moved. But each takes some microseconds, which Python would multiply.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.cache import RowCache, cache_in
from maxmargin.kernels.held import Part, add_part, part_of_kernel, take_block
from maxmargin.kernels.panel_code import STRIP
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.kernels.panels import (
    PANEL,
    Side,
    add_values,
    copy_part,
    meet_and_store,
    repack,
)
from maxmargin.kernels.source import RowSource
from maxmargin.kernels.turning import copy_turned
from maxmargin.solvers.active_set import (
    FreeSet,
    can_settle,
    make_free_set,
    settle,
)
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.pairs import OUT_OF_MOVES, pair_epoch
from maxmargin.solvers.square import compact
from maxmargin.solvers.work import Work, is_free, part_of
from maxmargin.solvers.working_set import bounds
from maxmargin.typing import (
    BoolVector,
    FloatVector,
    IntVector,
    KernelMatrix,
)

YOUNG = 2  # rounds that a member at a bound is kept for
GONE_SHARE = 0.3  # of the members at rest: fewer are not worth moving memory for
FEWEST_NEW, MOST_NEW = 32, 256  # members in a round
NEW_SHARE = 16  # of the variables at a time, within the two limits
STAYING = 0.5  # of the new members at a bound at most: then more are taken in
INNER = 0.1  # of the violation: how far a round goes
MANY_ROUNDS = 16  # in one call: some hundredths of a second


class Values(NamedTuple):
    """Where kernel values come from: K in memory, or panels that meet."""

    held: Part  # empty where panels are to meet
    panels: KernelMatrix
    exponents: KernelMatrix
    twice: np.float32


def values_of(rows: PanelRows) -> Values:
    """Computed when needed, in float32."""
    nothing = part_of_kernel(np.empty((0, 0)), np.empty(0, dtype=np.intp))
    return Values(nothing, rows.panels, rows.exponents, rows.twice)


def values_in(held: Part) -> Values:
    """All there."""
    panels = np.empty((0, 0, 0), dtype=np.float32)
    return Values(held, panels, np.empty(0, dtype=np.float32), np.float32(0.0))


class Crew(NamedTuple):
    """Who is a member, and what members know of each other."""

    members: IntVector  # room for all variables; the first n[0] count
    n: IntVector  # one number
    n_new: IntVector  # one number: how many a round takes in
    n_computed: IntVector  # one number: rows of K so far
    age: IntVector  # rounds at a bound, of every variable
    is_member: BoolVector  # of every variable
    cache: RowCache  # the square: row i of member i
    free: FreeSet  # members off their bounds


@jit
def make_crew(n: int, square: KernelMatrix) -> Crew:
    """Nobody yet; the square has room for all, or as many as may come."""
    n_new = np.zeros(1, dtype=np.intp)
    n_new[0] = min(max(n // NEW_SHARE, FEWEST_NEW), MOST_NEW)
    return Crew(
        members=np.zeros(n, dtype=np.intp),
        n=np.zeros(1, dtype=np.intp),
        n_new=n_new,
        n_computed=np.zeros(1, dtype=np.intp),
        age=np.zeros(n, dtype=np.intp),
        is_member=np.zeros(n, dtype=np.bool_),
        cache=cache_in(square, True),
        free=make_free_set(n),
    )


@jit
def rounds_until(
    work: Work,
    crew: Crew,
    values: Values,
    source: RowSource,
    how: tuple[float, float, int, bool, bool],
) -> tuple[int, float]:
    """Rounds until `tol`, or as many as a call may take: (moves made, violation).

    `how` is (tol, tol within a round, moves, second order or not, whether an equality
    binds the variables).
    """
    tol, inner_tol, max_moves, is_second_order, is_bound = how
    made, violation = 0, np.inf
    for _ in range(MANY_ROUNDS):
        lowest, highest = bounds(work.grad, work.rise, work.fall)
        violation = highest - lowest
        if not is_bound:
            violation = max(highest, -lowest)
            lowest = highest = 0.0
        if violation <= tol or made >= max_moves:
            break
        _let_go(work, crew)
        first = crew.n[0]
        if first == 0:
            _join_free(work, crew)
        if not has_room(crew):
            break
        _take_in(work, crew, lowest, highest)
        _extend(crew, first, values)
        own = part_of(work, crew.members[: crew.n[0]])
        level, most = max(INNER * violation, inner_tol), max_moves - made
        own_how = level, most, is_second_order, is_bound
        made += _move(own, crew, values, source, own_how)
        work.gained[0] += own.gained[0]
        _spread(work, own, crew, values)
    return made, violation


@jit
def _move(
    own: Work,
    crew: Crew,
    values: Values,
    source: RowSource,
    how: tuple[float, int, bool, bool],
) -> int:
    """Members move until `level`: one by one or in pairs, or they settle by steps.

    Settling needs K in float64. It pays where moves are many: after one a member, and
    from the next round on at once. `how` is (level, moves, second order or not, whether
    an equality binds the variables).
    """
    level, most, is_second_order, is_bound = how
    is_first, first = crew.free.n_calls[0] == 0, most
    if len(values.held.at) and can_settle(crew.free):
        first = min(most, crew.n[0] if is_first else 0)
    epoch_how = level, first, is_second_order
    why, made = _epoch(own, crew, source, epoch_how, is_bound)
    if why != OUT_OF_MOVES or first == most:
        return made
    members, settled_how = crew.members[: crew.n[0]], (level, most - made, is_bound)
    steps, is_there = settle(
        own, members, crew.cache.rows, values.held, crew.free, settled_how
    )
    made += steps
    if not is_there and made < most:
        epoch_how = level, most - made, is_second_order
        made += _epoch(own, crew, source, epoch_how, is_bound)[1]
    return made


@jit
def _epoch(
    own: Work,
    crew: Crew,
    source: RowSource,
    how: tuple[float, int, bool],
    is_bound: bool,
) -> tuple[int, int]:
    """(why it ended, moves made)."""
    level, most, is_second_order = how
    if is_bound:
        why, moves, _, _ = pair_epoch(
            own, crew.cache, source, level, most, is_second_order
        )
    else:
        why, moves, _, _ = coordinate_epoch(
            own, crew.cache, source, level, most, is_second_order
        )
    return why, moves


@jit
def has_room(crew: Crew) -> bool:
    """Whether the square can take in as many as a round wants to."""
    most = min(crew.n[0] + crew.n_new[0], len(crew.members))
    return most <= len(crew.cache.rows)


@jit
def _let_go(work: Work, crew: Crew) -> None:
    """Members that have rested at a bound for a while make room, if they are many."""
    members, age, n = crew.members, crew.age, crew.n[0]
    beta, kink, lower, upper = work.beta, work.kink, work.lower, work.upper
    n_gone = n_rest = 0
    for k in range(n):
        i = members[k]
        is_resting = not is_free(beta[i], kink[i], lower[i], upper[i])
        age[i] = age[i] + 1 if is_resting else 0
        n_gone += age[i] > YOUNG
        n_rest += is_resting
    if n > 0 and n_rest < STAYING * crew.n_new[0]:
        crew.n_new[0] = min(2 * crew.n_new[0], MOST_NEW)
    if n_gone <= GONE_SHARE * n:
        return
    kept = np.empty(n - n_gone, dtype=np.intp)
    n_kept = 0
    for k in range(n):
        if age[members[k]] > YOUNG:
            crew.is_member[members[k]] = False
        else:
            kept[n_kept] = k
            n_kept += 1
    compact(crew.cache.rows, kept)
    members[:n_kept] = members[kept]
    crew.n[0] = n_kept


@jit
def _take_in(work: Work, crew: Crew, lowest: float, highest: float) -> None:
    """Those that violate most, half of them on either side."""
    n_new = crew.n_new[0] // 2
    _join(work.grad + work.rise, crew, highest, n_new)
    _join(-work.grad - work.fall, crew, -lowest, n_new)


@jit
def _join_free(work: Work, crew: Crew) -> None:
    """Whoever is free at the start: of a solution that others began, most that matter.

    From zero, nobody is; and if they are too many for the square, nobody joins.
    """
    size = 0
    for k in range(len(work.beta)):
        if is_free(work.beta[k], work.kink[k], work.lower[k], work.upper[k]):
            crew.members[size] = k
            size += 1
    if size + crew.n_new[0] > len(crew.cache.rows) < len(work.beta):
        size = 0
    crew.is_member[crew.members[:size]] = True
    crew.n[0] = size


@jit
def _join(slope: FloatVector, crew: Crew, limit: float, n_new: int) -> None:
    """The lowest slopes below a limit become members; ties, from all over the place."""
    outside = np.empty(len(slope))
    n_outside = 0
    for k in range(len(slope)):
        if slope[k] < limit and not crew.is_member[k]:
            outside[n_outside] = slope[k]
            n_outside += 1
    last, n_below, n_ties = limit, n_outside, 0
    if n_outside > n_new:
        last = np.partition(outside[:n_outside], n_new - 1)[n_new - 1]
        n_below = int(np.count_nonzero(outside[:n_outside] < last))
        n_ties = int(np.count_nonzero(outside[:n_outside] == last))
    size, tie, n_more = crew.n[0], 0, n_new - n_below
    for k in range(len(slope)):
        if crew.is_member[k] or slope[k] > last or slope[k] >= limit:
            continue
        if slope[k] == last:
            tie += 1
            if (tie - 1) * n_more // n_ties == tie * n_more // n_ties:
                continue
        crew.members[size] = k
        crew.is_member[k] = True
        crew.age[k] = 0
        size += 1
    crew.n[0] = size


@jit
def _extend(crew: Crew, first: int, values: Values) -> None:
    """The kernel between new members and all, as rows and as columns of the square."""
    n, square = crew.n[0], crew.cache.rows
    if n == first:
        return
    crew.n_computed[0] += n - first
    if len(values.held.at):
        new_rows = square[first:n]
        take_block(values.held, crew.members[first:n], crew.members[:n], new_rows)
        copy_turned(new_rows, (0, n - first), (0, first), square, (0, first))
        return
    panels, twice = (values.panels, values.exponents), values.twice
    new = _packed(panels, crew.members[first:n], STRIP)
    all_members = _packed(panels, crew.members[:n], PANEL)
    room = np.empty((STRIP, PANEL), dtype=np.float32)
    for p in range(len(all_members[0])):
        left = p * PANEL
        width = min(PANEL, n - left)
        for s in range(len(new[0])):
            top = first + s * STRIP
            height = min(STRIP, n - top)
            meet_and_store(new, all_members, (s, p), twice, room, (0, 0))
            copy_part(room, (height, width), square, (top, left))
            columns = 0, min(width, first - left)
            copy_turned(room, (0, height), columns, square, (left, top))


@jit
def _packed(panels: Side, index: IntVector, width: int) -> Side:
    n_blocks = -(-len(index) // width)
    values = np.zeros((n_blocks, panels[0].shape[1], width), dtype=np.float32)
    repack(panels[0], index, values)
    exponents = np.zeros(n_blocks * width, dtype=np.float32)
    for k in range(len(index)):
        exponents[k] = panels[1][index[k]]
    return values, exponents


@jit
def _spread(work: Work, own: Work, crew: Crew, values: Values) -> None:
    """Tell everybody what the members did."""
    members = crew.members[: crew.n[0]]
    beta, rise, fall = work.beta, work.rise, work.fall
    moved = np.empty(len(members), dtype=np.intp)
    change = np.zeros(len(members) + STRIP)
    n_moved = 0
    for k in range(len(members)):
        i = members[k]
        if own.beta[k] != beta[i]:
            moved[n_moved], change[n_moved] = i, own.beta[k] - beta[i]
            beta[i], rise[i], fall[i] = own.beta[k], own.rise[k], own.fall[k]
            n_moved += 1
    crew.n_computed[0] += n_moved
    _add_sum(values, moved[:n_moved], change, work.grad)


@jit
def _add_sum(
    values: Values, rows: IntVector, weight: FloatVector, out: FloatVector
) -> None:
    """out += the weighted sum of rows of K; `weight` is longer by a strip, of zeros."""
    if len(values.held.at):
        add_part(values.held, rows, weight, out)
        return
    panels = values.panels, values.exponents
    strips = _packed(panels, rows, STRIP)
    total = np.zeros(len(values.exponents))
    spans = (0, len(strips[0])), (0, len(panels[0]))
    add_values(strips, panels, values.twice, weight, total, spans)
    for k in range(len(out)):
        out[k] += total[k]
