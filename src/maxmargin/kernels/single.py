r"""What does a kernel value cost when float32 will hold it anyway? Half as much.

Dot products of float32 copies by BLAS, and an exponential in the same precision, with
twice as many numbers in a vector. What is lost is known: the exponent
:math:`-\gamma(|x|^2 + |z|^2 - 2\langle x, z\rangle)` is a sum of terms no larger than
:math:`\gamma(|x|^2 + |z|^2)`, and each of them is rounded.
"""

import threading
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maxmargin._jit import jit, smaller
from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.design import SCATTERED
from maxmargin.data.rows import DenseRows, Rows
from maxmargin.kernels.functions import RBF
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatVector, IntVector

Singles = npt.NDArray[np.float32]
Side = tuple[Rows, Singles]  # rows, and their own part of the exponent

ROUNDING = 2.0**-24  # relative, of a float32
LARGEST = 0.1 * float(np.finfo(np.float32).max)  # kernel value that is safe in float32
LARGEST_EXPONENT = 100.0  # mean of gamma |x|²: beyond, float32 loses too much
TILE_ROWS = TILE_COLUMNS = 512  # a tile of float32 fits the second-level cache
WORTH_COPYING = 128  # products in a value: then a copy costs less
UNITS = 1.0  # times sqrt(d) roundings that a sum of d products may be off: seen 0.2

LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH = np.float32(0.693359375)  # nine bits of ln 2: a product with n is exact
LN2_LOW = np.float32(-2.12194440054690583e-4)
ROUND_TO_INT = np.float32(12582912.0)  # 1.5 * 2**23
SMALLEST = np.float32(-87.0)  # below, e**x is 0 here
ZERO, ONE, HALF = np.float32(0.0), np.float32(1.0), np.float32(0.5)
P2, P3, P4, P5 = (np.float32(1.0 / k) for k in (6.0, 24.0, 120.0, 720.0))
P6 = np.float32(1.0 / 5040.0)


def is_mild(kernel: RBF, norms: FloatVector) -> bool:
    """Whether float32 gives the kernel to nearly its own rounding."""
    return kernel.gamma * float(norms.mean()) <= LARGEST_EXPONENT


class _Rooms(threading.local):
    """A tile for each thread: new memory would cost as much as what goes there."""

    def __init__(self) -> None:
        self.room = np.empty(TILE_ROWS * TILE_COLUMNS, dtype=np.float32)

    def give(self, shape: tuple[int, int]) -> Singles:
        return self.room[: shape[0] * shape[1]].reshape(shape)


_rooms = _Rooms()


class SingleRows:
    """Rows in float32, their exact norms, and the Gaussian kernel between them."""

    def __init__(
        self, kernel: RBF, rows: Rows, norms: FloatVector, n_threads: int
    ) -> None:
        self.rows, self.n_threads = rows, n_threads
        self.exponents: Singles = (-kernel.gamma * norms).astype(np.float32)
        self.twice = np.float32(2.0 * kernel.gamma)
        n_terms = rows.n_values / len(rows)
        self.errors = value_errors(kernel.gamma * norms, n_terms)
        is_dense = isinstance(rows, DenseRows)
        self.products = n_terms if is_dense else SCATTERED * n_terms  # in one value

    @property
    def n_bytes(self) -> int:
        """Memory that the copies take."""
        return self.rows.n_values * self.exponents.itemsize

    def _take(self, index: IntVector | slice) -> Side:
        return self.rows.take(index), self.exponents[index]

    def fill(self, rows: IntVector, columns: IntVector | None, out: Singles) -> None:
        """K between these rows and columns; None is all columns."""
        own, others = self._take(rows), (self.rows, self.exponents)
        if columns is not None:
            others = self._take(columns)
        tasks = [
            partial(self._fill_tile, own, others, out, (i, j))
            for j in range(0, len(others[0]), TILE_COLUMNS)
            for i in range(0, len(rows), TILE_ROWS)
        ]
        run_all(tasks, self.n_threads)

    def extend(self, rows: IntVector, n: int, square: Singles) -> None:
        """K between these rows, of which the first n have met already."""
        own, others = self._take(rows[n:]), self._take(rows)
        tasks = [
            partial(self._extend, own, others, square, n, (i, j))
            for j in range(0, len(rows), TILE_COLUMNS)
            for i in range(0, len(rows) - n, TILE_ROWS)
        ]
        run_all(tasks, self.n_threads)

    def _extend(
        self, own: Side, others: Side, square: Singles, n: int, corner: tuple[int, int]
    ) -> None:
        i, j = corner
        self._fill_tile(own, others, square, corner, n)
        rows = n + i, min(n + i + TILE_ROWS, n + len(own[0]))
        columns = j, min(j + TILE_COLUMNS, n)
        if columns[0] < columns[1]:
            copy_turned(square, rows, columns, square, (j, n + i))

    def fill_square(self, out: Singles) -> None:
        """K between all rows; of long rows, half is computed and the rest copied."""
        n = len(self.rows)
        is_copied = self.products >= WORTH_COPYING
        tasks = [
            partial(self._fill_both if is_copied else self._fill_own, out, (i, j))
            for i in range(0, n, TILE_ROWS)
            for j in range(i if is_copied else 0, n, TILE_COLUMNS)
        ]
        run_all(tasks, self.n_threads)

    def _fill_own(self, out: Singles, corner: tuple[int, int]) -> None:
        own = self.rows, self.exponents
        self._fill_tile(own, own, out, corner)

    def _fill_both(self, out: Singles, corner: tuple[int, int]) -> None:
        self._fill_own(out, corner)
        if corner[0] != corner[1]:
            top, left = corner
            rows = top, min(top + TILE_ROWS, len(out))
            columns = left, min(left + TILE_COLUMNS, len(out))
            copy_turned(out, rows, columns, out, (left, top))

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows, none of which is ever written out."""
        own = self._take(rows)
        ends = [*range(0, len(out), TILE_COLUMNS), len(out)]
        tasks = [partial(self._add, own, weight, span, out) for span in pairwise(ends)]
        run_all(tasks, self.n_threads)

    def _add(
        self, own: Side, weight: FloatVector, span: tuple[int, int], out: FloatVector
    ) -> None:
        near, width = out[slice(*span)], span[1] - span[0]
        others = self._take(slice(*span))
        room = np.empty((2, TILE_ROWS, width), dtype=np.float32)
        for i in range(0, len(weight), TILE_ROWS):
            raise_if_stopped()
            here = slice(i, min(i + TILE_ROWS, len(weight)))
            dots, tile = room[:, : here.stop - i]
            own[0].take(here).dots(others[0], out=dots)
            _fill(dots, (own[1][here], others[1]), self.twice, tile, (0, 0))
            add_rows(tile, np.arange(len(tile)), weight[here], (0, width), near)

    def _fill_tile(
        self,
        own: Side,
        others: Side,
        out: Singles,
        corner: tuple[int, int],
        top: int = 0,
    ) -> None:
        """A tile at a corner of the rows from `top` on."""
        raise_if_stopped()
        i, j = corner
        here, there = slice(i, i + TILE_ROWS), slice(j, j + TILE_COLUMNS)
        a, b = own[0].take(here), others[0].take(there)
        dots = _rooms.give((len(a), len(b)))
        a.dots(b, out=dots)
        exponents = own[1][here], others[1][there]
        _fill(dots, exponents, self.twice, out, (top + i, j))


def value_errors(exponents: FloatVector, n_terms: float) -> FloatVector:
    """How far kernel values of each row may be off.

    The exponent of a pair is off by a multiple of its two terms a + b; but where b is
    much larger than a, the value itself is nearly 0: (a + b) K is at most 3 a + 3.
    """
    terms = 2.0 + UNITS * np.sqrt(n_terms)  # two norms rounded, and a sum of products
    return ROUNDING * (4.0 + terms * (3.0 * exponents + 3.0))


@jit
def _fill(
    dots: Singles,
    exponents: tuple[Singles, Singles],
    twice: np.float32,
    out: Singles,
    corner: tuple[int, int],
) -> None:
    own, others = exponents
    top, left = corner
    for i in range(dots.shape[0]):
        row = out[top + i][left : left + dots.shape[1]]
        _fill_row(dots[i], own[i], others, twice, row)


@jit
def _fill_row(
    dots: Singles, own: np.float32, others: Singles, twice: np.float32, row: Singles
) -> None:
    for j in range(dots.size):
        exponent = smaller((own + others[j]) + twice * dots[j], ZERO)
        row[j] = _exp_of_negative(exponent)


@jit
def _exp_of_negative(x: np.float32) -> np.float32:
    """e**x for x <= 0: 2**n times a polynomial on |r| <= ln(2)/2 (Cody & Waite)."""
    shifted = x * LOG2_E + ROUND_TO_INT
    n = shifted - ROUND_TO_INT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = P6 * r + P5
    p = p * r + P4
    p = p * r + P3
    p = p * r + P2
    p = p * r + HALF
    p = p * r + ONE
    p = p * r + ONE
    bits = (np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)
    value = p * np.int32(bits).view(np.float32)
    return value if x > SMALLEST else ZERO
