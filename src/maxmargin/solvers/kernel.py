"""Which solver for which kernel problem? All of K for few samples, decomposition else.

A working set needs the fewest rows of K; where all of K is quickly at hand it has
nothing to save. What float32 rows leave to be done, sequential minimal optimisation
does, in float64.
"""

from dataclasses import replace

import numpy as np

from maxmargin.kernels import single
from maxmargin.kernels.gram import Gram, RowsGram
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.decomposition import decompose
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.gradient import Reached, solution_at
from maxmargin.solvers.in_memory import fits_in_memory, solve_in_memory
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Solution
from maxmargin.typing import FloatVector


def solve(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    image: FloatVector | None = None,
) -> Solution:
    """Solve a dual problem to `options.tol`, certified in float64.

    See `solve_smo` for the parameters; `options.method` may choose. `image` is K @
    start where it is known already, as exact as the rows of K at hand.
    """
    order = None
    if problem.n_groups > 1:
        order = np.argsort(problem.group, kind="stable")
        problem = problem.reordered(order)
    solution = _solve_sorted(problem, gram, options, image)
    if order is None:
        return solution
    assert solution.grad is not None, "kernel machines know their slopes"
    beta, grad = np.empty_like(solution.beta), np.empty_like(solution.grad)
    beta[order], grad[order] = solution.beta, solution.grad
    return replace(solution, beta=beta, grad=grad)


def _solve_sorted(
    problem: DualProblem, gram: Gram, options: Options, image: FloatVector | None
) -> Solution:
    """The variables of each group stand together."""
    pace = Pace(options, len(problem.linear))
    tuning = options.tuning
    can_decompose = _can_decompose(gram, options)
    is_small = fits_in_memory(problem, gram, options, tuning.max_samples)
    if not is_small and can_decompose:
        max_members = len(problem.linear)
        is_small = fits_in_memory(problem, gram, options, tuning.max_kept_samples)
        if is_small:
            max_members = int(tuning.whole_share * max_members)
        reached = decompose(problem, gram, options, pace, max_members, image)
        if reached.status is not None:
            return _solution(problem, reached, pace)
        problem, image = problem.starting_at(reached.beta), None
    if is_small:
        solution, has_converged = solve_in_memory(problem, gram, pace, image)
        pace.n_iter += solution.n_iter
        if has_converged and pace.n_iter == solution.n_iter:
            return solution
        if has_converged:
            return replace(solution, n_iter=pace.n_iter)
        if np.isfinite(solution.violation):
            problem = problem.starting_at(solution.beta)
        if can_decompose:  # many free variables: all of its Newton steps are left
            reached = decompose(problem, gram, options, pace, len(problem.linear))
            if reached.status is not None:
                return _solution(problem, reached, pace)
            problem = problem.starting_at(reached.beta)
    return solve_smo(problem, gram, options, pace)


def _can_decompose(gram: Gram, options: Options) -> bool:
    if options.method == "smo":
        return False
    if isinstance(gram, RowsGram):  # a function that only knows whole rows
        return False
    if not gram.bound() <= single.LARGEST:
        return False
    return options.method == "grow" or gram.n >= options.tuning.min_decomposed


def _solution(problem: DualProblem, reached: Reached, pace: Pace) -> Solution:
    assert reached.status is not None
    point, counts = reached.point(problem), (reached.cache_hits, reached.cache_misses)
    pace.report(point.violation, point.objective, len(point.beta), True, *counts)
    tol, n_iter = pace.options.tol, pace.n_iter
    return solution_at(problem, point, reached.status, tol, n_iter, counts)
