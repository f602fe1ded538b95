"""What does a kernel value of short rows cost? Little more than its exponential.

The float32 copy of the rows is kept in panels; what is asked for is packed into strips.
(See `panels` for how they meet, and `single` for what is lost in float32.)
"""

from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.rows import DenseRows
from maxmargin.kernels.functions import RBF
from maxmargin.kernels.panel_code import STRIP
from maxmargin.kernels.panels import (
    PANEL,
    Pair,
    Side,
    add_values,
    cut_strips,
    exponents_for,
    pack,
    repack,
    room_for,
    store_values,
)
from maxmargin.kernels.single import Singles, value_errors
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatVector, IntVector

WIDEST = 1024  # columns: a strip and a panel of them stay near the processor
TILE = 512  # rows and columns of a task
WORTH_COPYING = 192  # columns: then a copy costs less than a value


def pack_rows(
    kernel: RBF,
    rows: DenseRows,
    norms: FloatVector,
    middle: FloatVector,
    n_threads: int = 1,
) -> "PanelRows":
    """Rows less their middle, whose exact squared norms then are given, in panels."""
    panels = room_for(len(rows), rows.n_columns, PANEL)
    pack(rows.values, middle, panels)
    return PanelRows(kernel, panels, norms, n_threads)


class PanelRows:
    """Dense rows in float32, and the Gaussian kernel between them."""

    def __init__(
        self, kernel: RBF, panels: Singles, norms: FloatVector, n_threads: int
    ) -> None:
        """The panels hold rows whose exact squared norms are given."""
        self.n, self.n_columns, self.n_threads = len(norms), panels.shape[1], n_threads
        self.kernel, self.panels, self.norms = kernel, panels, norms
        self.exponents = exponents_for(-kernel.gamma * norms, PANEL)
        self.twice = np.float32(2.0 * kernel.gamma)
        self.errors = value_errors(kernel.gamma * norms, self.n_columns)
        self.products = float(self.n_columns)  # in one value

    @property
    def n_bytes(self) -> int:
        """Memory that the copies take."""
        return self.panels.nbytes

    def _take(self, index: IntVector, width: int) -> Side:
        packed = room_for(len(index), self.n_columns, width)
        repack(self.panels, index, packed)
        return packed, exponents_for(self.exponents[index], width)

    def all_strips(self) -> Side:
        """Every row, in strips."""
        strips = room_for(self.n, self.n_columns, STRIP)
        cut_strips(self.panels, strips)
        return strips, exponents_for(self.exponents[: self.n], STRIP)

    def fill(self, rows: IntVector, columns: IntVector | None, out: Singles) -> None:
        """K between these rows and columns; None is all columns."""
        strips, panels = self._take(rows, STRIP), (self.panels, self.exponents)
        if columns is not None:
            panels = self._take(columns, PANEL)
        tasks = [
            partial(self._store, strips, panels, out, spans)
            for spans in tiles(out.shape)
        ]
        run_all(tasks, self.n_threads)

    def _store(
        self, strips: Side, panels: Side, out: Singles, spans: tuple[Pair, Pair]
    ) -> None:
        raise_if_stopped()
        store_values(strips, panels, self.twice, out, spans, ((0, 0), out.shape))

    def extend(self, rows: IntVector, n: int, square: Singles) -> None:
        """K between these rows, of which the first n have met already."""
        strips, panels = self._take(rows[n:], STRIP), self._take(rows, PANEL)
        shape = len(rows) - n, len(rows)
        tasks = [
            partial(self._extend, strips, panels, square, spans, ((n, 0), shape))
            for spans in tiles(shape)
        ]
        run_all(tasks, self.n_threads)

    def _extend(
        self,
        strips: Side,
        panels: Side,
        square: Singles,
        spans: tuple[Pair, Pair],
        block: tuple[Pair, Pair],
    ) -> None:
        raise_if_stopped()
        store_values(strips, panels, self.twice, square, spans, block)
        (n, _), (_, n_all) = block
        rows = n + spans[0][0] * STRIP, min(n + spans[0][1] * STRIP, n_all)
        columns = spans[1][0] * PANEL, min(spans[1][1] * PANEL, n)
        if columns[0] < columns[1]:
            copy_turned(square, rows, columns, square, (columns[0], rows[0]))

    def fill_square(self, out: Singles) -> None:
        """K between all rows; of long rows, half is computed and the rest copied."""
        strips = self.all_strips()
        is_copied = self.n_columns >= WORTH_COPYING
        tasks = [
            partial(self._fill_both if is_copied else self._fill_one, strips, out, tile)
            for tile in tiles(out.shape)
            if not is_copied or tile[0][0] * STRIP <= tile[1][0] * PANEL
        ]
        run_all(tasks, self.n_threads)

    def _fill_one(self, strips: Side, out: Singles, tile: tuple[Pair, Pair]) -> None:
        self._store(strips, (self.panels, self.exponents), out, tile)

    def _fill_both(self, strips: Side, out: Singles, tile: tuple[Pair, Pair]) -> None:
        self._fill_one(strips, out, tile)
        rows = tile[0][0] * STRIP, min(tile[0][1] * STRIP, self.n)
        columns = tile[1][0] * PANEL, min(tile[1][1] * PANEL, self.n)
        if rows[0] != columns[0]:
            copy_turned(out, rows, columns, out, (columns[0], rows[0]))

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows, none of which is ever written out."""
        strips = self._take(rows, STRIP)
        weights = np.zeros(len(strips[1]))
        weights[: len(weight)] = weight
        total = np.zeros(len(self.exponents))
        ends = _spans(len(self.panels), PANEL)
        tasks = [partial(self._add, strips, weights, total, span) for span in ends]
        run_all(tasks, self.n_threads)
        out += total[: self.n]

    def _add(
        self, strips: Side, weight: FloatVector, total: FloatVector, span: Pair
    ) -> None:
        for part in _spans(len(strips[0]), STRIP):
            raise_if_stopped()
            panels = self.panels, self.exponents
            add_values(strips, panels, self.twice, weight, total, (part, span))


def tiles(shape: tuple[int, int]) -> list[tuple[Pair, Pair]]:
    """Spans of strips and of panels for the tasks that fill a matrix."""
    n_strips, n_panels = -(-shape[0] // STRIP), -(-shape[1] // PANEL)
    return [
        (strips, panels)
        for panels in _spans(n_panels, PANEL)
        for strips in _spans(n_strips, STRIP)
    ]


def _spans(n: int, width: int) -> list[Pair]:
    step = TILE // width
    return [(k, min(k + step, n)) for k in range(0, n, step)]
