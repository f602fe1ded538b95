r"""What does a joint machine for all classes minimise, and what proves that it has?

.. math:: \min_W \tfrac12 \sum_m \|w_m\|^2 + \sum_i C_i \max_m
   (e_i^m + \langle w_m - w_{y_i}, x_i\rangle), \qquad e_i^m = [m \ne y_i]

Its dual has :math:`w_m = \sum_i \alpha_i^m x_i` with
:math:`\alpha_i^m = C_i [m = y_i] - t_i^m`: every sample spreads its cost over the
classes, :math:`t_i \ge 0, \sum_m t_i^m = C_i`. At the minimum all of it lies where the
slope :math:`g_i^m = \langle w_m, x_i\rangle + e_i^m` is largest, and the gap is what
lies elsewhere: :math:`\sum_{im} t_i^m (\max_l g_i^l - g_i^m)`.
(Crammer & Singer, JMLR 2, 2001; Keerthi et al., KDD 2008.)
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin._threads import run_all
from maxmargin.data.design import Design
from maxmargin.data.lanes import LANES, lane_zeros, row_add_outer, row_times
from maxmargin.data.row_verbs import RowParts
from maxmargin.problems.linear import CANCELLED, TINY
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

TILE = 512  # rows of W turned at once: they stay in the cache
FAR = 1e300  # slopes of lanes without a class: never the largest, yet finite


class CrammerSingerProblem(NamedTuple):
    """Samples, their classes, and what a miss costs."""

    design: Design
    code: IntVector  # 0 to n_classes - 1
    cost: FloatVector  # C_i >= 0, finite
    n_classes: int  # at least 2


class Proof(NamedTuple):
    """What shares prove, in float64, and the weights that they stand for."""

    W: FloatMatrix  # a row for every column of X, a lane for every class
    primal: float
    gap: float  # primal minus dual objective
    violation: float  # largest slope minus the least that a sample has put cost on
    floor: float  # an objective that is zero but for rounding

    @property
    def badness(self) -> float:
        """The larger of violation and relative gap."""
        return max(self.violation, self.gap / max(self.primal, self.floor))

    def meets(self, tol: float) -> bool:
        """Whether both are at most tol."""
        return self.badness <= tol


def weights_by_class(W: FloatMatrix, n_classes: int) -> FloatVector:
    """The weights of one class after those of the other."""
    weight = np.empty((n_classes, len(W)))
    for first in range(0, len(W), TILE):
        part = np.s_[first : first + TILE]
        weight[:, part] = W[part, :n_classes].T
    return weight.ravel()


def first_shares(problem: CrammerSingerProblem) -> FloatMatrix:
    """Shares of W = 0: all cost on a sample's own class, where it moves no weight."""
    share = lane_zeros(problem.design.n, problem.n_classes)
    share[np.arange(len(share)), problem.code] = problem.cost
    return share


def shares_of(problem: CrammerSingerProblem, alpha: FloatVector) -> FloatMatrix:
    """The shares nearest in kind to a dual point of any problem of the same shape."""
    share = first_shares(problem)
    share[:, : problem.n_classes] -= alpha.reshape(len(share), -1)
    np.maximum(share, 0.0, out=share)
    total = share.sum(axis=1)
    is_lost = ~((total > 0.0) & np.isfinite(total))
    scale = problem.cost / np.where(is_lost, 1.0, total)
    share *= scale[:, None]
    share[is_lost] = first_shares(problem)[is_lost]
    return share


def settle_zeros(problem: CrammerSingerProblem, share: FloatMatrix) -> None:
    """A sample without features misses by the margin, for any other class."""
    at = np.flatnonzero(problem.design.squared_norms == 0.0)
    other = np.where(problem.code[at] == 0, 1, 0)
    share[at] = 0.0
    share[at, other] = problem.cost[at]


def alpha_of(problem: CrammerSingerProblem, share: FloatMatrix) -> FloatVector:
    """The dual point of shares; rows sum to zero."""
    alpha = -share[:, : problem.n_classes]
    own = np.arange(len(alpha)), problem.code
    kept = share[own]
    alpha[own] = 0.0
    rest = np.minimum(-alpha.sum(axis=1), problem.cost)
    alpha[own] = np.where(kept == 0.0, problem.cost, rest)  # at its bound, unrounded
    return alpha.ravel() + 0.0  # no -0.0


def weigh(problem: CrammerSingerProblem, share: FloatMatrix) -> FloatMatrix:
    """The weights that shares stand for, with a row for every column of X."""
    design = problem.design
    W = lane_zeros(design.n_columns, problem.n_classes)
    _weigh(design.rows, design.bias, (problem.code, problem.cost, share), W)
    return W


def dual_objective(
    problem: CrammerSingerProblem, own: FloatVector, W: FloatMatrix
) -> float:
    """Cost that samples have not kept on their own class, less half of W²."""
    return float((problem.cost - own).sum()) - 0.5 * sum_of_squares(W)


def prove(problem: CrammerSingerProblem, share: FloatMatrix) -> Proof:
    """Objectives and KKT violation of shares, from nothing but them and the data."""
    design = problem.design
    W = weigh(problem, share)
    samples = problem.code, problem.cost, share
    offset = lane_offsets(problem.n_classes)
    tasks = [
        partial(_judge, design.rows, design.bias, samples, W, (offset, *span))
        for span in design.chunks
    ]
    parts = run_all(tasks, design.n_threads)
    primal = 0.5 * sum_of_squares(W) + sum(part[0] for part in parts)
    own = share[np.arange(len(share)), problem.code]
    gap = max(primal - dual_objective(problem, own, W), 0.0)
    floor = max(CANCELLED * float(problem.cost.sum()), TINY)
    return Proof(W, primal, gap, max(part[1] for part in parts), floor)


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


Samples = tuple[IntVector, FloatVector, FloatMatrix]  # code, cost, share


@jit
def _weigh(rows: RowParts, bias: float, samples: Samples, W: FloatMatrix) -> None:
    """Add the weights that the shares stand for to W."""
    code, cost, share = samples
    width = W.shape[1]
    step, blocks = np.empty(width), np.empty(width // LANES, dtype=np.intp)
    for i in range(len(code)):
        if share[i, code[i]] == cost[i]:
            continue
        own = code[i] // LANES
        n_blocks = 0
        for b in range(width // LANES):
            is_there = b == own
            for m in range(LANES):
                t = share[i, LANES * b + m]
                step[LANES * n_blocks + m] = -t
                is_there |= t > 0.0
            if b == own:
                step[LANES * n_blocks + code[i] % LANES] += cost[i]
            if is_there:
                blocks[n_blocks] = b
                n_blocks += 1
        row_add_outer((rows, i, bias), W, blocks[:n_blocks], step)


@jit
def _judge(
    rows: RowParts,
    bias: float,
    samples: Samples,
    W: FloatMatrix,
    part: tuple[FloatVector, int, int],
) -> tuple[float, float]:
    """(sum of losses, largest violation) of some samples."""
    code, cost, share = samples
    offset, first, last = part
    slope, blocks = np.empty(W.shape[1]), np.arange(W.shape[1] // LANES)
    loss, worst = 0.0, 0.0
    for i in range(first, last):
        row_times((rows, i, bias), W, offset, blocks, slope)
        slope[code[i]] -= 1.0
        top, least = -FAR, FAR
        for m in range(len(slope)):
            top = max(top, slope[m])
            if share[i, m] > 0.0:
                least = min(least, slope[m])
        loss += cost[i] * (top - slope[code[i]])
        worst = max(worst, top - least)
    return loss, worst
