"""When is a kernel machine a linear one? When its kernel is, and then w is shorter.

With the linear kernel and many more samples than features, the same dual problem is
solved through w in a fraction of the time, unless it is easy: then a few moves of SMO
are enough, and they are tried first. The answer is held to the same rule: the violation
of all variables, from a gradient computed in float64.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from maxmargin.data.design import Design
from maxmargin.data.rows import DenseRows
from maxmargin.kernels.functions import Linear
from maxmargin.kernels.gram import Gram, VectorGram
from maxmargin.problems.dual import DualProblem, restored
from maxmargin.problems.linear import LinearProblem, Loss
from maxmargin.solvers.iterate import make_iterate, solution_at
from maxmargin.solvers.kernel import solve
from maxmargin.solvers.linear import MOST_FORMED, solve_linear
from maxmargin.solvers.result import Options, Solution, Status
from maxmargin.solvers.tuning import Tuning
from maxmargin.typing import FloatVector

SETTLED = 1e-9  # of its box: a variable so near to a bound is at it


def solve_by_weights(
    problem: DualProblem, gram: Gram, options: Options
) -> Solution | None:
    """The solution to options.tol, or None where this is not the way to it."""
    tuning = options.tuning
    linear = as_linear(problem, gram, tuning)
    if linear is None:
        return None
    n, d = gram.n, linear.design.n_features
    if options.method == "auto" and options.max_iter < 0 and options.callback is None:
        per_sample = tuning.tried_per_sample * n
        n_tried = int(max(per_sample, tuning.tried_per_product * d * (d + 10)))
        first = solve(problem, gram, replace(options, max_iter=n_tried))
        if first.status is Status.CONVERGED:
            return first
        problem = problem.starting_at(first.beta)
    finer = replace(options, tol=tuning.tol_by_weights * options.tol, max_iter=-1)
    start = problem.start if problem.start.any() else None
    found = solve_linear(linear, finer, "corners", start)
    beta = restored(problem, _settled(problem, found.beta))
    design = linear.design
    weight = design.transposed_times(beta)
    if linear.is_intercept_free:
        weight[-1] = 0.0
    point = make_iterate(problem, beta, design.times(weight) + problem.linear)
    if point.violation > options.tol:
        return None
    point = point._replace(status=Status.CONVERGED)
    return solution_at(problem, point, options.tol, found.n_iter)


def _settled(problem: DualProblem, beta: FloatVector) -> FloatVector:
    """Variables next to a bound, or to zero, put there."""
    near = SETTLED * (problem.upper - problem.lower)
    beta = np.where(np.abs(beta) <= near, 0.0, beta)
    beta = np.where(beta - problem.lower <= near, problem.lower, beta)
    return np.where(problem.upper - beta <= near, problem.upper, beta)


def as_linear(problem: DualProblem, gram: Gram, tuning: Tuning) -> LinearProblem | None:
    """The same problem stated over weights, where that is possible and pays."""
    if not isinstance(gram, VectorGram) or not isinstance(gram.kernel, Linear):
        return None
    n, d = gram.n, gram.rows.n_columns
    least = max(tuning.min_by_weights, tuning.min_by_weights_per_feature * d)
    if len(problem.linear) != n or n < least or d >= MOST_FORMED:
        return None
    if problem.n_groups > 1 or not np.isfinite(problem.upper - problem.lower).all():
        return None
    bias = 0.0 if problem.is_free_of_equalities else 1.0
    design = Design(_matrix(gram), bias, gram.n_threads)
    loss = _loss(problem)
    return LinearProblem(
        design=design,
        target=np.ones(n) if loss is Loss.ONE_CLASS else -problem.linear,
        cost=np.maximum(problem.upper, -problem.lower),
        loss=loss,
        epsilon=float(problem.kink[0]),
        is_intercept_free=bias != 0.0,
        total=float(problem.start.sum()) if loss is Loss.ONE_CLASS else 0.0,
    )


def _loss(problem: DualProblem) -> Loss:
    if (problem.lower < 0.0).all() and (problem.upper > 0.0).all():
        return Loss.EPSILON
    return Loss.HINGE if problem.linear.any() else Loss.ONE_CLASS


def _matrix(gram: VectorGram) -> FloatVector | sp.csr_array:
    rows = gram.rows
    if isinstance(rows, DenseRows):
        return rows.values
    return sp.csr_array(rows.parts, shape=(len(rows), rows.n_columns))
