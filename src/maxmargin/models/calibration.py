"""How is a decision value turned into a probability? By fitting a distribution to many.

Classes: Platt's sigmoid, by Newton's method with backtracking and his regularised
targets (Platt, 1999; Lin, Lin & Weng, Machine Learning 68, 2007). Regression: the scale
of a Laplace distribution (Lin & Weng, 2004). One class: marks on the decision value
(Que & Lin, 2023). Constants are LIBSVM's, since its figures are compared with.

Decision values are those of samples held out (`models.held_out`), but for the marks.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.models.held_out import HeldOut, Solved, held_out_margins
from maxmargin.models.leave_one_out import leave_one_out_decisions
from maxmargin.solvers import Status
from maxmargin.typing import FloatVector, IntVector

NEWTON_STEPS = 100
SMALLEST_STEP = 1e-10
GRADIENT_TOL = 1e-5  # of both parts of the gradient
RIDGE = 1e-12  # on the diagonal of the matrix of second derivatives
DECREASE = 1e-4  # of what the slope promises, that a step must bring
UNSEEN = 1e-14  # of the loss: a promise that its rounding would hide
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
    offset = float(np.log((negative + 1.0) / (positive + 1.0)))
    return Sigmoid(*_likeliest(decisions, target, weight, offset))


class _Loss(NamedTuple):
    """Minus the log-likelihood of a sigmoid, and its derivatives."""

    value: float
    by_slope: float
    by_offset: float
    by_slope_twice: float
    by_offset_twice: float
    by_both: float


@jit
def _likeliest(
    decisions: FloatVector, target: FloatVector, weight: FloatVector, offset: float
) -> tuple[float, float]:
    """Newton's method from slope 0, with backtracking."""
    slope = 0.0
    at = _loss(decisions, target, weight, slope, offset)
    for _ in range(NEWTON_STEPS):
        if max(abs(at.by_slope), abs(at.by_offset)) < GRADIENT_TOL:
            break
        a, b, d = at.by_slope_twice + RIDGE, at.by_both, at.by_offset_twice + RIDGE
        determinant = a * d - b * b
        to_slope = -(d * at.by_slope - b * at.by_offset) / determinant
        to_offset = -(a * at.by_offset - b * at.by_slope) / determinant
        promise = at.by_slope * to_slope + at.by_offset * to_offset
        if -promise <= UNSEEN * at.value:  # no line search could judge this last step
            slope, offset = slope + to_slope, offset + to_offset
            break
        size, new = 1.0, at
        while size >= SMALLEST_STEP:
            near = slope + size * to_slope, offset + size * to_offset
            new = _loss(decisions, target, weight, near[0], near[1])
            if new.value < at.value + DECREASE * size * promise:
                slope, offset = near
                break
            size /= 2.0
        if size < SMALLEST_STEP:
            break  # as good as float64 can tell
        at = new
    return slope, offset


@jit
def _loss(
    decisions: FloatVector,
    target: FloatVector,
    weight: FloatVector,
    slope: float,
    offset: float,
) -> _Loss:
    """Without overflow: of the two exponentials, the small one."""
    value = by_slope = by_offset = by_slope_twice = by_offset_twice = by_both = 0.0
    for k in range(len(decisions)):
        d, w = decisions[k], weight[k]
        z = d * slope + offset
        small = np.exp(-abs(z))
        rest = target[k] if z >= 0.0 else target[k] - 1.0
        value += w * (rest * z + np.log1p(small))
        likely = (small if z >= 0.0 else 1.0) / (1.0 + small)
        miss = w * (target[k] - likely)
        bend = w * small / ((1.0 + small) * (1.0 + small))
        by_slope += d * miss
        by_offset += miss
        by_slope_twice += d * d * bend
        by_offset_twice += bend
        by_both += d * bend
    return _Loss(value, by_slope, by_offset, by_slope_twice, by_offset_twice, by_both)


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
