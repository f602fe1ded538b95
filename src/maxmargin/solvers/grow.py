r"""How is a large dual problem solved with few rows of K? On a set that grows.

Most variables end at a bound, and rows of K are dear. So a working set takes in the
variables that violate most, some hundreds at a time, and keeps those that became free:
once it holds all of these, it holds the problem. Inside, pairs move on a square of K
that is in memory; outside, one sum of rows brings the gradient up to date. Ten to
thirty rounds do, whatever C is. (Joachims 1998 for the decomposition; keeping every
free variable is what makes the number of rounds small.)

Rows are in float32, gradients in float64. At the end the slopes that decide are
computed afresh in float64, and the rounds go on from there until they agree.
"""

import time
from functools import cached_property

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.arena import Arena, keeps_rows
from maxmargin.kernels.cache import hold_all
from maxmargin.kernels.gram import Gram
from maxmargin.kernels.memory import pass_on
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.kernels.source import no_source
from maxmargin.kernels.sums import add_rows
from maxmargin.problems.dual import (
    DualProblem,
    dual_objective,
    is_feasible,
    is_interior,
    kkt_violation,
    slopes,
)
from maxmargin.solvers.coordinates import epoch_of
from maxmargin.solvers.free_set import Leaps
from maxmargin.solvers.front import Front
from maxmargin.solvers.gradient import Reached, RunningGradient, is_blurred, weight_of
from maxmargin.solvers.in_memory import fits_in_memory
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.pairs import OUT_OF_MOVES
from maxmargin.solvers.result import Options, Status, WorkingSet
from maxmargin.solvers.rounds import (
    INNER,
    SINGLY,
    STAYING,
    YOUNG,
    Limits,
    make_crew,
    panels_of,
    rounds_until,
)
from maxmargin.solvers.square import Square
from maxmargin.solvers.work import Work, gather_work
from maxmargin.typing import FloatVector, IntVector

QUICK = 3000  # variables whose rounds are made in compiled code
FEWEST_NEW, MOST_NEW = 128, 2048  # members in a round
NEW_SHARE = 32  # of the variables at first, within limits
MOST_FIRST = 512
GONE_SHARE = 0.15  # of the members at rest: fewer are not worth moving memory for
LOOSE_INNER = 0.3  # of the violation: how far a dear round goes; a cheap one, INNER
LOOK_EVERY = 4  # moves of a member, before leaps are thought of
FEWEST_MEMBERS = 256  # for that: fewer are not worth looking up
INNER_TOL = 0.7  # of tol: how far the last one goes
SQUARE_SHARE = 0.35  # of the memory, for the working set's own square
LARGER_SHARE = 0.85  # where no rows are kept
NEAR = 10.0  # times tol: slopes that have drifted are computed afresh, here
DRIFT = 1.0  # times tol, of an error that adds up at random
MOST_IDLE = 8  # rounds and corrections without a move
MOST_SETTLES = 4  # float64 corrections, after which float32 is not enough
MOST_DRIFTS = 8  # of slopes that had to be computed afresh midway, likewise
EXPONENTIAL = 20  # what it costs, in products
CHEAP = 1e7  # products: a millisecond
SAMPLED = 16  # support vectors that show whether float32 blurs the objective
EXACT_SHARE = 0.5  # of the variables in doubt: then all of them are computed afresh


def grow(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    pace: Pace,
    image: FloatVector | None = None,
) -> Reached:
    """Solve a problem as far as float32 rows can; `image`: K @ start, if known."""
    growth = Growth(problem, gram, options, pace, image)
    try:
        return growth.run()
    finally:
        pass_on(growth.square.values)


class Growth:
    """One problem, round after round."""

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram,
        options: Options,
        pace: Pace,
        image: FloatVector | None,
    ) -> None:
        self.problem, self.gram, self.options, self.pace = problem, gram, options, pace
        n = len(problem.linear)
        share = SQUARE_SHARE if keeps_rows(gram) else LARGER_SHARE
        most = int(np.sqrt(share * options.cache_bytes / 4))
        self.square = Square(min(most, n))
        n_bytes = options.cache_bytes - 4 * self.square.most**2
        self.arena = Arena(gram, n_bytes, getattr(gram, "n_threads", 1))
        self.diagonal, self.bound = gram.diagonal(), gram.bound()
        self.exact = RunningGradient(problem, gram, options.tol)
        self.beta = problem.start.copy()
        self.image = np.zeros(gram.n)
        self.exact_beta = np.zeros(n)
        self._start(image)
        self.age = np.zeros(n, dtype=np.intp)
        is_plain = np.array_equal(problem.row, np.arange(gram.n))
        has_room = is_plain and n <= self.square.most
        self.is_whole = has_room and n <= getattr(gram, "n_whole", 0)
        tuning, self.max_members = options.tuning, n
        if fits_in_memory(problem, gram, options, tuning.max_kept_samples):
            self.max_members = int(tuning.whole_share * n)
        self.panels = None
        if has_room and n <= QUICK and problem.n_groups <= 1:
            self.panels = self.arena.short_rows()
        if (self.panels is not None or self.is_whole) and n > len(self.square.values):
            self.square.make_room()
        if self.panels is not None:
            self.crew = make_crew(n, self.square.values)
        self.n_new = int(np.clip(n // NEW_SHARE, FEWEST_NEW, MOST_FIRST))
        self.n_settles = self.n_drifts = self.n_idle = self.n_iter_before = 0
        self.epoch = epoch_of(problem)
        self.leaps = Leaps(not problem.is_free_of_equalities, pace.is_stopped)
        self._is_second = options.working_set is WorkingSet.SECOND_ORDER

    def _start(self, image: FloatVector | None) -> None:
        """Rows that the two halves of a tube have in common cancel."""
        if image is not None:
            self.image = image.copy()
            return
        weight = weight_of(self.problem, self.beta, self.gram.n)
        if weight.any():
            rows = np.flatnonzero(weight)
            self.arena.add_rows(rows, weight[rows], self.image)

    @cached_property
    def order(self) -> IntVector:
        """Who comes first in a tie."""
        return np.random.default_rng(0).permutation(len(self.beta))

    @property
    def grad(self) -> FloatVector:
        """The slope of every variable."""
        grad: FloatVector = self.image[self.problem.row] + self.problem.linear
        return grad

    def run(self) -> Reached:
        """Rounds until the float64 slopes agree, a limit is met, or memory is short.

        Rounds without a move say that float32 values are of no more use.
        """
        if self.panels is not None and self.pace.limit() is None:
            self._make_rounds(self.grad, self.panels)
        while True:
            grad = self.grad
            right, left = slopes(self.problem, self.beta, grad)
            front = Front(self.problem, right, left)
            self.pace.note_violation(front.violation)
            if self._has_come_to_rest(front.violation):
                return self._reached(front.violation, None)
            if self._needs_exact_slopes(front):
                self.n_drifts += 1
                self._compute_all()
                continue
            if front.violation <= self.options.tol:
                violation = self._settle(front, grad, right, left)
                if violation <= self.options.tol:
                    return self._reached(violation, Status.CONVERGED)
                if self.n_settles > MOST_SETTLES:
                    return self._reached(violation, None)
                continue
            limit = self.pace.limit()
            if limit is not None:
                violation = self._compute_all()
                is_there = violation <= self.options.tol
                return self._reached(violation, Status.CONVERGED if is_there else limit)
            if not self._has_made_round(front, grad, right, left):
                return self._reached(front.violation, None)

    def _has_made_round(
        self, front: Front, grad: FloatVector, right: FloatVector, left: FloatVector
    ) -> bool:
        """Take in the worst, move, update the gradient; False: memory is short."""
        if self.panels is not None:
            self._make_rounds(grad, self.panels)
            return True
        if not self._renew(front, right, left):
            return False
        work = self._gather(grad)
        self._move_members(work, front.violation)
        self._spread(work)
        return True

    def _has_come_to_rest(self, violation: float) -> bool:
        """Whether rounds and corrections bring nothing any more."""
        has_moved = self.pace.n_iter > self.n_iter_before
        self.n_iter_before = self.pace.n_iter
        self.n_idle = 0 if has_moved else self.n_idle + 1
        is_idle = self.n_idle > MOST_IDLE or self.n_drifts > MOST_DRIFTS
        return is_idle or not np.isfinite(violation)

    def _needs_exact_slopes(self, front: Front) -> bool:
        """Whether sums have drifted, or slopes have where it begins to matter."""
        tol = self.options.tol
        if not front.violation <= NEAR * tol:
            return False
        if not is_feasible(self.problem, self.beta):
            return True
        return front.violation > tol and self._is_drifting()

    def _reached(self, violation: float, status: Status | None) -> Reached:
        counts = self.arena.n_hits, self.arena.n_computed
        return Reached(self.beta, self.grad, violation, status, *counts)

    # A round.

    def _renew(self, front: Front, right: FloatVector, left: FloatVector) -> bool:
        """Let members go that rest at a bound, take in who violates most.

        False where the free variables alone are too many for the memory, or where all
        of K costs less than what is still to come.
        """
        square, members = self.square, self.square.members
        if self.is_whole:
            if len(members) == 0:
                square.add_all(self.arena)
                self._put_in_order()
            return True
        is_free = is_interior(self.problem, self.beta)[members]
        self.age[members] = np.where(is_free, 0, self.age[members] + 1)
        n_rest = len(members) - int(np.count_nonzero(is_free))
        if len(members) > 0 and n_rest < STAYING * self.n_new:
            self.n_new = min(2 * self.n_new, MOST_NEW)
        if len(members) + self.n_new > self.max_members:
            return False
        room = square.most - self.n_new
        is_kept = is_free | (self.age[members] <= YOUNG)
        is_kept |= front.is_near(right, left, members)
        if np.count_nonzero(is_kept) > room:
            is_kept = is_free
        if np.count_nonzero(is_kept) > room:
            return False
        n_gone = len(members) - int(np.count_nonzero(is_kept))
        if len(members) > room or n_gone > GONE_SHARE * len(members):
            square.keep(is_kept, self.arena.n_threads)
        is_out = np.ones(len(self.beta), dtype=bool)
        is_out[square.members] = False
        new = front.worst(right, left, self.order[is_out[self.order]], self.n_new)
        self.age[new] = 0
        square.add(new, self.problem.row, self.arena)
        self._put_in_order()
        return True

    def _put_in_order(self) -> None:
        """Members of one group stand together: sums are kept within a group."""
        if self.problem.n_groups > 1:
            group = self.problem.group[self.square.members]
            self.square.reorder(np.argsort(group, kind="stable"))

    def _make_rounds(self, grad: FloatVector, panels: PanelRows) -> None:
        """Many rounds in compiled code, as far as a slice of time goes."""
        everybody = np.arange(len(self.beta))
        work = gather_work(self.problem, everybody, self.beta, grad, self.diagonal)
        tol, left = self.options.tol, self.pace.max_iter - self.pace.n_iter
        left = min(left, LOOK_EVERY * max(int(self.crew.n[0]), FEWEST_MEMBERS))
        limits = Limits(tol, INNER_TOL * tol, left, self._is_second)
        singly, values = None if self.leaps.is_bound else SINGLY, panels_of(panels)
        raise_if_stopped()
        made, violation = rounds_until(work, self.crew, None, values, singly, limits)
        self.pace.n_iter += made
        self.arena.n_computed = int(self.crew.n_computed[0])
        self._report(violation, work, int(self.crew.n[0]))
        self.leaps.effort += made * int(self.crew.n[0])
        free = self.leaps.who(work) if violation > tol else None
        if free is not None:
            change = self.leaps.leap(work, free, self.arena.block(free, free))
            self.arena.add_rows(free, change, work.grad)
        self.beta, self.image = work.beta, work.grad - self.problem.linear

    def _gather(self, grad: FloatVector) -> Work:
        members = self.square.members
        work = gather_work(self.problem, members, self.beta, grad, self.diagonal)
        return work._replace(row=np.arange(len(members)))

    def _move_members(self, work: Work, violation: float) -> None:
        """Go as far as a round is worth: moves should not cost more than its rows."""
        last = INNER_TOL * self.options.tol
        if self.is_whole:
            self._move(work, last)
            return
        before = self.pace.n_iter
        self._move(work, max(LOOSE_INNER * violation, last))
        n_met = (self.pace.n_iter - before) * len(self.square)
        if 2 * n_met < self.n_new * len(self.beta):
            self._move(work, max(INNER * violation, last))

    def _move(self, work: Work, tol: float) -> None:
        """Pairs of members move until they agree to `tol`, slice by slice."""
        rows, m = hold_all(self.square.rows), len(self.square)
        until_look = LOOK_EVERY * m
        while True:
            raise_if_stopped()
            began, n_moves = time.monotonic(), self.pace.moves(until_look)
            why, made, violation, _ = self.epoch(
                work, rows, no_source(), tol, n_moves, self._is_second
            )
            self.pace.note(made, time.monotonic() - began)
            self._report(violation, work, m)
            if self.is_whole:
                self.pace.note_violation(violation)
            if why != OUT_OF_MOVES or self.pace.limit() is not None:
                return
            until_look -= made
            if until_look == 0:
                until_look = LOOK_EVERY * m
                self._leap(work)

    def _leap(self, work: Work) -> None:
        """Free members go to their common optimum, if that costs less than moves."""
        rows, m = self.square.rows, len(self.square)
        self.leaps.effort += LOOK_EVERY * m * m
        if (free := self.leaps.who(work)) is not None:
            change = self.leaps.leap(work, free, rows[np.ix_(free, free)])
            add_rows(rows, free, change, (0, m), work.grad)

    def _spread(self, work: Work) -> None:
        """Tell everybody else what the members did."""
        members = self.square.members
        change = work.beta - self.beta[members]
        self.beta[members] = work.beta
        if self.is_whole:
            self.image[members] = work.grad - self.problem.linear[members]
            return
        moved = np.flatnonzero(change)
        rows, weight = self.problem.row[members[moved]], change[moved]
        self.arena.add_rows(rows, weight, self.image)

    def _report(self, violation: float, work: Work, n_active: int) -> None:
        if self.pace.is_due():
            value = dual_objective(self.problem, self.beta, self.grad)
            value -= float(work.gained[0])
            counts = self.arena.n_hits, self.arena.n_computed
            self.pace.report(violation, value, n_active, False, *counts)

    # The end.

    def _settle(
        self, front: Front, grad: FloatVector, right: FloatVector, left: FloatVector
    ) -> float:
        """The violation in float64; where float32 may be wrong, slopes are replaced."""
        self.n_settles += 1
        if not (self.options.confirm or self._is_drifting()):
            return front.violation
        error = self._errors()[self.problem.row]
        sure = Front(self.problem, right + error, left - error)
        group = sure.group
        is_wanted = right - error <= sure.lowest[group]
        is_wanted |= left + error >= sure.highest[group]
        support = np.flatnonzero(self.beta)
        every = 1 if self._is_objective_cheap() else len(support) // SAMPLED + 1
        is_wanted[support[::every]] = True
        if np.count_nonzero(is_wanted) > EXACT_SHARE * len(grad):
            return self._compute_all()
        rows = np.unique(self.problem.row[is_wanted])
        weight = weight_of(self.problem, self.beta, self.gram.n)
        terms = np.flatnonzero(weight)
        exact = self.gram.sums(terms, weight[terms], rows)
        off, self.image[rows] = exact - self.image[rows], exact
        objective = dual_objective(self.problem, self.beta, self.grad)
        if is_blurred(objective, weight, rows, off):
            return self._compute_all()
        return kkt_violation(self.problem, self.beta, self.grad)

    def _errors(self) -> FloatVector:
        """By how much each slope may be off, after all that moved since."""
        moved = float(np.abs(self.beta - self.exact_beta).sum())
        return self.arena.errors * self.bound * moved

    def _is_objective_cheap(self) -> bool:
        """Whether slopes of support vectors, which it is made of, cost little."""
        n_columns = getattr(getattr(self.gram, "rows", None), "n_columns", 1)
        n_values = int(np.count_nonzero(self.beta)) ** 2
        return n_values * (n_columns + EXPONENTIAL) <= CHEAP

    def _is_drifting(self) -> bool:
        """Whether float32 has probably spoiled slopes by a good part of tol."""
        moved = float(np.linalg.norm(self.beta - self.exact_beta))
        typical = float(np.median(self.arena.errors)) * self.bound * moved
        return typical > DRIFT * self.options.tol

    def _compute_all(self) -> float:
        point = self.exact.at(self.beta)
        self.beta, self.exact_beta = point.beta.copy(), point.beta.copy()
        self.image = self.exact.image.copy()
        return point.violation
