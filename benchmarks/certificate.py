"""How good is an answer? Objective and KKT violation, in float64 and plain NumPy.

Nothing here comes from maxmargin, so that its answers and LIBSVM's are judged alike.
Both keep one signed coefficient per support vector: beta, on LIBSVM's scale.
"""

from copy import copy
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

BLOCK_VALUES = 2**22  # of a large matrix, in memory at once
AT_BOUND = 1e-9  # relative: coefficients are stored after a division


class Fit(NamedTuple):
    """A fitted machine as scikit-learn lays it out, whoever fitted it."""

    support: np.ndarray  # training rows, class by class
    n_support: np.ndarray  # one number per class
    coef: np.ndarray  # (n_classes - 1, n_support); one row for other machines
    intercept: np.ndarray


class LargeGram:
    """The RBF kernel between rows, for sets whose matrix does not fit into memory.

    Blocks are computed when it is multiplied, from dot products: of dense rows moved to
    their mean, which leaves a rounding of 1e-16 gamma |x|^2.
    """

    def __init__(self, X: Any, gamma: float) -> None:
        is_sparse = hasattr(X, "toarray")
        self.X = X if is_sparse else X - X.mean(axis=0)
        squares = X.multiply(X) if is_sparse else np.square(self.X)
        self.norms = np.asarray(squares.sum(axis=1)).ravel()
        self.gamma = gamma
        self.rows = self.columns = np.arange(len(self.norms))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, crossing: tuple[np.ndarray, np.ndarray]) -> "LargeGram":
        """What np.ix_ asks of a matrix; no row of X is copied."""
        part, (down, across) = copy(self), map(np.ravel, crossing)
        part.rows, part.columns = self.rows[down], self.columns[across]
        return part

    def __matmul__(self, beta: np.ndarray) -> np.ndarray:
        near = np.flatnonzero(beta)
        across = self.X[self.columns[near]]
        norms = self.norms[self.columns[near]]
        product = np.empty(len(self))
        height = BLOCK_VALUES // max(len(near), 1) + 1
        for start in range(0, len(self), height):
            here = slice(start, start + height)
            product[here] = self._block(self.rows[here], across, norms) @ beta[near]
        return product

    def _block(self, down: np.ndarray, across: Any, norms: np.ndarray) -> np.ndarray:
        """exp(-gamma |a - b|^2) from |a|^2 - 2 ab + |b|^2."""
        dots = self.X[down] @ across.T
        K = dots.toarray() if hasattr(dots, "toarray") else dots
        K *= 2.0
        K -= self.norms[down][:, None]
        K -= norms
        K *= self.gamma
        return np.exp(np.minimum(K, 0.0, out=K), out=K)


Gram = np.ndarray | LargeGram


class Box(NamedTuple):
    """One dual problem: 1/2 b'Kb + linear'b + kink |b|, lower <= b <= upper."""

    K: Gram
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


class Answered(NamedTuple):
    """Which machine was fitted, to what targets, and with what."""

    machine: str
    y: np.ndarray  # classes are numbered as the fit does
    settings: dict[str, float]


def boxes_of(asked: Answered, fit: Fit, K: Gram) -> list[Box]:
    """The problems behind a fit: one per pair of classes, or one."""
    if asked.machine in ("SVC", "NuSVC"):
        return classification(fit, K, asked.y, asked.settings)
    if asked.machine in ("SVR", "NuSVR"):
        return regression(fit, K, asked.y, asked.settings)
    return novelty(fit, K)


def classification(
    fit: Fit, K: Gram, code: np.ndarray, settings: dict[str, float]
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


def _c_svc(K: Gram, y: np.ndarray, beta: np.ndarray, C: float) -> Box:
    lower, upper = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
    return Box(K, -y, 0.0, lower, upper, np.zeros(len(y)), beta)


def _nu_svc(K: Gram, y: np.ndarray, coef: np.ndarray, nu: float) -> Box:
    margin = 0.5 * nu * len(y) / coef[y > 0].sum()
    lower, upper = np.minimum(y, 0.0), np.maximum(y, 0.0)
    return Box(K, 0.0 * y, 0.0, lower, upper, y, coef * margin, margin)


def regression(
    fit: Fit, K: Gram, z: np.ndarray, settings: dict[str, float]
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


def novelty(fit: Fit, K: Gram) -> list[Box]:
    """The one-class machine."""
    beta = np.zeros(len(K))
    beta[fit.support] = fit.coef[0]
    none = np.zeros(len(K))
    return [Box(K, none, 0.0, none, none + 1.0, none, beta)]


# Their measures.


def objective(box: Box) -> float:
    """The dual objective as LIBSVM prints it."""
    b, near = box.beta, np.flatnonzero(box.beta)
    bent = 0.5 * b[near] @ (box.K[np.ix_(near, near)] @ b[near])
    value = bent + box.linear @ b + box.kink * np.abs(b).sum()
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
