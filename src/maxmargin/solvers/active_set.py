r"""How do the free variables reach their common optimum? By an active-set method.

On the set F of free variables the KKT conditions are a linear system,

.. math:: K_{FF}\, d - E \lambda = -g_F, \qquad E^\top d = 0

with one multiplier for each equality. The variables take the step d, or the part of it
that leads to the first bound; the variable that meets a bound leaves F. At the common
optimum the variables at a bound that violate most enter, and so on (Scheinberg, JMLR 7,
2006). At large C that is some dozens of steps where SMO makes thousands.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.solvers.free_inverse import (
    ABSENT,
    CHANGE,
    CONSTANT,
    EXCESS,
    GROUP,
    INV_K_ONES,
    INV_K_SLOPE,
    KINK,
    LOWER,
    MEMBER,
    N_CALLS,
    N_EXCHANGES,
    SLOPE,
    UPPER,
    FreeSet,
    KernelRows,
    N,
    apply_inverse,
    enter_or_exchange,
    forget_entries,
    leave,
    solve_groups,
    synchronise,
)
from maxmargin.solvers.pair_selection import add_row, bounds, worst_group
from maxmargin.solvers.work import Work, group_of, is_free, mask_of
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

MAX_ENTERING = 8  # variables that enter before all slopes are computed again
ENTERING_SHARE = 0.3  # of the worst violation, for those that enter with it
MAX_STEPS = 20  # per member
CLOSER = 0.5  # of the violation: what a step on the same set has to bring
MAX_REBUILT = 3  # inverses of a call
MAX_CALLS = 64  # of one problem: beyond, SMO is the better method
DOUBLE = 8  # bytes of a float64
INVERSE_COST = 0.07  # of an entry and a row, in members that a move looks at


class ActiveSetLimits(NamedTuple):
    """When to stop."""

    tol: float  # violation of the members
    max_steps: int
    n_groups: int  # equalities; 0: none


@jit
def has_failed(free: FreeSet) -> bool:
    """Whether the method has failed on this problem before."""
    return free.counts[N_CALLS] >= MAX_CALLS


@jit
def moves_before(free: FreeSet, own: Work, members: IntVector) -> int:
    """Moves of SMO that cost as much as the inverse of those that are free now.

    With so many before this method, both take at most twice the better one's time.
    """
    n_free = n_new = 0
    for k in range(len(members)):
        if is_free(own.beta[k], own.kink[k], own.lower[k], own.upper[k]):
            n_free += 1
            n_new += free.slot[members[k]] == ABSENT
    return int(INVERSE_COST * n_free**2 * n_new / max(len(members), 1))


@jit
def solve_active_set(
    own: Work,
    members: IntVector,
    rows: KernelMatrix,
    slot: IntVector,
    kernel: KernelRows,
    free: FreeSet,
    limits: ActiveSetLimits,
) -> tuple[int, bool]:
    """Take the members to their common optimum: (steps made, whether it was reached).

    `own` holds the members, `members` their numbers among all variables; `rows` are
    those of K of the members that may move, over all members, in any precision, and
    `slot` says where.
    """
    n_groups = limits.n_groups
    max_steps = min(limits.max_steps, MAX_STEPS * len(members))
    free.counts[N_CALLS] += 1
    if n_groups > 0 and free.level[CONSTANT] == 0.0:
        for k in range(len(members)):
            free.level[CONSTANT] = max(free.level[CONSTANT], own.diagonal[k])
    change, level = free.of_member[CHANGE][: len(members)], free.level
    for k in range(len(members)):
        change[k] = 0.0
    made, n_entering, n_rebuilt, least = 0, MAX_ENTERING, 0, np.inf
    best, is_stale = own.gained[0], True
    free.counts[N_EXCHANGES] = 0
    while made < max_steps:
        has_room = True
        if is_stale:
            has_room = synchronise(own, members, kernel, free, change, n_groups)
            is_stale = False
        before = made
        made, free.counts[N_EXCHANGES] = made + free.counts[N_EXCHANGES], 0
        if has_room:
            steps, _ = _step_to_bounds(
                own, free, change, level, n_groups, max_steps - made
            )
            made += steps
        _update_slopes(own, free, rows, slot, change, n_groups)
        if not has_room and n_rebuilt == 0:
            return made, False
        if not has_room:
            break
        violation = violation_of(own, n_groups)
        if violation <= limits.tol:
            return made, True
        # Variables that have entered together may keep each other at their bounds, step
        # by step of length zero: then fewer enter.
        if made > before and own.gained[0] <= best:
            n_entering //= 2
        _levels(own, free, n_groups, level)
        is_stuck = n_entering == 0 or own.gained[0] < best
        best = max(best, own.gained[0])
        if not is_stuck:
            has_entered = _enter_worst(
                own, members, kernel, free, change, level, n_groups, n_entering
            )
            is_same_set = not has_entered and free.counts[N_EXCHANGES] == 0
            is_stuck = is_same_set and violation > CLOSER * least
        least = min(least, violation)
        if is_stuck:
            # Many updates may have spoiled the inverse: compute it afresh.
            if n_rebuilt == MAX_REBUILT:
                break
            n_rebuilt, n_entering, least = n_rebuilt + 1, MAX_ENTERING, np.inf
            forget_entries(free)
            is_stale = True
    free.counts[N_CALLS] = MAX_CALLS
    return made, False


@jit
def violation_of(own: Work, n_groups: int) -> float:
    """The KKT violation of these variables."""
    if n_groups == 0:
        lowest, highest = bounds(own.grad, own.rise, own.fall)
        return max(highest, -lowest)
    _, _, _, violation = worst_group(own.grad, own.rise, own.fall, own.start)
    return violation


@jit
def _levels(own: Work, free: FreeSet, n_groups: int, level: FloatVector) -> None:
    """The slope that the free variables of each group share.

    Of a group without free variables, the middle between its extreme slopes.
    """
    for g in range(n_groups):
        total, n_free = 0.0, 0
        for i in range(free.counts[N]):
            if free.indices[GROUP, i] == g:
                total += free.value[SLOPE, i]
                n_free += 1
        if n_free > 0:
            level[g] = total / n_free
            continue
        first, last = own.start[g], own.start[g + 1]
        lowest, highest = bounds(
            own.grad[first:last], own.rise[first:last], own.fall[first:last]
        )
        level[g] = 0.5 * (lowest + highest)


@jit
def step_to_common_optimum(own: Work, free: FreeSet, n_groups: int, most: int) -> bool:
    """So many steps at most, bound by bound; whether the set has come to its optimum.

    No variable enters, and slopes of members are left alone.
    """
    change = free.of_member[CHANGE]
    for k in range(len(own.beta)):
        change[k] = 0.0
    _, is_there = _step_to_bounds(own, free, change, free.level, n_groups, most)
    for g in range(n_groups):
        _restore_sum(own, free, change, g)
    return is_there


@jit
def _step_to_bounds(
    own: Work,
    free: FreeSet,
    change: FloatVector,
    level: FloatVector,
    n_groups: int,
    most: int,
) -> tuple[int, bool]:
    """To the common optimum of the set, bound by bound: (steps made, whether there)."""
    made = 0
    while free.counts[N] > 0 and _solve_for_levels(free, n_groups, level):
        if made >= most:
            return made, False
        length, blocking = _step_length(own, free, level, n_groups)
        _take_step(own, free, change, level, n_groups, length, blocking)
        made += 1
        if blocking == ABSENT:
            break
        leave(free, blocking, n_groups)
    return made, True


@jit
def _solve_for_levels(free: FreeSet, n_groups: int, level: FloatVector) -> bool:
    """The multipliers at the common optimum; False where no step keeps all sums."""
    p, q, n_first, n = 0.0, 0.0, 0, free.counts[N]
    for i in range(n):
        if free.indices[GROUP, i] == 0:
            p += free.value[INV_K_SLOPE, i]
            n_first += 1
        else:
            q += free.value[INV_K_SLOPE, i]
    if n_groups > 0 and n_first <= 1 and n - n_first <= 1:
        return False
    return solve_groups(free, n_groups, p, q, level)


@jit
def _direction(free: FreeSet, i: int, level: FloatVector, n_groups: int) -> float:
    """Entry i of the Newton step."""
    step = -free.value[INV_K_SLOPE, i]
    for g in range(n_groups):
        step += level[g] * free.value[INV_K_ONES + g, i]
    return step


@jit
def _step_length(
    own: Work, free: FreeSet, level: FloatVector, n_groups: int
) -> tuple[float, int]:
    """The part of the step that stays in the box, and the entry that meets a bound."""
    length, blocking = 1.0, ABSENT
    for i in range(free.counts[N]):
        step = _direction(free, i, level, n_groups)
        if step == 0.0:
            continue
        end = free.value[UPPER, i] if step > 0.0 else free.value[LOWER, i]
        room = max((end - own.beta[free.indices[MEMBER, i]]) / step, 0.0)
        if room < length:
            length, blocking = room, i
    return length, blocking


@jit
def _take_step(
    own: Work,
    free: FreeSet,
    change: FloatVector,
    level: FloatVector,
    n_groups: int,
    length: float,
    blocking: int,
) -> None:
    """Move the set; `blocking` ends at its very bound."""
    for i in range(free.counts[N]):
        k = free.indices[MEMBER, i]
        step = length * _direction(free, i, level, n_groups)
        after = min(max(own.beta[k] + step, free.value[LOWER, i]), free.value[UPPER, i])
        if i == blocking and length > 0.0:
            after = free.value[UPPER, i] if step > 0.0 else free.value[LOWER, i]
        change[k] += after - own.beta[k]
        own.beta[k] = after
        free.value[INV_K_SLOPE, i] += step
        target = level[free.indices[GROUP, i]] if n_groups > 0 else 0.0
        free.value[SLOPE, i] += length * (target - free.value[SLOPE, i])
        if i == blocking:
            own.rise[k], own.fall[k] = mask_of(
                after, own.kink[k], own.lower[k], own.upper[k]
            )


@jit
def _update_slopes(
    own: Work,
    free: FreeSet,
    rows: KernelMatrix,
    slot: IntVector,
    change: FloatVector,
    n_groups: int,
) -> None:
    """Slopes of all members.

    Where rows are in float32, those of the set are known better from the steps. In
    float64 they show what rounding has left, which the next step takes back.
    """
    for g in range(n_groups):
        _restore_sum(own, free, change, g)
    # Of a quadratic, the slopes at both ends give the decrease in between.
    for k in range(len(change)):
        if change[k] != 0.0:
            kinks = own.kink[k] * (abs(own.beta[k]) - abs(own.beta[k] - change[k]))
            own.gained[0] -= 0.5 * change[k] * own.grad[k] + kinks
    for k in range(len(change)):
        if change[k] != 0.0:
            add_row(own.grad, rows[slot[own.row[k]]], change[k])
    for k in range(len(change)):
        own.gained[0] -= 0.5 * change[k] * own.grad[k]
        change[k] = 0.0
    n = free.counts[N]
    for i in range(n):
        k = free.indices[MEMBER, i]
        if rows.itemsize == DOUBLE:
            free.value[SLOPE, i] = own.grad[k] + free.value[KINK, i]
        else:
            own.grad[k] = free.value[SLOPE, i] - free.value[KINK, i]
        own.rise[k], own.fall[k] = mask_of(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        )
    apply_inverse(free, n_groups)


@jit
def _restore_sum(own: Work, free: FreeSet, change: FloatVector, g: int) -> None:
    """Rounding in the sum of a group goes to the variable with most room."""
    drift = 0.0
    for k in range(own.start[g], own.start[g + 1]):
        drift += change[k]
    widest, widest_room = ABSENT, abs(drift)
    for i in range(free.counts[N]):
        beta = own.beta[free.indices[MEMBER, i]]
        room = min(free.value[UPPER, i] - beta, beta - free.value[LOWER, i])
        if free.indices[GROUP, i] == g and room > widest_room:
            widest, widest_room = free.indices[MEMBER, i], room
    if widest != ABSENT:
        own.beta[widest] -= drift
        change[widest] -= drift


@jit
def _place_of_largest(values: FloatVector, n: int) -> int:
    """Where the largest of the first n is."""
    place = 0
    for i in range(1, n):
        if values[i] > values[place]:
            place = i
    return place


@jit
def _enter_worst(
    own: Work,
    members: IntVector,
    kernel: KernelRows,
    free: FreeSet,
    change: FloatVector,
    level: FloatVector,
    n_groups: int,
    n_entering: int,
) -> bool:
    """The members at a bound that violate most enter the set; False if none can."""
    m, worst, has_entered = len(members), 0.0, False
    excess = free.of_member[EXCESS]
    for k in range(m):
        excess[k] = 0.0
        if free.slot[members[k]] == ABSENT:
            middle = level[group_of(own, k)] if n_groups > 0 else 0.0
            up = middle - own.grad[k] - own.rise[k]
            excess[k] = max(up, own.grad[k] + own.fall[k] - middle, 0.0)
            worst = max(worst, excess[k])
    if free.counts[N] == 0:
        n_entering = max(n_entering, 2)  # one on either side of the level
    for _ in range(n_entering):
        k = _place_of_largest(excess, m)
        if (
            excess[k] <= ENTERING_SHARE * worst
            or free.counts[N] == free.indices.shape[1]
        ):
            break
        middle = level[group_of(own, k)] if n_groups > 0 else 0.0
        is_rising = middle - own.grad[k] - own.rise[k] == excess[k]
        has_entered |= enter_or_exchange(
            own, members, kernel, free, change, k, is_rising, n_groups
        )
        excess[k] = 0.0
    return has_entered
