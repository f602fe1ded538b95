r"""How is a large dual problem solved with few rows of K? By decomposition.

Most variables end at a bound, and rows of K are expensive. A working set admits the
variables that violate most, some hundreds at a time, and keeps those that became free
(`working_set`). SMO optimises the members on the square of K between them, which is in
memory; one sum of rows of K then updates the gradient of all variables. (Joachims 1998;
since every free variable stays, ten to thirty rounds do, whatever C is.)

Rounds differ in where kernel values come from (`compiled_rounds`, `threaded_rounds`).
When they begin and end, and what is certain in float64 (`slope_check`), is the same.
"""

from typing import Protocol

import numpy as np

from maxmargin.kernels.arena import Arena
from maxmargin.kernels.gram import Gram
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.memory import SPARE_SIDE, pass_on, promised_square
from maxmargin.kernels.provider import KernelProvider
from maxmargin.problems.dual import DualProblem, dual_objective
from maxmargin.solvers.compiled_rounds import CompiledRounds, KernelValues
from maxmargin.solvers.gradient import weight_of
from maxmargin.solvers.iterate import Iterate, make_iterate
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Status
from maxmargin.solvers.rounds import kernel_in_memory, panels_of
from maxmargin.solvers.slope_check import SlopeCheck
from maxmargin.solvers.threaded_rounds import ThreadedRounds
from maxmargin.solvers.work import Work, gather_work
from maxmargin.solvers.working_set import N, RowCounts, WorkingSet, make_working_set
from maxmargin.typing import FloatVector


class Rounds(Protocol):
    """Rounds of a working set, and the variables that they move."""

    work: Work
    working_set: WorkingSet

    def count_rows(self) -> RowCounts:
        """So far."""

    def measure(self) -> float:
        """The violation of all variables."""

    def begin(self) -> float | None:
        """The violation at the start, or after first rounds."""

    def make(self, violation: float) -> float | None:
        """A round or some, from this violation; returns what is left of it.

        None: rounds cannot go on.
        """


class Decomposition:
    """The driver: rounds until tol holds, a limit is met, or they lead no further."""

    def __init__(
        self,
        problem: DualProblem,
        rounds: Rounds,
        pace: Pace,
        check: SlopeCheck | None,
    ) -> None:
        """Without a `check`, slopes are as exact as they have to be."""
        self.problem, self.rounds = problem, rounds
        self.pace, self.check = pace, check
        self.n_idle, self.n_iter_before = 0, -1

    def run(self) -> Iterate:
        """Where rounds end; without a status, another solver has to go on."""
        tol, pace, check = self.pace.options.tol, self.pace, self.check
        violation = self.rounds.begin()
        while violation is not None:
            pace.note_violation(violation)
            self._report(violation)
            if self._is_at_rest(violation):
                break
            if check is not None and check.need_correction(violation):
                check.correct()
                violation = self.rounds.measure()
                continue
            if violation <= tol:
                if check is None or check.certify(violation) <= tol:
                    return self._ended(Status.CONVERGED)
                violation = self.rounds.measure()
                continue
            limit = pace.limit()
            if limit is not None:
                return self._ended(self._at_limit(limit))
            violation = self.rounds.make(violation)
        return self._ended(None)

    def _is_at_rest(self, violation: float) -> bool:
        """Whether rounds and corrections bring nothing any more."""
        if self.check is not None and self.check.is_hopeless():
            return True
        has_moved = self.pace.n_iter > self.n_iter_before
        self.n_iter_before = self.pace.n_iter
        self.n_idle = 0 if has_moved else self.n_idle + 1
        if self.n_idle > self.pace.options.tuning.checks.max_idle:
            return True
        grad = self.rounds.work.grad
        return not (np.isfinite(violation) and np.isfinite(grad).all())

    def _at_limit(self, limit: Status) -> Status | None:
        """What has been reached there may be the solution all the same."""
        if self.check is None:
            return None if limit is Status.STALLED else limit
        is_there = self.check.compute_all() <= self.pace.options.tol
        return Status.CONVERGED if is_there else limit

    def _ended(self, status: Status | None) -> Iterate:
        """The point reached, which has to be feasible to be the solution."""
        work, counts = self.rounds.work, self.rounds.count_rows()
        found = make_iterate(self.problem, work.beta, work.grad)
        if status is Status.CONVERGED and not found.violation <= self.pace.options.tol:
            status = None
        return found._replace(
            status=status, cache_hits=counts.found, cache_misses=counts.computed
        )

    def _report(self, violation: float) -> None:
        """Call the callback, if it is due."""
        if self.pace.is_due():
            work = self.rounds.work
            value = dual_objective(self.problem, work.beta, work.grad)
            n_members = int(self.rounds.working_set.counts[N])
            counts = self.rounds.count_rows()
            self.pace.report(violation, value, n_members, False, *counts)


def decompose(
    problem: DualProblem,
    gram: Gram,
    pace: Pace,
    image: FloatVector | None = None,
    *,
    max_share: float = 1.0,
) -> Iterate:
    """Solve a problem as far as rows at hand can; `image`: K @ start, if known.

    Its variables are sorted by group. Where rounds would need more than this share of
    all variables as members, they end.
    """
    if isinstance(gram, HeldGram) and is_in_memory(problem, gram):
        driver = _in_memory(problem, gram, pace, image)
    else:
        driver = _with_arena(problem, gram, pace, image, max_share)
    try:
        return driver.run()
    finally:
        pass_on(driver.rounds.working_set.square.rows)


def is_in_memory(problem: DualProblem, gram: Gram) -> bool:
    """Whether compiled rounds have all of K at hand: one row a variable, one group."""
    is_plain = isinstance(gram, HeldGram) and len(problem.linear) == gram.n
    return is_plain and problem.n_groups <= 1


def _in_memory(
    problem: DualProblem, gram: HeldGram, pace: Pace, image: FloatVector | None
) -> Decomposition:
    """Rounds on all of K in float64, whose slopes are never in doubt."""
    n, sizes, rows = gram.n, pace.options.tuning.compiled_rounds, gram.provider()
    if image is None:
        image = _start_image(problem, n, rows)
    work = _all_variables(problem, gram, image)
    working_set = make_working_set(
        n, problem.n_groups, promised_square(min(n, SPARE_SIDE)), sizes
    )
    values = KernelValues(memory=kernel_in_memory(gram.part))
    is_bound = not problem.is_free_of_equalities
    rounds = CompiledRounds(
        work, working_set, values, rows.add_rows, sizes, pace, is_bound
    )
    return Decomposition(problem, rounds, pace, None)


def _with_arena(
    problem: DualProblem,
    gram: Gram,
    pace: Pace,
    image: FloatVector | None,
    max_share: float,
) -> Decomposition:
    """Rounds on rows of K that are computed, by compiled code itself or by threads."""
    options, n = pace.options, len(problem.linear)
    tuning, provider = options.tuning, gram.provider()
    share = tuning.square_share_alone
    if tuning.rows.is_kept(provider):
        share = tuning.square_share
    max_side = min(int(np.sqrt(share * options.cache_bytes / 4)), n)
    n_bytes = options.cache_bytes - 4 * max_side**2
    arena = Arena(gram, n_bytes, getattr(gram, "n_threads", 1), tuning.rows)
    if image is None:
        image = _start_image(problem, gram.n, arena)
    work = _all_variables(problem, gram, image)
    panels = None
    is_plain = np.array_equal(problem.row, np.arange(gram.n))
    if is_plain and n <= min(max_side, tuning.max_compiled_rounds):
        panels = tuning.rows.short_rows(provider)
    rounds: Rounds
    if panels is not None:
        sizes = tuning.compiled_rounds
        rounds = CompiledRounds(
            work,
            make_working_set(n, problem.n_groups, promised_square(n), sizes),
            KernelValues(panels=panels_of(panels)),
            arena.add_rows,
            sizes,
            pace,
            not problem.is_free_of_equalities,
        )
    else:
        sizes = tuning.threaded_rounds
        side = n if n <= getattr(gram, "n_whole", 0) else SPARE_SIDE
        square = promised_square(min(max_side, side))
        working_set = make_working_set(n, problem.n_groups, square, sizes)
        rounds = ThreadedRounds(
            problem, work, working_set, arena, pace, max_side, int(max_share * n)
        )

    check = SlopeCheck(problem, gram, options, work, provider.errors)
    return Decomposition(problem, rounds, pace, check)


def _all_variables(problem: DualProblem, gram: Gram, image: FloatVector) -> Work:
    """Where they begin; `image` is K @ start."""
    grad = image[problem.row] + problem.linear
    everything = np.arange(len(problem.linear))
    return gather_work(problem, everything, problem.start, grad, gram.diagonal())


def _start_image(
    problem: DualProblem, n: int, rows: KernelProvider | Arena
) -> FloatVector:
    """K @ start; rows that the two halves of a tube have in common cancel."""
    image = np.zeros(n)
    weight = weight_of(problem, problem.start, n)
    if weight.any():
        support = np.flatnonzero(weight)
        rows.add_rows(support, weight[support], image)
    return image
