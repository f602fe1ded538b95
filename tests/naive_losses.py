"""What does a linear machine minimise? The primal objectives, by their formulas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Problem(NamedTuple):
    """One problem. An intercept is `scaling` times the weight of a last column."""

    X: Floats
    y: Floats  # signs, targets, or codes of classes from 0; ignored by one_class
    C: Floats  # one per row
    loss: str
    penalty: str = "l2"
    bias: str = "penalised"  # or "free", or "none"
    scaling: float = 1.0
    epsilon: float = 0.0
    total: float = 0.0  # one_class: nu times the sum of weights

    @property
    def columns(self) -> Floats:
        """X, and the feature whose weight is the intercept."""
        if self.bias == "none":
            return self.X
        return np.column_stack([self.X, np.full(len(self.X), self.scaling)])

    @property
    def is_free(self) -> npt.NDArray[np.bool_]:
        """Which columns cost nothing."""
        free = np.zeros(self.columns.shape[1], dtype=bool)
        free[self.X.shape[1] :] = self.bias == "free"
        return free

    def weights(self, coef: Floats, intercept: Any) -> Floats:
        """Coefficients and intercept as one vector (a row per class)."""
        coef, intercept = np.asarray(coef, float), np.asarray(intercept, float)
        if self.bias == "none":
            assert not np.any(intercept), "a machine without intercept has one"
            return coef
        return np.concatenate([coef, intercept[..., None] / self.scaling], axis=-1)


# ----------------------------------------------------------------- primal objectives
def primal(problem: Problem, coef: Floats, intercept: Any) -> float:
    """The primal objective of coefficients; a one-class intercept is minus rho."""
    if problem.loss == "one_class":
        rho = -float(intercept)
        short = np.maximum(rho - problem.X @ coef, 0.0)
        return float(0.5 * coef @ coef + problem.C @ short - problem.total * rho)
    w = problem.weights(coef, intercept)
    decisions = problem.columns @ w.T
    return float(cost(problem, w) + problem.C @ losses(problem, decisions))


def cost(problem: Problem, w: Floats) -> float:
    """What the weights themselves cost."""
    kept = w[..., ~problem.is_free]
    return float(
        np.abs(kept).sum() if problem.penalty == "l1" else 0.5 * np.sum(kept**2)
    )


def losses(problem: Problem, z: Floats) -> Floats:
    """The loss of every row at decision value z, C apart."""
    y, rows = problem.y, np.arange(len(problem.y))
    if problem.loss == "crammer_singer":
        codes = y.astype(int)
        margins = 1.0 + z - z[rows, codes][:, None]
        margins[rows, codes] = 0.0
        return margins.max(axis=1)
    if problem.loss == "logistic":
        return np.logaddexp(0.0, -y * z)
    excess = np.abs(y - z) - problem.epsilon if "epsilon" in problem.loss else 1 - y * z
    excess = np.maximum(excess, 0.0)
    return excess**2 if problem.loss.startswith("squared") else excess
