"""Which whole rows of K are kept? Those that were needed twice, while there is room.

A sum of rows needs each of them once, in pieces that stay in the processor's cache: to
keep them all would mostly be a way to fill memory. A row that is needed again is kept
from then on, unless its values are so quickly computed that nothing is saved.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.kernels.cache import NOBODY
from maxmargin.kernels.gram import Gram
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.kernels.provider import BLOCK_ENTRIES, KernelProvider, add_on_threads
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

ITEM_BYTES = 4  # of a float32


class RowCosts(NamedTuple):
    """When a row of K is kept, by the products that one of its values takes."""

    # Up to here memory costs as much as computing the value again.
    narrow: float = 192.0
    # Up to here a row may well be computed several times, by compiled code itself.
    short: float = 384.0
    # Of the slots, that rows may take from others in one call.
    new_share: float = 0.25

    def is_kept(self, provider: KernelProvider) -> bool:
        """Whether memory is of use."""
        return provider.products > self.narrow

    def short_rows(self, provider: KernelProvider) -> PanelRows | None:
        """The rows as compiled code can meet them, if that is as fast as any way."""
        if isinstance(provider, PanelRows) and provider.products <= self.short:
            return provider
        return None


ROW_COSTS = RowCosts()


class Arena:
    """Rows of K in float32; the least recently used one makes room."""

    def __init__(
        self, gram: Gram, n_bytes: int, n_threads: int, costs: RowCosts = ROW_COSTS
    ) -> None:
        self.gram, self.n_threads, self.provider = gram, n_threads, gram.provider()
        self.costs, is_kept = costs, costs.is_kept(self.provider)
        n_bytes = n_bytes - self.provider.n_bytes if is_kept else 0
        n_slots = max(min(n_bytes // (ITEM_BYTES * gram.n), gram.n), 0)
        self.rows: KernelMatrix = np.empty((n_slots, gram.n), dtype=np.float32)
        self.slot = np.full(gram.n, NOBODY)
        self.owner = np.full(n_slots, NOBODY)
        self.last_use = np.full(n_slots, -1)
        self.was_needed = np.zeros(gram.n, dtype=bool)
        self.clock = self.n_used = self.n_computed = self.n_hits = 0

    def extend(self, rows: IntVector, n: int, square: KernelMatrix) -> None:
        """K between these rows, of which the first n have met already."""
        self.provider.extend(rows, n, square)

    def fill_square(self, out: KernelMatrix) -> None:
        """All of K."""
        self.n_computed += self.gram.n
        self.provider.fill_square(out)

    def fill(self, rows: IntVector, out: KernelMatrix) -> None:
        """These rows of K, computed afresh."""
        self.n_computed += len(rows)
        self.provider.fill(rows, None, out)

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows."""
        self.clock += 1
        self._keep(rows[self.was_needed[rows] & (self.slot[rows] == NOBODY)])
        is_held = self.slot[rows] != NOBODY
        slots = self.slot[rows[is_held]]
        if len(slots):
            self.last_use[slots] = self.clock
            self.n_hits += len(slots)
            add_on_threads(self.rows, slots, weight[is_held], out, self.n_threads)
        self.n_computed += len(rows) - len(slots)
        self.provider.add_rows(rows[~is_held], weight[~is_held], out)
        self.was_needed[rows] = True

    def _keep(self, rows: IntVector) -> None:
        """Compute these rows into slots of their own, as many as there are."""
        free = len(self.owner) - self.n_used
        if free < len(rows):
            rows = rows[: max(free, int(self.costs.new_share * len(self.owner)))]
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
            step = max(1, BLOCK_ENTRIES // self.gram.n)
            for k in range(0, n, step):
                part = rows[k : k + step]
                block = np.empty((len(part), self.gram.n), dtype=np.float32)
                self.fill(part, block)
                self.rows[slots[k : k + step]] = block
        self.owner[slots], self.slot[rows] = rows, slots
        self.last_use[slots] = self.clock
