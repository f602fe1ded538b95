"""How does the model meet the data? By a few columns, their square, or one by one.

Where their square would be too dear, coordinate descent visits the columns and keeps
one number for each sample: how far it has been shifted. A visit costs the stored values
of a column once, a move twice.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin._threads import raise_if_stopped
from maxmargin.data.design import Design
from maxmargin.data.row_verbs import RowParts, add_multiple, row_add_weighted, row_dot
from maxmargin.solvers.l1_model import Place, lowest, violation_of
from maxmargin.solvers.running_square import RunningSquare
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

MOST_SQUARE = 2000  # features whose matrix is formed: 32 MB
COPIED_SHARE = 0.25  # of all columns: more of them are read where they are
SPARSE_VISIT, DENSE_VISIT = 24.0, 6.0  # of a value in a sweep, in products by BLAS
SLICE_VALUES = 1 << 25  # stored values between two looks at the clock: under 100 ms


class Side:
    """A design and, once they are asked for, its columns."""

    def __init__(self, design: Design) -> None:
        self.design = design

    @cached_property
    def turned(self) -> RowParts:
        """The columns as rows."""
        return self.design.columns()

    def forget(self) -> None:
        """Free the columns; they are made again when asked for."""
        self.__dict__.pop("turned", None)


class Face:
    """The working set: some columns of the whole, copied if they are few of many."""

    def __init__(self, whole: Side, columns: IntVector) -> None:
        self.columns = columns
        n_columns = whole.design.n_columns
        self.is_small = len(columns) <= MOST_SQUARE
        self.side, self.at = whole, columns
        is_part = len(columns) <= COPIED_SHARE * n_columns or n_columns > MOST_SQUARE
        if self.is_small and is_part and len(columns) < n_columns:
            whole.forget()
            self.side = Side(_take_columns(whole.design, columns))
            self.at = np.arange(len(columns))
        self.design = self.side.design
        self.running = RunningSquare(self.design)

    def times(self, d: FloatVector) -> FloatVector:
        """X d."""
        spread = np.zeros(self.design.n_columns)
        spread[self.at] = d
        return self.design.times(spread)

    def square_in_sweeps(self, theta: FloatVector) -> float:
        """How many sweeps over the columns cost as much as their square."""
        visit = SPARSE_VISIT if self.design.is_sparse else DENSE_VISIT
        share = np.count_nonzero(theta) / len(theta)
        sweep = visit * max(self.design.n_values, 1)
        return share * self.design.square_cost / sweep

    def square(self, theta: FloatVector) -> FloatMatrix:
        """Xᵀ diag(theta) X, in these columns."""
        matrix = self.running.at(theta)
        if len(self.at) < len(matrix):
            return matrix[np.ix_(self.at, self.at)]
        return matrix

    def weighted(self, theta: FloatVector) -> "Columns":
        """The columns one by one, each sample with the weight theta."""
        design = self.design
        curves = design.squares_times(theta)[self.at]
        return Columns(
            self.side.turned, self.at, design.n_features, design.bias, theta, curves
        )


def _take_columns(design: Design, columns: IntVector) -> Design:
    at = columns[columns < design.n_features]
    X = design.X[:, at] if design.is_sparse else np.take(design.X, at, axis=1)
    bias = design.bias if len(at) < len(columns) else 0.0
    return Design(X, bias, design.n_threads)


class Columns(NamedTuple):
    """Some columns of a design, with a weight for every sample."""

    rows: RowParts  # of the transposed design
    at: IntVector  # which of them are meant; one too large is the constant column
    n_features: int
    bias: float  # the value of the constant column
    theta: FloatVector
    curves: FloatVector  # of the model, along each of them

    @property
    def sizes(self) -> IntVector:
        """Stored values of each column."""
        sizes = np.full(len(self.at), len(self.theta))
        if len(self.rows) > 1:
            is_feature = self.at < self.n_features
            sizes[is_feature] = np.diff(self.rows[2])[self.at[is_feature]]
        return sizes


class Sweeps(NamedTuple):
    """How long to go on."""

    goal: float  # violation
    most: int
    rng: np.random.Generator
    watch: Watch


def minimise_columns(columns: Columns, place: Place, sweeps: Sweeps) -> bool:
    """Coordinate descent until no violation is above the goal: then True."""
    sizes, every = columns.sizes, np.arange(len(columns.at))
    start, shift = place.grad.copy(), np.zeros(len(columns.theta))
    for _ in range(sweeps.most):
        worst = 0.0
        for part in _slices(sizes, sweeps.rng.permutation(every)):
            raise_if_stopped()
            worst = max(worst, _sweep(columns, place, start, part, shift))
        if worst <= sweeps.goal:
            return True
        if sweeps.watch.is_late():
            break
    return False


def _slices(sizes: IntVector, order: IntVector) -> list[IntVector]:
    piece = np.cumsum(sizes[order]) // SLICE_VALUES
    return np.split(order, np.flatnonzero(np.diff(piece)) + 1)


@jit
def _sweep(
    columns: Columns,
    place: Place,
    start: FloatVector,
    order: IntVector,
    shift: FloatVector,
) -> float:
    """Visit the features in order; returns the largest violation met.

    `shift` is the design times the way gone so far, weighted by theta: the slope of a
    feature is that at the start and the product of its column with the shift.
    """
    rows, at, n_features, bias, theta, curves = columns
    x, grad, penalty = place.x, place.grad, place.penalty
    worst = 0.0
    for k in range(len(order)):
        j = order[k]
        is_feature = at[j] < n_features
        if is_feature:
            grad[j] = start[j] + row_dot(rows, at[j], shift)
        else:
            grad[j] = start[j] + bias * shift.sum()
        worst = max(worst, violation_of(x[j], grad[j], penalty[j]))
        new = lowest(x[j], grad[j], curves[j], penalty[j])
        step = new - x[j]
        x[j] = new
        if step == 0.0:
            continue
        if is_feature:
            row_add_weighted(rows, at[j], step, theta, shift)
        else:
            add_multiple(theta, step * bias, shift)
    return worst
