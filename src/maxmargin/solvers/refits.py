"""How is a solved problem solved again without some of its samples? From its solution.

A sample is left out by closing the box of its variable. Few other variables then move,
and much the same ones in every refit: the free ones, and those at a bound whose slopes
are nearest to a violation. A refit is a few rounds of decomposition (`rounds`), on rows
of K that are kept for the next one, as are the working set and its square. Rows of
support vectors are computed at the beginning, others when they are needed.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit_new
from maxmargin.kernels.arena import Arena
from maxmargin.kernels.cache import NOBODY
from maxmargin.kernels.memory import pass_on, promised_square
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Status
from maxmargin.solvers.rounds import KeptRows, add_kept, slice_of_rounds
from maxmargin.solvers.tuning import Tuning
from maxmargin.solvers.work import Work, gather_work, set_masks
from maxmargin.solvers.working_set import N, admit_free, make_working_set
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
        admit_free(self.full, self.working_set)
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
        if _enter_box(work, self.kept, missing, is_bound) != 0.0:
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
                place = self.kept.place[free]
                change = newton.take(work, free, self.kept.rows[np.ix_(place, free)])
                add_kept(self.kept, free, change, work.grad)

    def _keep(self, rows: IntVector) -> bool:
        """Compute those that are not kept yet; whether there are any."""
        new, first = rows[self.kept.place[rows] == NOBODY], self.n_kept
        if len(new) == 0:
            return False
        self.n_kept += len(new)
        self.arena.fill(new, self.kept.rows[first : self.n_kept])
        self.kept.place[new] = np.arange(first, self.n_kept)
        return True


@jit_new
def _enter_box(work: Work, kept: KeptRows, missing: float, is_bound: bool) -> float:
    """Move variables into their box; returns how much of their sum found no room.

    Where the sum is fixed, it grows by what is `missing`. Variables whose rows are kept
    make up for that, and for what others leave behind: first those that gain most.
    """
    beta, grad, n_moved = work.beta, work.grad, 0
    moved, change = np.empty(len(beta), dtype=np.intp), np.empty(len(beta))
    for i in range(len(beta)):
        inside = min(max(beta[i], work.lower[i]), work.upper[i])
        if inside != beta[i]:
            moved[n_moved], change[n_moved] = i, inside - beta[i]
            missing -= inside - beta[i]
            beta[i] = inside
            n_moved += 1
    add_kept(kept, moved[:n_moved], change[:n_moved], grad)
    set_masks(work, 0, len(beta))
    while is_bound and missing != 0.0:
        best, lowest = NOBODY, np.inf
        for i in range(len(beta)):
            up, down = grad[i] + work.rise[i], -grad[i] - work.fall[i]
            slope = up if missing > 0.0 else down
            if slope < lowest and kept.place[i] != NOBODY:
                best, lowest = i, slope
        if best == NOBODY:
            return missing
        before, wanted = beta[best], beta[best] + missing
        beta[best] = min(max(wanted, work.lower[best]), work.upper[best])
        moved[0], change[0] = best, beta[best] - before
        missing = 0.0 if beta[best] == wanted else missing - change[0]
        add_kept(kept, moved[:1], change[:1], grad)
        set_masks(work, best, best + 1)
    return 0.0
