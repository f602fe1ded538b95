r"""What do linear machines minimise? One sum of losses, and one dual for all of them.

.. math:: \min_{w,b} \tfrac12 \|w\|^2 + \sum_i C_i \ell_i(\langle w, x_i\rangle + b)

With signed dual variables, :math:`w = \sum_i \beta_i x_i`, every loss but the logistic
is

.. math:: \min_\beta \tfrac12 \|X^\top\beta\|^2
   + \sum_i q_i \beta_i + k_i |\beta_i| + \tfrac12 r_i \beta_i^2
   \quad l_i \le \beta_i \le u_i

Hinge losses have :math:`q = -y`; their squares trade the box for the ridge
:math:`r = 1/2C`; regression adds the kink :math:`k = \epsilon`; the one-class machine
has nothing but its box. An intercept is the weight of a constant feature. Left
unpenalised, it fixes the sum of :math:`\beta`.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.data.design import Design
from maxmargin.typing import FloatVector


class Loss(IntEnum):
    """What a sample costs, given its decision value z."""

    HINGE = 0  # C max(0, 1 - y z)
    SQUARED_HINGE = 1
    EPSILON = 2  # C max(0, |y - z| - epsilon)
    SQUARED_EPSILON = 3
    ONE_CLASS = 4  # C max(0, -z), with an intercept that is paid for
    LOGISTIC = 5  # C log(1 + exp(-y z))

    @property
    def is_smooth(self) -> bool:
        return self in (Loss.SQUARED_HINGE, Loss.SQUARED_EPSILON, Loss.LOGISTIC)

    @property
    def is_regression(self) -> bool:
        return self in (Loss.EPSILON, Loss.SQUARED_EPSILON)


HINGE, SQUARED_HINGE, EPSILON, SQUARED_EPSILON, ONE_CLASS, LOGISTIC = map(int, Loss)


class LinearProblem(NamedTuple):
    """Samples, what they should become, and what it costs if they do not."""

    design: Design
    target: FloatVector  # +1 or -1, or a number; ones for ONE_CLASS
    cost: FloatVector  # C_i > 0, finite
    loss: Loss
    epsilon: float = 0.0
    is_intercept_free: bool = False  # not penalised: the sum of beta is `total`
    total: float = 0.0

    @property
    def unit(self) -> float:
        """What violations are measured in: the margin, or the size of the targets.

        The one-class machine has neither: its own unit is the decision value of a
        typical sample in its own direction.
        """
        size = 1.0
        if self.loss.is_regression:
            size = float(np.abs(self.target).mean())
        elif self.loss is Loss.ONE_CLASS:
            own = self.design.squared_norms - self.design.bias**2
            size = self.total * float(own.mean())
        return size if size > 0.0 else 1.0

    @property
    def floor(self) -> float:
        """What rounding leaves of an objective whose parts cancel."""
        mass = self.total if self.loss is Loss.ONE_CLASS else float(self.cost.sum())
        return max(CANCELLED * mass * self.unit, TINY)

    @property
    def pull(self) -> FloatVector:
        """The linear part of the objective: what a one-class intercept is paid."""
        pull = np.zeros(self.design.n_columns)
        if self.is_intercept_free:
            pull[-1] = self.design.bias * self.total
        return pull

    @property
    def penalty(self) -> FloatVector:
        """The diagonal of R in ½ wᵀRw: ones, but zero for a free intercept."""
        penalty = np.ones(self.design.n_columns)
        if self.is_intercept_free:
            penalty[-1] = 0.0
        return penalty


class Certificate(NamedTuple):
    """What a machine and a dual point prove about each other, in float64."""

    weight: FloatVector  # w, with the intercept's weight at the end
    primal: float
    gap: float  # primal minus dual objective
    violation: float  # of the KKT conditions, in units of the problem
    floor: float  # an objective that is zero but for rounding

    def meets(self, tol: float) -> bool:
        """Whether violation and relative gap are both at most tol."""
        return self.worst <= tol

    @property
    def worst(self) -> float:
        """The larger of violation and relative gap."""
        return max(self.violation, self.gap / max(abs(self.primal), self.floor))


TINY = float(np.finfo(np.float64).tiny)
CANCELLED = 1e-11  # of the sum of all costs
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


def certify(
    problem: LinearProblem, beta: FloatVector, weight: FloatVector | None = None
) -> Certificate:
    """Objectives and KKT violation of a machine and a dual point.

    Without `weight`, the machine is Xᵀbeta. With it, how far the two differ counts as
    a violation too.
    """
    design, penalty = problem.design, problem.penalty
    image = design.transposed_times(beta)
    apart, miss = 0.0, 0.0
    if weight is None:
        weight = image
    else:
        rest = image - problem.pull - penalty * weight
        apart = distance_apart(problem, rest, weight, beta)
        miss = float(np.abs((1.0 - penalty) * rest * weight).sum())
    z = design.times(weight)
    primal = primal_objective(problem, weight, z)
    dual = 0.5 * float(penalty @ image**2) + dual_loss(problem, beta) + miss
    violation = max(kkt_violation(problem, beta, z) / problem.unit, apart)
    gap = max(primal + dual, 0.0)
    return Certificate(weight, primal, gap, violation, problem.floor)


def distance_apart(
    problem: LinearProblem, rest: FloatVector, weight: FloatVector, beta: FloatVector
) -> float:
    """|w - Xᵀbeta| relative to the weights, less what rounding of that sum may be.

    A free intercept has no weight of its own to compare with: what misses in the sum of
    beta is relative to the sum of its sizes.
    """
    penalty = problem.penalty
    sizes = np.abs(beta)
    floor = ROUNDING * float(sizes @ np.sqrt(problem.design.squared_norms))
    own = penalty * rest
    size = float(np.linalg.norm(weight)) + float(np.linalg.norm(own))
    apart = max(float(np.linalg.norm(own)) - floor, 0.0) / max(size, TINY)
    if problem.is_intercept_free:
        mass = abs(problem.design.bias) * (float(sizes.sum()) + problem.total)
        apart = max(apart, abs(float(rest[-1])) / max(mass, TINY))
    return apart


def primal_objective(
    problem: LinearProblem, weight: FloatVector, z: FloatVector
) -> float:
    """½ wᵀRw + sum of losses, with z = X w known."""
    value = 0.5 * float(problem.penalty @ weight**2)
    value += _loss_sum(int(problem.loss), problem.epsilon, *_samples(problem), z)
    return value + float(problem.pull @ weight)


def dual_loss(problem: LinearProblem, beta: FloatVector) -> float:
    """The part of the dual objective that is a sum over samples."""
    return _dual_sum(int(problem.loss), problem.epsilon, *_samples(problem), beta)


def kkt_violation(problem: LinearProblem, beta: FloatVector, z: FloatVector) -> float:
    """The largest slope that a feasible move of one variable could still gain."""
    return _violation(int(problem.loss), problem.epsilon, *_samples(problem), beta, z)


def _samples(problem: LinearProblem) -> tuple[FloatVector, FloatVector]:
    return problem.target, problem.cost


Terms = tuple[float, float, float, float, float]


@jit
def terms(loss: int, epsilon: float, y: float, c: float) -> Terms:
    """(linear, kink, lower, upper, ridge) of one sample's dual variable."""
    if loss == HINGE:
        return -y, 0.0, min(0.0, y * c), max(0.0, y * c), 0.0
    if loss == SQUARED_HINGE:
        lower, upper = (0.0, np.inf) if y > 0.0 else (-np.inf, 0.0)
        return -y, 0.0, lower, upper, 0.5 / c
    if loss == EPSILON:
        return -y, epsilon, -c, c, 0.0
    if loss == SQUARED_EPSILON:
        return -y, epsilon, -np.inf, np.inf, 0.5 / c
    return 0.0, 0.0, 0.0, c, 0.0


@jit
def softplus(x: float) -> float:
    """log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@jit
def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-abs(x))
    return 1.0 / (1.0 + small) if x > 0.0 else small / (1.0 + small)


@jit
def _loss_sum(
    loss: int, epsilon: float, target: FloatVector, cost: FloatVector, z: FloatVector
) -> float:
    total = 0.0
    for i in range(len(z)):
        if loss == LOGISTIC:
            total += cost[i] * softplus(-target[i] * z[i])
            continue
        if loss in (HINGE, SQUARED_HINGE):
            miss = 1.0 - target[i] * z[i]
        elif loss == ONE_CLASS:
            miss = -z[i]
        else:
            miss = abs(target[i] - z[i]) - epsilon
        miss = max(miss, 0.0)
        if loss in (SQUARED_HINGE, SQUARED_EPSILON):
            miss *= miss
        total += cost[i] * miss
    return total


@jit
def _dual_sum(
    loss: int, epsilon: float, target: FloatVector, cost: FloatVector, beta: FloatVector
) -> float:
    total = 0.0
    for i in range(len(beta)):
        b, c = beta[i], cost[i]
        if loss == LOGISTIC:
            share = target[i] * b / c
            if 0.0 < share < 1.0:
                rest = 1.0 - share
                total += c * (share * np.log(share) + rest * np.log(rest))
            continue
        linear, kink, _, _, ridge = terms(loss, epsilon, target[i], c)
        total += linear * b + kink * abs(b) + 0.5 * ridge * b * b
    return total


@jit
def _violation(
    loss: int,
    epsilon: float,
    target: FloatVector,
    cost: FloatVector,
    beta: FloatVector,
    z: FloatVector,
) -> float:
    worst = 0.0
    for i in range(len(beta)):
        b, y = beta[i], target[i]
        if loss == LOGISTIC:
            miss = y * b / cost[i] - sigmoid(-y * z[i])
            worst = max(worst, 4.0 * abs(miss))  # the sigmoid's slope is at most ¼
            continue
        linear, kink, lower, upper, ridge = terms(loss, epsilon, y, cost[i])
        slope = linear + z[i] + ridge * b
        if b < upper:
            worst = max(worst, -(slope + (kink if b >= 0.0 else -kink)))
        if b > lower:
            worst = max(worst, slope + (kink if b > 0.0 else -kink))
    return worst
