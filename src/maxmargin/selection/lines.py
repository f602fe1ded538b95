"""How do all folds learn from one kernel matrix? As boxes that are closed for some.

A sample held out keeps its row of K, but its variable may not leave zero. So K is
computed once for all folds and every C, each fold starts from its own solution at the
last C, and what it says of the samples held out is read off the gradient. (Wen et al.,
2017, and Chu et al., 2015, for starts; nothing here is approximate.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin.data.labels import Labels
from maxmargin.models.evidence import KernelEvidence
from maxmargin.selection.chains import Block, Chain
from maxmargin.selection.formulations import (
    CSvc,
    EpsilonSvr,
    Formulation,
    Place,
)
from maxmargin.selection.outside import InARow, Outside, in_a_row
from maxmargin.selection.sources import Source
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatMatrix, FloatVector, IntVector


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


@dataclass(frozen=True)
class Answer:
    """What the machines of one fold say of the samples held out.

    Decisions of a fold that has no solution are nan.
    """

    decisions: FloatMatrix  # (samples, pairs of classes), or one column
    present: IntVector  # classes that the fold could learn; empty for regressions
    violation: float
    status: Status
    n_iter: int

    def decisions_by(self, order: IntVector) -> FloatMatrix:
        """Decisions of the pairs of classes in this order, positive for the first."""
        pairs = _pairs_by(order, self.present)
        columns = [sign * self.decisions[:, p] for p, sign in pairs]
        return np.array(columns).reshape(len(columns), len(self.decisions)).T


class FoldEvidence(NamedTuple):
    """What the machines of one fold say about themselves."""

    machines: list[KernelEvidence]  # of pairs of classes, or the only one
    n_vectors: int  # samples that are a support vector of any


class Line:
    """One kernel (and one tube, or nu) on its way along C (or nu)."""

    def __init__(
        self,
        task: Task,
        source: Callable[[], Source],
        options: Options,
        is_held: bool,
    ) -> None:
        """`is_held`: K is in memory."""
        self.task, self.source, self.options = task, source, options
        self.blocks: dict[tuple[int, int] | None, Block] = {}
        self.present = [_classes(task.target, fold) for fold in task.folds]
        self.on_block: dict[tuple[int, int] | None, list[Chain]] = {}
        self.chains = [self._chains(f) for f in range(len(task.folds))]
        self.outside = self._outsides(is_held)

    def _outsides(self, is_held: bool) -> list[Outside]:
        samples: dict[bytes, InARow] = {}  # mostly, folds have the same machines
        found = []
        for fold, own, present in zip(
            self.task.folds, self.chains, self.present, strict=True
        ):
            key = present.tobytes()
            if key not in samples:
                samples[key] = in_a_row([chain.block.samples for chain in own])
            found.append(Outside(fold.outside, own, samples[key], is_held))
        return found

    def _chains(self, f: int) -> list["Chain"]:
        fold, target = self.task.folds[f], self.task.target
        if not isinstance(target, Labels):
            return [self._chain(fold, None, target)]
        pairs = combinations(self.present[f].tolist(), 2)
        return [self._pair(fold, target, i, j) for i, j in pairs]

    def _pair(self, fold: FoldTask, labels: Labels, i: int, j: int) -> "Chain":
        key = (i, j) if labels.n_classes > 2 else None
        rows = self._block(key).rows
        code = labels.code if rows is None else labels.code[rows]
        return self._chain(fold, key, np.where(code == i, 1.0, -1.0))

    def _chain(
        self, fold: FoldTask, key: tuple[int, int] | None, y: FloatVector
    ) -> "Chain":
        block, form = self._block(key), self.task.formulation
        weight = fold.weight if block.rows is None else fold.weight[block.rows]
        chain = Chain(form, self.options, block, y, weight)
        self.on_block.setdefault(key, []).append(chain)
        return chain

    def _block(self, key: tuple[int, int] | None) -> "Block":
        """The kernel of a pair of classes, shared by all folds; None: of everybody."""
        if key not in self.blocks:
            rows = None
            if key is not None:
                assert isinstance(self.task.target, Labels), "only classes have pairs"
                rows = np.flatnonzero(np.isin(self.task.target.code, key))
            n = len(self.task.folds[0].weight)
            self.blocks[key] = Block(self.source, rows, n)
        return self.blocks[key]

    def release(self) -> None:
        """The kernel is not needed for a while; where the folds are is kept."""
        for block in self.blocks.values():
            block.forget()

    def tasks(self, place: Place) -> list[partial[None]]:
        """One for each machine of each fold.

        Folds that read the same block follow each other, while it is at hand.
        """
        chains = [chain for near in self.on_block.values() for chain in near]
        return [partial(chain.step, place) for chain in chains]

    def listen(self, place: Place) -> list[partial[None]]:
        """After all of these, what the machines say is known."""
        tasks = [outside.listen(self.source, place.at) for outside in self.outside]
        return [task for own in tasks for task in own]

    def answers(self) -> list[Answer]:
        """What the machines said at the last place, fold by fold."""
        return [self._answer(f) for f in range(len(self.chains))]

    def _answer(self, f: int) -> Answer:
        solved = [chain.solved for chain in self.chains[f]]
        found = [each.found for each in solved if each is not None]
        return Answer(
            decisions=self.outside[f].decisions(),
            present=self.present[f],
            violation=max((each.violation for each in found), default=0.0),
            status=max(
                (each.status for each in found),
                key=lambda status: status.rank,
                default=Status.CONVERGED,
            ),
            n_iter=sum(each.n_iter for each in found),
        )

    def evidence(self, place: Place, orders: list[IntVector]) -> list[FoldEvidence]:
        """How the machines came to say it: the last place, fold by fold.

        Pairs are those of the fold's classes in this order, positive for the first.
        """
        return [self._evidence(place, f, order) for f, order in enumerate(orders)]

    def _evidence(self, place: Place, f: int, order: IntVector) -> FoldEvidence:
        own, pairs = self.chains[f], [(0, 1.0)]
        if isinstance(self.task.target, Labels):
            pairs = _pairs_by(order, self.present[f])
        machines = [own[p].evidence(place, sign) for p, sign in pairs]
        is_vector = np.zeros(len(self.task.folds[f].weight), dtype=bool)
        for (p, _), found in zip(pairs, machines, strict=True):
            rows, support = own[p].block.rows, np.flatnonzero(found.machine.coef)
            is_vector[support if rows is None else rows[support]] = True
        return FoldEvidence(machines, int(is_vector.sum()))


def _pairs_by(order: IntVector, present: IntVector) -> list[tuple[int, float]]:
    """Pairs of classes in this order: their place among those of `present`, in its own.

    With each comes -1 where the two are exchanged.
    """
    place = {pair: p for p, pair in enumerate(combinations(present.tolist(), 2))}
    pairs = combinations(order.tolist(), 2)
    return [(place[min(p), max(p)], 1.0 if p[0] < p[1] else -1.0) for p in pairs]


def _classes(target: Labels | FloatVector, fold: FoldTask) -> IntVector:
    """The classes that a fold has samples of."""
    if not isinstance(target, Labels):
        return np.empty(0, dtype=np.intp)
    return np.unique(target.code[fold.weight > 0.0])
