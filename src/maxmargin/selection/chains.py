"""How does a machine of a fold go along a line? From solution to solution."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin.kernels.gram import VectorGram
from maxmargin.kernels.held import HeldGram
from maxmargin.models.evidence import KernelEvidence, weigh
from maxmargin.models.machine import Reading, machine_of
from maxmargin.problems import DualProblem
from maxmargin.selection.formulations import Formulation, Place, Start
from maxmargin.selection.sources import Source
from maxmargin.solvers import Options, solve
from maxmargin.solvers.gradient import make_point, solution_at, weight_of
from maxmargin.solvers.held import HeldSolution, solve_held
from maxmargin.typing import FloatVector, IntVector


class Block:
    """The kernel between some samples, made by whoever needs it first."""

    def __init__(
        self, source: Callable[[], Source], rows: IntVector | None, n: int
    ) -> None:
        """Without rows: of all n samples."""
        self.source, self.rows, self.n = source, rows, n if rows is None else len(rows)
        self._gram: HeldGram | VectorGram | None = None
        self._lean: Start | None = None
        self._lock = threading.Lock()

    @property
    def samples(self) -> IntVector:
        """Which they are."""
        return np.arange(self.n) if self.rows is None else self.rows

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


class Solved(NamedTuple):
    """A solution, and what it makes of kernel sums."""

    found: HeldSolution
    reading: Reading
    coef: FloatVector  # of every sample of the block


class _Point(NamedTuple):
    """A solution, and where on the line it is."""

    at: float
    start: Start
    final: Solved | None  # if it is the solution from here on


class Chain:
    """One problem of one fold, from place to place."""

    def __init__(
        self,
        form: Formulation,
        options: Options,
        block: Block,
        y: FloatVector,
        weight: FloatVector,
    ) -> None:
        """Weight 0 is a sample held out."""
        self.form, self.options, self.block = form, options, block
        self.y, self.weight = y, weight
        self.points: list[_Point] = []
        self.solved: Solved | None = None  # None: there is no solution

    def step(self, place: Place) -> None:
        """Solve the problem there."""
        near = self._nearest(place)
        if near is not None and near.final is not None:
            self.solved = near.final
        elif self.form.is_feasible(self.y, self.weight, place):
            self.solved = self._solve(place, near)
        else:
            self.solved = None

    def _nearest(self, place: Place) -> _Point | None:
        """The solution at the last smaller place."""
        former = [point for point in self.points if point.at <= place.at]
        return max(former, key=lambda point: point.at, default=None)

    def _solve(self, place: Place, near: _Point | None) -> Solved:
        form, options = self.form, self.options
        problem, gram = form.problem(self.y, self.weight, place), self.block.gram()
        if near is None:
            start = form.begin(problem, partial(self.block.lean, self.y))
        else:
            start = form.start(problem, near.start, place.at / near.at)

        def again(found: HeldSolution, finer: Options) -> HeldSolution:
            return _solve(problem, gram, finer, Start(found.beta, found.image))

        found = _solve(problem, gram, options, start)
        found = form.refine(found, again, gram, options)
        coef = weight_of(problem, found.beta, gram.n)
        solved, final = Solved(found, form.read(found, gram), coef), None
        if form.is_final(problem, found):
            final = solved._replace(found=replace(found, n_iter=0))
        self.points.append(_Point(place.at, Start(found.beta, found.image), final))
        return solved

    def evidence(self, place: Place, sign: float) -> KernelEvidence:
        """What the solution at the last place says; -1: of the classes exchanged."""
        assert self.solved is not None, "there is no solution"
        found, reading, _ = self.solved
        assert found.image is not None, "slopes are known where K is in memory"
        problem = self.form.problem(sign * self.y, self.weight, place)
        beta, image = sign * found.beta, sign * found.image
        point = make_point(problem, beta, image[problem.row] + problem.linear)
        tol, n_iter = self.options.tol, found.n_iter
        solution = solution_at(problem, point, found.status, tol, n_iter)
        reading = reading._replace(intercept=sign * reading.intercept)
        return weigh(machine_of(problem, solution, reading, len(image)), problem)


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
