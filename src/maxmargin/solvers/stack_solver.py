"""How are many problems on one matrix K solved? One after the other, in compiled code.

SMO moves pairs of all variables (Fan, Chen & Lin, JMLR 6, 2005). An active-set method
does what it leaves, or the last digits where these are wanted (Scheinberg, JMLR 7,
2006). The pairs of many classes are such a stack of problems, and so is a single
problem of few variables.
"""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.kernels.cache import NOBODY, RowCache
from maxmargin.kernels.source import RowSource
from maxmargin.solvers.active_set import (
    ActiveSetLimits,
    solve_active_set,
)
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.free_inverse import (
    MAX_GROUPS,
    FreeSet,
    KernelRows,
    clear_free_set,
    make_free_set,
)
from maxmargin.solvers.pair_selection import add_row
from maxmargin.solvers.pairs import (
    CONVERGED,
    OUT_OF_MOVES,
    compute_missing,
    obtain_row,
    pair_epoch,
)
from maxmargin.solvers.result import Options, PairRule
from maxmargin.solvers.stack import (
    BETA,
    DIAGONAL,
    GRAD,
    GROUP,
    IS_MET,
    KINK,
    LEVEL,
    LINEAR,
    LOWER,
    N_COMPUTED,
    N_MOVES,
    PLACE,
    ROW,
    START,
    UPPER,
    VIOLATION,
    Stack,
    StackSolution,
    certify,
)
from maxmargin.solvers.work import Work, curvature_floor, set_masks
from maxmargin.solvers.working_set import SINGLY
from maxmargin.typing import (
    FloatMatrix,
    FloatVector,
    IntMatrix,
    IntVector,
)

LANES = 32  # variables in an iteration of a vectorised loop: the rest goes one by one
ROUNDINGS = 1e-15  # relative: of a sum of products in float64
CHUNKS = 8  # of a stack: what threads share, whatever their number is


class Goals(NamedTuple):
    """How far each problem is taken."""

    tol: float
    is_second_order: bool
    is_exact: bool  # to rounding, not only to tol
    has_margin: bool  # nu-SVC: two levels, whose distance is what coefficients are for
    has_slopes: bool  # of the start: they are in the `points` already
    inner_tol: float  # these and the others as in `Tuning`
    exact_tol: float
    margin_share: float
    refinement: float
    moves_before_active_set: int
    min_moves: int
    max_moves: int
    work_per_call: int


def solve_stack(
    stack: Stack,
    source: RowSource,
    options: Options,
    is_exact: bool,
    n_threads: int,
    slopes: FloatVector | None = None,
) -> StackSolution:
    """Solve all problems of a stack, on threads; some may not have converged.

    `slopes`: K @ start + linear, if that is known; K must then be in memory.
    """
    n_problems, tuning = len(stack.end), options.tuning
    out = StackSolution(
        points=np.empty((2, stack.numbers.shape[1])),
        counts=np.zeros((3, n_problems), dtype=np.intp),
        evidence=np.zeros((LEVEL + MAX_GROUPS, n_problems)),
    )
    out.points[BETA] = stack.numbers[START]
    if slopes is not None:
        out.points[GRAD] = slopes
    has_margin = stack.n_groups > 1 and not stack.numbers[LINEAR].any()
    goals = Goals(
        tol=options.tol,
        is_second_order=options.working_set is PairRule.SECOND_ORDER,
        is_exact=is_exact,
        has_margin=has_margin,
        has_slopes=slopes is not None,
        inner_tol=tuning.inner_tol,
        exact_tol=tuning.exact_tol,
        margin_share=tuning.margin_share,
        refinement=tuning.refinement,
        moves_before_active_set=tuning.moves_before_active_set,
        min_moves=tuning.min_moves_before_active_set,
        max_moves=tuning.max_moves,
        work_per_call=tuning.work_per_call,
    )
    task = partial(_solve_part, stack, source, goals, out)
    run_all([partial(task, first, last) for first, last in _chunks(stack)], n_threads)
    return out


def _chunks(stack: Stack) -> list[tuple[int, int]]:
    """Ranges of problems of about the same size in all."""
    n_problems = len(stack.end)
    if n_problems == 1:
        return [(0, 1)]
    cost = np.cumsum(np.diff(stack.end, prepend=0).astype(np.float64) ** 2)
    ends = np.searchsorted(cost, cost[-1] * np.arange(1, CHUNKS) / CHUNKS)
    edges = np.unique(np.concatenate(([0], ends, [n_problems])))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


class Room(NamedTuple):
    """Arrays for the largest of some problems; each takes a part of them."""

    rows: FloatVector  # of K
    state: FloatMatrix  # the eight vectors of a Work
    row: IntVector
    start: IntVector
    gained: FloatVector
    slots: IntMatrix  # owner, slot and last use of a RowCache
    clocks: IntMatrix  # and its three numbers
    weight: FloatVector  # of each row of K
    everything: IntVector  # 0, 1, 2, ...


def make_room(stack: Stack, first: int, last: int) -> Room:
    """Room for these problems."""
    sizes = np.diff(stack.end, prepend=0)[first:last].tolist()
    n_rows = stack.n_rows[first:last].tolist()
    pairs = zip(sizes, n_rows, strict=True)
    n, m = padded(max(sizes)), max(n_rows)
    return Room(
        rows=np.empty(max(padded(size) * count for size, count in pairs)),
        state=np.empty((8, n)),
        row=np.empty(n, dtype=np.intp),
        start=np.empty(max(stack.n_groups, 1) + 1, dtype=np.intp),
        gained=np.empty(1),
        slots=np.empty((3, m), dtype=np.intp),
        clocks=np.empty((3, 1), dtype=np.intp),
        weight=np.empty(m),
        everything=np.arange(n),
    )


def _solve_part(
    stack: Stack,
    source: RowSource,
    goals: Goals,
    out: StackSolution,
    first: int,
    last: int,
) -> None:
    """Problems first to last, a slice of time a call.

    The active-set method is for those that a few moves of SMO do not solve, and is not
    even compiled for others.
    """
    room = make_room(stack, first, last)
    singly = SINGLY if stack.n_groups == 0 else None
    for free in (None, make_free_set(len(room.row))):
        number = first
        while number < last:
            raise_if_stopped()
            number = _solve_some(
                stack, source, singly, free, goals, room, number, last, out
            )
        if out.counts[IS_MET, first:last].all():
            break


def padded(n: int) -> int:
    """The next multiple of LANES."""
    return -(-n // LANES) * LANES


@jit
def _solve_some(
    stack: Stack,
    source: RowSource,
    singly: int | None,
    free: FreeSet | None,
    goals: Goals,
    room: Room,
    first: int,
    last: int,
    out: StackSolution,
) -> int:
    """Solve problems in their order until enough has been done for one call.

    Without a `FreeSet`, by some moves of SMO; with one, those that are left.
    """
    done, numbers, places = 0, stack.numbers, stack.places
    while first < last and done < goals.work_per_call:
        a, b = stack.end[first - 1] if first > 0 else 0, stack.end[first]
        n, m = b - a, stack.n_rows[first]
        if out.counts[IS_MET, first] == 1:
            first += 1
            continue
        width = -(-n // LANES) * LANES

        # The variables, and room for rows of K. Variables that are fixed at zero fill
        # up the last group, for the sake of vectorised loops.
        floor = curvature_floor(numbers[DIAGONAL, a:b])
        work = Work(
            room.state[0, :width],
            room.state[1, :width],
            room.state[2, :width],
            room.state[3, :width],
            room.state[4, :width],
            room.state[5, :width],
            room.state[6, :width],
            room.state[7, :width],
            room.row[:width],
            room.start,
            room.gained,
            floor,
        )
        cache = RowCache(
            room.rows[: m * width].reshape(m, width),
            room.rows[: m * width],
            room.slots[0, :m],
            room.slots[1, :m],
            room.slots[2, :m],
            room.clocks[0],
            room.clocks[1],
            room.clocks[2],
        )
        place = source.place
        if len(place) > 0:
            place = places[PLACE, a:b]
        own = RowSource(
            source.kind,
            source.gamma,
            source.coef0,
            source.degree,
            source.columns,
            source.norms,
            place,
        )
        _begin(numbers, places, out.points, a, n, work, cache)
        linear = numbers[LINEAR, a:b]
        if goals.has_slopes:
            for k in range(n):
                work.grad[k] = out.points[GRAD, a + k]
        else:
            for k in range(n):
                if work.beta[k] != 0.0 and cache.slot[work.row[k]] == NOBODY:
                    compute_missing(cache, own, work.row[k], k)
            _sum_gradient(linear, work, cache, room.weight)

        goal, exact = goals.inner_tol * goals.tol, 1.0
        for k in range(n):
            exact = max(exact, abs(work.grad[k]))
        exact *= goals.exact_tol
        if goals.is_exact:
            goal = min(exact, goal)
        made, turn, is_met = out.counts[N_MOVES, first], 0, False
        most = max(goals.moves_before_active_set * n, goals.min_moves)
        if free is not None:  # these have been made
            most = 0
        while True:
            if goals.is_exact or goals.has_margin:
                exact = max(exact, _rounding(work))
                goal = max(goal, exact)
            # SMO: few moves at first, and many once the active-set method has failed.
            if singly is not None:
                why, more, _, _ = coordinate_epoch(
                    work, cache, own, goal, most, goals.is_second_order
                )
            else:
                why, more, _, _ = pair_epoch(
                    work, cache, own, goal, most, goals.is_second_order
                )
            made, is_met = made + more, why == CONVERGED
            if why == OUT_OF_MOVES and turn == 0:
                turn, most = 1, goals.max_moves * n
                if free is not None:
                    before = _objective(linear, work)
                    _store(work, out.points, a, n)
                    clear_free_set(free, width)
                    steps, _ = solve_active_set(
                        work,
                        room.everything[:width],
                        cache,
                        KernelRows(cache, own, work.row, room.everything),
                        free,
                        ActiveSetLimits(goal, most, stack.n_groups),
                    )
                    made += steps
                    # What rounding has left, of sums and slopes.
                    _restore_sums(numbers[START, a:b], work, cache, own)
                    if not goals.has_slopes:
                        _sum_gradient(linear, work, cache, room.weight)
                    if not _objective(linear, work) <= before:
                        # Values of K too large for an inverse.
                        for k in range(n):
                            work.beta[k] = out.points[BETA, a + k]
                            work.grad[k] = out.points[GRAD, a + k]
                    set_masks(work, 0, width)
                    continue
            if not (goals.has_margin and is_met and goal > exact):
                break
            # Coefficients of nu-SVC are divided by the margin, and so is what is left
            # of the violation: a small margin needs a finer tolerance.
            share = goals.margin_share * _margin(work)
            if goal <= share:
                break
            goal *= goals.refinement
            if share > 0.0:
                goal = min(goal, share)
            goal = max(goal, exact)
            turn, most = 0, max(goals.moves_before_active_set * n, goals.min_moves)

        # The certificate is about slopes that are summed anew, unless few have moved.
        if not goals.has_slopes:
            _sum_gradient(linear, work, cache, room.weight)
        _store(work, out.points, a, n)
        certify(stack, out, first, a, b, goals.tol)
        is_good_enough = is_met or not (goals.is_exact or goals.has_margin)
        if is_good_enough and out.evidence[VIOLATION, first] <= goals.tol:
            out.counts[IS_MET, first] = 1
        out.counts[N_MOVES, first], out.counts[N_COMPUTED, first] = (
            made,
            cache.n_used[0],
        )
        done += n * made
        first += 1
    return first


@jit
def _begin(
    numbers: FloatMatrix,
    places: IntMatrix,
    points: FloatMatrix,
    a: int,
    n: int,
    work: Work,
    cache: RowCache,
) -> None:
    """Variables a to a + n where they are, and no row of K."""
    start = work.start
    for s in range(len(cache.owner)):
        cache.owner[s] = cache.slot[s] = NOBODY
        cache.last_use[s] = 0
    cache.clock[0] = cache.n_used[0] = cache.n_misses[0] = 0
    for g in range(len(start)):
        start[g] = 0
    for k in range(len(work.beta)):
        work.beta[k] = work.kink[k] = work.lower[k] = work.upper[k] = 0.0
        work.grad[k], work.diagonal[k], work.row[k] = 0.0, 1.0, 0
    for k in range(n):
        start[max(places[GROUP, a + k], 0) + 1] = k + 1
        work.beta[k], work.kink[k] = points[BETA, a + k], numbers[KINK, a + k]
        work.lower[k], work.upper[k] = numbers[LOWER, a + k], numbers[UPPER, a + k]
        work.diagonal[k], work.row[k] = numbers[DIAGONAL, a + k], places[ROW, a + k]
    start[len(start) - 1] = len(work.beta)
    work.gained[0] = 0.0
    set_masks(work, 0, len(work.beta))


@jit
def _store(work: Work, points: FloatMatrix, a: int, n: int) -> None:
    """Where the variables are, and their slopes."""
    for k in range(n):
        points[BETA, a + k], points[GRAD, a + k] = work.beta[k], work.grad[k]


@jit
def _objective(linear: FloatVector, work: Work) -> float:
    """½ βᵀKβ + linearᵀβ + kinkᵀ|β|, with Kβ read off the gradient."""
    total = 0.0
    for k in range(len(linear)):
        total += 0.5 * work.beta[k] * (work.grad[k] + linear[k])
        total += work.kink[k] * abs(work.beta[k])
    return total


@jit
def _rounding(work: Work) -> float:
    """What float64 leaves in slopes, of which |K_ij|² <= K_ii K_jj."""
    largest, total = 0.0, 0.0
    for k in range(len(work.beta)):
        if work.beta[k] != 0.0:
            root = np.sqrt(abs(work.diagonal[k]))
            largest, total = max(largest, root), total + root * abs(work.beta[k])
    return ROUNDINGS * largest * total


@jit
def _margin(work: Work) -> float:
    """Half the distance of the levels of two groups, which are nearly optimal."""
    margin, sign = 0.0, 0.5
    for g in range(2):
        lowest, highest = np.inf, -np.inf
        for k in range(work.start[g], work.start[g + 1]):
            lowest = min(lowest, work.grad[k] + work.rise[k])
            highest = max(highest, work.grad[k] + work.fall[k])
        if lowest == np.inf:  # all variables are at their upper bound
            lowest = highest
        if highest == -np.inf:
            highest = lowest
        margin += sign * 0.5 * (lowest + highest)
        sign = -sign
    return margin


@jit
def _restore_sums(
    before: FloatVector, work: Work, cache: RowCache, source: RowSource
) -> None:
    """Give what a group's sum has lost to its variable with most room."""
    for g in range(len(work.start) - 1):
        drift, widest, widest_room = 0.0, 0, 0.0
        for k in range(work.start[g], min(work.start[g + 1], len(before))):
            drift += work.beta[k] - before[k]
            room = min(work.upper[k] - work.beta[k], work.beta[k] - work.lower[k])
            if room > widest_room and (work.beta[k] != 0.0 or work.kink[k] == 0.0):
                widest, widest_room = k, room
        if widest_room > abs(drift):
            work.beta[widest] -= drift
            slot = obtain_row(cache, source, work.row[widest], widest)
            add_row(work.grad, cache.rows[slot], -drift)


@jit
def _sum_gradient(
    linear: FloatVector, work: Work, cache: RowCache, weight: FloatVector
) -> None:
    """grad = K @ beta + linear, from rows that are all there.

    Variables of one row are added first: in nu-SVR they may be large, and cancel.
    """
    for row in range(len(cache.slot)):
        weight[row] = 0.0
    for k in range(len(linear)):
        weight[work.row[k]] += work.beta[k]
        work.grad[k] = linear[k]
    for row in range(len(cache.slot)):
        if weight[row] != 0.0:
            add_row(work.grad, cache.rows[cache.slot[row]], weight[row])
