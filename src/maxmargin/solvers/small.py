"""How is a tiny problem solved in a fraction of a millisecond? With nothing around it.

All of K in float64, one call of compiled code to nearly the last digit, one look at the
result. Cross-validation on small sets solves thousands of these.
"""

import numpy as np

from maxmargin.kernels.cache import hold_all
from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.kernels.source import no_source
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.coordinates import epoch_of
from maxmargin.solvers.gradient import make_point, solution_at
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.pairs import CONVERGED
from maxmargin.solvers.result import Options, Solution, Status, WorkingSet
from maxmargin.solvers.work import gather_work

MOST = 300  # variables
SHARP = 1e-10  # violation, relative to the slopes at the start
MOVES = 30  # per variable: who needs more, needs more than moves


def is_tiny(problem: DualProblem, options: Options) -> bool:
    """Whether a single call will do: nobody listens, and no limit is set.

    A one-class machine has no linear part, and samples on its very boundary: only the
    polish tells these from outliers.
    """
    is_plain = options.callback is None and options.time_limit is None
    is_plain = is_plain and options.max_iter < 0 and options.polish
    is_small = len(problem.linear) < MOST and problem.n_groups <= 1
    return is_plain and is_small and bool(problem.linear.any())


def solve_tiny(
    problem: DualProblem, gram: Gram, options: Options, pace: Pace
) -> Solution | None:
    """The solution to nearly the last digit, or None if moves do not get there."""
    everything = np.arange(gram.n)
    K = gram_block(gram, everything, everything)
    if not np.isfinite(K).all():
        return None
    is_plain = np.array_equal(problem.row, everything)
    rows = K if is_plain else np.ascontiguousarray(K[:, problem.row])
    square = rows if is_plain else rows[problem.row]  # a row for every variable
    diagonal, n = K.diagonal(), len(problem.linear)
    grad = problem.start @ square + problem.linear
    work = gather_work(problem, np.arange(n), problem.start, grad, diagonal)
    sharp = SHARP * max(1.0, float(np.abs(grad).max()))
    is_second = options.working_set is WorkingSet.SECOND_ORDER
    cache = hold_all(rows)
    why, made, _, _ = epoch_of(problem)(
        work, cache, no_source(), sharp, MOVES * n, is_second
    )
    beta = work.beta
    point = make_point(problem, beta, beta @ square + problem.linear)
    if why != CONVERGED or point.violation > options.tol:
        return None
    pace.n_iter += made
    counts = 0, gram.n
    return solution_at(problem, point, Status.CONVERGED, options.tol, made, counts)
