"""How is a solved problem solved again without some of its samples? From its solution.

A sample is left out by closing the box of its variable. Few other variables then move,
and much the same ones in every refit: the free ones, and those at a bound whose slopes
are nearest to a violation. A refit is a few rounds of decomposition (`rounds`), on rows
of K that are kept for the next one, as are the working set and its square. Rows of
support vectors are computed at the beginning, others when they are needed.
"""

import numpy as np

from maxmargin.kernels.arena import Arena
from maxmargin.kernels.cache import NOBODY
from maxmargin.kernels.memory import pass_on, promised_square
from maxmargin.kernels.sums import add_rows
from maxmargin.problems.dual import DualProblem, fill_in_order, is_interior
from maxmargin.solvers.compiled_rounds import CompiledRounds, KernelValues
from maxmargin.solvers.decomposition import Decomposition
from maxmargin.solvers.iterate import Iterate, make_iterate
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.rounds import KeptRows
from maxmargin.solvers.tuning import Tuning
from maxmargin.solvers.work import Work, gather_work, set_masks
from maxmargin.solvers.working_set import N, make_working_set
from maxmargin.typing import FloatVector, IntVector


class RoundsOnKeptRows(CompiledRounds):
    """Rounds that wait for rows of K that their members lack."""

    def __init__(self, refitter: "WarmRefitter", work: Work, pace: Pace) -> None:
        self.refitter = refitter
        super().__init__(
            work,
            refitter.working_set,
            KernelValues(kept=refitter.kept),
            refitter.add_rows,
            refitter.tuning.rounds_on_kept,
            pace,
            not refitter.problem.is_free_of_equalities,
        )

    def _take_newton_step(self) -> bool:
        """Rows that are lacking come first: with them moves go on."""
        members = self.working_set.members[: self.working_set.counts[N]]
        return not self.refitter.keep(members) and super()._take_newton_step()


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
        self.keep(np.flatnonzero(beta))

    def release(self) -> None:
        """The memory may be used by others."""
        pass_on(self.kept.rows)
        pass_on(self.working_set.square.rows)

    def solve(self, problem: DualProblem, pace: Pace) -> Iterate:
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
        missing = float(problem.start.sum() - self.problem.start.sum())
        if not self._enter_box(work, missing):
            return make_iterate(problem, work.beta, work.grad)
        rounds = RoundsOnKeptRows(self, work, pace)
        return Decomposition(problem, rounds, pace, None).run()

    def keep(self, rows: IntVector) -> bool:
        """Compute those that are not kept yet; whether there are any."""
        new, first = rows[self.kept.place[rows] == NOBODY], self.n_kept
        if len(new) == 0:
            return False
        self.n_kept += len(new)
        self.arena.fill(new, self.kept.rows[first : self.n_kept])
        self.kept.place[new] = np.arange(first, self.n_kept)
        return True

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows, which are kept."""
        place = self.kept.place[rows]
        add_rows(self.kept.rows, place, weight, (0, len(out)), out)

    def _enter_box(self, work: Work, missing: float) -> bool:
        """Move variables into their box; whether their sum could be kept.

        Where the sum is fixed, it grows by what is `missing`. Variables whose rows are
        kept make up for that, and for what others leave behind: first those that gain
        most.
        """
        beta, before = work.beta, work.beta.copy()
        np.clip(beta, work.lower, work.upper, out=beta)
        self._update(work, before)
        missing -= float((beta - before).sum())
        if self.problem.is_free_of_equalities or missing == 0.0:
            return True
        sign, rows = np.sign(missing), np.flatnonzero(self.kept.place != NOBODY)
        slope = work.grad + work.rise if missing > 0.0 else -work.grad - work.fall
        rows, before = rows[np.argsort(slope[rows], kind="stable")], beta.copy()
        end = (work.upper if missing > 0.0 else work.lower)[rows]
        room = np.abs(end - beta[rows])
        part = fill_in_order(room, abs(missing))
        beta[rows] = np.where(part == room, end, beta[rows] + sign * part)
        self._update(work, before)
        return abs(missing) <= float(room.sum())

    def _update(self, work: Work, before: FloatVector) -> None:
        """Slopes and masks after variables have left where they were before."""
        moved = np.flatnonzero(work.beta != before)
        self.add_rows(moved, (work.beta - before)[moved], work.grad)
        set_masks(work, 0, len(before))
