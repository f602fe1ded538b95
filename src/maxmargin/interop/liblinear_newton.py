"""How does LIBLINEAR minimise a smooth sum of losses? Newton steps, cut short.

Conjugate gradients, with a diagonal preconditioner, stop when the quadratic model no
longer falls by much; the step is halved until the objective falls enough. The tolerance
is of the gradient's length at w = 0, and loose, so that only the same steps end at the
same place. (Hsia, Chiang & Lin, ACML 2018; Galli & Lin, 2022.)
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin.problems.linear import LinearProblem, primal_objective
from maxmargin.solvers.smooth import Smooth
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


class Point(NamedTuple):
    """Weights, and the losses and their derivatives there."""

    weight: FloatVector
    z: FloatVector
    t: FloatVector  # minus the derivative of each sample's loss
    theta: FloatVector  # and the second one
    objective: float
    gradient: FloatVector


class Minimum(NamedTuple):
    """The last point, and what led there."""

    point: Point
    steps: list[Step]
    is_reached: bool
    note: str = ""


Stop = Callable[[], bool]


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
            return Minimum(here, steps, False, "max number of Newton iterations")
        direction, n_inner = _direction(problem, here)
        there, length = _search(problem, here, direction)
        if length == 0.0:
            return Minimum(here, steps, False, "line search fails")
        gained = here.objective - there.objective
        here, size = there, float(np.linalg.norm(there.gradient))
        steps.append(Step(len(steps), here.objective, size, n_inner, length))
        if size > goal and abs(gained) <= UNCHANGED * abs(here.objective):
            return Minimum(here, steps, False, "actred too small")
    return Minimum(here, steps, True)


def _point(problem: LinearProblem, weight: FloatVector) -> Point:
    z = problem.design.times(weight)
    return _at(problem, weight, z, primal_objective(problem, weight, z))


def _at(
    problem: LinearProblem, weight: FloatVector, z: FloatVector, objective: float
) -> Point:
    t, theta = Smooth(problem).dual_point(z)
    gradient = problem.penalty * weight - problem.design.transposed_times(t)
    return Point(weight, z, t, theta, objective, gradient)


def _direction(problem: LinearProblem, here: Point) -> tuple[FloatVector, int]:
    """Roughly the Newton direction, and how many inner steps it took."""
    design, penalty = problem.design, problem.penalty
    diagonal = penalty + design.squares_times(here.theta)
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
        image = penalty * along + design.curved_times(here.theta, along)
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
    problem: LinearProblem, here: Point, direction: FloatVector
) -> tuple[Point, float]:
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
