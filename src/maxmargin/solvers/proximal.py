r"""How does Newton's method solve a problem with corners? By a sequence of smooth ones.

Hinge losses and tubes have no second derivative where it matters. The method of
multipliers rounds their corners off around the present dual point, lets Newton's method
solve that to the end, moves the point to where its answer lies, and repeats: every
round is a proximal step in the dual, and with a softer pull the steps soon end at the
optimum. Only samples at a corner enter the matrix, which is what makes it cheap.
(Rockafellar 1976; Li, Sun & Toh 2018 for the semismooth Newton inside.)
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin.problems.linear import LinearProblem, certify
from maxmargin.solvers.directions import Directions
from maxmargin.solvers.newton import Goal, Iterate, minimise
from maxmargin.solvers.result import Status
from maxmargin.solvers.smooth import Smooth
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatVector

SOFTER = 0.2  # the pull of the next round, if this one was easy
EASY = 6  # Newton steps
SOFTEST = 1e-10
CLOSER = 0.1  # of the distance still to go: how exactly a round is solved
FINEST = 1e-2  # of tol: no round is solved more exactly than for this
MOST_STEPS = 200  # of a round: more say that the scales of features are to blame
STALLED = 8  # rounds without progress, after which rounding is to blame
LIMITS = (Status.MAX_ITER, Status.TIME_LIMIT, Status.STALLED)


class Rounds(NamedTuple):
    """How far the method of multipliers goes, and where it begins."""

    tol: float
    stiffness: float  # of the first round
    watch: Watch


def run_rounds(
    here: Iterate, solve: Callable[[Iterate, float], Iterate], rounds: Rounds
) -> Iterate:
    """The method of multipliers: the best iterate, and how it ended.

    `solve` makes one round from an iterate and a stiffness. PRECISION_LIMIT, as its
    status, asks for a stiffer pull from now on.
    """
    tol, stiffness, watch = rounds
    best, n_stalled, softest = here, 0, SOFTEST
    while not best.certificate.meets(tol):
        if n_stalled >= STALLED:
            return best._replace(status=Status.PRECISION_LIMIT)
        before = watch.n_iter
        here = solve(here, stiffness)
        n_stalled += 1
        if here.certificate.worst < best.certificate.worst:
            best, n_stalled = here, 0
        if here.status in LIMITS and not best.certificate.meets(tol):
            return best._replace(status=here.status)
        if here.status is Status.PRECISION_LIMIT:
            stiffness = softest = stiffness / SOFTER
        elif watch.n_iter - before <= EASY:
            stiffness = max(SOFTER * stiffness, softest)
    return best._replace(status=Status.CONVERGED)


def minimise_proximal(
    problem: LinearProblem,
    directions: Directions,
    start: tuple[FloatVector, FloatVector],
    rounds: Rounds,
) -> Iterate:
    """From a dual point and weights to the optimum, every round by Newton's method."""
    tol, _, watch = rounds

    def solve(before: Iterate, stiffness: float) -> Iterate:
        smooth = Smooth(problem, before.dual, stiffness)
        reach = CLOSER * max(before.certificate.violation, FINEST * tol)
        goal = Goal(CLOSER * tol, np.inf, reach * problem.unit, MOST_STEPS)
        end = minimise(smooth, directions, before.weight, goal, watch)
        n_active = int(np.count_nonzero(end.dual))
        watch.report(end.certificate.violation, end.certificate.primal, n_active)
        return end

    begin = Iterate(*start, certify(problem, *start))
    return run_rounds(begin, solve, rounds)
