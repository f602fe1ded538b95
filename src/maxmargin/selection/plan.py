"""Who learns what in a fold, and is asked about whom? The same for all kernels."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin.data.labels import Labels
from maxmargin.selection.chains import Key, Seat
from maxmargin.selection.formulations import CSvc, EpsilonSvr, Formulation
from maxmargin.selection.outside import InARow, Layout, in_a_row
from maxmargin.typing import FloatVector, IntVector


class FoldTask(NamedTuple):
    """What one fold learns from, and whom it is asked about."""

    weight: FloatVector  # of every sample, that of its class included; 0: held out
    outside: IntVector


class Task(NamedTuple):
    """What is to be learnt."""

    target: Labels | FloatVector
    folds: list[FoldTask]
    formulation: Formulation


def plain_task(
    target: Labels | FloatVector, folds: list[FoldTask], has_intercept: bool = True
) -> Task:
    """C-SVC of labels, epsilon-SVR of numbers."""
    if isinstance(target, Labels):
        return Task(target, folds, CSvc(has_intercept))
    return Task(target, folds, EpsilonSvr(has_intercept))


class FoldPlan(NamedTuple):
    """The machines of a fold."""

    present: IntVector  # classes that it has samples of; empty for regressions
    seats: list[Seat]
    layout: Layout


class Plan:
    """Machines of all folds."""

    def __init__(self, task: Task, is_held: bool) -> None:
        """`is_held`: K is in memory."""
        self.task, self.n, self.is_held = task, len(task.folds[0].weight), is_held
        self.rows: dict[Key, IntVector | None] = {}  # samples; None: all
        self.targets: dict[Key, FloatVector] = {}  # of these
        self._samples: dict[bytes, InARow] = {}  # mostly, folds have the same machines
        self.folds = [self._fold(f) for f in range(len(task.folds))]
        self.fold_of = np.full(self.n, len(task.folds))  # who holds a sample out
        for f, fold in enumerate(task.folds):
            self.fold_of[fold.outside] = f

    def _fold(self, f: int) -> FoldPlan:
        fold = self.task.folds[f]
        present = _classes(self.task.target, fold)
        keys = [self._known(pair) for pair in self._pairs(present)]
        rows = [self.rows[key] for key in keys]
        weights = [fold.weight if own is None else fold.weight[own] for own in rows]
        seats = [
            Seat(key, f, self.targets[key], weight)
            for key, weight in zip(keys, weights, strict=True)
        ]
        name = present.tobytes()
        if name not in self._samples:
            each = [np.arange(self.n) if own is None else own for own in rows]
            self._samples[name] = in_a_row(each)
        layout = Layout(fold.outside, rows, self._samples[name], self.is_held)
        return FoldPlan(present, seats, layout)

    def _pairs(self, present: IntVector) -> list[Key]:
        if not isinstance(self.task.target, Labels):
            return [None]
        return list(combinations(present.tolist(), 2))

    def _known(self, pair: Key) -> Key:
        """The key of a machine, whose rows and targets are there from now on."""
        target = self.task.target
        if not isinstance(target, Labels):
            self.rows[None], self.targets[None] = None, target
            return None
        assert pair is not None, "classes are learnt two by two"
        key = pair if target.n_classes > 2 else None
        if key not in self.rows:
            code, rows = target.code, None
            if key is not None:
                rows = np.flatnonzero((code == pair[0]) | (code == pair[1]))
                code = code[rows]
            self.rows[key] = rows
            self.targets[key] = np.where(code == pair[0], 1.0, -1.0)
        return key


def _classes(target: Labels | FloatVector, fold: FoldTask) -> IntVector:
    """The classes that a fold has samples of."""
    if not isinstance(target, Labels):
        return np.empty(0, dtype=np.intp)
    return np.unique(target.code[fold.weight > 0.0])
