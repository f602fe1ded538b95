"""How is a decision value turned into a probability? By fitting a distribution to many.

Classes: Platt's sigmoid, by Newton's method with backtracking and his regularised
targets (Platt, 1999; Lin, Lin & Weng, Machine Learning 68, 2007). Regression: the scale
of a Laplace distribution (Lin & Weng, 2004). One class: marks on the decision value
(Que & Lin, 2023). Constants are LIBSVM's, since its figures are compared with.

Decision values are those of samples held out (`models.held_out`), but for the marks.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from maxmargin.models.held_out import HeldOut, Solved, held_out_margins
from maxmargin.models.leave_one_out import leave_one_out_decisions
from maxmargin.solvers import Status
from maxmargin.typing import FloatVector, IntVector

NEWTON_STEPS = 100
SMALLEST_STEP = 1e-10
GRADIENT_TOL = 1e-5  # of both parts of the gradient
RIDGE = 1e-12  # on the diagonal of the matrix of second derivatives
DECREASE = 1e-4  # of what the slope promises, that a step must bring
OUTLYING = 5.0  # standard deviations: residuals beyond say nothing about the scale
N_MARKS = 10  # of a one-class machine, half of them on either side of the boundary


class Sigmoid(NamedTuple):
    """How likely the positive class is: 1 / (1 + exp(slope * decision + offset))."""

    slope: float
    offset: float


class CalibratedPair(NamedTuple):
    """The sigmoid of a pair of classes, and what it was fitted to."""

    sigmoid: Sigmoid
    decisions: FloatVector  # of the samples of the pair, held out
    status: Status  # how the worst fold ended


def calibrate_pair(
    solved: Solved,
    y: FloatVector,
    folds: list[IntVector] | None,
    weight: FloatVector | None = None,
    n_threads: int = 1,
) -> CalibratedPair:
    """The sigmoid of a machine of two classes, y = ±1.

    Without folds, every sample is held out by itself.
    """
    if folds is None:
        found = HeldOut(leave_one_out_decisions(solved), Status.CONVERGED)
    else:
        found = held_out_margins(solved, y, folds, n_threads)
    sigmoid = fit_sigmoid(found.decisions, y, weight)
    return CalibratedPair(sigmoid, found.decisions, found.status)


def fit_sigmoid(
    decisions: FloatVector, is_positive: FloatVector, weight: FloatVector | None = None
) -> Sigmoid:
    """The sigmoid under which the labels are likeliest; weight k counts as k copies.

    Targets are a little away from 0 and 1, by as much as few samples leave in doubt.
    """
    if weight is None:
        weight = np.ones(len(decisions))
    positive = float(weight[is_positive > 0].sum())
    negative = float(weight[~(is_positive > 0)].sum())
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    target = np.where(is_positive > 0, high, low)
    at = np.array([0.0, np.log((negative + 1.0) / (positive + 1.0))])
    value = _loss(at, decisions, target, weight)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = _derivatives(at, decisions, target, weight)
        if (np.abs(gradient) < GRADIENT_TOL).all():
            break
        step = -_solve_two(hessian, gradient)
        slope, size = float(gradient @ step), 1.0
        while size >= SMALLEST_STEP:
            new = _loss(at + size * step, decisions, target, weight)
            if new < value + DECREASE * size * slope:
                break
            size /= 2.0
        else:
            break  # as good as float64 can tell
        at, value = at + size * step, new
    return Sigmoid(float(at[0]), float(at[1]))


def _loss(
    at: FloatVector, decisions: FloatVector, target: FloatVector, weight: FloatVector
) -> float:
    """Minus the log-likelihood, without overflow."""
    z = decisions * at[0] + at[1]
    terms = np.where(z >= 0.0, target * z, (target - 1.0) * z)
    return float(weight @ (terms + np.log1p(np.exp(-np.abs(z)))))


def _derivatives(
    at: FloatVector, decisions: FloatVector, target: FloatVector, weight: FloatVector
) -> tuple[FloatVector, FloatVector]:
    likely = expit(-(decisions * at[0] + at[1]))
    miss = weight * (target - likely)
    bend = weight * likely * (1.0 - likely)
    gradient = np.array([decisions @ miss, miss.sum()])
    mixed = float(decisions @ bend)
    hessian = np.array(
        [
            [float((decisions * decisions) @ bend) + RIDGE, mixed],
            [mixed, float(bend.sum()) + RIDGE],
        ]
    )
    return gradient, hessian


def _solve_two(matrix: FloatVector, right: FloatVector) -> FloatVector:
    """Two equations, by Cramer's rule."""
    (a, b), (_, d) = matrix
    inverse = np.array([[d, -b], [-b, a]]) / (a * d - b * b)
    solved: FloatVector = inverse @ right
    return solved


def laplace_scale(residuals: FloatVector, weight: FloatVector | None = None) -> float:
    """The scale of a Laplace distribution of these residuals, without the outlying.

    The likeliest scale is the mean magnitude; the standard deviation is sqrt(2) of it.
    """
    size = np.abs(residuals)
    if weight is None:
        weight = np.ones(len(size))
    scale = float(weight @ size) / float(weight.sum())
    kept = size <= OUTLYING * np.sqrt(2.0) * scale
    return float(weight[kept] @ size[kept]) / float(weight[kept].sum())


def density_marks(decisions: FloatVector) -> FloatVector | None:
    """Ten marks on the decision value of a one-class machine; None where too few.

    On either side of the boundary as many training samples lie between two marks: the
    marks are midway between their tenths, counted from the boundary.
    """
    values = np.sort(decisions)
    n_outside = int(np.searchsorted(values, 0.0))
    n_inside = len(values) - n_outside
    half = N_MARKS // 2
    if min(n_outside, n_inside) < half:
        return None
    share = np.arange(half + 1)
    outer = values[share[:half] * n_outside // half]
    inner = values[n_outside - 1 + share[1:] * n_inside // half]
    ends = np.concatenate((outer, [0.0], inner))
    return 0.5 * (ends[:-1] + ends[1:])
