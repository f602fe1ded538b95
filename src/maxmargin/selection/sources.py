"""Where does the kernel of a search come from? From memory, or row by row."""

from typing import Protocol

import numpy as np

from maxmargin.data.rows import Rows
from maxmargin.kernels.functions import Kernel
from maxmargin.kernels.gram import VectorGram
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.memory import Rooms
from maxmargin.typing import FloatVector, IntVector


class Source(Protocol):
    """Where the kernel between some samples comes from, and sums of its rows."""

    def block(self, rows: IntVector | None) -> HeldGram | VectorGram:
        """The kernel between these samples; None: all of them."""

    def give_back(self, block: HeldGram | VectorGram) -> None:
        """A block of some samples is no longer needed."""

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        """The weighted sum of rows of K in these columns."""


class HeldSource:
    """All of K in memory."""

    def __init__(self, gram: HeldGram, rooms: Rooms) -> None:
        self.gram, self.rooms = gram, rooms

    def block(self, rows: IntVector | None) -> HeldGram:
        if rows is None:
            return self.gram
        return self.gram.take(rows, self.rooms.take(len(rows)))

    def give_back(self, block: HeldGram | VectorGram) -> None:
        if isinstance(block, HeldGram) and block is not self.gram:
            self.rooms.give(block.K)

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        return self.gram.sums(rows, weight, columns)


class ComputedSource:
    """Rows of K computed as they are needed: memory for more than that is missing."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.gram = VectorGram(kernel, rows)

    def block(self, rows: IntVector | None) -> VectorGram:
        return self.gram if rows is None else self.gram.take(rows)

    def give_back(self, block: HeldGram | VectorGram) -> None:
        """It has no memory of its own."""

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        order, out = np.argsort(columns), np.empty(len(columns))
        out[order] = self.gram.sums(rows, weight, columns[order])
        return out
