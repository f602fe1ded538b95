r"""How sure may coupled probabilities be? One power, fitted to samples held out.

The probabilities that agree best with all pairs (Wu, Lin & Weng, 2004) are not as sure
as they might be, and the more classes there are, the less. Raised to a power t and
divided by their sum, they minimise

.. math:: -\sum_i w_i \log \frac{p_{i y_i}^t}{\sum_k p_{ik}^t} + t - 1 - \log t

which is convex in t. The last terms (a gamma distribution before anything is seen,
likeliest at 1, that weighs as much as one sample) keep t positive and finite.

Samples need not be held out again: the folds of a pair told the decision values of its
own samples, and no pair has ever seen those of other classes.
"""

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.data.labels import Labels
from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.models.calibration import CalibratedPair
from maxmargin.models.multiclass import PairMachines, class_parts, pair_decisions
from maxmargin.models.probability import couple, pair_probabilities
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

ENOUGH = 500  # samples: reading one number off them costs 1 / 1000 in log-loss
BLOCK_ENTRIES = 1 << 20  # kernel values held at once
NEWTON_STEPS = 100
PRECISION = 1e-9  # relative, of the power


def calibrate_power(
    gram: Gram,
    labels: Labels,
    pairs: PairMachines,
    calibrated: list[CalibratedPair],
    weight: FloatVector,
) -> float:
    """The power of coupled probabilities under which the labels are likeliest.

    O(n_SV) kernel values for each of at most 500 samples.
    """
    rows = spread(labels.code, ENOUGH)
    decisions = held_out_of_all(gram, labels, pairs, calibrated, rows)
    slope = np.array([pair.sigmoid.slope for pair in calibrated])
    offset = np.array([pair.sigmoid.offset for pair in calibrated])
    shares = couple(pair_probabilities(decisions, slope, offset), labels.n_classes)
    return fit_power(shares, labels.code[rows], weight[rows])


def spread(code: IntVector, most: int) -> IntVector:
    """Rows evenly spread over those of each class, without chance."""
    by_class = np.argsort(code, kind="stable")
    n = len(code)
    return by_class if n <= most else by_class[np.arange(most) * n // most]


def held_out_of_all(
    gram: Gram,
    labels: Labels,
    pairs: PairMachines,
    calibrated: list[CalibratedPair],
    rows: IntVector,
) -> FloatMatrix:
    """Decision values of every pair at these rows, none by who has seen the row."""
    decisions = _decisions(gram, pairs, rows)
    members = [np.flatnonzero(labels.code == c) for c in range(labels.n_classes)]
    held_out = np.empty(len(labels.code))
    for number, (i, j) in enumerate(labels.pairs()):
        own = np.concatenate((members[i], members[j]))  # as in `fit_pairs`
        held_out[own] = calibrated[number].decisions
        is_known = (labels.code[rows] == i) | (labels.code[rows] == j)
        decisions[is_known, number] = held_out[rows[is_known]]
    return decisions


def _decisions(gram: Gram, pairs: PairMachines, rows: IntVector) -> FloatMatrix:
    parts = class_parts(pairs.dual_coef, pairs.n_support)
    intercept = pairs.fitted.intercept + pairs.fitted.offset
    step = max(1, BLOCK_ENTRIES // max(1, len(pairs.support)))
    blocks = []
    for first in range(0, len(rows), step):
        raise_if_stopped()
        K = gram_block(gram, rows[first : first + step], pairs.support)
        sums = [K[:, where] @ coef for where, coef in parts]
        blocks.append(pair_decisions(sums, intercept))
    return np.concatenate(blocks)


def fit_power(shares: FloatMatrix, code: IntVector, weight: FloatVector) -> float:
    """The power under which these labels are likeliest; weight k counts as k copies."""
    height = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
    told = height[np.arange(len(code)), code]
    low, high, power = 0.0, np.inf, 1.0
    for _ in range(NEWTON_STEPS):
        slope, bend = _derivatives(power, height, told, weight)
        low, high = (low, power) if slope > 0.0 else (power, high)
        new = power - slope / bend
        if not low < new < high:
            new = 2.0 * power if high == np.inf else 0.5 * (low + high)
        is_found = abs(new - power) <= PRECISION * power
        power = new
        if is_found:
            break
    return float(power)


def _derivatives(
    power: float, height: FloatMatrix, told: FloatVector, weight: FloatVector
) -> tuple[float, float]:
    scaled = power * height
    scaled -= scaled.max(axis=1, keepdims=True)
    shares = np.exp(scaled)
    shares /= shares.sum(axis=1, keepdims=True)
    mean = np.einsum("ik,ik->i", shares, height)
    spread_of = np.einsum("ik,ik->i", shares, (height - mean[:, None]) ** 2)
    slope = float(weight @ (mean - told)) + 1.0 - 1.0 / power
    return slope, float(weight @ spread_of) + 1.0 / power**2
