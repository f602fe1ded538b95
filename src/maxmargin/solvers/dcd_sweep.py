"""What do sweeps of dual coordinate descent do? One exact step per sample.

The step on sample i minimises the dual over beta_i alone: the gradient there is one dot
product with w, and w moves by a multiple of x_i. Nothing happens where the projected
gradient is zero: at the minimum, or at a bound that the gradient pushes against.
(Hsieh, Chang, Lin, Keerthi & Sundararajan 2008; Ho & Lin 2012 for regression.)
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.data.row_verbs import RowParts, row_add, row_dot
from maxmargin.problems.linear import LOGISTIC, Terms, sigmoid, terms
from maxmargin.typing import FloatVector, IntVector

IDLE = 1e-12  # projected gradients no larger move nothing
LOGIT_STEPS = 100  # Newton steps for one sample of the logistic dual
LOGIT_TOL = 1e-10  # their accuracy, in units of the sigmoid

Kind = tuple[int, float, float]  # loss, epsilon, bias


class Sweep(NamedTuple):
    """All that sweeps read and move, as plain arrays."""

    target: FloatVector
    cost: FloatVector
    norm: FloatVector  # <x_i, x_i>
    beta: FloatVector
    w: FloatVector
    order: IntVector  # active samples first, in the order of the visit
    place: IntVector  # (next position, number of active samples)
    violation: FloatVector  # (largest of this sweep so far, that of the last one)
    random: np.ndarray  # the state of xorshift


class SweepLog(NamedTuple):
    """What the sweeps of one call found, one entry a sweep."""

    violation: FloatVector  # the largest
    visits: IntVector  # samples that stayed active


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
def sweep_some(
    rows: RowParts,
    kind: Kind,
    sweep: Sweep,
    wanted: float,
    max_visits: int,
    log: SweepLog,
) -> int:
    """Make up to len(log.visits) sweeps; return how many were completed.

    They end earlier after one whose largest violation is at most `wanted`, or in the
    middle of one after `max_visits` samples: the next call goes on from there. A sample
    that a bound holds more firmly than the last sweep's violation is shrunk.
    """
    loss, epsilon, bias = kind
    target, cost, norm, beta, w, order, place, violation, random = sweep
    s, n_active = place[0], place[1]
    worst, threshold = violation[0], violation[1]
    n_sweeps, n_left = 0, max_visits
    while n_sweeps < len(log.visits) and n_left > 0:
        if s == 0:
            shuffle(order, n_active, random)
        last = min(s + n_left, n_active)
        n_left -= last - s
        while s < last:
            i = order[s]
            y, c, b = target[i], cost[i], beta[i]
            z = row_dot(rows, i, w) + bias * w[-1]
            if loss == LOGISTIC:
                new, gain = _logit_step(y, c, b, z, norm[i])
            else:
                new, gain = _box_step(terms(loss, epsilon, y, c), b, z, norm[i])
            if gain < -threshold:
                n_active -= 1
                last = min(last, n_active)
                order[s], order[n_active] = order[n_active], order[s]
                continue
            worst = max(worst, gain)
            if new != b:
                beta[i] = new
                row_add(rows, i, new - b, w)
                w[-1] += bias * (new - b)
            s += 1
        if s < n_active:
            break
        log.violation[n_sweeps], log.visits[n_sweeps] = worst, s
        n_sweeps += 1
        if worst <= wanted:
            n_left = 0
        s, threshold, worst = 0, worst if worst > 0.0 else np.inf, 0.0
    place[0], place[1] = s, n_active
    violation[0], violation[1] = worst, threshold
    return n_sweeps


@jit
def _box_step(term: Terms, b: float, z: float, norm: float) -> tuple[float, float]:
    """(new value, violation); below 0, how firmly a bound or the kink holds it."""
    linear, kink, lower, upper, ridge = term
    slope = linear + z + ridge * b
    right = slope + kink if b >= 0.0 else slope - kink
    left = slope + kink if b > 0.0 else slope - kink
    gain = -right if b < upper else -np.inf
    if b > lower:
        gain = max(gain, left)
    if gain <= IDLE:
        return b, min(gain, 0.0)
    bend = norm + ridge
    if bend <= 0.0:  # an all-zero sample: it goes as far as its box lets it
        far = upper if right < 0.0 else lower
        return 0.0 if kink > abs(slope) else far, gain
    force = bend * b - slope
    if force > kink:
        new = (force - kink) / bend
    elif force < -kink:
        new = (force + kink) / bend
    else:
        new = 0.0
    return min(max(new, lower), upper), gain


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
