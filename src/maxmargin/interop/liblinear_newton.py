"""How does LIBLINEAR minimise a smooth sum of losses? Newton steps, cut short.

Conjugate gradients, with a diagonal preconditioner, stop when the quadratic model no
longer falls by much; the step is halved until the objective falls enough. The tolerance
is of the gradient's length at w = 0, and loose, so that only the same steps end at the
same place. (Hsia, Chiang & Lin, ACML 2018; Galli & Lin, 2022.)
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from maxmargin.errors import NotAvailable
from maxmargin.problems.linear import LinearProblem, Loss, primal_objective
from maxmargin.typing import FloatVector

MODEL_TOL = 0.5  # of the model's mean fall: a step that gains less is the last
MIXED = 0.01  # share of the diagonal in the preconditioner
DECREASE = 0.01  # of the slope, that a step must gain
HALVINGS = 20
MAX_STEPS = 1000
FLAT = 1e-16  # curvature along a direction
UNCHANGED = 1e-12  # of the objective


class Step(NamedTuple):
    """Where a step led; number 0 is the start."""

    number: int
    objective: float
    slope: float
    n_inner: int
    length: float  # 0: the line search failed


class Minimum(NamedTuple):
    """The last point, and what led there."""

    weight: FloatVector
    steps: list[Step]
    is_reached: bool
    note: str = ""


Stop = Callable[[], bool]


class _Point(NamedTuple):
    weight: FloatVector
    z: FloatVector
    objective: float
    gradient: FloatVector


def minimise_in_steps(
    problem: LinearProblem, start: FloatVector, tol: float, stop: Stop
) -> Minimum:
    """Steps until the gradient is at most `tol` times as long as at w = 0."""
    goal = tol * float(np.linalg.norm(_point(problem, np.zeros_like(start)).gradient))
    here = _point(problem, start)
    size = float(np.linalg.norm(here.gradient))
    steps = [Step(0, here.objective, size, 0, 0.0)]
    while size > goal:
        if len(steps) > MAX_STEPS or stop():
            return Minimum(here.weight, steps, False, "max number of Newton iterations")
        direction, n_inner = _direction(problem, here)
        there, length = _search(problem, here, direction)
        if length == 0.0:
            return Minimum(here.weight, steps, False, "line search fails")
        gained = here.objective - there.objective
        here, size = there, float(np.linalg.norm(there.gradient))
        steps.append(Step(len(steps), here.objective, size, n_inner, length))
        if size > goal and abs(gained) <= UNCHANGED * abs(here.objective):
            return Minimum(here.weight, steps, False, "actred too small")
    return Minimum(here.weight, steps, True)


def dual_point_at(problem: LinearProblem, z: FloatVector) -> FloatVector:
    """Minus the derivative of each sample's loss at decision values z."""
    y, C = problem.target, problem.cost
    if problem.loss is Loss.LOGISTIC:
        return C * y * expit(-y * z)
    if problem.loss is Loss.SQUARED_HINGE:
        return 2.0 * C * y * np.maximum(1.0 - y * z, 0.0)
    _require_squared_epsilon(problem)
    rest = y - z
    sizes = np.maximum(np.abs(rest) - problem.epsilon, 0.0)
    point: FloatVector = 2.0 * C * np.sign(rest) * sizes
    return point


def _curvature(problem: LinearProblem, z: FloatVector) -> FloatVector:
    """The second derivative of each sample's loss."""
    y, C = problem.target, problem.cost
    if problem.loss is Loss.LOGISTIC:
        share = expit(y * z)
        return C * share * (1.0 - share)
    if problem.loss is Loss.SQUARED_HINGE:
        return 2.0 * C * (y * z < 1.0)
    _require_squared_epsilon(problem)
    return 2.0 * C * (np.abs(y - z) > problem.epsilon)


def _require_squared_epsilon(problem: LinearProblem) -> None:
    """The last of the three losses that have a second derivative."""
    if problem.loss is not Loss.SQUARED_EPSILON:
        raise NotAvailable(
            "Newton's method with trust regions needs a smooth loss, got "
            f"{problem.loss.name}."
        )


def _point(problem: LinearProblem, weight: FloatVector) -> _Point:
    z = problem.design.times(weight)
    return _at(problem, weight, z, primal_objective(problem, weight, z))


def _at(
    problem: LinearProblem, weight: FloatVector, z: FloatVector, objective: float
) -> _Point:
    pull = problem.design.transposed_times(dual_point_at(problem, z))
    return _Point(weight, z, objective, problem.penalty * weight - pull)


def _direction(problem: LinearProblem, here: _Point) -> tuple[FloatVector, int]:
    """Roughly the Newton direction, and how many inner steps it took."""
    design, penalty = problem.design, problem.penalty
    theta = _curvature(problem, here.z)
    diagonal = penalty + design.squares_times(theta)
    scale = (1.0 - MIXED) + MIXED * diagonal
    found = np.zeros_like(here.weight)
    rest = -here.gradient
    scaled = rest / scale
    along = scaled.copy()
    product = float(scaled @ rest)
    goal = min(MODEL_TOL, np.sqrt(np.sqrt(product)))
    most = max(len(found), 5)
    model = 0.0
    for n_inner in range(1, most + 1):
        image = penalty * along + design.curved_times(theta, along)
        bend = float(along @ image)
        if bend <= FLAT:
            return found, n_inner
        found += product / bend * along
        rest -= product / bend * image
        fallen = -0.5 * (float(found @ rest) - float(found @ here.gradient))
        change = fallen - model
        if fallen > 0.0 or change > 0.0 or n_inner * change >= goal * fallen:
            return found, n_inner
        model = fallen
        scaled = rest / scale
        before, product = product, float(scaled @ rest)
        along = scaled + product / before * along
    return found, most


def _search(
    problem: LinearProblem, here: _Point, direction: FloatVector
) -> tuple[_Point, float]:
    """Halve the step until it gains its share; length 0 says that none did."""
    moved = problem.design.times(direction)
    slope = float(direction @ here.gradient)
    length = 1.0
    for _ in range(HALVINGS):
        weight, z = here.weight + length * direction, here.z + length * moved
        objective = primal_objective(problem, weight, z)
        if objective - here.objective <= DECREASE * length * slope:
            return _at(problem, weight, z, objective), length
        length *= 0.5
    return here, 0.0
