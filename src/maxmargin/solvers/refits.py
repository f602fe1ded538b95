"""How is a problem solved again without some of its samples? On rows at hand.

Who is left out is made up for by the few that were near their bounds before, and much
the same few every time. So the rows of K of these, and of all support vectors, are
computed once. Then a refit is some moves on a square, and some sums of rows in memory;
a slope tells whether somebody else is needed, who joins for all refits to come.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.cache import NOBODY, RowCache, hold_all
from maxmargin.kernels.memory import pass_on, promised_square
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.turning import copy_turned
from maxmargin.problems.dual import DualProblem, is_interior
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.pair_selection import bounds
from maxmargin.solvers.pairs import pair_epoch
from maxmargin.solvers.result import PairRule, Status
from maxmargin.solvers.tuning import Tuning
from maxmargin.solvers.work import Work, gather_work, part_of, set_masks
from maxmargin.solvers.working_set import SINGLY
from maxmargin.typing import BoolVector, FloatVector, IntVector, KernelMatrix

FillRows = Callable[[IntVector, KernelMatrix], None]  # of K, into a matrix


class Ended(NamedTuple):
    """Where a solver ended."""

    beta: FloatVector
    grad: FloatVector
    status: Status | None


class Kept(NamedTuple):
    """Rows of K, and who may move."""

    rows: KernelMatrix  # room for all; the first `n_rows` are there
    place: IntVector  # of every variable's row among these, or NOBODY
    movers: IntVector  # room for all; the first `n_movers` count
    is_mover: BoolVector  # of every variable
    square: RowCache  # between movers
    n_rows: IntVector  # one number
    n_movers: IntVector  # one number


def _keep_nothing(n: int) -> Kept:
    return Kept(
        rows=promised_square(n),
        place=np.full(n, NOBODY),
        movers=np.zeros(n, dtype=np.intp),
        is_mover=np.zeros(n, dtype=np.bool_),
        square=hold_all(promised_square(n)),
        n_rows=np.zeros(1, dtype=np.intp),
        n_movers=np.zeros(1, dtype=np.intp),
    )


class Refits:
    """A solved problem of one group or none, to be solved again in other boxes."""

    def __init__(
        self,
        problem: DualProblem,
        solved: Ended,
        level: float,
        diagonal: FloatVector,
        fill: FillRows,
        tuning: Tuning,
    ) -> None:
        """`level` is the multiplier of the group, if there is one, and else 0."""
        n = len(diagonal)
        self.fill, self.tuning = fill, tuning
        self.is_bound = not problem.is_free_of_equalities
        beta, grad = solved.beta, solved.grad
        self.full = gather_work(problem, np.arange(n), beta, grad, diagonal)
        self.kept = _keep_nothing(n)
        is_near = is_interior(problem, beta)
        n_first = int(tuning.refits.share_of_free * np.count_nonzero(is_near))
        n_first = min(n, tuning.refits.min_first + n_first)
        distance = _distance(self.full, level)
        is_near[np.argpartition(distance, n_first - 1)[:n_first]] = True
        self._keep(np.flatnonzero(is_near | (beta != 0.0)))
        _admit(self.kept, np.flatnonzero(is_near))

    def leave(self) -> None:
        """Somebody else may have the memory."""
        pass_on(self.kept.rows)
        pass_on(self.kept.square.rows)

    def solve(self, problem: DualProblem, pace: Pace) -> Ended:
        """The problem in boxes that may be smaller; its start says the sum.

        Slopes are as exact as rows. Without a status, somebody else must solve it.
        """
        work, missing = _begin(problem, self.full, self.kept, self.is_bound)
        if missing > 0.0:  # those that are near have no room for it
            return Ended(work.beta, work.grad, None)
        return Ended(work.beta, work.grad, self._until_tol(work, pace))

    def _until_tol(self, work: Work, pace: Pace) -> Status | None:
        tol, kept, tuning = pace.options.tol, self.kept, self.tuning
        inner_tol = tuning.stack.inner_tol * tol
        is_second = pace.options.working_set is PairRule.SECOND_ORDER
        singly = None if self.is_bound else SINGLY
        newton = NewtonSteps(self.is_bound, pace.is_stopped, tuning.newton)
        least, n_vain = np.inf, 0
        while True:
            raise_if_stopped()
            most = tuning.newton.moves_before_look * int(kept.n_movers[0])
            most = min(most, pace.max_iter - pace.n_iter)
            made, violation = _settle(work, kept, singly, inner_tol, most, is_second)
            pace.n_iter += made
            pace.note_violation(violation)
            if violation <= tol:
                return Status.CONVERGED
            n_vain = 0 if violation < least else n_vain + 1
            least = min(least, violation)
            if n_vain > tuning.refits.max_stalls:
                return None
            limit = pace.limit()
            if limit is not None:
                return limit
            newton.effort += made * int(kept.n_movers[0])
            if made < most:  # they agree, but others do not
                self._join(self._outsiders(work, tol))
            else:
                self._newton_step(newton, work)

    def _newton_step(self, newton: NewtonSteps, work: Work) -> None:
        """Free variables go to their common optimum, if that costs less than moves."""
        free = newton.due(work)
        if free is not None:
            rows, place = self.kept.rows, self.kept.place[free]
            change = newton.take(work, free, rows[np.ix_(place, free)])
            add_rows(rows, place, change, (0, len(work.grad)), work.grad)

    def _join(self, new: IntVector) -> None:
        self._keep(new[self.kept.place[new] == NOBODY])
        _admit(self.kept, new)

    def _outsiders(self, work: Work, tol: float) -> IntVector:
        """Variables that violate and cannot move yet; the worst, if they are many."""
        up, down = work.grad + work.rise, work.grad + work.fall
        lowest, highest = (up.min(), down.max()) if self.is_bound else (0.0, 0.0)
        excess = np.maximum(highest - up, down - lowest)
        found = np.flatnonzero((excess > tol) & ~self.kept.is_mover)
        most = self.tuning.refits.max_joining
        if len(found) > most:
            found = np.sort(found[np.argpartition(-excess[found], most)[:most]])
        return found

    def _keep(self, new: IntVector) -> None:
        """Compute these rows."""
        kept, first = self.kept, int(self.kept.n_rows[0])
        last = first + len(new)
        if last > first:
            self.fill(new, kept.rows[first:last])
            kept.place[new] = np.arange(first, last)
            kept.n_rows[0] = last


def _distance(work: Work, level: float) -> FloatVector:
    """How far a slope is from one that would set its variable moving."""
    up, down = work.grad + work.rise - level, level - work.grad - work.fall
    distance: FloatVector = np.minimum(np.abs(up), np.abs(down))
    return distance


@jit
def _admit(kept: Kept, new: IntVector) -> None:
    """These may move from now on; their rows are kept already."""
    first, square = kept.n_movers[0], kept.square.rows
    last = first + len(new)
    for k in range(first, last):
        kept.movers[k] = new[k - first]
    for k in range(first, last):
        row = kept.rows[kept.place[kept.movers[k]]]
        for j in range(last):
            square[k, j] = row[kept.movers[j]]
        kept.is_mover[kept.movers[k]] = True
    copy_turned(square, (first, last), (0, first), square, (0, first))
    kept.n_movers[0] = last


def _begin(
    problem: DualProblem, full: Work, kept: Kept, is_bound: bool
) -> tuple[Work, float]:
    """The full solution in other boxes, and how much of its sum found no room."""
    beta = np.clip(full.beta, problem.lower, problem.upper)
    work = full._replace(
        beta=beta,
        grad=full.grad.copy(),
        rise=np.empty(len(beta)),
        fall=np.empty(len(beta)),
        lower=problem.lower,
        upper=problem.upper,
        gained=np.zeros(1),
    )
    _add_change(work, kept, np.flatnonzero(beta != full.beta), full.beta)
    missing = 0.0
    if is_bound:
        missing = _make_up(work, kept, float(problem.start.sum() - beta.sum()))
    set_masks(work, 0, len(beta))
    return work, missing


def _add_change(
    work: Work, kept: Kept, changed: IntVector, before: FloatVector
) -> None:
    """Slopes after these variables have left where they were before."""
    change, span = work.beta[changed] - before[changed], (0, len(work.grad))
    add_rows(kept.rows, kept.place[changed], change, span, work.grad)


def _make_up(work: Work, kept: Kept, missing: float) -> float:
    """The sum is restored by movers that gain most, or lose least; what is left."""
    if missing == 0.0:
        return 0.0
    movers, before = kept.movers[: int(kept.n_movers[0])], work.beta.copy()
    end = work.upper if missing > 0.0 else work.lower
    sign, left = np.sign(missing), abs(missing)
    set_masks(work, 0, len(work.beta))
    slope = work.grad + (work.rise if missing > 0.0 else work.fall)
    for i in movers[np.argsort(sign * slope[movers], kind="stable")]:
        if left == 0.0:
            break
        room = abs(end[i] - before[i])
        work.beta[i] = end[i] if room <= left else before[i] + sign * left
        left -= min(room, left)
    _add_change(work, kept, movers[work.beta[movers] != before[movers]], before)
    return left


@jit_new
def _settle(
    work: Work,
    kept: Kept,
    singly: int | None,
    tol: float,
    most: int,
    is_second_order: bool,
) -> tuple[int, float]:
    """Movers agree among themselves: (moves made, violation of all variables)."""
    movers, beta = kept.movers[: kept.n_movers[0]], work.beta
    own = part_of(work, movers)
    if singly is None:
        _, made, _, _ = pair_epoch(own, kept.square, None, tol, most, is_second_order)
    else:
        _, made, _, _ = coordinate_epoch(
            own, kept.square, None, tol, most, is_second_order
        )
    moved, change = np.empty(len(movers), dtype=np.intp), np.empty(len(movers))
    n_moved = 0
    for k in range(len(movers)):
        i = movers[k]
        if own.beta[k] != beta[i]:
            moved[n_moved], change[n_moved] = kept.place[i], own.beta[k] - beta[i]
            beta[i], work.rise[i], work.fall[i] = own.beta[k], own.rise[k], own.fall[k]
            n_moved += 1
    span = 0, len(beta)
    add_rows(kept.rows, moved[:n_moved], change[:n_moved], span, work.grad)
    lowest, highest = bounds(work.grad, work.rise, work.fall)
    if singly is None:
        return made, highest - lowest
    return made, max(highest, -lowest)
