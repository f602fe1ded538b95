r"""What is minimised? One quadratic program over signed dual variables.

.. math:: \min_\beta \tfrac12 \beta^\top K \beta + q^\top \beta + k^\top |\beta|
   \quad l \le \beta \le u, \quad \sum_{i \in g} \beta_i = s_g \;\forall g

The box carries the label, the group carries the equality, and the kink carries the
tube of regression, so that no solver ever asks which machine it is solving.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._jit import jit, jit_fast, jit_new, larger
from maxmargin.typing import BoolVector, FloatVector, IntVector

NO_GROUP = -1  # a variable that no equality binds: machines without intercept
DUST = 1e-12  # of its bound: a variable no further away is there up to rounding
SAME_SUM = 1e-13  # relative: sums no further apart are equal up to rounding
SUM_ROUNDING = 1e-10  # of sum |beta|: what a million additions may leave of a zero
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


@jit_new
def kkt_violation(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> float:
    """LIBSVM's stopping measure: the largest slope any feasible move could still gain.

    With equalities, max over {β > lower} of the left derivative minus min over
    {β < upper} of the right one, in the worst group; without, the largest projected
    gradient. Infinite where β itself is not feasible.
    """
    if not is_feasible(problem, beta):
        return np.inf
    lowest, highest, _, _ = _extremes(problem, beta, grad)
    if problem.group[0] == NO_GROUP:
        return max(highest[0], -lowest[0], 0.0)
    violation = 0.0
    for g in range(len(lowest)):
        violation = max(violation, highest[g] - lowest[g])
    return violation


@jit_new
def is_feasible(problem: DualProblem, beta: FloatVector) -> bool:
    """Whether beta is in its box, and group sums are what they were, up to rounding."""
    if count_outside(beta, problem.lower, problem.upper):
        return False
    residual, size = sum_residuals(problem, beta)
    worst = 0.0
    for g in range(len(residual)):
        worst = max(worst, abs(residual[g]) - SUM_ROUNDING * size[g])
    return worst <= 0.0


@jit_fast
def count_outside(beta: FloatVector, lower: FloatVector, upper: FloatVector) -> int:
    """How many variables are not in their box; NaN is nowhere."""
    n_outside = 0
    for k in range(beta.size):
        n_outside += not lower[k] <= beta[k] <= upper[k]
    return n_outside


@jit_fast
def _residual_of(beta: FloatVector, start: FloatVector) -> tuple[float, float]:
    """The sum of beta - start, and of whichever of |beta| and |start| is larger."""
    residual, size = 0.0, 0.0
    for k in range(beta.size):
        residual += beta[k] - start[k]
        size += larger(abs(beta[k]), abs(start[k]))
    return residual, size


@jit
def count_groups(group: IntVector) -> int:
    """One more than the last group's number; 0 where no equality binds variables."""
    last = NO_GROUP
    for k in range(len(group)):
        last = max(last, group[k])
    return last + 1


@jit_new
def sum_residuals(
    problem: DualProblem, beta: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Of each group: its sum of beta less what it has to be, and its sum of |beta|.

    Differences are summed, so that equal terms leave nothing behind.
    """
    group, start = problem.group, problem.start
    n_groups = count_groups(group)
    residual, size = np.zeros(n_groups), np.zeros(n_groups)
    if n_groups == 0:
        return residual, size
    if n_groups == 1:
        residual[0], size[0] = _residual_of(beta, start)
        return residual, size
    for k in range(len(beta)):
        residual[group[k]] += beta[k] - start[k]
        size[group[k]] += max(abs(beta[k]), abs(start[k]))
    return residual, size


@jit_new
def _extremes(
    problem: DualProblem, beta: FloatVector, grad: FloatVector
) -> tuple[FloatVector, FloatVector, FloatVector, IntVector]:
    """Of each group: lowest right and highest left slope, mean free one, how many.

    A slope that is not a number makes a group's extremes infinitely far apart.
    """
    kink, lower, upper = problem.kink, problem.lower, problem.upper
    group = problem.group
    n_groups = max(count_groups(group), 1)
    lowest, highest = np.empty(n_groups), np.empty(n_groups)
    for g in range(n_groups):
        lowest[g], highest[g] = np.inf, -np.inf
    mean, n_free = np.zeros(n_groups), np.zeros(n_groups, dtype=np.intp)
    for k in range(len(beta)):
        g = max(group[k], 0)
        right = grad[k] + (kink[k] if beta[k] >= 0.0 else -kink[k])
        left = grad[k] + (kink[k] if beta[k] > 0.0 else -kink[k])
        if np.isnan(right):
            lowest[g], highest[g] = -np.inf, np.inf
        if beta[k] < upper[k]:
            lowest[g] = min(lowest[g], right)
        if beta[k] > lower[k]:
            highest[g] = max(highest[g], left)
        if lower[k] < beta[k] < upper[k] and (beta[k] != 0.0 or kink[k] == 0.0):
            mean[g] += right
            n_free[g] += 1
    for g in range(n_groups):
        mean[g] /= max(n_free[g], 1)
    return lowest, highest, mean, n_free


@jit_new
def snapped(problem: DualProblem, beta: FloatVector) -> FloatVector:
    """In the box, and at 0 or at a bound where only rounding is between."""
    near = np.empty(len(beta))
    for k in range(len(beta)):
        b = min(max(beta[k], problem.lower[k]), problem.upper[k])
        edge = problem.upper[k] if b > 0.0 else problem.lower[k]
        if abs(edge) < np.inf:
            dust = DUST * abs(edge)
            if abs(b) <= dust:
                b = 0.0
            elif abs(b - edge) <= dust:
                b = edge
        near[k] = b
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


@jit_new
def group_levels(
    problem: DualProblem, beta: FloatVector, grad: FloatVector
) -> FloatVector:
    """The multiplier of each equality: the common derivative of the free variables.

    Where none is free, the middle of the interval that the bound ones leave.
    """
    lowest, highest, mean, n_free = _extremes(problem, beta, grad)
    levels = np.zeros(count_groups(problem.group))
    for g in range(len(levels)):
        low = lowest[g] if np.isfinite(lowest[g]) else highest[g]
        high = highest[g] if np.isfinite(highest[g]) else low
        if n_free[g]:
            levels[g] = mean[g]
        elif np.isfinite(high):
            levels[g] = 0.5 * (low + high)
    return levels


@jit_fast
def dual_objective(problem: DualProblem, beta: FloatVector, grad: FloatVector) -> float:
    """½ βᵀKβ + linearᵀβ + kinkᵀ|β|, with Kβ read off the gradient."""
    linear, kink, total = problem.linear, problem.kink, 0.0
    for k in range(beta.size):
        total += 0.5 * beta[k] * (grad[k] + linear[k]) + kink[k] * abs(beta[k])
    return total


@jit_new
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
    kink, lower, upper = problem.kink, problem.lower, problem.upper
    group, total = problem.group, 0.0
    residual, _ = sum_residuals(problem, beta)
    for g in range(len(levels)):
        total += abs(levels[g] * residual[g])
    for k in range(len(beta)):
        slope = grad[k]
        if len(levels):
            slope -= levels[group[k]]
        up = least_cost(slope + kink[k], upper[k], slack)
        down = least_cost(kink[k] - slope, -lower[k], slack)
        total += slope * beta[k] + kink[k] * abs(beta[k]) - min(up, down)
    return max(total, 0.0)


@jit
def least_cost(slope: float, reach: float, slack: float) -> float:
    """min of slope * t over 0 <= t <= reach: 0 where the way is closed or uphill.

    An endless way counts from a slope of `slack` on.
    """
    limit = -slack if reach == np.inf else 0.0
    return slope * reach if slope < limit and reach > 0.0 else 0.0


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
