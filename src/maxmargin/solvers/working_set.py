"""Which variables does a round of decomposition work on? A set that grows and shrinks.

Decomposition solves a part of the problem at a time (Joachims, 1998). A round evicts
members that have rested at a bound, admits the variables that violate the KKT
conditions most, and optimises the members alone; then the gradient of all variables is
updated by the rows of K of those that moved. Every free variable stays a member, so
that the set holds the whole solution after ten to thirty rounds, whatever C is.

The verbs are compiled. `rounds` calls them from compiled code, where kernel values can
be computed there as well, and `decomposition` from Python, where threads compute these.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin.kernels.cache import RowCache, hold_all
from maxmargin.solvers.pair_selection import bounds
from maxmargin.solvers.tuning import RoundSizes
from maxmargin.solvers.work import Work, is_free
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

SINGLY = 1  # any number: no equality binds the variables
OUTSIDE = -1  # the age of a variable that is no member
N, N_NEW, N_COMPUTED, N_MET = 0, 1, 2, 3  # of `counts`
LOWEST, HIGHEST = 0, 1  # of `extremes`


class WorkingSet(NamedTuple):
    """Members, and the kernel matrix between them."""

    members: IntVector  # room for all variables; the first counts[N] are members
    counts: IntVector  # members, how many a round admits, rows computed, see `square`
    age: IntVector  # of every variable: rounds at a bound, or OUTSIDE
    extremes: FloatMatrix  # a column a group: lowest slope up, highest slope down
    square: RowCache  # K between the first counts[N_MET] members: row i is member i's


class RowCounts(NamedTuple):
    """Rows of K that were found in memory, and that were computed."""

    found: int
    computed: int


def make_working_set(
    n: int, n_groups: int, square: KernelMatrix, sizes: RoundSizes
) -> WorkingSet:
    """No members yet; the square has room for all that may come."""
    counts = np.zeros(4, dtype=np.intp)
    n_new = max(int(sizes.new_share * n), sizes.min_new)
    counts[N_NEW] = min(n_new, sizes.max_first)
    return WorkingSet(
        members=np.zeros(n, dtype=np.intp),
        counts=counts,
        age=np.full(n, OUTSIDE),
        extremes=np.zeros((2, max(n_groups, 1))),
        square=hold_all(square),
    )


@jit
def measure(work: Work, working_set: WorkingSet, singly: int | None) -> float:
    """The KKT violation of all variables; notes the extreme slopes of each group."""
    violation, extremes = -np.inf, working_set.extremes
    for g in range(len(work.start) - 1):
        a, b = work.start[g], work.start[g + 1]
        lowest, highest = bounds(work.grad[a:b], work.rise[a:b], work.fall[a:b])
        extremes[LOWEST, g], extremes[HIGHEST, g] = lowest, highest
        if singly is not None:
            violation = max(violation, highest, -lowest)
        else:
            violation = max(violation, highest - lowest)
    return violation


class Evicted(NamedTuple):
    """What the square has to become: row and column k those of `source[k]`.

    That is k except in gaps.
    """

    has_room: bool  # for new members; else none was evicted
    source: IntVector
    gaps: IntVector


@jit_new
def evict(
    work: Work, working_set: WorkingSet, sizes: RoundSizes, max_members: int
) -> Evicted:
    """Members at rest leave, if they are many; `close_gaps` is left to the caller.

    A member is at rest that has been at a bound for some rounds and does not violate
    much. Where memory is short, every member at a bound leaves.
    """
    members, counts, age = working_set.members, working_set.counts, working_set.age
    n, n_all = counts[N], len(age)
    is_kept = np.empty(n, dtype=np.bool_)
    n_kept = n_free = 0
    for k in range(n):
        i = members[k]
        if is_free(work.beta[i], work.kink[i], work.lower[i], work.upper[i]):
            age[i], is_kept[k] = 0, True
            n_free += 1
        else:
            age[i] += 1
            is_recent = age[i] <= sizes.max_rest
            is_kept[k] = is_recent or _is_near(work, working_set, sizes.near_share, i)
        n_kept += is_kept[k]
    if n > 0 and n - n_free < sizes.min_resting * counts[N_NEW]:
        counts[N_NEW] = min(2 * counts[N_NEW], sizes.max_new)
    room = n_all if max_members >= n_all else max_members - counts[N_NEW]
    if n_kept > room:
        n_kept = 0
        for k in range(n):
            is_kept[k] = age[members[k]] == 0
            n_kept += is_kept[k]
    nothing = np.empty(0, dtype=np.intp)
    if n_kept > room:
        return Evicted(False, nothing, nothing)
    if n <= room and n - n_kept <= sizes.evicted_share * n:
        return Evicted(True, nothing, nothing)
    # The last of those kept take the places of those that leave.
    source, gaps = np.empty(n_kept, dtype=np.intp), np.empty(n_kept, dtype=np.intp)
    n_gaps, last = 0, n_kept
    for k in range(n):
        if not is_kept[k]:
            age[members[k]] = OUTSIDE
    for k in range(n_kept):
        source[k] = k
        if not is_kept[k]:
            while not is_kept[last]:
                last += 1
            source[k], gaps[n_gaps] = last, k
            members[k] = members[last]
            n_gaps, last = n_gaps + 1, last + 1
    counts[N] = n_kept
    return Evicted(True, source, gaps[:n_gaps])


@jit
def _is_near(work: Work, working_set: WorkingSet, share: float, i: int) -> bool:
    """Whether a variable's slope is within a share of the violation of the extreme."""
    g = 0
    while i >= work.start[g + 1]:
        g += 1
    lowest, highest = working_set.extremes[LOWEST, g], working_set.extremes[HIGHEST, g]
    margin = share * (highest - lowest)
    is_low = work.grad[i] + work.rise[i] < lowest + margin
    return is_low or work.grad[i] + work.fall[i] > highest - margin


@jit
def close_gaps(
    values: KernelMatrix, source: IntVector, gaps: IntVector, first: int, last: int
) -> None:
    """Rows first to last of a square become what `Evicted` describes.

    What goes into gaps comes from beyond all these, so that threads may share them.
    """
    n = len(source)
    for i in range(first, last):
        row, target = values[source[i]], values[i]
        if source[i] != i:
            for j in range(n):
                target[j] = row[j]
        for j in gaps:
            target[j] = row[source[j]]


@jit
def admit_free(work: Work, working_set: WorkingSet) -> None:
    """The variables that are free at the start, if there is room for all of them.

    A warm start has found out already that these belong to the solution.
    """
    members, counts = working_set.members, working_set.counts
    size, n_rows = 0, len(working_set.square.rows)
    for k in range(len(work.beta)):
        if is_free(work.beta[k], work.kink[k], work.lower[k], work.upper[k]):
            members[size] = k
            size += 1
    if size + counts[N_NEW] > n_rows and n_rows < len(work.beta):
        size = 0
    for k in range(size):
        working_set.age[members[k]] = 0
    counts[N] = size


@jit
def admit_all(working_set: WorkingSet) -> None:
    """Every variable is a member, in its own order."""
    for k in range(len(working_set.age)):
        working_set.members[k], working_set.age[k] = k, 0
    working_set.counts[N] = len(working_set.age)


@jit_new
def admit(work: Work, working_set: WorkingSet, singly: int | None) -> None:
    """The variables that violate most, as many on either side of each group."""
    n_groups = len(work.start) - 1
    n_new = max(working_set.counts[N_NEW] // (2 * n_groups), 1)
    outside = np.empty(len(work.grad))
    for g in range(n_groups):
        lowest = working_set.extremes[LOWEST, g]
        highest = working_set.extremes[HIGHEST, g]
        if singly is not None:
            lowest = highest = 0.0
        a, b = work.start[g], work.start[g + 1]
        _admit_side(
            working_set, work.grad, work.rise, 1.0, highest, n_new, a, b, outside
        )
        _admit_side(
            working_set, work.grad, work.fall, -1.0, -lowest, n_new, a, b, outside
        )


@jit
def _admit_side(
    working_set: WorkingSet,
    grad: FloatVector,
    offset: FloatVector,
    sign: float,
    limit: float,
    n_new: int,
    a: int,
    b: int,
    outside: FloatVector,
) -> None:
    """The n_new lowest slopes below a limit, of the variables a to b.

    A slope is that of going up, or with sign -1 that of coming from below. Of equal
    ones at the end, some from all over the range. `outside` is room for as many values.
    """
    members, age, n_outside = working_set.members, working_set.age, 0
    for k in range(a, b):
        slope = sign * (grad[k] + offset[k])
        if slope < limit and age[k] == OUTSIDE:
            outside[n_outside] = slope
            n_outside += 1
    last, n_below, n_ties = limit, n_outside, 0
    if n_outside > n_new:
        last = kth_smallest(outside, n_outside, n_new - 1)
        n_below = 0
        for k in range(n_outside):
            n_below += outside[k] < last
            n_ties += outside[k] == last
    size, tie, n_more = working_set.counts[N], 0, n_new - n_below
    for k in range(a, b):
        slope = sign * (grad[k] + offset[k])
        if age[k] != OUTSIDE or slope > last or slope >= limit:
            continue
        if slope == last:
            tie += 1
            if (tie - 1) * n_more // n_ties == tie * n_more // n_ties:
                continue
        members[size], age[k] = k, 0
        size += 1
    working_set.counts[N] = size


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


@jit_new
def sort_members(work: Work, working_set: WorkingSet) -> None:
    """Members of one group stand together, as the selection of pairs needs them."""
    n_groups, n = len(work.start) - 1, working_set.counts[N]
    if n_groups == 1:
        return
    members, square = working_set.members, working_set.square.rows
    order, former = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp)
    for k in range(n):
        former[k] = members[k]
    place = 0
    for g in range(n_groups):
        for k in range(n):
            if work.start[g] <= former[k] < work.start[g + 1]:
                order[place], members[place] = k, former[k]
                place += 1
    is_sorted = True
    for k in range(n):
        is_sorted = is_sorted and order[k] == k
    if is_sorted:
        return
    # Columns change places within each row, and rows along the cycles of the order.
    row = np.empty(n, dtype=square.dtype)
    is_done = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        for j in range(n):
            row[j] = square[i, order[j]]
        for j in range(n):
            square[i, j] = row[j]
    for first in range(n):
        if is_done[first] or order[first] == first:
            continue
        for j in range(n):
            row[j] = square[first, j]
        i = first
        while order[i] != first:
            for j in range(n):
                square[i, j] = square[order[i], j]
            is_done[i] = True
            i = order[i]
        for j in range(n):
            square[i, j] = row[j]
        is_done[i] = True


@jit_new
def take_changes(
    work: Work, own: Work, working_set: WorkingSet
) -> tuple[IntVector, FloatVector]:
    """Copy members back: (variables that have moved, by how much)."""
    n, n_moved = working_set.counts[N], 0
    moved, change = np.empty(n, dtype=np.intp), np.empty(n)
    for k in range(n):
        i = working_set.members[k]
        if own.beta[k] != work.beta[i]:
            moved[n_moved], change[n_moved] = i, own.beta[k] - work.beta[i]
            work.beta[i] = own.beta[k]
            work.rise[i], work.fall[i] = own.rise[k], own.fall[k]
            n_moved += 1
    work.gained[0] += own.gained[0]
    return moved[:n_moved], change[:n_moved]
