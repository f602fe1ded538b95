"""Which C? Cross-validation along a path of them, each fit beginning at the last.

LIBLINEAR's `-C`: C doubles from a value so small that the weights are still nearly
zero, each fold keeps its machine from one C to the next, and the path ends when larger
values no longer change it. (Chu, Ho, Tsai, Lin & Lin, KDD 2015.)
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

from maxmargin._threads import count_cores, run_all
from maxmargin.errors import InvalidInput
from maxmargin.estimators.linear import LinearSVC, LinearSVR
from maxmargin.estimators.logistic import LogisticRegression
from maxmargin.typing import FloatVector

DOUBLE = 2.0
LAST_C = {True: 2.0**10, False: 2.0**20}  # of classifiers and regressions, LIBLINEAR's
UNCHANGED = 1e-15  # weights that move no further, relative to their length,
SETTLED = 5  # for so many values of C have settled
N_EPSILONS = 20  # tubes from (nearly) the largest target down to zero
FIRST_SHARE = 0.1  # of the way that a first regression may go (LIBLINEAR's delta)


@dataclass(frozen=True)
class CSearch:
    """The score of every C that was tried."""

    Cs: FloatVector
    epsilons: FloatVector | None  # of regressions with several tubes, one per C
    scores: FloatVector  # accuracy, or mean squared error; over all held-out samples
    fold_scores: np.ndarray  # of shape (number of Cs, number of folds)
    best_C: float
    best_epsilon: float | None
    best_score: float


def search_C(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    first_C: float | None = None,
    last_C: float | None = None,
    epsilons: Sequence[float] | str | None = None,
    cv: Any = 5,
) -> CSearch:
    """Cross-validate a linear estimator along C = first_C, 2 first_C, 4 first_C, ...

    Parameters
    ----------
    estimator : LinearSVC, LinearSVR or LogisticRegression
        Its C is not looked at; everything else is kept. It is not fitted.
    X, y : array-like or sparse matrix, array-like
        Samples and targets.
    first_C : float, optional
        By default the power of two below which the weights are nearly zero, as in
        LIBLINEAR.
    last_C : float, optional
        The path ends here at the latest; default 1024 for classifiers, 2^20 for
        regressions.
    epsilons : sequence of float or 'auto', optional
        Tubes to try as well, for LinearSVR; 'auto' is LIBLINEAR's twenty, from the
        largest target to zero. By default the estimator's own.
    cv : int or splitter
        Folds; stratified for classifiers.

    Returns
    -------
    CSearch
        All values with their scores, and the best: the smallest C among equals.
    """
    _check_linear(estimator)
    is_regression = not is_classifier(estimator)
    if epsilons is not None and not is_regression:
        raise InvalidInput("epsilons are for regressions; leave them out here.")
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    y = np.asarray(y)
    splitter = check_cv(cv, y, classifier=not is_regression)
    splits = list(splitter.split(X, y))
    first = smallest_C(estimator, X, y) if first_C is None else float(first_C)
    last = LAST_C[not is_regression] if last_C is None else float(last_C)
    if not 0.0 < first <= last < np.inf:
        raise InvalidInput(
            f"The path needs 0 < first_C <= last_C, both finite; got {first:g} and "
            f"{last:g}."
        )
    tubes = _tubes(epsilons, y)
    points: list[tuple[float, float | None, list[float], list[int]]] = []
    for epsilon in tubes:
        folds = [_Fold(estimator, X, y, split, epsilon) for split in splits]
        points += [
            (C, epsilon, scores, [len(split[1]) for split in splits])
            for C, scores in _walk(folds, first, last)
        ]
    return _summary(points, is_regression)


def _check_linear(estimator: Any) -> None:
    if not isinstance(estimator, LinearSVC | LinearSVR | LogisticRegression):
        raise InvalidInput(
            "search_C needs a LinearSVC, LinearSVR or LogisticRegression of maxmargin, "
            f"got {type(estimator).__name__}; SVCCV, SVRCV, NuSVCCV and NuSVRCV search "
            "kernel machines, GridSearchCV any estimator."
        )


def smallest_C(estimator: Any, X: Any, y: np.ndarray) -> float:
    """A power of two at which the weights are still nearly zero (LIBLINEAR's rule)."""
    n, longest = X.shape[0], float(row_norms(X, squared=True).max())
    if longest == 0.0:
        return 1.0
    if is_classifier(estimator):
        is_squared = getattr(estimator, "loss", "logistic") == "squared_hinge"
        smallest = 1.0 / ((2.0 if is_squared else 1.0) * n * longest)
    else:
        sizes = np.abs(y.astype(np.float64))
        loss = float(np.square(np.maximum(sizes - estimator.epsilon, 0.0)).sum())
        if loss == 0.0:
            return 1.0
        smallest = FIRST_SHARE**2 * loss / (8.0 * float(sizes.sum()) ** 2 * longest)
    return float(2.0 ** math.floor(math.log2(smallest)))


def _tubes(epsilons: Sequence[float] | str | None, y: np.ndarray) -> list[Any]:
    if epsilons is None:
        return [None]
    if isinstance(epsilons, str):
        if epsilons != "auto":
            raise InvalidInput(f"epsilons must be numbers or 'auto', got {epsilons!r}.")
        largest = float(np.abs(y).max())
        return [largest * i / N_EPSILONS for i in range(N_EPSILONS - 1, -1, -1)]
    return [float(epsilon) for epsilon in epsilons]


class _Fold:
    """One machine on its way along the path."""

    def __init__(
        self, estimator: Any, X: Any, y: np.ndarray, split: Any, epsilon: float | None
    ) -> None:
        inside, outside = split
        self.machine = clone(estimator).set_params(warm_start=True, n_jobs=1)
        if epsilon is not None:
            self.machine.set_params(epsilon=epsilon)
        self.X, self.y = _safe_indexing(X, inside), y[inside]
        self.X_out, self.y_out = _safe_indexing(X, outside), y[outside]
        self.n_settled = 0

    def score(self, C: float) -> float:
        """Accuracy or mean squared error on the samples held out."""
        before = getattr(self.machine, "coef_", None)
        self.machine.set_params(C=C).fit(self.X, self.y)
        self._look(before)
        predicted = self.machine.predict(self.X_out)
        if is_classifier(self.machine):
            return float(np.mean(predicted == self.y_out))
        return float(np.mean(np.square(predicted - self.y_out)))

    def _look(self, before: Any) -> None:
        coef = self.machine.coef_
        moved = np.inf if before is None else float(np.linalg.norm(coef - before))
        is_still = moved <= UNCHANGED * float(np.linalg.norm(coef)) and coef.any()
        self.n_settled = self.n_settled + 1 if is_still else 0


def _walk(
    folds: list[_Fold], first: float, last: float
) -> Iterator[tuple[float, list[float]]]:
    cost = first
    while cost <= last and min(fold.n_settled for fold in folds) < SETTLED:
        tasks = [partial(fold.score, cost) for fold in folds]
        yield cost, run_all(tasks, count_cores())
        cost *= DOUBLE


def _summary(points: list[Any], is_regression: bool) -> CSearch:
    Cs, epsilons, fold_scores, sizes = zip(*points, strict=True)
    folds, weights = np.array(fold_scores), np.array(sizes, dtype=np.float64)
    scores = (folds * weights).sum(axis=1) / weights.sum(axis=1)
    best = int(scores.argmin() if is_regression else scores.argmax())
    has_tubes = epsilons[0] is not None
    return CSearch(
        Cs=np.array(Cs),
        epsilons=np.array(epsilons) if has_tubes else None,
        scores=scores,
        fold_scores=folds,
        best_C=float(Cs[best]),
        best_epsilon=float(epsilons[best]) if has_tubes else None,
        best_score=float(scores[best]),
    )
