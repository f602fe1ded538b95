"""How are many problems on one matrix K solved? One after the other, in compiled code.

SMO moves pairs of all variables (Fan, Chen & Lin, JMLR 6, 2005). An active-set method
does what it leaves, or the last digits where these are wanted (Scheinberg, JMLR 7,
2006). The pairs of many classes are such a stack of problems, and so is a single
problem of few variables.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_compact
from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.kernels.cache import N_FILLED, NOBODY, RowCache
from maxmargin.kernels.source import RowSource
from maxmargin.solvers.active_set import (
    ActiveSetLimits,
    solve_active_set,
    violation_of,
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
    compute_missing,
    obtain_row,
    pair_epoch,
)
from maxmargin.solvers.result import Options, PairRule
from maxmargin.solvers.stack import (
    BETA,
    DIAGONAL,
    GIVEN_UP,
    GRAD,
    GROUP,
    KINK,
    LEVEL,
    LINEAR,
    LOWER,
    N_COMPUTED,
    N_MOVES,
    ROW,
    SOLVED,
    START,
    STATE,
    TO_DO,
    UPPER,
    VIOLATION,
    Room,
    Stack,
    StackSolution,
    certify,
    make_room,
    open_problem,
)
from maxmargin.solvers.tuning import StackTuning
from maxmargin.solvers.work import Work, set_masks
from maxmargin.solvers.working_set import SINGLY
from maxmargin.typing import FloatMatrix, FloatVector

ROUNDINGS = 1e-15  # relative: of a sum of products in float64
# Of `evidence`, after the levels: the violation to reach, the least that it can be, and
# how often the margin of nu-SVC was negligible beside it.
GOAL, EXACT, N_NEGLIGIBLE = range(LEVEL + MAX_GROUPS, LEVEL + MAX_GROUPS + 3)
CHUNKS = 8  # of a stack: what threads share, whatever their number is


class Goals(NamedTuple):
    """How far each problem is taken."""

    tol: float
    is_second_order: bool
    is_exact: bool  # to rounding, not only to tol
    has_margin: bool  # nu-SVC: two levels, whose distance is what coefficients are for
    has_slopes: bool  # of the start: they are in the `points` already
    exact_tol: float  # of this machine
    tuning: StackTuning


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
        evidence=np.zeros((N_NEGLIGIBLE + 1, n_problems)),
    )
    out.points[BETA] = stack.numbers[START]
    if slopes is not None:
        out.points[GRAD] = slopes
    has_slope = stack.numbers[LINEAR].any()
    has_margin = stack.n_groups > 1 and not has_slope
    is_one_class = stack.n_groups == 1 and not has_slope
    goals = Goals(
        tol=options.tol,
        is_second_order=options.working_set is PairRule.SECOND_ORDER,
        is_exact=is_exact,
        has_margin=has_margin,
        has_slopes=slopes is not None,
        exact_tol=tuning.exact_tol_one_class if is_one_class else tuning.exact_tol,
        tuning=tuning.stack,
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


def _solve_part(
    stack: Stack,
    source: RowSource,
    goals: Goals,
    out: StackSolution,
    first: int,
    last: int,
) -> None:
    """Problems first to last: few moves of SMO, the active-set method, many moves.

    The second is for those that the first does not solve, and is not even compiled for
    others; the third for those on which it fails.
    """
    room = make_room(stack, first, last)
    singly = SINGLY if stack.n_groups == 0 else None
    of_smo = stack, source, singly, goals
    _run(partial(_make_moves, *of_smo, False, room), first, last, out)
    if (out.counts[STATE, first:last] == TO_DO).any():
        free = make_free_set(len(room.row))
        _run(partial(_take_steps, stack, source, free, goals, room), first, last, out)
        _run(partial(_make_moves, *of_smo, True, room), first, last, out)


def _run(
    phase: Callable[[int, int, StackSolution], int],
    first: int,
    last: int,
    out: StackSolution,
) -> None:
    """Call after call, until all problems have been looked at."""
    while first < last:
        raise_if_stopped()
        first = phase(first, last, out)


@jit
def _make_moves(
    stack: Stack,
    source: RowSource,
    singly: int | None,
    goals: Goals,
    is_last: bool,
    room: Room,
    first: int,
    last: int,
    out: StackSolution,
) -> int:
    """SMO on problems that are to be done, until that is enough for one call.

    Few moves, or at `is_last` many. Returns the number of the next problem.
    """
    done = 0
    while first < last and done < goals.tuning.work_per_call:
        if out.counts[STATE, first] != TO_DO:
            first += 1
            continue
        work, cache, own = open_problem(stack, source, room, first)
        n = _begin(stack, out, first, work, cache, own, goals, room.weight)
        _set_goal(out, first, work, goals)
        goal = out.evidence[GOAL, first]
        most = max(
            goals.tuning.moves_before_active_set * n,
            goals.tuning.min_moves_before_active_set,
        )
        if is_last and out.evidence[VIOLATION, first] > goals.tol:
            most = goals.tuning.max_moves * n  # they bring few digits beyond tol
        made, is_there = 0, False
        while True:
            if singly is not None:
                why, more, _, _ = coordinate_epoch(
                    work, cache, own, goal, most, goals.is_second_order
                )
            else:
                why, more, _, _ = pair_epoch(
                    work, cache, own, goal, most, goals.is_second_order
                )
            made, is_there = made + more, why == CONVERGED
            if not (is_there and _is_too_coarse(out, first, work, goals)):
                break
            goal = out.evidence[GOAL, first]
        out.counts[N_MOVES, first] += made
        _conclude(
            stack, out, first, work, cache, goals, room.weight, room.of_group, is_there
        )
        if is_last and out.counts[STATE, first] == TO_DO:
            out.counts[STATE, first] = GIVEN_UP
        done += n * made
        first += 1
    return first


@jit_compact
def _take_steps(
    stack: Stack,
    source: RowSource,
    free: FreeSet,
    goals: Goals,
    room: Room,
    first: int,
    last: int,
    out: StackSolution,
) -> int:
    """The active-set method on problems that are to be done, as `_make_moves`."""
    done = 0
    while first < last and done < goals.tuning.work_per_call:
        if out.counts[STATE, first] != TO_DO:
            first += 1
            continue
        work, cache, own = open_problem(stack, source, room, first)
        n = _begin(stack, out, first, work, cache, own, goals, room.weight)
        _set_goal(out, first, work, goals)
        goal, b = out.evidence[GOAL, first], stack.end[first]
        linear = stack.numbers[LINEAR, b - n : b]
        before, made, is_there = _objective(linear, work), 0, False
        clear_free_set(free, len(work.beta))
        while True:
            steps, _ = solve_active_set(
                work,
                room.everything[: len(work.beta)],
                cache.rows,
                cache.slot,
                KernelRows(cache, own, work.row, room.everything),
                free,
                ActiveSetLimits(goal, goals.tuning.max_moves * n, stack.n_groups),
            )
            made += steps
            # What rounding has left, of sums and slopes.
            _restore_sums(stack.numbers[START, b - n : b], work, cache, own)
            if not goals.has_slopes:
                _sum_gradient(linear, work, cache, room.weight)
            set_masks(work, 0, len(work.beta))
            is_there = violation_of(work, stack.n_groups) <= goal
            if not (is_there and _is_too_coarse(out, first, work, goals)):
                break
            goal = out.evidence[GOAL, first]
        out.counts[N_MOVES, first] += made
        if _objective(linear, work) <= before:  # else K is too large for an inverse
            _conclude(
                stack,
                out,
                first,
                work,
                cache,
                goals,
                room.weight,
                room.of_group,
                is_there,
            )
        done += n * made
        first += 1
    return first


@jit
def _begin(
    stack: Stack,
    out: StackSolution,
    number: int,
    work: Work,
    cache: RowCache,
    source: RowSource,
    goals: Goals,
    weight: FloatVector,
) -> int:
    """The variables where they are, with their slopes; returns how many there are."""
    a, b = stack.end[number - 1] if number > 0 else 0, stack.end[number]
    numbers, places, start, n = stack.numbers, stack.places, work.start, b - a
    for s in range(len(cache.owner)):
        cache.owner[s] = cache.slot[s] = NOBODY
        cache.last_use[s] = 0
    for name in range(len(cache.counts)):
        cache.counts[name] = 0
    for g in range(len(start)):
        start[g] = 0
    for k in range(len(work.beta)):
        work.beta[k] = work.kink[k] = work.lower[k] = work.upper[k] = 0.0
        work.grad[k], work.diagonal[k], work.row[k] = 0.0, 1.0, 0
    for k in range(n):
        start[max(places[GROUP, a + k], 0) + 1] = k + 1
        work.beta[k], work.kink[k] = out.points[BETA, a + k], numbers[KINK, a + k]
        work.lower[k], work.upper[k] = numbers[LOWER, a + k], numbers[UPPER, a + k]
        work.diagonal[k], work.row[k] = numbers[DIAGONAL, a + k], places[ROW, a + k]
    start[len(start) - 1] = len(work.beta)
    work.gained[0] = 0.0
    set_masks(work, 0, len(work.beta))
    if goals.has_slopes:
        for k in range(n):
            work.grad[k] = out.points[GRAD, a + k]
        return n
    for k in range(n):
        if work.beta[k] != 0.0 and cache.slot[work.row[k]] == NOBODY:
            compute_missing(cache, source, work.row[k], k)
    _sum_gradient(numbers[LINEAR, a:b], work, cache, weight)
    return n


@jit
def _set_goal(out: StackSolution, number: int, work: Work, goals: Goals) -> None:
    """The violation to reach: an exact answer ends at what rounding leaves."""
    evidence = out.evidence
    if evidence[GOAL, number] == 0.0:
        exact = 1.0
        for k in range(len(work.grad)):
            exact = max(exact, abs(work.grad[k]))
        goal, exact = goals.tuning.inner_tol * goals.tol, exact * goals.exact_tol
        evidence[GOAL, number] = min(exact, goal) if goals.is_exact else goal
        evidence[EXACT, number] = exact
    if goals.is_exact or goals.has_margin:
        exact = max(evidence[EXACT, number], _rounding(work))
        evidence[EXACT, number] = exact
        evidence[GOAL, number] = max(evidence[GOAL, number], exact)


@jit
def _is_too_coarse(out: StackSolution, number: int, work: Work, goals: Goals) -> bool:
    """Whether the goal that was reached is too coarse for a margin; it is made finer.

    Coefficients of nu-SVC are divided by the margin, and so is what is left of the
    violation. A margin that is negligible beside it twice is none.
    """
    goal, exact = out.evidence[GOAL, number], out.evidence[EXACT, number]
    if not goals.has_margin or goal <= exact:
        return False
    margin, size = _margin(work), _rounding(work) / ROUNDINGS
    if goal <= goals.tuning.meaningful_violation * size:
        is_negligible = margin <= goals.tuning.negligible_margin * goal
        out.evidence[N_NEGLIGIBLE, number] += 1.0 if is_negligible else 0.0
    share = goals.tuning.margin_share * margin
    if goal <= share or out.evidence[N_NEGLIGIBLE, number] >= 2.0:
        return False
    goal *= goals.tuning.refinement
    if share > 0.0:
        goal = min(goal, share)
    out.evidence[GOAL, number] = max(goal, exact)
    return True


@jit
def _conclude(
    stack: Stack,
    out: StackSolution,
    number: int,
    work: Work,
    cache: RowCache,
    goals: Goals,
    weight: FloatVector,
    of_group: FloatMatrix,
    is_there: bool,
) -> None:
    """Certify where the variables are, and note whether the problem is solved.

    The certificate is about slopes that are summed anew, unless few have moved.
    """
    a, b = stack.end[number - 1] if number > 0 else 0, stack.end[number]
    if not goals.has_slopes:
        _sum_gradient(stack.numbers[LINEAR, a:b], work, cache, weight)
    for k in range(b - a):
        out.points[BETA, a + k], out.points[GRAD, a + k] = work.beta[k], work.grad[k]
    certify(stack, out, number, a, b, goals.tol, of_group)
    is_good_enough = is_there or not (goals.is_exact or goals.has_margin)
    if is_good_enough and out.evidence[VIOLATION, number] <= goals.tol:
        out.counts[STATE, number] = SOLVED
    out.counts[N_COMPUTED, number] = max(
        out.counts[N_COMPUTED, number], cache.counts[N_FILLED]
    )


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
