"""How low can a smooth loss go? Dual points from the slopes of the losses.

At weights w, beta = -C times the slopes is a dual point; made feasible, its dual
objective is a lower bound. A few Newton steps before make it a tight one: for the l2
penalty from anywhere, for l1 from anywhere near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from naive_losses import Floats, Problem, cost, losses
from scipy.special import expit, xlogy

NEWTON_STEPS = 50
POLISHED = 1e-11  # relative: a gap this small needs no further step
SMALLEST = np.finfo(np.float64).tiny  # keeps 0 / 0 away
RIDGE = 1e-14  # of the largest diagonal: equal features have no curvature between them
SWEEPS = 50


def slopes(problem: Problem, z: Floats) -> Floats:
    """beta = -C times the derivative of the loss: the dual point of a smooth loss."""
    y, C = problem.y, problem.C
    if problem.loss == "logistic":
        return C * y * expit(-y * z)
    if problem.loss == "squared_hinge":
        return 2 * C * y * np.maximum(1 - y * z, 0.0)
    off = y - z
    return 2 * C * np.sign(off) * np.maximum(np.abs(off) - problem.epsilon, 0.0)


def curvatures(problem: Problem, z: Floats) -> Floats:
    """C times the second derivative of the loss; on a kink of it, either side's."""
    y, C = problem.y, problem.C
    if problem.loss == "logistic":
        return C * expit(z) * expit(-z)
    if problem.loss == "squared_hinge":
        return 2 * C * (y * z < 1)
    return 2 * C * (np.abs(y - z) > problem.epsilon)


def dual_smooth(problem: Problem, beta: Floats) -> float:
    """The dual objective of a point that is feasible (see `dual_point`)."""
    y, C = problem.y, problem.C
    pull = problem.columns.T @ beta
    kept = pull[~problem.is_free]
    spent = 0.0 if problem.penalty == "l1" else 0.5 * float(kept @ kept)
    if problem.loss == "logistic":
        a = y * beta
        entropy = xlogy(a, a / C) + xlogy(C - a, (C - a) / C)
        return float(-entropy.sum()) - spent
    gain = y @ beta - problem.epsilon * np.abs(beta).sum()
    return float(gain - (beta**2 / (4 * C)).sum()) - spent


def dual_point(problem: Problem, w: Floats) -> Floats:
    """Slopes at w, made feasible: sum zero for a free column, pulls up to 1 for l1."""
    beta = slopes(problem, problem.columns @ w)
    if problem.bias == "free":
        above, below = beta[beta > 0].sum(), -beta[beta < 0].sum()
        larger = max(above, below, SMALLEST)
        shrunk = (beta > 0) == (above > below)
        beta = np.where(shrunk, beta * (min(above, below) / larger), beta)
    if problem.penalty == "l1":
        pull = np.abs(problem.columns.T @ beta)[~problem.is_free]
        beta = beta / max(1.0, pull.max())
    return beta


def polished(problem: Problem, w: Floats) -> float:
    """The best dual objective of a few Newton steps that start at w."""
    best = -np.inf
    for _ in range(NEWTON_STEPS):
        z = problem.columns @ w
        value = cost(problem, w) + problem.C @ losses(problem, z)
        best = max(best, dual_smooth(problem, dual_point(problem, w)))
        if value - best <= POLISHED * value:
            break
        before, w = w, after_newton(problem, w, float(value))
        if w is before:
            break
    return best


def after_newton(problem: Problem, w: Floats, value: float) -> Floats:
    """w after one damped Newton step.

    With an l1 penalty, that is one in the face of the ball on which w stands; where
    that leads nowhere, one by the least point of the quadratic model.
    """
    columns, free = problem.columns, problem.is_free
    z = columns @ w
    pull = columns.T @ slopes(problem, z)
    is_l1 = problem.penalty == "l1"
    moves = free | (w != 0.0) | (np.abs(pull) > 1.0) | (not is_l1)
    face = columns[:, moves]
    H = face.T @ (curvatures(problem, z)[:, None] * face)
    H[np.diag_indices_from(H)] += np.where(free[moves] | is_l1, 0.0, 1.0)
    H[np.diag_indices_from(H)] += RIDGE * H.diagonal().max(initial=1.0)
    sign = np.where(free, 0.0, np.sign(np.where(w == 0.0, pull, w))) if is_l1 else 0 * w
    grad = (sign if is_l1 else np.where(free, 0.0, w)) - pull
    step = np.zeros(len(w))
    step[moves] = -np.linalg.solve(H, grad[moves])
    new = shorter(problem, w, step, sign, value)
    if new is None and is_l1:
        model = Model(H, pull[moves], np.where(free[moves], 0.0, 1.0))
        step[moves] = least(model, w[moves]) - w[moves]
        new = shorter(problem, w, step, 0 * sign, value)
    return w if new is None else new


def shorter(
    problem: Problem, w: Floats, step: Floats, sign: Floats, value: float
) -> Floats | None:
    """The first of w + step, w + step / 2, ... that is better, zero at wrong signs."""
    for length in 0.5 ** np.arange(30):
        new = w + length * step
        new = np.where(new * sign < 0.0, 0.0, new)
        z = problem.columns @ new
        if cost(problem, new) + problem.C @ losses(problem, z) < value:
            return new
    return None


class Model(NamedTuple):
    """1/2 (v - w)'H(v - w) - pull'(v - w) + price'|v|."""

    H: Floats
    pull: Floats
    price: Floats


def least(model: Model, w: Floats) -> Floats:
    """Where the model is least, nearly: by coordinates in turn."""
    v, pull, bends = w.copy(), model.pull.copy(), model.H.diagonal()
    for _ in range(SWEEPS):
        for j in range(len(v)):
            aim = bends[j] * v[j] + pull[j]
            new = np.sign(aim) * max(abs(aim) - model.price[j], 0.0) / bends[j]
            if new != v[j]:
                pull -= model.H[j] * (new - v[j])
                v[j] = new
    return v
