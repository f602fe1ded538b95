"""How are the rounds of decomposition made by compiled code alone?

Where compiled code has kernel values at hand (`rounds`), a call makes as many rounds as
a slice of time holds. Python comes in between for limits, for Newton steps of many free
variables, and for rows of K that have to be computed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin._threads import raise_if_stopped
from maxmargin.kernels.cache import NOBODY
from maxmargin.solvers.newton_steps import NewtonSteps
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import PairRule
from maxmargin.solvers.rounds import (
    KeptRows,
    KernelInMemory,
    Panels,
    RoundLimits,
    rounds_until,
)
from maxmargin.solvers.tuning import RoundSizes
from maxmargin.solvers.work import Work
from maxmargin.solvers.working_set import (
    N_COMPUTED,
    SINGLY,
    N,
    RowCounts,
    WorkingSet,
    measure,
)
from maxmargin.typing import FloatVector, IntVector

# Adds the weighted sum of some rows of K to the slopes of all variables.
AddRows = Callable[[IntVector, FloatVector, FloatVector], None]


class KernelValues(NamedTuple):
    """Where compiled code takes kernel values from: one of these."""

    memory: KernelInMemory | None = None
    panels: Panels | None = None
    kept: KeptRows | None = None


class CompiledRounds:
    """Rounds of one problem; `work` holds all of its variables."""

    def __init__(
        self,
        work: Work,
        working_set: WorkingSet,
        values: KernelValues,
        add_rows: AddRows,
        sizes: RoundSizes,
        pace: Pace,
        is_bound: bool,
    ) -> None:
        """`is_bound`: whether an equality binds the variables."""
        self.work, self.working_set, self.pace = work, working_set, pace
        self.values, self.add_rows, self.sizes = values, add_rows, sizes
        self.singly = None if is_bound else SINGLY
        self.newton = NewtonSteps(is_bound, pace.is_stopped, pace.options.tuning.newton)

    def count_rows(self) -> RowCounts:
        """Those of rounds; where K is in memory all of them were there before."""
        if self.values.memory is not None:
            return RowCounts(0, 0)
        return RowCounts(0, int(self.working_set.counts[N_COMPUTED]))

    def measure(self) -> float:
        """The violation of all variables."""
        return measure(self.work, self.working_set, self.singly)

    def begin(self) -> float | None:
        """Compiled rounds see for themselves whether anything is to be done.

        Where K is in memory a call is short, and a limit is looked at after it.
        """
        is_limited = self.values.memory is None and self.pace.limit() is not None
        return self.measure() if is_limited else self.make(np.inf)

    def make(self, violation: float) -> float | None:
        """Some rounds, and a Newton step if it is due; returns the violation after.

        None: there is no room for the members that are needed.
        """
        raise_if_stopped()
        pace, counts = self.pace, self.working_set.counts
        options = pace.options
        limits = RoundLimits(
            options.tol,
            options.tuning.stack.inner_tol * options.tol,
            min(self._moves_of_call(), pace.max_iter - pace.n_iter),
            options.working_set is PairRule.SECOND_ORDER,
        )
        made, violation, has_room = rounds_until(
            self.work,
            self.working_set,
            *self.values,
            self.singly,
            limits,
            self.sizes,
        )
        pace.n_iter += made
        self.newton.effort += made * int(counts[N])
        if not has_room:
            return None
        if violation > options.tol and self._take_newton_step():
            violation = self.measure()
        return violation

    def _moves_of_call(self) -> int:
        """So many, that Newton's method is looked at in time.

        On K in memory compiled code has a method of its own for free variables, which
        begins when moves have cost as much.
        """
        tuning = self.pace.options.tuning
        if self.values.memory is not None:
            return tuning.stack.work_per_call // len(self.work.beta)
        n_members = int(self.working_set.counts[N])
        n_looked_at = max(tuning.newton.min_members, n_members)
        return tuning.newton.moves_before_look * n_looked_at

    def _take_newton_step(self) -> bool:
        """Free members go to their common optimum, if that costs less than moves."""
        free, working_set = self.newton.due(self.work), self.working_set
        if free is None:
            return False
        n = int(working_set.counts[N])
        place = np.full(len(self.work.beta), NOBODY)
        place[working_set.members[:n]] = np.arange(n)
        free = free[place[free] != NOBODY]
        if len(free) == 0:
            return False
        at = np.ix_(place[free], place[free])
        change = self.newton.take(self.work, free, working_set.square.rows[at])
        self.add_rows(free, change, self.work.grad)
        return True
