"""How is a linear dual solved one sample at a time? In random sweeps that shrink.

The driver watches the clock and stops on evidence: once the active samples have
converged, the float64 certificate is that of all samples. Where it does not hold, the
shrunk ones come back.
"""

import time
from collections.abc import Callable

import numpy as np

from maxmargin.problems.linear import Certificate, LinearProblem, certify
from maxmargin.solvers.dcd_sweep import Sweep, SweepLog, sweep_some
from maxmargin.solvers.result import Status
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatVector

FIRST_RANDOM = 0x9E3779B97F4A7C15  # many bits set, which xorshift needs at its start
LOOK_UP = 10  # sweeps between two questions whether to go on
FIRST_HALF = 20  # sweeps: the violation of fewer is too noisy to extrapolate
FARTHEST = 4.0  # times the visits made so far: no prediction goes further
CLOSER = 0.5  # the violation asked of the sweeps, when the certificate wants more


class CoordinateDescent:
    """One problem, sweep after sweep."""

    def __init__(self, problem: LinearProblem, watch: Watch, beta: FloatVector) -> None:
        self.problem, self.watch = problem, watch
        design = problem.design
        self.kind = int(problem.loss), problem.epsilon, design.bias
        self.beta = beta.copy()
        is_cold = not beta.any()
        self.sweep = Sweep(
            target=problem.target,
            cost=problem.cost,
            norm=design.squared_norms,
            beta=self.beta,
            w=np.zeros(design.n_columns) if is_cold else design.transposed_times(beta),
            order=np.arange(design.n),
            place=np.array([0, design.n]),
            violation=np.array([0.0, np.inf]),
            random=np.array([FIRST_RANDOM + watch.options.seed], dtype=np.uint64),
        )
        self.history: list[float] = []  # the largest violation of each sweep
        self.lowest: list[float] = []  # of all sweeps up to each
        self.last_visits = 0  # of the last sweep
        self.n_visits = 0  # of all sweeps
        self.wanted = 0.0

    def visits_left(self) -> float:
        """Visits to samples until the end, at the rate of the later half of sweeps.

        The violation is a maximum over few samples, so that it rises and falls; halves
        are long enough to see by how much it falls, and forget how it began. Where it
        rests, it may fall again soon: no more is predicted than FARTHEST allows.
        """
        half = len(self.history) // 2
        if half < FIRST_HALF:
            return 0.0
        now, before = min(self.history[half:]), self.lowest[half - 1]
        if now <= self.wanted:
            return 0.0
        most = FARTHEST * self.n_visits
        if now >= before:
            return most
        n_halves = float(np.log(self.wanted / now) / np.log(now / before))
        return min(n_halves * (len(self.history) - half) * self.last_visits, most)

    def run(
        self, tol: float, give_up: Callable[["CoordinateDescent"], bool] | None = None
    ) -> tuple[Certificate, Status]:
        """Sweep until the certificate holds, or a limit, or `give_up` says so.

        Asked every LOOK_UP sweeps. Giving up has the status MAX_ITER.
        """
        self.wanted = wanted = tol * self.problem.unit
        status = None
        while status is None:
            n_sweeps = self._sweep(wanted)
            if n_sweeps and self.history[-1] <= wanted:
                found = certify(self.problem, self.beta)
                if found.meets(tol):
                    return found, Status.CONVERGED
                if self.n_active < self.problem.design.n:
                    self._wake_all()
                else:
                    wanted *= CLOSER
            status = self.watch.limit()
            is_time = n_sweeps > 0 and len(self.history) % LOOK_UP == 0
            if status is None and is_time and give_up is not None and give_up(self):
                status = Status.MAX_ITER
        found = certify(self.problem, self.beta)
        return found, Status.CONVERGED if found.meets(tol) else status

    @property
    def n_active(self) -> int:
        """Samples that have not been shrunk."""
        return int(self.sweep.place[1])

    def _sweep(self, wanted: float) -> int:
        """Sweep for one slice of time; the number of sweeps that were completed."""
        place, before = self.sweep.place, int(self.sweep.place[0])
        most = self.watch.max_iter - self.watch.n_iter
        most = max(1, min(LOOK_UP - len(self.history) % LOOK_UP, most))
        log = SweepLog(np.empty(most), np.empty(most, dtype=np.intp))
        began = time.monotonic()
        rows, max_visits = self.problem.design.rows, self.watch.per_slice
        n_sweeps = sweep_some(rows, self.kind, self.sweep, wanted, max_visits, log)
        seconds = time.monotonic() - began
        visits = log.visits[:n_sweeps].tolist()
        made = sum(visits) + int(place[0]) - before
        self.watch.note_speed(made, seconds)
        self._note(log.violation[:n_sweeps].tolist(), visits)
        return n_sweeps

    def _note(self, violations: list[float], visits: list[int]) -> None:
        """What completed sweeps found."""
        for violation in violations:
            self.lowest.append(min([violation, *self.lowest[-1:]]))
        self.history += violations
        self.n_visits += sum(visits)
        self.last_visits = visits[-1] if visits else self.last_visits
        self.watch.n_iter += len(visits)
        if self.history and self.watch.is_due():
            objective = 0.5 * float(self.sweep.w @ self.sweep.w)
            unit = self.problem.unit
            self.watch.report(self.history[-1] / unit, objective, self.n_active)

    def _wake_all(self) -> None:
        """Bring shrunk samples back, and shrink none in the next sweep."""
        self.sweep.place[1] = self.problem.design.n
        self.sweep.violation[1] = np.inf
