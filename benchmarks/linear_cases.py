"""Which linear problems are timed, and what is the objective that all of them share?

C is 1 and the intercept is the weight of one more feature of value 1, penalised like
the others. A multi-class problem is the sum of its one-vs-rest problems.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.sets import load_raw

C = 1.0
EPSILON = 0.1  # half the width of the tube, for regression
HINGES = ("hinge", "squared_hinge")
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
JOINT = "crammer_singer"


class Case(NamedTuple):
    """A set of the folder, and the loss it is fitted with."""

    set: str
    loss: str


class Rows(NamedTuple):
    """Prepared features; labels from 0, or a standardised target."""

    X: Any
    y: np.ndarray


class Weights(NamedTuple):
    """What a fit found: a row per one-vs-rest problem, or one row."""

    coef: np.ndarray
    intercept: np.ndarray


CLASSIFIED = ("a9a", "covtype", "mnist", "20newsgroups", "reuters_lasvm")
CASES = (
    {f"{name}/{loss}": Case(name, loss) for name in CLASSIFIED for loss in HINGES}
    | {f"cadata/{loss}": Case("cadata", loss) for loss in TUBES}
    | {f"20newsgroups/{JOINT}": Case("20newsgroups", JOINT)}
)


# What is fitted.


def prepare_rows(name: str, folder: Path | None) -> Rows:
    """The training rows, scaled as is usual for this set."""
    X, y = load_raw(name, folder)
    if name == "cadata":
        return Rows(standardised(X), standardised(y.astype(np.float64)))
    if name == "covtype":
        return Rows(standardised(X), (y == 2).astype(np.int64))
    if name == "mnist":
        X = X / 255.0
    if name == "20newsgroups":
        X = tf_idf(X)
    return Rows(X, np.unique(y, return_inverse=True)[1])


def standardised(values: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1 by column; a constant column becomes 0."""
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def tf_idf(counts: Any) -> Any:
    """Rows of unit length."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer().fit_transform(counts).tocsr()


# What is minimised.


def objective(loss: str, rows: Rows, weights: Weights) -> float:
    """1/2 |w|^2 + C sum of losses, in float64, the intercept counted in w."""
    coef = np.atleast_2d(weights.coef).astype(np.float64)
    intercept = np.ravel(weights.intercept).astype(np.float64)
    decisions = rows.X @ coef.T + intercept
    penalty = 0.5 * float(np.square(coef).sum() + np.square(intercept).sum())
    return penalty + C * float(losses(loss, rows.y, decisions).sum())


def losses(loss: str, y: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """The loss of every row in every problem."""
    if loss == JOINT:
        return joint_losses(y, decisions)
    if loss in TUBES:
        excess = np.maximum(np.abs(y[:, None] - decisions) - EPSILON, 0.0)
    else:
        excess = np.maximum(1.0 - signs(y, decisions.shape[1]) * decisions, 0.0)
    return np.square(excess) if loss.startswith("squared") else excess


def signs(y: np.ndarray, n_problems: int) -> np.ndarray:
    """+1 where a row is in the class of a problem, else -1."""
    positive = np.arange(n_problems) if n_problems > 1 else np.ones(1)
    return np.where(y[:, None] == positive, 1.0, -1.0)


def joint_losses(y: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """Crammer and Singer: by how much the best other class comes within 1."""
    rows = np.arange(len(y))
    margins = decisions - decisions[rows, y][:, None] + 1.0
    margins[rows, y] = 0.0
    return margins.max(axis=1)
