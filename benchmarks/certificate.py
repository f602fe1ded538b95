"""How good is an answer? Objective and KKT violation, in float64 and plain NumPy.

Nothing here comes from maxmargin, so that its answers and LIBSVM's are judged alike.
Both keep one signed coefficient per support vector: beta, on LIBSVM's scale.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

AT_BOUND = 1e-9  # relative: coefficients are stored after a division


class Fit(NamedTuple):
    """A fitted machine as scikit-learn lays it out, whoever fitted it."""

    support: np.ndarray  # training rows, class by class
    n_support: np.ndarray  # one number per class
    coef: np.ndarray  # (n_classes - 1, n_support); one row for other machines
    intercept: np.ndarray


class Box(NamedTuple):
    """One dual problem: 1/2 b'Kb + linear'b + kink |b|, lower <= b <= upper."""

    K: np.ndarray
    linear: np.ndarray
    kink: float
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray
    beta: np.ndarray
    margin: float = 1.0  # nu-SVC: coefficients are beta / margin


def rbf(A: Any, B: Any, gamma: float) -> np.ndarray:
    """exp(-gamma |a - b|^2), difference by difference."""
    A, B = (X.toarray() if hasattr(X, "toarray") else X for X in (A, B))
    return np.array([np.exp(-gamma * np.square(a - B).sum(axis=1)) for a in A])


def pairs_of(fit: Fit, n: int) -> list[tuple[int, int, np.ndarray]]:
    """(i, j, coefficients of all n rows) for every pair of classes."""
    ends = np.cumsum(fit.n_support)
    part = [slice(e - m, e) for e, m in zip(ends, fit.n_support, strict=True)]
    found = []
    for i, j in combinations(range(len(part)), 2):
        coef = np.zeros(n)
        coef[fit.support[part[i]]] = fit.coef[j - 1, part[i]]
        coef[fit.support[part[j]]] = fit.coef[i, part[j]]
        found.append((i, j, coef))
    return found


def c_svc_objective(fit: Fit, support: Any, gamma: float) -> float:
    """Sum over pairs of 1/2 b'Kb - sum |b|, K between the support vectors."""
    total = 0.0
    numbered = fit._replace(support=np.arange(len(fit.support)))
    for _, _, coef in pairs_of(numbered, len(fit.support)):
        near = np.flatnonzero(coef)
        K = rbf(support[near], support[near], gamma)
        total += 0.5 * coef[near] @ K @ coef[near] - np.abs(coef).sum()
    return float(total)


# The five problems, from their coefficients.


def classification(
    fit: Fit, K: np.ndarray, code: np.ndarray, settings: dict[str, float]
) -> list[Box]:
    """One problem per pair; `code` numbers the classes as the fit does."""
    boxes = []
    for i, j, coef in pairs_of(fit, len(code)):
        rows = np.flatnonzero((code == i) | (code == j))
        y = np.where(code[rows] == i, 1.0, -1.0)
        y = y if (coef[rows] * y).sum() >= 0.0 else -y  # two classes: either sign
        near, beta = K[np.ix_(rows, rows)], coef[rows]
        boxes.append(
            _nu_svc(near, y, beta, settings["nu"])
            if "nu" in settings
            else _c_svc(near, y, beta, settings["C"])
        )
    return boxes


def _c_svc(K: np.ndarray, y: np.ndarray, beta: np.ndarray, C: float) -> Box:
    lower, upper = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
    return Box(K, -y, 0.0, lower, upper, np.zeros(len(y)), beta)


def _nu_svc(K: np.ndarray, y: np.ndarray, coef: np.ndarray, nu: float) -> Box:
    margin = 0.5 * nu * len(y) / coef[y > 0].sum()
    lower, upper = np.minimum(y, 0.0), np.maximum(y, 0.0)
    return Box(K, 0.0 * y, 0.0, lower, upper, y, coef * margin, margin)


def regression(
    fit: Fit, K: np.ndarray, z: np.ndarray, settings: dict[str, float]
) -> list[Box]:
    """epsilon-SVR, or nu-SVR with its two variables a row written apart."""
    beta, C = np.zeros(len(z)), np.full(len(z), settings["C"])
    beta[fit.support] = fit.coef[0]
    none = np.zeros(len(z))
    if "nu" not in settings:
        return [Box(K, -z, settings["epsilon"], -C, C, none, beta)]
    above, below = np.maximum(beta, 0.0), np.minimum(beta, 0.0)
    return [
        Box(
            np.tile(K, (2, 2)),
            np.tile(-z, 2),
            0.0,
            np.concatenate((none, -C)),
            np.concatenate((C, none)),
            np.repeat((0, 1), len(z)),
            np.concatenate((above, below)),
        )
    ]


def novelty(fit: Fit, K: np.ndarray) -> list[Box]:
    """The one-class machine."""
    beta = np.zeros(len(K))
    beta[fit.support] = fit.coef[0]
    none = np.zeros(len(K))
    return [Box(K, none, 0.0, none, none + 1.0, none, beta)]


# Their measures.


def objective(box: Box) -> float:
    """The dual objective as LIBSVM prints it."""
    b = box.beta
    value = 0.5 * b @ box.K @ b + box.linear @ b + box.kink * np.abs(b).sum()
    return float(value / box.margin**2)


def violation(box: Box) -> float:
    """LIBSVM's stopping measure: what the worst pair of a group could still gain."""
    b = _snapped(box)
    grad = box.K @ b + box.linear
    left = grad + np.where(b > 0.0, box.kink, -box.kink)
    right = grad + np.where(b >= 0.0, box.kink, -box.kink)
    left[b <= box.lower], right[b >= box.upper] = -np.inf, np.inf
    inside = [box.group == g for g in np.unique(box.group)]
    return float(max(left[here].max() - right[here].min() for here in inside))


def _snapped(box: Box) -> np.ndarray:
    """beta, put on the bound that rounding keeps it from."""
    beta = box.beta.copy()
    for bound in (box.lower, box.upper):
        near = np.abs(beta - bound) <= AT_BOUND * np.abs(bound)
        beta[near] = bound[near]
    return beta
