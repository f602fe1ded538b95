r"""How is a smooth sum of losses minimised? By Newton steps and an exact line search.

One step solves :math:`(R + X^\top \Theta X)\,d = -\nabla\Phi`, with the curvatures of
the losses in :math:`\Theta`: for squared losses a constant on the samples that miss,
and 0 on the others. The line search finds the zero of the derivative along d, which
costs O(n) a trial once X d is known.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin.problems.linear import (
    Certificate,
    certify,
    distance_apart,
    primal_objective,
)
from maxmargin.solvers.directions import Directions
from maxmargin.solvers.result import Status
from maxmargin.solvers.smooth import Smooth
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatMatrix, FloatVector

LINE_TRIALS = 60
LINE_TOL = 0.1  # of the slope at the start of the line: exact enough
NOISE = 1e-12  # of the objective: a decrease that its rounding could hide
MOST_STEPS = 2000  # of a smooth problem; some dozens are usual
STALLED = 5  # such steps, none of them shorter, after which rounding is to blame


class Iterate(NamedTuple):
    """A dual point and weights, and what they prove about each other."""

    dual: FloatMatrix
    weight: FloatMatrix
    certificate: Certificate
    status: Status = Status.CONVERGED  # to what was asked for


class Goal(NamedTuple):
    """How far a descent must go."""

    apart: float  # w from Xᵀt, relative to w
    gap: float  # relative, between w and t; inf: any
    reach: float  # how far the next step would move any decision value; inf: any
    n_steps: int = MOST_STEPS  # after which it has no end in sight


def minimise(
    smooth: Smooth,
    directions: Directions,
    start: FloatVector,
    goal: Goal,
    watch: Watch,
) -> Iterate:
    """Newton's method from `start` until the goal is met or a limit is."""
    problem = smooth.problem
    design, penalty, pull = problem.design, problem.penalty, problem.pull
    w = start.copy()
    z = design.times(w)
    best, n_stalled, last = np.inf, 0, watch.n_iter + goal.n_steps
    while True:
        t, theta = smooth.dual_point(z)
        gradient = penalty * w + pull - design.transposed_times(t)
        size = float(gradient @ gradient)
        status = watch.limit() or (Status.STALLED if watch.n_iter >= last else None)
        if status is not None or size == 0.0:
            break
        value = primal_objective(problem, w, z)
        is_near = goal.gap == np.inf or 0.5 * size <= goal.gap * abs(value)
        is_near = is_near and distance_apart(problem, gradient, w, t) <= goal.apart
        if is_near and goal.reach == np.inf:
            break
        d = directions.solve(theta, gradient)
        u = design.times(d)
        reach = float(np.abs(u).max())
        if is_near and reach <= goal.reach:
            break
        promise = -float(gradient @ d)  # twice the decrease that the model sees
        is_noise = promise <= NOISE * abs(value)
        n_stalled = n_stalled + 1 if is_noise and reach >= best else 0
        best = min(best, reach)
        if n_stalled >= STALLED:
            status = Status.PRECISION_LIMIT
            break
        linear, square = float((penalty * w + pull) @ d), float(d @ (penalty * d))
        step = line_search(partial(smooth.along, z, u), linear, square, -promise)
        w += step * d
        z += step * u
        watch.n_iter += 1
    return Iterate(t, w, certify(problem, t, w), status or Status.CONVERGED)


def line_search(
    losses: Callable[[float], tuple[float, float]],
    linear: float,
    square: float,
    first: float,
) -> float:
    """The zero of a derivative along a line: Newton inside a bracket that shrinks.

    `losses` gives the first and second derivative of the losses after a step, to which
    `linear` + step * `square` is added; `first` is the derivative at the start.
    """
    if first >= 0.0:
        return 0.0
    low, high, step = 0.0, np.inf, 1.0
    for _ in range(LINE_TRIALS):
        slope, curve = losses(step)
        slope, curve = slope + linear + step * square, curve + square
        if abs(slope) <= LINE_TOL * abs(first):
            return step
        if slope < 0.0:
            low = step
        else:
            high = step
        trial = step - slope / curve if curve > 0.0 else np.inf
        if low < trial < high:
            step = min(trial, 10.0 * step)
        else:
            step = 0.5 * (low + high) if high < np.inf else 10.0 * step
    return step
