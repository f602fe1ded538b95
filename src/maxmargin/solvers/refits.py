"""How is a solved problem solved again without some of its samples? From its solution.

A sample is left out by closing the box of its variable. Few other variables then move,
and much the same ones in every refit: the free ones, and those at a bound whose slopes
are nearest to a violation. The rows of K of these candidates, and of all support
vectors, are computed once. A refit then is some moves of SMO on the square between the
candidates, and sums of rows in memory, which update the gradient of all variables;
those that violate become candidates too, for this refit and the next ones.
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


class Refit(NamedTuple):
    """Where a solver ended."""

    beta: FloatVector
    grad: FloatVector
    status: Status | None


class CandidateRows(NamedTuple):
    """Rows of K, and the variables that may move."""

    rows: KernelMatrix  # room for all; the first `n_rows` are there
    place: IntVector  # of every variable's row among these, or NOBODY
    candidates: IntVector  # room for all; the first `n_candidates` count
    is_candidate: BoolVector  # of every variable
    square: RowCache  # between candidates
    n_rows: IntVector  # one number
    n_candidates: IntVector  # one number


def _no_candidates(n: int) -> CandidateRows:
    return CandidateRows(
        rows=promised_square(n),
        place=np.full(n, NOBODY),
        candidates=np.zeros(n, dtype=np.intp),
        is_candidate=np.zeros(n, dtype=np.bool_),
        square=hold_all(promised_square(n)),
        n_rows=np.zeros(1, dtype=np.intp),
        n_candidates=np.zeros(1, dtype=np.intp),
    )


class WarmRefitter:
    """A solved problem of one group or none, to be solved again in other boxes."""

    def __init__(
        self,
        problem: DualProblem,
        solved: Refit,
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
        self.kept = _no_candidates(n)
        is_near = is_interior(problem, beta)
        n_first = int(tuning.refits.share_of_free * np.count_nonzero(is_near))
        n_first = min(n, tuning.refits.min_first + n_first)
        distance = _distance(self.full, level)
        is_near[np.argpartition(distance, n_first - 1)[:n_first]] = True
        self._compute_rows(np.flatnonzero(is_near | (beta != 0.0)))
        _add_candidates(self.kept, np.flatnonzero(is_near))

    def release(self) -> None:
        """The memory may be used by others."""
        pass_on(self.kept.rows)
        pass_on(self.kept.square.rows)

    def solve(self, problem: DualProblem, pace: Pace) -> Refit:
        """The problem in boxes that may be smaller; its start has the sum to keep.

        Slopes are as exact as rows. Without a status, it needs another solver.
        """
        work, missing = _start(problem, self.full, self.kept, self.is_bound)
        if missing > 0.0:  # the candidates have no room for it
            return Refit(work.beta, work.grad, None)
        return Refit(work.beta, work.grad, self._until_tol(work, pace))

    def _until_tol(self, work: Work, pace: Pace) -> Status | None:
        tol, kept, tuning = pace.options.tol, self.kept, self.tuning
        inner_tol = tuning.stack.inner_tol * tol
        is_second = pace.options.working_set is PairRule.SECOND_ORDER
        singly = None if self.is_bound else SINGLY
        newton = NewtonSteps(self.is_bound, pace.is_stopped, tuning.newton)
        lowest_violation, n_stalls = np.inf, 0
        while True:
            raise_if_stopped()
            most = tuning.newton.moves_before_look * int(kept.n_candidates[0])
            most = min(most, pace.max_iter - pace.n_iter)
            made, violation = _optimise_candidates(
                work, kept, singly, inner_tol, most, is_second
            )
            pace.n_iter += made
            pace.note_violation(violation)
            if violation <= tol:
                return Status.CONVERGED
            n_stalls = 0 if violation < lowest_violation else n_stalls + 1
            lowest_violation = min(lowest_violation, violation)
            if n_stalls > tuning.refits.max_stalls:
                return None
            limit = pace.limit()
            if limit is not None:
                return limit
            newton.effort += made * int(kept.n_candidates[0])
            if made < most:  # the candidates are optimal, others are not
                self._add_violators(self._violators_outside(work, tol))
            else:
                self._newton_step(newton, work)

    def _newton_step(self, newton: NewtonSteps, work: Work) -> None:
        """Free variables go to their common optimum, if that costs less than moves."""
        free = newton.due(work)
        if free is not None:
            rows, place = self.kept.rows, self.kept.place[free]
            change = newton.take(work, free, rows[np.ix_(place, free)])
            add_rows(rows, place, change, (0, len(work.grad)), work.grad)

    def _add_violators(self, new: IntVector) -> None:
        self._compute_rows(new[self.kept.place[new] == NOBODY])
        _add_candidates(self.kept, new)

    def _violators_outside(self, work: Work, tol: float) -> IntVector:
        """Variables that violate and cannot move yet; the worst, if they are many."""
        up, down = work.grad + work.rise, work.grad + work.fall
        lowest, highest = (up.min(), down.max()) if self.is_bound else (0.0, 0.0)
        excess = np.maximum(highest - up, down - lowest)
        found = np.flatnonzero((excess > tol) & ~self.kept.is_candidate)
        most = self.tuning.refits.max_joining
        if len(found) > most:
            found = np.sort(found[np.argpartition(-excess[found], most)[:most]])
        return found

    def _compute_rows(self, new: IntVector) -> None:
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
def _add_candidates(kept: CandidateRows, new: IntVector) -> None:
    """These may move from now on; their rows have been computed."""
    first, square = kept.n_candidates[0], kept.square.rows
    last = first + len(new)
    for k in range(first, last):
        kept.candidates[k] = new[k - first]
    for k in range(first, last):
        row = kept.rows[kept.place[kept.candidates[k]]]
        for j in range(last):
            square[k, j] = row[kept.candidates[j]]
        kept.is_candidate[kept.candidates[k]] = True
    copy_turned(square, (first, last), (0, first), square, (0, first))
    kept.n_candidates[0] = last


def _start(
    problem: DualProblem, full: Work, kept: CandidateRows, is_bound: bool
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
        missing = _restore_sum(work, kept, float(problem.start.sum() - beta.sum()))
    set_masks(work, 0, len(beta))
    return work, missing


def _add_change(
    work: Work, kept: CandidateRows, changed: IntVector, before: FloatVector
) -> None:
    """Slopes after these variables have left where they were before."""
    change, span = work.beta[changed] - before[changed], (0, len(work.grad))
    add_rows(kept.rows, kept.place[changed], change, span, work.grad)


def _restore_sum(work: Work, kept: CandidateRows, missing: float) -> float:
    """Restore the sum by the candidates that gain most by it; returns what is left."""
    if missing == 0.0:
        return 0.0
    candidates, before = kept.candidates[: int(kept.n_candidates[0])], work.beta.copy()
    end = work.upper if missing > 0.0 else work.lower
    sign, left = np.sign(missing), abs(missing)
    set_masks(work, 0, len(work.beta))
    slope = work.grad + (work.rise if missing > 0.0 else work.fall)
    for i in candidates[np.argsort(sign * slope[candidates], kind="stable")]:
        if left == 0.0:
            break
        room = abs(end[i] - before[i])
        work.beta[i] = end[i] if room <= left else before[i] + sign * left
        left -= min(room, left)
    _add_change(
        work, kept, candidates[work.beta[candidates] != before[candidates]], before
    )
    return left


@jit_new
def _optimise_candidates(
    work: Work,
    kept: CandidateRows,
    singly: int | None,
    tol: float,
    most: int,
    is_second_order: bool,
) -> tuple[int, float]:
    """Optimise the candidates: (moves made, violation of all variables)."""
    candidates, beta = kept.candidates[: kept.n_candidates[0]], work.beta
    own = part_of(work, candidates)
    if singly is None:
        _, made, _, _ = pair_epoch(own, kept.square, None, tol, most, is_second_order)
    else:
        _, made, _, _ = coordinate_epoch(
            own, kept.square, None, tol, most, is_second_order
        )
    moved, change = np.empty(len(candidates), dtype=np.intp), np.empty(len(candidates))
    n_moved = 0
    for k in range(len(candidates)):
        i = candidates[k]
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
