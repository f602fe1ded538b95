"""Which solver for which kernel problem? Small ones at once, large ones by growing.

A growing working set needs the fewest rows of K; where all of K is quickly at hand it
has nothing to save. What float32 rows leave to be done, sequential minimal optimisation
does, in float64.
"""

from maxmargin.kernels.gram import Gram, RowsGram
from maxmargin.problems.dual import DualProblem, dual_gap, dual_objective, group_levels
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.grow import Reached, grow
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Solution
from maxmargin.solvers.small import is_tiny, solve_tiny

METHODS = ("auto", "grow", "smo")
MANY = 300  # variables: below, a polish to the last digits costs little


def solve(problem: DualProblem, gram: Gram, options: Options) -> Solution:
    """Solve a dual problem to `options.tol`, certified in float64.

    See `solve_smo` for the parameters; `options.method` may choose.
    """
    pace = Pace(options, len(problem.linear))
    if options.method == "auto" and is_tiny(problem, options):
        found = solve_tiny(problem, gram, options, pace)
        if found is not None:
            return found
    if not _can_grow(problem, gram, options):
        return solve_smo(problem, gram, options, pace)
    reached = grow(problem, gram, options, pace)
    if reached.status is None:
        return solve_smo(problem._replace(start=reached.beta), gram, options, pace)
    return _solution(problem, reached, pace)


def _can_grow(problem: DualProblem, gram: Gram, options: Options) -> bool:
    if options.method == "smo" or problem.n_groups > 1:
        return False
    if isinstance(gram, RowsGram):  # a function that only knows whole rows
        return False
    return options.method == "grow" or len(problem.linear) >= MANY


def _solution(problem: DualProblem, reached: Reached, pace: Pace) -> Solution:
    beta, grad, violation, status, hits, misses = reached
    assert status is not None
    levels = group_levels(problem, beta, grad)
    objective = dual_objective(problem, beta, grad)
    pace.report(violation, objective, len(beta), True, hits, misses)
    return Solution(
        beta=beta,
        level=levels,
        status=status,
        n_iter=pace.n_iter,
        violation=violation,
        objective=objective,
        gap=dual_gap(problem, beta, grad, levels, pace.options.tol),
        cache_hits=hits,
        cache_misses=misses,
    )
