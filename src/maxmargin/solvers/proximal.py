r"""How does Newton's method solve a problem with corners? By a sequence of smooth ones.

Hinge losses and tubes have no second derivative where it matters. The method of
multipliers rounds their corners off around the present dual point, lets Newton's method
solve that to the end, moves the point to where its answer lies, and repeats: every
round is a proximal step in the dual, and with a softer pull the steps soon end at the
optimum. Only samples at a corner enter the matrix, which is what makes it cheap.
(Rockafellar 1976; Li, Sun & Toh 2018 for the semismooth Newton inside.)
"""

import numpy as np

from maxmargin.problems.linear import Certificate, LinearProblem, certify
from maxmargin.solvers.directions import Directions
from maxmargin.solvers.newton import Goal, minimise
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


class Multipliers:
    """The dual point and the pull towards it, round after round."""

    def __init__(
        self, problem: LinearProblem, directions: Directions, watch: Watch
    ) -> None:
        self.problem, self.directions, self.watch = problem, directions, watch

    def run(
        self, beta: FloatVector, w: FloatVector, tol: float, stiffness: float
    ) -> tuple[FloatVector, Certificate, Status]:
        """(beta, certificate, status) from this start."""
        problem, watch = self.problem, self.watch
        found = certify(problem, beta, w)
        best, n_stalled = (beta, found), 0
        while True:
            if found.meets(tol):
                return beta, found, Status.CONVERGED
            if n_stalled >= STALLED:
                return *best, Status.PRECISION_LIMIT
            before = watch.n_iter
            smooth = Smooth(problem, beta, stiffness)
            reach = CLOSER * max(found.violation, FINEST * tol)
            goal = Goal(CLOSER * tol, np.inf, reach * problem.unit, MOST_STEPS)
            end = minimise(smooth, self.directions, w, goal, watch)
            beta, w = end.t, end.w
            found = certify(problem, beta, w)
            watch.report(found.violation, found.primal, int(np.count_nonzero(beta)))
            if found.worst < best[1].worst:
                best, n_stalled = (beta, found), 0
            else:
                n_stalled += 1
            if end.status in (Status.MAX_ITER, Status.TIME_LIMIT, Status.STALLED):
                is_there = best[1].meets(tol)
                return *best, Status.CONVERGED if is_there else end.status
            if watch.n_iter - before <= EASY:
                stiffness = max(SOFTER * stiffness, SOFTEST)
