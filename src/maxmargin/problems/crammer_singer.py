r"""What does a joint machine for all classes minimise, and what proves that it has?

.. math:: \min_W \tfrac12 \sum_m \|w_m\|^2 + \sum_i C_i \max_m
   (e_i^m + \langle w_m - w_{y_i}, x_i\rangle), \qquad e_i^m = [m \ne y_i]

Its dual has :math:`w_m = -\sum_i t_i^m x_i`: every sample gives shares of its cost to
other classes, :math:`t_i^m \ge 0`, and its own owes their sum,
:math:`t_i^{y_i} = -\sum t_i^m \ge -C_i`. (The customary dual point is
:math:`\alpha = -t`.) At the minimum, shares are above their bounds :math:`l_i^m` only
where the slope :math:`g_i^m = \langle w_m, x_i\rangle + e_i^m` is largest; the gap is
:math:`\sum_{im} (t_i^m - l_i^m)(\max_j g_i^j - g_i^m)`.
(Crammer & Singer, JMLR 2, 2001; Keerthi et al., KDD 2008.)
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin.data.design import Design, Span
from maxmargin.data.lanes import LANES, lane_zeros, row_add_outer, row_times
from maxmargin.data.row_verbs import RowParts
from maxmargin.problems.linear import CANCELLED, TINY, Certificate
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

TILE = 512  # rows of W turned at once: they stay in the cache
FAR = 1e300  # slopes of lanes without a class: never the largest, yet finite


class CrammerSingerProblem(NamedTuple):
    """Samples, their classes, and what a miss costs."""

    design: Design
    code: IntVector  # 0 to n_classes - 1
    cost: FloatVector  # C_i >= 0, finite
    n_classes: int  # at least 2


def weights_by_class(W: FloatMatrix, n_classes: int) -> FloatVector:
    """The weights of one class after those of the other."""
    weight = np.empty((n_classes, len(W)))
    for first in range(0, len(W), TILE):
        part = np.s_[first : first + TILE]
        weight[:, part] = W[part, :n_classes].T
    return weight.ravel()


def shares_of(problem: CrammerSingerProblem, alpha: FloatVector | None) -> FloatMatrix:
    """Shares near those of a dual point, but within the bounds; none without it."""
    n, n_classes = problem.design.n, problem.n_classes
    share, own = lane_zeros(n, n_classes), (np.arange(n), problem.code)
    if alpha is not None:
        given = np.maximum(-alpha.reshape(n, n_classes), 0.0)
        share[:, :n_classes] = np.where(np.isfinite(given), given, 0.0)
    share[own] = 0.0
    _settle_zeros(problem, share)
    largest = share.max(axis=1, keepdims=True)
    total = largest[:, 0] * (share / np.maximum(largest, TINY)).sum(axis=1)
    is_over = total > problem.cost
    share[is_over] *= (problem.cost[is_over] / total[is_over])[:, None]
    share[own] = np.maximum(-share.sum(axis=1), -problem.cost)
    return share


def _settle_zeros(problem: CrammerSingerProblem, share: FloatMatrix) -> None:
    """Samples without features miss by the margin, whatever the weights are."""
    at = np.flatnonzero(problem.design.squared_norms == 0.0)
    share[at] = 0.0
    share[at, np.where(problem.code[at] == 0, 1, 0)] = problem.cost[at]


def alpha_of(problem: CrammerSingerProblem, share: FloatMatrix) -> FloatVector:
    """The dual point of shares."""
    return 0.0 - share[:, : problem.n_classes].ravel()


def weigh(problem: CrammerSingerProblem, share: FloatMatrix) -> FloatMatrix:
    """The weights that shares stand for, with a row for every column of X."""
    design = problem.design
    W = lane_zeros(design.n_columns, problem.n_classes)
    _weigh(design.rows, design.bias, problem.code, share, W)
    return W


def dual_objective(own: FloatVector, W: FloatMatrix) -> float:
    """What samples owe to their own class, less half of W²."""
    return -float(own.sum()) - 0.5 * sum_of_squares(W)


def prove(problem: CrammerSingerProblem, share: FloatMatrix) -> Certificate:
    """Objectives and KKT violation of shares, from nothing but them and the data.

    The weight is a matrix: a row for every column of X, a lane for every class.
    """
    design = problem.design
    W = weigh(problem, share)
    samples = problem.code, problem.cost, share
    offset = lane_offsets(problem.n_classes)
    parts = design.in_chunks(
        partial(_judge, design.rows, design.bias, samples, W, offset)
    )
    primal = 0.5 * sum_of_squares(W) + sum(part[0] for part in parts)
    dual = dual_objective(share[np.arange(len(share)), problem.code], W)
    floor = max(CANCELLED * float(problem.cost.sum()), TINY)
    violation = max(part[1] for part in parts)
    return Certificate(W, primal, max(primal - dual, 0.0), violation, floor)


def lane_offsets(n_classes: int) -> FloatVector:
    """What a slope begins with: the margin, and far below it where no class is."""
    offset = lane_zeros(1, n_classes)[0]
    offset[:] = -FAR
    offset[:n_classes] = 1.0
    return offset


@jit
def sum_of_squares(W: FloatMatrix) -> float:
    """Summed row by row, on any number of cores."""
    total = 0.0
    for j in range(len(W)):
        part = 0.0
        for m in range(W.shape[1]):
            part += W[j, m] * W[j, m]
        total += part
    return total


@jit_new
def _weigh(
    rows: RowParts, bias: float, code: IntVector, share: FloatMatrix, W: FloatMatrix
) -> None:
    """Take what the shares hold from W, block by block that holds anything."""
    n_blocks = W.shape[1] // LANES
    step, blocks = np.empty(W.shape[1]), np.empty(n_blocks, dtype=np.intp)
    for i in range(len(code)):
        if share[i, code[i]] == 0.0:
            continue
        n_held = 0
        for b in range(n_blocks):
            is_held = False
            for m in range(LANES):
                t = share[i, LANES * b + m]
                step[LANES * n_held + m] = -t
                is_held |= t != 0.0
            blocks[n_held] = b
            n_held += is_held
        row_add_outer((rows, i, bias), W, blocks[:n_held], step)


Samples = tuple[IntVector, FloatVector, FloatMatrix]  # code, cost, share


@jit_new
def _judge(
    rows: RowParts,
    bias: float,
    samples: Samples,
    W: FloatMatrix,
    offset: FloatVector,
    span: Span,
) -> tuple[float, float]:
    """(sum of losses, largest violation) of some samples."""
    code, cost, share = samples
    slope, blocks = np.empty(W.shape[1]), np.arange(W.shape[1] // LANES)
    loss, worst = 0.0, 0.0
    for i in range(span[0], span[1]):
        row_times((rows, i, bias), W, offset, blocks, slope)
        own = code[i]
        slope[own] -= 1.0
        top = least = slope[own]
        if share[i, own] == -cost[i]:
            least = FAR
        for m in range(len(slope)):
            top = max(top, slope[m])
            if share[i, m] > 0.0:
                least = min(least, slope[m])
        loss += cost[i] * (top - slope[own])
        worst = max(worst, top - least)
    return loss, worst
