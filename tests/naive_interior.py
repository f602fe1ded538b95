r"""What is the least value of a sum of kinked losses? A primal-dual interior point.

.. math:: \min_u \tfrac12 u^T R u + q^T u
   + \sum_g C_g \max(0, \max_{j \in g} (c_j - z_j^T u)), \quad R_{kk} \in \{0, 1\}

Groups of one are hinges, groups of two are tubes, and groups of all the other classes
are Crammer and Singer's loss. Dense, slow, float64, and sure: whatever the iterations
did, the value returned is the dual objective of a point made feasible by hand, hence a
lower bound. (Mehrotra, SIAM J. Optim. 2, 1992; Ferris & Munson, ibid. 13, 2002.)
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

MAX_STEPS = 100
GAP = 1e-10  # relative: well below what is asked of anybody else
SHORT_OF_THE_WALL = 0.995  # of the longest step that stays inside
TINY = 1e-14  # of the largest diagonal: keeps the factorisation from failing


class Kinked(NamedTuple):
    """The problem above; `is_free` marks the weights that cost nothing."""

    Z: Floats  # (rows, weights)
    c: Floats
    group: Ints  # of each row, from 0, in order
    C: Floats  # one per group, positive
    q: Floats
    is_free: npt.NDArray[np.bool_]

    @property
    def starts(self) -> Ints:
        """The first row of every group."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))


class Point(NamedTuple):
    """Weights, multipliers and slacks; all but the weights are positive."""

    u: Floats
    alpha: Floats  # one per row
    s: Floats  # its slack, Zu + xi - c
    xi: Floats  # one per group: the loss
    t: Floats  # its slack, C - the group's sum of alpha


class Bounds(NamedTuple):
    """The optimum lies between the two."""

    lower: float
    upper: float


def summed(values: Floats, problem: Kinked) -> Floats:
    """Rows (or a number per row) added up by group."""
    return np.add.reduceat(values, problem.starts, axis=0)


# ---------------------------------------------------------------------------- values
def primal_value(problem: Kinked, u: Floats) -> float:
    largest = np.maximum.reduceat(problem.c - problem.Z @ u, problem.starts)
    worst = np.maximum(largest, 0.0)
    kept = u[~problem.is_free]
    return float(0.5 * kept @ kept + problem.q @ u + problem.C @ worst)


def dual_value(problem: Kinked, alpha: Floats) -> float:
    """The dual objective after alpha is made feasible."""
    alpha = feasible(problem, np.maximum(alpha, 0.0))
    kept = (problem.Z.T @ alpha - problem.q)[~problem.is_free]
    return float(problem.c @ alpha - 0.5 * kept @ kept)


def feasible(problem: Kinked, alpha: Floats) -> Floats:
    """Group sums at most C, and z'alpha = q for a weight that costs nothing."""
    share = summed(alpha, problem) / problem.C
    alpha = alpha / np.maximum(share, 1.0)[problem.group]
    for k in np.flatnonzero(problem.is_free):
        alpha = balanced(problem, alpha, problem.Z[:, k], problem.q[k])
    return alpha


def balanced(problem: Kinked, alpha: Floats, z: Floats, total: float) -> Floats:
    """z'alpha = total, by shrinking the side that has too much.

    Where all rows are on one side and have too little, they move towards their C.
    """
    excess = z @ alpha - total
    if excess == 0.0:
        return alpha
    side = z * excess > 0.0
    if side.any() and (z * alpha)[side].sum() != 0.0:
        kept = 1.0 - excess / (z * alpha)[side].sum()
        return np.where(side, alpha * kept, alpha)
    room = problem.C[problem.group] - alpha
    return alpha - room * (excess / (z @ room))


# ------------------------------------------------------------------------- iterations
def bounds(problem: Kinked) -> Bounds:
    """A lower and an upper bound of the least value, usually to ten digits."""
    point = start(problem)
    found = Bounds(-np.inf, np.inf)
    for _ in range(MAX_STEPS):
        found = Bounds(
            max(found.lower, dual_value(problem, point.alpha)),
            min(found.upper, primal_value(problem, point.u)),
        )
        if found.upper - found.lower <= GAP * abs(found.upper):
            break
        point = next_point(problem, point)
    return found


def start(problem: Kinked) -> Point:
    sizes = np.bincount(problem.group, minlength=len(problem.C))
    alpha = (problem.C / (1.0 + sizes))[problem.group]
    one = np.ones(len(problem.C))
    return Point(
        np.zeros(problem.Z.shape[1]),
        alpha,
        np.ones(len(alpha)),
        one,
        problem.C / (1.0 + sizes),
    )


def next_point(problem: Kinked, point: Point) -> Point:
    """One predictor, and one corrector that aims at the centre as far as it may."""
    n = len(point.alpha) + len(point.t)
    system = Newton(problem, point)
    aim = system.direction(0.0, 0.0)
    mu = (point.alpha @ point.s + point.t @ point.xi) / n
    reached = moved(point, aim, min(1.0, longest(point, aim)))
    left = (reached.alpha @ reached.s + reached.t @ reached.xi) / n
    centre = mu * (left / mu) ** 3
    aim = system.direction(centre - aim.alpha * aim.s, centre - aim.t * aim.xi)
    length = min(1.0, SHORT_OF_THE_WALL * longest(point, aim))
    return moved(point, aim, length)


def moved(point: Point, aim: Point, length: float) -> Point:
    return Point(*(a + length * b for a, b in zip(point, aim, strict=True)))


def longest(point: Point, aim: Point) -> float:
    """The longest step that keeps all that must be positive so."""
    ratios = [
        -value[step < 0.0] / step[step < 0.0]
        for value, step in zip(point[1:], aim[1:], strict=True)
    ]
    return float(np.concatenate(ratios).min(initial=np.inf))


def pairs(problem: Kinked) -> tuple[Ints, Ints]:
    """Every pair of rows that share a group."""
    ends = np.append(problem.starts[1:], len(problem.group))
    found = [
        (first, second)
        for start, end in zip(problem.starts, ends, strict=True)
        for first, second in combinations(range(start, end), 2)
    ]
    first, second = np.array(found, dtype=np.intp).reshape(-1, 2).T
    return first, second


class Newton:
    """The linear system of a point: all but the weights is eliminated by formula.

    What is inverted is diag(s / alpha) + E diag(xi / t) E', with E the groups; its
    inverse is written as a sum of squares, since a difference would lose all digits.
    """

    def __init__(self, problem: Kinked, point: Point) -> None:
        self.problem, self.point = problem, point
        self.first, self.second = pairs(problem)
        pull, slack = point.alpha / point.s, point.t / point.xi
        share = 1.0 / (slack + summed(pull, problem))
        self.alone = pull * (slack * share)[problem.group]
        in_pair = share[problem.group[self.first]]
        self.paired = pull[self.first] * (pull[self.second] * in_pair)
        Z, apart = problem.Z, problem.Z[self.first] - problem.Z[self.second]
        H = Z.T @ (self.alone[:, None] * Z) + apart.T @ (self.paired[:, None] * apart)
        H[np.diag_indices_from(H)] += np.where(problem.is_free, 0.0, 1.0)
        H[np.diag_indices_from(H)] += TINY * H.diagonal().max()
        self.factor = cho_factor(H)

    def inverse(self, v: Floats) -> Floats:
        n = len(v)
        apart = self.paired * (v[self.first] - v[self.second])
        gained = np.bincount(self.first, apart, n) - np.bincount(self.second, apart, n)
        return self.alone * v + gained

    def direction(self, rows: float | Floats, groups: float | Floats) -> Point:
        """Where alpha s = rows and t xi = groups, to first order."""
        (Z, c, group, C, q, is_free), (u, alpha, s, xi, t) = self.problem, self.point
        a, b = rows - alpha * s, groups - t * xi
        stationary = np.where(is_free, 0.0, u) + q - Z.T @ alpha
        infeasible = Z @ u + xi[group] - s - c
        g = a / alpha - infeasible - (b / t)[group]
        du = cho_solve(self.factor, Z.T @ self.inverse(g) - stationary)
        dalpha = self.inverse(g - Z @ du)
        dt = C - summed(alpha, self.problem) - t - summed(dalpha, self.problem)
        return Point(du, dalpha, (a - s * dalpha) / alpha, (b - xi * dt) / t, dt)
