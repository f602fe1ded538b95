r"""How is a large dual problem solved with few rows of K? By decomposition.

Most variables end at a bound, and rows of K are expensive. A working set admits the
variables that violate most, some hundreds at a time, and keeps those that became free
(`working_set`). SMO optimises the members on the square of K between them, which is in
memory; one sum of rows of K then updates the gradient of all variables. (Joachims 1998;
since every free variable stays, ten to thirty rounds do, whatever C is.)

Rows are in float32, gradients in float64. At the end the slopes that decide are
computed again in float64, and rounds go on from there until the tolerance holds.
"""

import time
from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.kernels.arena import Arena, keeps_rows, short_rows
from maxmargin.kernels.cache import hold_all
from maxmargin.kernels.gram import Gram
from maxmargin.kernels.memory import SPARE_SIDE, pass_on, promised_square
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.tiles import VALUE_PRODUCTS
from maxmargin.problems.dual import (
    DualProblem,
    dual_objective,
    is_feasible,
    measured,
)
from maxmargin.solvers.coordinates import epoch_of
from maxmargin.solvers.gradient import Reached, RunningGradient, is_blurred, weight_of
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.pairs import OUT_OF_MOVES
from maxmargin.solvers.result import Options, PairRule, Status
from maxmargin.solvers.rounds import panels_of, slice_of_rounds
from maxmargin.solvers.work import Work, gather_work, set_masks
from maxmargin.solvers.working_set import (
    N_COMPUTED,
    N_NEW,
    SINGLY,
    Evicted,
    N,
    admit,
    admit_all,
    close_gaps,
    evict,
    make_working_set,
    measure,
    sort_members,
)
from maxmargin.typing import BoolVector, FloatVector

SPAN = 128  # rows of the square that a task brings together


def decompose(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    pace: Pace,
    max_members: int,
    image: FloatVector | None = None,
) -> Reached:
    """Solve a problem as far as float32 rows can; `image`: K @ start, if known.

    Its variables are sorted by group. With fewer than all of them as `max_members`, it
    ends where a round would need more.
    """
    solver = Decomposition(problem, gram, options, pace, max_members, image)
    try:
        return solver.run()
    finally:
        pass_on(solver.working_set.square.rows)


class Decomposition:
    """One problem, round after round; `work` holds all of its variables."""

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram,
        options: Options,
        pace: Pace,
        max_members: int,
        image: FloatVector | None,
    ) -> None:
        self.problem, self.gram, self.options, self.pace = problem, gram, options, pace
        n, tuning = len(problem.linear), options.tuning
        self.checks = tuning.checks
        share = tuning.square_share_alone
        if keeps_rows(gram.provider()):
            share = tuning.square_share
        self.max_side = min(int(np.sqrt(share * options.cache_bytes / 4)), n)
        n_bytes = options.cache_bytes - 4 * self.max_side**2
        self.arena = Arena(gram, n_bytes, getattr(gram, "n_threads", 1))
        self.bound = gram.bound()
        self.exact = RunningGradient(problem, gram, options.tol)
        self.exact_beta = np.zeros(n)
        grad = self._start_image(image)[problem.row] + problem.linear
        self.work = gather_work(
            problem, np.arange(n), problem.start, grad, gram.diagonal()
        )
        self.singly = SINGLY if problem.is_free_of_equalities else None
        self.epoch = epoch_of(problem)
        self.newton = NewtonSteps(self.singly is None, pace.is_stopped, tuning.newton)
        self.is_second_order = options.working_set is PairRule.SECOND_ORDER

        self.is_plain = np.array_equal(problem.row, np.arange(gram.n))
        has_room = self.is_plain and n <= self.max_side
        self.is_whole = has_room and n <= getattr(gram, "n_whole", 0)
        self.max_members = max_members
        self.panels: PanelRows | None = None
        if has_room and n <= tuning.max_compiled_rounds:
            self.panels = short_rows(self.arena.provider)
        is_compiled = self.panels is not None
        self.sizes = tuning.compiled_rounds if is_compiled else tuning.threaded_rounds
        side = min(self.max_side, SPARE_SIDE)
        if is_compiled or self.is_whole:
            side = n
        square = promised_square(side)
        self.working_set = make_working_set(n, problem.n_groups, square, self.sizes)
        self.n_checks = self.n_drifts = self.n_idle = self.n_iter_before = 0

    def _start_image(self, image: FloatVector | None) -> FloatVector:
        """K @ start; rows that the two halves of a tube have in common cancel."""
        if image is not None:
            return image
        image = np.zeros(self.gram.n)
        weight = weight_of(self.problem, self.problem.start, self.gram.n)
        if weight.any():
            rows = np.flatnonzero(weight)
            self.arena.add_rows(rows, weight[rows], image)
        return image

    @property
    def n_members(self) -> int:
        """How large the working set is."""
        return int(self.working_set.counts[N])

    def run(self) -> Reached:
        """Rounds until tol holds in float64, a limit is met, or memory is short."""
        tol = self.options.tol
        if self.panels is not None and self.pace.limit() is None:
            self._make_compiled_rounds(self.panels)
        while True:
            violation = measure(self.work, self.working_set, self.singly)
            self.pace.note_violation(violation)
            if self._has_come_to_rest(violation):
                return self._reached(violation, None)
            if self._needs_exact_slopes(violation):
                self.n_drifts += 1
                self._compute_all()
                continue
            if violation <= tol:
                violation = self._certify(violation)
                if violation <= tol:
                    return self._reached(violation, Status.CONVERGED)
                if self.n_checks > self.checks.max_corrections:
                    return self._reached(violation, None)
                continue
            limit = self.pace.limit()
            if limit is not None:
                violation = self._compute_all()
                is_there = violation <= tol
                return self._reached(violation, Status.CONVERGED if is_there else limit)
            if self.panels is not None:
                self._make_compiled_rounds(self.panels)
            elif not self._make_round(violation):
                return self._reached(violation, None)

    def _has_come_to_rest(self, violation: float) -> bool:
        """Whether rounds and corrections bring nothing any more."""
        has_moved = self.pace.n_iter > self.n_iter_before
        self.n_iter_before = self.pace.n_iter
        self.n_idle = 0 if has_moved else self.n_idle + 1
        checks = self.checks
        if self.n_idle > checks.max_idle or self.n_drifts > checks.max_drifts:
            return True
        return not (np.isfinite(violation) and np.isfinite(self.work.grad).all())

    def _needs_exact_slopes(self, violation: float) -> bool:
        """Whether sums have drifted, or slopes have where it begins to matter."""
        tol = self.options.tol
        if not violation <= self.checks.near * tol:
            return False
        if not is_feasible(self.problem, self.work.beta):
            return True
        return violation > tol and self._is_drifting()

    def _reached(self, violation: float, status: Status | None) -> Reached:
        counts = self.arena.n_hits, self.arena.n_computed
        return Reached(self.work.beta, self.work.grad, violation, status, *counts)

    # A round.

    def _make_compiled_rounds(self, panels: PanelRows) -> None:
        """Many rounds in compiled code, as far as a slice of time goes."""
        violation = slice_of_rounds(
            self.work,
            self.working_set,
            panels_of(panels),
            None,
            self.sizes,
            self.pace,
            self.newton,
        )
        self.arena.n_computed = int(self.working_set.counts[N_COMPUTED])
        self._report(violation, 0.0)
        if violation > self.options.tol and self.newton.due(self.work) is not None:
            own = self._members()
            if self._newton_step(own):
                self._update_gradient(own)

    def _make_round(self, violation: float) -> bool:
        """Evict and admit, optimise, update the gradient; False: memory is short.

        Or all of K costs less than what is still to come.
        """
        working_set = self.working_set
        if self.is_whole:
            if self.n_members == 0:
                admit_all(working_set)
                self.arena.fill_square(working_set.square.rows)
        else:
            n_new = int(working_set.counts[N_NEW])
            if self.n_members + n_new > self.max_members < len(working_set.age):
                return False
            left = evict(self.work, working_set, self.sizes, self.max_side)
            if not left.has_room:
                return False
            self._close_gaps(left)
            first = self.n_members
            admit(self.work, working_set, self.singly)
            self._extend(first)
        if self.problem.n_groups > 1:
            sort_members(self.work, self.working_set)
        own = self._members()
        self._optimise(own, violation)
        self._update_gradient(own)
        return True

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
        tuning = self.options.tuning
        last = tuning.stack.inner_tol * self.options.tol
        if self.is_whole:
            self._move(own, last)
            return
        before = self.pace.n_iter
        self._move(own, max(self.sizes.inner_tol * violation, last))
        cost = 2 * (self.pace.n_iter - before) * self.n_members
        if cost < self.working_set.counts[N_NEW] * len(self.work.beta):
            finer = tuning.compiled_rounds.inner_tol
            self._move(own, max(finer * violation, last))

    def _move(self, own: Work, tol: float) -> None:
        """SMO on the members until their violation is `tol`, slice by slice."""
        square, m = self.working_set.square, self.n_members
        moves_before_look = self.options.tuning.newton.moves_before_look * m
        until_look = moves_before_look
        while True:
            raise_if_stopped()
            began, n_moves = time.monotonic(), self.pace.moves(until_look)
            why, made, violation, _ = self.epoch(
                own, square, None, tol, n_moves, self.is_second_order
            )
            self.pace.note(made, time.monotonic() - began)
            self._report(violation, float(own.gained[0]))
            if self.is_whole:
                self.pace.note_violation(violation)
            if why != OUT_OF_MOVES or self.pace.limit() is not None:
                return
            until_look -= made
            if until_look == 0:
                until_look = moves_before_look
                self.newton.effort += moves_before_look * m
                self._newton_step(own)

    def _newton_step(self, own: Work) -> bool:
        """Free members go to their common optimum, if that costs less than moves."""
        free = self.newton.due(own)
        if free is None:
            return False
        rows = self.working_set.square.rows
        change = self.newton.take(own, free, rows[np.ix_(free, free)])
        add_rows(rows, free, change, (0, len(own.beta)), own.grad)
        return True

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
            counts = self.arena.n_hits, self.arena.n_computed
            self.pace.report(violation, value - gained, self.n_members, False, *counts)

    # The end.

    def _certify(self, violation: float) -> float:
        """The violation in float64; where float32 may be wrong, slopes are replaced."""
        self.n_checks += 1
        if not (self.options.confirm or self._is_drifting()):
            return violation
        problem, work = self.problem, self.work
        is_wanted = self._may_be_extreme()
        support = np.flatnonzero(work.beta)
        every = (
            1
            if self._is_objective_cheap()
            else len(support) // self.checks.n_sampled + 1
        )
        is_wanted[support[::every]] = True
        if np.count_nonzero(is_wanted) > self.checks.max_share * len(is_wanted):
            return self._compute_all()
        rows = np.unique(problem.row[is_wanted])
        weight = weight_of(problem, work.beta, self.gram.n)
        terms = np.flatnonzero(weight)
        image = np.empty(self.gram.n)
        image[problem.row] = work.grad - problem.linear
        exact = self.gram.sums(terms, weight[terms], rows)
        error, image[rows] = exact - image[rows], exact
        work.grad[:] = image[problem.row] + problem.linear
        found = measured(problem, work.beta, work.grad)
        if is_blurred(found.objective, weight, rows, error):
            return self._compute_all()
        return found.violation

    def _may_be_extreme(self) -> BoolVector:
        """Variables whose true slopes may be extreme in their group."""
        work, first = self.work, self.work.start[:-1]
        error = self._errors()[self.problem.row]
        right, left = work.grad + work.rise, work.grad + work.fall
        lowest = np.minimum.reduceat(right + error, first)
        highest = np.maximum.reduceat(left - error, first)
        group = np.maximum(self.problem.group, 0)
        may_be: BoolVector = right - error <= lowest[group]
        may_be |= left + error >= highest[group]
        return may_be

    def _errors(self) -> FloatVector:
        """By how much each slope may be off, after all that moved since."""
        moved = float(np.abs(self.work.beta - self.exact_beta).sum())
        return self.arena.provider.errors * self.bound * moved

    def _is_objective_cheap(self) -> bool:
        """Whether slopes of support vectors, which it is made of, cost little."""
        n_columns = getattr(getattr(self.gram, "rows", None), "n_columns", 1)
        n_values = int(np.count_nonzero(self.work.beta)) ** 2
        return n_values * (n_columns + VALUE_PRODUCTS) <= self.checks.cheap_products

    def _is_drifting(self) -> bool:
        """Whether float32 has probably spoiled slopes by a good part of tol."""
        moved = float(np.linalg.norm(self.work.beta - self.exact_beta))
        typical = float(np.median(self.arena.provider.errors)) * self.bound * moved
        return typical > self.checks.max_drift * self.options.tol

    def _compute_all(self) -> float:
        """All slopes in float64, at the nearest feasible point; its violation."""
        point, work = self.exact.at(self.work.beta), self.work
        work.beta[:], work.grad[:] = point.beta, point.grad
        set_masks(work, 0, len(work.beta))
        self.exact_beta = point.beta.copy()
        return point.violation
