"""How is one of many problems on the same K solved? From where its neighbour ended.

With all of K in memory there is nothing to compute but moves. The neighbour's solution,
scaled to the new box, comes with its slopes, so that a start costs nothing either.
"""

from dataclasses import dataclass

import numpy as np

from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.memory import pass_on
from maxmargin.problems.dual import DualProblem, group_levels
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.gradient import weight_of
from maxmargin.solvers.grow import Growth
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Status
from maxmargin.typing import FloatVector

WHOLE = 1500  # variables that all move at once; of more, a growing set does


@dataclass(frozen=True)
class HeldSolution:
    """A point and the evidence."""

    beta: FloatVector
    image: FloatVector | None  # K times it, float64; None: K was not in memory
    level: FloatVector
    violation: float
    status: Status
    n_iter: int


def solve_held(
    problem: DualProblem,
    gram: HeldGram,
    options: Options,
    image: FloatVector | None = None,
) -> HeldSolution:
    """Solve a problem from its start; `image`: K times that, a number for every row."""
    pace = Pace(options, len(problem.linear))
    growth = _HeldGrowth(problem, gram, options, pace, image)
    try:
        reached = growth.run()
    finally:
        growth.leave()
    if reached.status is not None:
        beta, grad = reached.beta, reached.grad
        violation, status, n_iter = reached.violation, reached.status, pace.n_iter
    else:
        start = problem._replace(start=reached.beta)
        found = solve_smo(start, gram, options, pace)
        beta, violation, status = found.beta, found.violation, found.status
        weight = weight_of(problem, beta, gram.n)
        image = gram.image(weight, np.flatnonzero(weight))
        grad = image[problem.row] + problem.linear
        n_iter = found.n_iter
    level = group_levels(problem, beta, grad)
    image = np.zeros(gram.n)
    image[problem.row] = grad - problem.linear
    return HeldSolution(beta, image, level, violation, status, n_iter)


class _HeldGrowth(Growth):
    """Rounds that find their slopes at the start, and K where it is."""

    def __init__(
        self,
        problem: DualProblem,
        gram: HeldGram,
        options: Options,
        pace: Pace,
        image: FloatVector | None,
    ) -> None:
        self.held = gram
        super().__init__(problem, gram, options, pace, image)
        self.room = self.square.values
        if gram.n <= WHOLE and problem.n_groups <= 1:  # else members are put in order
            self.is_whole = True
            self.square.values, self.square.most = gram.single().K, gram.n

    def _start(self, image: FloatVector | None) -> None:
        weight = weight_of(self.problem, self.beta, self.held.n)
        if image is None:
            image = self.held.image(weight, np.flatnonzero(weight))
        self.image = image.copy()
        self.exact.weight, self.exact.image = weight, image.copy()
        self.exact_beta = self.beta.copy()

    def _is_cheap(self) -> bool:
        return True

    def leave(self) -> None:
        """Somebody else may have the working set's memory."""
        pass_on(self.room)
