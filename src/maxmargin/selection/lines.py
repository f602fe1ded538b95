"""How do all folds learn from one kernel matrix? As boxes that are closed for some.

A sample held out keeps its row of K, but its variable may not leave zero. So K is
computed once for all folds and every C, each fold starts from its own solution at the
last C, and what it says of the samples held out is read off the gradient. (Wen et al.,
2017, and Chu et al., 2015, for starts; nothing here is approximate.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin.data.labels import Labels
from maxmargin.models.evidence import KernelEvidence
from maxmargin.selection.chains import Block, Chain, Seat
from maxmargin.selection.formulations import Place
from maxmargin.selection.outside import Outside
from maxmargin.selection.plan import Plan
from maxmargin.selection.sources import Source
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatMatrix, IntVector


@dataclass(frozen=True)
class Answer:
    """What the machines of one fold say of the samples held out.

    Decisions of a fold that has no solution are nan.
    """

    decisions: FloatMatrix  # (samples, pairs of classes), or one column
    present: IntVector  # classes that the fold could learn; empty for regressions
    violation: float
    status: Status
    n_iter: int

    def decisions_by(self, order: IntVector) -> FloatMatrix:
        """Decisions of the pairs of classes in this order, positive for the first."""
        pairs = _pairs_by(order, self.present)
        columns = [sign * self.decisions[:, p] for p, sign in pairs]
        return np.array(columns).reshape(len(columns), len(self.decisions)).T


class FoldEvidence(NamedTuple):
    """What the machines of one fold say about themselves."""

    machines: list[KernelEvidence]  # of pairs of classes, or the only one
    n_vectors: int  # samples that are a support vector of any


class Line:
    """One kernel (and one tube, or nu) on its way along C (or nu)."""

    def __init__(
        self, plan: Plan, source: Callable[[], Source], options: Options
    ) -> None:
        self.plan, self.source = plan, source
        self.blocks = {
            key: Block(source, rows, plan.fold_of) for key, rows in plan.rows.items()
        }
        self.chains = [
            [self._chain(seat, options) for seat in fold.seats] for fold in plan.folds
        ]
        self.outside = [
            Outside(fold.layout, own)
            for fold, own in zip(plan.folds, self.chains, strict=True)
        ]

    def _chain(self, seat: Seat, options: Options) -> Chain:
        form = self.plan.task.formulation
        return Chain(form, options, self.blocks[seat.key], seat)

    def release(self) -> None:
        """The kernel is not needed for a while; where the folds are is kept."""
        for block in self.blocks.values():
            block.forget()

    def tasks(self, place: Place) -> list[partial[None]]:
        """One for each machine of each fold.

        Folds that read the same block follow each other, while it is at hand.
        """
        near: dict[Block, list[Chain]] = {block: [] for block in self.blocks.values()}
        for own in self.chains:
            for chain in own:
                near[chain.block].append(chain)
        chains = [chain for own in near.values() for chain in own]
        return [partial(chain.step, place) for chain in chains]

    def listen(self, place: Place) -> list[partial[None]]:
        """After all of these, what the machines say is known."""
        tasks = [outside.listen(self.source, place.at) for outside in self.outside]
        return [task for own in tasks for task in own]

    def answers(self) -> list[Answer]:
        """What the machines said at the last place, fold by fold."""
        return [self._answer(f) for f in range(len(self.chains))]

    def _answer(self, f: int) -> Answer:
        solved = [chain.solved for chain in self.chains[f]]
        found = [each.found for each in solved if each is not None]
        return Answer(
            decisions=self.outside[f].decisions(),
            present=self.plan.folds[f].present,
            violation=max((each.violation for each in found), default=0.0),
            status=max(
                (each.status for each in found),
                key=lambda status: status.rank,
                default=Status.CONVERGED,
            ),
            n_iter=sum(each.n_iter for each in found),
        )

    def evidence(self, place: Place, orders: list[IntVector]) -> list[FoldEvidence]:
        """How the machines came to say it: the last place, fold by fold.

        Pairs are those of the fold's classes in this order, positive for the first.
        """
        return [self._evidence(place, f, order) for f, order in enumerate(orders)]

    def _evidence(self, place: Place, f: int, order: IntVector) -> FoldEvidence:
        own, pairs = self.chains[f], [(0, 1.0)]
        if isinstance(self.plan.task.target, Labels):
            pairs = _pairs_by(order, self.plan.folds[f].present)
        machines = [own[p].evidence(place, sign) for p, sign in pairs]
        is_vector = np.zeros(self.plan.n, dtype=bool)
        for (p, _), found in zip(pairs, machines, strict=True):
            is_vector[own[p].block.samples[np.flatnonzero(found.machine.coef)]] = True
        return FoldEvidence(machines, int(is_vector.sum()))


def _pairs_by(order: IntVector, present: IntVector) -> list[tuple[int, float]]:
    """Pairs of classes in this order: their place among those of `present`, in its own.

    With each comes -1 where the two are exchanged.
    """
    place = {pair: p for p, pair in enumerate(combinations(present.tolist(), 2))}
    pairs = combinations(order.tolist(), 2)
    return [(place[min(p), max(p)], 1.0 if p[0] < p[1] else -1.0) for p in pairs]
