r"""How is a Newton direction found? By one of three ways to solve the same system.

.. math:: (R + X^\top \Theta X)\, d = -g

With few columns, the matrix is formed. With many columns but few curved samples, the
same d comes from a matrix over those samples (Woodbury). With many of both, conjugate
gradients only multiply.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin._threads import raise_if_stopped
from maxmargin.problems.linear import LinearProblem
from maxmargin.solvers.running_square import RunningSquare
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

UNSETTLED = 0.2  # of the curved samples, changed by one step: rough will do
ROUGH_ROWS = 8  # samples per column in a rough matrix
DOMINANT = 64.0  # products per stored value: forming the matrix takes nearly all time
MOST_ROUGH = 4  # rough matrices in a row
LIGHTEST = 1e-14  # of the diagonal, added when a matrix is singular to rounding
MOST_SAMPLES = 3000  # curved ones, for a matrix over them: 70 MB, a quarter of a second
FLAT = 1e-14  # curvature along a direction, of its squared length, that is none
MOST_CG = 5000  # steps for one direction


class Directions(Protocol):
    """Solves (R + XᵀΘX) d = -g."""

    def solve(self, theta: FloatVector, gradient: FloatVector) -> FloatVector: ...


class Explicit:
    """The matrix formed and factored: for few columns.

    Far from the optimum every step changes which samples are curved, and a part of them
    stands well enough for all: the line search makes up for the rest. Once they settle,
    the matrix is formed, and then follows the few that change.
    """

    def __init__(self, problem: LinearProblem) -> None:
        self.design, self.penalty = problem.design, problem.penalty
        self.square = RunningSquare(problem.design)
        self.last = np.zeros(problem.design.n)  # theta met last
        self.n_rough = 0

    def solve(self, theta: FloatVector, gradient: FloatVector) -> FloatVector:
        """-(R + XᵀΘX)⁻¹ g."""
        matrix = self._matrix(theta)
        self.last = theta.copy()
        matrix[np.diag_indices_from(matrix)] += self.penalty
        return -factor_positive(matrix).solve(gradient)

    def _matrix(self, theta: FloatVector) -> FloatMatrix:
        n_curved = int(np.count_nonzero(theta))
        if not self.square.is_near(theta) and self._is_rough_enough(theta, n_curved):
            self.n_rough += 1
            return self._rough_square(theta, n_curved)
        self.n_rough = 0
        return self.square.at(theta).copy()

    def _is_rough_enough(self, theta: FloatVector, n_curved: int) -> bool:
        design = self.design
        if n_curved < 2 * ROUGH_ROWS * design.n_columns:
            return False
        if design.square_cost < DOMINANT * design.n_values:
            return False
        n_moved = int(np.count_nonzero(theta != self.last))
        is_moving = self.square.matrix is not None and n_moved > UNSETTLED * n_curved
        return is_moving and self.n_rough < MOST_ROUGH

    def _rough_square(self, theta: FloatVector, n_curved: int) -> FloatMatrix:
        """XᵀΘX as every so many-th curved sample sees it."""
        at = np.flatnonzero(theta)[:: n_curved // (ROUGH_ROWS * self.design.n_columns)]
        some = np.zeros(len(theta))
        some[at] = theta[at] * (float(theta.sum()) / float(theta[at].sum()))
        return self.design.square(some)


class Factor(NamedTuple):
    """A Cholesky factor of a matrix, and what scaled its diagonal to ones."""

    scale: FloatVector
    cholesky: Any

    def solve(self, target: FloatVector) -> FloatVector:
        """The inverse of the matrix times the target."""
        inner = cho_solve(self.cholesky, self.scale * target, check_finite=False)
        solution: FloatVector = self.scale * inner
        return solution


def factor_positive(matrix: FloatMatrix) -> Factor:
    """Factor a matrix, in place, with a whiff of ridge where rounding needs one."""
    diagonal = matrix.diagonal().copy()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    matrix *= scale
    matrix *= scale[:, None]
    ridge = 0.0
    while True:
        matrix[np.diag_indices_from(matrix)] = 1.0 + ridge
        try:
            return Factor(scale, cho_factor(matrix, lower=True, check_finite=False))
        except LinAlgError:
            ridge = max(10.0 * ridge, LIGHTEST)


class Implicit:
    """Conjugate gradients with the diagonal as preconditioner: for many columns."""

    def __init__(self, problem: LinearProblem) -> None:
        self.design, self.penalty = problem.design, problem.penalty
        self.first = 0.0

    def solve(self, theta: FloatVector, gradient: FloatVector) -> FloatVector:
        """About -(R + XᵀΘX)⁻¹ g, the nearer the smaller g is."""
        diagonal = self.penalty + self.design.squares_times(theta)
        inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
        residual = -gradient
        size = float(residual @ (inverse * residual))
        self.first = self.first or size
        enough = size * min(0.01, np.sqrt(size / self.first))
        d = np.zeros_like(gradient)
        step = inverse * residual
        for _ in range(MOST_CG):
            raise_if_stopped()
            image = self.penalty * step + self.design.curved_times(theta, step)
            bend = float(step @ image)
            if bend <= FLAT * float(step @ step):
                return d if d.any() else step  # a free intercept that nothing bends
            length = size / bend
            d += length * step
            residual -= length * image
            scaled = inverse * residual
            last, size = size, float(residual @ scaled)
            if size <= enough:
                break
            step = scaled + (size / last) * step
        return d


class BySamples:
    """A matrix over the curved samples while these are few, CG while they are not."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem, self.design = problem, problem.design
        self.otherwise = Implicit(problem)
        self.known: IntVector = np.empty(0, dtype=np.intp)
        self.gram: FloatMatrix = np.empty((0, 0))

    def solve(self, theta: FloatVector, gradient: FloatVector) -> FloatVector:
        """-(R + XᵀΘX)⁻¹ g = -g - Xᵀv, with v from (Θ⁻¹ + XXᵀ) v = -X g.

        A free intercept is one more unknown: its column is taken out of X, and its own
        equation borders the system.
        """
        at = np.flatnonzero(theta)
        if not 0 < len(at) <= MOST_SAMPLES:
            return self.otherwise.solve(theta, gradient)
        matrix = self._gram_of(at)
        matrix[np.diag_indices_from(matrix)] += 1.0 / theta[at]
        factor = factor_positive(matrix)
        own = self.problem.penalty * gradient
        v = -factor.solve(self.design.times(own)[at])
        pull = 0.0
        if self.problem.is_intercept_free:
            border = factor.solve(np.full(len(at), self.design.bias))
            miss = -float(gradient[-1]) - self.design.bias * float(v.sum())
            pull = miss / (self.design.bias * float(border.sum()))
            v += pull * border
        all_v = np.zeros(self.design.n)
        all_v[at] = v
        d = -own - self.design.transposed_times(all_v)
        if self.problem.is_intercept_free:
            d[-1] = pull
        return d

    def _gram_of(self, at: IntVector) -> FloatMatrix:
        """X Xᵀ between these samples; rows met before are not computed again."""
        new = np.setdiff1d(at, self.known)
        if len(self.known) + len(new) > 2 * MOST_SAMPLES:
            self.known, new = np.empty(0, dtype=np.intp), at
            self.gram = np.empty((0, 0))
        if len(new):
            self._learn(new)
        place = np.empty(self.design.n, dtype=np.intp)
        place[self.known] = np.arange(len(self.known))
        return self.gram[np.ix_(place[at], place[at])]

    def _learn(self, new: IntVector) -> None:
        X, n_known = self.design.X, len(self.known)
        self.known = np.concatenate((self.known, new))
        product = X[new] @ X[self.known].T
        block = product.toarray() if self.design.is_sparse else np.asarray(product)
        if not self.problem.is_intercept_free:
            block = block + self.design.bias**2
        gram = np.empty((len(self.known), len(self.known)))
        gram[:n_known, :n_known] = self.gram
        gram[n_known:] = block
        gram[:n_known, n_known:] = block[:, :n_known].T
        self.gram = gram
