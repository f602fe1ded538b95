"""How are rows of K summed to the last digit? In panels of float64, never written out.

This is how slopes are computed afresh, and what a certificate is read from. Samples are
packed as they are needed, some hundreds at a time: a copy of all would double them.
"""

from functools import partial

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.rows import DenseRows
from maxmargin.kernels.functions import RBF
from maxmargin.kernels.panel_code import STRIP
from maxmargin.kernels.panels import (
    DOUBLE_PANEL,
    Side,
    add_values,
    exponents_for,
    pack,
    room_for,
)
from maxmargin.typing import FloatVector, IntVector

CELLS = 1 << 15  # packed at once, which fills a part of the second-level cache
FEWEST, MOST = 64, 512  # rows of them


def sum_in_panels(
    kernel: RBF,
    samples: DenseRows,
    rows: IntVector,
    weight: FloatVector,
    columns: IntVector,
    n_threads: int,
) -> FloatVector:
    """The weighted sum of rows of K, between all samples, in some columns."""
    step = int(np.clip(CELLS // max(samples.n_columns, 1), FEWEST, MOST))
    packer = _Packer(kernel.gamma, samples)
    tasks = [
        partial(packer.sum, rows, weight, columns[k : k + step], step)
        for k in range(0, len(columns), step)
    ]
    return np.concatenate([np.empty(0), *run_all(tasks, n_threads)])


class _Packer:
    """Some of the samples, side by side."""

    def __init__(self, gamma: float, samples: DenseRows) -> None:
        self.gamma, self.samples = gamma, samples
        self.norms, self.nothing = samples.squared_norms(), np.zeros(samples.n_columns)

    def sum(
        self, rows: IntVector, weight: FloatVector, columns: IntVector, step: int
    ) -> FloatVector:
        """As many rows at a time as a step has."""
        panels = self._pack(columns, DOUBLE_PANEL)
        out = np.zeros(len(panels[1]))
        for first in range(0, len(rows), step):
            raise_if_stopped()
            part = slice(first, first + step)
            strips = self._pack(rows[part], STRIP)
            weights = np.zeros(len(strips[1]))
            weights[: len(rows[part])] = weight[part]
            spans = (0, len(strips[0])), (0, len(panels[0]))
            twice = np.float64(2.0 * self.gamma)
            add_values(strips, panels, twice, weights, out, spans)
        return out[: len(columns)]

    def _pack(self, index: IntVector, width: int) -> Side:
        n_columns = self.samples.n_columns
        packed = room_for(len(index), n_columns, width, np.float64)
        pack(self.samples.values[index], self.nothing, packed)
        return packed, exponents_for(-self.gamma * self.norms[index], width, np.float64)
