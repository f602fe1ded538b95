"""How does a linear machine tell many classes apart, and how does it predict?

Two classes are one problem. More are one problem each, against the rest (Rifkin &
Klautau, JMLR 5, 2004), on threads over the same samples; or all at once (Crammer &
Singer, JMLR 2, 2001). Whatever was solved, a hyperplane is what is left of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.design import Design
from maxmargin.data.labels import Labels
from maxmargin.data.rows import DenseRows, Rows, SparseRows
from maxmargin.errors import InvalidInput
from maxmargin.problems.linear import LinearProblem
from maxmargin.solvers.result import Solution
from maxmargin.typing import FloatMatrix, FloatVector

TASK_VALUES = 1 << 18  # stored values of test rows per task of a thread

LARGEST_NORM = 1e150  # of a sample, squared: products of two must stay finite
LARGEST_TARGET = 1e100  # its square, times C, must stay finite too
MOST_FEATURES = 1 << 27  # a vector of weights is 1 GiB then, and solvers need several

Start = FloatVector | None
Solve = Callable[[LinearProblem, Start], Solution]


@dataclass(frozen=True)
class Hyperplanes:
    """decision(x) = <coef, x> + intercept, a row each, and the evidence for them."""

    coef: FloatMatrix
    intercept: FloatVector
    solutions: list[Solution]


def fit_one(problem: LinearProblem, solve: Solve, start: Start = None) -> Hyperplanes:
    """A problem with its targets."""
    solution = solve(problem, start)
    return _read([solution], weights_of(solution)[None], problem.design)


def fit_one_vs_rest(
    problem: LinearProblem,
    labels: Labels,
    solve: Solve,
    starts: Sequence[Start] | None = None,
) -> Hyperplanes:
    """Class k against the others for every k; two classes are one problem.

    The problem's own targets are not looked at.
    """
    positives = [1] if labels.n_classes == 2 else list(range(labels.n_classes))
    starts = starts or [None] * len(positives)
    tasks = [
        partial(_fit_class, problem, labels.code == k, solve, start)
        for k, start in zip(positives, starts, strict=True)
    ]
    solutions = run_all(tasks, problem.design.n_threads)
    weights = np.stack([weights_of(solution) for solution in solutions])
    return _read(solutions, weights, problem.design)


def read_joint(solution: Solution, n_classes: int, design: Design) -> Hyperplanes:
    """One solution that holds a hyperplane per class; of two, their difference."""
    weights = weights_of(solution).reshape(n_classes, -1)
    if n_classes == 2:
        weights = weights[1:] - weights[:1]
    return _read([solution], weights, design)


def _fit_class(
    problem: LinearProblem, is_positive: Any, solve: Solve, start: Start
) -> Solution:
    return solve(problem._replace(target=np.where(is_positive, 1.0, -1.0)), start)


def weights_of(solution: Solution) -> FloatVector:
    """The weights of the features, the constant one's last."""
    assert solution.weight is not None, "a linear solver gives weights"
    return solution.weight


def _read(
    solutions: list[Solution], weights: FloatMatrix, design: Design
) -> Hyperplanes:
    """The weight of the constant feature, times its value, is the intercept."""
    intercept = np.zeros(len(weights))
    if design.bias != 0.0:
        intercept = design.bias * weights[:, -1]
    return Hyperplanes(weights[:, : design.n_features].copy(), intercept, solutions)


# What must stay finite.


def check_size(design: Design) -> None:
    """Refuse samples whose products overflow, or whose weights do not fit memory."""
    if design.n_features > MOST_FEATURES:
        raise InvalidInput(
            f"A linear machine keeps a weight for each of {design.n_features:,} "
            f"features; at most {MOST_FEATURES:,} are supported. Number the features "
            "that occur from 1 on, or use a kernel machine, which keeps only values "
            "that are not zero."
        )
    if not design.squared_norms.max() <= LARGEST_NORM:
        raise InvalidInput(
            "Samples are too large for products of two of them to be finite in "
            "float64. The input data may contain large values and need to be "
            "preprocessed: scale the features."
        )


def check_targets(target: FloatVector) -> None:
    """Refuse targets whose squares overflow."""
    if not np.abs(target).max(initial=0.0) <= LARGEST_TARGET:
        raise InvalidInput(
            "Targets are too large for their squares to be finite in float64: scale y."
        )


def cost_of(C: float, weight: FloatVector) -> FloatVector:
    """C times the weights, which must not have become 0 or infinite."""
    with np.errstate(over="ignore", under="ignore"):  # looked at next
        cost = C * weight
    if not (cost.min() > 0.0 and cost.max() < np.inf):
        raise InvalidInput(
            f"C times the weights must be above 0 and finite in float64; C is {C:g}, "
            f"weights range from {weight.min():g} to {weight.max():g}."
        )
    return cost


def check_weights(*weights: FloatMatrix) -> None:
    """Refuse an answer that has overflowed on its way."""
    if not all(np.isfinite(each).all() for each in weights):
        raise InvalidInput(
            "The weights are not finite: the samples, the targets or C hold values so "
            "large that sums overflow; scale them."
        )


# Predicting.


def linear_heights(X: Any, coef: FloatMatrix, n_threads: int) -> FloatMatrix:
    """X @ coef.T in float64; a row alone gets the value that it gets among others.

    X is read in blocks, and never copied whole.
    """
    n, n_values = X.shape[0], X.nnz if sp.issparse(X) else X.size
    out = np.empty((n, len(coef)))
    columns = np.ascontiguousarray(coef.T)
    step = max(1, TASK_VALUES * n // max(1, n_values))

    def fill(first: int) -> None:
        raise_if_stopped()
        last = min(first + step, n)
        out[first:last] = _rows_between(X, first, last).times(columns)

    run_all([partial(fill, first) for first in range(0, n, step)], n_threads)
    return out


def _rows_between(X: Any, first: int, last: int) -> Rows:
    if not sp.issparse(X):
        return DenseRows(X[first:last])
    begin, end = X.indptr[first], X.indptr[last]
    indptr = X.indptr[first : last + 1] - begin
    return SparseRows((X.data[begin:end], X.indices[begin:end], indptr), X.shape[1])
