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

import numpy as np

from maxmargin._blas import invert_positive
from maxmargin._jit import jit, jit_fast
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
        if gain <= 0.0:  # K between these is too close to singular for float32
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
    way = _Way(work, free, inverse, members)
    n_met = 0
    while way.go_on() and not is_stopped():
        n_met += 1
    return way.balanced(), n_met


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


class _Way:
    """Where the variables are on their way, and how it goes on."""

    def __init__(
        self, work: Work, free: IntVector, inverse: FloatMatrix, members: FloatMatrix
    ) -> None:
        self.beta, self.first = work.beta[free], work.beta[free]
        has_kink, is_positive = work.kink[free] > 0.0, self.beta > 0.0
        self.lower, self.upper = work.lower[free], work.upper[free]
        self.lower[has_kink & is_positive] = 0.0
        self.upper[has_kink & ~is_positive] = 0.0
        self.inverse, self.members = inverse, members
        self.pull = inverse @ (work.grad[free] + work.rise[free])
        self.share = inverse @ members  # what each group's multiplier does
        self.is_free: BoolVector = np.ones(len(free), dtype=bool)

    def go_on(self) -> bool:
        """Go to the common optimum, or to the first bound; whether one was met."""
        step = -self.pull
        if self.members.shape[1]:
            system = self.members.T @ self.share
            step = step + self.share @ np.linalg.solve(
                system, self.members.T @ self.pull
            )
        step[~self.is_free] = 0.0
        room = np.full(len(step), np.inf)
        up, down = step > 0.0, step < 0.0
        room[up] = (self.upper[up] - self.beta[up]) / step[up]
        room[down] = (self.lower[down] - self.beta[down]) / step[down]
        k = int(room.argmin())
        if room[k] >= 1.0:
            self.beta = self.beta + step
            return False
        self.beta = self.beta + max(room[k], 0.0) * step
        self.pull = self.pull + max(room[k], 0.0) * step
        self.beta[k] = self.upper[k] if step[k] > 0.0 else self.lower[k]
        return self._forget(k)

    def _forget(self, k: int) -> bool:
        """Variable k stays where it is; whether others can still go on."""
        self.is_free[k] = False
        if not self._can_go_on():
            return False
        column = self.inverse[k].copy()
        pivot = column[k]
        self.pull = self.pull - column * (self.pull[k] / pivot)
        self.share = self.share - np.outer(column, self.share[k] / pivot)
        forget(self.inverse, column, pivot)
        self.pull[k], self.share[k] = 0.0, 0.0
        self.inverse[k], self.inverse[:, k] = 0.0, 0.0
        return True

    def _can_go_on(self) -> bool:
        """Every group needs two who can move."""
        if not self.members.shape[1]:
            return bool(self.is_free.any())
        counts = self.is_free @ self.members
        return bool(np.all((counts >= 2.0) | (self.members.sum(axis=0) == 0.0)))

    def balanced(self) -> FloatVector:
        """Sums as they were: rounding goes to whoever has most room."""
        beta = self.beta
        room = np.where(
            self.is_free, np.minimum(self.upper - beta, beta - self.lower), -np.inf
        )
        for own in self.members.T > 0.0:
            inside = np.where(own, room, -np.inf)
            k = int(inside.argmax())
            if inside[k] > 0.0:
                beta[k] -= float(np.sum(beta[own] - self.first[own]))
        return np.clip(beta, self.lower, self.upper)


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
