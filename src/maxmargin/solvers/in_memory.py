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
    FreeSet,
    KernelRows,
    clear_free_set,
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


class Room(NamedTuple):
    """Arrays for the largest of some problems; each takes a part of them."""

    rows: FloatVector  # of K
    work: Work
    cache: RowCache
    free: FreeSet
    weight: FloatVector  # of each row of K
    everything: IntVector  # 0, 1, 2, ...


def make_room(stack: Stack, first: int, last: int) -> Room:
    """Room for these problems."""
    sizes = [padded(int(n)) for n in np.diff(stack.end, prepend=0)[first:last]]
    n_rows = stack.n_rows[first:last].tolist()
    n_values = max(n * m for n, m in zip(sizes, n_rows, strict=True))
    n, m = max(sizes), max(n_rows)
    start = np.zeros(max(stack.n_groups, 1) + 1, dtype=np.intp)
    rows = np.empty(n_values)
    return Room(
        rows=rows,
        work=empty_work(n, start, 0.0),
        cache=cache_in(rows.reshape(-1, 1)[:m], False),
        free=make_free_set(n),
        weight=np.empty(m),
        everything=np.arange(n),
    )


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
    room, begun = make_room(stack, first, last), first
    singly = SINGLY if stack.n_groups == 0 else None
    while first < last:
        raise_if_stopped()
        first = _solve_some(
            stack, source, singly, limits, tuning, room, first, last, out
        )
    certify(stack, limits.tol, out, begun, last)


@jit
def padded(n: int) -> int:
    """The next multiple of LANES."""
    return -(-n // LANES) * LANES


@jit
def _solve_some(
    stack: Stack,
    source: RowSource,
    singly: int | None,
    limits: StackLimits,
    tuning: Tuning,
    room: Room,
    first: int,
    last: int,
    out: StackSolution,
) -> int:
    """Solve problems in their order until enough has been done for one call."""
    done, all_of, whole = 0, stack.problem, room.work
    while first < last and done < tuning.work_per_call:
        a, b = stack.end[first - 1] if first > 0 else 0, stack.end[first]
        n, m, width = b - a, stack.n_rows[first], padded(b - a)
        problem = DualProblem(
            all_of.linear[a:b],
            all_of.kink[a:b],
            all_of.lower[a:b],
            all_of.upper[a:b],
            all_of.group[a:b],
            all_of.row[a:b],
            all_of.start[a:b],
        )
        diagonal, place = stack.diagonal[a:b], source.place
        if len(place) > 0:
            place = place[a:b]
        work = Work(
            whole.beta[:width],
            whole.grad[:width],
            whole.rise[:width],
            whole.fall[:width],
            whole.lower[:width],
            whole.upper[:width],
            whole.kink[:width],
            whole.diagonal[:width],
            whole.row[:width],
            whole.start,
            whole.gained,
            curvature_floor(diagonal),
        )
        cache = RowCache(
            room.rows[: m * width].reshape(m, width),
            room.rows[: m * width],
            room.cache.owner[:m],
            room.cache.slot[:m],
            room.cache.last_use[:m],
            room.cache.clock,
            room.cache.n_used,
            room.cache.n_misses,
        )
        own = RowSource(
            source.kind,
            source.gamma,
            source.coef0,
            source.degree,
            source.columns,
            source.norms,
            place,
        )
        kernel = KernelRows(cache, own, work.row, room.everything)
        _begin(problem, diagonal, work, kernel, room)
        made, is_met = _solve_one(problem, work, kernel, room, singly, limits, tuning)
        # The certificate is about slopes that are summed anew.
        _sum_gradient(problem, work, cache, room.weight)
        for k in range(n):
            out.beta[a + k], out.grad[a + k] = work.beta[k], work.grad[k]
        out.n_moves[first], out.n_computed[first] = made, cache.n_used[0]
        is_refined = is_met or not (limits.is_exact or limits.has_margin)
        out.has_converged[first] = is_refined
        done += n * made
        first += 1
    return first


@jit
def _begin(
    problem: DualProblem,
    diagonal: FloatVector,
    work: Work,
    kernel: KernelRows,
    room: Room,
) -> None:
    """The start of a problem, whose variables are sorted by group.

    Variables that are fixed at zero fill up the last group, for the sake of vectorised
    loops.
    """
    n, width, cache, start = len(diagonal), len(work.beta), kernel.cache, work.start
    for s in range(len(cache.owner)):
        cache.owner[s] = cache.slot[s] = NOBODY
        cache.last_use[s] = 0
    cache.clock[0] = cache.n_used[0] = cache.n_misses[0] = 0
    for g in range(len(start)):
        start[g] = 0
    for k in range(n):
        start[max(problem.group[k], 0) + 1] = k + 1
        work.beta[k], work.kink[k] = problem.start[k], problem.kink[k]
        work.lower[k], work.upper[k] = problem.lower[k], problem.upper[k]
        work.diagonal[k], work.row[k] = diagonal[k], problem.row[k]
    for k in range(n, width):
        work.beta[k] = work.kink[k] = work.lower[k] = work.upper[k] = 0.0
        work.grad[k], work.diagonal[k], work.row[k] = 0.0, 1.0, 0
    start[len(start) - 1] = width
    work.gained[0] = 0.0
    set_masks(work, 0, width)
    for k in range(n):
        if work.beta[k] != 0.0 and cache.slot[work.row[k]] == NOBODY:
            compute_missing(cache, kernel.source, work.row[k], k)
    _sum_gradient(problem, work, cache, room.weight)


@jit
def _solve_one(
    problem: DualProblem,
    work: Work,
    kernel: KernelRows,
    room: Room,
    singly: int | None,
    limits: StackLimits,
    tuning: Tuning,
) -> tuple[int, bool]:
    """(moves made, whether the goal is met)."""
    goal, exact = tuning.inner_tol * limits.tol, 1.0
    for k in range(len(problem.linear)):
        exact = max(exact, abs(work.grad[k]))
    exact *= tuning.exact_tol
    if limits.is_exact:
        goal = min(exact, goal)
    made, is_met = _converge(problem, work, kernel, room, singly, goal, limits, tuning)
    # Coefficients of nu-SVC are divided by the margin, and so is what is left of the
    # violation: a small margin needs a finer tolerance.
    while limits.has_margin and is_met and goal > exact:
        share = tuning.margin_share * _margin(work)
        if goal <= share:
            break
        goal *= tuning.refinement
        if share > 0.0:
            goal = min(goal, share)
        goal = max(goal, exact)
        more, is_met = _converge(
            problem, work, kernel, room, singly, goal, limits, tuning
        )
        made += more
    return made, is_met


@jit
def _margin(work: Work) -> float:
    """Half the distance of the levels of two groups, which are nearly optimal."""
    margin, sign = 0.0, 0.5
    for g in range(2):
        lowest, highest = np.inf, -np.inf
        for k in range(work.start[g], work.start[g + 1]):
            lowest = min(lowest, work.grad[k] + work.rise[k])
            highest = max(highest, work.grad[k] + work.fall[k])
        if lowest == np.inf or highest == -np.inf:  # all variables at the same bound
            lowest, highest = min(lowest, highest), max(lowest, highest)
            highest = lowest = lowest if lowest > -np.inf else highest
        margin += sign * 0.5 * (lowest + highest)
        sign = -sign
    return margin


@jit
def _converge(
    problem: DualProblem,
    work: Work,
    kernel: KernelRows,
    room: Room,
    singly: int | None,
    goal: float,
    limits: StackLimits,
    tuning: Tuning,
) -> tuple[int, bool]:
    """SMO, then the active-set method, then SMO: (moves, whether the goal is met)."""
    made, n, is_second_order = 0, len(problem.linear), limits.is_second_order
    most = tuning.moves_before_active_set * n
    for turn in range(2):
        if singly is not None:
            why, more, _, _ = coordinate_epoch(
                work, kernel.cache, kernel.source, goal, most, is_second_order
            )
        else:
            why, more, _, _ = pair_epoch(
                work, kernel.cache, kernel.source, goal, most, is_second_order
            )
        made += more
        if why != OUT_OF_MOVES or turn > 0:
            return made, why == CONVERGED
        most = tuning.max_moves * n
        n_groups = 0 if singly is not None else len(work.start) - 1
        clear_free_set(room.free, len(work.beta))
        members = room.everything[: len(work.beta)]
        steps, _ = solve_active_set(
            work,
            members,
            kernel.cache,
            kernel,
            room.free,
            ActiveSetLimits(goal, most, n_groups),
        )
        made += steps
        # The slopes of that method may have drifted.
        _sum_gradient(problem, work, kernel.cache, room.weight)
    return made, False


@jit
def _sum_gradient(
    problem: DualProblem, work: Work, cache: RowCache, weight: FloatVector
) -> None:
    """grad = K @ beta + linear, from rows that are all there.

    Variables of one row are added first: in nu-SVR they may be large, and cancel.
    """
    for row in range(len(cache.slot)):
        weight[row] = 0.0
    for k in range(len(problem.linear)):
        weight[problem.row[k]] += work.beta[k]
        work.grad[k] = problem.linear[k]
    for row in range(len(cache.slot)):
        if weight[row] != 0.0:
            add_row(work.grad, cache.rows[cache.slot[row]], weight[row])


@jit_new
def certify(
    stack: Stack, tol: float, out: StackSolution, first: int, last: int
) -> None:
    """What slopes in float64 say about the points reached."""
    all_of = stack.problem
    for number in range(first, last):
        a, b = stack.end[number - 1] if number > 0 else 0, stack.end[number]
        problem = DualProblem(
            all_of.linear[a:b],
            all_of.kink[a:b],
            all_of.lower[a:b],
            all_of.upper[a:b],
            all_of.group[a:b],
            all_of.row[a:b],
            all_of.start[a:b],
        )
        beta, grad = out.beta[a:b], out.grad[a:b]
        level = group_levels(problem, beta, grad)
        violation = kkt_violation(problem, beta, grad)
        for g in range(stack.n_groups):
            out.level[number, g] = level[g]
        out.violation[number] = violation
        out.objective[number] = dual_objective(problem, beta, grad)
        out.gap[number] = dual_gap(problem, beta, grad, level, tol)
        if violation > tol:
            out.has_converged[number] = 0
