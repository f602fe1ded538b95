r"""How do the free variables reach their common optimum? By an active-set method.

On the set F of free variables the KKT conditions are a linear system,

.. math:: K_{FF}\, d - E \lambda = -g_F, \qquad E^\top d = 0

with one multiplier for each equality. The variables take the step d, or the part of it
that leads to the first bound; the variable that meets a bound leaves F. At the common
optimum the variables at a bound that violate most enter, and so on (Scheinberg, JMLR 7,
2006). The inverse of K_FF is kept by rank-one updates, from step to step and from call
to call. At large C that is some dozens of steps where SMO makes thousands.

K may be singular: a linear kernel has the rank of the features. Where a sum is fixed,
a constant added to K within its group changes nothing and adds one to the rank. A
variable whose column of K is a combination of those in F moves along the direction
without curvature, together with them, until one of them meets a bound and makes room.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_fast, jit_new
from maxmargin.kernels.cache import NOBODY, RowCache
from maxmargin.kernels.source import RowSource
from maxmargin.kernels.sums import add_rows, dot
from maxmargin.solvers.pairs import obtain_row
from maxmargin.solvers.work import Work, group_of, is_free, mask_of
from maxmargin.solvers.working_set import bounds, worst_group
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

OFF_STRIDE = 8  # rows a multiple of 4 KB apart would share a set of the cache
MAX_GROUPS = 2  # equalities that a problem may have
MAX_FREE = 512  # variables: their inverse is 2 MB, about the second-level cache
MAX_ENTERING = 8  # variables that enter before all slopes are computed again
ENTERING_SHARE = 0.3  # of the worst violation, for those that enter with it
MIN_PIVOT = 1e-10  # of K_ii: a column with less is a combination of the others
MAX_EXCHANGES = 8  # to let a variable enter
MIN_DETERMINANT = 1e-14  # relative, of the equations for two multipliers
MAX_STEPS = 20  # per member
CLOSER = 0.5  # of the violation: what a step on the same set has to bring
MAX_CALLS = 64  # of one problem: beyond, SMO is the better method
DOUBLE = 8  # bytes of a float64
ABSENT = -1


class KernelRows(NamedTuple):
    """Rows of K in float64, in memory or computed when needed."""

    cache: RowCache
    source: RowSource
    row: IntVector  # of each variable
    column: IntVector  # of each variable


class FreeSet(NamedTuple):
    """Free variables and the inverse of K between them, n[0] entries of each array."""

    variable: IntVector
    n: IntVector  # one number
    n_calls: IntVector  # one number: calls of `solve_active_set`
    n_exchanges: IntVector  # one number: moves along directions without curvature
    constant: FloatVector  # one number: added to K within a group
    inverse: FloatMatrix  # of K plus the constant
    combination: FloatVector  # of columns of K, that gives the one refused last
    column: FloatVector  # room for one of K, or of the inverse
    member: IntVector  # the variable's number among the members
    group: IntVector
    lower: FloatVector
    upper: FloatVector
    kink: FloatVector  # with the sign of the side that a variable is on
    slope: FloatVector
    inv_K_slope: FloatVector  # inverse @ slope
    inv_K_ones: FloatMatrix  # inverse @ E, a row for each equality
    slot: IntVector  # of every variable: its place here, or ABSENT
    change: FloatVector  # of every member since slopes were computed
    excess: FloatVector  # of every member, by how much it violates
    moved: IntVector  # room for rows of members that moved
    weight: FloatVector  # and for their changes
    level: FloatVector  # of every group


class ActiveSetLimits(NamedTuple):
    """When to stop."""

    tol: float  # violation of the members
    max_steps: int
    n_groups: int  # equalities; 0: none


@jit_new
def make_free_set(n: int) -> FreeSet:
    """An empty set, for a problem of n variables."""
    size, slot = min(n, MAX_FREE), np.empty(n, dtype=np.intp)
    for k in range(n):
        slot[k] = ABSENT
    return FreeSet(
        variable=np.zeros(size, dtype=np.intp),
        n=np.zeros(1, dtype=np.intp),
        n_calls=np.zeros(1, dtype=np.intp),
        n_exchanges=np.zeros(1, dtype=np.intp),
        constant=np.zeros(1),
        inverse=np.empty((size, size + OFF_STRIDE)),
        combination=np.empty(size),
        column=np.empty(size),
        member=np.zeros(size, dtype=np.intp),
        group=np.zeros(size, dtype=np.intp),
        lower=np.empty(size),
        upper=np.empty(size),
        kink=np.empty(size),
        slope=np.empty(size),
        inv_K_slope=np.empty(size),
        inv_K_ones=np.empty((MAX_GROUPS, size)),
        slot=slot,
        change=np.empty(n),
        excess=np.empty(n),
        moved=np.empty(n, dtype=np.intp),
        weight=np.empty(n),
        level=np.zeros(MAX_GROUPS),
    )


@jit
def clear_free_set(free: FreeSet, n: int) -> None:
    """Make it the empty set of another problem, of n variables."""
    for k in range(n):
        free.slot[k] = ABSENT
    free.n[0] = free.n_calls[0] = 0
    free.constant[0] = 0.0


@jit
def is_worth_trying(free: FreeSet) -> bool:
    """Whether the method has not failed on this problem before."""
    return free.n_calls[0] < MAX_CALLS


@jit
def solve_active_set(
    own: Work,
    members: IntVector,
    square: RowCache,
    kernel: KernelRows,
    free: FreeSet,
    limits: ActiveSetLimits,
) -> tuple[int, bool]:
    """Take the members to their common optimum: (steps made, whether it was reached).

    `own` holds the members, `members` their numbers among all variables; `square` has
    the rows of K of the members that may move, over all members, in any precision.
    """
    n_groups = limits.n_groups
    max_steps = min(limits.max_steps, MAX_STEPS * len(members))
    free.n_calls[0] += 1
    if n_groups > 0 and free.constant[0] == 0.0:
        for k in range(len(members)):
            free.constant[0] = max(free.constant[0], own.diagonal[k])
    change, level = free.change[: len(members)], free.level
    for k in range(len(members)):
        change[k] = 0.0
    free.n_exchanges[0] = 0
    if not _synchronise(own, members, kernel, free, change, n_groups):
        _update_slopes(own, free, square, change, n_groups)
        return free.n_exchanges[0], False
    made, n_entering, least = 0, MAX_ENTERING, np.inf
    while made < max_steps:
        before, n_exchanges = made, free.n_exchanges[0]
        made, free.n_exchanges[0] = made + n_exchanges, 0
        made, has_moved = _step_to_bounds(own, free, change, level, n_groups, made)
        _update_slopes(own, free, square, change, n_groups)
        violation = _violation(own, n_groups)
        if violation <= limits.tol:
            return made, True
        if made > before and not has_moved and n_exchanges == 0:
            n_entering //= 2
        _levels(own, free, n_groups, level)
        if n_entering == 0:
            break
        has_entered = _enter_worst(
            own, members, kernel, free, change, level, n_groups, n_entering
        )
        if not has_entered and violation > CLOSER * least:
            break
        least = min(least, violation)
    free.n_calls[0] = MAX_CALLS
    return made, False


@jit
def _violation(own: Work, n_groups: int) -> float:
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
        for i in range(free.n[0]):
            if free.group[i] == g:
                total += free.slope[i]
                n_free += 1
        if n_free > 0:
            level[g] = total / n_free
            continue
        first, last = own.start[g], own.start[g + 1]
        lowest, highest = bounds(
            own.grad[first:last], own.rise[first:last], own.fall[first:last]
        )
        level[g] = 0.5 * (lowest + highest)


# The set and its inverse.


@jit
def _synchronise(
    own: Work,
    members: IntVector,
    kernel: KernelRows,
    free: FreeSet,
    change: FloatVector,
    n_groups: int,
) -> bool:
    """Make the set that of the free members; False if it has no room for them."""
    m = len(members)
    for slot in range(free.n[0]):
        free.member[slot] = ABSENT
    for k in range(m):
        slot = free.slot[members[k]]
        if slot != ABSENT and is_free(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        ):
            free.member[slot] = k
    for slot in range(free.n[0] - 1, -1, -1):
        if free.member[slot] == ABSENT:
            _leave(free, slot, n_groups)
    n = free.n[0]
    for slot in range(n):
        _set_box(own, free, slot, free.member[slot], own.beta[free.member[slot]] > 0.0)
    _apply_inverse(free, n_groups)
    for k in range(m):
        if free.slot[members[k]] == ABSENT and is_free(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        ):
            if free.n[0] == len(free.variable):
                return False
            is_rising = own.beta[k] > 0.0  # of a kink, the side that it is on
            _enter_or_exchange(
                own, members, kernel, free, change, k, is_rising, n_groups
            )
    return True


@jit
def _apply_inverse(free: FreeSet, n_groups: int) -> None:
    """inverse @ slope and inverse @ E, without the rounding of many updates."""
    n = free.n[0]
    for i in range(n):
        free.inv_K_slope[i] = dot(free.inverse[i, :n], free.slope[:n])
        for g in range(n_groups):
            free.inv_K_ones[g, i] = 0.0
        if n_groups > 0:
            for j in range(n):
                free.inv_K_ones[free.group[j], i] += free.inverse[i, j]


@jit
def _set_box(own: Work, free: FreeSet, slot: int, k: int, is_rising: bool) -> None:
    """Member k: its group, its box as far as the next kink, and its slope there."""
    beta, kink = own.beta[k], own.kink[k]
    free.lower[slot], free.upper[slot] = own.lower[k], own.upper[k]
    if kink > 0.0:
        if beta > 0.0 or (beta == 0.0 and is_rising):
            free.lower[slot] = 0.0
        else:
            free.upper[slot], kink = 0.0, -kink
    free.group[slot] = group_of(own, k)
    free.kink[slot] = kink
    free.slope[slot] = own.grad[k] + kink


@jit
def _enter(
    own: Work,
    members: IntVector,
    kernel: KernelRows,
    free: FreeSet,
    k: int,
    is_rising: bool,
    n_groups: int,
) -> bool:
    """Add member k to the set, unless its column is a combination of the others.

    The inverse grows by a row and a column: with u = inverse @ K_Fk and the pivot
    K_kk - K_kF u, a rank-one update.
    """
    n, inverse, variable = free.n[0], free.inverse, members[k]
    slot = obtain_row(kernel.cache, kernel.source, kernel.row[variable], variable)
    if slot == NOBODY:
        return False
    row = kernel.cache.rows[slot]
    column, u, group = free.column[:n], free.combination[:n], group_of(own, k)
    for i in range(n):
        same = free.constant[0] if free.group[i] == group else 0.0
        column[i] = row[kernel.column[free.variable[i]]] + same
    for i in range(n):
        u[i] = dot(inverse[i, :n], column)
    diagonal = row[kernel.column[variable]] + free.constant[0]
    pivot = diagonal - dot(u, column)
    if pivot <= MIN_PIVOT * abs(diagonal):
        return False
    free.variable[n], free.member[n], free.slot[variable] = variable, k, n
    _set_box(own, free, n, k, is_rising)
    new_slope = (free.slope[n] - dot(u, free.slope[:n])) / pivot
    for i in range(n):
        _add_multiple(inverse[i, :n], u, u[i] / pivot)
        inverse[i, n] = inverse[n, i] = -u[i] / pivot
        free.inv_K_slope[i] -= u[i] * new_slope
    inverse[n, n], free.inv_K_slope[n] = 1.0 / pivot, new_slope
    for g in range(n_groups):
        ones = 1.0 if free.group[n] == g else 0.0
        for i in range(n):
            ones -= u[i] if free.group[i] == g else 0.0
        ones /= pivot
        for i in range(n):
            free.inv_K_ones[g, i] -= u[i] * ones
        free.inv_K_ones[g, n] = ones
    free.n[0] = n + 1
    return True


@jit
def _enter_or_exchange(
    own: Work,
    members: IntVector,
    kernel: KernelRows,
    free: FreeSet,
    change: FloatVector,
    k: int,
    is_rising: bool,
    n_groups: int,
) -> bool:
    """Let member k enter, if need be after moves without curvature.

    These end with an entry of the set at a bound, which then leaves it, or with k at
    one. False if nothing can be done.
    """
    for _ in range(MAX_EXCHANGES):
        if free.n[0] == len(free.variable):
            return False
        if _enter(own, members, kernel, free, k, is_rising, n_groups):
            return True
        length, blocking = _exchange(own, free, change, k, is_rising)
        if length < 0.0:
            return False
        free.n_exchanges[0] += 1
        if blocking == ABSENT:
            return True
        _leave(free, blocking, n_groups)
    return False


@jit
def _exchange(
    own: Work, free: FreeSet, change: FloatVector, k: int, is_rising: bool
) -> tuple[float, int]:
    """Move k and the set along (1, -u), where K is zero: (length, entry at a bound).

    ABSENT stands for k itself; a negative length says that this is no descent.
    """
    n, u = free.n[0], free.combination
    beta, kink, lower, upper = own.beta[k], own.kink[k], own.lower[k], own.upper[k]
    sign, slope = 1.0, own.grad[k] + own.rise[k]
    if not is_rising:
        sign, slope = -1.0, own.grad[k] + own.fall[k]
    for i in range(n):
        slope -= u[i] * free.slope[i]
    if is_free(beta, kink, lower, upper):
        sign = -1.0 if slope > 0.0 else 1.0
    if sign * slope > 0.0:
        return -1.0, ABSENT
    if sign > 0.0:
        end = 0.0 if beta < 0.0 and kink > 0.0 else upper
    else:
        end = 0.0 if beta > 0.0 and kink > 0.0 else lower
    length, blocking = abs(end - beta), ABSENT
    for i in range(n):
        step = -sign * u[i]
        if step == 0.0:
            continue
        limit = free.upper[i] if step > 0.0 else free.lower[i]
        room = max((limit - own.beta[free.member[i]]) / step, 0.0)
        if room < length:
            length, blocking = room, i
    if length == np.inf:
        return -1.0, ABSENT
    after = end if blocking == ABSENT else beta + sign * length
    _put(own, change, k, min(max(after, lower), upper))
    for i in range(n):
        j, step = free.member[i], -sign * u[i]
        after = min(max(own.beta[j] + length * step, free.lower[i]), free.upper[i])
        if i == blocking:
            after = free.upper[i] if step > 0.0 else free.lower[i]
        _put(own, change, j, after)
    return length, blocking


@jit
def _put(own: Work, change: FloatVector, k: int, after: float) -> None:
    """Move variable k there."""
    change[k] += after - own.beta[k]
    own.beta[k] = after
    own.rise[k], own.fall[k] = mask_of(after, own.kink[k], own.lower[k], own.upper[k])


@jit
def _leave(free: FreeSet, slot: int, n_groups: int) -> None:
    """Remove an entry: a rank-one update of the inverse; the last takes its place."""
    n, inverse = free.n[0], free.inverse
    last, column = n - 1, free.column[:n]
    for i in range(n):
        column[i] = inverse[slot, i]
    pivot = column[slot]
    slope = free.inv_K_slope[slot] / pivot
    for i in range(n):
        if i != slot:
            _add_multiple(inverse[i, :n], column, -column[i] / pivot)
            free.inv_K_slope[i] -= column[i] * slope
    for g in range(n_groups):
        ones = free.inv_K_ones[g, slot] / pivot
        for i in range(n):
            free.inv_K_ones[g, i] -= column[i] * ones
        free.inv_K_ones[g, slot] = free.inv_K_ones[g, last]
    free.slot[free.variable[slot]] = ABSENT
    free.n[0] = last
    if slot == last:
        return
    for i in range(n):
        inverse[slot, i] = inverse[last, i]
    for i in range(n):
        inverse[i, slot] = inverse[i, last]
    inverse[slot, slot] = inverse[last, last]
    free.variable[slot], free.member[slot] = free.variable[last], free.member[last]
    free.group[slot] = free.group[last]
    free.lower[slot], free.upper[slot] = free.lower[last], free.upper[last]
    free.kink[slot], free.slope[slot] = free.kink[last], free.slope[last]
    free.inv_K_slope[slot] = free.inv_K_slope[last]
    free.slot[free.variable[slot]] = slot


@jit_fast
def _add_multiple(row: FloatVector, other: FloatVector, factor: float) -> None:
    for k in range(row.size):
        row[k] += factor * other[k]


# Steps.


@jit
def _step_to_bounds(
    own: Work,
    free: FreeSet,
    change: FloatVector,
    level: FloatVector,
    n_groups: int,
    made: int,
) -> tuple[int, bool]:
    """To the common optimum of the set, bound by bound: (steps, whether any moved)."""
    has_moved = False
    while free.n[0] > 0 and _solve_for_levels(free, n_groups, level):
        length, blocking = _step_length(own, free, level, n_groups)
        has_moved = _take_step(own, free, change, level, n_groups, length, blocking) | (
            has_moved
        )
        made += 1
        if blocking == ABSENT:
            break
        _leave(free, blocking, n_groups)
    return made, has_moved


@jit
def _solve_for_levels(free: FreeSet, n_groups: int, level: FloatVector) -> bool:
    """The multipliers at the common optimum: EᵀK⁻¹E level = EᵀK⁻¹ slope.

    False where no step keeps all sums: each group has one free variable at most, or
    the equations are singular.
    """
    n = free.n[0]
    if n_groups == 0:
        return True
    a, b, c, p, q, n_first = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for i in range(n):
        if free.group[i] == 0:
            a += free.inv_K_ones[0, i]
            p += free.inv_K_slope[i]
            n_first += 1
        else:
            b += free.inv_K_ones[0, i]
            c += free.inv_K_ones[1, i]
            q += free.inv_K_slope[i]
    n_second = n - n_first
    if n_first <= 1 and n_second <= 1:
        return False
    if n_second == 0:
        level[0] = p / a
        return a > 0.0
    if n_first == 0:
        level[1] = q / c
        return c > 0.0
    determinant = a * c - b * b
    level[0], level[1] = (c * p - b * q) / determinant, (a * q - b * p) / determinant
    return a > 0.0 and c > 0.0 and determinant > MIN_DETERMINANT * a * c


@jit
def _direction(free: FreeSet, i: int, level: FloatVector, n_groups: int) -> float:
    """Entry i of the Newton step."""
    step = -free.inv_K_slope[i]
    for g in range(n_groups):
        step += level[g] * free.inv_K_ones[g, i]
    return step


@jit
def _step_length(
    own: Work, free: FreeSet, level: FloatVector, n_groups: int
) -> tuple[float, int]:
    """The part of the step that stays in the box, and the entry that meets a bound."""
    length, blocking = 1.0, ABSENT
    for i in range(free.n[0]):
        step = _direction(free, i, level, n_groups)
        if step == 0.0:
            continue
        end = free.upper[i] if step > 0.0 else free.lower[i]
        room = max((end - own.beta[free.member[i]]) / step, 0.0)
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
) -> bool:
    """Move the set; `blocking` ends at its very bound. Whether anything moved."""
    has_moved = False
    for i in range(free.n[0]):
        k = free.member[i]
        step = length * _direction(free, i, level, n_groups)
        after = min(max(own.beta[k] + step, free.lower[i]), free.upper[i])
        if i == blocking and length > 0.0:
            after = free.upper[i] if step > 0.0 else free.lower[i]
        has_moved = has_moved or after != own.beta[k]
        change[k] += after - own.beta[k]
        own.beta[k] = after
        free.inv_K_slope[i] += step
        target = level[free.group[i]] if n_groups > 0 else 0.0
        free.slope[i] += length * (target - free.slope[i])
        if i == blocking:
            own.rise[k], own.fall[k] = mask_of(
                after, own.kink[k], own.lower[k], own.upper[k]
            )
    return has_moved


@jit
def _update_slopes(
    own: Work,
    free: FreeSet,
    square: RowCache,
    change: FloatVector,
    n_groups: int,
) -> None:
    """Slopes of all members.

    Where rows are in float32, those of the set are known better from the steps. In
    float64 they show what rounding has left, which the next step takes back.
    """
    for g in range(n_groups):
        _restore_sum(own, free, change, g)
    m, n_moved, moved, weight = len(change), 0, free.moved, free.weight
    # Of a quadratic, the slopes at both ends give the decrease in between.
    for k in range(m):
        if change[k] != 0.0:
            kinks = own.kink[k] * (abs(own.beta[k]) - abs(own.beta[k] - change[k]))
            own.gained[0] -= 0.5 * change[k] * own.grad[k] + kinks
    for k in range(m):
        if change[k] != 0.0:
            moved[n_moved], weight[n_moved] = square.slot[own.row[k]], change[k]
            n_moved += 1
    add_rows(square.rows, moved[:n_moved], weight[:n_moved], (0, m), own.grad)
    for k in range(m):
        own.gained[0] -= 0.5 * change[k] * own.grad[k]
        change[k] = 0.0
    n = free.n[0]
    for i in range(n):
        k = free.member[i]
        if square.rows.itemsize == DOUBLE:
            free.slope[i] = own.grad[k] + free.kink[i]
        else:
            own.grad[k] = free.slope[i] - free.kink[i]
        own.rise[k], own.fall[k] = mask_of(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        )
    _apply_inverse(free, n_groups)


@jit
def _restore_sum(own: Work, free: FreeSet, change: FloatVector, g: int) -> None:
    """Rounding in the sum of a group goes to the variable with most room."""
    drift = 0.0
    for k in range(own.start[g], own.start[g + 1]):
        drift += change[k]
    widest, widest_room = ABSENT, abs(drift)
    for i in range(free.n[0]):
        beta = own.beta[free.member[i]]
        room = min(free.upper[i] - beta, beta - free.lower[i])
        if free.group[i] == g and room > widest_room:
            widest, widest_room = free.member[i], room
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
    excess = free.excess
    for k in range(m):
        excess[k] = 0.0
        if free.slot[members[k]] == ABSENT:
            middle = level[group_of(own, k)] if n_groups > 0 else 0.0
            up = middle - own.grad[k] - own.rise[k]
            excess[k] = max(up, own.grad[k] + own.fall[k] - middle, 0.0)
            worst = max(worst, excess[k])
    if free.n[0] == 0:
        n_entering = max(n_entering, 2)  # one on either side of the level
    for _ in range(n_entering):
        k = _place_of_largest(excess, m)
        if excess[k] <= ENTERING_SHARE * worst or free.n[0] == len(free.variable):
            break
        middle = level[group_of(own, k)] if n_groups > 0 else 0.0
        is_rising = middle - own.grad[k] - own.rise[k] == excess[k]
        has_entered |= _enter_or_exchange(
            own, members, kernel, free, change, k, is_rising, n_groups
        )
        excess[k] = 0.0
    return has_entered
