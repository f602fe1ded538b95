"""What does a solved dual problem say about the machine? One reading per machine."""

from dataclasses import dataclass

import numpy as np

from maxmargin.kernels.gram import Gram
from maxmargin.problems import DualProblem, project_start
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


def fit_decision(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None = None,
) -> Machine:
    """C-SVC, epsilon-SVR and one-class: the solution is the machine."""
    solution = _solve(problem, gram, options, start)
    level = float(solution.level[0]) if len(solution.level) else 0.0
    return Machine(
        coef=solution.beta,
        intercept=-level,
        objective=solution.objective,
        gap=solution.gap,
        solution=solution,
    )


def fit_margin(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None = None,
) -> Machine:
    """nu-SVC: the two levels are the margins', and half their distance becomes 1."""
    solution = _solve(problem, gram, options, start)
    upper, lower = solution.level
    margin, middle = np.float64(0.5 * (upper - lower)), 0.5 * float(upper + lower)
    if abs(middle) <= CANCELLED * (abs(upper) + abs(lower)):
        middle = 0.0  # a difference of equal numbers, not a direction
    with np.errstate(divide="ignore", invalid="ignore"):  # a margin of 0 is reported
        return Machine(
            coef=solution.beta / margin,
            intercept=float(-middle / margin),
            objective=float(solution.objective / margin**2),
            gap=float(solution.gap / margin**2),
            solution=solution,
        )


def fit_tube(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None = None,
) -> Machine:
    """nu-SVR: the variables above and below a row are added."""
    solution = _solve(problem, gram, options, start)
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
