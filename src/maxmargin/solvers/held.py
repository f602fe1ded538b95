"""How is one of many problems on the same K solved? From where its neighbour ended.

With all of K in memory there is nothing to compute but moves. The neighbour's solution,
scaled to the new box, comes with its slopes, so that a start costs nothing either. And
since K is in float64, so are all slopes: no certificate needs a sum of its own. Members
of the working set meet in float32; what that leaves undone, the next round does.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.held import HeldGram, take_block
from maxmargin.kernels.memory import MOST_SPARE, pass_on, promised_square
from maxmargin.kernels.source import no_source
from maxmargin.kernels.sums import add_rows
from maxmargin.problems.dual import DualProblem, group_levels, kkt_violation
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.free_set import Leaps
from maxmargin.solvers.gradient import check_finite
from maxmargin.solvers.grow import FEWEST_MEMBERS, INNER_TOL, LOOK_EVERY, grow
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Status, WorkingSet
from maxmargin.solvers.rounds import has_room, make_crew, rounds_until, values_in
from maxmargin.solvers.work import Work, gather_work
from maxmargin.typing import FloatVector

MOST_MEMBERS = int(MOST_SPARE**0.5)  # their square is memory that is passed on
PATIENCE = 50  # calls without progress: then float32 is not enough


class HeldSolution(NamedTuple):
    """A point, K times it, and the evidence."""

    beta: FloatVector
    image: FloatVector  # K @ beta in float64: the decision values, but for the level
    level: FloatVector
    violation: float
    status: Status
    n_iter: int


class _Reached(NamedTuple):
    """Where a solver ended; without a status, somebody else must go on."""

    beta: FloatVector
    grad: FloatVector
    violation: float
    status: Status | None


def solve_held(
    problem: DualProblem,
    gram: HeldGram,
    options: Options,
    image: FloatVector | None = None,
) -> HeldSolution:
    """Solve a problem with a variable a row from its start; `image`: K @ start."""
    pace = Pace(options, len(problem.linear))
    if image is None:
        image = gram.image(problem.start, np.flatnonzero(problem.start))
    reached = _solve_in_rounds(problem, gram, pace, image)
    if reached.status is None:
        start = problem._replace(start=reached.beta)
        image = reached.grad - problem.linear
        reached = _solve_otherwise(start, gram, options, pace, image)
    beta, grad, violation, status = reached
    assert status is not None, "the last solver has to say how it ended"
    level = group_levels(problem, beta, grad)
    image = grad - problem.linear
    return HeldSolution(beta, image, level, violation, status, pace.n_iter)


def _solve_otherwise(
    problem: DualProblem,
    gram: HeldGram,
    options: Options,
    pace: Pace,
    image: FloatVector,
) -> _Reached:
    """By a larger working set, or on all variables in float64."""
    grown = grow(problem, gram, options, pace, image)
    if grown.status is not None:
        return _Reached(grown.beta, grown.grad, grown.violation, grown.status)
    start = problem._replace(start=grown.beta)
    found = solve_smo(start, gram, options, pace)
    grad = gram.image(found.beta, np.flatnonzero(found.beta)) + problem.linear
    return _Reached(found.beta, grad, found.violation, found.status)


def _solve_in_rounds(
    problem: DualProblem, gram: HeldGram, pace: Pace, image: FloatVector
) -> _Reached:
    """Rounds in compiled code; not for two groups, nor for too many free variables."""
    n, grad = len(problem.linear), image + problem.linear
    if problem.n_groups > 1:
        return _Reached(problem.start, grad, np.inf, None)
    check_finite(grad)
    everybody = np.arange(n)
    work = gather_work(problem, everybody, problem.start, grad, gram.diagonal())
    square = promised_square(min(n, MOST_MEMBERS))
    try:
        violation, status = _make_rounds(problem, work, gram, pace, square)
    finally:
        pass_on(square)
    return _Reached(work.beta, work.grad, violation, status)


def _make_rounds(
    problem: DualProblem, work: Work, gram: HeldGram, pace: Pace, square: FloatVector
) -> tuple[float, Status | None]:
    options, n = pace.options, len(work.beta)
    tol, is_second = options.tol, options.working_set is WorkingSet.SECOND_ORDER
    leaps = Leaps(not problem.is_free_of_equalities, pace.is_stopped)
    crew, values = make_crew(n, square), values_in(gram.K)
    least, n_vain = np.inf, 0
    while True:
        raise_if_stopped()
        most = LOOK_EVERY * max(int(crew.n[0]), FEWEST_MEMBERS)
        most = min(most, pace.max_iter - pace.n_iter)
        how = tol, INNER_TOL * tol, most, is_second, leaps.is_bound
        made, violation = rounds_until(work, crew, values, no_source(), how)
        pace.n_iter += made
        if violation <= tol:
            return kkt_violation(problem, work.beta, work.grad), Status.CONVERGED
        n_vain = 0 if violation < least else n_vain + 1
        least = min(least, violation)
        if n_vain > PATIENCE or not has_room(crew):
            return violation, None
        limit = pace.limit()
        if limit is not None:
            return kkt_violation(problem, work.beta, work.grad), limit
        leaps.effort += made * int(crew.n[0])
        free = leaps.who(work)
        if free is not None:
            K = np.empty((len(free), len(free)), dtype=np.float32)
            take_block(gram.K, free, free, K)
            change = leaps.leap(work, free, K)
            add_rows(gram.K, free, change, (0, n), work.grad)
