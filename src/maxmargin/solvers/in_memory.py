"""How is one problem solved on all of K? In a compiled call or a few.

Where no value of K has been computed yet, or samples are few, every variable is a
member of the working set: SMO and an active-set method solve the problem as a stack of
one (`stack_solver`). Where many samples have K in memory, as in searches and folds, the
working set of decomposition pays as well, and its rounds are compiled (`rounds`).
"""

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.gram import Gram, RowsGram, whole_matrix
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.memory import SPARE_SIDE, pass_on, promised_square
from maxmargin.kernels.source import RowSource, memory_source
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.free_inverse import MAX_GROUPS
from maxmargin.solvers.gradient import (
    check_finite,
    make_point,
    solution_at,
    weight_of,
)
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, PairRule, Solution, Status
from maxmargin.solvers.rounds import RoundLimits, kernel_in_memory, rounds_until
from maxmargin.solvers.stack import stack_of
from maxmargin.solvers.stack_solver import solve_stack
from maxmargin.solvers.tuning import Tuning
from maxmargin.solvers.work import gather_work
from maxmargin.solvers.working_set import SINGLY, make_working_set
from maxmargin.typing import FloatVector, IntVector


def can_solve(options: Options, *, is_held: bool = False) -> bool:
    """Whether compiled calls may do it alone: no callback, no limit of the user's.

    Where K is at hand, a call is short, and a time limit is looked at after it.
    """
    has_limit = options.max_iter >= 0 or (
        options.time_limit is not None and not is_held
    )
    return options.method == "auto" and options.callback is None and not has_limit


def fits_in_memory(
    problem: DualProblem, gram: Gram, options: Options, max_samples: int
) -> bool:
    """Whether all of K may be computed: of so many samples, within the cache's size."""
    n, is_held = len(problem.linear), isinstance(gram, HeldGram)
    if isinstance(gram, HeldGram):
        if _is_for_rounds(problem, gram, options.tuning):
            return can_solve(options, is_held=True)
        max_samples = options.tuning.max_kept_samples
    if gram.n > max_samples or problem.n_groups > MAX_GROUPS:
        return False
    if not can_solve(options, is_held=is_held):
        return False
    n_bytes = 8 * gram.n * (n if is_held else gram.n + n)  # K, and rows of variables
    return not isinstance(gram, RowsGram) and n_bytes <= options.cache_bytes


def solve_in_memory(
    problem: DualProblem,
    gram: Gram,
    pace: Pace,
    image: FloatVector | None = None,
) -> tuple[Solution, bool]:
    """The point reached, and whether it is the solution; variables sorted by group.

    `image` is K @ start. Where K was in memory before, slopes begin with that, and no
    row is read but those of variables that move.
    """
    options, row = pace.options, problem.row
    tuning = options.tuning
    if isinstance(gram, HeldGram):
        if image is None:
            image = gram.image(weight_of(problem, problem.start, gram.n))
        if _is_for_rounds(problem, gram, tuning):
            return _solve_by_rounds(problem, gram, pace, image)
    source = _row_source(gram, row, tuning)
    place = source.place if len(source.place) else row
    stack = stack_of(problem, place, gram.diagonal()[row], np.array([len(row)]))
    is_exact = gram.n < tuning.exact_below and options.polish
    slopes = None
    if isinstance(gram, HeldGram) and image is not None:
        slopes = image[row] + problem.linear
        check_finite(slopes)
    found = solve_stack(stack, source, options, is_exact, 1, slopes)
    return found.solution(problem.n_groups), bool(found.has_converged[0])


def _is_for_rounds(problem: DualProblem, gram: HeldGram, tuning: Tuning) -> bool:
    """Whether a working set pays, where no row of K has to be computed."""
    is_many = gram.n > tuning.max_all_members
    return is_many and problem.n_groups <= 1 and len(problem.linear) == gram.n


def _solve_by_rounds(
    problem: DualProblem, gram: HeldGram, pace: Pace, image: FloatVector
) -> tuple[Solution, bool]:
    """Rounds of a working set, slice by slice while they progress."""
    options, n = pace.options, gram.n
    tuning, tol = options.tuning, options.tol
    singly = SINGLY if problem.is_free_of_equalities else None
    is_second = options.working_set is PairRule.SECOND_ORDER
    grad = image + problem.linear
    check_finite(grad)
    work = gather_work(problem, np.arange(n), problem.start, grad, gram.diagonal())
    memory = kernel_in_memory(gram.part)
    square = promised_square(min(n, SPARE_SIDE))
    working_set = make_working_set(n, problem.n_groups, square, tuning.compiled_rounds)
    n_moves, violation, has_room, least = 0, np.inf, True, np.inf
    most = left = tuning.moves_of_rounds * n
    try:
        while has_room and violation > tol and not (n_moves and pace.is_late()):
            raise_if_stopped()
            made, violation, has_room = rounds_until(
                work,
                working_set,
                memory,
                None,
                None,
                singly,
                RoundLimits(tol, tuning.stack.inner_tol * tol, left, is_second),
                tuning.compiled_rounds,
            )
            n_moves, left = n_moves + made, left - made
            if made == 0 or (left <= 0 and not violation < least):
                break
            if left <= 0:
                least = violation
                most = left = min(4 * most, tuning.stack.work_per_call // n)
    finally:
        pass_on(square)
    point = make_point(problem, work.beta, work.grad)
    solution = solution_at(problem, point, Status.CONVERGED, tol, n_moves)
    return solution, point.violation <= tol


def _row_source(gram: Gram, row: IntVector, tuning: Tuning) -> RowSource:
    """Rows computed when needed, where they are short; else from all of K."""
    if isinstance(gram, HeldGram):
        return memory_source(gram.K, gram.part.at[row])
    source = gram.source(row)
    if source is not None and len(source.columns) <= tuning.max_features_of_rows:
        return source
    return memory_source(whole_matrix(gram), row)
