"""Where does the kernel of a search come from? From memory, or row by row."""

from typing import NamedTuple, Protocol

import numpy as np

from maxmargin._jit import jit_new
from maxmargin.data.rows import Rows
from maxmargin.kernels.functions import Kernel
from maxmargin.kernels.gram import VectorGram
from maxmargin.kernels.held import HeldGram, Part, add_runs
from maxmargin.typing import FloatVector, IntVector, KernelMatrix

TOGETHER = 128  # rows of K that stay at hand while all machines read them


class Table(NamedTuple):
    """Machines one after the other: their samples, and whom they are asked about.

    Those of machine p are rows[first_row[p] : first_row[p + 1]], and so on. All ascend.
    """

    rows: IntVector
    first_row: IntVector
    columns: IntVector
    first_column: IntVector
    ends: IntVector  # of runs of columns that are neighbours, counted from the first
    first_end: IntVector


class Source(Protocol):
    """Where the kernel between some samples comes from, and sums of its rows."""

    def block(self, rows: IntVector | None) -> HeldGram | VectorGram:
        """The kernel between these samples; None: all of them."""

    def add(self, table: Table, weight: FloatVector, out: FloatVector) -> None:
        """Add the weighted sum of each machine's rows, in its columns.

        `weight` has a number for every row in the table, `out` for every column.
        """


class HeldSource:
    """All of K in memory."""

    def __init__(self, gram: HeldGram) -> None:
        self.gram = gram

    def block(self, rows: IntVector | None) -> HeldGram:
        return self.gram if rows is None else self.gram.among(rows)

    def add(self, table: Table, weight: FloatVector, out: FloatVector) -> None:
        used = np.flatnonzero(weight)
        end = np.searchsorted(used, table.first_row[1:])
        _add_strips(self.gram.K, table, table.rows[used], weight[used], end, out)


class ComputedSource:
    """Rows of K computed as they are needed: memory for more than that is missing."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.gram = VectorGram(kernel, rows)

    def block(self, rows: IntVector | None) -> VectorGram:
        return self.gram if rows is None else self.gram.take(rows)

    def add(self, table: Table, weight: FloatVector, out: FloatVector) -> None:
        for p in range(len(table.first_row) - 1):
            own = slice(table.first_row[p], table.first_row[p + 1])
            asked = slice(table.first_column[p], table.first_column[p + 1])
            used = np.flatnonzero(weight[own])
            if len(used) and asked.stop > asked.start:
                out[asked] += self.gram.sums(
                    table.rows[own][used], weight[own][used], table.columns[asked]
                )


@jit_new
def _add_strips(
    K: KernelMatrix,
    table: Table,
    rows: IntVector,
    weight: FloatVector,
    end: IntVector,
    out: FloatVector,
) -> None:
    """A strip of K at a time, for all machines: most rows belong to several.

    `rows` are those with a weight, `end` where those of each machine end.
    """
    n_machines = len(end)
    top = np.zeros(n_machines, dtype=np.intp)  # where each is on its way down
    for p in range(1, n_machines):
        top[p] = end[p - 1]
    for limit in range(TOGETHER, len(K) + TOGETHER, TOGETHER):
        for p in range(n_machines):
            first = last = top[p]
            while last < end[p] and rows[last] < limit:
                last += 1
            if last > first:
                asked = slice(table.first_column[p], table.first_column[p + 1])
                ends = table.ends[table.first_end[p] : table.first_end[p + 1]]
                part = Part(K, table.columns[asked], ends)
                add_runs(part, rows[first:last], weight[first:last], out[asked])
            top[p] = last
