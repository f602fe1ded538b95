r"""Which variables are free, and what is the inverse of K between them?

The inverse of an active-set method (Scheinberg, JMLR 7, 2006) is kept by rank-one
updates, from step to step and from call to call.

K may be singular: a linear kernel has the rank of the features. Where a sum is fixed,
a constant added to K within its group changes nothing and adds one to the rank. A
variable whose column of K is a combination of those in the set moves along the
direction without curvature, together with them, until one of them meets a bound and
makes room.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_fast
from maxmargin.kernels.cache import NOBODY, RowCache
from maxmargin.kernels.source import RowSource
from maxmargin.kernels.sums import dot
from maxmargin.solvers.pairs import obtain_row
from maxmargin.solvers.work import Work, group_of, is_free, mask_of
from maxmargin.typing import FloatMatrix, FloatVector, IntMatrix, IntVector

OFF_STRIDE = 8  # rows a multiple of 4 KB apart would share a set of the cache
MAX_GROUPS = 2  # equalities that a problem may have
MAX_FREE = 512  # variables: their inverse is 2 MB, about the second-level cache
MIN_PIVOT = 1e-8  # of K_ii: with less, a column is a combination of the others
MAX_EXCHANGES = 8  # to let a variable enter
MIN_DETERMINANT = 1e-14  # relative, of the equations for two multipliers
ABSENT = -1


class KernelRows(NamedTuple):
    """Rows of K in float64, in memory or computed when needed."""

    cache: RowCache
    source: RowSource | None  # None: all rows are in the cache
    row: IntVector  # of each variable
    column: IntVector  # of each variable


# What the arrays of a FreeSet hold, by their first index. There are few of them because
# each is seven arguments of every compiled function that gets one.
N, N_CALLS, N_EXCHANGES = 0, 1, 2  # of `counts`
VARIABLE, MEMBER, GROUP = 0, 1, 2  # of `indices`, an entry a free variable
LOWER, UPPER, KINK, SLOPE = 0, 1, 2, 3  # of `value`, likewise: its box up to a kink
INV_K_SLOPE, COMBINATION, COLUMN, INV_K_ONES = 4, 5, 6, 7  # one more for each group
CHANGE, EXCESS = 0, 1  # of `of_member`
CONSTANT = MAX_GROUPS  # of `level`, after the slopes that groups share


class FreeSet(NamedTuple):
    """Free variables and the inverse of K between them, counts[N] entries each."""

    counts: IntVector  # entries; calls so far; moves without curvature of this call
    indices: IntMatrix  # the variable, its number among the members, its group
    value: FloatMatrix  # see above; KINK has the sign of the side, COMBINATION is that
    # of columns which gives the column of the variable refused last
    inverse: FloatMatrix  # of K plus a constant within each group
    level: FloatVector  # of every group, and the constant
    slot: IntVector  # of every variable: its entry here, or ABSENT
    of_member: FloatMatrix  # its change since slopes were computed; its violation


def make_free_set(n: int, size: int = MAX_FREE) -> FreeSet:
    """An empty set for a problem of n variables, of which so many may enter."""
    size = min(n, size)
    return FreeSet(
        counts=np.zeros(3, dtype=np.intp),
        indices=np.zeros((3, size), dtype=np.intp),
        value=np.empty((INV_K_ONES + MAX_GROUPS, size)),
        inverse=np.empty((size, size + OFF_STRIDE)),
        level=np.zeros(MAX_GROUPS + 1),
        slot=np.full(n, ABSENT),
        of_member=np.empty((2, n)),
    )


@jit
def clear_free_set(free: FreeSet, n: int) -> None:
    """Make it the empty set of another problem, of n variables."""
    for k in range(n):
        free.slot[k] = ABSENT
    free.counts[N] = free.counts[N_CALLS] = free.counts[N_EXCHANGES] = 0
    free.level[CONSTANT] = 0.0


@jit
def forget_entries(free: FreeSet) -> None:
    """Empty the set; the variables stay where they are."""
    for i in range(free.counts[N]):
        free.slot[free.indices[VARIABLE, i]] = ABSENT
    free.counts[N] = 0


@jit
def synchronise(
    own: Work,
    members: IntVector,
    kernel: KernelRows,
    free: FreeSet,
    change: FloatVector,
    n_groups: int,
) -> bool:
    """Make the set that of the free members; False if it has no room for them."""
    m = len(members)
    for slot in range(free.counts[N]):
        free.indices[MEMBER, slot] = ABSENT
    for k in range(m):
        slot = free.slot[members[k]]
        if slot != ABSENT and is_free(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        ):
            free.indices[MEMBER, slot] = k
    for slot in range(free.counts[N] - 1, -1, -1):
        if free.indices[MEMBER, slot] == ABSENT:
            leave(free, slot, n_groups)
    n = free.counts[N]
    for slot in range(n):
        _set_box(
            own,
            free,
            slot,
            free.indices[MEMBER, slot],
            own.beta[free.indices[MEMBER, slot]] > 0.0,
        )
    apply_inverse(free, n_groups)
    for k in range(m):
        if free.slot[members[k]] == ABSENT and is_free(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        ):
            if free.counts[N] == free.indices.shape[1]:
                return False
            is_rising = own.beta[k] > 0.0  # of a kink, the side that it is on
            enter_or_exchange(
                own, members, kernel, free, change, k, is_rising, n_groups
            )
    return True


@jit
def apply_inverse(free: FreeSet, n_groups: int) -> None:
    """inverse @ slope and inverse @ E, without the rounding of many updates."""
    n = free.counts[N]
    for i in range(n):
        free.value[INV_K_SLOPE, i] = dot(free.inverse[i, :n], free.value[SLOPE][:n])
        for g in range(n_groups):
            free.value[INV_K_ONES + g, i] = 0.0
        if n_groups > 0:
            for j in range(n):
                free.value[INV_K_ONES + free.indices[GROUP, j], i] += free.inverse[i, j]


@jit
def _set_box(own: Work, free: FreeSet, slot: int, k: int, is_rising: bool) -> None:
    """Member k: its group, its box as far as the next kink, and its slope there."""
    beta, kink = own.beta[k], own.kink[k]
    free.value[LOWER, slot], free.value[UPPER, slot] = own.lower[k], own.upper[k]
    if kink > 0.0:
        if beta > 0.0 or (beta == 0.0 and is_rising):
            free.value[LOWER, slot] = 0.0
        else:
            free.value[UPPER, slot], kink = 0.0, -kink
    free.indices[GROUP, slot] = group_of(own, k)
    free.value[KINK, slot] = kink
    free.value[SLOPE, slot] = own.grad[k] + kink


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
    n, inverse, variable = free.counts[N], free.inverse, members[k]
    slot = obtain_row(kernel.cache, kernel.source, kernel.row[variable], variable)
    if slot == NOBODY:
        return False
    row = kernel.cache.rows[slot]
    column, u, group = (
        free.value[COLUMN][:n],
        free.value[COMBINATION][:n],
        group_of(own, k),
    )
    for i in range(n):
        same = free.level[CONSTANT] if free.indices[GROUP, i] == group else 0.0
        column[i] = row[kernel.column[free.indices[VARIABLE, i]]] + same
    for i in range(n):
        u[i] = dot(inverse[i, :n], column)
    diagonal = row[kernel.column[variable]] + free.level[CONSTANT]
    pivot = diagonal - dot(u, column)
    if pivot <= MIN_PIVOT * abs(diagonal):
        return False
    free.indices[VARIABLE, n], free.indices[MEMBER, n], free.slot[variable] = (
        variable,
        k,
        n,
    )
    _set_box(own, free, n, k, is_rising)
    new_slope = (free.value[SLOPE, n] - dot(u, free.value[SLOPE][:n])) / pivot
    for i in range(n):
        _add_multiple(inverse[i, :n], u, u[i] / pivot)
        inverse[i, n] = inverse[n, i] = -u[i] / pivot
        free.value[INV_K_SLOPE, i] -= u[i] * new_slope
    inverse[n, n], free.value[INV_K_SLOPE, n] = 1.0 / pivot, new_slope
    for g in range(n_groups):
        ones = 1.0 if free.indices[GROUP, n] == g else 0.0
        for i in range(n):
            ones -= u[i] if free.indices[GROUP, i] == g else 0.0
        ones /= pivot
        for i in range(n):
            free.value[INV_K_ONES + g, i] -= u[i] * ones
        free.value[INV_K_ONES + g, n] = ones
    free.counts[N] = n + 1
    return True


@jit
def enter_or_exchange(
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
        if free.counts[N] == free.indices.shape[1]:
            return False
        if _enter(own, members, kernel, free, k, is_rising, n_groups):
            return True
        length, blocking = _exchange(own, free, change, k, is_rising, n_groups)
        if length < 0.0:
            return False
        free.counts[N_EXCHANGES] += 1
        if blocking == ABSENT:
            return True
        leave(free, blocking, n_groups)
    return False


@jit
def _exchange(
    own: Work,
    free: FreeSet,
    change: FloatVector,
    k: int,
    is_rising: bool,
    n_groups: int,
) -> tuple[float, int]:
    """Move k and the set along (1, -u), where K is zero: (length, entry at a bound).

    ABSENT stands for k itself; the length is negative where the direction is not one
    of descent.
    """
    n, u = free.counts[N], free.value[COMBINATION]
    _keep_sums(free, n_groups, group_of(own, k))
    beta, kink, lower, upper = own.beta[k], own.kink[k], own.lower[k], own.upper[k]
    sign, slope = 1.0, own.grad[k] + own.rise[k]
    if not is_rising:
        sign, slope = -1.0, own.grad[k] + own.fall[k]
    for i in range(n):
        slope -= u[i] * free.value[SLOPE, i]
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
        limit = free.value[UPPER, i] if step > 0.0 else free.value[LOWER, i]
        room = max((limit - own.beta[free.indices[MEMBER, i]]) / step, 0.0)
        if room < length:
            length, blocking = room, i
    if length == np.inf:
        return -1.0, ABSENT
    after = end if blocking == ABSENT else beta + sign * length
    _put(own, change, k, min(max(after, lower), upper))
    for i in range(n):
        j, step = free.indices[MEMBER, i], -sign * u[i]
        after = min(
            max(own.beta[j] + length * step, free.value[LOWER, i]), free.value[UPPER, i]
        )
        if i == blocking:
            after = free.value[UPPER, i] if step > 0.0 else free.value[LOWER, i]
        _put(own, change, j, after)
    return length, blocking


@jit
def _keep_sums(free: FreeSet, n_groups: int, group: int) -> None:
    """Let (1, -u), where 1 is in a group, keep all sums, which rounding has missed."""
    n, u, excess = free.counts[N], free.value[COMBINATION], free.value[COLUMN]
    if n_groups == 0:
        return
    p, q = 1.0 if group == 0 else 0.0, 1.0 if group == 1 else 0.0
    for i in range(n):
        if free.indices[GROUP, i] == 0:
            p -= u[i]
        else:
            q -= u[i]
    if len(excess) >= n_groups and solve_groups(free, n_groups, p, q, excess):
        first, second = excess[0], excess[1] if n_groups > 1 else 0.0
        for i in range(n):
            u[i] += first * free.value[INV_K_ONES, i]
            if n_groups > 1:
                u[i] += second * free.value[INV_K_ONES + 1, i]


@jit
def solve_groups(
    free: FreeSet, n_groups: int, p: float, q: float, level: FloatVector
) -> bool:
    """Solve EᵀK⁻¹E level = (p, q); False where the equations are singular."""
    a, b, c = 0.0, 0.0, 0.0
    if n_groups == 0:
        return True
    n_first, n = 0, free.counts[N]
    for i in range(n):
        if free.indices[GROUP, i] == 0:
            a += free.value[INV_K_ONES, i]
            n_first += 1
        else:
            b += free.value[INV_K_ONES, i]
            c += free.value[INV_K_ONES + 1, i]
    if n_first == n:
        level[0] = p / a
        return a > 0.0
    if n_first == 0:
        level[1] = q / c
        return c > 0.0
    determinant = a * c - b * b
    level[0], level[1] = (c * p - b * q) / determinant, (a * q - b * p) / determinant
    return a > 0.0 and c > 0.0 and determinant > MIN_DETERMINANT * a * c


@jit
def _put(own: Work, change: FloatVector, k: int, after: float) -> None:
    """Move variable k there."""
    change[k] += after - own.beta[k]
    own.beta[k] = after
    own.rise[k], own.fall[k] = mask_of(after, own.kink[k], own.lower[k], own.upper[k])


@jit
def leave(free: FreeSet, slot: int, n_groups: int) -> None:
    """Remove an entry: a rank-one update of the inverse; the last takes its place."""
    n, inverse = free.counts[N], free.inverse
    last, column = n - 1, free.value[COLUMN][:n]
    for i in range(n):
        column[i] = inverse[slot, i]
    pivot = column[slot]
    slope = free.value[INV_K_SLOPE, slot] / pivot
    for i in range(n):
        if i != slot:
            _add_multiple(inverse[i, :n], column, -column[i] / pivot)
            free.value[INV_K_SLOPE, i] -= column[i] * slope
    for g in range(n_groups):
        ones = free.value[INV_K_ONES + g, slot] / pivot
        for i in range(n):
            free.value[INV_K_ONES + g, i] -= column[i] * ones
    free.slot[free.indices[VARIABLE, slot]] = ABSENT
    free.counts[N] = last
    if slot == last:
        return
    for i in range(n):
        inverse[slot, i] = inverse[last, i]
    for i in range(n):
        inverse[i, slot] = inverse[i, last]
    inverse[slot, slot] = inverse[last, last]
    for name in range(len(free.indices)):
        free.indices[name, slot] = free.indices[name, last]
    for name in range(len(free.value)):
        free.value[name, slot] = free.value[name, last]
    free.slot[free.indices[VARIABLE, slot]] = slot


@jit_fast
def _add_multiple(row: FloatVector, other: FloatVector, factor: float) -> None:
    for k in range(row.size):
        row[k] += factor * other[k]
