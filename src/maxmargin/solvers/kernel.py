"""Which solver for which kernel problem? Small ones at once, large ones by growing.

A growing working set needs the fewest rows of K; where all of K is quickly at hand it
has nothing to save. What float32 rows leave to be done, sequential minimal optimisation
does, in float64.
"""

from dataclasses import replace

from maxmargin.kernels.gram import Gram, RowsGram
from maxmargin.problems.dual import DualProblem, dual_gap, dual_objective, group_levels
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.grow import Reached, grow
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Solution, Status

METHODS = ("auto", "grow", "smo")
MANY = 1500  # variables


def solve(problem: DualProblem, gram: Gram, options: Options) -> Solution:
    """Solve a dual problem to `options.tol`, certified in float64.

    See `solve_smo` for the parameters; `options.method` may choose.
    """
    if not _can_grow(problem, gram, options):
        return solve_smo(problem, gram, options)
    reached = grow(problem, gram, options, Pace(options, len(problem.linear)))
    if reached.status is not None:
        return _solution(problem, reached, options)
    rest = replace(options, max_iter=options.max_iter)
    found = solve_smo(problem._replace(start=reached.beta), gram, rest)
    return replace(found, n_iter=found.n_iter + reached.n_iter)


def _can_grow(problem: DualProblem, gram: Gram, options: Options) -> bool:
    if options.method == "smo" or problem.n_groups > 1:
        return False
    if isinstance(gram, RowsGram):  # a function that only knows whole rows
        return False
    return options.method == "grow" or len(problem.linear) >= MANY


def _solution(problem: DualProblem, reached: Reached, options: Options) -> Solution:
    beta, grad = reached.beta, reached.grad
    levels = group_levels(problem, beta, grad)
    return Solution(
        beta=beta,
        level=levels,
        status=reached.status or Status.CONVERGED,
        n_iter=reached.n_iter,
        violation=reached.violation,
        objective=dual_objective(problem, beta, grad),
        gap=dual_gap(problem, beta, grad, levels, options.tol),
    )
