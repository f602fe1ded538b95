"""Which kernel rows are fetched together? The one asked for, and likely next ones.

A row alone costs a matrix-vector product and a trip from compiled code; a block of
rows costs little more. So the variables that violate most are fetched along.
"""

import numpy as np
from numpy.typing import DTypeLike

from maxmargin._jit import jit
from maxmargin.kernels.cache import (
    N_MISSES,
    N_USES,
    NOBODY,
    RowCache,
    claim_slots,
    hold_all,
    keep_columns,
    make_cache,
)
from maxmargin.kernels.gram import Gram, MatrixGram, gram_block
from maxmargin.kernels.source import RowSource, keep_samples
from maxmargin.solvers.pair_selection import bounds
from maxmargin.solvers.tuning import SmoTuning
from maxmargin.solvers.work import Work
from maxmargin.typing import IntVector, KernelMatrix

DOUBLE_BYTES = 8
PROMISED = -2  # a row on its way


class RowsAtHand:
    """Kernel rows over the active columns, computed on demand and kept by use."""

    def __init__(
        self, gram: Gram, row: IntVector, n_bytes: int, tuning: SmoTuning
    ) -> None:
        self.gram, self.n_bytes, self.tuning = gram, n_bytes, tuning
        self.n_misses_before, self.n_uses_before = 0, 0
        self._row = row
        n_values = len(row) * gram.n * DOUBLE_BYTES
        self.is_whole = isinstance(gram, MatrixGram) and n_values <= n_bytes
        self.cache, self.source = self._empty(np.float32), self._source()

    def _everything(self, K: KernelMatrix) -> RowCache:
        """All rows at once, so that nothing is ever fetched."""
        if not np.array_equal(self._row, np.arange(self.gram.n)):
            K = K[:, self._row]
        return hold_all(np.require(K, np.float64, ["C", "W"]))

    def _source(self) -> RowSource | None:
        return None if self.is_whole else self.gram.source(self._row)

    @property
    def n_hits(self) -> int:
        """Uses of a row that did not have to wait for it."""
        return self.n_uses_before + int(self.cache.counts[N_USES]) - self.n_misses

    @property
    def n_misses(self) -> int:
        """Rows that had to be computed before a move could go on."""
        return self.n_misses_before + int(self.cache.counts[N_MISSES])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.cache.rows.dtype

    def restart(self, row: IntVector, dtype: DTypeLike) -> None:
        """Begin anew over these columns; what was kept has too few of them."""
        self.n_uses_before += int(self.cache.counts[N_USES])
        self.n_misses_before += int(self.cache.counts[N_MISSES])
        self._row = row
        self.cache, self.source = self._empty(dtype), self._source()

    def keep(self, keep: IntVector) -> None:
        """Forget the columns of variables shrunk away."""
        if self.is_whole:
            self.restart(self._row[keep], np.float64)
            return
        self._row = self._row[keep]
        self._set_columns()
        self.cache = keep_columns(self.cache, keep)
        self.source = keep_samples(self.source, keep)

    def fetch(self, work: Work, variable: int, violation: float) -> None:
        """Compute the row of a variable, and with it those it will meet next."""
        tuning = self.tuning
        n_most = int(tuning.fetched_share * len(work.grad))
        n_most = min(max(n_most, tuning.min_fetched), tuning.max_fetched)
        n_most = max(min(n_most, len(self.cache.owner) // 4), 1)
        wanted = np.empty(n_most, dtype=np.intp)
        near = tuning.near_share * violation
        n_wanted = choose_rows(work, self.cache, variable, near, wanted)
        self._store(wanted[:n_wanted])
        self.cache.counts[N_MISSES] += 1

    def _store(self, wanted: IntVector) -> None:
        slots = claim_slots(self.cache, wanted)
        if self._place is None and slots[-1] - slots[0] == len(slots) - 1:
            near = self.cache.rows[slots[0] : slots[-1] + 1]
            self.gram.fill(wanted, self._columns, near)
            return
        values = gram_block(self.gram, wanted, self._columns, self.dtype)
        if self._place is not None:
            values = values[:, self._place]
        self.cache.rows[slots] = values

    def _empty(self, dtype: DTypeLike) -> RowCache:
        """No row yet, or all of them where the kernel is a matrix."""
        if isinstance(self.gram, MatrixGram) and self.is_whole:
            return self._everything(self.gram.K)
        self._set_columns()
        return make_cache(self.gram.n, len(self._row), dtype, self.n_bytes)

    def _set_columns(self) -> None:
        """Ask for each Gram column once, even if two variables share it."""
        self._columns, place = np.unique(self._row, return_inverse=True)
        is_plain = np.array_equal(self._columns, self._row)
        self._place: IntVector | None = None if is_plain else place


@jit
def choose_rows(
    work: Work, cache: RowCache, variable: int, near: float, wanted: IntVector
) -> int:
    """Fill `wanted` with Gram rows to compute, the variable's own first; count them.

    Along come absent rows whose slopes are nearest the extremes: what lies as `near`
    to them as this is likely to be chosen soon.
    """
    grad, rise, fall, rows, slot = work.grad, work.rise, work.fall, work.row, cache.slot
    wanted[0] = rows[variable]
    n = 1
    slot[wanted[0]] = PROMISED
    for g in range(len(work.start) - 1):
        inside = slice(work.start[g], work.start[g + 1])
        low, high = bounds(grad[inside], rise[inside], fall[inside])
        low, high = low + near, high - near
        for k in range(work.start[g], work.start[g + 1]):
            is_near = grad[k] + rise[k] < low or grad[k] + fall[k] > high
            if n < len(wanted) and is_near and slot[rows[k]] == NOBODY:
                wanted[n] = rows[k]
                slot[wanted[n]] = PROMISED
                n += 1
    for k in range(n):
        slot[wanted[k]] = NOBODY
    return n
