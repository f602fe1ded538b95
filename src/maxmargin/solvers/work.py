"""What is the state of a dual solver? Active variables, their slopes and bounds."""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
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


def gather_work(
    problem: DualProblem,
    active: IntVector,
    beta: FloatVector,
    grad: FloatVector,
    diagonal: FloatVector,
) -> Work:
    """Copy what belongs to the active variables, masks computed afresh."""
    n_groups, row = max(problem.n_groups, 1), problem.row[active]
    ends = [len(active)]
    if n_groups > 1:
        n_before = np.searchsorted(problem.group[active], np.arange(1, n_groups))
        ends = [*n_before.tolist(), len(active)]
    work = Work(
        beta=beta[active],
        grad=grad[active],
        rise=np.empty(len(active)),
        fall=np.empty(len(active)),
        lower=problem.lower[active],
        upper=problem.upper[active],
        kink=problem.kink[active],
        diagonal=diagonal[row],
        row=row,
        start=np.array([0, *ends]),
        gained=np.zeros(1),
        min_curvature=curvature_floor(diagonal),
    )
    set_masks(work, 0, len(active))
    return work


@jit_new
def empty_work(n: int, start: IntVector, min_curvature: float) -> Work:
    """Room for n variables."""
    return Work(
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=np.intp),
        start,
        np.zeros(1),
        min_curvature,
    )


@jit_new
def part_of(work: Work, members: IntVector) -> Work:
    """Some variables by themselves, sorted by group: row k is that of member k."""
    n, start = len(members), np.zeros(len(work.start), dtype=np.intp)
    part, g = empty_work(n, start, work.min_curvature), 0
    for k in range(n):
        i = members[k]
        while i >= work.start[g + 1]:
            g += 1
        for later in range(g + 1, len(start)):
            start[later] = k + 1
        part.beta[k], part.grad[k] = work.beta[i], work.grad[i]
        part.lower[k], part.upper[k] = work.lower[i], work.upper[i]
        part.kink[k], part.diagonal[k] = work.kink[i], work.diagonal[i]
        part.row[k] = k
    set_masks(part, 0, n)
    return part


RELATIVE_FLOOR = 1e-24  # of the largest K_ii: a smaller row counts as zero


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
def group_of(work: Work, k: int) -> int:
    """The group of variable k; 0 where there is none."""
    g = 0
    while k >= work.start[g + 1]:
        g += 1
    return g


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
