"""Which solver for which kernel problem? All of K for few samples, decomposition else.

A working set needs the fewest rows of K; where all of K is quickly at hand it has
nothing to save. What float32 rows leave to be done, sequential minimal optimisation
does, in float64.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from maxmargin.kernels import single
from maxmargin.kernels.gram import Gram, RowsGram
from maxmargin.problems.dual import DualProblem
from maxmargin.solvers.decomposition import decompose, is_in_memory
from maxmargin.solvers.descent import solve_smo
from maxmargin.solvers.in_memory import fits_in_memory, solve_in_memory
from maxmargin.solvers.iterate import Iterate, solution_at
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Solution
from maxmargin.typing import FloatVector

# From a problem, its kernel, the limits, and K @ start where that is known.
Method = Callable[[DualProblem, Gram, Pace, FloatVector | None], Iterate]


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
    """Method after method, each from where the one before has ended."""
    pace = Pace(options, len(problem.linear))
    for method in methods(problem, gram, options):
        reached = method(problem, gram, pace, image)
        if reached.status is not None:
            break
        problem, image = problem.starting_at(reached.beta), None
    pace.report(
        reached.violation,
        reached.objective,
        len(reached.beta),
        True,
        reached.cache_hits,
        reached.cache_misses,
    )
    return solution_at(problem, reached, options.tol, pace.n_iter)


def methods(problem: DualProblem, gram: Gram, options: Options) -> list[Method]:
    """What to try, one after the other; SMO comes last, and never fails.

    ================================ ==========================================
    K in memory, a row a variable    rounds on it
    up to `max_samples`              all of K, then rounds
    up to `max_kept_samples`         rounds, but where half are members all of K
    more; or a callback or a limit   rounds
    callables; values beyond float32 nothing but SMO
    ================================ ==========================================
    """
    tuning = options.tuning
    if options.method == "smo":
        return [solve_smo]
    if gram.n > tuning.max_all_members and is_in_memory(problem, gram):
        return [decompose, solve_smo]
    is_in_rounds = _can_decompose(gram, options)
    rounds: list[Method] = [decompose] if is_in_rounds else []
    if fits_in_memory(problem, gram, options, tuning.max_samples):
        # Of many free variables, all Newton steps are left to rounds.
        return [solve_in_memory, *rounds, solve_smo]
    if is_in_rounds and fits_in_memory(problem, gram, options, tuning.max_kept_samples):
        some_rounds = partial(decompose, max_share=tuning.whole_share)
        return [some_rounds, solve_in_memory, decompose, solve_smo]
    return [*rounds, solve_smo]


def _can_decompose(gram: Gram, options: Options) -> bool:
    if isinstance(gram, RowsGram):  # a function that only knows whole rows
        return False
    if not gram.bound() <= single.LARGEST:
        return False
    return options.method == "grow" or gram.n >= options.tuning.min_decomposed
