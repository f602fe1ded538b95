"""How does a search go along? Points are judged, told of, and kept to the time."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _clock
from maxmargin.errors import InvalidInput
from maxmargin.estimators.search_plans import Point, Tried, best_of, ranks
from maxmargin.estimators.search_progress import CellReport
from maxmargin.estimators.study import Score
from maxmargin.selection.folds import Fold
from maxmargin.typing import IntVector

Axes = dict[str, list[Any]]


class Prepared(NamedTuple):
    """A search that can begin."""

    X: Any  # as the last fit shall get them
    n: int
    axes: Axes  # values of each parameter, in the order of their names
    folds: list[Fold]
    n_classes: int  # 1 for regressions
    study: Any  # makes a study of rows and their folds: (rows, folds) -> Study


class Run:
    """One search: counts, tells, and keeps to the time."""

    def __init__(
        self,
        search: Any,
        prepared: Prepared,
        show: Callable[[CellReport], None],
        started: float,
    ) -> None:
        """`started`, on the clock of limits: when the search began to prepare."""
        self.search, self.prepared, self.show = search, prepared, show
        self.started = started
        self.names = list(prepared.axes)
        self.values = [[*values] for values in prepared.axes.values()]
        self.studies: dict[int, Any] = {}
        self.best: tuple[float, dict[str, Any]] | None = None
        self.n_done = self.n_asked = self.n_expected = 0
        self.n_unsolved = 0  # points that the limit interrupted
        self.is_cut = False

    def params(self, point: Point) -> dict[str, Any]:
        """A point in the words of the estimator."""
        parts = zip(self.names, self.values, point, strict=True)
        return {name: values[place] for name, values, place in parts}

    @property
    def n_points(self) -> int:
        """How many there will be, as far as anybody knows."""
        return max(self.n_asked, self.n_expected)

    def judge_params(self, params: dict[str, Any]) -> Tried | None:
        """The score of a point off the grid, on all samples; None: time is up."""
        for name, values in zip(self.names, self.values, strict=True):
            values.append(params[name])
        point = tuple(len(values) - 1 for values in self.values)
        found = self.judge([point], self.prepared.n)[0]
        return found if found.score.is_tried else None

    def judge(self, points: Sequence[Point], n_samples: int) -> list[Tried]:
        """Scores of points, on so many samples."""
        study, n_folds = self._study(n_samples), len(self.prepared.folds)
        self.n_asked += len(points)
        cells = {study.cell(self.params(point)): point for point in points}
        scores: dict[Point, Score] = {}
        for batch in study.batches(list(cells)):
            if self._is_late() and self.best is not None:
                self.is_cut = True
                break
            for cell, score in zip(batch, study.solve(batch), strict=True):
                self.is_cut |= not score.is_complete
                if score.is_complete or self.best is None:
                    self.n_unsolved += not score.is_complete
                    scores[cells[cell]] = score
                    self._tell(cells[cell], score)
        missing = Score(np.full(n_folds, np.nan), 0.0, np.nan, False, is_tried=False)
        return [Tried(p, scores.get(p, missing), 0, n_samples) for p in points]

    def gram(self, params: dict[str, Any]) -> Any:
        """The kernel matrix of these parameters, where the last fit can use it."""
        study = self.studies.get(self.prepared.n)
        return None if study is None else study.gram(study.cell(params))

    def seconds_left(self) -> float:
        """Of the limit, infinite where there is none; compilation is not counted."""
        limit = self.search.time_limit
        if limit is None:
            return np.inf
        return float(limit) - (_clock.now() - self.started)

    def _is_late(self) -> bool:
        return self.seconds_left() < 0.0

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
        self.show(report)
        if self.search.callback is not None:
            self.search.callback(report)

    def summary(self, tried: list[Tried]) -> dict[str, Any]:
        """What GridSearchCV calls these things."""
        means = [one.score.mean for one in tried]
        if np.isnan(means).all():
            raise InvalidInput(
                f"None of the {len(tried)} points could be scored on every fold: "
                f"{self.search._fold_needs}"
            )
        last = max(one.round for one in tried if not np.isnan(one.score.mean))
        final = [k for k, one in enumerate(tried) if one.round == last]
        best = final[best_of([tried[k] for k in final])]
        notes = self._notes(tried)
        return {
            "cv_results_": self._results(tried),
            "best_index_": best,
            "_is_solved": tried[best].score.is_complete,
            "best_score_": float(means[best]),
            "best_params_": self.params(tried[best].point),
            "_notes": notes,
        }

    def _notes(self, tried: list[Tried]) -> list[str]:
        notes = []
        if self.is_cut:
            unsolved = ", which was not solved to tol" if self.n_unsolved else ""
            notes.append(
                f"The search ended at time_limit={self.search.time_limit:g}: tried "
                f"{self.n_done} of {self.n_points} settings{unsolved}. The best of "
                "these is fitted; raise time_limit, or search fewer settings."
            )
        if any(one.score.is_complete and np.isnan(one.score.mean) for one in tried):
            needs = self.search._fold_needs
            notes.append(f"Some points could not be scored (nan): {needs}")
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
        results["is_tried"] = np.array([one.score.is_tried for one in tried])
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
