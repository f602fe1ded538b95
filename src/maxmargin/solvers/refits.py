"""How is a solved problem solved again without some of its samples? From its solution.

A sample is left out by closing the box of its variable. Few other variables then move,
and much the same ones in every refit: the free ones, and those at a bound whose slopes
are nearest to a violation. A refit is a few rounds of decomposition (`rounds`), on rows
of K that are kept for the next one, as are the working set and its square. Rows of
support vectors are computed at the beginning, others when they are needed.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.kernels.arena import Arena
from maxmargin.kernels.cache import NOBODY
from maxmargin.kernels.memory import pass_on, promised_square
from maxmargin.kernels.sums import add_rows
from maxmargin.problems.dual import DualProblem, fill_in_order, is_interior
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Status
from maxmargin.solvers.rounds import KeptRows, slice_of_rounds
from maxmargin.solvers.tuning import Tuning
from maxmargin.solvers.work import Work, gather_work, set_masks
from maxmargin.solvers.working_set import N, make_working_set
from maxmargin.typing import FloatVector, IntVector


class Refit(NamedTuple):
    """Where a solver ended."""

    beta: FloatVector
    grad: FloatVector
    status: Status | None


class WarmRefitter:
    """A solved problem of one group or none, to be solved again in other boxes."""

    def __init__(
        self,
        problem: DualProblem,
        beta: FloatVector,
        grad: FloatVector,
        arena: Arena,
        tuning: Tuning,
    ) -> None:
        """The solution, with its gradient, and what computes rows of K."""
        n, sizes, diagonal = len(beta), tuning.rounds_on_kept, arena.gram.diagonal()
        self.problem, self.arena, self.tuning, self.n_kept = problem, arena, tuning, 0
        self.full = gather_work(problem, np.arange(n), beta, grad, diagonal)
        self.kept = KeptRows(promised_square(n), np.full(n, NOBODY))
        square = promised_square(n)
        self.working_set = make_working_set(n, problem.n_groups, square, sizes)
        free = np.flatnonzero(is_interior(problem, beta))
        self.working_set.members[: len(free)], self.working_set.age[free] = free, 0
        self.working_set.counts[N] = len(free)
        self._keep(np.flatnonzero(beta))

    def release(self) -> None:
        """The memory may be used by others."""
        pass_on(self.kept.rows)
        pass_on(self.working_set.square.rows)

    def solve(self, problem: DualProblem, pace: Pace) -> Refit:
        """The problem in boxes that may be smaller; its start has the sum to keep.

        Slopes are as exact as rows. Without a status, it needs another solver.
        """
        full, n = self.full, len(self.full.beta)
        work = full._replace(
            beta=full.beta.copy(),
            grad=full.grad.copy(),
            rise=np.empty(n),
            fall=np.empty(n),
            lower=problem.lower,
            upper=problem.upper,
            gained=np.zeros(1),
        )
        is_bound = not problem.is_free_of_equalities
        missing = float(problem.start.sum() - self.problem.start.sum())
        if not _enter_box(work, self.kept, missing, is_bound):
            return Refit(work.beta, work.grad, None)
        newton = NewtonSteps(is_bound, pace.is_stopped, self.tuning.newton)
        return Refit(work.beta, work.grad, self._until_tol(work, pace, newton))

    def _until_tol(self, work: Work, pace: Pace, newton: NewtonSteps) -> Status | None:
        working_set, sizes = self.working_set, self.tuning.rounds_on_kept
        while True:
            before = pace.n_iter
            violation = slice_of_rounds(
                work, working_set, None, self.kept, sizes, pace, newton
            )
            has_new = self._keep(working_set.members[: working_set.counts[N]])
            pace.note_violation(violation)
            if violation <= pace.options.tol:
                return Status.CONVERGED
            limit = pace.limit()
            if limit is not None:
                return None if limit is Status.STALLED else limit
            if not has_new and pace.n_iter == before:
                return None
            free = None if has_new else newton.due(work)
            if free is not None:
                place, rows = self.kept.place[free], self.kept.rows
                change = newton.take(work, free, rows[np.ix_(place, free)])
                add_rows(rows, place, change, (0, len(work.grad)), work.grad)

    def _keep(self, rows: IntVector) -> bool:
        """Compute those that are not kept yet; whether there are any."""
        new, first = rows[self.kept.place[rows] == NOBODY], self.n_kept
        if len(new) == 0:
            return False
        self.n_kept += len(new)
        self.arena.fill(new, self.kept.rows[first : self.n_kept])
        self.kept.place[new] = np.arange(first, self.n_kept)
        return True


def _enter_box(work: Work, kept: KeptRows, missing: float, is_bound: bool) -> bool:
    """Move variables into their box; whether their sum could be kept.

    Where the sum is fixed, it grows by what is `missing`. Variables whose rows are kept
    make up for that, and for what others leave behind: first those that gain most.
    """
    beta, before = work.beta, work.beta.copy()
    np.clip(beta, work.lower, work.upper, out=beta)
    _update(work, kept, before)
    missing -= float((beta - before).sum())
    if not is_bound or missing == 0.0:
        return True
    sign, rows = np.sign(missing), np.flatnonzero(kept.place != NOBODY)
    slope = work.grad + work.rise if missing > 0.0 else -work.grad - work.fall
    rows, before = rows[np.argsort(slope[rows], kind="stable")], beta.copy()
    end = (work.upper if missing > 0.0 else work.lower)[rows]
    room = np.abs(end - beta[rows])
    part = fill_in_order(room, abs(missing))
    beta[rows] = np.where(part == room, end, beta[rows] + sign * part)
    _update(work, kept, before)
    return abs(missing) <= float(room.sum())


def _update(work: Work, kept: KeptRows, before: FloatVector) -> None:
    """Slopes and masks after variables have left where they were before."""
    moved, n = np.flatnonzero(work.beta != before), len(before)
    change = (work.beta - before)[moved]
    add_rows(kept.rows, kept.place[moved], change, (0, n), work.grad)
    set_masks(work, 0, n)
