"""What is a stack of problems, and how are their solutions certified in float64?

The problems of all pairs of classes stand one after the other. What their variables
have is a matrix with a row for each property, and so are the answers: compiled code
takes each array apart into seven arguments, of every function that gets one.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.cache import RowCache
from maxmargin.kernels.source import RowSource
from maxmargin.problems.dual import LEVEL as GROUP_LEVEL
from maxmargin.problems.dual import N_MEASURES, DualProblem, gap_at, measure_point
from maxmargin.solvers.iterate import Iterate
from maxmargin.solvers.result import Status
from maxmargin.solvers.work import Work, curvature_floor
from maxmargin.typing import BoolVector, FloatMatrix, FloatVector, IntMatrix, IntVector

# What the matrices hold, by their first index.
LINEAR, KINK, LOWER, UPPER, START, DIAGONAL = 0, 1, 2, 3, 4, 5  # of `numbers`
GROUP, ROW, PLACE = 0, 1, 2  # of `places`: the row of K counts from 0 in each problem
BETA, GRAD = 0, 1  # of `points`
LANES = 32  # variables in an iteration of a vectorised loop: the rest goes one by one
N_MOVES, N_COMPUTED, STATE = 0, 1, 2  # of `counts`, an entry a problem
TO_DO, SOLVED, GIVEN_UP = 0, 1, 2  # states of a problem
VIOLATION, OBJECTIVE, GAP, LEVEL = 0, 1, 2, 3  # of `evidence`; one more a group


class Stack(NamedTuple):
    """Problems one after the other, each with its variables sorted by group."""

    numbers: FloatMatrix  # a column a variable
    places: IntMatrix
    end: IntVector  # of each problem, among the variables
    n_rows: IntVector  # of K, of each problem
    n_groups: int


class StackSolution(NamedTuple):
    """The points reached, with their certificates."""

    points: FloatMatrix  # a column a variable
    counts: IntMatrix  # a column a problem
    evidence: FloatMatrix

    @property
    def has_converged(self) -> BoolVector:
        """Of each problem, whether it is solved as it was asked for."""
        return self.counts[STATE] == SOLVED

    def levels(self, n_groups: int) -> FloatMatrix:
        """A row a problem, a column a group."""
        return self.evidence[LEVEL : LEVEL + n_groups].T

    @property
    def n_moves(self) -> int:
        """Of all problems."""
        return int(self.counts[N_MOVES].sum())

    def iterate(self, n_groups: int) -> Iterate:
        """What a solver returns for the only problem of a stack."""
        violation, objective, gap = map(float, self.evidence[:LEVEL, 0])
        return Iterate(
            beta=self.points[BETA],
            grad=self.points[GRAD],
            violation=violation,
            objective=objective,
            levels=self.levels(n_groups)[0],
            status=Status.CONVERGED if self.has_converged[0] else None,
            cache_misses=int(self.counts[N_COMPUTED, 0]),
            gap=gap,
        )


def stack_of(
    problem: DualProblem, place: IntVector, diagonal: FloatVector, end: IntVector
) -> Stack:
    """A stack of problems; `diagonal` and `place` are those of their variables in K.

    `problem.row` counts the rows of K of each problem from 0, in the order of `place`.
    """
    numbers = np.array(
        [
            problem.linear,
            problem.kink,
            problem.lower,
            problem.upper,
            problem.start,
            diagonal,
        ]
    )
    places = np.array([problem.group, problem.row, place])
    n_rows = np.maximum.reduceat(problem.row, np.concatenate(([0], end[:-1]))) + 1
    return Stack(numbers, places, end, n_rows, problem.n_groups)


class Room(NamedTuple):
    """Arrays for the largest of some problems; each takes a part of them."""

    rows: FloatVector  # of K
    state: FloatMatrix  # the eight vectors of a Work
    row: IntVector
    start: IntVector
    gained: FloatVector
    slots: IntMatrix  # owner, slot and last use of a RowCache
    counts: IntVector  # and its numbers
    weight: FloatVector  # of each row of K
    everything: IntVector  # 0, 1, 2, ...
    of_group: FloatMatrix  # as in `problems.dual`


def make_room(stack: Stack, first: int, last: int) -> Room:
    """Room for these problems."""
    ends = [0, *stack.end.tolist()]
    sizes = [b - a for a, b in pairwise(ends[first : last + 1])]
    n_rows = stack.n_rows[first:last].tolist()
    pairs = zip(sizes, n_rows, strict=True)
    n, m = padded(max(sizes)), max(n_rows)
    return Room(
        rows=np.empty(max(padded(size) * count for size, count in pairs)),
        state=np.empty((8, n)),
        row=np.empty(n, dtype=np.intp),
        start=np.empty(max(stack.n_groups, 1) + 1, dtype=np.intp),
        gained=np.empty(1),
        slots=np.empty((3, m), dtype=np.intp),
        counts=np.empty(3, dtype=np.intp),
        weight=np.empty(m),
        everything=np.arange(n),
        of_group=np.empty((N_MEASURES, max(stack.n_groups, 1))),
    )


def padded(n: int) -> int:
    """The next multiple of LANES."""
    return -(-n // LANES) * LANES


@jit
def open_problem(
    stack: Stack, source: RowSource, room: Room, number: int
) -> tuple[Work, RowCache, RowSource]:
    """Room for a problem: its variables, and rows of K.

    Variables that are fixed at zero fill up the last group, for the sake of vectorised
    loops.
    """
    a, b = stack.end[number - 1] if number > 0 else 0, stack.end[number]
    m, width = stack.n_rows[number], -(-(b - a) // LANES) * LANES
    work = Work(
        room.state[0, :width],
        room.state[1, :width],
        room.state[2, :width],
        room.state[3, :width],
        room.state[4, :width],
        room.state[5, :width],
        room.state[6, :width],
        room.state[7, :width],
        room.row[:width],
        room.start,
        room.gained,
        curvature_floor(stack.numbers[DIAGONAL, a:b]),
    )
    cache = RowCache(
        room.rows[: m * width].reshape(m, width),
        room.slots[0, :m],
        room.slots[1, :m],
        room.slots[2, :m],
        room.counts,
    )
    place = source.place
    if len(place) > 0:
        place = stack.places[PLACE, a:b]
    own = RowSource(
        source.kind,
        source.gamma,
        source.coef0,
        source.degree,
        source.columns,
        source.norms,
        place,
    )
    return work, cache, own


@jit
def certify(
    stack: Stack,
    out: StackSolution,
    number: int,
    a: int,
    b: int,
    tol: float,
    of_group: FloatMatrix,
) -> None:
    """Violation, objective, gap and levels; `of_group` as in `problems.dual`."""
    numbers, group = stack.numbers, stack.places[GROUP, a:b]
    beta, grad = out.points[BETA, a:b], out.points[GRAD, a:b]
    kink, start = numbers[KINK, a:b], numbers[START, a:b]
    lower, upper = numbers[LOWER, a:b], numbers[UPPER, a:b]
    violation, objective = measure_point(
        numbers[LINEAR, a:b],
        kink,
        lower,
        upper,
        start,
        group,
        beta,
        grad,
        stack.n_groups,
        of_group,
    )
    out.evidence[VIOLATION, number], out.evidence[OBJECTIVE, number] = (
        violation,
        objective,
    )
    out.evidence[GAP, number] = gap_at(
        kink, lower, upper, start, group, beta, grad, stack.n_groups, tol, of_group
    )
    for g in range(stack.n_groups):
        out.evidence[LEVEL + g, number] = of_group[GROUP_LEVEL, g]
