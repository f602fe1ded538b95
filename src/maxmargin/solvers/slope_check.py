"""Which slopes does float32 leave in doubt? Those whose error could change the answer.

Rows of K are in float32, sums of them in float64. The error of a slope is at most that
of a kernel value times all that has moved since slopes were last computed in float64.
Near the end, slopes that might be the extreme ones are computed again, and all of them
where many are in doubt or the objective is blurred.
"""

import numpy as np

from maxmargin.kernels.gram import Gram
from maxmargin.kernels.tiles import VALUE_PRODUCTS
from maxmargin.problems.dual import DualProblem, is_feasible, measured
from maxmargin.solvers.gradient import RunningGradient, weight_of
from maxmargin.solvers.result import Options
from maxmargin.solvers.work import Work, set_masks
from maxmargin.typing import BoolVector, FloatVector, IntVector

BLURRED = 5e-7  # of the objective: float32 may leave less
CERTAIN = 3.0  # standard errors, by which a mean differs from zero


class SlopeCheck:
    """The slopes of a problem whose rows of K are in float32."""

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram,
        options: Options,
        work: Work,
        errors: FloatVector,
    ) -> None:
        """`work` holds all variables; `errors` of rows are relative to the bound."""
        self.problem, self.gram, self.options = problem, gram, options
        self.work, self.errors = work, errors * gram.bound()
        self.checks = options.tuning.checks
        self.exact = RunningGradient(problem, gram, options.tol)
        self.exact_beta = np.zeros(len(work.beta))
        self.n_corrections = self.n_drifts = 0

    def need_correction(self, violation: float) -> bool:
        """Whether sums have drifted, or slopes have where it begins to matter."""
        tol = self.options.tol
        if not violation <= self.checks.near * tol:
            return False
        if not is_feasible(self.problem, self.work.beta):
            return True
        return violation > tol and self._is_drifting()

    def correct(self) -> None:
        """All slopes in float64, midway."""
        self.n_drifts += 1
        self.compute_all()

    def is_hopeless(self) -> bool:
        """Whether float32 is not enough for this problem."""
        checks = self.checks
        has_failed = self.n_corrections > checks.max_corrections
        return has_failed or self.n_drifts > checks.max_drifts

    def certify(self, violation: float) -> float:
        """The violation in float64; where float32 may be wrong, slopes are replaced."""
        self.n_corrections += 1
        if not (self.options.confirm or self._is_drifting()):
            return violation
        problem, work = self.problem, self.work
        is_wanted = self._may_be_extreme()
        support, every = np.flatnonzero(work.beta), 1
        if not self._is_objective_cheap():
            every += len(support) // self.checks.n_sampled
        is_wanted[support[::every]] = True
        if np.count_nonzero(is_wanted) > self.checks.max_share * len(is_wanted):
            return self.compute_all()
        rows = np.unique(problem.row[is_wanted])
        weight = weight_of(problem, work.beta, self.gram.n)
        terms = np.flatnonzero(weight)
        image = np.empty(self.gram.n)
        image[problem.row] = work.grad - problem.linear
        exact = self.gram.sums(terms, weight[terms], rows)
        error, image[rows] = exact - image[rows], exact
        work.grad[:] = image[problem.row] + problem.linear
        found = measured(problem, work.beta, work.grad)
        if is_blurred(found.objective, weight, rows, error):
            return self.compute_all()
        return found.violation

    def compute_all(self) -> float:
        """All slopes in float64, at the nearest feasible point; its violation."""
        point, work = self.exact.at(self.work.beta), self.work
        work.beta[:], work.grad[:] = point.beta, point.grad
        set_masks(work, 0, len(work.beta))
        self.exact_beta = point.beta.copy()
        return point.violation

    def _may_be_extreme(self) -> BoolVector:
        """Variables whose true slopes may be extreme in their group."""
        work, first = self.work, self.work.start[:-1]
        moved = float(np.abs(work.beta - self.exact_beta).sum())
        error = (self.errors * moved)[self.problem.row]
        right, left = work.grad + work.rise, work.grad + work.fall
        lowest = np.minimum.reduceat(right + error, first)
        highest = np.maximum.reduceat(left - error, first)
        group = np.maximum(self.problem.group, 0)
        may_be: BoolVector = right - error <= lowest[group]
        may_be |= left + error >= highest[group]
        return may_be

    def _is_objective_cheap(self) -> bool:
        """Whether slopes of support vectors, which it is made of, cost little."""
        n_columns = getattr(getattr(self.gram, "rows", None), "n_columns", 1)
        n_values = int(np.count_nonzero(self.work.beta)) ** 2
        return n_values * (n_columns + VALUE_PRODUCTS) <= self.checks.cheap_products

    def _is_drifting(self) -> bool:
        """Whether float32 has probably spoiled slopes by a good part of tol."""
        moved = float(np.linalg.norm(self.work.beta - self.exact_beta))
        typical = float(np.median(self.errors)) * moved
        return typical > self.checks.max_drift * self.options.tol


def is_blurred(
    objective: float, weight: FloatVector, rows: IntVector, error: FloatVector
) -> bool:
    """Whether rounding shows in an objective, where only these rows are exact.

    `weight` is beta summed per Gram row, `error` by how much K @ beta was off in the
    rows before, as it still is elsewhere. Errors of either sign add up as the root of
    their number; what their mean is beyond doubt, with all of them.
    """
    terms = (weight[rows] * error)[weight[rows] != 0.0]
    n_left = int(np.count_nonzero(weight)) - len(terms)
    if n_left == 0 or len(terms) < 2:
        return False
    spread = float(terms.std())
    doubt = CERTAIN * spread / np.sqrt(len(terms))
    biased = max(abs(float(terms.mean())) - doubt, 0.0) * n_left
    return max(biased, spread * np.sqrt(n_left)) > BLURRED * abs(objective)
