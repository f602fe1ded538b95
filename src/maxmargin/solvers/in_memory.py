"""How is a problem of few variables solved? On all of K, in one compiled call.

SMO moves pairs of all variables (Fan, Chen & Lin, JMLR 6, 2005). An active-set method
does what it leaves, or the last digits where these are wanted (Scheinberg, JMLR 7,
2006). The pairs of many classes are a stack of such problems on one matrix K: a call
solves one after the other, with nothing of Python between them.
"""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.kernels.cache import NOBODY, RowCache, cache_in
from maxmargin.kernels.gram import Gram, RowsGram, whole_matrix
from maxmargin.kernels.source import NO_KIND, RowSource, memory_source
from maxmargin.problems.dual import (
    DualProblem,
    dual_gap,
    dual_objective,
    group_levels,
    kkt_violation,
)
from maxmargin.solvers.active_set import (
    MAX_GROUPS,
    ActiveSetLimits,
    KernelRows,
    make_free_set,
    solve_active_set,
)
from maxmargin.solvers.coordinates import coordinate_epoch
from maxmargin.solvers.pairs import CONVERGED, OUT_OF_MOVES, compute_missing, pair_epoch
from maxmargin.solvers.result import Options, Solution, Status, WorkingSet
from maxmargin.solvers.tuning import Tuning
from maxmargin.solvers.work import Work, curvature_floor, empty_work, set_masks
from maxmargin.solvers.working_set import add_row
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

SINGLY = 1  # any number: no equality binds the variables
LANES = 32  # variables in an iteration of a vectorised loop: the rest goes one by one
CHUNKS = 8  # of a stack: what threads share, whatever their number is


class Stack(NamedTuple):
    """Problems one after the other, each with its variables sorted by group.

    `problem.row` counts the rows of K of each problem from 0.
    """

    problem: DualProblem
    diagonal: FloatVector  # K_ii of each variable
    end: IntVector  # of each problem, among the variables
    n_rows: IntVector  # of K, of each problem
    n_groups: int


class StackSolution(NamedTuple):
    """The points reached, and what float64 says about them: an entry a problem."""

    beta: FloatVector  # of all variables
    grad: FloatVector
    level: FloatMatrix  # a row a problem, a column a group
    violation: FloatVector
    objective: FloatVector
    gap: FloatVector
    n_moves: IntVector
    n_computed: IntVector  # rows of K
    has_converged: IntVector  # 0 or 1

    def solution(self, stack: Stack, number: int) -> Solution:
        """What a solver returns for one of the problems."""
        last = stack.end[number]
        first = stack.end[number - 1] if number else 0
        return Solution(
            beta=self.beta[first:last],
            level=self.level[number],
            status=Status.CONVERGED,
            n_iter=int(self.n_moves[number]),
            violation=float(self.violation[number]),
            objective=float(self.objective[number]),
            gap=float(self.gap[number]),
            cache_misses=int(self.n_computed[number]),
            grad=self.grad[first:last],
        )


class StackLimits(NamedTuple):
    """How far each problem is taken."""

    tol: float
    is_second_order: bool
    is_exact: bool  # to rounding, not only to tol
    has_margin: bool  # nu-SVC: two levels, whose distance is what coefficients are for


def stack_of(problem: DualProblem, diagonal: FloatVector) -> Stack:
    """A stack of one problem, whose variables are sorted by group."""
    end, n_rows = np.array([len(problem.linear)]), np.array([len(diagonal)])
    return Stack(problem, diagonal[problem.row], end, n_rows, problem.n_groups)


def can_solve(options: Options) -> bool:
    """Whether one call may do: no callback and no limit of the user's."""
    has_limit = options.time_limit is not None or options.max_iter >= 0
    return options.method == "auto" and options.callback is None and not has_limit


def fits_in_memory(
    problem: DualProblem, gram: Gram, options: Options, max_samples: int
) -> bool:
    """Whether all of K may be computed: of so many samples, within the cache's size."""
    n = len(problem.linear)
    if gram.n > max_samples or problem.n_groups > MAX_GROUPS or not can_solve(options):
        return False
    n_bytes = 8 * gram.n * (gram.n + n)  # K, and its rows over the variables
    return not isinstance(gram, RowsGram) and n_bytes <= options.cache_bytes


def solve_in_memory(
    problem: DualProblem, gram: Gram, options: Options
) -> tuple[Solution, bool]:
    """The point reached, and whether it is the solution."""
    n, tuning = len(problem.linear), options.tuning
    n_groups = problem.n_groups
    order = None
    if n_groups > 1:
        order = np.argsort(problem.group, kind="stable")
        problem = problem.reordered(order)
    stack = stack_of(problem, gram.diagonal())
    # Only the last digits separate samples on the boundary of a one-class machine from
    # outliers.
    is_few = gram.n < tuning.exact_below and options.polish
    is_one_class = n_groups < 2 and not problem.linear.any()
    source = _row_source(gram, problem.row, tuning)
    found = solve_stack(stack, source, options, is_few or is_one_class, 1)
    solution = found.solution(stack, 0)
    if order is not None:
        assert solution.grad is not None
        beta, grad = np.empty(n), np.empty(n)
        beta[order], grad[order] = solution.beta, solution.grad
        found = found._replace(beta=beta, grad=grad)
        solution = found.solution(stack, 0)
    return solution, bool(found.has_converged[0])


def _row_source(gram: Gram, row: IntVector, tuning: Tuning) -> RowSource:
    """Rows computed when needed, where they are short; else from all of K."""
    source = gram.source(row)
    if source.kind != NO_KIND and len(source.columns) <= tuning.max_features_of_rows:
        return source
    return memory_source(whole_matrix(gram), row)


def solve_stack(
    stack: Stack, source: RowSource, options: Options, is_exact: bool, n_threads: int
) -> StackSolution:
    """Solve all problems of a stack, on threads; some may not have converged."""
    n, n_problems = len(stack.problem.linear), len(stack.end)
    out = StackSolution(
        beta=np.empty(n),
        grad=np.empty(n),
        level=np.zeros((n_problems, stack.n_groups)),
        violation=np.empty(n_problems),
        objective=np.empty(n_problems),
        gap=np.empty(n_problems),
        n_moves=np.empty(n_problems, dtype=np.intp),
        n_computed=np.empty(n_problems, dtype=np.intp),
        has_converged=np.zeros(n_problems, dtype=np.intp),
    )
    is_second_order = options.working_set is WorkingSet.SECOND_ORDER
    has_margin = stack.n_groups > 1 and not stack.problem.linear.any()
    limits = StackLimits(options.tol, is_second_order, is_exact, has_margin)
    task = partial(_solve_part, stack, source, limits, options.tuning, out)
    tasks = [partial(task, first, last) for first, last in _chunks(stack)]
    run_all(tasks, n_threads)
    return out


def _chunks(stack: Stack) -> list[tuple[int, int]]:
    """Ranges of problems of about the same size in all."""
    n_problems = len(stack.end)
    if n_problems == 1:
        return [(0, 1)]
    cost = np.cumsum(np.diff(stack.end, prepend=0).astype(np.float64) ** 2)
    ends = np.searchsorted(cost, cost[-1] * np.arange(1, CHUNKS) / CHUNKS)
    edges = np.unique(np.concatenate(([0], ends, [n_problems])))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _solve_part(
    stack: Stack,
    source: RowSource,
    limits: StackLimits,
    tuning: Tuning,
    out: StackSolution,
    first: int,
    last: int,
) -> None:
    """Problems first to last, a slice of time a call."""
    sizes = np.diff(stack.end, prepend=0)[first:last]
    n_rows = stack.n_rows[first:last]
    room = np.empty(max(padded(n) * m for n, m in zip(sizes, n_rows, strict=True)))
    singly = SINGLY if stack.n_groups == 0 else None
    while first < last:
        raise_if_stopped()
        first = _solve_some(
            stack, source, singly, limits, tuning, room, first, last, out
        )


@jit
def padded(n: int) -> int:
    """The next multiple of LANES."""
    return -(-n // LANES) * LANES


@jit_new
def _solve_some(
    stack: Stack,
    source: RowSource,
    singly: int | None,
    limits: StackLimits,
    tuning: Tuning,
    room: FloatVector,
    first: int,
    last: int,
    out: StackSolution,
) -> int:
    """Solve problems in their order until enough has been done for one call."""
    done = 0
    while first < last and done < tuning.work_per_call:
        a, b = stack.end[first - 1] if first > 0 else 0, stack.end[first]
        n, n_rows = b - a, stack.n_rows[first]
        width = padded(n)
        rows = room[: n_rows * width].reshape(n_rows, width)
        own = source
        if len(source.place) > 0:
            own = RowSource(
                source.kind,
                0.0,
                0.0,
                0,
                source.columns,
                source.norms,
                source.place[a:b],
            )
        part = _problem_at(stack.problem, a, b)
        work = _work_on(part, stack.diagonal[a:b])
        _solve_one(
            part,
            work,
            own,
            singly,
            limits,
            tuning,
            stack.n_groups,
            rows,
            first,
            out,
        )
        for k in range(n):
            out.beta[a + k], out.grad[a + k] = work.beta[k], work.grad[k]
        done += n * out.n_moves[first]
        first += 1
    return first


@jit_new
def _problem_at(problem: DualProblem, a: int, b: int) -> DualProblem:
    return DualProblem(
        problem.linear[a:b],
        problem.kink[a:b],
        problem.lower[a:b],
        problem.upper[a:b],
        problem.group[a:b],
        problem.row[a:b],
        problem.start[a:b],
    )


@jit_new
def _solve_one(
    problem: DualProblem,
    work: Work,
    source: RowSource,
    singly: int | None,
    limits: StackLimits,
    tuning: Tuning,
    n_groups: int,
    rows: FloatMatrix,
    number: int,
    out: StackSolution,
) -> None:
    """Solve one problem; `work` ends at the solution, `out` is given the evidence."""
    n = len(problem.linear)
    cache = cache_in(rows, False)
    for k in range(n):
        if work.beta[k] != 0.0 and cache.slot[work.row[k]] == NOBODY:
            compute_missing(cache, source, work.row[k], k)
    _sum_gradient(problem, work, cache)
    goal, exact = tuning.inner_tol * limits.tol, 1.0
    for k in range(n):
        exact = max(exact, abs(work.grad[k]))
    exact *= tuning.exact_tol
    if limits.is_exact:
        goal = min(exact, goal)
    made, is_there = _converge(
        problem, work, cache, source, singly, goal, limits, tuning
    )
    if limits.has_margin:
        # Coefficients are divided by the margin, and so is what is left of the
        # violation: a small margin needs a finer tolerance.
        while is_there and goal > exact:
            level = group_levels(problem, work.beta[:n], work.grad[:n])
            share = tuning.margin_share * 0.5 * (level[0] - level[1])
            if goal <= share:
                break
            goal *= tuning.refinement
            if share > 0.0:
                goal = min(goal, share)
            goal = max(goal, exact)
            more, is_there = _converge(
                problem, work, cache, source, singly, goal, limits, tuning
            )
            made += more
    # The certificate: slopes summed anew from rows in float64.
    _sum_gradient(problem, work, cache)
    beta, grad = work.beta[:n], work.grad[:n]
    level = group_levels(problem, beta, grad)
    violation = kkt_violation(problem, beta, grad)
    for g in range(n_groups):
        out.level[number, g] = level[g]
    out.violation[number] = violation
    out.objective[number] = dual_objective(problem, beta, grad)
    out.gap[number] = dual_gap(problem, beta, grad, level, limits.tol)
    out.n_moves[number], out.n_computed[number] = made, cache.n_used[0]
    is_refined = is_there or not (limits.is_exact or limits.has_margin)
    out.has_converged[number] = is_refined and violation <= limits.tol


@jit_new
def _converge(
    problem: DualProblem,
    work: Work,
    cache: RowCache,
    source: RowSource,
    singly: int | None,
    goal: float,
    limits: StackLimits,
    tuning: Tuning,
) -> tuple[int, bool]:
    """SMO, then the active-set method, then SMO: (moves, whether the goal is met)."""
    n, size = len(problem.linear), len(work.beta)
    max_moves = tuning.moves_before_active_set * n
    why, made = _smo(work, cache, source, singly, goal, max_moves, limits)
    if why != OUT_OF_MOVES:
        return made, why == CONVERGED
    everything = np.empty(size, dtype=np.intp)
    for k in range(size):
        everything[k] = k
    kernel = KernelRows(cache, source, work.row, everything)
    n_groups = 0 if singly is not None else len(work.start) - 1
    steps, _ = solve_active_set(
        work,
        everything,
        cache,
        kernel,
        make_free_set(size),
        ActiveSetLimits(goal, tuning.max_moves * n, n_groups),
    )
    # The slopes of that method leave out the ridge of its inverse.
    _sum_gradient(problem, work, cache)
    most = tuning.max_moves * n
    why, more = _smo(work, cache, source, singly, goal, most, limits)
    return made + steps + more, why == CONVERGED


@jit
def _smo(
    work: Work,
    cache: RowCache,
    source: RowSource,
    singly: int | None,
    tol: float,
    max_moves: int,
    limits: StackLimits,
) -> tuple[int, int]:
    """(why it ended, moves made)."""
    if singly is not None:
        why, made, _, _ = coordinate_epoch(
            work, cache, source, tol, max_moves, limits.is_second_order
        )
        return why, made
    why, made, _, _ = pair_epoch(
        work, cache, source, tol, max_moves, limits.is_second_order
    )
    return why, made


@jit_new
def _work_on(problem: DualProblem, diagonal: FloatVector) -> Work:
    """All variables of a problem, which are sorted by group; slopes are still open.

    Variables that are fixed at zero fill up the last group, for the sake of vectorised
    loops.
    """
    n, group = len(diagonal), problem.group
    start = np.zeros(max(group[n - 1], 0) + 2, dtype=np.intp)
    for k in range(n):
        start[max(group[k], 0) + 1] = k + 1
    start[-1] = padded(n)
    work = empty_work(padded(n), start, curvature_floor(diagonal))
    for k in range(n):
        work.beta[k], work.kink[k] = problem.start[k], problem.kink[k]
        work.lower[k], work.upper[k] = problem.lower[k], problem.upper[k]
        work.diagonal[k], work.row[k] = diagonal[k], problem.row[k]
    for k in range(n, padded(n)):
        work.beta[k] = work.kink[k] = work.lower[k] = work.upper[k] = 0.0
        work.grad[k], work.diagonal[k], work.row[k] = 0.0, 1.0, 0
    set_masks(work, 0, padded(n))
    return work


@jit_new
def _sum_gradient(problem: DualProblem, work: Work, cache: RowCache) -> None:
    """grad = K @ beta + linear, from rows that are all there.

    Variables of one row are added first: in nu-SVR they may be large, and cancel.
    """
    weight = np.zeros(len(cache.slot))
    for k in range(len(problem.linear)):
        weight[problem.row[k]] += work.beta[k]
        work.grad[k] = problem.linear[k]
    for row in range(len(weight)):
        if weight[row] != 0.0:
            add_row(work.grad, cache.rows[cache.slot[row]], weight[row])
