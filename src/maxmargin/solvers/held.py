"""How is one of many problems on the same K solved? From where its neighbour ended.

With all of K in memory there is nothing to compute but moves. The neighbour's solution,
scaled to the new box, comes with its slopes, so that a start costs nothing either. And
since K is in float64, so are all slopes: no certificate needs a sum of its own. Members
of the working set meet in float32; what that leaves undone, the next round does.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.arena import ITEM_BYTES
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.memory import SPARE_SIDE, pass_on, promised_square
from maxmargin.problems.dual import (
    NO_GROUP,
    DualProblem,
    dual_objective,
    group_levels,
    kkt_violation,
)
from maxmargin.solvers.at_once import Begun, begin
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.free_set import Leaps
from maxmargin.solvers.gradient import check_finite, weight_of
from maxmargin.solvers.grow import (
    FEWEST_MEMBERS,
    INNER_TOL,
    LOOK_EVERY,
    SQUARE_SHARE,
    grow,
)
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Status, WorkingSet
from maxmargin.solvers.rounds import (
    SINGLY,
    Limits,
    has_room,
    hold,
    make_crew,
    rounds_until,
)
from maxmargin.solvers.work import Work, gather_work
from maxmargin.typing import FloatVector

PATIENCE = 50  # calls without progress: then float32 is not enough


@dataclass(frozen=True)
class HeldSolution:
    """A point and the evidence."""

    beta: FloatVector
    image: FloatVector | None  # K times it, float64; None: K was not in memory
    level: FloatVector
    violation: float
    status: Status
    n_iter: int


class Ended(NamedTuple):
    """Where a solver ended; without a status, somebody else must go on."""

    beta: FloatVector
    grad: FloatVector
    status: Status | None


def solve_held(
    problem: DualProblem,
    gram: HeldGram,
    options: Options,
    image: FloatVector | None = None,
) -> HeldSolution:
    """Solve a problem from its start; `image`: K times that, a number for every row."""
    pace = Pace(options, len(problem.linear))
    if image is None:
        image = _image(problem, gram, problem.start)
    if problem.n_groups > 1:
        ended = _solve_by_growing(problem, gram, pace, image)
    else:
        begun = _begin(problem, gram, pace, image)
        if begun.violation <= options.tol and options.callback is None:
            evidence = begun.violation, Status.CONVERGED, pace.n_iter
            return HeldSolution(begun.beta, begun.image, begun.level, *evidence)
        ended = _go_on(problem, gram, pace, begun)
    if not _is_certified(problem, ended, options.tol):
        start = problem.starting_at(ended.beta)
        found = solve_smo(start, gram, options, pace)
        grad = _image(problem, gram, found.beta)[problem.row] + problem.linear
        ended = Ended(found.beta, grad, found.status)
    beta, grad, status = ended
    assert status is not None, "the last solver has to say how it ended"
    level = group_levels(problem, beta, grad)
    violation = kkt_violation(problem, beta, grad)
    image = np.zeros(gram.n)
    image[problem.row] = grad - problem.linear
    if options.callback is not None:
        objective = dual_objective(problem, beta, grad)
        pace.report(violation, objective, len(beta), is_last=True)
    return HeldSolution(beta, image, level, violation, status, pace.n_iter)


def _is_certified(problem: DualProblem, ended: Ended, tol: float) -> bool:
    """Whether a solver ended, and where it says converged, is."""
    if ended.status is not Status.CONVERGED:
        return ended.status is not None
    return kkt_violation(problem, ended.beta, ended.grad) <= tol


def _image(problem: DualProblem, gram: HeldGram, beta: FloatVector) -> FloatVector:
    weight = weight_of(problem, beta, gram.n)
    support = np.flatnonzero(weight)
    return gram.sums(support, weight[support], np.arange(gram.n))


def _solve_by_growing(
    problem: DualProblem, gram: HeldGram, pace: Pace, image: FloatVector
) -> Ended:
    """A larger working set, and one that knows several groups."""
    grown = grow(problem, gram, pace.options, pace, image)
    return Ended(grown.beta, grown.grad, grown.status)


def _begin(
    problem: DualProblem, gram: HeldGram, pace: Pace, image: FloatVector
) -> Begun:
    """In one call: for most problems, that is all."""
    square = promised_square(min(gram.n, SPARE_SIDE))
    is_second = pace.options.working_set is WorkingSet.SECOND_ORDER
    most = min(LOOK_EVERY * len(problem.linear), pace.max_iter)
    tol = pace.options.tol
    limits = Limits(tol, INNER_TOL * tol, most, is_second)
    singly = SINGLY if problem.group[0] == NO_GROUP else None
    diagonal = gram.diagonal()
    try:
        begun = begin(problem, image, diagonal, square, gram.part, singly, limits)
    finally:
        pass_on(square)
    if not begun.is_finite:
        check_finite(image[problem.row] + problem.linear)
    pace.n_iter += begun.n_moves
    return begun


def _go_on(problem: DualProblem, gram: HeldGram, pace: Pace, begun: Begun) -> Ended:
    """Rounds in compiled code, unless too many variables are free."""
    rounds = Rounds(gram)
    try:
        ended = rounds.solve(problem, pace, begun)
    finally:
        rounds.leave()
    if ended.status is not None:
        return ended
    start = problem.starting_at(ended.beta)
    return _solve_by_growing(start, gram, pace, ended.grad - problem.linear)


class Rounds:
    """A problem of one group or none, and the square of those who move."""

    def __init__(self, gram: HeldGram) -> None:
        self.diagonal, self.rows = gram.diagonal(), gram.single()
        self.held = hold(gram.part)
        self.square = promised_square(min(gram.n, SPARE_SIDE))
        self.crew = make_crew(gram.n, self.square)

    def leave(self) -> None:
        """Somebody else may have the memory."""
        pass_on(self.square)

    def _enlarge(self, pace: Pace) -> bool:
        """A square for all, if there is memory; free variables will join first."""
        n = len(self.diagonal)
        most = SQUARE_SHARE * pace.options.cache_bytes / ITEM_BYTES
        if len(self.square) == n or n**2 > most:
            return False
        self.leave()
        self.square = promised_square(n)
        self.crew = make_crew(n, self.square)
        self.held = hold(self.held.part)
        return True

    def solve(self, problem: DualProblem, pace: Pace, begun: Begun) -> Ended:
        """From where somebody began; slopes are as exact as rows."""
        grad = begun.image[problem.row] + problem.linear
        everybody = np.arange(len(grad))
        work = gather_work(problem, everybody, begun.beta, grad, self.diagonal)
        leaps = Leaps(not problem.is_free_of_equalities, pace.is_stopped)
        leaps.effort = float(begun.n_moves * begun.n_members)
        return Ended(work.beta, work.grad, self._until_tol(work, leaps, pace))

    def _until_tol(self, work: Work, leaps: Leaps, pace: Pace) -> Status | None:
        tol, crew = pace.options.tol, self.crew
        is_second = pace.options.working_set is WorkingSet.SECOND_ORDER
        singly = None if leaps.is_bound else SINGLY
        least, n_vain = np.inf, 0
        while True:
            raise_if_stopped()
            most = LOOK_EVERY * max(int(crew.n[0]), FEWEST_MEMBERS)
            most = min(most, pace.max_iter - pace.n_iter)
            limits = Limits(tol, INNER_TOL * tol, most, is_second)
            made, violation = rounds_until(work, crew, self.held, None, singly, limits)
            pace.n_iter += made
            pace.note_violation(violation)
            if violation <= tol:
                return Status.CONVERGED
            n_vain = 0 if violation < least else n_vain + 1
            least = min(least, violation)
            if n_vain > PATIENCE or not (has_room(crew) or self._enlarge(pace)):
                return None
            crew = self.crew
            limit = pace.limit()
            if limit is not None:
                return limit
            leaps.effort += made * int(crew.n[0])
            free = leaps.who(work)
            if free is not None:
                K = np.empty((len(free), len(free)), dtype=np.float32)
                self.rows.fill(free, free, K)
                self.rows.add_rows(free, leaps.leap(work, free, K), work.grad)
