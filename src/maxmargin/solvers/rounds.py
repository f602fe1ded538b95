"""How are the rounds of a small problem made in no time? All in compiled code.

A problem of one or two thousand variables, as pairs of classes mostly are, has few
support vectors, and few rows of K decide it. The rounds are those of `grow`: take in
who violates most, move pairs on the square of the members, sum the rows of those that
moved. But each takes some microseconds, which Python would multiply.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin.kernels.cache import RowCache, cache_in
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
from maxmargin.kernels.source import no_source
from maxmargin.kernels.turning import copy_turned
from maxmargin.problems.dual import DualProblem, kkt_violation
from maxmargin.solvers.active_set import (
    ActiveSetLimits,
    is_new,
    is_worth_trying,
    solve_active_set,
)
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.free_inverse import (
    FreeSet,
    KernelRows,
    make_free_set,
)
from maxmargin.solvers.pairs import OUT_OF_MOVES, pair_epoch
from maxmargin.solvers.square import compact
from maxmargin.solvers.work import Work, gather_work, is_free, part_of
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
SINGLY = 1  # any number: no equality binds the variables
MANY_ROUNDS = 16  # in one call: some hundredths of a second


class Panels(NamedTuple):
    """Rows that compiled code computes float32 kernel values from, when needed."""

    panels: KernelMatrix
    exponents: KernelMatrix
    twice: np.float32


def panels_of(rows: PanelRows) -> Panels:
    """The panels of these rows."""
    return Panels(rows.panels, rows.exponents, rows.twice)


class Held(NamedTuple):
    """K in memory, and the inverse of its free part, which float64 allows."""

    part: Part
    kernel: KernelRows
    free: FreeSet


@jit_new
def hold(part: Part) -> Held:
    """K in memory, and no variable that is known to be free."""
    kernel = KernelRows(cache_in(part.K, True), no_source(), part.at, part.at)
    return Held(part, kernel, make_free_set(len(part.at)))


class Crew(NamedTuple):
    """Who is a member, and what members know of each other."""

    members: IntVector  # room for all variables; the first n[0] count
    n: IntVector  # one number
    n_new: IntVector  # one number: how many a round takes in
    n_computed: IntVector  # one number: rows of K so far
    age: IntVector  # rounds at a bound, of every variable
    is_member: BoolVector  # of every variable
    cache: RowCache  # the square: row i of member i


@jit_new
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
    )


class RoundsEnd(NamedTuple):
    """Where rounds ended, and what float64 says about it."""

    is_finite: bool  # else nothing was done
    beta: FloatVector
    grad: FloatVector
    violation: float
    n_moves: int
    has_room: bool  # for more members


class Limits(NamedTuple):
    """How far rounds go."""

    tol: float
    inner_tol: float  # for the members by themselves, in the last round
    max_moves: int
    is_second_order: bool


@jit_new
def make_rounds(
    problem: DualProblem,
    image: FloatVector,
    diagonal: FloatVector,
    square: KernelMatrix,
    part: Part,
    singly: int | None,
    limits: Limits,
) -> RoundsEnd:
    """Rounds from the start of a problem of one group or none, on K in memory.

    `image` is K times the start; `singly` and `limits` as in `rounds_until`.
    """
    n = len(problem.linear)
    grad, everybody = np.empty(n), np.empty(n, dtype=np.intp)
    is_finite = True
    for k in range(n):
        grad[k], everybody[k] = image[problem.row[k]] + problem.linear[k], k
        is_finite = is_finite and np.isfinite(grad[k])
    work = gather_work(problem, everybody, problem.start, grad, diagonal)
    crew, held = make_crew(len(diagonal), square), hold(part)
    n_moves, made, violation = 0, 1, np.inf
    while is_finite and made > 0 and n_moves < limits.max_moves:
        left = Limits(
            limits.tol,
            limits.inner_tol,
            limits.max_moves - n_moves,
            limits.is_second_order,
        )
        made, violation = rounds_until(work, crew, held, None, singly, left)
        n_moves += made
    if is_finite:
        violation = kkt_violation(problem, work.beta, work.grad)
    return RoundsEnd(
        is_finite, work.beta, work.grad, violation, n_moves, has_room(crew)
    )


@jit_new
def rounds_until(
    work: Work,
    crew: Crew,
    held: Held | None,
    panels: Panels | None,
    singly: int | None,
    limits: Limits,
) -> tuple[int, float]:
    """Rounds until `tol`, or as many as a call may take: (moves made, violation).

    Kernel values come from `held` or from `panels`. `singly` is None where an equality
    binds the variables. Code for what is None is not even compiled.
    """
    made, violation = 0, np.inf
    for _ in range(MANY_ROUNDS):
        lowest, highest = bounds(work.grad, work.rise, work.fall)
        violation = highest - lowest
        if singly is not None:
            violation = max(highest, -lowest)
            lowest = highest = 0.0
        if violation <= limits.tol or made >= limits.max_moves:
            break
        _let_go(work, crew)
        first = crew.n[0]
        if first == 0:
            _join_free(work, crew)
        if not has_room(crew):
            break
        _join(work.grad, work.rise, 1.0, crew, highest)
        _join(work.grad, work.fall, -1.0, crew, -lowest)
        _extend(crew, first, held, panels)
        own = part_of(work, crew.members[: crew.n[0]])
        level = max(INNER * violation, limits.inner_tol)
        most = limits.max_moves - made
        made += _move(own, crew, held, singly, level, most, limits.is_second_order)
        work.gained[0] += own.gained[0]
        _spread(work, own, crew, held, panels)
    return made, violation


@jit
def _move(
    own: Work,
    crew: Crew,
    held: Held | None,
    singly: int | None,
    level: float,
    most: int,
    is_second_order: bool,
) -> int:
    """Members move until `level`: one by one or in pairs, or they settle by steps.

    Settling needs K in float64. It pays where moves are many: after one a member, and
    from the next round on at once.
    """
    first = most
    if held is not None and is_worth_trying(held.free):
        first = min(most, crew.n[0] if is_new(held.free) else 0)
    why, made = _epoch(own, crew, singly, level, first, is_second_order)
    if why != OUT_OF_MOVES or first == most:
        return made
    if held is not None:
        members = crew.members[: crew.n[0]]
        bounds = ActiveSetLimits(level, most - made, 1 if singly is None else 0)
        steps, is_there = solve_active_set(
            own, members, crew.cache, held.kernel, held.free, bounds
        )
        made += steps
        if not is_there and made < most:
            left = most - made
            made += _epoch(own, crew, singly, level, left, is_second_order)[1]
    return made


@jit_new
def _epoch(
    own: Work,
    crew: Crew,
    singly: int | None,
    level: float,
    most: int,
    is_second_order: bool,
) -> tuple[int, int]:
    """(why it ended, moves made)."""
    source = no_source()
    if singly is not None:
        why, moves, _, _ = coordinate_epoch(
            own, crew.cache, source, level, most, is_second_order
        )
        return why, moves
    why, moves, _, _ = pair_epoch(own, crew.cache, source, level, most, is_second_order)
    return why, moves


@jit
def has_room(crew: Crew) -> bool:
    """Whether the square can take in as many as a round wants to."""
    most = min(crew.n[0] + crew.n_new[0], len(crew.members))
    return most <= len(crew.cache.rows)


@jit_new
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
    for k in range(n_kept):
        members[k] = members[kept[k]]
    crew.n[0] = n_kept


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
    for k in range(size):
        crew.is_member[crew.members[k]] = True
    crew.n[0] = size


@jit_new
def _join(
    grad: FloatVector, mask: FloatVector, sign: float, crew: Crew, limit: float
) -> None:
    """The lowest slopes below a limit become members, as many as one side may bring.

    A slope is that of going up, or with sign -1 that of coming from below. Of equal
    ones at the end, some from all over the place.
    """
    n_new, outside, n_outside = crew.n_new[0] // 2, np.empty(len(grad)), 0
    for k in range(len(grad)):
        slope = sign * (grad[k] + mask[k])
        if slope < limit and not crew.is_member[k]:
            outside[n_outside] = slope
            n_outside += 1
    last, n_below, n_ties = limit, n_outside, 0
    if n_outside > n_new:
        last = kth_smallest(outside, n_outside, n_new - 1)
        n_below = 0
        for k in range(n_outside):
            n_below += outside[k] < last
            n_ties += outside[k] == last
    size, tie, n_more = crew.n[0], 0, n_new - n_below
    for k in range(len(grad)):
        slope = sign * (grad[k] + mask[k])
        if crew.is_member[k] or slope > last or slope >= limit:
            continue
        if slope == last:
            tie += 1
            if (tie - 1) * n_more // n_ties == tie * n_more // n_ties:
                continue
        crew.members[size] = k
        crew.is_member[k] = True
        crew.age[k] = 0
        size += 1
    crew.n[0] = size


@jit
def kth_smallest(values: FloatVector, n: int, k: int) -> float:
    """The value that k of the first n are not above; these change places (Hoare)."""
    first, last = 0, n - 1
    while first < last:
        pivot, i, j = values[(first + last) // 2], first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return values[k]


@jit
def _extend(crew: Crew, first: int, held: Held | None, panels: Panels | None) -> None:
    """The kernel between new members and all, as rows and as columns of the square."""
    n, square = crew.n[0], crew.cache.rows
    if n == first:
        return
    crew.n_computed[0] += n - first
    if held is not None:
        new_rows = square[first:n]
        take_block(held.part, crew.members[first:n], crew.members[:n], new_rows)
        copy_turned(new_rows, (0, n - first), (0, first), square, (0, first))
    if panels is not None:
        _extend_by_panels(crew, first, panels)


@jit_new
def _extend_by_panels(crew: Crew, first: int, panels: Panels) -> None:
    n, square = crew.n[0], crew.cache.rows
    new = _packed(panels, crew.members[first:n], STRIP)
    all_members = _packed(panels, crew.members[:n], PANEL)
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


@jit_new
def _spread(
    work: Work, own: Work, crew: Crew, held: Held | None, panels: Panels | None
) -> None:
    """Tell everybody what the members did."""
    n_members = crew.n[0]
    beta, rise, fall = work.beta, work.rise, work.fall
    moved = np.empty(n_members, dtype=np.intp)
    change = np.zeros(n_members + STRIP)  # whole strips, the last filled up with zeros
    n_moved = 0
    for k in range(n_members):
        i = crew.members[k]
        if own.beta[k] != beta[i]:
            moved[n_moved], change[n_moved] = i, own.beta[k] - beta[i]
            beta[i], rise[i], fall[i] = own.beta[k], own.rise[k], own.fall[k]
            n_moved += 1
    crew.n_computed[0] += n_moved
    if held is not None:
        add_part(held.part, moved[:n_moved], change, work.grad)
    if panels is not None:
        _add_by_panels(panels, moved[:n_moved], change, work.grad)


@jit_new
def _add_by_panels(
    panels: Panels, rows: IntVector, change: FloatVector, grad: FloatVector
) -> None:
    strips = _packed(panels, rows, STRIP)
    total = np.zeros(len(panels.exponents))
    spans = (0, len(strips[0])), (0, len(panels.panels))
    sides = panels.panels, panels.exponents
    add_values(strips, sides, panels.twice, change, total, spans)
    for k in range(len(grad)):
        grad[k] += total[k]
