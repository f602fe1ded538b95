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
from maxmargin.selection.sides import Sides
from maxmargin.selection.sources import Source
from maxmargin.solvers import Options, Solution, solve
from maxmargin.solvers.gradient import weight_of
from maxmargin.solvers.iterate import make_iterate, solution_at
from maxmargin.typing import FloatVector, IntVector

ROUNDING = float(np.finfo(np.float64).eps)
EXACT = 1e-6  # of tol: if slopes are less so, they are summed up again

Key = tuple[int, int] | None  # two classes; None: all samples


class Seat(NamedTuple):
    """What one machine learns."""

    key: Key
    fold: int
    y: FloatVector
    weight: FloatVector  # 0: held out


class Block:
    """The kernel between some samples, made by whoever needs it first."""

    def __init__(
        self, source: Callable[[], Source], rows: IntVector | None, fold_of: IntVector
    ) -> None:
        """`fold_of` is who holds a sample out; without rows, all samples are meant."""
        self.source, self.rows = source, rows
        self.fold_of = fold_of if rows is None else fold_of[rows]
        self.n = len(self.fold_of)
        self._gram: HeldGram | VectorGram | None = None
        self._sides: Sides | None = None
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

    def sides(self, y: FloatVector) -> Sides | None:
        """Sums of K over either class; y is the same for all folds.

        None where rows would have to be computed for it.
        """
        gram = self.gram()
        if not isinstance(gram, HeldGram):
            return None
        with self._lock:
            if self._sides is None:
                self._sides = Sides(gram, y, self.fold_of)
            return self._sides

    def forget(self) -> None:
        """Somebody else may have its memory, and write over it."""
        self._gram = self._sides = None


class Solved(NamedTuple):
    """A solution, and what it makes of kernel sums."""

    found: Solution
    reading: Reading
    coef: FloatVector  # of every sample of the block
    image: FloatVector | None  # K times the solution; None: K was not in memory


class _Point(NamedTuple):
    """A solution, and where on the line it is."""

    at: float
    start: Start
    error: float  # of its slopes, at most: rounding grows where they are scaled
    final: Solved | None  # if it is the solution from here on


class Chain:
    """One problem of one fold, from place to place."""

    def __init__(
        self,
        form: Formulation,
        options: Options,
        block: Block,
        seat: Seat,
    ) -> None:
        self.form, self.options, self.block = form, options, block
        self.fold, self.y, self.weight = seat.fold, seat.y, seat.weight
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
        error = ROUNDING * float(np.abs(problem.linear).max())
        if near is None:
            start = form.begin(problem, partial(self.block.sides, self.y), self.fold)
        else:
            ratio = place.at / near.at
            start = form.start(problem, near.start, ratio)
            if near.error * ratio <= EXACT * options.tol:
                error += near.error * ratio
            else:
                start = start._replace(image=None)

        def again(found: Solution, finer: Options) -> Solution:
            start = Start(found.beta, _image(problem, gram, found))
            return _solve(problem, gram, finer, start)

        found = _solve(problem, gram, options, start)
        found = form.refine(found, again, gram, options)
        coef = weight_of(problem, found.beta, gram.n)
        image = _image(problem, gram, found)
        solved, final = Solved(found, form.read(found, gram), coef, image), None
        if form.is_final(problem, found):
            final = solved._replace(found=replace(found, n_iter=0))
        start = Start(found.beta, image)
        self.points.append(_Point(place.at, start, error, final))
        return solved

    def evidence(self, place: Place, sign: float) -> KernelEvidence:
        """What the solution at the last place says; -1: of the classes exchanged."""
        assert self.solved is not None, "there is no solution"
        found, reading, _, image = self.solved
        assert image is not None, "slopes are known where K is in memory"
        problem = self.form.problem(sign * self.y, self.weight, place)
        beta, image = sign * found.beta, sign * image
        point = make_iterate(problem, beta, image[problem.row] + problem.linear)
        point = point._replace(status=found.status)
        solution = solution_at(problem, point, self.options.tol, found.n_iter)
        reading = reading._replace(intercept=sign * reading.intercept)
        return weigh(machine_of(problem, solution, reading, len(image)), problem)


def _solve(
    problem: DualProblem,
    gram: HeldGram | VectorGram,
    options: Options,
    start: Start | None,
) -> Solution:
    """From this start, if there is one."""
    if start is None:
        return solve(problem, gram, options)
    return solve(problem._replace(start=start.beta), gram, options, start.image)


def _image(
    problem: DualProblem, gram: HeldGram | VectorGram, found: Solution
) -> FloatVector | None:
    """K times a solution, where K is in memory: slopes are as exact as its values."""
    if not isinstance(gram, HeldGram):
        return None
    assert found.grad is not None, "kernel machines know their slopes"
    image = np.zeros(gram.n)
    image[problem.row] = found.grad - problem.linear
    return image
