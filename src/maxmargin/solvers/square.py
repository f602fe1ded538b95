"""What does the working set know of itself? K between its members, side by side.

Members come and go by some hundreds in a round. The square they span is kept: those
who come add rows and columns at its end, and whoever leaves is replaced by the last.
"""

import numpy as np

from maxmargin._jit import jit
from maxmargin.kernels.arena import Arena
from maxmargin.kernels.memory import promised_square
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import BoolVector, IntVector, KernelMatrix

STRIDED = 8  # what a value costs in a column, in values of a row


class Square:
    """K between members, as the first rows of a larger matrix."""

    def __init__(self, most: int) -> None:
        self.most = most  # members
        self.members: IntVector = np.empty(0, dtype=np.intp)
        self.values = promised_square(most)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def rows(self) -> KernelMatrix:
        """One for each member, longer than needed: C-ordered."""
        return self.values[: len(self)]

    def keep(self, is_kept: BoolVector) -> None:
        """Let the other members go."""
        n, n_kept = len(self), int(np.count_nonzero(is_kept))
        if STRIDED * (n - n_kept) < n_kept:
            order = np.arange(n)
            _close_gaps(self.values, order, ~is_kept)
            self.members = self.members[order[:n_kept]]
        elif n_kept < n:
            kept = np.flatnonzero(is_kept)
            compact(self.values, kept)
            self.members = self.members[kept]

    def add_all(self, arena: Arena) -> None:
        """Every row of K is a member, in order; there is room for just these."""
        self.members = np.arange(self.most)
        arena.fill_square(self.values)

    def add(self, new: IntVector, row: IntVector, arena: Arena) -> None:
        """New members at the end; `row` is the Gram row of every variable."""
        n = len(self)
        self.members = np.concatenate((self.members, new))
        m = len(self)
        block = arena.block(row[new], row[self.members])
        self.values[n:m, :m] = block
        copy_turned(block, (0, len(new)), (0, n), self.values, (0, n))

    def reorder(self, order: IntVector) -> None:
        """Member `order[0]` comes first, and so on."""
        if not np.array_equal(order, np.arange(len(self))):
            _permute(self.values, order)
            self.members = self.members[order]


@jit
def _permute(values: KernelMatrix, order: IntVector) -> None:
    """Rows and columns change places: within each row, then whole rows in cycles."""
    n = len(order)
    room = np.empty(n, dtype=values.dtype)
    for i in range(n):
        row = values[i]
        for j in range(n):
            room[j] = row[order[j]]
        row[:n] = room
    is_done = np.zeros(n, dtype=np.bool_)
    for first in range(n):
        if is_done[first]:
            continue
        room[:] = values[first, :n]
        i = first
        while order[i] != first:
            values[i, :n] = values[order[i], :n]
            is_done[i] = True
            i = order[i]
        values[i, :n] = room
        is_done[i] = True


@jit
def compact(values: KernelMatrix, kept: IntVector) -> None:
    """Rows and columns of those kept move together: every value towards the front."""
    for i in range(len(kept)):
        source, target = values[kept[i]], values[i]
        for j in range(len(kept)):
            target[j] = source[kept[j]]


@jit
def _close_gaps(values: KernelMatrix, order: IntVector, is_gone: BoolVector) -> None:
    """Put the last member where one has gone, until none has."""
    n = len(order)
    for k in range(len(order) - 1, -1, -1):
        if not is_gone[k]:
            continue
        n -= 1
        if k == n:
            continue
        order[k] = order[n]
        for j in range(n + 1):
            values[k, j] = values[n, j]
        for i in range(n):
            values[i, k] = values[i, n]
