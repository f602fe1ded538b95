"""How is one problem of few samples solved? In a compiled call or a few, on all of K.

Where no value of K has been computed yet, or samples are few, every variable is a
member of the working set: SMO and an active-set method solve the problem as a stack of
one (`stack_solver`).
"""

import numpy as np

from maxmargin.kernels.gram import Gram, RowsGram, whole_matrix
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.source import RowSource, memory_source
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.free_inverse import MAX_GROUPS
from maxmargin.solvers.gradient import check_finite, weight_of
from maxmargin.solvers.iterate import Iterate, without_solution
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options
from maxmargin.solvers.stack import stack_of
from maxmargin.solvers.stack_solver import solve_stack
from maxmargin.solvers.tuning import Tuning
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
    if is_held:
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
) -> Iterate:
    """The point reached; variables are sorted by group. `image` is K @ start.

    Where K was in memory before, slopes begin with that, and no row is read but those
    of variables that move.
    """
    options, row = pace.options, problem.row
    source = _row_source(gram, row, options.tuning)
    place = source.place if len(source.place) else row
    stack = stack_of(problem, place, gram.diagonal()[row], np.array([len(row)]))
    is_exact = gram.n < options.tuning.exact_below and options.polish
    slopes = None
    if isinstance(gram, HeldGram):
        if image is None:
            image = gram.image(weight_of(problem, problem.start, gram.n))
        slopes = image[row] + problem.linear
        check_finite(slopes)
    found = solve_stack(stack, source, options, is_exact, 1, slopes)
    reached = found.iterate(problem.n_groups)
    pace.n_iter += found.n_moves
    return reached if np.isfinite(reached.violation) else without_solution(problem)


def _row_source(gram: Gram, row: IntVector, tuning: Tuning) -> RowSource:
    """Rows computed when needed, where they are short; else from all of K."""
    if isinstance(gram, HeldGram):
        return memory_source(gram.K, gram.part.at[row])
    source = gram.source(row)
    if source is not None and len(source.columns) <= tuning.max_features_of_rows:
        return source
    return memory_source(whole_matrix(gram), row)
