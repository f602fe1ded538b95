"""Where does the kernel of a search come from? From memory, or row by row."""

from typing import Protocol

from maxmargin.data.rows import Rows
from maxmargin.kernels.functions import Kernel
from maxmargin.kernels.gram import VectorGram
from maxmargin.kernels.held import HeldGram
from maxmargin.typing import FloatVector, IntVector


class Source(Protocol):
    """Where the kernel between some samples comes from, and sums of its rows."""

    def block(self, rows: IntVector | None) -> HeldGram | VectorGram:
        """The kernel between these samples; None: all of them."""

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        """The weighted sum of rows of K in these columns, which ascend."""


class HeldSource:
    """All of K in memory."""

    def __init__(self, gram: HeldGram) -> None:
        self.gram = gram

    def block(self, rows: IntVector | None) -> HeldGram:
        return self.gram if rows is None else self.gram.among(rows)

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

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        return self.gram.sums(rows, weight, columns)
