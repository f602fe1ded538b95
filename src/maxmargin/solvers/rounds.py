"""How are rounds of decomposition compiled? Where rows of K are in memory, or panels.

A problem of one or two thousand variables has few support vectors, and few rows of K
decide it. Each round of the working set (`working_set`) takes some microseconds, which
calls from Python would multiply. Kernel values come from K in memory, from panels of
dense rows (`kernels.panels`), or from rows that are kept: where one that is needed has
not been computed, the call returns.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin.kernels.cache import NOBODY, hold_all
from maxmargin.kernels.held import Part, add_part, take_block
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
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.turning import copy_turned
from maxmargin.solvers.active_set import (
    ActiveSetLimits,
    has_failed,
    moves_before,
    solve_active_set,
)
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.free_inverse import (
    N_CALLS,
    FreeSet,
    KernelRows,
    make_free_set,
)
from maxmargin.solvers.pairs import OUT_OF_MOVES, pair_epoch
from maxmargin.solvers.tuning import RoundSizes
from maxmargin.solvers.work import Work, part_of
from maxmargin.solvers.working_set import (
    N_COMPUTED,
    N_MET,
    N,
    WorkingSet,
    admit,
    admit_free,
    close_gaps,
    evict,
    measure,
    sort_members,
    take_changes,
)
from maxmargin.typing import FloatVector, IntVector, KernelMatrix


class Panels(NamedTuple):
    """Rows that compiled code computes float32 kernel values from, when needed."""

    panels: KernelMatrix
    exponents: KernelMatrix
    twice: np.float32


def panels_of(rows: PanelRows) -> Panels:
    """The panels of these rows."""
    return Panels(rows.panels, rows.exponents, rows.twice)


class KernelInMemory(NamedTuple):
    """K in memory, and the inverse of its free part, which float64 allows."""

    part: Part
    rows: KernelRows
    free: FreeSet


def kernel_in_memory(part: Part) -> KernelInMemory:
    """K in memory, and no variable that is known to be free."""
    rows = KernelRows(hold_all(part.K), None, part.at, part.at)
    return KernelInMemory(part, rows, make_free_set(len(part.at)))


class KeptRows(NamedTuple):
    """Rows of K in float32, those that have been computed."""

    rows: KernelMatrix  # room for all
    place: IntVector  # of every variable's row, or NOBODY


class RoundLimits(NamedTuple):
    """How far rounds go."""

    tol: float
    inner_tol: float  # for the members by themselves, in the last round
    max_moves: int
    is_second_order: bool


@jit_new
def rounds_until(
    work: Work,
    working_set: WorkingSet,
    memory: KernelInMemory | None,
    panels: Panels | None,
    kept: KeptRows | None,
    singly: int | None,
    limits: RoundLimits,
    sizes: RoundSizes,
) -> tuple[int, float, bool]:
    """Rounds until `tol`, or as many as a call may take.

    Kernel values come from `memory`, `panels` or `kept`, whose rows are the variables.
    `singly` is None where an equality binds the variables. Code for what is None is not
    even compiled. Returns (moves made, violation, whether there is room for members).
    Members whose rows are to be kept, and are not yet, wait for the next call.
    """
    made, counts = 0, working_set.counts
    for k in range(sizes.max_rounds):
        violation = measure(work, working_set, singly)
        if violation <= limits.tol or made >= limits.max_moves:
            return made, violation, True
        has_room = True  # one call for either: only code for what is None is left out
        if memory is not None:
            has_room = _change_members(work, working_set, singly, sizes)
        if panels is not None:
            has_room = _change_members(work, working_set, singly, sizes)
        if not has_room:
            return made, violation, False
        if kept is not None:
            if k > 0:  # before, members may have waited for their rows
                admit(work, working_set, singly)
            if _lacks_rows(kept, working_set.members[: counts[N]]):
                return made, violation, True
        first = counts[N_MET]
        _extend(working_set, first, memory, panels, kept)
        counts[N_MET] = counts[N]
        if panels is not None:  # rows in memory are for one group
            sort_members(work, working_set)
        own = part_of(work, working_set.members[: counts[N]])
        level = max(sizes.inner_tol * violation, limits.inner_tol)
        most = limits.max_moves - made
        made += _optimise(
            own, working_set, memory, singly, level, most, limits.is_second_order
        )
        moved, change = take_changes(work, own, working_set)
        _add_rows(work.grad, moved, change, memory, panels, kept)
        counts[N_COMPUTED] += counts[N] - first + len(moved)
    return made, violation, True


@jit_new
def _change_members(
    work: Work, working_set: WorkingSet, singly: int | None, sizes: RoundSizes
) -> bool:
    """Members at rest leave, violating variables enter; False: there is no room."""
    square, counts = working_set.square.rows, working_set.counts
    left = evict(work, working_set, sizes, len(square))
    if left.has_room:
        close_gaps(square, left.source, left.gaps, 0, len(left.source))
        counts[N_MET] = counts[N]
        if counts[N] == 0:
            admit_free(work, working_set)
        admit(work, working_set, singly)
    return left.has_room


@jit
def _optimise(
    own: Work,
    working_set: WorkingSet,
    memory: KernelInMemory | None,
    singly: int | None,
    level: float,
    most: int,
    is_second_order: bool,
) -> int:
    """Optimise the members until `level`: by SMO, or by the active-set method.

    That method needs K in float64. It pays where moves are many: after one a member,
    and as many as cost what its inverse does.
    """
    members, made = working_set.members[: working_set.counts[N]], 0
    if memory is not None and not has_failed(memory.free):
        is_new = memory.free.counts[N_CALLS] == 0
        first = max(len(members) * is_new, moves_before(memory.free, own, members))
        while made < min(first, most):
            left = min(first, most) - made
            why, more = _epoch(own, working_set, singly, level, left, is_second_order)
            made += more
            if why != OUT_OF_MOVES:
                return made
            first = moves_before(memory.free, own, members)
        if made < most:
            limits = ActiveSetLimits(level, most - made, 1 if singly is None else 0)
            steps, is_there = solve_active_set(
                own,
                members,
                working_set.square.rows,
                working_set.square.slot,
                memory.rows,
                memory.free,
                limits,
            )
            made += steps
            if is_there:
                return made
    if made < most:
        left = most - made
        made += _epoch(own, working_set, singly, level, left, is_second_order)[1]
    return made


@jit_new
def _epoch(
    own: Work,
    working_set: WorkingSet,
    singly: int | None,
    level: float,
    most: int,
    is_second_order: bool,
) -> tuple[int, int]:
    """(why it ended, moves made)."""
    square = working_set.square
    if singly is not None:
        why, moves, _, _ = coordinate_epoch(
            own, square, None, level, most, is_second_order
        )
        return why, moves
    why, moves, _, _ = pair_epoch(own, square, None, level, most, is_second_order)
    return why, moves


@jit
def _lacks_rows(kept: KeptRows, members: IntVector) -> bool:
    """Whether rows have to be computed first."""
    n_lacking = 0
    for i in members:
        n_lacking += kept.place[i] == NOBODY
    return n_lacking > 0


@jit
def _extend(
    working_set: WorkingSet,
    first: int,
    memory: KernelInMemory | None,
    panels: Panels | None,
    kept: KeptRows | None,
) -> None:
    """K between new members and all, as rows and as columns of the square."""
    n, square = working_set.counts[N], working_set.square.rows
    members = working_set.members
    if n == first:
        return
    if memory is not None:
        new_rows = square[first:n]
        take_block(memory.part, members[first:n], members[:n], new_rows)
        copy_turned(new_rows, (0, n - first), (0, first), square, (0, first))
    if panels is not None:
        _extend_by_panels(members[:n], square, first, panels)
    if kept is not None:
        for k in range(first, n):
            row = kept.rows[kept.place[members[k]]]
            for j in range(n):
                square[k, j] = row[members[j]]
        copy_turned(square, (first, n), (0, first), square, (0, first))


@jit_new
def _extend_by_panels(
    members: IntVector, square: KernelMatrix, first: int, panels: Panels
) -> None:
    n = len(members)
    new = _packed(panels, members[first:], STRIP)
    all_members = _packed(panels, members, PANEL)
    room = np.empty((STRIP, PANEL), dtype=np.float32)
    for p in range(len(all_members[0])):
        left = p * PANEL
        width = min(PANEL, n - left)
        for s in range(len(new[0])):
            top = first + s * STRIP
            height = min(STRIP, n - top)
            meet_and_store(new, all_members, (s, p), panels.twice, room, (0, 0))
            copy_part(room, (height, width), square, (top, left))
            columns = 0, min(width, first - left)
            copy_turned(room, (0, height), columns, square, (left, top))


@jit_new
def _packed(panels: Panels, index: IntVector, width: int) -> Side:
    n_blocks = -(-len(index) // width)
    values = np.zeros((n_blocks, panels.panels.shape[1], width), dtype=np.float32)
    repack(panels.panels, index, values)
    exponents = np.zeros(n_blocks * width, dtype=np.float32)
    for k in range(len(index)):
        exponents[k] = panels.exponents[index[k]]
    return values, exponents


@jit
def _add_rows(
    grad: FloatVector,
    moved: IntVector,
    change: FloatVector,
    memory: KernelInMemory | None,
    panels: Panels | None,
    kept: KeptRows | None,
) -> None:
    """grad += K[:, moved] @ change, for all variables; `moved` may be written over."""
    if memory is not None:
        add_part(memory.part, moved, change, grad)
    if panels is not None:
        _add_by_panels(panels, moved, change, grad)
    if kept is not None:
        for k in range(len(moved)):
            moved[k] = kept.place[moved[k]]
        add_rows(kept.rows, moved, change, (0, len(grad)), grad)


@jit_new
def _add_by_panels(
    panels: Panels, rows: IntVector, change: FloatVector, grad: FloatVector
) -> None:
    strips = _packed(panels, rows, STRIP)
    weight = np.zeros(len(strips[1]))  # whole strips, the last filled up with zeros
    for k in range(len(rows)):
        weight[k] = change[k]
    total = np.zeros(len(panels.exponents))
    spans = (0, len(strips[0])), (0, len(panels.panels))
    sides = panels.panels, panels.exponents
    add_values(strips, sides, panels.twice, weight, total, spans)
    for k in range(len(grad)):
        grad[k] += total[k]
