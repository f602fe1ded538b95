"""Where exactly is the optimum, once it is clear which variables are free?

On the free variables the KKT conditions are a linear system. Its solution is the
optimum to rounding, unless it leaves the box: then the step ends where it would leave,
that variable is fixed there, and the rest is solved again. Equal samples make the
system singular; any of its solutions gives the same machine.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.problems.dual import DualProblem, is_interior, restored
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

MAX_FREE = 400  # the system costs its cube
MOST_STEPS = 16  # each ends at a bound but the last: more do not pay for their systems
MAX_ENTRIES = 1 << 22  # of the kernel block held
RIDGE = 1e-13  # of the largest diagonal value: bounds the solution where K is singular
REFINEMENTS = 3  # each takes the ridge's effect down to its square, its cube, ...


class FreeBlock(NamedTuple):
    """K between all rows and the free variables."""

    variables: IntVector
    columns: FloatMatrix  # Gram rows x free variables
    square: FloatMatrix  # free variables x free variables


def free_block(problem: DualProblem, gram: Gram, beta: FloatVector) -> FreeBlock | None:
    """The block to polish with, or None where there is nothing free or too much."""
    free = np.flatnonzero(is_interior(problem, beta))
    if not 0 < len(free) <= MAX_FREE or len(free) * gram.n > MAX_ENTRIES:
        return None
    columns = _columns(gram, problem.row[free])
    return FreeBlock(free, columns, columns[problem.row[free]])


def _columns(gram: Gram, rows: IntVector) -> FloatMatrix:
    """K between all rows and these, by symmetry from the rows themselves."""
    return gram_block(gram, rows, np.arange(gram.n)).T


def polish(
    problem: DualProblem, block: FreeBlock, beta: FloatVector, grad: FloatVector
) -> FloatVector:
    """beta after Newton steps on the free variables, group sums as they were."""
    beta, grad = beta.copy(), grad.copy()
    inside = np.arange(len(block.variables))
    for _ in range(MOST_STEPS):
        raise_if_stopped()
        free = block.variables[inside]
        slope = grad[free] + problem.kink[free] * np.sign(beta[free])
        group = problem.group[free]
        step = newton_step(block.square[np.ix_(inside, inside)], slope, group)
        if not np.isfinite(step).all() or slope @ step >= 0.0:
            break
        before = beta[free]
        is_blocked = take_step(problem, beta, free, step)
        change = block.columns[:, inside] @ (beta[free] - before)
        grad += change[problem.row]
        if not is_blocked.any() or is_blocked.all():
            break
        inside = inside[~is_blocked]
    return restored(problem, beta)


def newton_step(K: FloatMatrix, slope: FloatVector, group: IntVector) -> FloatVector:
    """The d with K d + slope constant in each group and no change of group sums."""
    n, groups = len(K), np.unique(group[group >= 0])
    member = (group[:, None] == groups).astype(np.float64)
    system = np.zeros((n + len(groups), n + len(groups)))
    system[:n, :n], system[:n, n:], system[n:, :n] = K, member, member.T
    target = np.concatenate((-slope, np.zeros(len(groups))))
    ridge = RIDGE * max(np.abs(K.diagonal()).max(), np.finfo(float).tiny)
    damped = system.copy()
    damped[np.arange(n), np.arange(n)] += ridge
    try:
        inverse = np.linalg.inv(damped)
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    solution = inverse @ target
    for _ in range(REFINEMENTS):
        solution += inverse @ (target - system @ solution)
    step = solution[:n]
    for own in member.T > 0.0:  # a near-singular K makes long steps, which round
        step[own] -= step[own].mean()
    return step


def take_step(
    problem: DualProblem, beta: FloatVector, free: IntVector, step: FloatVector
) -> np.ndarray:
    """Move beta along the step as far as the box allows; say who was stopped there."""
    here = beta[free]
    is_rising = step > 0.0
    ahead = np.where(is_rising, problem.upper[free], problem.lower[free])
    has_kink = (problem.kink[free] > 0.0) & ((here > 0.0) != is_rising)
    ahead[has_kink] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step == 0.0, np.inf, (ahead - here) / step)
    length = min(1.0, float(room.min()))
    is_blocked: np.ndarray = room <= length
    beta[free] = np.where(is_blocked, ahead, here + length * step)
    return is_blocked
