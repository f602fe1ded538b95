"""How good is each point of a grid? All of them are asked about the same folds."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.class_weight import compute_class_weight

from maxmargin.data.labels import Labels
from maxmargin.data.rows import as_rows
from maxmargin.errors import InvalidInput
from maxmargin.estimators.heard import HeardClassifier, HeardRegressor, determination
from maxmargin.estimators.targets import known_weights
from maxmargin.kernels import Kernel
from maxmargin.kernels.held import HeldGram
from maxmargin.selection.engine import Engine, n_together
from maxmargin.selection.folds import (
    Fold,
    grouped_folds,
    plain_folds,
    stratified_folds,
)
from maxmargin.selection.formulations import Formulation, Setting
from maxmargin.selection.lines import Answer
from maxmargin.selection.plan import FoldTask, Task
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatVector, IntVector

DEFAULT_FOLDS = 5


@dataclass
class Score:
    """What all folds say of a cell."""

    splits: FloatVector
    seconds: float  # for all folds together
    violation: float  # the largest of any fold
    is_complete: bool  # no limit was met
    is_tried: bool = True  # False: time was up before

    @property
    def mean(self) -> float:
        return float(self.splits.mean())


@dataclass(frozen=True)
class Scoring:
    """How answers become scores."""

    words: Any  # the estimator
    scorer: Any  # None is accuracy or R²
    X: Any
    y: np.ndarray
    weight: FloatVector | None  # of samples, where it was given: scores heed it too

    def of(self, answer: Answer, classes: np.ndarray | None, rows: IntVector) -> float:
        """The score of one fold; nan where it cannot learn."""
        y = self.y[rows]
        weight = None if self.weight is None else self.weight[rows]
        if weight is not None and not weight.any():
            return float("nan")
        if np.isnan(answer.decisions).any():
            return float("nan")
        if classes is None:
            heard: Any = HeardRegressor(answer)
            if self.scorer is None:
                return determination(y, heard.predict(), weight)
        else:
            if len(answer.present) < 2:
                return float("nan")
            heard = HeardClassifier(answer, classes, self.words)
            if self.scorer is None:
                return float(np.average(heard.predict() == y, weights=weight))
        kinds = {} if weight is None else {"sample_weight": weight}
        return float(self.scorer(heard, _safe_indexing(self.X, rows), y, **kinds))


def check_scorer(search: Any, scoring: Any) -> Any:
    """The scorer that the words stand for, if folds can answer it; None for none."""
    if scoring is None:
        return None
    name = type(search).__name__
    if not isinstance(scoring, str) and not callable(scoring):
        raise InvalidInput(
            f"The 'scoring' parameter of {name} must be one scorer (a name or a "
            f"function), got {scoring!r}; for several use GridSearchCV."
        )
    scorer = check_scoring(search, scoring)
    if getattr(scorer, "_response_method", None) == "predict_proba":
        raise InvalidInput(
            f"The 'scoring' parameter of {name} must be a scorer of predictions or "
            f"decision values, got {scoring!r}, which asks for probabilities: use "
            "GridSearchCV with probability=True, or calibrate the best machine."
        )
    return scorer


class Sheet(NamedTuple):
    """Samples that a search may use, with everything that folds need."""

    X: Any
    target: Labels | FloatVector
    y: np.ndarray  # as given
    weight: FloatVector
    class_weight: Any
    is_matrix: bool = False  # X is K

    def take(self, rows: IntVector) -> "Sheet":
        """Some samples only."""
        if len(rows) == len(self.y):
            return self
        target = self.target
        if isinstance(target, Labels):
            target = Labels(target.classes, target.code[rows])
        else:
            target = target[rows]
        X = self.X[np.ix_(rows, rows)] if self.is_matrix else self.X[rows]
        return self._replace(
            X=X, target=target, y=self.y[rows], weight=self.weight[rows]
        )


class How(NamedTuple):
    """What folds minimise, on how many threads, and whether there is one point only."""

    formulation: Formulation
    n_threads: int
    is_single: bool


class KernelStudy:
    """Cells of kernel machines: one engine for all of them."""

    def __init__(
        self,
        sheet: Sheet,
        folds: Sequence[Fold],
        kernels: Sequence[Kernel | None],
        options: Options,
        scoring: Scoring,
        how: How,
    ) -> None:
        self.sheet, self.folds, self.scoring = sheet, folds, scoring
        tasks = [_fold_task(sheet, fold) for fold in folds]
        task = Task(sheet.target, tasks, how.formulation)
        samples = sheet.X if sheet.is_matrix else as_rows(sheet.X)
        kept = 0 if how.is_single else n_together(task, how.n_threads)
        self.engine = Engine(samples, kernels, task, options, how.n_threads, kept)

    def batches(self, cells: Sequence[Setting]) -> Iterator[list[Setting]]:
        """Cells in the order in which they cost least, some of them together."""
        lines: dict[tuple[int, float], list[Setting]] = {}
        for cell in sorted(cells, key=lambda cell: (cell.C, cell.nu)):
            lines.setdefault(self.engine.line_of(cell), []).append(cell)
        names, n_at_once = sorted(lines), self.engine.n_at_once
        for first in range(0, len(names), n_at_once):
            near = [lines[name] for name in names[first : first + n_at_once]]
            for k in range(max(len(line) for line in near)):
                yield [line[k] for line in near if k < len(line)]

    def solve(self, batch: Sequence[Setting]) -> list[Score]:
        """The scores of some cells, each on a line of its own."""
        began = time.monotonic()
        answers = self.engine.solve(batch)
        seconds = (time.monotonic() - began) / len(batch)
        return [self._score(own, seconds) for own in answers]

    def gram(self, cell: Setting) -> HeldGram | None:
        """K between all samples that count, where the last fit can use it."""
        return self.engine.gram(cell.kernel, np.flatnonzero(self.sheet.weight > 0.0))

    def _score(self, answers: list[Answer], seconds: float) -> Score:
        target = self.sheet.target
        classes = target.classes if isinstance(target, Labels) else None
        splits = [
            self.scoring.of(answer, classes, fold.outside)
            for answer, fold in zip(answers, self.folds, strict=True)
        ]
        return Score(
            splits=np.array(splits),
            seconds=seconds,
            violation=max(answer.violation for answer in answers),
            is_complete=all(a.status is not Status.TIME_LIMIT for a in answers),
        )


def _fold_task(sheet: Sheet, fold: Fold) -> FoldTask:
    """Who is learnt from, with the weights that a fit on this fold alone would have."""
    weight = np.zeros(len(sheet.weight))
    weight[fold.inside] = sheet.weight[fold.inside]
    target = sheet.target
    inside = np.flatnonzero(weight > 0.0)
    if sheet.class_weight is not None and isinstance(target, Labels) and len(inside):
        present = np.unique(target.code[inside])
        factors = np.ones(target.n_classes)
        classes = target.classes[present]
        factors[present] = compute_class_weight(
            known_weights(sheet.class_weight, target.classes, classes),
            classes=classes,
            y=target.classes[target.code[inside]],
            sample_weight=weight[inside],
        )
        weight *= factors[target.code]
    return FoldTask(np.maximum(weight, 0.0), fold.outside)


def make_folds(
    cv: Any, y: Any, *, is_classifier: bool, seed: int | None = None, groups: Any = None
) -> list[Fold]:
    """Folds of a number, a splitter or a list of splits.

    A number alone means scikit-learn's folds; with a seed, shuffled ones; with groups,
    such as hold out a group as a whole.
    """
    is_number = cv is None or isinstance(cv, int | np.integer)
    n = len(y)
    if not is_number or (seed is None and groups is None):
        splitter = check_cv(cv, y, classifier=is_classifier)
        splits = splitter.split(np.empty((n, 1)), y, groups)
        return [Fold(np.asarray(a), np.asarray(b)) for a, b in splits]
    n_folds = DEFAULT_FOLDS if cv is None else int(cv)
    seed = 0 if seed is None else seed
    if groups is not None:
        return grouped_folds(np.asarray(groups), n_folds, seed)
    if is_classifier:
        code = np.unique(y, return_inverse=True)[1].reshape(-1)
        return stratified_folds(code, n_folds, seed)
    return plain_folds(n, n_folds, seed)
