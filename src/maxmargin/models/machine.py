"""What does a solved dual problem say about the machine? One reading per machine."""

from dataclasses import dataclass

import numpy as np

from maxmargin.kernels.gram import Gram
from maxmargin.problems import (
    DualProblem,
    c_svc,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
    project_start,
)
from maxmargin.solvers import Options, Solution, solve
from maxmargin.typing import FloatVector

CANCELLED = 1e-14  # relative: what rounding leaves of a difference that is zero


@dataclass(frozen=True)
class Machine:
    """decision(x) = sum of coef_i K(x_i, x) + intercept, and the evidence for it."""

    coef: FloatVector  # one per training row
    intercept: float
    objective: float  # as LIBSVM prints it
    gap: float
    solution: Solution


def fit_c_svc(
    gram: Gram,
    y: FloatVector,
    C: FloatVector,
    options: Options,
    *,
    has_intercept: bool = True,
    start: FloatVector | None = None,
) -> Machine:
    """C-support vector classification of y = ±1."""
    problem = c_svc(y, C, has_intercept=has_intercept)
    return _read_plainly(_solve(problem, gram, options, start))


def fit_epsilon_svr(
    gram: Gram,
    z: FloatVector,
    C: FloatVector,
    options: Options,
    *,
    epsilon: float,
    has_intercept: bool = True,
    start: FloatVector | None = None,
) -> Machine:
    """epsilon-support vector regression."""
    problem = epsilon_svr(z, C, epsilon, has_intercept=has_intercept)
    return _read_plainly(_solve(problem, gram, options, start))


def fit_one_class(
    gram: Gram,
    weight: FloatVector,
    options: Options,
    *,
    nu: float,
    start: FloatVector | None = None,
) -> Machine:
    """One-class machine: the decision is positive inside."""
    return _read_plainly(_solve(one_class(weight, nu), gram, options, start))


def fit_nu_svc(
    gram: Gram,
    y: FloatVector,
    weight: FloatVector,
    options: Options,
    *,
    nu: float,
    start: FloatVector | None = None,
) -> Machine:
    """nu-support vector classification of y = ±1.

    The two levels are those of the margins; half their distance becomes 1.
    """
    solution = _solve(nu_svc(y, weight, nu), gram, options, start)
    upper, lower = solution.level
    margin, middle = 0.5 * float(upper - lower), 0.5 * float(upper + lower)
    if abs(middle) <= CANCELLED * (abs(upper) + abs(lower)):
        middle = 0.0  # a difference of equal numbers, not a direction
    with np.errstate(divide="ignore", invalid="ignore"):  # a margin of 0 is reported
        return Machine(
            coef=solution.beta / np.float64(margin),
            intercept=float(-middle / np.float64(margin)),
            objective=float(solution.objective / np.float64(margin) ** 2),
            gap=float(solution.gap / np.float64(margin) ** 2),
            solution=solution,
        )


def fit_nu_svr(
    gram: Gram,
    z: FloatVector,
    C: FloatVector,
    options: Options,
    *,
    nu: float,
    start: FloatVector | None = None,
) -> Machine:
    """nu-support vector regression: the variables above and below a row are added."""
    solution = _solve(nu_svr(z, C, nu), gram, options, start)
    above, below = np.split(solution.beta, 2)
    return Machine(
        coef=above + below,
        intercept=float(-solution.level.mean()),
        objective=solution.objective,
        gap=solution.gap,
        solution=solution,
    )


def _solve(
    problem: DualProblem, gram: Gram, options: Options, start: FloatVector | None
) -> Solution:
    if start is not None:
        problem = problem._replace(start=project_start(problem, start))
    return solve(problem, gram, options)


def _read_plainly(solution: Solution) -> Machine:
    level = float(solution.level[0]) if len(solution.level) else 0.0
    return Machine(
        coef=solution.beta,
        intercept=-level,
        objective=solution.objective,
        gap=solution.gap,
        solution=solution,
    )
