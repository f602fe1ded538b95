r"""When do all free variables go to their common optimum at once? When moves cost more.

A move of SMO changes two variables; at large C, pairs of free ones pass slope to and
fro hundreds of times. Newton's method takes all of them to where they are at rest
together: to the first bound, whose variable stays there, and on without it
(`active_set`; Scheinberg, JMLR 7, 2006). Which variables leave a bound, moves find out.

Where K is in float32, a small ridge keeps the system positive; it ties the variables to
where they were, which a few repetitions overcome.
"""

from collections.abc import Callable

import numpy as np

from maxmargin._blas import invert_positive
from maxmargin.data.design import mirror
from maxmargin.kernels.cache import hold_all
from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.kernels.single import ROUNDING
from maxmargin.problems.dual import SAME_SUM, DualProblem, is_interior, restored
from maxmargin.solvers.active_set import (
    ActiveSetLimits,
    solve_active_set,
    step_to_common_optimum,
)
from maxmargin.solvers.free_inverse import (
    CONSTANT,
    GROUP,
    KINK,
    LOWER,
    MAX_FREE,
    MAX_GROUPS,
    MEMBER,
    SLOPE,
    UPPER,
    VARIABLE,
    FreeSet,
    KernelRows,
    N,
    apply_inverse,
    make_free_set,
)
from maxmargin.solvers.iterate import Iterate
from maxmargin.solvers.tuning import NewtonTuning
from maxmargin.solvers.work import Work, gather_work, set_masks
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

RIDGE = 4.0  # times what float32 may have added to an eigenvalue
LARGER = 10.0  # times, where the system is not positive still
MAX_RIDGES = 4
SMALLEST = 1e-14  # of values of K, that rounding may leave of their differences


class NewtonSteps:
    """Newton steps of one problem: each when moves have cost as much since the last.

    Costs are counted in values of K, not in time.
    """

    def __init__(
        self, is_bound: bool, is_stopped: Callable[[], bool], tuning: NewtonTuning
    ) -> None:
        """`is_bound`: whether sums within a group are fixed."""
        self.is_bound, self.is_stopped, self.tuning = is_bound, is_stopped, tuning
        self.effort = 0.0  # values that moves have looked at since the last step
        self.share_met = (
            tuning.first_share
        )  # of the free ones, that meet a bound on the way

    def due(self, work: Work) -> IntVector | None:
        """The free variables, if they are to take a step now."""
        if len(work.start) > MAX_GROUPS + 1:
            return None
        free = np.flatnonzero(is_interior(work, work.beta))
        n, tuning = len(free), self.tuning
        # Infinite where steps have turned out to be useless.
        n_met = max(self.share_met * n, tuning.min_bounds)
        cost = n**2 * (tuning.inverse_cost * n + tuning.bound_cost * n_met)
        is_due = 2 <= n <= tuning.max_variables and self.effort >= cost
        return free if is_due else None

    def take(self, work: Work, free: IntVector, K: KernelMatrix) -> FloatVector:
        """Move the free variables to their common optimum; returns their change.

        K is between them. Slopes are left to the caller.
        """
        before, slope = work.beta[free], work.grad[free] + work.rise[free]
        n_met = self._step_to_bounds(work, free, K)
        change: FloatVector = work.beta[free] - before
        gain = -float(change @ (slope + 0.5 * (K @ change)))
        self.effort, self.share_met = 0.0, n_met / len(free)
        if not gain > 0.0 or not self._keeps_sums(work, free, change):
            # K between these is too close to singular for float32.
            self.share_met, change, gain = np.inf, np.zeros(len(free)), 0.0
            work.beta[free] = before
        work.gained[0] += gain
        set_masks(work, 0, len(work.beta))
        return change

    def _step_to_bounds(self, work: Work, free: IntVector, K: KernelMatrix) -> int:
        """How many have met a bound."""
        n_groups = len(work.start) - 1 if self.is_bound else 0
        entries = _with_inverse(work, free, K, n_groups)
        if entries is None:
            return 0
        is_there, most = False, 1 + self.tuning.values_per_call // len(free) ** 2
        while not (is_there or self.is_stopped()):
            is_there = step_to_common_optimum(work, entries, n_groups, most)
        return len(free) - int(entries.counts[N])

    def _keeps_sums(self, work: Work, free: IntVector, change: FloatVector) -> bool:
        """Whether sums within groups are what they were, up to rounding."""
        if not self.is_bound:
            return True
        everywhere, size = np.zeros((2, len(work.beta)))
        everywhere[free], size[free] = change, np.abs(work.beta[free]) + np.abs(change)
        residual = np.add.reduceat(everywhere, work.start[:-1])
        largest = SAME_SUM * np.add.reduceat(size, work.start[:-1])
        return bool((np.abs(residual) <= largest).all())


def _with_inverse(
    work: Work, free: IntVector, K: KernelMatrix, n_groups: int
) -> FreeSet | None:
    """These variables with the inverse of K between them; None where it has none."""
    n = len(free)
    group = np.searchsorted(work.start, free, side="right") - 1
    constant = float(K.diagonal().max()) if n_groups > 0 else 0.0
    inverse = _inverse(K, constant * (group[:, None] == group))
    if inverse is None:
        return None
    entries = make_free_set(len(work.beta), n)._replace(inverse=inverse)
    entries.counts[N], entries.level[CONSTANT] = n, constant
    entries.indices[VARIABLE] = entries.indices[MEMBER] = free
    entries.indices[GROUP], entries.slot[free] = group, np.arange(n)
    kink, is_positive = work.kink[free], work.beta[free] > 0.0
    value = entries.value
    value[LOWER] = np.where((kink > 0.0) & is_positive, 0.0, work.lower[free])
    value[UPPER] = np.where((kink > 0.0) & ~is_positive, 0.0, work.upper[free])
    value[KINK] = np.where(is_positive, kink, -kink)
    value[SLOPE] = work.grad[free] + value[KINK]
    apply_inverse(entries, n_groups)
    return entries


def _inverse(K: KernelMatrix, constant: FloatMatrix) -> FloatMatrix | None:
    """Of K + constant, with a ridge as small as will do; None where none does."""
    n = len(K)
    ridge = RIDGE * ROUNDING * np.sqrt(n) * float(np.abs(K).max())
    for _ in range(MAX_RIDGES):
        system = K + constant
        system[np.diag_indices(n)] += ridge
        if invert_positive(system):
            mirror(system)
            return system
        ridge *= LARGER
    return None


def _centred(K: FloatMatrix, start: IntVector) -> FloatMatrix:
    """K less its means over groups, on rows and on columns.

    Where sums within groups are fixed, steps are the same, and slopes of a group differ
    by a number. But what is left of samples far from the origin is not rounded away.
    """
    n_each = np.diff(start)
    first, n_each = start[:-1][n_each > 0], n_each[n_each > 0]
    for _ in range(2):  # rows, then columns
        means = np.add.reduceat(K.T, first) / n_each[:, None]
        K = K.T - np.repeat(means, n_each, axis=0)
    return K


def free_variables(problem: DualProblem, beta: FloatVector) -> IntVector:
    """Those off their bounds, if the active-set method can solve for them."""
    free = np.flatnonzero(is_interior(problem, beta))
    is_possible = len(free) <= MAX_FREE and problem.n_groups <= MAX_GROUPS
    return free if is_possible else free[:0]


def common_optimum(
    problem: DualProblem,
    gram: Gram,
    point: Iterate,
    free: IntVector,
    tol: float,
    tuning: NewtonTuning,
) -> FloatVector:
    """beta after the active-set method among these variables, in float64.

    Where K is not positive there, the objective may have risen.
    """
    rows, everything = problem.row[free], np.arange(len(free))
    work = gather_work(problem, free, point.beta, point.grad, gram.diagonal())
    K = gram_block(gram, rows, rows)
    centred = _centred(K, work.start) if problem.n_groups > 0 else K
    if np.abs(centred).max() > SMALLEST * np.abs(K).max():  # else no step keeps sums
        K = centred
    work = work._replace(row=everything, diagonal=K.diagonal().copy())
    cache = hold_all(np.ascontiguousarray(K))
    most = 1 + tuning.values_per_call // len(free) ** 2
    solve_active_set(
        work,
        everything,
        cache.rows,
        cache.slot,
        KernelRows(cache, None, everything, everything),
        make_free_set(len(free)),
        ActiveSetLimits(tol, most, problem.n_groups),
    )
    beta = point.beta.copy()
    beta[free] = work.beta
    return restored(problem, beta)
