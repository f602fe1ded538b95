"""How do all folds learn from one kernel matrix? As boxes that are closed for some.

A sample held out keeps its row of K, but its variable may not leave zero. So K is
computed once for all folds and every C, each fold starts from its own solution at the
last C, and what it says of the samples held out is read off the gradient. (Wen et al.,
2017, and Chu et al., 2015, for starts; nothing here is approximate.)
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin.data.labels import Labels
from maxmargin.kernels.gram import VectorGram
from maxmargin.kernels.held import HeldGram
from maxmargin.models.evidence import KernelEvidence, weigh
from maxmargin.models.machine import Reading, machine_of
from maxmargin.problems import DualProblem
from maxmargin.problems.classification import ROUNDING
from maxmargin.selection.formulations import (
    CSvc,
    EpsilonSvr,
    Formulation,
    Place,
    Start,
)
from maxmargin.selection.sources import Source
from maxmargin.solvers import Options, Status, solve
from maxmargin.solvers.gradient import make_point, solution_at, weight_of
from maxmargin.solvers.held import HeldSolution, solve_held
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

DENSE = 0.5  # of the samples: then sums run over all of them


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


class _Said(NamedTuple):
    """What a problem came to; without a solution, decisions are nan."""

    decision: FloatVector
    found: HeldSolution | None = None
    reading: Reading | None = None

    @property
    def violation(self) -> float:
        return 0.0 if self.found is None else self.found.violation

    @property
    def status(self) -> Status:
        return Status.CONVERGED if self.found is None else self.found.status

    @property
    def n_iter(self) -> int:
        return 0 if self.found is None else self.found.n_iter


class Line:
    """One kernel (and one tube, or nu) on its way along C (or nu)."""

    def __init__(
        self,
        task: Task,
        source: Callable[[], Source],
        options: Options,
    ) -> None:
        self.task, self.source, self.options = task, source, options
        self.blocks: dict[tuple[int, int] | None, _Block] = {}
        self.present = [_classes(task.target, fold) for fold in task.folds]
        self.on_block: dict[tuple[int, int] | None, list[_Chain]] = {}
        self.chains = [self._chains(f) for f in range(len(task.folds))]

    def _chains(self, f: int) -> list["_Chain"]:
        fold, target = self.task.folds[f], self.task.target
        if not isinstance(target, Labels):
            return [self._chain(fold, None, target)]
        pairs = combinations(self.present[f].tolist(), 2)
        return [self._pair(fold, target, i, j) for i, j in pairs]

    def _pair(self, fold: FoldTask, labels: Labels, i: int, j: int) -> "_Chain":
        key = (i, j) if labels.n_classes > 2 else None
        rows = self._block(key).rows
        code = labels.code if rows is None else labels.code[rows]
        return self._chain(fold, key, np.where(code == i, 1.0, -1.0))

    def _chain(
        self, fold: FoldTask, key: tuple[int, int] | None, y: FloatVector
    ) -> "_Chain":
        chain = _Chain(self, fold, self._block(key), y)
        self.on_block.setdefault(key, []).append(chain)
        return chain

    def _block(self, key: tuple[int, int] | None) -> "_Block":
        """The kernel of a pair of classes, shared by all folds; None: of everybody."""
        if key not in self.blocks:
            rows = None
            if key is not None:
                assert isinstance(self.task.target, Labels), "only classes have pairs"
                rows = np.flatnonzero(np.isin(self.task.target.code, key))
            self.blocks[key] = _Block(self.source, rows)
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

    def answers(self) -> list[Answer]:
        """What the machines said at the last place, fold by fold."""
        found = []
        for f, own in enumerate(self.chains):
            parts = [chain.said for chain in own]
            held = len(self.task.folds[f].outside)
            columns = [part.decision for part in parts]
            found.append(
                Answer(
                    decisions=np.array(columns).reshape(len(columns), held).T,
                    present=self.present[f],
                    violation=max((part.violation for part in parts), default=0.0),
                    status=max(
                        (part.status for part in parts),
                        key=lambda status: status.rank,
                        default=Status.CONVERGED,
                    ),
                    n_iter=sum(part.n_iter for part in parts),
                )
            )
        return found

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


class _Block:
    """The kernel between some samples, made by whoever needs it first."""

    def __init__(self, source: Callable[[], Source], rows: IntVector | None) -> None:
        self.source, self.rows = source, rows
        self._gram: HeldGram | VectorGram | None = None
        self._lean: Start | None = None
        self._lock = threading.Lock()

    def gram(self) -> HeldGram | VectorGram:
        with self._lock:
            if self._gram is None:
                self._gram = self.source().block(self.rows)
            return self._gram

    def lean(self, y: FloatVector) -> Start | None:
        """From the mean of one class to that of the other; y is the same for all folds.

        None where rows would have to be computed for it.
        """
        gram = self.gram()
        if not isinstance(gram, HeldGram):
            return None
        with self._lock:
            if self._lean is None:
                self._lean = between_means(gram, y)
            return self._lean

    def forget(self) -> None:
        """Somebody else may have its memory."""
        self._gram = None


def between_means(gram: HeldGram, y: FloatVector) -> Start:
    """Weights whose sums tell how far each sample is on the positive side."""
    is_positive = y > 0.0
    n_positive = int(is_positive.sum())
    weight = np.where(is_positive, 1 / n_positive, -1 / (len(y) - n_positive))
    everybody = np.arange(gram.n)
    return Start(weight, gram.sums(everybody, weight, everybody))


class _Point(NamedTuple):
    """A solution, and where on the line it is."""

    at: float
    start: Start
    final: _Said | None  # what came of it, if the same is true from here on


class _Heard(NamedTuple):
    """Kernel sums at the samples held out, ascending, and what they are sums of."""

    at: float
    coef: FloatVector
    sums: FloatVector


class _Chain:
    """One problem of one fold, from place to place."""

    def __init__(
        self,
        line: Line,
        fold: FoldTask,
        block: _Block,
        y: FloatVector,
    ) -> None:
        self.line, self.fold, self.block, self.y = line, fold, block, y
        weight = fold.weight if block.rows is None else fold.weight[block.rows]
        self.weight = weight
        self.points: list[_Point] = []
        self.said = _Said(np.empty(0))
        self.order = np.argsort(fold.outside)
        self.heard: _Heard | None = None

    def step(self, place: Place) -> None:
        """Solve the problem there, and say what comes of it."""
        self.said = self._solved(place)

    def _solved(self, place: Place) -> _Said:
        form, options = self.line.task.formulation, self.line.options
        near = self._nearest(place)
        if near is not None and near.final is not None:
            return near.final
        if not form.is_feasible(self.y, self.weight, place):
            return _Said(np.full(len(self.fold.outside), np.nan))
        problem, gram = form.problem(self.y, self.weight, place), self.block.gram()
        start = self._start(problem, place, near)

        def again(found: HeldSolution, finer: Options) -> HeldSolution:
            return _solve(problem, gram, finer, Start(found.beta, found.image))

        found = _solve(problem, gram, options, start)
        found = form.refine(found, again, gram, options)
        reading = form.read(found, gram)
        coef = weight_of(problem, found.beta, gram.n)
        sums = self._sums(coef, found.image, place)
        said = _Said(sums / reading.margin + reading.intercept, found, reading)
        final = None
        if form.is_final(problem, found):
            final = said._replace(found=replace(found, n_iter=0))
        self.points.append(_Point(place.at, Start(found.beta, found.image), final))
        return said

    def evidence(self, place: Place, sign: float) -> KernelEvidence:
        """What the solution at the last place says; -1: of the classes exchanged."""
        _, found, reading = self.said
        assert found is not None and reading is not None, "there is no solution"
        assert found.image is not None, "slopes are known where K is in memory"
        form = self.line.task.formulation
        problem = form.problem(sign * self.y, self.weight, place)
        beta, image = sign * found.beta, sign * found.image
        point = make_point(problem, beta, image[problem.row] + problem.linear)
        tol, n_iter = self.line.options.tol, found.n_iter
        solution = solution_at(problem, point, found.status, tol, n_iter)
        reading = reading._replace(intercept=sign * reading.intercept)
        return weigh(machine_of(problem, solution, reading, len(image)), problem)

    def _nearest(self, place: Place) -> _Point | None:
        """The solution at the last smaller place."""
        former = [point for point in self.points if point.at <= place.at]
        return max(former, key=lambda point: point.at, default=None)

    def _start(
        self, problem: DualProblem, place: Place, near: _Point | None
    ) -> Start | None:
        form = self.line.task.formulation
        if near is None:
            return form.begin(problem, partial(self.block.lean, self.y))
        return form.start(problem, near.start, place.at / near.at)

    def _sums(
        self, coef: FloatVector, image: FloatVector | None, place: Place
    ) -> FloatVector:
        """Kernel sums at the samples held out: what has changed since the last ones."""
        outside, rows = self.fold.outside, self.block.rows
        if rows is None and image is not None:
            sums: FloatVector = image[outside]
            return sums
        heard = self.heard or _Heard(place.at, np.zeros(1), np.zeros(1))
        changes = [_change(coef, heard, part) for part in (1.0, place.at / heard.at)]
        change, part = min(changes, key=lambda each: np.count_nonzero(each[0]))
        changed = np.flatnonzero(change)
        sums = part * heard.sums
        if len(changed) > DENSE * len(change):
            changed = np.arange(len(change))
        if len(changed):
            own = changed if rows is None else rows[changed]
            near = outside[self.order]
            sums = sums + self.line.source().sums(own, change[changed], near)
        self.heard = _Heard(place.at, coef, sums)
        said = np.empty(len(outside))
        said[self.order] = sums
        return said


def _change(coef: FloatVector, heard: _Heard, part: float) -> tuple[FloatVector, float]:
    """From a multiple of former coefficients, rounding apart; and the multiple."""
    change = coef - part * heard.coef
    change[np.abs(change) <= ROUNDING * np.abs(coef)] = 0.0
    return change, part


def _solve(
    problem: DualProblem,
    gram: HeldGram | VectorGram,
    options: Options,
    start: Start | None,
) -> HeldSolution:
    """From this start; K times the solution where K is in memory."""
    if start is not None:
        problem = problem._replace(start=start.beta)
    if isinstance(gram, HeldGram):
        image = None if start is None else start.image
        return solve_held(problem, gram, options, image)
    found = solve(problem, gram, options)
    evidence = found.violation, found.status, found.n_iter
    return HeldSolution(found.beta, None, found.level, *evidence)


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
