r"""What is minimised? One quadratic program over signed dual variables.

.. math:: \min_\beta \tfrac12 \beta^\top K \beta + q^\top \beta + k^\top |\beta|
   \quad l \le \beta \le u, \quad \sum_{i \in g} \beta_i = s_g \;\forall g

The box carries the label, the group carries the equality, and the kink carries the
tube of regression, so that no solver ever asks which machine it is solving.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._jit import jit
from maxmargin.typing import BoolVector, FloatMatrix, FloatVector, IntVector

NO_GROUP = -1  # a variable that no equality binds: machines without intercept
DUST = 1e-12  # of its bound: a variable no further away is there up to rounding
SAME_SUM = 1e-13  # relative: sums no further apart are equal up to rounding
SUM_ROUNDING = 1e-10  # of sum |beta|: what a million additions may leave of a zero
# What is known of a group, by the first index of `of_group`: extreme slopes, the sum of
# the slopes of free variables and their number, what the sum is off, sum |beta|, level.
LOWEST, HIGHEST, TOTAL, N_FREE, RESIDUAL, SIZE, LEVEL = range(7)
N_MEASURES = 7
BISECTIONS = 200  # halvings that bring a shift below the spacing of float64


class DualProblem(NamedTuple):
    """min ½ βᵀKβ + linearᵀβ + kinkᵀ|β| over lower ≤ β ≤ upper, Σβ fixed per group."""

    linear: FloatVector
    kink: FloatVector  # epsilon for the regression tube, 0 elsewhere
    lower: FloatVector
    upper: FloatVector
    group: IntVector  # 0, 1, ... or NO_GROUP for all
    row: IntVector  # the Gram row each variable stands for
    start: FloatVector  # feasible; its group sums are the constants

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    @property
    def is_free_of_equalities(self) -> bool:
        return self.n_groups == 0

    def starting_at(self, beta: FloatVector) -> "DualProblem":
        """The same problem from another point; its group sums stay what they are."""
        return self._replace(start=restored(self, beta))

    def reordered(self, order: IntVector) -> "DualProblem":
        """The same problem with its variables in another order."""
        parts: list[Any] = [part[order] for part in self]
        return DualProblem(*parts)


def slopes(
    problem: DualProblem, beta: FloatVector, grad: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """(right, left) derivatives; infinite where a variable cannot go that way.

    At beta = 0 the kink makes them differ: right is grad + kink, left grad - kink.
    """
    right = grad + np.where(beta >= 0, problem.kink, -problem.kink)
    left = grad + np.where(beta > 0, problem.kink, -problem.kink)
    right[beta >= problem.upper] = np.inf
    left[beta <= problem.lower] = -np.inf
    return right, left


def kkt_violation(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> float:
    """LIBSVM's stopping measure: the largest slope any feasible move could still gain.

    With equalities, max over {β > lower} of the left derivative minus min over
    {β < upper} of the right one, in the worst group; without, the largest projected
    gradient. Infinite where β itself is not feasible.
    """
    return measured(problem, beta, grad).violation


def dual_objective(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> float:
    """½ βᵀKβ + linearᵀβ + kinkᵀ|β|, with Kβ read off the gradient."""
    return measured(problem, beta, grad).objective


def group_levels(
    problem: DualProblem, beta: FloatVector, grad: FloatVector
) -> FloatVector:
    """The multiplier of each equality: the common derivative of the free variables.

    Where none is free, the middle of the interval that the bound ones leave.
    """
    return measured(problem, beta, grad).levels


class Measured(NamedTuple):
    """What is known of a point from its gradient."""

    violation: float
    objective: float
    levels: FloatVector  # one a group


def measured(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> Measured:
    """Violation, objective and levels in one pass."""
    n_groups = problem.n_groups
    of_group = np.empty((N_MEASURES, max(n_groups, 1)))
    violation, objective = measure_point(
        problem.linear,
        problem.kink,
        problem.lower,
        problem.upper,
        problem.start,
        problem.group,
        beta,
        grad,
        n_groups,
        of_group,
    )
    return Measured(violation, objective, of_group[LEVEL, :n_groups])


def dual_gap(
    problem: DualProblem,
    beta: FloatVector,
    grad: FloatVector,
    levels: FloatVector,
    slack: float,
) -> float:
    """Primal minus dual objective at these multipliers; zero at the optimum only.

    What the variables spend, less the least that each could spend by itself. A sum that
    is not what it has to be is charged at its multiplier: only a feasible point has a
    small gap. An infinite box makes the primal infinite as soon as a margin is missed
    by more than `slack`; smaller misses there are counted as none.
    """
    of_group = np.zeros((N_MEASURES, max(len(levels), 1)))
    of_group[LEVEL, : len(levels)] = levels
    return gap_at(
        problem.kink,
        problem.lower,
        problem.upper,
        problem.start,
        problem.group,
        beta,
        grad,
        len(levels),
        slack,
        of_group,
    )


@jit
def measure_point(
    linear: FloatVector,
    kink: FloatVector,
    lower: FloatVector,
    upper: FloatVector,
    start: FloatVector,
    group: IntVector,
    beta: FloatVector,
    grad: FloatVector,
    n_groups: int,
    of_group: FloatMatrix,
) -> tuple[float, float]:
    """(violation, objective) of a point; `of_group` is what its groups have.

    A slope that is not a number makes a group's extremes infinitely far apart.
    """
    for g in range(of_group.shape[1]):
        of_group[LOWEST, g], of_group[HIGHEST, g] = np.inf, -np.inf
        of_group[TOTAL, g] = of_group[N_FREE, g] = 0.0
        of_group[RESIDUAL, g] = of_group[SIZE, g] = of_group[LEVEL, g] = 0.0
    objective, n_outside = 0.0, 0
    for k in range(len(beta)):
        g, here = max(group[k], 0), beta[k]
        right = grad[k] + (kink[k] if here >= 0.0 else -kink[k])
        left = grad[k] + (kink[k] if here > 0.0 else -kink[k])
        if np.isnan(right):
            of_group[LOWEST, g], of_group[HIGHEST, g] = -np.inf, np.inf
        if here < upper[k]:
            of_group[LOWEST, g] = min(of_group[LOWEST, g], right)
        if here > lower[k]:
            of_group[HIGHEST, g] = max(of_group[HIGHEST, g], left)
        if lower[k] < here < upper[k] and (here != 0.0 or kink[k] == 0.0):
            of_group[TOTAL, g] += right
            of_group[N_FREE, g] += 1.0
        of_group[RESIDUAL, g] += here - start[k]
        of_group[SIZE, g] += max(abs(here), abs(start[k]))
        objective += 0.5 * here * (grad[k] + linear[k]) + kink[k] * abs(here)
        n_outside += not lower[k] <= here <= upper[k]
    violation = 0.0
    if n_groups == 0:
        violation = max(of_group[HIGHEST, 0], -of_group[LOWEST, 0], 0.0)
    for g in range(n_groups):
        lowest, highest = of_group[LOWEST, g], of_group[HIGHEST, g]
        low = lowest if np.isfinite(lowest) else highest
        high = highest if np.isfinite(highest) else low
        if of_group[N_FREE, g] > 0.0:
            of_group[LEVEL, g] = of_group[TOTAL, g] / of_group[N_FREE, g]
        elif np.isfinite(high):
            of_group[LEVEL, g] = 0.5 * (low + high)
        violation = max(violation, highest - lowest)
        if abs(of_group[RESIDUAL, g]) > SUM_ROUNDING * of_group[SIZE, g]:
            violation = np.inf
    return np.inf if n_outside > 0 else violation, objective


@jit
def gap_at(
    kink: FloatVector,
    lower: FloatVector,
    upper: FloatVector,
    start: FloatVector,
    group: IntVector,
    beta: FloatVector,
    grad: FloatVector,
    n_groups: int,
    slack: float,
    of_group: FloatMatrix,
) -> float:
    """See `dual_gap`; `of_group` has the levels, and room for residuals."""
    total = 0.0
    for g in range(n_groups):
        of_group[RESIDUAL, g] = 0.0
    for k in range(len(beta)):
        slope = grad[k]
        if n_groups > 0:
            of_group[RESIDUAL, group[k]] += beta[k] - start[k]
            slope -= of_group[LEVEL, group[k]]
        up = least_cost(slope + kink[k], upper[k], slack)
        down = least_cost(kink[k] - slope, -lower[k], slack)
        total += slope * beta[k] + kink[k] * abs(beta[k]) - min(up, down)
    for g in range(n_groups):
        total += abs(of_group[LEVEL, g] * of_group[RESIDUAL, g])
    return max(total, 0.0)


@jit
def least_cost(slope: float, reach: float, slack: float) -> float:
    """min of slope * t over 0 <= t <= reach: 0 where the way is closed or uphill.

    An endless way counts from a slope of `slack` on.
    """
    limit = -slack if reach == np.inf else 0.0
    return slope * reach if slope < limit and reach > 0.0 else 0.0


def is_feasible(problem: DualProblem, beta: FloatVector) -> bool:
    """Whether beta is in its box, and group sums are what they were, up to rounding."""
    if not ((problem.lower <= beta) & (beta <= problem.upper)).all():
        return False
    residual, size = sum_residuals(problem, beta)
    return bool((np.abs(residual) <= SUM_ROUNDING * size).all())


def sum_residuals(
    problem: DualProblem, beta: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Of each group: its sum of beta less what it has to be, and its sum of |beta|.

    Differences are summed, so that equal terms leave nothing behind.
    """
    n_groups, start = problem.n_groups, problem.start
    residual, size = beta - start, np.maximum(np.abs(beta), np.abs(start))
    if n_groups == 0:
        return np.zeros(0), np.zeros(0)
    if n_groups == 1:
        return np.array([residual.sum()]), np.array([size.sum()])
    return _sum_by_group(problem.group, residual), _sum_by_group(problem.group, size)


def _sum_by_group(group: IntVector, values: FloatVector) -> FloatVector:
    return np.bincount(group, values).astype(np.float64, copy=False)


def snapped(problem: DualProblem, beta: FloatVector) -> FloatVector:
    """In the box, and at 0 or at a bound where only rounding is between."""
    near: FloatVector = np.clip(beta, problem.lower, problem.upper)
    edge = np.where(near > 0.0, problem.upper, problem.lower)
    edge = np.where(np.isfinite(edge), edge, 0.0)
    dust = DUST * np.abs(edge)
    is_there = np.abs(near - edge) <= dust
    near[is_there] = edge[is_there]
    near[np.abs(near) <= dust] = 0.0
    return near


class Box(Protocol):
    """What keeps variables in: all of a problem's, or those at hand."""

    @property
    def lower(self) -> FloatVector: ...

    @property
    def upper(self) -> FloatVector: ...

    @property
    def kink(self) -> FloatVector: ...


def is_interior(box: Box, beta: FloatVector) -> BoolVector:
    """Variables off every bound, zero included where there is a kink."""
    inside = (beta > box.lower) & (beta < box.upper)
    return inside & ((beta != 0.0) | (box.kink == 0.0))


def restored(problem: DualProblem, beta: FloatVector) -> FloatVector:
    """beta in its box with the group sums it has to have; beta itself where it is.

    What is missing goes to the free variable that has most room, so that variables at a
    bound stay there; where none has enough, to all of them. Not a number: the start.
    """
    if not np.isfinite(beta).all():
        return problem.start.copy()
    near = snapped_to_box(problem, beta)
    residual, size = sum_residuals(problem, near)
    for g in np.flatnonzero(np.abs(residual) > SAME_SUM * size):
        inside = problem.group == g
        room = np.minimum(near - problem.lower, problem.upper - near)
        room[~(inside & is_interior(problem, near))] = 0.0
        widest = int(room.argmax())
        if room[widest] > 2.0 * abs(residual[g]):
            near = near.copy() if near is beta else near
            near[widest] -= residual[g]
        else:
            return project_start(problem, near)
    return near


def snapped_to_box(problem: DualProblem, beta: FloatVector) -> FloatVector:
    """beta itself where it is in its box, and else the nearest point there."""
    near = np.clip(beta, problem.lower, problem.upper)
    return beta if np.array_equal(near, beta) else near


def project_start(problem: DualProblem, beta: FloatVector) -> FloatVector:
    """A feasible point near `beta`: clipped to the box, shifted to the group sums."""
    near = np.clip(beta, problem.lower, problem.upper)
    for g in range(problem.n_groups):
        inside = problem.group == g
        lower, upper = problem.lower[inside], problem.upper[inside]
        total = problem.start[inside].sum()
        near[inside] = shift_to_sum(near[inside], lower, upper, total)
    return near


def shift_to_sum(
    beta: FloatVector, lower: FloatVector, upper: FloatVector, total: float
) -> FloatVector:
    """clip(beta + shift) whose sum is `total`, the shift found by bisection."""
    if abs(beta.sum() - total) <= SAME_SUM * np.abs(beta).sum():
        return beta  # a shift would only push variables off their bounds
    reach = abs(total - beta.sum()) + np.abs(beta).max()
    low, high = -reach, reach
    while np.clip(beta + low, lower, upper).sum() > total:
        low *= 2.0
    while np.clip(beta + high, lower, upper).sum() < total:
        high *= 2.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if np.clip(beta + middle, lower, upper).sum() < total:
            low = middle
        else:
            high = middle
    shifted: FloatVector = np.clip(beta + high, lower, upper)
    return shifted


def fill_in_order(room: FloatVector, total: float) -> FloatVector:
    """Give each variable what it has room for, first come first served, up to total."""
    before = np.concatenate(([0.0], np.cumsum(room)[:-1]))
    return np.clip(total - before, 0.0, room)
