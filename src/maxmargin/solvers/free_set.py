r"""How do free variables find their common optimum? By one system of equations.

At large C, pairs that move pass slope to and fro: a hundred moves for each variable,
and more. But where the free ones would be at rest together is a linear system,

.. math:: (K_{FF} + \rho I)\, d = -(g_F - E \lambda), \qquad E^\top d = 0

with one multiplier a group. The way there may leave the box. So they go as far as the
first bound; whoever met it stays there, the inverse forgets it (a correction of rank
one), and the others go on: an active-set method (Scheinberg, JMLR 7, 2006), on the way
down only. Who must leave a bound, moves of pairs find out.

K is in float32, so a small rho keeps the system positive; it ties the variables to
where they were, which a few repetitions overcome.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin._blas import invert_positive
from maxmargin._jit import jit, jit_fast, jit_new
from maxmargin.data.design import mirror
from maxmargin.kernels.single import ROUNDING
from maxmargin.problems.dual import is_interior
from maxmargin.solvers.work import Work, set_masks
from maxmargin.typing import (
    BoolVector,
    FloatMatrix,
    FloatVector,
    IntVector,
    KernelMatrix,
)

TIE = 4.0  # times what float32 may have added to an eigenvalue
TIGHTER = 10.0  # times, where the system is not positive still
MOST_TIES = 4
INVERSE, FORGET = 0.02, 0.5  # what they cost per value, in values met by moves
FIRST_SHARE = 0.25  # of the variables that may meet a bound, before that is known
FEWEST = 20  # of them, to be safe
MOST_VALUES = 20_000_000  # of the inverse, corrected before Python looks up
MOST_FREE = 2500  # an inverse of these takes a third of a second


class Leaps:
    """When have moves cost as much as a leap would? By counts: time has no say."""

    def __init__(self, is_bound: bool, is_stopped: Callable[[], bool]) -> None:
        self.is_bound, self.is_stopped = is_bound, is_stopped
        self.effort = 0.0  # values met by moves since the last leap
        self.share_met = FIRST_SHARE  # of the free ones, that meet a bound on the way

    def who(self, work: Work) -> IntVector | None:
        """The free variables, if they are to leap now."""
        free = free_in(work)
        n = len(free)
        n_met = max(self.share_met * n, FEWEST)  # infinite where leaps are of no use
        price = n**2 * (INVERSE * n + FORGET * n_met)
        return free if 2 <= n <= MOST_FREE and self.effort >= price else None

    def leap(self, work: Work, free: IntVector, K: KernelMatrix) -> FloatVector:
        """Move the free variables to their common optimum; returns their change.

        K is between them. Slopes are left to the caller.
        """
        after, n_met = common_optimum(work, free, K, self.is_bound, self.is_stopped)
        change: FloatVector = after - work.beta[free]
        slope = work.grad[free] + work.rise[free]
        gain = -float(change @ (slope + 0.5 * (K @ change)))
        self.effort, self.share_met = 0.0, n_met / len(free)
        if not gain > 0.0:  # K between these is too close to singular for float32
            self.share_met = np.inf
            return np.zeros(len(free))
        work.gained[0] += gain
        work.beta[free] = after
        set_masks(work, 0, len(work.beta))
        return change


def free_in(work: Work) -> IntVector:
    """Variables off every bound, zero included where there is a kink."""
    return np.flatnonzero(is_interior(work, work.beta))


def common_optimum(
    work: Work,
    free: IntVector,
    K: KernelMatrix,
    is_bound: bool,
    is_stopped: Callable[[], bool],
) -> tuple[FloatVector, int]:
    """Where these go together, and how many met a bound; K is between them.

    `is_bound` says whether sums within a group are fixed.
    """
    inverse = _inverse(K)
    if inverse is None:
        return work.beta[free], 0
    n_groups = len(work.start) - 1 if is_bound else 0
    group = np.searchsorted(work.start, free, side="right") - 1
    members = (group[:, None] == np.arange(n_groups)).astype(np.float64)
    way = _way(work, free, inverse, members)
    at_once = 1 + MOST_VALUES // len(free) ** 2
    n_met, is_there = _go_on(way, at_once)
    while not (is_there or is_stopped()):
        n_more, is_there = _go_on(way, at_once)
        n_met += n_more
    return _balanced(way, work.beta[free]), n_met


def _inverse(K: KernelMatrix) -> FloatMatrix | None:
    """Of K, with a tie as small as will do; None where none does."""
    n = len(K)
    tie = TIE * ROUNDING * np.sqrt(n) * float(np.abs(K).max())
    for _ in range(MOST_TIES):
        system = K.astype(np.float64)
        system[np.diag_indices(n)] += tie
        if invert_positive(system):
            mirror(system)
            return system
        tie *= TIGHTER
    return None


class _Way(NamedTuple):
    """Where the variables are on their way, and what they need to go on."""

    beta: FloatVector
    lower: FloatVector
    upper: FloatVector
    inverse: FloatMatrix
    members: FloatMatrix  # a column for each group: who is in it
    pull: FloatVector  # inverse @ slope
    share: FloatMatrix  # what each group's multiplier does
    is_free: BoolVector


def _way(
    work: Work, free: IntVector, inverse: FloatMatrix, members: FloatMatrix
) -> _Way:
    beta, lower, upper = work.beta[free], work.lower[free], work.upper[free]
    has_kink, is_positive = work.kink[free] > 0.0, beta > 0.0
    lower[has_kink & is_positive] = 0.0
    upper[has_kink & ~is_positive] = 0.0
    pull = inverse @ (work.grad[free] + work.rise[free])
    is_free = np.ones(len(free), dtype=bool)
    share = np.ascontiguousarray(inverse @ members)
    return _Way(beta, lower, upper, inverse, members, pull, share, is_free)


@jit_new
def _go_on(way: _Way, most: int) -> tuple[int, bool]:
    """Towards the common optimum, until so many bounds are met: (met, whether there).

    Each bound that is met ends a step; whoever met it stays.
    """
    beta, lower, upper = way.beta, way.lower, way.upper
    for met in range(most):
        step = _step(way.pull, way.share, way.members, way.is_free)
        least, k = 1.0, -1
        for i in range(len(step)):
            if step[i] == 0.0:
                continue
            end = upper[i] if step[i] > 0.0 else lower[i]
            room = (end - beta[i]) / step[i]
            if room < least:
                least, k = room, i
        least = max(least, 0.0)
        for i in range(len(step)):
            beta[i] += least * step[i]
            way.pull[i] += least * step[i]
        if k < 0:
            return met, True
        beta[k] = upper[k] if step[k] > 0.0 else lower[k]
        way.is_free[k] = False
        if not _can_go_on(way.members, way.is_free):
            return met + 1, True
        _leave_behind(way.inverse, way.pull, way.share, k)
    return most, False


@jit_new
def _step(
    pull: FloatVector, share: FloatMatrix, members: FloatMatrix, is_free: BoolVector
) -> FloatVector:
    """To the optimum of those that are free, sums within groups unchanged."""
    step, multiplier = -pull, _multipliers(pull, share, members)
    for i in range(len(step)):
        for g in range(len(multiplier)):
            step[i] += share[i, g] * multiplier[g]
        if not is_free[i]:
            step[i] = 0.0
    return step


@jit_new
def _multipliers(
    pull: FloatVector, share: FloatMatrix, members: FloatMatrix
) -> FloatVector:
    """One a group: by how much all slopes change, so that its sum does not."""
    n, n_groups = members.shape
    system, right = np.zeros((n_groups, n_groups)), np.zeros(n_groups)
    for i in range(n):
        for g in range(n_groups):
            right[g] += members[i, g] * pull[i]
            for h in range(n_groups):
                system[g, h] += members[i, g] * share[i, h]
    _solve_few(system, right)
    return right


@jit
def _solve_few(system: FloatMatrix, right: FloatVector) -> None:
    """Solve a positive system of one or two equations where it stands."""
    n = len(right)
    for g in range(n):
        for h in range(g + 1, n):
            part = system[h, g] / system[g, g]
            right[h] -= part * right[g]
            for c in range(g, n):
                system[h, c] -= part * system[g, c]
    for g in range(n - 1, -1, -1):
        for c in range(g + 1, n):
            right[g] -= system[g, c] * right[c]
        right[g] /= system[g, g]


@jit
def _can_go_on(members: FloatMatrix, is_free: BoolVector) -> bool:
    """Every group needs two who can move; without groups, one is enough."""
    n, n_groups = members.shape
    for g in range(n_groups):
        n_all = n_left = 0.0
        for i in range(n):
            n_all += members[i, g]
            n_left += members[i, g] if is_free[i] else 0.0
        if n_all > 0.0 and n_left < 2.0:
            return False
    return n_groups > 0 or bool(is_free.any())


@jit_new
def _leave_behind(
    inverse: FloatMatrix, pull: FloatVector, share: FloatMatrix, k: int
) -> None:
    """The inverse without variable k, and what was computed from it."""
    column, n_groups = inverse[k].copy(), share.shape[1]
    pivot = column[k]
    part = pull[k] / pivot
    parts = share[k] / pivot
    for i in range(len(pull)):
        pull[i] -= column[i] * part
        for g in range(n_groups):
            share[i, g] -= column[i] * parts[g]
    forget(inverse, column, pivot)
    pull[k], share[k, :] = 0.0, 0.0
    inverse[k, :], inverse[:, k] = 0.0, 0.0


def _balanced(way: _Way, first: FloatVector) -> FloatVector:
    """Sums as they were: rounding goes to the variable with most room.

    Where it is more than that has room for, the system was too close to singular, and
    nothing moves.
    """
    beta = np.clip(way.beta, way.lower, way.upper)
    room = np.where(
        way.is_free, np.minimum(way.upper - beta, beta - way.lower), -np.inf
    )
    for own in way.members.T > 0.0:
        if not own.any():
            continue
        drift = float(np.sum(beta[own] - first[own]))
        widest = int(np.where(own, room, -np.inf).argmax())
        if drift != 0.0 and not room[widest] > abs(drift):
            return first
        beta[widest] -= drift
    return beta


@jit
def forget(inverse: FloatMatrix, column: FloatVector, pivot: float) -> None:
    """inverse -= column column' / pivot."""
    for i in range(len(column)):
        part = column[i] / pivot
        if part != 0.0:
            _subtract(inverse[i], column, part)


@jit_fast
def _subtract(row: FloatVector, column: FloatVector, part: float) -> None:
    for k in range(row.size):
        row[k] -= part * column[k]
