r"""Where is a quadratic model with an L1 penalty lowest, once its matrix is at hand?

.. math:: \min_x \; \langle g, x - w\rangle
   + \tfrac12 (x - w)^\top H (x - w) + \sum_j p_j |x_j|,
   \quad H = X^\top \Theta X

Coordinate descent finds the signs: a move costs one row of H. A Newton step on the
support is exact once the signs are right; on its way it leaves every weight that would
change its sign at 0, for as long as that goes down.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin._threads import raise_if_stopped
from maxmargin.data.row_verbs import add_multiple
from maxmargin.solvers.directions import factor_positive
from maxmargin.solvers.watch import Watch
from maxmargin.typing import BoolVector, FloatMatrix, FloatVector, IntVector

FEWEST_SWEEPS, MOST_SWEEPS = 10, 50  # before a Newton step
FEWEST_STEPS = 4  # Newton steps, whatever they cost: they end finitely, sweeps do not
MOST_STEPS = 20  # Newton steps without a sweep
AXPY = 4.0  # what a product costs outside BLAS, in products inside it
FARTHEST = 1e18  # in Newton steps: a weight that far from 0 does not come there


class Place(NamedTuple):
    """Where the model stands: x and grad are changed in place."""

    x: FloatVector
    grad: FloatVector  # slope of the smooth part, at x
    penalty: FloatVector

    @property
    def violation(self) -> float:
        """The largest of all features."""
        return float(violations(*self).max(initial=0.0))

    @property
    def is_bent(self) -> BoolVector:
        """Features that a Newton step moves: those without a kink at x."""
        return (self.x != 0.0) | (self.penalty == 0.0)


def violations(x: FloatVector, grad: FloatVector, penalty: FloatVector) -> FloatVector:
    """How far 0 is from the subgradient of each feature."""
    at_zero = np.maximum(np.abs(grad) - penalty, 0.0)
    return np.where(x == 0.0, at_zero, np.abs(grad + penalty * np.sign(x)))


@jit
def violation_of(x: float, slope: float, penalty: float) -> float:
    """The same for one feature."""
    if x > 0.0:
        return abs(slope + penalty)
    if x < 0.0:
        return abs(slope - penalty)
    return max(abs(slope) - penalty, 0.0)


@jit
def lowest(x: float, slope: float, curve: float, penalty: float) -> float:
    """Where slope (y - x) + ½ curve (y - x)² + penalty |y| is least."""
    if curve <= 0.0:  # no curved sample has the feature: its slope is 0
        return 0.0 if penalty > 0.0 else x
    if slope + penalty < curve * x:
        return x - (slope + penalty) / curve
    if slope - penalty > curve * x:
        return x - (slope - penalty) / curve
    return 0.0


def minimise_square(
    square: FloatMatrix,
    place: Place,
    goal: float,
    budget: float,
    rng: np.random.Generator,
    watch: Watch,
) -> bool:
    """Sweeps and Newton steps until no violation is above `goal`: then True.

    `budget` limits the work beyond a few steps, in products by BLAS.
    """
    spent, n_steps = 0.0, 0
    while True:
        spent += _sweep_often(square, place, goal, rng)
        if place.violation <= goal:
            return True
        for _ in range(MOST_STEPS):
            raise_if_stopped()
            is_spent = spent >= budget and n_steps >= FEWEST_STEPS
            if is_spent or watch.is_late():
                return False
            support = np.flatnonzero(place.is_bent)
            spent += cost_of_step(len(support))
            n_steps += 1
            if len(support) == 0 or step_on_support(square, place, support) == 0:
                break


def cost_of_step(n_support: int) -> float:
    """Products in a Cholesky factorisation."""
    return n_support**3 / 3.0


def _sweep_often(
    square: FloatMatrix, place: Place, goal: float, rng: np.random.Generator
) -> float:
    """As many sweeps as cost a Newton step; returns what they did cost."""
    n, n_support = len(place.x), max(int(np.count_nonzero(place.x)), 1)
    worth = cost_of_step(n_support) / (AXPY * n * n_support)
    n_sweeps = int(np.clip(worth, FEWEST_SWEEPS, MOST_SWEEPS))
    orders = np.tile(np.arange(n), (n_sweeps, 1))
    rng.permuted(orders, axis=1, out=orders)
    return AXPY * n * _sweep(square, place, orders, goal)


@jit
def _sweep(square: FloatMatrix, place: Place, orders: IntVector, goal: float) -> int:
    """Coordinate descent, one row of `orders` after the other; returns its moves."""
    x, grad, penalty = place.x, place.grad, place.penalty
    n_moves = 0
    for s in range(len(orders)):
        worst = 0.0
        for k in range(orders.shape[1]):
            j = orders[s, k]
            worst = max(worst, violation_of(x[j], grad[j], penalty[j]))
            new = lowest(x[j], grad[j], square[j, j], penalty[j])
            step = new - x[j]
            if step != 0.0:
                x[j] = new
                add_multiple(square[j], step, grad)
                n_moves += 1
        if worst <= goal:
            break
    return n_moves


def step_on_support(square: FloatMatrix, place: Place, support: IntVector) -> int:
    """A Newton step with the signs held; returns how many weights became 0."""
    x, grad, penalty = (values[support] for values in place)
    factor = factor_positive(square[np.ix_(support, support)])
    d = -factor.solve(grad + penalty * np.sign(x))
    falls = (np.sign(d) == -np.sign(x)) & (FARTHEST * np.abs(d) > np.abs(x))
    ends = np.flatnonzero(falls & (penalty > 0.0))
    ends = ends[np.argsort(-x[ends] / d[ends], kind="stable")]
    direction = np.zeros(len(place.x))
    direction[support] = d
    return int(_walk(square, place, support[ends], direction, d @ square[support]))


@jit
def _walk(
    square: FloatMatrix,
    place: Place,
    ends: IntVector,
    d: FloatVector,
    image: FloatVector,
) -> int:
    """Along d while it goes down, with image = H d; a weight that meets 0 stays there.

    `ends` are those weights, in the order in which they do.
    """
    x, grad, penalty = place.x, place.grad, place.penalty
    slope, curve = 0.0, 0.0
    for j in range(len(x)):
        slope += d[j] * (grad[j] + penalty[j] * np.sign(x[j]))
        curve += d[j] * image[j]
    for k in range(len(ends) + 1):
        j = ends[k] if k < len(ends) else -1
        reach = -x[j] / d[j] if j >= 0 else np.inf
        bottom = -slope / curve if curve > 0.0 else np.inf
        step = min(bottom, reach)
        if slope >= 0.0 or step == np.inf:
            return k
        add_multiple(d, step, x)
        add_multiple(image, step, grad)
        if bottom <= reach:
            return k
        x[j] = 0.0
        slope += step * curve - d[j] * (grad[j] - penalty[j] * np.sign(d[j]))
        curve += d[j] * (d[j] * square[j, j] - 2.0 * image[j])
        add_multiple(square[j], -d[j], image)
        d[j] = 0.0
    return len(ends)
