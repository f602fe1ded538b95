"""What do the machines of a fold say of the samples held out? Sums of rows of K.

Of samples of its own classes a machine knows them already: they are entries of its
gradient, although their variables may not leave zero. For others, what has changed
since the last place is summed up, for all machines of a fold at once: a sample is in
many of them, and its row of K is read but once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin.kernels.held import run_ends
from maxmargin.selection.chains import Chain
from maxmargin.selection.sources import Source, Table
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

N_PARTS = 2  # of the samples held out: so many tasks for threads
DUST = 1e-14  # of a coefficient: all that scaling it changes


class InARow(NamedTuple):
    """Lists one after the other, and where each begins."""

    values: IntVector
    first: IntVector


def in_a_row(lists: Sequence[IntVector]) -> InARow:
    first = np.cumsum([0] + [len(each) for each in lists])
    return InARow(np.concatenate([*lists, np.empty(0, dtype=np.intp)]), first)


class _Own(NamedTuple):
    """Samples held out that a machine knows about."""

    place: IntVector  # among those held out, as they were given
    row: IntVector  # among those of the machine


class _Part(NamedTuple):
    """Some of the samples held out, unknown to machines."""

    table: Table
    place: list[IntVector]  # of each machine: where they are among those held out


class Layout:
    """The samples that a fold holds out, as its machines see them."""

    def __init__(
        self,
        outside: IntVector,
        rows: Sequence[IntVector | None],
        samples: InARow,
        knows_own: bool,
    ) -> None:
        """`rows`, and in a row `samples`: those of each machine; None is all.

        `knows_own` is False where slopes are not known of everybody.
        """
        self.n, self.samples = len(outside), samples
        order = np.argsort(outside, kind="stable")
        self.own = [_known(each, outside, order, knows_own) for each in rows]
        parts = [self._part(outside, part) for part in np.array_split(order, N_PARTS)]
        self.parts = [part for part in parts if len(part.table.columns)]

    def _part(self, outside: IntVector, order: IntVector) -> _Part:
        place = [order[~np.isin(order, own.place)] for own in self.own]
        columns = [outside[each] for each in place]
        asked, ends = in_a_row(columns), in_a_row([run_ends(each) for each in columns])
        return _Part(Table(*self.samples, *asked, *ends), place)


class Outside:
    """What the machines of a fold say of the samples that it holds out."""

    def __init__(self, layout: Layout, chains: Sequence[Chain]) -> None:
        self.layout, self.chains = layout, chains
        self.sums = [np.zeros(len(part.table.columns)) for part in layout.parts]
        self.at, self.coef = 1.0, np.zeros(len(layout.samples.values))

    def listen(self, source: Callable[[], Source], at: float) -> list[partial[None]]:
        """What is to be done before `decisions`, after all machines were solved."""
        parts = self.layout.parts
        if not parts:
            return []
        coef = np.concatenate([_coef_of(chain) for chain in self.chains])
        first = self.layout.samples.first
        change, multiple = _changes(first, coef, self.coef, at / self.at)
        self.at, self.coef = at, coef
        if not change.any() and (multiple == 1.0).all():
            return []
        return [
            partial(_listen, part.table, source(), change, multiple, sums)
            for part, sums in zip(parts, self.sums, strict=True)
        ]

    def decisions(self) -> FloatMatrix:
        """A row for every sample, a column for every machine; nan: has no solution."""
        layout = self.layout
        said = np.full((len(self.chains), layout.n), np.nan)
        for p, chain in enumerate(self.chains):
            if chain.solved is None:
                continue
            _, reading, _, image = chain.solved
            if image is not None:
                said[p, layout.own[p].place] = image[layout.own[p].row]
            for part, sums in zip(layout.parts, self.sums, strict=True):
                first = part.table.first_column
                said[p, part.place[p]] = sums[first[p] : first[p + 1]]
            said[p] = said[p] / reading.margin + reading.intercept
        return said.T


def _coef_of(chain: Chain) -> FloatVector:
    return np.zeros(chain.block.n) if chain.solved is None else chain.solved.coef


def _known(
    rows: IntVector | None, outside: IntVector, order: IntVector, knows_own: bool
) -> _Own:
    """Who of those held out is among the samples of a machine; `order` sorts them."""
    if not knows_own:
        return _Own(order[:0], order[:0])
    near = outside[order]
    if rows is None:
        return _Own(order, near)
    row = np.minimum(np.searchsorted(rows, near), len(rows) - 1)
    is_own = rows[row] == near
    return _Own(order[is_own], row[is_own])


def _listen(
    table: Table,
    source: Source,
    change: FloatVector,
    multiple: FloatVector,
    sums: FloatVector,
) -> None:
    """Sums, from those at the last place."""
    sums *= np.repeat(multiple, np.diff(table.first_column))
    source.add(table, change, sums)


def _changes(
    first: IntVector, coef: FloatVector, former: FloatVector, ratio: float
) -> tuple[FloatVector, FloatVector]:
    """What each machine changed, from its former coefficients or `ratio` times these.

    With it the multiple, 1 or `ratio`, that leaves fewer to change; rounding apart.
    """
    n_machines = len(first) - 1
    machine = np.repeat(np.arange(n_machines), np.diff(first))
    rounding = DUST * np.abs(coef)

    def count(change: FloatVector) -> IntVector:
        return np.bincount(machine[np.abs(change) > rounding], minlength=n_machines)

    is_scaled = count(coef - ratio * former) < count(coef - former)
    multiple = np.where(is_scaled, ratio, 1.0)
    change = coef - multiple[machine] * former
    change[np.abs(change) <= rounding] = 0.0
    return change, multiple
