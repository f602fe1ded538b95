"""What does the working set know of itself? K between its members, side by side.

Members come and go by some hundreds in a round. The square they span is kept: those
who come add rows and columns at its end, and the last take the places of who leaves.
"""

from functools import partial

import numpy as np

from maxmargin._jit import jit, jit_new
from maxmargin._threads import run_all
from maxmargin.kernels.arena import Arena
from maxmargin.kernels.memory import SPARE_SIDE, pass_on, promised_square
from maxmargin.typing import BoolVector, IntVector, KernelMatrix

SPAN = 256  # rows of a task


class Square:
    """K between members, as the first rows of a larger matrix."""

    def __init__(self, most: int) -> None:
        self.most = most  # members
        self.members: IntVector = np.empty(0, dtype=np.intp)
        self.values = promised_square(min(most, SPARE_SIDE))

    def __len__(self) -> int:
        return len(self.members)

    @property
    def rows(self) -> KernelMatrix:
        """One for each member, longer than needed: C-ordered."""
        return self.values[: len(self)]

    def keep(self, is_kept: BoolVector, n_threads: int = 1) -> None:
        """Let the other members go: the last of those kept take their places."""
        n, n_kept = len(self), int(np.count_nonzero(is_kept))
        gaps = np.flatnonzero(~is_kept[:n_kept])
        last = n_kept + np.flatnonzero(is_kept[n_kept:n])
        order = np.arange(n_kept)
        order[gaps] = last
        tasks = [
            partial(_close_gaps, self.values, order, gaps, (k, min(k + SPAN, n_kept)))
            for k in range(0, n_kept, SPAN)
        ]
        run_all(tasks, n_threads)
        self.members = self.members[order]

    def make_room(self) -> None:
        """Memory for as many as may come: few ever need it, and new pages are dear."""
        n, former = len(self.values), self.values
        self.values = promised_square(self.most)
        self.values[:n, :n] = former
        pass_on(former)

    def add_all(self, arena: Arena) -> None:
        """Every row of K is a member, in order; there is room for just these."""
        self.members = np.arange(self.most)
        arena.fill_square(self.values)

    def add(self, new: IntVector, row: IntVector, arena: Arena) -> None:
        """New members at the end; `row` is the Gram row of every variable."""
        n = len(self)
        self.members = np.concatenate((self.members, new))
        if len(self) > len(self.values):
            self.make_room()
        arena.extend(row[self.members], n, self.values)

    def reorder(self, order: IntVector) -> None:
        """Member `order[0]` comes first, and so on."""
        if not np.array_equal(order, np.arange(len(self))):
            _permute(self.values, order)
            self.members = self.members[order]


@jit_new
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
def _close_gaps(
    values: KernelMatrix, order: IntVector, gaps: IntVector, span: tuple[int, int]
) -> None:
    """Some rows of those kept; what goes into gaps comes from beyond all these."""
    n = len(order)
    for i in range(span[0], span[1]):
        source, target = values[order[i]], values[i]
        if order[i] != i:
            for j in range(n):
                target[j] = source[j]
        for j in gaps:
            target[j] = source[order[j]]
