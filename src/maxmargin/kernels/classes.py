"""What do the pairs of many classes have in common? Everything within a class.

With one machine a pair, a class meets itself in as many problems as there are others.
What concerns one class only is made once, when it is first needed: its rows as
compiled code wants them, and the kernel between them. Rows of a pair come class by
class, so that what is shared lies in blocks.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.data.rows import DenseRows, Rows
from maxmargin.kernels.functions import RBF, ExactRBF, Laplacian, Linear
from maxmargin.kernels.gram import (
    Gram,
    MatrixGram,
    VectorGram,
    sum_blocks,
    whole_matrix,
)
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.once import Once
from maxmargin.kernels.pair_panels import ClassPanels, PairPanels, join_rows
from maxmargin.kernels.panel_rows import WIDEST, pack_rows
from maxmargin.kernels.provider import GramRows, KernelProvider
from maxmargin.kernels.single import is_mild
from maxmargin.kernels.source import RowSource
from maxmargin.kernels.tiles import (
    fill_tiles,
    is_all,
    rectangle,
    sum_rows,
    symmetric,
)
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

SINGLE, DOUBLE = 4, 8  # bytes of a value
REPEATED = 2  # times that pairs need a value of K, on average: then it is kept
NEVER = 1 << 62  # bytes: more than there are


class Sizes(NamedTuple):
    """Which pairs share, and how much memory may be spent on that."""

    fewest: int  # samples of a pair: below, hardly any kernel values are needed
    most: int  # samples of a pair: up to here, all of them are
    n_bytes: int
    short: float  # features: rows that are longer are worth a square of each class

    def all_needed(self, n: int) -> bool:
        """Whether a pair of n samples needs all of K."""
        return self.fewest <= n <= self.most

    def has_partners(self, own: int, counts: Sequence[int]) -> bool:
        """Whether a class's square serves two pairs at least; `counts` has its own."""
        n_served = sum(self.all_needed(own + n) for n in counts)
        return n_served - self.all_needed(2 * own) >= 2


class PairGrams:
    """The Gram matrix of any two classes; here, with nothing in common."""

    n_bytes = 0  # that are, or will be, taken by what is shared

    def __init__(self, gram: Gram, members: Sequence[IntVector]) -> None:
        self.gram, self.members = gram, members

    def index(self, i: int, j: int) -> IntVector:
        """The training rows of a pair, class by class."""
        return np.concatenate((self.members[i], self.members[j]))

    def of(self, i: int, j: int) -> Gram:
        return self.gram.take(self.index(i, j))


def share_classes(gram: Gram, members: Sequence[IntVector], sizes: Sizes) -> PairGrams:
    """Whatever pairs of these classes can have in common."""
    counts = sorted(map(len, members))
    is_plain = not isinstance(gram, VectorGram) or isinstance(gram.kernel, Linear)
    if is_plain or len(members) < 3 or sum(counts[-2:]) < sizes.fewest:
        return PairGrams(gram, members)
    assert isinstance(gram, VectorGram)
    about = _about_middle(gram)
    if about is not None:
        return PanelGrams(gram, members, sizes, about)
    return BlockGrams(gram, members, sizes)


class PairsInMemory(PairGrams):
    """All of K in memory, samples sorted by class: a pair is two runs of rows.

    `K` and `place` count the samples class by class.
    """

    def __init__(self, gram: VectorGram | MatrixGram, members: Sequence[IntVector]):
        super().__init__(gram, members)
        order = np.concatenate(members)
        own = gram.take(order)
        if isinstance(gram, VectorGram) and isinstance(own, VectorGram):
            own.n_threads = gram.n_threads
        self.K = whole_matrix(own)
        self.diagonal = self.K.diagonal().copy()
        edges = np.cumsum([0, *map(len, members)])
        self.place = [np.arange(a, b) for a, b in pairwise(edges)]
        self.shift = None if gram.shift is None else gram.shift[order]
        self.bound = gram.bound()

    def of(self, i: int, j: int) -> Gram:
        index = np.concatenate((self.place[i], self.place[j]))
        shift = None if self.shift is None else self.shift[index]
        own = HeldGram(self.K, self.bound, index)
        own.shift = shift
        return own


def computed_once(gram: Gram, counts: Sequence[int], n_bytes: int) -> Gram:
    """All of K, if its values are expensive and needed repeatedly.

    A large class is part of many pairs. No library computes distances that are sums of
    differences.
    """
    if not isinstance(gram, VectorGram):
        return gram
    n, n_classes = gram.n, len(counts)
    squares = sum(count**2 for count in counts)
    n_needed = (n_classes - 2) * squares + n**2  # by all pairs: (n_i + n_j)² each
    is_dear = isinstance(gram.kernel, Laplacian | ExactRBF)
    is_dear = is_dear and n_needed >= REPEATED * n**2 and DOUBLE * n**2 <= n_bytes
    if not is_dear:
        return gram
    return MatrixGram(
        symmetric(gram.kernel, gram.rows, gram.n_threads), gram.bound(), gram.shift
    )


def _about_middle(gram: VectorGram) -> tuple[FloatVector, FloatVector] | None:
    """The middle of rows that belong in panels, and squared distances from it."""
    kernel, rows = gram.kernel, gram.rows
    if not isinstance(kernel, RBF) or not isinstance(rows, DenseRows):
        return None
    if rows.n_columns > WIDEST:
        return None
    middle = rows.middle()
    norms = rows.norms_about(middle)
    return (middle, norms) if is_mild(kernel, norms) else None


def _admitted(prices: Sequence[int], n_bytes: int) -> tuple[set[int], int]:
    """The classes there is room for, the cheapest first, and what they take."""
    chosen, total = set(), 0
    for c in np.argsort(prices, kind="stable"):
        if total + prices[c] > n_bytes:
            break
        chosen.add(int(c))
        total += prices[c]
    return chosen, total


class PanelGrams(PairGrams):
    """Dense rows and the Gaussian kernel: panels of each class, and its square."""

    def __init__(
        self,
        gram: VectorGram,
        members: Sequence[IntVector],
        sizes: Sizes,
        about: tuple[FloatVector, FloatVector],
    ) -> None:
        """`about`: the middle of all rows, and their squared distances from it."""
        super().__init__(gram, members)
        self.vectors, self.sizes = gram, sizes
        d, counts = gram.rows.n_columns, [len(own) for own in members]
        self.is_wide = d > sizes.short
        prices = [
            SINGLE * n * (d + n * (self.is_wide and sizes.has_partners(n, counts)))
            for n in counts
        ]
        self.chosen, self.n_bytes = _admitted(prices, sizes.n_bytes)
        self.parts = [Once(partial(_pack, gram, own, about)) for own in members]

    def of(self, i: int, j: int) -> Gram:
        index = self.index(i, j)
        if len(index) < self.sizes.fewest or not {i, j} <= self.chosen:
            return self.gram.take(index)
        first, second = self.parts[i](), self.parts[j]()
        if self.is_wide and self.sizes.all_needed(len(index)):
            pair = PairPanels(first, second)
            return PairGram(self.vectors, index, pair, n_whole=len(index))
        return PairGram(self.vectors, index, join_rows(first.rows, second.rows))


def _pack(
    gram: VectorGram, own: IntVector, about: tuple[FloatVector, FloatVector]
) -> ClassPanels:
    middle, norms = about
    kernel, rows = gram.kernel, gram.rows
    assert isinstance(kernel, RBF) and isinstance(rows, DenseRows)
    return ClassPanels(pack_rows(kernel, rows.take(own), norms[own], middle))


class BlockGrams(PairGrams):
    """Values that are expensive even in float64 are computed once and kept."""

    def __init__(
        self, gram: VectorGram, members: Sequence[IntVector], sizes: Sizes
    ) -> None:
        super().__init__(gram, members)
        self.vectors, self.sizes = gram, sizes
        counts = [len(own) for own in members]
        prices = [
            DOUBLE * n**2 if sizes.has_partners(n, counts) else NEVER for n in counts
        ]
        self.chosen, self.n_bytes = _admitted(prices, sizes.n_bytes)
        self.squares = [Once(partial(_square, gram, own)) for own in members]

    def of(self, i: int, j: int) -> Gram:
        index = self.index(i, j)
        if not ({i, j} <= self.chosen and self.sizes.all_needed(len(index))):
            return self.gram.take(index)
        return BlockGram(self.vectors, index, self.squares[i], self.squares[j])


def _square(gram: VectorGram, own: IntVector) -> FloatMatrix:
    return symmetric(gram.kernel, gram.rows.take(own), n_threads=1)


class PairGram:
    """K between some of the samples, which others use too."""

    n_threads = 1  # pairs are what threads share
    shift: FloatVector | None = None  # kernels shared by pairs keep their origin

    def __init__(
        self,
        gram: VectorGram,
        index: IntVector,
        provider: KernelProvider | None,
        n_whole: int = 0,
    ) -> None:
        """`n_whole`: the samples, where all of K costs little more than a part.

        Without a provider, rows are computed in float64.
        """
        self.n, self.gram, self.index, self.n_whole = len(index), gram, index, n_whole
        self.kernel, self.rows = gram.kernel, gram.rows  # of all classes
        self._own: Once[Rows] = Once(partial(gram.rows.take, index))
        self._provider = provider or GramRows(self, self.n_threads)

    def diagonal(self) -> FloatVector:
        return self.gram.diagonal()[self.index]

    def bound(self) -> float:
        return self.gram.bound()

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        own = self.rows.take(self.index[rows])
        fill_tiles(self.kernel, own, self._others(columns), out, self.n_threads)

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        here, there = self.index[rows], self.index[columns]
        return sum_rows(self.kernel, self.rows, here, weight, there, self.n_threads)

    def _others(self, columns: IntVector) -> Rows:
        everything = is_all(columns, self.n)
        return self._own() if everything else self.rows.take(self.index[columns])

    def source(self, columns: IntVector) -> RowSource | None:
        return self.gram.source(self.index[columns])

    def provider(self) -> KernelProvider:
        return self._provider

    def take(self, index: IntVector) -> Gram:
        return self.gram.take(self.index[index])


class BlockGram(PairGram):
    """K between two classes, of which each knows itself already."""

    def __init__(
        self,
        gram: VectorGram,
        index: IntVector,
        first: Once[FloatMatrix],
        second: Once[FloatMatrix],
    ) -> None:
        super().__init__(gram, index, None, n_whole=len(index))
        self._between = Once(partial(_three_blocks, gram, index, first, second))

    @property
    def is_held(self) -> bool:
        """Whether all of K is there."""
        return self._between.is_made

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        has_all_columns = is_all(columns, self.n)
        if has_all_columns and len(rows) == self.n and np.array_equal(rows, columns):
            self._fill_all(out)
        elif has_all_columns or self.is_held:
            self._pick(rows, columns, out)
        else:
            super().fill(rows, columns, out)

    def _fill_all(self, out: KernelMatrix) -> None:
        first, second, between = self._between()
        n = len(first)
        out[:n, :n], out[n:, n:] = first, second
        out[:n, n:], out[n:, :n] = between, between.T

    def _pick(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        first, second, between = self._between()
        n, split = len(first), int(np.searchsorted(columns, len(first)))
        left, right = columns[:split], columns[split:] - n
        above, below = np.flatnonzero(rows < n), np.flatnonzero(rows >= n)
        out[above, :split] = first[np.ix_(rows[above], left)]
        out[above, split:] = between[np.ix_(rows[above], right)]
        out[below, :split] = between.T[np.ix_(rows[below] - n, left)]
        out[below, split:] = second[np.ix_(rows[below] - n, right)]

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        if not (self.is_held and is_all(columns, self.n)):
            return sum_blocks(self, rows, weight, columns)
        first, second, between = self._between()
        full = np.zeros(self.n)
        full[rows] = weight
        a, b = full[: len(first)], full[len(first) :]
        return np.concatenate((first @ a + between @ b, a @ between + second @ b))


def _three_blocks(
    gram: VectorGram,
    index: IntVector,
    first: Once[FloatMatrix],
    second: Once[FloatMatrix],
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    """The squares of two classes, and what is between them."""
    own, other = first(), second()
    a, b = gram.rows.take(index[: len(own)]), gram.rows.take(index[len(own) :])
    return own, other, rectangle(gram.kernel, a, b)
