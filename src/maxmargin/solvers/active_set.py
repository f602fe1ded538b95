r"""How do members of a working set settle, if few of them are free? By exact steps.

Where the free ones would be at rest together is a linear system,

.. math:: K_{FF}\, d = -(g_F - \lambda), \qquad \textstyle\sum d = 0

They go there, or to the first bound on the way; whoever meets it leaves. Then the worst
of those at a bound enter, and so on: an active-set method (Scheinberg, JMLR 7, 2006).
The inverse of K between the free is kept from step to step, by corrections of rank one,
and from round to round. At large C that is some dozens of steps where pairs make
thousands of moves, passing slope to and fro.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_fast
from maxmargin.kernels.held import Part
from maxmargin.kernels.sums import add_rows, dot, total
from maxmargin.solvers.work import Work, is_free, mask_of
from maxmargin.solvers.working_set import bounds
from maxmargin.typing import (
    BoolVector,
    FloatMatrix,
    FloatVector,
    IntVector,
    KernelMatrix,
)

MOST_FREE = 256  # their inverse fits the second-level cache
MOST_AT_ONCE = 8  # who enter before everybody's slope is looked at again
AS_BAD = 0.3  # of the worst violation, for those who enter with it
TIE = 1e-10  # of K_ii, added to it: equal samples go to a bound, not to infinity
TOO_FLAT = 1e-13  # of K_ii: nothing but rounding is left
MOST_STEPS = 4  # of a member
MOST_CALLS = 64  # of one problem: who needs more is better off with moves
NOWHERE = -1


class FreeSet(NamedTuple):
    """Who is free, and the inverse of K between them; the first n[0] count."""

    who: IntVector  # variables
    n: IntVector  # one number
    n_calls: IntVector  # one number: how often they were asked to settle
    inverse: FloatMatrix
    place: IntVector  # among the members
    lower: FloatVector
    upper: FloatVector
    kink: FloatVector  # with the sign of the side that a variable is on
    slope: FloatVector
    pull: FloatVector  # inverse @ slope
    share: FloatVector  # inverse @ 1
    slot: IntVector  # of every variable: where in `who`, or NOWHERE


@jit
def make_free_set(n: int) -> FreeSet:
    """Nobody yet, of so many variables."""
    most, slot = min(n, MOST_FREE), np.empty(n, dtype=np.intp)
    for k in range(n):
        slot[k] = NOWHERE
    return FreeSet(
        who=np.zeros(most, dtype=np.intp),
        n=np.zeros(1, dtype=np.intp),
        n_calls=np.zeros(1, dtype=np.intp),
        inverse=np.empty((most, most)),
        place=np.zeros(most, dtype=np.intp),
        lower=np.empty(most),
        upper=np.empty(most),
        kink=np.empty(most),
        slope=np.empty(most),
        pull=np.empty(most),
        share=np.empty(most),
        slot=slot,
    )


@jit
def can_settle(free: FreeSet) -> bool:
    """Whether that has not been tried in vain."""
    return free.n_calls[0] < MOST_CALLS


@jit
def settle(
    own: Work,
    members: IntVector,
    square: KernelMatrix,
    held: Part,
    free: FreeSet,
    how: tuple[float, int, bool],
) -> tuple[int, bool]:
    """Take members to their common optimum: (steps made, whether they are there).

    `how` is (violation that will do, most steps, whether the sum is fixed); `square` is
    K between members, in any precision, `held` between all variables.
    """
    level, most, is_bound = how
    most = min(most, MOST_STEPS * len(members))
    free.n_calls[0] += 1
    if not _gather(own, members, held, free):
        return 0, False
    change, made, n_new = np.zeros(len(members)), 0, MOST_AT_ONCE
    while made < most:
        before = made
        made, has_moved = _walk(own, free, change, is_bound, made)
        _tell(own, free, square, change, is_bound)
        lowest, highest = bounds(own.grad, own.rise, own.fall)
        violation = highest - lowest if is_bound else max(highest, -lowest)
        if violation <= level:
            return made, True
        if made > before and not has_moved:
            n_new //= 2
        middle = 0.0
        if is_bound:
            n = free.n[0]
            middle = total(free.slope, n) / n if n > 0 else 0.5 * (lowest + highest)
        if n_new == 0 or not _admit(own, members, held, free, middle, n_new):
            break
    free.n_calls[0] = MOST_CALLS
    return made, False


@jit
def _gather(own: Work, members: IntVector, held: Part, free: FreeSet) -> bool:
    """Bring the set up to date; False if it cannot hold everybody who is free."""
    m, are_free = len(members), _are_free(own)
    if not _has_room_for(free, are_free):
        return False
    _drop_bound(members, are_free, free)
    n = free.n[0]
    for slot in range(n):
        _stand(own, free, slot, free.place[slot], True)
    for i in range(n):
        free.pull[i] = dot(free.inverse[i, :n], free.slope[:n])
        free.share[i] = total(free.inverse[i], n)
    for k in range(m):
        if are_free[k] and free.slot[members[k]] == NOWHERE:
            _enter(own, members, held, free, k, True)
    return True


@jit
def _drop_bound(members: IntVector, are_free: BoolVector, free: FreeSet) -> None:
    """Find the free among the members; those who are free no more leave."""
    for slot in range(free.n[0]):
        free.place[slot] = NOWHERE
    for k in range(len(members)):
        slot = free.slot[members[k]]
        if slot != NOWHERE and are_free[k]:
            free.place[slot] = k
    for slot in range(free.n[0] - 1, -1, -1):
        if free.place[slot] == NOWHERE:
            _leave(free, slot)


@jit
def _are_free(own: Work) -> BoolVector:
    """Which members are off every bound."""
    found = np.empty(len(own.beta), dtype=np.bool_)
    for k in range(len(found)):
        found[k] = is_free(own.beta[k], own.kink[k], own.lower[k], own.upper[k])
    return found


@jit
def _has_room_for(free: FreeSet, are_free: BoolVector) -> bool:
    n_free = 0
    for k in range(len(are_free)):
        n_free += are_free[k]
    return n_free <= len(free.who)


@jit
def _stand(own: Work, free: FreeSet, slot: int, k: int, is_rising: bool) -> None:
    """Member k: its box, as far as the next kink, and its slope there."""
    b, kink = own.beta[k], own.kink[k]
    free.lower[slot], free.upper[slot] = own.lower[k], own.upper[k]
    if kink > 0.0:
        if b > 0.0 or (b == 0.0 and is_rising):
            free.lower[slot] = 0.0
        else:
            free.upper[slot], kink = 0.0, -kink
    free.kink[slot] = kink
    free.slope[slot] = own.grad[k] + kink


@jit
def _enter(
    own: Work,
    members: IntVector,
    held: Part,
    free: FreeSet,
    k: int,
    is_rising: bool,
) -> bool:
    """Member k becomes free, unless K between it and the others is singular."""
    n, inverse, own_at = free.n[0], free.inverse, held.at[members[k]]
    row = held.K[own_at]
    column, u = np.empty(n), np.empty(n)
    for i in range(n):
        column[i] = row[held.at[free.who[i]]]
    for i in range(n):
        u[i] = dot(inverse[i, :n], column)
    own_value = row[own_at]
    pivot = own_value + TIE * abs(own_value) - dot(u, column)
    if pivot <= TOO_FLAT * abs(own_value):
        return False
    free.who[n], free.place[n], free.slot[members[k]] = members[k], k, n
    _stand(own, free, n, k, is_rising)
    pull = (free.slope[n] - dot(u, free.slope[:n])) / pivot
    share = (1.0 - total(u, n)) / pivot
    for i in range(n):
        _add(inverse[i, :n], u, u[i] / pivot)
        inverse[i, n] = inverse[n, i] = -u[i] / pivot
        free.pull[i] -= u[i] * pull
        free.share[i] -= u[i] * share
    inverse[n, n], free.pull[n], free.share[n] = 1.0 / pivot, pull, share
    free.n[0] = n + 1
    return True


@jit
def _leave(free: FreeSet, slot: int) -> None:
    """Somebody is free no more; the last takes the place."""
    n, inverse = free.n[0], free.inverse
    last, column = n - 1, np.empty(n)
    for i in range(n):
        column[i] = inverse[slot, i]
    pull, share = free.pull[slot] / column[slot], free.share[slot] / column[slot]
    for i in range(n):
        if i == slot:
            continue
        _add(inverse[i, :n], column, -column[i] / column[slot])
        free.pull[i] -= column[i] * pull
        free.share[i] -= column[i] * share
    free.slot[free.who[slot]] = NOWHERE
    free.n[0] = last
    if slot == last:
        return
    for i in range(n):
        inverse[slot, i] = inverse[last, i]
    for i in range(n):
        inverse[i, slot] = inverse[i, last]
    inverse[slot, slot] = inverse[last, last]
    free.who[slot], free.place[slot] = free.who[last], free.place[last]
    free.lower[slot], free.upper[slot] = free.lower[last], free.upper[last]
    free.kink[slot], free.slope[slot] = free.kink[last], free.slope[last]
    free.pull[slot], free.share[slot] = free.pull[last], free.share[last]
    free.slot[free.who[slot]] = slot


@jit
def _walk(
    own: Work, free: FreeSet, change: FloatVector, is_bound: bool, made: int
) -> tuple[int, bool]:
    """To the common optimum of the free, bound by bound: (steps, whether any moved)."""
    has_moved = False
    while free.n[0] > (1 if is_bound else 0):
        n, middle = free.n[0], 0.0
        if is_bound:
            middle = total(free.pull, n) / total(free.share, n)
        part, met = _part_of_way(own, free, middle)
        _go(own, free, change, middle, part, met)
        made += 1
        has_moved = has_moved or part > 0.0
        if met == NOWHERE:
            break
        _leave(free, met)
    return made, has_moved


@jit
def _part_of_way(own: Work, free: FreeSet, middle: float) -> tuple[float, int]:
    """How far the free can go together, and who meets a bound then, or NOWHERE."""
    part, met = 1.0, NOWHERE
    for i in range(free.n[0]):
        step = middle * free.share[i] - free.pull[i]
        if step == 0.0:
            continue
        end = free.upper[i] if step > 0.0 else free.lower[i]
        room = max((end - own.beta[free.place[i]]) / step, 0.0)
        if room < part:
            part, met = room, i
    return part, met


@jit
def _go(
    own: Work,
    free: FreeSet,
    change: FloatVector,
    middle: float,
    part: float,
    met: int,
) -> None:
    """All of the free go this part of the way; `met` ends at its very bound."""
    for i in range(free.n[0]):
        k, step = free.place[i], part * (middle * free.share[i] - free.pull[i])
        after = min(max(own.beta[k] + step, free.lower[i]), free.upper[i])
        if i == met and part > 0.0:
            after = free.upper[i] if step > 0.0 else free.lower[i]
        own.gained[0] -= step * free.slope[i] * (1.0 - 0.5 * part)
        change[k] += after - own.beta[k]
        own.beta[k] = after
        free.pull[i] += step
        free.slope[i] += part * (middle - free.slope[i])
        if i == met:
            own.rise[k], own.fall[k] = mask_of(
                after, own.kink[k], own.lower[k], own.upper[k]
            )


@jit
def _tell(
    own: Work,
    free: FreeSet,
    square: KernelMatrix,
    change: FloatVector,
    is_bound: bool,
) -> None:
    """Slopes of all members; those of the free are known better than rows tell."""
    if is_bound:
        _balance(own, free, change)
    moved, weight, n_moved = np.empty(len(change), dtype=np.intp), change.copy(), 0
    for k in range(len(change)):
        if change[k] != 0.0:
            moved[n_moved], weight[n_moved] = k, change[k]
            n_moved += 1
        change[k] = 0.0
    ends = 0, len(change)
    add_rows(square, moved[:n_moved], weight[:n_moved], ends, own.grad)
    for i in range(free.n[0]):
        k = free.place[i]
        own.grad[k] = free.slope[i] - free.kink[i]
        own.rise[k], own.fall[k] = mask_of(
            own.beta[k], own.kink[k], own.lower[k], own.upper[k]
        )


@jit
def _balance(own: Work, free: FreeSet, change: FloatVector) -> None:
    """The sum as it was: rounding goes to whoever has most room."""
    drift = total(change, len(change))
    widest, widest_room = NOWHERE, abs(drift)
    for i in range(free.n[0]):
        b = own.beta[free.place[i]]
        room = min(free.upper[i] - b, b - free.lower[i])
        if room > widest_room:
            widest, widest_room = free.place[i], room
    if widest != NOWHERE:
        own.beta[widest] -= drift
        change[widest] -= drift


@jit
def _admit(
    own: Work,
    members: IntVector,
    held: Part,
    free: FreeSet,
    middle: float,
    n_new: int,
) -> bool:
    """The worst of those that are not free enter; False if nobody can."""
    m = len(members)
    excess, worst = np.zeros(m), 0.0
    for k in range(m):
        if free.slot[members[k]] == NOWHERE:
            up = middle - own.grad[k] - own.rise[k]
            excess[k] = max(up, own.grad[k] + own.fall[k] - middle, 0.0)
            worst = max(worst, excess[k])
    n_before = free.n[0]
    if n_before == 0:
        n_new = max(n_new, 2)  # one on either side
    for _ in range(n_new):
        k = 0
        for i in range(1, m):
            if excess[i] > excess[k]:
                k = i
        if excess[k] <= AS_BAD * worst or free.n[0] == len(free.who):
            break
        is_rising = middle - own.grad[k] - own.rise[k] == excess[k]
        _enter(own, members, held, free, k, is_rising)
        excess[k] = 0.0
    return free.n[0] > n_before


@jit_fast
def _add(row: FloatVector, other: FloatVector, part: float) -> None:
    for k in range(row.size):
        row[k] += part * other[k]
