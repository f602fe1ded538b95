"""What does one sweep of dual coordinate descent do? One exact step per sample.

The step on sample i minimises the dual over beta_i alone: the gradient there is one dot
product with w, and w moves by a multiple of x_i. Nothing happens where the projected
gradient is zero: at the minimum, or at a bound that the gradient pushes against.
(Hsieh, Chang, Lin, Keerthi & Sundararajan 2008; Ho & Lin 2012 for regression.)
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.data.row_verbs import RowParts, row_add, row_dot
from maxmargin.problems.linear import LOGISTIC, sigmoid, terms
from maxmargin.typing import FloatVector, IntVector

IDLE = 1e-12  # projected gradients no larger move nothing
LOGIT_STEPS = 100  # Newton steps for one sample of the logistic dual
LOGIT_TOL = 1e-10  # their accuracy, in units of the sigmoid

Kind = tuple[int, float, float]  # loss, epsilon, bias


class Sweep(NamedTuple):
    """All that a sweep reads and moves, as plain arrays."""

    target: FloatVector
    cost: FloatVector
    norm: FloatVector  # <x_i, x_i>
    beta: FloatVector
    w: FloatVector
    order: IntVector  # active samples first, in the order of the visit
    place: IntVector  # (next position, number of active samples)
    violation: FloatVector  # (largest of this sweep so far, that of the last one)


@jit
def shuffle(order: IntVector, n_active: int, random: np.ndarray) -> None:
    """A random order of the first n_active entries (Fisher & Yates; xorshift)."""
    x = random[0]
    for i in range(n_active - 1, 0, -1):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        high = x >> np.uint64(32)  # its product with i + 1 does not overflow
        j = np.intp((high * np.uint64(i + 1)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]
    random[0] = x


@jit
def sweep_some(rows: RowParts, kind: Kind, sweep: Sweep, n_steps: int) -> None:
    """Visit the next n_steps samples; shrink those that lean on a bound."""
    loss, epsilon, bias = kind
    target, cost, norm, beta, w, order, place, violation = sweep
    s, n_active = place[0], place[1]
    worst, threshold = violation[0], violation[1]
    last = min(s + n_steps, n_active)
    while s < last:
        i = order[s]
        y, c, b = target[i], cost[i], beta[i]
        z = row_dot(rows, i, w)
        if bias != 0.0:
            z += bias * w[-1]
        if loss == LOGISTIC:
            new, gradient = _logit_step(y, c, b, z, norm[i])
            rest = 0.0
        else:
            new, gradient, rest = _box_step(terms(loss, epsilon, y, c), b, z, norm[i])
        if rest > threshold:
            n_active -= 1
            last = min(last, n_active)
            order[s], order[n_active] = order[n_active], order[s]
            continue
        worst = max(worst, gradient)
        if new != b:
            beta[i] = new
            row_add(rows, i, new - b, w)
            if bias != 0.0:
                w[-1] += bias * (new - b)
        s += 1
    place[0], place[1], violation[0] = s, n_active, worst


@jit
def _box_step(
    term: tuple[float, float, float, float, float], b: float, z: float, norm: float
) -> tuple[float, float, float]:
    """(new value, |projected gradient|, how firmly a bound holds it)."""
    linear, kink, lower, upper, ridge = term
    slope = linear + z + ridge * b
    right = slope + kink if b >= 0.0 else slope - kink
    left = slope + kink if b > 0.0 else slope - kink
    if b < upper and right < -IDLE:
        gradient = -right
    elif b > lower and left > IDLE:
        gradient = left
    else:
        rest = np.inf
        if b < upper:
            rest = min(rest, right)
        if b > lower:
            rest = min(rest, -left)
        return b, 0.0, rest
    bend = norm + ridge
    if bend <= 0.0:  # an all-zero sample: it goes as far as its box lets it
        far = upper if right < 0.0 else lower
        return (0.0 if kink > abs(slope) else far), 0.0, 0.0
    force = bend * b - slope
    if force > kink:
        new = (force - kink) / bend
    elif force < -kink:
        new = (force + kink) / bend
    else:
        new = 0.0
    return min(max(new, lower), upper), gradient, 0.0


@jit
def _logit_step(
    y: float, c: float, b: float, z: float, norm: float
) -> tuple[float, float]:
    """(new value, violation): find the decision value that agrees with its own beta.

    With beta = y c s(-y v), the minimum over beta is where v = z + norm (beta - b):
    a monotone equation in v, solved by Newton steps inside a bracket.
    """
    share = sigmoid(-y * z)
    gradient = 4.0 * abs(y * b / c - share)
    low = z + norm * (min(0.0, y * c) - b)
    high = z + norm * (max(0.0, y * c) - b)
    v = min(max(z, low), high)
    for _ in range(LOGIT_STEPS):
        share = sigmoid(-y * v)
        new = y * c * share
        miss = v - z - norm * (new - b)
        if miss > 0.0:
            high = v
        else:
            low = v
        step = miss / (1.0 + norm * c * share * (1.0 - share))
        v -= step
        if not low <= v <= high:
            v = 0.5 * (low + high)
        if abs(step) <= LOGIT_TOL * (1.0 + abs(v)):
            break
    return y * c * sigmoid(-y * v), gradient
