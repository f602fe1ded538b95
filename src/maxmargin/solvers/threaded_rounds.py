"""How are the rounds of decomposition made where threads compute kernel values?

Python calls the verbs of the working set one by one, and threads compute rows of K
between them, or sums of rows.
"""

import time
from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.kernels.arena import Arena
from maxmargin.kernels.cache import hold_all
from maxmargin.kernels.memory import pass_on, promised_square
from maxmargin.kernels.sums import add_rows
from maxmargin.problems.dual import DualProblem, dual_objective
from maxmargin.solvers.coordinates import epoch_of
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.pairs import OUT_OF_MOVES
from maxmargin.solvers.result import PairRule
from maxmargin.solvers.work import Work, gather_work
from maxmargin.solvers.working_set import (
    N_NEW,
    SINGLY,
    Evicted,
    N,
    RowCounts,
    WorkingSet,
    admit,
    admit_all,
    close_gaps,
    evict,
    measure,
    sort_members,
)

SPAN = 128  # rows of the square that a task brings together


class ThreadedRounds:
    """Rounds of one problem; `work` holds all of its variables."""

    def __init__(
        self,
        problem: DualProblem,
        work: Work,
        working_set: WorkingSet,
        arena: Arena,
        pace: Pace,
        max_side: int,
        max_members: int,
    ) -> None:
        """Rounds end where more than `max_members` are needed, unless that is all."""
        self.problem, self.work, self.working_set = problem, work, working_set
        self.arena, self.pace, self.max_side = arena, pace, max_side
        self.max_members, self.gram = max_members, arena.gram
        self.tuning = pace.options.tuning
        self.sizes = self.tuning.threaded_rounds
        is_bound = not problem.is_free_of_equalities
        self.singly = None if is_bound else SINGLY
        self.newton = NewtonSteps(is_bound, pace.is_stopped, self.tuning.newton)
        self.epoch = epoch_of(problem)
        self.is_plain = np.array_equal(problem.row, np.arange(self.gram.n))
        n = len(problem.linear)
        n_whole = getattr(self.gram, "n_whole", 0)
        self.is_whole = self.is_plain and n <= min(max_side, n_whole)

    @property
    def n_members(self) -> int:
        """How large the working set is."""
        return int(self.working_set.counts[N])

    def count_rows(self) -> RowCounts:
        """Those that were kept, and those that were computed."""
        return RowCounts(self.arena.n_hits, self.arena.n_computed)

    def measure(self) -> float:
        """The violation of all variables."""
        return measure(self.work, self.working_set, self.singly)

    def begin(self) -> float:
        """The violation at the start."""
        return self.measure()

    def make(self, violation: float) -> float | None:
        """Evict and admit, optimise, update the gradient; returns the violation after.

        None: memory is short, or all of K costs less than what is still to come.
        """
        working_set = self.working_set
        if self.is_whole:
            if self.n_members == 0:
                admit_all(working_set)
                self.arena.fill_square(working_set.square.rows)
        else:
            n_new = int(working_set.counts[N_NEW])
            if self.n_members + n_new > self.max_members < len(working_set.age):
                return None
            left = evict(self.work, working_set, self.sizes, self.max_side)
            if not left.has_room:
                return None
            self._close_gaps(left)
            first = self.n_members
            admit(self.work, working_set, self.singly)
            self._extend(first)
        if self.problem.n_groups > 1:
            sort_members(self.work, self.working_set)
        own = self._members()
        self._optimise(own, violation)
        self._update_gradient(own)
        return self.measure()

    def _close_gaps(self, left: Evicted) -> None:
        """Rows and columns of members that have left are taken by the last ones."""
        square, n = self.working_set.square.rows, len(left.source)
        tasks = [
            partial(close_gaps, square, left.source, left.gaps, k, min(k + SPAN, n))
            for k in range(0, n, SPAN)
        ]
        run_all(tasks, self.arena.n_threads)

    def _members(self) -> Work:
        """The members' variables, whose rows are those of the square."""
        members, work = self.working_set.members[: self.n_members], self.work
        own = gather_work(
            self.problem, members, work.beta, work.grad, self.gram.diagonal()
        )
        row = np.arange(self.n_members)
        return own._replace(row=row, min_curvature=work.min_curvature)

    def _extend(self, first: int) -> None:
        """K between new members and all; the square grows where it has to."""
        n, square = self.n_members, self.working_set.square.rows
        if n > len(square):
            larger = promised_square(self.max_side)
            larger[:first, :first] = square[:first, :first]
            pass_on(square)
            self.working_set = self.working_set._replace(square=hold_all(larger))
            square = larger
        rows = self.problem.row[self.working_set.members[:n]]
        self.arena.extend(rows, first, square)

    def _optimise(self, own: Work, violation: float) -> None:
        """Go as far as a round is worth: moves should not cost more than its rows."""
        last = self.tuning.stack.inner_tol * self.pace.options.tol
        if self.is_whole:
            self._move(own, last)
            return
        before = self.pace.n_iter
        self._move(own, max(self.sizes.inner_tol * violation, last))
        cost = 2 * (self.pace.n_iter - before) * self.n_members
        if cost < self.working_set.counts[N_NEW] * len(self.work.beta):
            finer = self.tuning.compiled_rounds.inner_tol
            self._move(own, max(finer * violation, last))

    def _move(self, own: Work, tol: float) -> None:
        """SMO on the members until their violation is `tol`, slice by slice."""
        square, m, pace = self.working_set.square, self.n_members, self.pace
        is_second_order = pace.options.working_set is PairRule.SECOND_ORDER
        moves_before_look = self.tuning.newton.moves_before_look * m
        until_look = moves_before_look
        while True:
            raise_if_stopped()
            began, n_moves = time.monotonic(), pace.moves(until_look)
            why, made, violation, _ = self.epoch(
                own, square, None, tol, n_moves, is_second_order
            )
            pace.note(made, time.monotonic() - began)
            self._report(violation, float(own.gained[0]))
            if self.is_whole:
                pace.note_violation(violation)
            if why != OUT_OF_MOVES or pace.limit() is not None:
                return
            until_look -= made
            if until_look == 0:
                until_look = moves_before_look
                self.newton.effort += moves_before_look * m
                self._take_newton_step(own)

    def _take_newton_step(self, own: Work) -> None:
        """Free members go to their common optimum, if that costs less than moves."""
        free = self.newton.due(own)
        if free is None:
            return
        rows = self.working_set.square.rows
        change = self.newton.take(own, free, rows[np.ix_(free, free)])
        add_rows(rows, free, change, (0, len(own.beta)), own.grad)

    def _update_gradient(self, own: Work) -> None:
        """grad += K[:, moved] @ change, for all variables."""
        work = self.work
        members = self.working_set.members[: self.n_members]
        has_moved = own.beta != work.beta[members]
        moved = members[has_moved]
        change = own.beta[has_moved] - work.beta[moved]
        work.beta[moved] = own.beta[has_moved]
        work.rise[moved], work.fall[moved] = own.rise[has_moved], own.fall[has_moved]
        work.gained[0] += own.gained[0]
        if self.is_whole:
            work.grad[:] = own.grad
            return
        row = self.problem.row
        sums = np.zeros(self.gram.n)
        self.arena.add_rows(row[moved], change, sums)
        work.grad[:] += sums if self.is_plain else sums[row]

    def _report(self, violation: float, gained: float) -> None:
        """Call the callback, if it is due; `gained` since the last update."""
        if self.pace.is_due():
            value = dual_objective(self.problem, self.work.beta, self.work.grad)
            counts = self.count_rows()
            self.pace.report(violation, value - gained, self.n_members, False, *counts)
