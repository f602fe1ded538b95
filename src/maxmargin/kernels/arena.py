"""Which whole rows of K are kept? Those that were needed twice, while there is room.

A sum of rows needs each of them once, in pieces that stay in the processor's cache: to
keep them all would mostly be a way to fill memory. A row that is needed again is kept
from then on, unless its values are so quickly computed that nothing is saved.
"""

from functools import partial

import numpy as np

from maxmargin._threads import run_all
from maxmargin.kernels.cache import NOBODY
from maxmargin.kernels.gram import Gram, gram_block, is_linear
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.kernels.single import ROUNDING
from maxmargin.kernels.sums import add_rows
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

SPAN = 4096  # columns summed at a time: their sums stay in the first-level cache
EPSILON = float(np.finfo(np.float64).eps)
ITEM_BYTES = 4  # of a float32
BLOCK_ENTRIES = 1 << 21  # kernel values of rows that are not kept: 8 MB
NARROW = 192  # products in a value: then memory costs as much as computing it again
SHORT = 384  # products in a value: then a row may well be computed several times
NEW_SHARE = 0.25  # of the slots, that rows may take from others in one call


def keeps_rows(gram: Gram) -> bool:
    """Whether memory is of use."""
    if is_linear(gram):
        return False
    single = gram.single()
    return single is None or single.products > NARROW


class Arena:
    """Rows of K in float32; the least recently used one makes room."""

    def __init__(self, gram: Gram, n_bytes: int, n_threads: int) -> None:
        self.gram, self.n_threads = gram, n_threads
        self.single = gram.single()
        if not keeps_rows(gram):
            n_bytes = 0
        elif self.single is not None:
            n_bytes -= self.single.n_bytes
        n_slots = max(min(n_bytes // (ITEM_BYTES * gram.n), gram.n), 0)
        self.rows: KernelMatrix = np.empty((n_slots, gram.n), dtype=np.float32)
        self.slot = np.full(gram.n, NOBODY)
        self.owner = np.full(n_slots, NOBODY)
        self.last_use = np.full(n_slots, -1)
        self.was_needed = np.zeros(gram.n, dtype=bool)
        self.clock = self.n_used = self.n_computed = self.n_hits = 0
        self.everything = np.arange(gram.n)

    @property
    def errors(self) -> FloatVector:
        """How far kernel values of each row may be off, relative to the largest."""
        if is_linear(self.gram):
            return np.full(self.gram.n, EPSILON)  # only the square is in float32
        if self.single is None:
            return np.full(self.gram.n, ROUNDING)
        return self.single.errors

    def short_rows(self) -> PanelRows | None:
        """The rows as compiled code can meet them, if that is as fast as any way."""
        single = self.single
        if isinstance(single, PanelRows) and single.products <= SHORT:
            return single
        return None

    def block(self, rows: IntVector, columns: IntVector) -> KernelMatrix:
        """K between these rows and columns, in any order."""
        out = np.empty((len(rows), len(columns)), dtype=np.float32)
        if self.single is not None:
            self.single.fill(rows, columns, out)
            return out
        wanted, place = np.unique(columns, return_inverse=True)
        values = gram_block(self.gram, rows, wanted, np.float32)
        return np.take(values, place, axis=1, out=out)

    def extend(self, rows: IntVector, n: int, square: KernelMatrix) -> None:
        """K between these rows, of which the first n have met already."""
        if self.single is not None:
            self.single.extend(rows, n, square)
            return
        m = len(rows)
        square[n:m, :m] = self.block(rows[n:], rows)
        copy_turned(square, (n, m), (0, n), square, (0, n))

    def fill_square(self, out: KernelMatrix) -> None:
        """All of K."""
        self.n_computed += self.gram.n
        if self.single is not None:
            self.single.fill_square(out)
        else:
            self.gram.fill(self.everything, self.everything, out)

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""
        self.clock += 1
        self._keep(rows[self.was_needed[rows] & (self.slot[rows] == NOBODY)])
        is_held = self.slot[rows] != NOBODY
        slots = self.slot[rows[is_held]]
        if len(slots):
            self.last_use[slots] = self.clock
            self.n_hits += len(slots)
            self._add(self.rows, slots, weight[is_held], out)
        self._add_absent(rows[~is_held], weight[~is_held], out)
        self.was_needed[rows] = True

    def _add_absent(
        self, rows: IntVector, weight: FloatVector, out: FloatVector
    ) -> None:
        if self.single is not None:
            self.n_computed += len(rows)
            self.single.add_rows(rows, weight, out)
            return
        if is_linear(self.gram):
            out += self.gram.sums(rows, weight, self.everything)
            return
        for part in self._blocks(np.arange(len(rows))):
            block = self._compute(rows[part])
            self._add(block, np.arange(len(part)), weight[part], out)

    def _add(
        self, rows: KernelMatrix, at: IntVector, weight: FloatVector, out: FloatVector
    ) -> None:
        ends = [(k, min(k + SPAN, len(out))) for k in range(0, len(out), SPAN)]
        tasks = [partial(add_rows, rows, at, weight, span, out) for span in ends]
        run_all(tasks, self.n_threads)

    def _blocks(self, at: IntVector) -> list[IntVector]:
        step = max(1, BLOCK_ENTRIES // self.gram.n)
        return [at[first : first + step] for first in range(0, len(at), step)]

    def _compute(self, rows: IntVector) -> KernelMatrix:
        block = np.empty((len(rows), self.gram.n), dtype=np.float32)
        self.fill(rows, block)
        return block

    def fill(self, rows: IntVector, out: KernelMatrix) -> None:
        """These rows of K, computed afresh."""
        self.n_computed += len(rows)
        if self.single is not None:
            self.single.fill(rows, None, out)
        else:
            self.gram.fill(rows, self.everything, out)

    def _keep(self, rows: IntVector) -> None:
        """Compute these rows into slots of their own, as many as there are."""
        free = len(self.owner) - self.n_used
        if free < len(rows):
            rows = rows[: max(free, int(NEW_SHARE * len(self.owner)))]
        n, first = len(rows), self.n_used
        if n == 0:
            return
        if n <= free:
            self.n_used += n
            slots = np.arange(first, first + n)
            self.fill(rows, self.rows[first : first + n])
        else:
            self.n_used = len(self.owner)
            slots = np.argpartition(self.last_use, n - 1)[:n]
            former = self.owner[slots]
            self.slot[former[former != NOBODY]] = NOBODY
            for part in self._blocks(np.arange(n)):
                self.rows[slots[part]] = self._compute(rows[part])
        self.owner[slots], self.slot[rows] = rows, slots
        self.last_use[slots] = self.clock
