"""What do all searches share? Cross-validate points, take the best, fit once more."""

import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine, say
from maxmargin.estimators.parameters import RULES, Rule, check_parameters
from maxmargin.estimators.search_plans import (
    FEWEST_EACH,
    Point,
    Tried,
    best_of,
    coarse_to_fine,
    halving,
    ranks,
    whole_grid,
)
from maxmargin.estimators.study import Score, make_folds
from maxmargin.selection.folds import Fold
from maxmargin.typing import IntVector

SEARCHES = ("grid", "coarse-to-fine", "halving")
EPSILON_ENDS = -6.0, -1.0  # exponents of two, of the deviation of the targets
REFIT_SHARE = 0.2  # of time_limit, that the last fit has in any case
Axes = dict[str, list[Any]]


def spread(values: Any, ends: tuple[float, float], unit: float) -> list[Any]:
    """The values themselves, or as many powers of two as are asked for."""
    if not isinstance(values, int | np.integer):
        return [v if isinstance(v, str) else float(v) for v in values]
    middle = 0.5 * (ends[0] + ends[1])
    exponents = np.linspace(*ends, int(values)) if values > 1 else [middle]
    return [float(unit * 2.0**exponent) for exponent in exponents]


def _are_values(values: Any, is_one: Any) -> bool:
    if isinstance(values, int | np.integer) and not isinstance(values, bool):
        return bool(values >= 1)
    if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
        return False
    return all(is_one(value) for value in values)


def _axis(name: str) -> Rule:
    rule = RULES[name]
    words = f"how many values to try, or a list of them, each {rule.words}"
    return Rule(lambda values: _are_values(values, rule.holds), words)


SELECTION_RULES = RULES | {
    "Cs": _axis("C"),
    "gammas": _axis("gamma"),
    "epsilons": _axis("epsilon"),
    "search": Rule(
        lambda v: isinstance(v, str) and v in SEARCHES,
        " or ".join(repr(name) for name in SEARCHES),
    ),
    "random_state": Rule(
        lambda v: v is None or (isinstance(v, int | np.integer) and int(v) >= 0),
        "None or a whole number, 0 or above",
    ),
    "kernel": Rule(
        lambda v: RULES["kernel"].holds(v) and not callable(v),
        "'linear', 'poly', 'rbf', 'sigmoid', 'laplacian' or 'precomputed'",
    ),
}


class CellReport(NamedTuple):
    """What a search's callback is told after every point."""

    params: dict[str, Any]
    score: float
    n_done: int
    n_points: int
    best_score: float
    best_params: dict[str, Any]


class BaseSelection(BaseMachine):
    """Fit, results and predictions; subclasses say what the points are."""

    _rules = SELECTION_RULES

    def fit(self, X, y, sample_weight=None, *, groups=None):
        """Cross-validate the grid, then fit the best machine to all samples.

        Parameters
        ----------
        X, y, sample_weight : as for the machine itself
        groups : array-like of shape (n_samples,), default None
            Samples of one group are held out together.

        Returns
        -------
        self
        """
        self._groups = groups
        try:
            return self._fit(X, y, sample_weight)
        finally:
            del self._groups

    # What subclasses say.

    def _plain(self) -> Any:
        """The plain estimator."""
        raise NotImplementedError

    def _machine(self, params: dict[str, Any]) -> Any:
        """The plain estimator with these parameters, and those of the search."""
        machine = self._plain()
        own, known = self.get_params(deep=False), machine.get_params(deep=False)
        shared = {name: value for name, value in own.items() if name in known}
        shared |= {"verbose": False, "callback": None}
        return machine.set_params(**shared | params)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> "Prepared":
        raise NotImplementedError

    # Fitting.

    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        prepared = self._prepare(X, y, sample_weight)
        run = _Run(self, prepared)
        sizes = [len(values) for values in prepared.axes.values()]
        n = prepared.n
        if self.search == "halving":
            n_first = FEWEST_EACH * len(prepared.folds) * prepared.n_classes
            tried = halving(sizes, run.judge, n, n_first)
        elif self.search == "coarse-to-fine":
            tried = coarse_to_fine(sizes, run.judge, n)
        else:
            tried = whole_grid(sizes, run.judge, n)
        found = run.summary(tried)
        machine = self._machine(found["best_params_"])
        if self.time_limit is not None:
            left = self.time_limit - (time.monotonic() - run.started)
            least = REFIT_SHARE * self.time_limit
            machine.set_params(time_limit=max(left, least))
        began = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said by this fit
            machine.fit(prepared.X, y, sample_weight)
        found |= {"best_estimator_": machine, "refit_time_": time.monotonic() - began}
        found |= {"status_": machine.status_, "n_splits_": len(prepared.folds)}
        found |= {"kkt_violation_": machine.kkt_violation_, "n_iter_": machine.n_iter_}
        for name in ("classes_", "class_weight_"):
            if hasattr(machine, name):
                found[name] = getattr(machine, name)
        for name, value in found["best_params_"].items():
            found[f"{name}_"] = value
        return found

    # Predicting.

    def predict(self, X):
        """What the best machine predicts."""
        return self._best().predict(X)

    def _only_scores(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Score:
        """The score of the first point, without any fit after that."""
        check_parameters(self, self._rules)
        self._groups = groups
        prepared = self._prepare(X, y, sample_weight)
        study = prepared.study(np.arange(prepared.n), prepared.folds)
        params = {name: values[0] for name, values in prepared.axes.items()}
        score: Score = study.solve([study.cell(params)])[0]
        return score

    def _folds(self, y: np.ndarray) -> list[Fold]:
        """As `cv`, `random_state` and groups have it."""
        return make_folds(
            self.cv,
            y,
            is_classifier=isinstance(self, ClassifierMixin),
            seed=self.random_state,
            groups=self._groups,
        )

    def _axes_of_cost(self, y: np.ndarray, C_ends: tuple[float, float]) -> Axes:
        """C, and epsilon where there is one."""
        axes: Axes = {"C": spread(self.Cs, C_ends, 1.0)}
        if hasattr(self, "epsilons"):
            axes["epsilon"] = spread(self.epsilons, EPSILON_ENDS, float(y.std()) or 1.0)
        return axes

    def _shown(self, name: str) -> Any:
        """An attribute of the best machine, once there is one."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{name} is known after fit only")
        return getattr(self.best_estimator_, name)

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "best_estimator_")


class Prepared(NamedTuple):
    """A search that can begin."""

    X: Any  # as the last fit shall get them
    n: int
    axes: Axes  # values of each parameter, in the order of their names
    folds: list[Fold]
    n_classes: int  # 1 for regressions
    study: Any  # makes a study of rows and their folds: (rows, folds) -> Study


class _Run:
    """One search: counts, tells, and keeps to the time."""

    def __init__(self, search: Any, prepared: Prepared) -> None:
        self.search, self.prepared = search, prepared
        self.started = time.monotonic()
        self.names = list(prepared.axes)
        self.values = list(prepared.axes.values())
        self.studies: dict[int, Any] = {}
        self.best: tuple[float, dict[str, Any]] | None = None
        self.n_done = self.n_points = 0
        self.is_cut = False

    def params(self, point: Point) -> dict[str, Any]:
        """A point in the words of the estimator."""
        parts = zip(self.names, self.values, point, strict=True)
        return {name: values[place] for name, values, place in parts}

    def judge(self, points: Sequence[Point], n_samples: int) -> list[Tried]:
        """Scores of points, on so many samples."""
        study, n_folds = self._study(n_samples), len(self.prepared.folds)
        self.n_points += len(points)
        cells = {study.cell(self.params(point)): point for point in points}
        scores: dict[Point, Score] = {}
        for batch in study.batches(list(cells)):
            if self._is_late() and self.best is not None:
                self.is_cut = True
                break
            for cell, score in zip(batch, study.solve(batch), strict=True):
                if score.is_complete or self.best is None:
                    scores[cells[cell]] = score
                    self._tell(cells[cell], score)
        missing = Score(np.full(n_folds, np.nan), 0.0, np.nan, False)
        return [Tried(p, scores.get(p, missing), 0, n_samples) for p in points]

    def _is_late(self) -> bool:
        limit = self.search.time_limit
        return limit is not None and time.monotonic() - self.started > limit

    def _study(self, n_samples: int) -> Any:
        if n_samples not in self.studies:
            rows, folds = fewer(self.prepared, n_samples)
            self.studies[n_samples] = self.prepared.study(rows, folds)
        return self.studies[n_samples]

    def _tell(self, point: Point, score: Score) -> None:
        self.n_done += 1
        params, mean = self.params(point), score.mean
        if self.best is None or mean > self.best[0]:
            self.best = mean, params
        report = CellReport(params, mean, self.n_done, self.n_points, *self.best)
        if self.search.verbose:
            words = ", ".join(
                f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
                for name, value in params.items()
            )
            say(
                f"[maxmargin] {self.n_done} of {self.n_points}: {words}, score "
                f"{mean:.4f} (best {report.best_score:.4f})"
            )
        if self.search.callback is not None:
            self.search.callback(report)

    def summary(self, tried: list[Tried]) -> dict[str, Any]:
        """What GridSearchCV calls these things."""
        means = [one.score.mean for one in tried]
        if np.isnan(means).all():
            raise InvalidInput(
                f"None of the {len(tried)} points could be scored on every fold: each "
                "fold must learn from at least two classes; use fewer folds, or "
                "stratified ones."
            )
        last = max(one.round for one in tried)
        final = [k for k, one in enumerate(tried) if one.round == last]
        best = final[best_of([tried[k] for k in final])]
        notes = self._notes(tried)
        return {
            "cv_results_": self._results(tried),
            "best_index_": best,
            "best_score_": float(means[best]),
            "best_params_": self.params(tried[best].point),
            "_notes": notes,
        }

    def _notes(self, tried: list[Tried]) -> list[str]:
        notes = []
        if self.is_cut:
            notes.append(
                f"The search ended at time_limit={self.search.time_limit:g} after "
                f"{self.n_done} of {self.n_points} points; the best of these is taken."
            )
        if any(np.isnan(one.score.splits).any() for one in tried if one.score.seconds):
            notes.append(
                "Some folds could not be scored (nan): they learn from fewer than two "
                "classes. Use fewer folds, or stratified ones."
            )
        return notes

    def _results(self, tried: list[Tried]) -> dict[str, Any]:
        n_folds = len(self.prepared.folds)
        seconds = np.array([one.score.seconds / n_folds for one in tried])
        zeros = np.zeros(len(tried))
        results: dict[str, Any] = {
            "mean_fit_time": seconds,
            "std_fit_time": zeros,
            "mean_score_time": zeros.copy(),
            "std_score_time": zeros.copy(),
        }
        params = [self.params(one.point) for one in tried]
        if self.search.search == "halving":
            results = {
                "iter": np.array([one.round for one in tried]),
                "n_resources": np.array([one.n_samples for one in tried]),
            } | results
        for name in self.names:
            results[f"param_{name}"] = _masked([each[name] for each in params])
        results["params"] = params
        splits = np.array([one.score.splits for one in tried])
        for k in range(n_folds):
            results[f"split{k}_test_score"] = splits[:, k]
        results["mean_test_score"] = splits.mean(axis=1)
        results["std_test_score"] = splits.std(axis=1)
        results["rank_test_score"] = ranks([one.score.mean for one in tried])
        results["kkt_violation"] = np.array([one.score.violation for one in tried])
        return results


def _masked(values: list[Any]) -> np.ma.MaskedArray:
    kind = float if all(isinstance(v, float | int) for v in values) else object
    return np.ma.MaskedArray(np.array(values, dtype=kind), mask=False)


def fewer(prepared: Prepared, n_samples: int) -> tuple[IntVector, list[Fold]]:
    """Some rows, of every fold in proportion, and folds that count among them."""
    n, folds = prepared.n, prepared.folds
    if n_samples >= n:
        return np.arange(n), folds
    is_kept = np.zeros(n, dtype=bool)
    random = np.random.default_rng(0)
    for fold in folds:
        n_kept = max(round(len(fold.outside) * n_samples / n), 1)
        is_kept[random.permutation(fold.outside)[:n_kept]] = True
    rows = np.flatnonzero(is_kept)
    place = np.cumsum(is_kept) - 1
    return rows, [
        Fold(place[f.inside[is_kept[f.inside]]], place[f.outside[is_kept[f.outside]]])
        for f in folds
    ]
