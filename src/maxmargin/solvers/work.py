"""What does a solver hold in its hands? The active variables, side by side."""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.problems.dual import DualProblem
from maxmargin.typing import FloatVector, IntVector


class Work(NamedTuple):
    """Active variables, ordered by group; all arrays but `start` are as long as they.

    `rise` and `fall` carry both the kink and the box: grad + rise is the slope of going
    up (inf where the box forbids it), grad + fall that of coming from below (-inf where
    it forbids going down). Sweeps then need no branch.
    """

    beta: FloatVector
    grad: FloatVector
    rise: FloatVector
    fall: FloatVector
    lower: FloatVector
    upper: FloatVector
    kink: FloatVector
    diagonal: FloatVector
    row: IntVector
    start: IntVector  # group g lies in start[g]:start[g + 1]
    gained: FloatVector  # one number: how far the objective has fallen
    min_curvature: float


@jit
def gather_work(
    problem: DualProblem,
    active: IntVector,
    beta: FloatVector,
    grad: FloatVector,
    diagonal: FloatVector,
) -> Work:
    """Copy what belongs to the active variables, masks computed afresh."""
    n_groups = max(problem.group.max() + 1, 1)
    group = np.maximum(problem.group[active], 0)
    row = problem.row[active]
    work = Work(
        beta[active],
        grad[active],
        np.empty(len(active)),
        np.empty(len(active)),
        problem.lower[active],
        problem.upper[active],
        problem.kink[active],
        diagonal[row],
        row,
        np.searchsorted(group, np.arange(n_groups + 1)),
        np.zeros(1),
        curvature_floor(diagonal),
    )
    set_masks(work, 0, len(active))
    return work


@jit
def part_of(work: Work, members: IntVector) -> Work:
    """Some of these variables, by themselves: row k is that of member k."""
    n = len(members)
    part = Work(
        work.beta[members],
        work.grad[members],
        np.empty(n),
        np.empty(n),
        work.lower[members],
        work.upper[members],
        work.kink[members],
        work.diagonal[members],
        np.arange(n),
        np.array([0, n]),
        np.zeros(1),
        work.min_curvature,
    )
    set_masks(part, 0, n)
    return part


RELATIVE_FLOOR = 1e-24  # of the largest K_ii: no smaller row is told from zero


@jit
def curvature_floor(diagonal: FloatVector) -> float:
    """The least curvature that any step may divide by, on the kernel's own scale."""
    largest = 0.0
    for k in range(len(diagonal)):
        largest = max(largest, abs(diagonal[k]))
    return RELATIVE_FLOOR * largest if largest > 0.0 else RELATIVE_FLOOR


@jit
def set_masks(work: Work, first: int, last: int) -> None:
    """Bring rise and fall of a range of variables up to date."""
    beta, kink, rise, fall = work.beta, work.kink, work.rise, work.fall
    lower, upper = work.lower, work.upper
    for k in range(first, last):
        rise[k], fall[k] = mask_of(beta[k], kink[k], lower[k], upper[k])


@jit
def is_free(beta: float, kink: float, lower: float, upper: float) -> bool:
    """Whether a variable is off every bound, zero included where there is a kink."""
    return lower < beta < upper and (beta != 0.0 or kink == 0.0)


@jit
def mask_of(
    beta: float, kink: float, lower: float, upper: float
) -> tuple[float, float]:
    """rise and fall of a variable."""
    rise = kink if beta >= 0.0 else -kink
    fall = kink if beta > 0.0 else -kink
    return np.inf if beta >= upper else rise, -np.inf if beta <= lower else fall
