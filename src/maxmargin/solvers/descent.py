r"""How does SMO solve a dual problem on all variables? In compiled slices.

Compiled epochs move variables; this driver, in Python, fetches the rows they ask for,
shrinks the problem, watches the clock, and at the end recomputes the gradient in
float64: the solver goes on until the tolerance holds there. (Platt 1998; Fan, Chen &
Lin 2005; Joachims 1998 for shrinking.)
"""

import time

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels import single
from maxmargin.kernels.gram import Gram, slope_size
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.coordinates import epoch_of
from maxmargin.solvers.gradient import (
    EPSILON,
    RunningGradient,
    check_finite,
    weight_of,
)
from maxmargin.solvers.iterate import Iterate
from maxmargin.solvers.newton_steps import common_optimum, free_variables
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.pairs import CONVERGED, NEEDS_ROW, STALLED
from maxmargin.solvers.result import PairRule, Status
from maxmargin.solvers.rows_at_hand import RowsAtHand
from maxmargin.solvers.shrinking import survivors
from maxmargin.solvers.work import Work, gather_work
from maxmargin.typing import FloatVector

ROUNDING_32 = 6e-8  # relative rounding of a kernel value kept in float32


def solve_smo(
    problem: DualProblem,
    gram: Gram,
    pace: Pace,
    image: FloatVector | None = None,
) -> Iterate:
    r"""Solve a dual problem to `options.tol`, certified in float64.

    .. math:: \min_\beta \tfrac12 \beta^\top K \beta + q^\top \beta + k^\top |\beta|
       \quad l \le \beta \le u, \quad \sum_{i \in g} \beta_i = s_g \;\forall g

    One step costs two rows of :math:`K` and O(n); without equalities, one row.

    Parameters
    ----------
    problem : DualProblem
        :math:`q, k, l, u, g` and a feasible start, each of shape (n,); the variables of
        each group stand together.
    gram : Gram
        Rows of :math:`K` on demand.
    pace : Pace
        The options, moves made so far, by other solvers too, and the limits on them.
    image : FloatVector, optional
        Left aside: slopes are computed in float64 from the beginning.

    Returns
    -------
    Iterate
        ``beta`` of shape (n,), one of ``levels`` per group, and a ``status``.
    """
    solver = _FullSmo(problem, gram, pace)
    return solver.ended(solver.run())


class _FullSmo:
    """One problem, slice after slice.

    `point` is the last one known in float64; `work` holds the active variables since.
    """

    def __init__(self, problem: DualProblem, gram: Gram, pace: Pace) -> None:
        self.problem, self.gram, self.pace = problem, gram, pace
        self.options = options = pace.options
        n, tuning = len(problem.linear), options.tuning.smo
        self.tuning = tuning
        self.n_corrections, self.n_iter_at_check = 0, -1
        self.check_every = most = tuning.check_every
        if options.shrinking:
            self.check_every = int(np.clip(n, tuning.min_check_every, most))
        self.next_check = pace.n_iter + self.check_every
        self.moves_between_steps = tuning.moves_before_newton * n
        self.next_step = pace.n_iter + self.moves_between_steps
        self.was_unshrunk = False
        self.epoch = epoch_of(problem)
        self.diagonal = gram.diagonal()
        check_finite(self.diagonal)
        self.bound = gram.bound()
        self.exact = RunningGradient(problem, gram, options.tol)
        self.rows = RowsAtHand(gram, problem.row, options.cache_bytes, tuning)
        self.active = np.arange(n)
        self.point: Iterate = self.exact.at(problem.start)
        self._load(self.point)
        self.objective_at_step = self.point.objective
        self._raise_precision_if_needed()

    # Moves.

    def run(self) -> Status:
        """Move until the float64 gradient confirms convergence, or a limit is met."""
        status = self._solve()
        if status is Status.CONVERGED and self.options.polish:
            self._polish()
        return status

    def _solve(self) -> Status:
        while True:
            why, violation = self._slice(self.options.tol)
            if why in (CONVERGED, STALLED):
                ended = self._certify()
            elif (limit := self.pace.limit()) is not None:
                ended = self._give_up(limit)
            elif self.pace.n_iter >= self.next_check:
                ended = self._check(violation)
            else:
                ended = None
            if ended is not None:
                return ended

    def _slice(self, tol: float) -> tuple[int, float]:
        """Run compiled moves for some hundredths of a second, fetching rows."""
        left = self.pace.moves(self.next_check - self.pace.n_iter)
        while True:
            raise_if_stopped()
            began = time.monotonic()
            why, made, violation, variable = self.epoch(
                self.work,
                self.rows.cache,
                self.rows.source,
                tol,
                left,
                self.options.working_set is PairRule.SECOND_ORDER,
            )
            left -= made
            self.pace.note(made, time.monotonic() - began)
            self.pace.note_violation(violation)
            self._report(violation)
            if why != NEEDS_ROW or self.pace.is_late():
                return why, violation
            self.rows.fetch(self.work, variable, violation)

    # Between two slices.

    def _check(self, violation: float) -> Status | None:
        """Shrink, raise the precision, or solve for the free variables if it pays."""
        self.next_check = self.pace.n_iter + self.check_every
        floor = self._rounding_floor(self._beta())
        if self._is_hopeless(violation, floor):
            self._refresh()
            self._newton(self.options.tol)  # the last digits that there are
            return self._give_up(Status.PRECISION_LIMIT)
        if violation <= floor:
            self._refresh()
            if self.point.violation <= self._rounding_floor(self.point.beta):
                return self._give_up(Status.PRECISION_LIMIT)
        self._raise_precision_if_needed()
        if self.pace.n_iter >= self.next_step:
            self._step_midway()
        if self.options.shrinking:
            near = self.tuning.unshrink_at * self.options.tol
            if violation <= near and not self.was_unshrunk:
                self.was_unshrunk = True
                self._refresh()
            self._shrink()
        return None

    def _is_hopeless(self, violation: float, floor: float) -> bool:
        """Whether tol is far below rounding, and what is left not far above it."""
        tuning = self.tuning
        if self.options.tol >= tuning.hopeless_tol * floor:
            return False
        n_moves = tuning.hopeless_moves * len(self.problem.linear)
        is_near = violation <= tuning.hopeless_violation * floor
        return is_near and self.pace.n_iter > n_moves

    def _step_midway(self) -> None:
        """A Newton step of the free variables; again as soon if it gained most."""
        self._refresh()
        before = self.point.objective
        self._newton(self.options.tol)
        if before - self.point.objective < self.objective_at_step - before:
            self.moves_between_steps *= 2
        self.objective_at_step = self.point.objective
        self.next_step = self.pace.n_iter + self.moves_between_steps

    def _shrink(self) -> None:
        is_single = self.problem.is_free_of_equalities
        keep = survivors(self.work, is_single, self.tuning.min_shrunk_share)
        if keep is None:
            return
        point, work, active = self.point, self.work, self.active
        grad = point.grad.copy()
        grad[active] = work.grad
        objective = point.objective - float(work.gained[0])
        self.point = point._replace(beta=self._beta(), grad=grad, objective=objective)
        self.active = active[keep]
        self.rows.keep(keep)
        self.work = self._gather()

    def _raise_precision_if_needed(self) -> None:
        """Rows in float64 once the rounding of float32 could be seen in the slopes."""
        if self.rows.dtype == np.float64:
            return
        rounding = ROUNDING_32 * self.bound * float(np.linalg.norm(self._beta()))
        too_large = not self.bound <= single.LARGEST
        if rounding > self.options.tol / 3.0 or too_large:
            self._use_double()

    def _use_double(self) -> None:
        self._refresh()
        self.rows.restart(self.problem.row, np.float64)

    def _rounding_floor(self, beta: FloatVector) -> float:
        """What float64 cannot resolve in the slopes of support vectors."""
        size = weight_of(self.problem, np.abs(beta), self.gram.n)
        return 4.0 * EPSILON * slope_size(self.gram, size)

    # The end.

    def _certify(self) -> Status | None:
        """Converged on what is at hand: look at all variables, in float64."""
        has_moved = self.pace.n_iter > self.n_iter_at_check
        self.n_iter_at_check = self.pace.n_iter
        self._refresh()
        violation = self.point.violation
        if violation <= self.options.tol:
            return Status.CONVERGED
        self.n_corrections += 1
        is_double, tuning = self.rows.dtype == np.float64, self.tuning
        if violation <= self._rounding_floor(self.point.beta):
            return Status.PRECISION_LIMIT
        if is_double and (self.n_corrections > tuning.max_corrections or not has_moved):
            return Status.PRECISION_LIMIT
        most = tuning.max_float32_corrections
        if not is_double and (self.n_corrections >= most or not has_moved):
            self._use_double()
        return None

    def _give_up(self, status: Status) -> Status:
        """At a limit: what has been reached may be good enough all the same.

        Moves that no longer help, where tol is below rounding, have met rounding.
        """
        self._refresh()
        tol, violation = self.options.tol, self.point.violation
        if violation <= tol:
            return Status.CONVERGED
        floor = self._rounding_floor(self.point.beta)
        is_near = violation <= self.tuning.hopeless_violation * floor
        if status is Status.STALLED and tol < floor and is_near:
            return Status.PRECISION_LIMIT
        return status

    def _polish(self) -> None:
        """From tol to rounding, if the free variables are few enough to solve for."""
        best, tuning = self.point, self.tuning
        goal = tuning.polished * max(1.0, float(np.abs(best.grad).max()))
        goal = max(goal, self._rounding_floor(best.beta))
        for _ in range(tuning.polish_rounds):
            n_free = self._newton(goal) if best.violation > goal else 0
            if n_free == 0:
                break
            if self.point.violation < best.violation:
                best = self.point
            if self.point.violation > goal:
                n_moves = min(len(best.beta), tuning.check_every)
                n_moves += tuning.polish_moves * n_free
                self._few_moves(0.1 * self.point.violation, n_moves)
        self._load(best)

    def _newton(self, tol: float) -> int:
        """Solve for the free variables; return how many there were (0: left alone)."""
        free = free_variables(self.problem, self.point.beta)
        if len(free) == 0:
            return 0
        newton = self.options.tuning.newton
        beta = common_optimum(self.problem, self.gram, self.point, free, tol, newton)
        better = self.exact.at(beta)
        if better.objective <= self.point.objective:
            self._load(better)
        return len(free)

    def _few_moves(self, tol: float, max_moves: int) -> None:
        """A few moves of SMO: they find out which variables leave a bound."""
        self.pace.per_slice, self.next_check = max_moves, self.pace.n_iter + max_moves
        if self.next_check < self.pace.max_iter and not self.pace.is_late():
            self._slice(tol)
            self._refresh()

    # Between the full problem and the active part.

    def _load(self, point: Iterate) -> None:
        """Continue from this point, all variables active."""
        self.point = point
        n = len(self.problem.linear)
        if len(self.active) < n:
            self.active = np.arange(n)
            self.rows.restart(self.problem.row, self.rows.dtype)
        self._work: Work | None = None  # gathered when next needed

    def _refresh(self) -> None:
        """Recompute the gradient where the moves have led; every variable is active."""
        self._load(self.exact.at(self._beta()))

    @property
    def work(self) -> Work:
        """The active variables."""
        if self._work is None:
            self._work = self._gather()
        return self._work

    @work.setter
    def work(self, work: Work) -> None:
        self._work = work

    def _gather(self) -> Work:
        beta, grad = self.point.beta, self.point.grad
        return gather_work(self.problem, self.active, beta, grad, self.diagonal)

    def _beta(self) -> FloatVector:
        """All variables as they are now."""
        beta = self.point.beta.copy()
        if self._work is not None:
            beta[self.active] = self._work.beta
        return beta

    # Reports.

    def _report(self, violation: float) -> None:
        gained = 0.0 if self._work is None else float(self._work.gained[0])
        self.pace.report(
            violation,
            self.point.objective - gained,
            len(self.active),
            False,
            self.rows.n_hits,
            self.rows.n_misses,
        )

    def ended(self, status: Status) -> Iterate:
        """Where it is, with its evidence."""
        return self.point._replace(
            status=status,
            cache_hits=self.rows.n_hits,
            cache_misses=self.rows.n_misses,
        )
