r"""What if sweeps do not end? Newton's method, on a sequence of smooth problems.

In few dimensions all samples pull at the same weights, and sweeps take thousands of
rounds. The method of multipliers ties the shares of each sample to those it has,

.. math:: \min_W \tfrac12 \|W\|^2 + \sum_i \max_{t_i} \sum_m t_i^m g_i^m
   - \frac{s}{2C_i} \|t_i - \bar t_i\|^2

which is smooth in W: the best shares are projections onto a simplex, as in a visit, and
the second derivative of a sample is :math:`x x^\top \otimes (I - 11^\top/|F|)\,C_i/s`
over the classes F above their bounds. Newton's method solves that to the end; then the
shares move on, and the tie is loosened. (Rockafellar 1976; Li, Sun & Toh 2018.)
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit_fast, jit_new
from maxmargin.data.design import Span
from maxmargin.data.lanes import LANES, lane_zeros, row_times
from maxmargin.data.row_verbs import RowParts
from maxmargin.problems.crammer_singer import (
    CrammerSingerProblem,
    lane_offsets,
    prove,
    sum_of_squares,
    weigh,
    weights_by_class,
)
from maxmargin.solvers.crammer_singer_moves import spread
from maxmargin.solvers.directions import factor_positive
from maxmargin.solvers.newton import Iterate, line_search
from maxmargin.solvers.proximal import CLOSER, FINEST, Rounds, run_rounds
from maxmargin.solvers.result import Status
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

FIRST_STIFFNESS = 1.0  # a slope of one margin moves all of a sample's cost
NOISE = 1e-14  # of the squared weights: a decrease that rounding could hide
MOST_TINY = 3  # steps that promise no more, before a tighter tie is tried
MOST_FORMED = 3000  # columns times classes: a matrix of 72 MB
FIRST_LOOK = 8  # rounds of sweeps, before their progress is judged


class Outlook:
    """Will sweeps arrive before Newton's method would? Judged from work, not time."""

    def __init__(self, problem: CrammerSingerProblem) -> None:
        design, n_classes = problem.design, problem.n_classes
        length = design.n_values / max(design.n, 1)
        self.visit = 2.0 * (length + 50.0) * (n_classes + LANES)
        size = design.n_columns * n_classes
        step = 30.0 * design.n * size + 0.07 * size**3.0
        self.newton = 60.0 * step if size <= MOST_FORMED else np.inf
        self.n_visits = 0
        self.next_look = FIRST_LOOK
        self.last: tuple[float, int] | None = None

    def is_time(self, n_rounds: int) -> bool:
        """Whether the rounds have doubled since the last look."""
        if self.newton == np.inf or n_rounds < self.next_look:
            return False
        self.next_look *= 2
        return True

    def is_dim(self, level: float, distance: float) -> bool:
        """Whether violations, now at a level, go down too slowly for the distance."""
        last, self.last = self.last, (level, self.n_visits)
        if last is None or distance <= 1.0 or level <= 0.0:
            return False
        pace = np.log(last[0] / level) / (self.n_visits - last[1])
        return bool(self.visit * np.log(distance) > self.newton * max(pace, 0.0))


class Smooth(NamedTuple):
    """The problem with its shares tied."""

    problem: CrammerSingerProblem
    centre: FloatMatrix  # the shares that pull
    tie: FloatVector  # s / C_i

    def shares(self, slope: FloatMatrix) -> FloatMatrix:
        """The best shares for these slopes."""
        share = self.centre.copy()
        problem = self.problem
        samples = share, self.tie, problem.cost, problem.code
        problem.design.in_chunks(partial(_project, samples, slope))
        return share

    def along(
        self, slope: FloatMatrix, change: FloatMatrix, step: float
    ) -> tuple[float, float]:
        """First and second derivative of the losses at slope + step * change."""
        problem = self.problem
        samples = self.centre, self.tie, problem.cost, problem.code
        parts = problem.design.in_chunks(partial(_along, samples, slope, change, step))
        values, curves = zip(*parts, strict=True)
        return sum(values), sum(curves)

    def curvature(self, share: FloatMatrix) -> FloatMatrix:
        """The second derivative, class by class, on the diagonal and below."""
        design, n_classes = self.problem.design, self.problem.n_classes
        is_held = share > 0.0
        own = np.arange(design.n), self.problem.code
        is_held[own] = share[own] > -self.problem.cost
        count = is_held.sum(axis=1)
        is_held[count < 2] = False
        d = design.n_columns
        matrix = np.eye(n_classes * d)
        theta = np.zeros(design.n)
        for a in range(n_classes):
            held = np.flatnonzero(is_held[:, a])
            for b in range(a + 1):
                at = held[is_held[held, b]]
                if not len(at):
                    continue
                theta[at] = (float(a == b) - 1.0 / count[at]) / self.tie[at]
                block = np.s_[a * d : (a + 1) * d, b * d : (b + 1) * d]
                matrix[block] += design.square(theta)
                theta[at] = 0.0
        return matrix


def finish(
    problem: CrammerSingerProblem, share: FloatMatrix, tol: float, watch: Watch
) -> Iterate:
    """From these shares to the end. Forms a matrix over all columns and classes."""
    cost = np.where(problem.cost > 0.0, problem.cost, 1.0)
    total = float(cost.sum())

    def solve(before: Iterate, stiffness: float) -> Iterate:
        smooth = Smooth(problem, before.dual, stiffness / cost)
        goal = tol * min(1.0, before.certificate.primal / total)
        wanted = CLOSER * max(before.certificate.violation, FINEST * goal)
        share, W, status = _minimise(smooth, before.weight, wanted, watch)
        proof = prove(problem, share)
        watch.report(proof.violation, proof.primal, problem.design.n)
        return Iterate(share, W, proof, status)

    proof = prove(problem, share)
    begin = Iterate(share, proof.weight, proof)
    return run_rounds(begin, solve, Rounds(tol, FIRST_STIFFNESS, watch))


def _minimise(
    smooth: Smooth, W: FloatMatrix, wanted: float, watch: Watch
) -> tuple[FloatMatrix, FloatMatrix, Status]:
    """(shares, W, how it ended) where no slope is further off than wanted."""
    problem = smooth.problem
    offset = lane_offsets(problem.n_classes)
    nothing = np.zeros_like(offset)
    slope = _slopes_of(problem, W, offset)
    slope[np.arange(problem.design.n), problem.code] -= 1.0
    n_tiny = 0
    while True:
        share = smooth.shares(slope)
        gradient = W - weigh(problem, share)
        status = watch.limit()
        miss = float(np.abs(_slopes_of(problem, gradient, nothing)).max())
        if status is not None or miss <= wanted:
            return share, W, status or Status.CONVERGED
        direction = _direction(smooth, share, gradient)
        first = float((gradient * direction).sum())
        n_tiny += -first <= NOISE * sum_of_squares(W)
        if n_tiny > MOST_TINY:
            return share, W, Status.PRECISION_LIMIT
        change = _slopes_of(problem, direction, nothing)
        linear, square = float((W * direction).sum()), float((direction**2).sum())
        step = line_search(partial(smooth.along, slope, change), linear, square, first)
        W = W + step * direction
        slope += step * change
        watch.n_iter += 1


def _direction(
    smooth: Smooth, share: FloatMatrix, gradient: FloatMatrix
) -> FloatMatrix:
    """Newton's."""
    n_classes = smooth.problem.n_classes
    factor = factor_positive(smooth.curvature(share))
    solution = factor.solve(weights_by_class(gradient, n_classes))
    direction = lane_zeros(len(gradient), n_classes)
    direction[:, :n_classes] = -solution.reshape(n_classes, -1).T
    return direction


def _slopes_of(
    problem: CrammerSingerProblem, W: FloatMatrix, offset: FloatVector
) -> FloatMatrix:
    """X W + offset."""
    design = problem.design
    slope = lane_zeros(design.n, problem.n_classes)
    design.in_chunks(partial(_slopes, design.rows, design.bias, W, offset, slope))
    return slope


@jit_new
def _slopes(
    rows: RowParts,
    bias: float,
    W: FloatMatrix,
    offset: FloatVector,
    slope: FloatMatrix,
    span: Span,
) -> None:
    blocks = np.arange(W.shape[1] // LANES)
    for i in range(span[0], span[1]):
        row_times((rows, i, bias), W, offset, blocks, slope[i])


Tied = tuple[FloatMatrix, FloatVector, FloatVector, IntVector]  # share, tie, cost, code


@jit_new
def _project(samples: Tied, slope: FloatMatrix, span: Span) -> None:
    """Shares become the best ones for these slopes, if tied to where they are."""
    share, tie, cost, code = samples
    room, low = np.empty(share.shape[1]), np.zeros(share.shape[1])
    for i in range(span[0], span[1]):
        if cost[i] > 0.0:
            low[code[i]] = -cost[i]
            spread(slope[i], share[i], low, code[i], tie[i], room)
            low[code[i]] = 0.0


@jit_new
def _along(
    samples: Tied, slope: FloatMatrix, change: FloatMatrix, step: float, span: Span
) -> tuple[float, float]:
    centre, tie, cost, code = samples
    width = centre.shape[1]
    room, low = np.empty(width), np.zeros(width)
    there, t = np.empty(width), np.empty(width)
    value, curve = 0.0, 0.0
    for i in range(span[0], span[1]):
        if cost[i] == 0.0:
            continue
        u = change[i]
        for m in range(width):
            there[m] = slope[i, m] + step * u[m]
            t[m] = centre[i, m]
        low[code[i]] = -cost[i]
        spread(there, t, low, code[i], tie[i], room)
        inner, bend = _bend(u, t, low)
        low[code[i]] = 0.0
        value += inner
        curve += bend / tie[i]
    return value, curve


@jit_fast
def _bend(u: FloatVector, t: FloatVector, low: FloatVector) -> tuple[float, float]:
    """<t, u>, and the squared length of u within the classes above their bounds."""
    inner, total, square, count = 0.0, 0.0, 0.0, 0.0
    for m in range(len(u)):
        is_held = t[m] > low[m]
        held = u[m] if is_held else 0.0
        inner += t[m] * u[m]
        total += held
        square += held * held
        count += 1.0 if is_held else 0.0
    return inner, square - total * total / count
