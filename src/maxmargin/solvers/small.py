"""How is a tiny problem solved in a fraction of a millisecond? With nothing around it.

One call of compiled code makes the moves, to nearly the last digit, and looks at the
result. Cross-validation on small sets solves thousands of these. Problems that are a
little larger begin like this, too, with less ambition: what few moves do not solve goes
on elsewhere, from where they ended.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.cache import NOBODY, RowCache, cache_in
from maxmargin.kernels.functions import Linear
from maxmargin.kernels.gram import Gram, MatrixGram, VectorGram, gram_block
from maxmargin.kernels.source import NO_KIND, RowSource, no_source
from maxmargin.problems.dual import (
    DualProblem,
    dual_gap,
    dual_objective,
    group_levels,
    kkt_violation,
)
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.pairs import CONVERGED, compute_missing, pair_epoch
from maxmargin.solvers.result import Options, Solution, Status, WorkingSet
from maxmargin.solvers.work import Work, curvature_floor, set_masks
from maxmargin.solvers.working_set import add_row
from maxmargin.typing import FloatMatrix, FloatVector

MOST = 800  # variables: beyond, a working set that grows needs fewer values of K
MOST_FEATURES = 16  # beyond, all of K by BLAS costs less than the rows needed
FEW = 300  # samples: below, the last digits cost little
SHARP = 1e-10  # violation there, relative to the slopes at the start
CLOSE = 0.7  # of tol: violation elsewhere
MOVES, FEWER_MOVES = 30, 4  # per variable: who needs more, needs more than moves


class Ending(NamedTuple):
    """Where the moves ended, and what float64 says about it."""

    has_converged: bool
    n_moves: int
    n_rows: int  # of K that were needed
    beta: FloatVector
    grad: FloatVector
    level: FloatVector
    violation: float
    objective: float
    gap: float

    def solution(self, n_iter: int) -> Solution:
        """What a solver returns."""
        return Solution(
            beta=self.beta,
            level=self.level,
            status=Status.CONVERGED,
            n_iter=n_iter,
            violation=self.violation,
            objective=self.objective,
            gap=self.gap,
            cache_misses=self.n_rows,
            grad=self.grad,
        )


def is_tiny(problem: DualProblem, options: Options) -> bool:
    """Whether a single call may do: nobody listens, and no limit is set.

    A one-class machine has no linear part, and samples on its very boundary: only the
    polish tells these from outliers.
    """
    is_plain = options.callback is None and options.time_limit is None
    is_plain = is_plain and options.max_iter < 0 and options.polish
    is_one_class = problem.n_groups == 1 and not problem.linear.any()
    return is_plain and len(problem.linear) < MOST and not is_one_class


def _is_at_hand(gram: Gram, options: Options) -> bool:
    """Whether K is quickly there, and not of the kind that takes moves without end."""
    if 8 * gram.n**2 > options.cache_bytes:
        return False
    if isinstance(gram, VectorGram):
        return not isinstance(gram.kernel, Linear)
    return isinstance(gram, MatrixGram)


def solve_tiny(problem: DualProblem, gram: Gram, options: Options) -> Ending | None:
    """Where moves alone end, to nearly the last digit if the variables are few.

    None where this is no way to begin.
    """
    is_large = gram.n >= FEW and not _is_at_hand(gram, options)
    if not is_tiny(problem, options) or is_large:
        return None
    if problem.n_groups > 1:
        return _solve_groups(problem, gram, options)
    return _solve(problem, gram, options)


def _solve_groups(problem: DualProblem, gram: Gram, options: Options) -> Ending:
    """The same where variables have to be sorted by group first."""
    order = np.argsort(problem.group, kind="stable")
    ending = _solve(problem.reordered(order), gram, options)
    beta, grad = np.empty_like(ending.beta), np.empty_like(ending.grad)
    beta[order], grad[order] = ending.beta, ending.grad
    return ending._replace(beta=beta, grad=grad)


def _solve(problem: DualProblem, gram: Gram, options: Options) -> Ending:
    """A problem whose variables are sorted by group."""
    n = len(problem.linear)
    source = gram.source(problem.row)
    if len(source.columns) > MOST_FEATURES:
        source = no_source()
    if source.kind == NO_KIND:
        everything = np.arange(gram.n)
        rows = gram_block(gram, everything, everything)
        if not np.array_equal(problem.row, everything):
            rows = np.ascontiguousarray(rows[:, problem.row])
    else:
        rows = np.empty((gram.n, n))
    is_second = options.working_set is WorkingSet.SECOND_ORDER
    move = _move_singles if problem.is_free_of_equalities else _move_pairs
    return move(problem, rows, source, gram.diagonal(), options.tol, is_second)


@jit
def _move_pairs(
    problem: DualProblem,
    rows: FloatMatrix,
    source: RowSource,
    diagonal: FloatVector,
    tol: float,
    is_second: bool,
) -> Ending:
    """Pairs of variables move until the violation is small enough."""
    cache, work, goal, most = _begin(problem, rows, source, diagonal, tol)
    why, made, _, _ = pair_epoch(work, cache, source, goal, most, is_second)
    return _end(problem, work.beta, cache, (why, made), tol)


@jit
def _move_singles(
    problem: DualProblem,
    rows: FloatMatrix,
    source: RowSource,
    diagonal: FloatVector,
    tol: float,
    is_second: bool,
) -> Ending:
    """The same where no equality binds variables to one another."""
    cache, work, goal, most = _begin(problem, rows, source, diagonal, tol)
    why, made, _, _ = coordinate_epoch(work, cache, source, goal, most, is_second)
    return _end(problem, work.beta, cache, (why, made), tol)


@jit
def _begin(
    problem: DualProblem,
    rows: FloatMatrix,
    source: RowSource,
    diagonal: FloatVector,
    tol: float,
) -> tuple[RowCache, Work, float, int]:
    """What moves need, how small the violation shall become, and in how many."""
    cache = cache_in(rows, source.kind == NO_KIND)
    n, start = len(problem.start), problem.start
    for k in range(n):
        if start[k] != 0.0 and cache.slot[problem.row[k]] == NOBODY:
            compute_missing(cache, source, problem.row[k], k)
    work = _work_on(problem, _gradient(problem, start, cache), diagonal)
    if len(diagonal) >= FEW:
        return cache, work, CLOSE * tol, FEWER_MOVES * n
    steepest = 1.0
    for k in range(n):
        steepest = max(steepest, abs(work.grad[k]))
    return cache, work, min(SHARP * steepest, CLOSE * tol), MOVES * n


@jit
def _end(
    problem: DualProblem,
    beta: FloatVector,
    cache: RowCache,
    how: tuple[int, int],
    tol: float,
) -> Ending:
    """What the gradient says, summed up afresh; `how`: why moves ended, how many."""
    why, made = how
    grad = _gradient(problem, beta, cache)
    violation = kkt_violation(problem, beta, grad)
    level = group_levels(problem, beta, grad)
    return Ending(
        why == CONVERGED and violation <= tol,
        made,
        cache.n_used[0],
        beta,
        grad,
        level,
        violation,
        dual_objective(problem, beta, grad),
        dual_gap(problem, beta, grad, level, tol),
    )


@jit
def _work_on(problem: DualProblem, grad: FloatVector, diagonal: FloatVector) -> Work:
    """All variables of a problem, which are sorted by group."""
    n, group = len(grad), problem.group
    own = np.empty(n)
    start = np.zeros(max(group[n - 1], 0) + 2, dtype=np.intp)
    for k in range(n):
        own[k] = diagonal[problem.row[k]]
        start[max(group[k], 0) + 1] = k + 1
    work = Work(
        problem.start.copy(),
        grad,
        np.empty(n),
        np.empty(n),
        problem.lower,
        problem.upper,
        problem.kink,
        own,
        problem.row,
        start,
        np.zeros(1),
        curvature_floor(diagonal),
    )
    set_masks(work, 0, n)
    return work


@jit
def _gradient(problem: DualProblem, beta: FloatVector, cache: RowCache) -> FloatVector:
    """K @ beta + linear, from rows that are all there.

    Variables of one row are added first: in nu-SVR they may be large, and cancel.
    """
    grad, weight = problem.linear.copy(), np.zeros(len(cache.slot))
    for k in range(len(beta)):
        weight[problem.row[k]] += beta[k]
    for row in range(len(weight)):
        if weight[row] != 0.0:
            add_row(grad, cache.rows[cache.slot[row]], weight[row])
    return grad
