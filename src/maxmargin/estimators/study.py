"""How good is each point of a grid? All of them are asked about the same folds."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.class_weight import compute_class_weight

from maxmargin.data.labels import Labels
from maxmargin.data.rows import as_rows
from maxmargin.estimators.heard import HeardClassifier, HeardRegressor, determination
from maxmargin.kernels import Kernel
from maxmargin.selection.engine import Engine, Setting
from maxmargin.selection.folds import (
    Fold,
    grouped_folds,
    plain_folds,
    stratified_folds,
)
from maxmargin.selection.lines import Answer, FoldTask, Task
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatVector, IntVector

DEFAULT_FOLDS = 5


class Cell(NamedTuple):
    """A point of the grid."""

    kernel: int  # which of the kernels
    C: float
    epsilon: float = 0.0


@dataclass
class Score:
    """What all folds say of a cell."""

    splits: FloatVector
    seconds: float  # for all folds together
    violation: float  # the largest of any fold
    is_complete: bool  # no limit was met

    @property
    def mean(self) -> float:
        return float(self.splits.mean())


@dataclass(frozen=True)
class Scoring:
    """How answers become scores."""

    words: Any  # the estimator
    scoring: Any  # None is accuracy or R²
    X: Any
    y: np.ndarray
    weight: FloatVector | None  # of samples, where it was given: scores heed it too

    def of(self, answer: Answer, classes: np.ndarray | None, rows: IntVector) -> float:
        """The score of one fold; nan where it has nothing to learn from."""
        y = self.y[rows]
        weight = None if self.weight is None else self.weight[rows]
        if weight is not None and not weight.any():
            return float("nan")
        if classes is None:
            heard: Any = HeardRegressor(answer)
            if self.scoring is None:
                return determination(y, heard.predict(), weight)
        else:
            if len(answer.present) < 2:
                return float("nan")
            heard = HeardClassifier(answer, classes, self.words)
            if self.scoring is None:
                return float(np.average(heard.predict() == y, weights=weight))
        scorer = get_scorer(self.scoring)
        kinds = {} if weight is None else {"sample_weight": weight}
        return float(scorer(heard, _safe_indexing(self.X, rows), y, **kinds))


class Sheet(NamedTuple):
    """Samples that a search may use, with everything that folds need."""

    X: Any  # K itself where there is no kernel
    target: Labels | FloatVector
    y: np.ndarray  # as given
    weight: FloatVector
    class_weight: Any


class KernelStudy:
    """Cells of kernel machines: one engine for all of them."""

    def __init__(
        self,
        sheet: Sheet,
        folds: Sequence[Fold],
        kernels: Sequence[Kernel | None],
        options: Options,
        scoring: Scoring,
        how: tuple[int, bool],
    ) -> None:
        """`how` is the number of threads, and whether there is an intercept."""
        n_threads, has_intercept = how
        self.sheet, self.folds, self.scoring = sheet, folds, scoring
        tasks = [_fold_task(sheet, fold) for fold in folds]
        task = Task(sheet.target, tasks, has_intercept)
        samples = sheet.X if kernels[0] is None else as_rows(sheet.X)
        self.engine = Engine(samples, kernels, task, options, n_threads)

    def batches(self, cells: Sequence[Cell]) -> Iterator[list[Cell]]:
        """Cells in the order in which they cost least, some of them together."""
        lines: dict[tuple[int, float], list[Cell]] = {}
        for cell in sorted(cells, key=lambda cell: cell.C):
            lines.setdefault((cell.kernel, cell.epsilon), []).append(cell)
        names, n_at_once = sorted(lines), self.engine.n_at_once
        for first in range(0, len(names), n_at_once):
            near = [lines[name] for name in names[first : first + n_at_once]]
            for k in range(max(len(line) for line in near)):
                yield [line[k] for line in near if k < len(line)]

    def solve(self, batch: Sequence[Cell]) -> list[Score]:
        """The scores of some cells, which differ in kernel or epsilon."""
        began = time.monotonic()
        settings = [Setting(*cell) for cell in batch]
        answers = self.engine.solve(settings)
        seconds = (time.monotonic() - began) / len(batch)
        return [self._score(own, seconds) for own in answers]

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
        factors[present] = compute_class_weight(
            sheet.class_weight,
            classes=target.classes[present],
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


Judge = Callable[[Sequence[Cell]], list[Score]]
