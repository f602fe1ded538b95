"""What is left to compute for a pair of classes? The kernel between the two.

Each class has its rows in panels, and its own square once it has been asked for. A
value is the same in every thread: all pairs subtract the same middle, and a sum of
products goes feature by feature wherever the two rows lie.
"""

from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.once import Once
from maxmargin.kernels.panel_code import STRIP
from maxmargin.kernels.panel_rows import PanelRows, tiles
from maxmargin.kernels.panels import PANEL, join_panels, room_for, store_values
from maxmargin.kernels.single import Singles
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatVector, IntVector


class ClassPanels:
    """The rows of one class, and its square where there is room to keep that."""

    def __init__(self, rows: PanelRows) -> None:
        self.rows = rows
        self.square = Once(partial(_square, rows))


def _square(rows: PanelRows) -> Singles:
    out = np.empty((rows.n, rows.n), dtype=np.float32)
    rows.fill_square(out)
    return out


def join_rows(first: PanelRows, second: PanelRows) -> PanelRows:
    """The rows of two classes, one after the other."""
    n = first.n + second.n
    panels = room_for(n, first.n_columns, PANEL)
    join_panels(first.panels, first.n, second.panels, panels)
    norms = np.concatenate((first.norms, second.norms))
    return PanelRows(first.kernel, panels, norms, n_threads=1)


class PairPanels:
    """A provider of two classes, one after the other."""

    def __init__(self, first: ClassPanels, second: ClassPanels) -> None:
        self.first, self.second = first, second
        self.products = first.rows.products
        self.errors = np.concatenate((first.rows.errors, second.rows.errors))
        self.joined = Once(partial(join_rows, first.rows, second.rows))

    @property
    def n_bytes(self) -> int:
        """Memory that the rows would take, should they be joined."""
        return self.first.rows.n_bytes + self.second.rows.n_bytes

    def fill(self, rows: IntVector, columns: IntVector | None, out: Singles) -> None:
        """K between these rows and columns; None is all columns."""
        self.joined().fill(rows, columns, out)

    def extend(self, rows: IntVector, n: int, square: Singles) -> None:
        """K between these rows, of which the first n have met already."""
        self.joined().extend(rows, n, square)

    def add_rows(self, rows: IntVector, weight: FloatVector, out: FloatVector) -> None:
        """out += the weighted sum of these rows, none of which is ever written out."""
        self.joined().add_rows(rows, weight, out)

    def fill_square(self, out: Singles) -> None:
        """K between all rows: two squares are copied, what is between is computed."""
        a, b = self.first.rows, self.second.rows
        out[: a.n, : a.n] = self.first.square()
        out[a.n :, a.n :] = self.second.square()
        strips, panels = a.all_strips(), (b.panels, b.exponents)
        block = (0, a.n), (a.n, b.n)
        for spans in tiles(block[1]):
            raise_if_stopped()
            store_values(strips, panels, a.twice, out, spans, block)
            rows = spans[0][0] * STRIP, min(spans[0][1] * STRIP, a.n)
            left, right = spans[1][0] * PANEL, min(spans[1][1] * PANEL, b.n)
            corner = a.n + left, rows[0]
            copy_turned(out, rows, (a.n + left, a.n + right), out, corner)
