"""How good is an answer? Feasibility, objective and KKT violation, in plain NumPy.

Nothing here comes from maxmargin, so that its answers and LIBSVM's are judged alike.
Both keep one signed coefficient per support vector: beta, on LIBSVM's scale. What a
point is worth is measured by `benchmarks.optimality`.
"""

from copy import copy
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.optimality import Solved, measure

BLOCK_VALUES = 2**22  # of a large matrix, in memory at once


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


def problems_of(asked: Answered, fit: Fit, K: Gram) -> list[Solved]:
    """The problems behind a fit, with its point: one per pair of classes, or one."""
    if asked.machine in ("SVC", "NuSVC"):
        return classification(fit, K, asked.y, asked.settings)
    beta = np.zeros(len(K))
    beta[fit.support] = fit.coef[0]
    if asked.machine == "OneClassSVM":
        return [novelty(fit, K, beta, asked.settings["nu"])]
    return [regression(fit, K, beta, asked)]


def on_support(asked: Answered, fit: Fit, K: Gram) -> list[Solved]:
    """The same problems on the support vectors alone: enough for an objective.

    Not for nu-SVC, whose scale is read from all samples.
    """
    near = asked._replace(y=asked.y[fit.support])
    numbered = fit._replace(support=np.arange(len(fit.support)))
    return problems_of(near, numbered, K[np.ix_(fit.support, fit.support)])


def point(K: Gram, beta: np.ndarray) -> dict[str, np.ndarray]:
    """K b and the size of its terms; a large matrix is of values between 0 and 1."""
    if isinstance(K, LargeGram):
        size = np.full(len(beta), np.abs(beta).sum())
    else:
        size = np.abs(K) @ np.abs(beta)
    return {"image": K @ beta, "size": size, "beta": beta}


def classification(
    fit: Fit, K: Gram, code: np.ndarray, settings: dict[str, float]
) -> list[Solved]:
    """One problem per pair; `code` numbers the classes as the fit does."""
    found = []
    for p, (i, j, coef) in enumerate(pairs_of(fit, len(code))):
        rows = np.flatnonzero((code == i) | (code == j))
        y = np.where(code[rows] == i, 1.0, -1.0)
        y = y if (coef[rows] * y).sum() >= 0.0 else -y  # two classes: either sign
        near, beta, intercept = K[np.ix_(rows, rows)], coef[rows], fit.intercept[p]
        found.append(
            _nu_svc(near, y, beta, intercept, settings["nu"])
            if "nu" in settings
            else _c_svc(near, y, beta, intercept, settings["C"])
        )
    return found


def _c_svc(K: Gram, y: np.ndarray, beta: np.ndarray, b: float, C: float) -> Solved:
    return Solved(
        **point(K, beta),
        linear=-y,
        kink=0.0,
        lower=np.minimum(C * y, 0.0),
        upper=np.maximum(C * y, 0.0),
        group=np.zeros(len(y), dtype=np.intp),
        sums=(0.0,),
        levels=(-b,),
    )


def _nu_svc(K: Gram, y: np.ndarray, coef: np.ndarray, b: float, nu: float) -> Solved:
    half = 0.5 * nu * len(y)
    margin = half / coef[y > 0].sum()
    return Solved(
        **point(K, coef * margin),
        linear=np.zeros(len(y)),
        kink=0.0,
        lower=np.minimum(y, 0.0),
        upper=np.maximum(y, 0.0),
        group=np.where(y > 0.0, 0, 1),
        sums=(half, -half),
        levels=(margin * (1.0 - b), margin * (-1.0 - b)),
        scale=margin,
    )


def regression(fit: Fit, K: Gram, beta: np.ndarray, asked: Answered) -> Solved:
    """epsilon-SVR, or nu-SVR by the differences of its two variables a row."""
    z, settings, C = asked.y, asked.settings, np.full(len(beta), asked.settings["C"])
    return Solved(
        **point(K, beta),
        linear=-z,
        kink=settings.get("epsilon", 0.0),
        lower=-C,
        upper=C,
        group=np.zeros(len(z), dtype=np.intp),
        sums=(0.0,),
        levels=(-float(fit.intercept[0]),),
        budget=settings["nu"] * float(C.sum()) if "nu" in settings else np.inf,
    )


def novelty(fit: Fit, K: Gram, beta: np.ndarray, nu: float) -> Solved:
    """The one-class machine."""
    none = np.zeros(len(beta))
    return Solved(
        **point(K, beta),
        linear=none,
        kink=0.0,
        lower=none,
        upper=none + 1.0,
        group=none.astype(np.intp),
        sums=(nu * len(beta),),
        levels=(-float(fit.intercept[0]),),
    )


# Their measures.


def objective(problems: list[Solved]) -> float:
    """The dual objectives as LIBSVM prints them, added up."""
    return sum(measure(solved).objective for solved in problems)


def violation(problems: list[Solved]) -> float:
    """LIBSVM's stopping measure of the worst; infinite where a point is infeasible."""
    found = [measure(solved) for solved in problems]
    if not all(its.is_feasible for its in found):
        return float(np.inf)
    return max(its.violation for its in found)
