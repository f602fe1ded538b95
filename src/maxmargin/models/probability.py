"""How likely is each class? Sigmoids of decision values, coupled over all pairs.

(Platt, 1999; Wu, Lin & Weng, JMLR 5, 2004, their second method; marks of a one-class
machine: Que & Lin, 2023.) Where LIBSVM stops early, this stops early too: its figures
are what people compare with.
"""

import math

import numpy as np

from maxmargin.data.labels import pairs_of
from maxmargin.typing import FloatMatrix, FloatVector

SMALLEST = 1e-7  # no pair is surer than this
COUPLING_TOL = 0.005  # divided by the number of classes
COUPLING_SWEEPS = 100  # or as many as there are classes, if they are more
SAME_RANK = 1e-9  # what rounding leaves of a rank that is a whole number
RARE = 1e-3  # beyond the outermost marks of a one-class machine


def pair_probabilities(
    decisions: FloatMatrix, slope: FloatVector, offset: FloatVector
) -> FloatMatrix:
    """For each pair, how likely its first class is: 1 / (1 + exp(A d + B))."""
    from scipy.special import expit  # slow to load, and training does without it

    likely = expit(-(decisions * slope + offset))
    return np.clip(likely, SMALLEST, 1.0 - SMALLEST)


def couple(pairwise: FloatMatrix, n_classes: int) -> FloatMatrix:
    """Probabilities of the classes that agree best with those of their pairs.

    The minimum of p'Qp over the simplex, with Q_tt the sum of r_jt² over the others
    and Q_tj = -r_jt r_tj, found coordinate by coordinate for all samples at once.
    """
    n = len(pairwise)
    if n_classes == 2:
        return np.column_stack((pairwise[:, 0], 1.0 - pairwise[:, 0]))
    Q = _quadratic(pairwise, n_classes)
    p = np.full((n, n_classes), 1.0 / n_classes)
    going = np.arange(n)
    for _ in range(max(COUPLING_SWEEPS, n_classes)):
        Qp = np.einsum("stj,sj->st", Q[going], p[going])
        pQp = np.einsum("st,st->s", p[going], Qp)
        error = np.abs(Qp - pQp[:, None]).max(axis=1)
        is_open = error >= COUPLING_TOL / n_classes
        going, Qp, pQp = going[is_open], Qp[is_open], pQp[is_open]
        if not len(going):
            break
        p[going] = _sweep(Q[going], p[going], Qp, pQp)
    return p


def _quadratic(pairwise: FloatMatrix, n_classes: int) -> FloatMatrix:
    Q = np.zeros((len(pairwise), n_classes, n_classes))
    for number, (i, j) in enumerate(pairs_of(n_classes)):
        first, second = pairwise[:, number], 1.0 - pairwise[:, number]
        Q[:, i, i] += second * second
        Q[:, j, j] += first * first
        Q[:, i, j] = Q[:, j, i] = -first * second
    return Q


def _sweep(
    Q: FloatMatrix, p: FloatMatrix, Qp: FloatMatrix, pQp: FloatVector
) -> FloatMatrix:
    """Each coordinate to its optimum in turn, and back onto the simplex."""
    for t in range(p.shape[1]):
        step = (pQp - Qp[:, t]) / Q[:, t, t]
        grown = 1.0 + step
        pQp = (pQp + step * (step * Q[:, t, t] + 2.0 * Qp[:, t])) / grown**2
        Qp = (Qp + step[:, None] * Q[:, t]) / grown[:, None]
        p[:, t] += step
        p /= grown[:, None]
    return p


def sharpen(shares: FloatMatrix, power: float) -> FloatMatrix:
    """Probabilities to this power, divided by their sum: above 1 they are surer."""
    if power == 1.0:
        return shares
    raised = (shares / shares.max(axis=1, keepdims=True)) ** power
    likely: FloatMatrix = raised / raised.sum(axis=1, keepdims=True)
    return likely


def laplace_width(scale: float, coverage: float) -> float:
    """Half the width of the interval that a Laplace variable is in this often."""
    return -scale * math.log1p(-coverage)


def conformal_width(residuals: FloatVector, coverage: float) -> float:
    """The error, of these sorted ones, that a new one does not exceed this often.

    The rank counts the new sample too (Papadopoulos et al., 2002; Lei et al., 2018):
    where that asks for more than there are, nothing finite is wide enough.
    """
    rank = math.ceil((len(residuals) + 1) * coverage - SAME_RANK)
    return float(residuals[rank - 1]) if rank <= len(residuals) else math.inf


def inlier_probability(decisions: FloatVector, marks: FloatVector) -> FloatVector:
    """How likely a sample is ordinary: tenths between marks on the decision value."""
    tenth = np.searchsorted(marks, decisions, side="right")
    likely = tenth / 10.0
    likely[decisions < marks[0]] = RARE
    likely[decisions > marks[-1]] = 1.0 - RARE
    return likely
