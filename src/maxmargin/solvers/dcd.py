"""How is a linear dual solved one sample at a time? In random sweeps that shrink.

The driver watches the clock, brings shrunk samples back when the active ones have
converged, and stops on evidence: the float64 certificate of all samples.
"""

import time
from collections.abc import Callable

import numpy as np

from maxmargin.problems.linear import Certificate, LinearProblem, certify
from maxmargin.solvers.dcd_sweep import Sweep, shuffle, sweep_some
from maxmargin.solvers.result import Status
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatVector

SLICE_SECONDS = 0.03  # how long compiled code may keep Ctrl-C waiting
FIRST_SLICE = 4096  # samples, before their speed is known
FIRST_RANDOM = 0x9E3779B97F4A7C15  # many bits set, which xorshift needs at its start
LOOK_UP = 10  # sweeps between two questions whether to go on
WINDOW = 20  # sweeps in which the violation should have fallen
CLOSER = 0.5  # the violation asked of the sweeps, when the certificate wants more


class CoordinateDescent:
    """One problem, sweep after sweep."""

    def __init__(self, problem: LinearProblem, watch: Watch, beta: FloatVector) -> None:
        self.problem, self.watch = problem, watch
        design = problem.design
        self.kind = int(problem.loss), problem.epsilon, design.bias
        self.beta = beta.copy()
        self.sweep = Sweep(
            target=problem.target,
            cost=problem.cost,
            norm=design.squared_norms,
            beta=self.beta,
            w=design.transposed_times(self.beta),
            order=np.arange(design.n),
            place=np.array([0, design.n]),
            violation=np.array([0.0, np.inf]),
        )
        self.random = np.array([FIRST_RANDOM + watch.options.seed], dtype=np.uint64)
        self.samples_per_slice = FIRST_SLICE
        self.history: list[float] = []  # the largest violation of each sweep
        self.visits: list[int] = []  # samples that it met
        self.wanted = 0.0

    def visits_left(self) -> float:
        """Visits to samples until the end, if the violation goes on falling as now."""
        if len(self.history) <= WINDOW:
            return 0.0
        now, before = min(self.history[-WINDOW:]), min(self.history[:-WINDOW])
        if now <= self.wanted:
            return 0.0
        if now >= before:
            return np.inf
        n_windows = np.log(self.wanted / now) / np.log(now / before)
        return float(n_windows) * WINDOW * self.visits[-1]

    def run(
        self, tol: float, give_up: Callable[["CoordinateDescent"], bool] | None = None
    ) -> tuple[Certificate, Status]:
        """Sweep until the certificate holds, or a limit, or `give_up` says so.

        Asked every LOOK_UP sweeps. Giving up has the status MAX_ITER.
        """
        unit, n = self.problem.unit, self.problem.design.n
        self.wanted = wanted = tol * unit
        status = None
        while status is None:
            self._sweep()
            worst, n_active = float(self.sweep.violation[0]), int(self.sweep.place[1])
            self.history.append(worst)
            self._report(worst, n_active)
            if worst <= wanted and n_active == n:
                found = certify(self.problem, self.beta)
                if found.meets(tol):
                    return found, Status.CONVERGED
                wanted *= CLOSER
            elif worst <= wanted:
                self._wake_all()
                worst = np.inf
            self.sweep.violation[1] = worst if worst > 0.0 else np.inf
            status = self.watch.limit()
            is_time = give_up is not None and len(self.history) % LOOK_UP == 0
            if status is None and is_time and give_up is not None and give_up(self):
                status = Status.MAX_ITER
        found = certify(self.problem, self.beta)
        return found, Status.CONVERGED if found.meets(tol) else status

    def _sweep(self) -> None:
        """One sweep over the active samples, in slices."""
        rows, sweep = self.problem.design.rows, self.sweep
        shuffle(sweep.order, sweep.place[1], self.random)
        sweep.place[0], sweep.violation[0] = 0, 0.0
        while sweep.place[0] < sweep.place[1]:
            began, before = time.monotonic(), int(sweep.place[0])
            sweep_some(rows, self.kind, sweep, self.samples_per_slice)
            seconds, made = time.monotonic() - began, int(sweep.place[0]) - before
            if made >= FIRST_SLICE // 2 and seconds > 0.0:
                self.samples_per_slice = max(256, int(made * SLICE_SECONDS / seconds))
            if self.watch.is_stopped():
                break
        self.visits.append(int(sweep.place[0]))
        self.watch.n_iter += 1

    def _wake_all(self) -> None:
        self.sweep.place[1] = self.problem.design.n

    def _report(self, violation: float, n_active: int) -> None:
        objective = 0.5 * float(self.sweep.w @ self.sweep.w)
        self.watch.report(violation / self.problem.unit, objective, n_active)
