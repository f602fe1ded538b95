r"""How does an interior point reach the corners? Along the middle of the dual box.

.. math:: q + z - s + t = 0, \quad s\,(\beta - l) = \mu, \quad t\,(u - \beta) = \mu

These conditions are solved by Newton's method while mu goes to zero, a step towards the
solution and its second-order correction sharing one matrix. All but w is eliminated,
which leaves :math:`R + X^\top \Theta X`, of the size of the features. The number of
steps hardly depends on how the features are scaled. (Mehrotra 1992; Woodsend & Gondzio
2009 for the elimination.)
"""

from collections.abc import Callable

import numpy as np

from maxmargin.problems.linear import TINY, LinearProblem, Loss
from maxmargin.solvers.directions import factor_positive
from maxmargin.solvers.interior_steps import (
    Inside,
    advance,
    begin,
    correct,
    measure,
    predict,
)
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatVector

TO_THE_WALL = 0.995  # of the way to the nearest wall
MOST_STEPS = 100
SHORT = 1e-8  # a step so short that rounding has taken over


def follow_path(
    problem: LinearProblem, goal: float, watch: Watch
) -> tuple[FloatVector, FloatVector]:
    """(beta, w) with a relative gap of about `goal`, strictly inside the box."""
    path = _Path(problem)
    for _ in range(MOST_STEPS):
        gap, primal = path.look()
        watch.report(gap, primal, problem.design.n)
        if gap <= goal or watch.limit() is not None or path.step() < SHORT:
            break
        watch.n_iter += 1
    return path.inside.beta.sum(axis=0), path.w


class _Path:
    """Where the interior point is."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem, self.design = problem, problem.design
        self.kind = int(problem.loss), problem.epsilon
        has_tube = problem.loss is Loss.EPSILON and problem.epsilon > 0.0
        n, n_sides = self.design.n, 2 if has_tube else 1
        state = [np.empty((n_sides, n)) for _ in range(3)]
        self.inside = Inside(problem.target, problem.cost, *state)
        self.theta, self.force = np.empty(n), np.empty(n)
        begin(self.kind, self.inside, self.force)
        self.w = np.zeros(self.design.n_columns)  # Xᵀbeta would be far too long
        self.z = np.zeros(n)
        self.products = 0.0

    def look(self) -> tuple[float, float]:
        """(relative gap, primal objective) here."""
        problem, w = self.problem, self.w
        losses, gap, self.products = measure(
            self.kind, self.inside, self.z, self.theta, self.force
        )
        primal = 0.5 * float(problem.penalty @ w**2) + losses + float(problem.pull @ w)
        return max(abs(gap), self.products) / max(abs(primal), TINY), primal

    def step(self) -> float:
        """One predictor-corrector step; returns its length."""
        kind, inside, z = self.kind, self.inside, self.z
        direction = self._direction()
        affine_u = self.design.times(direction())
        room, _ = predict(kind, inside, z, affine_u, 0.0)
        _, left = predict(kind, inside, z, affine_u, min(1.0, room))
        centre = (left / self.products) ** 3 * self.products / (2 * inside.beta.size)
        correct(kind, inside, z, affine_u, centre, self.force)
        d = direction()
        moves = affine_u, self.design.times(d)
        room = advance(kind, inside, z, moves, centre, 0.0)
        length = min(1.0, TO_THE_WALL * room)
        advance(kind, inside, z, moves, centre, length)
        self.w += length * d
        self.z = self.design.times(self.w)
        return length

    def _direction(self) -> Callable[[], FloatVector]:
        """Solves for the weights' move that the present force calls for."""
        penalty = self.problem.penalty
        matrix = self.design.square(self.theta)
        matrix[np.diag_indices_from(matrix)] += penalty
        factor = factor_positive(matrix)
        image = self.design.transposed_times(self.inside.beta.sum(axis=0))
        rest = image - self.problem.pull - penalty * self.w

        def solve() -> FloatVector:
            return factor.solve(self.design.transposed_times(self.force) + rest)

        return solve
