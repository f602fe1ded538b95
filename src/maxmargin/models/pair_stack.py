"""How are the machines of all pairs of classes fitted at once? As a stack of problems.

One-vs-one classification of k classes has k (k - 1) / 2 problems on one matrix K. They
are stated, solved and read as arrays, so that Python works once for all of them and not
once for each.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin.data.labels import Labels
from maxmargin.kernels.classes import PairsInMemory
from maxmargin.kernels.gram import slope_sizes
from maxmargin.kernels.source import memory_source
from maxmargin.models.held_out import State
from maxmargin.models.machine import (
    CANCELLED,
    NOISE,
    Fit,
    Machine,
    fit_margin,
)
from maxmargin.problems import DualProblem, project_start
from maxmargin.solvers import Options, Solution, Status
from maxmargin.solvers.stack import BETA, GRAD, LEVEL, N_MOVES, stack_of
from maxmargin.solvers.stack_solver import solve_stack
from maxmargin.solvers.tuning import Tuning
from maxmargin.typing import BoolVector, FloatMatrix, FloatVector, IntVector

# From y = +-1 of all problems of a stack and their ends: the problem from the weights,
# and how it is fitted and read.
Stated = Callable[[FloatVector, IntVector], tuple[State, Fit]]


class FittedPairs(NamedTuple):
    """Machines of all pairs of classes, an entry a pair; rows pair by pair.

    Where `is_fitted` is not set, `beta` is where the solver ended.
    """

    end: IntVector  # of each pair, among the rows
    beta: FloatVector
    image: FloatVector  # K @ beta, where `is_fitted`
    level: FloatMatrix  # likewise; a row a pair
    coef: FloatVector
    scale: FloatVector  # coef is beta times this
    intercept: FloatVector
    offset: FloatVector  # as in `Machine`
    objective: FloatVector
    gap: FloatVector
    violation: FloatVector
    n_iter: IntVector
    has_vanished: BoolVector  # certainly: nu-SVC without a margin
    is_fitted: BoolVector

    def rows(self, number: int) -> slice:
        """Where the rows of a pair are."""
        first = int(self.end[number - 1]) if number else 0
        return slice(first, int(self.end[number]))

    def store(self, number: int, machine: Machine) -> None:
        """A machine that was fitted by itself."""
        own, solution = self.rows(number), machine.solution
        self.beta[own], self.coef[own] = solution.beta, machine.coef
        self.intercept[number], self.offset[number] = machine.intercept, machine.offset
        self.objective[number], self.gap[number] = machine.objective, machine.gap
        self.violation[number], self.n_iter[number] = (
            solution.violation,
            self.n_iter[number] + solution.n_iter,
        )
        is_certain = solution.status in (Status.CONVERGED, Status.PRECISION_LIMIT)
        self.has_vanished[number] = machine.has_vanished and is_certain

    def machine(self, number: int, problem: DualProblem) -> Machine:
        """The machine of a pair that was fitted in the stack."""
        own = self.rows(number)
        solution = Solution(
            beta=self.beta[own],
            level=self.level[number],
            status=Status.CONVERGED,
            n_iter=int(self.n_iter[number]),
            violation=float(self.violation[number]),
            objective=float(self.objective[number] / self.scale[number] ** 2),
            gap=float(self.gap[number] / self.scale[number] ** 2),
            grad=self.image[own] + problem.linear,
        )
        return Machine(
            coef=self.coef[own],
            intercept=float(self.intercept[number]),
            objective=float(self.objective[number]),
            gap=float(self.gap[number]),
            solution=solution,
            image=self.image[own],
            scale=float(self.scale[number]),
            has_vanished=bool(self.has_vanished[number]),
            offset=float(self.offset[number]),
        )


def no_fits(end: IntVector, beta: FloatVector) -> FittedPairs:
    """Pairs that end there, none of them fitted."""
    n = len(end)
    return FittedPairs(
        end=end,
        beta=beta,
        image=np.zeros(len(beta)),
        level=np.zeros((n, 0)),
        coef=np.zeros(len(beta)),
        scale=np.ones(n),
        intercept=np.zeros(n),
        offset=np.zeros(n),
        objective=np.zeros(n),
        gap=np.zeros(n),
        violation=np.zeros(n),
        n_iter=np.zeros(n, dtype=np.intp),
        has_vanished=np.zeros(n, dtype=bool),
        is_fitted=np.zeros(n, dtype=bool),
    )


class _Reading(NamedTuple):
    """What turns K @ beta into decisions, an entry a pair."""

    margin: FloatVector
    intercept: FloatVector
    has_vanished: BoolVector
    is_final: BoolVector  # otherwise nu-SVC needs a finer tolerance


def fit_stack(
    grams: PairsInMemory,
    labels: Labels,
    weight: FloatVector,
    stated: Stated,
    options: Options,
    n_threads: int,
    start: FloatVector | None,
) -> FittedPairs:
    """Fit all pairs in one call of compiled code, a chunk of pairs a thread.

    Pairs that did not converge there, or have to be refined, are not fitted.
    """
    pairs = labels.pairs()
    size = np.array([len(own) for own in grams.members])
    rows = np.concatenate([grams.members[c] for pair in pairs for c in pair])
    place = np.concatenate([grams.place[c] for pair in pairs for c in pair])
    of_pair = size[np.array(pairs)]
    n_rows = of_pair.sum(axis=1)
    end = np.cumsum(n_rows)
    first = end - n_rows
    y = np.repeat(np.tile([1.0, -1.0], len(pairs)), of_pair.ravel())
    state, fit = stated(y, end)
    problem = state(weight[rows])
    problem = problem._replace(row=np.arange(len(rows)) - np.repeat(first, n_rows))
    if start is not None:
        problem = problem._replace(start=_nearest_starts(problem, end, start))
    diagonal = grams.diagonal[place]
    stack = stack_of(problem, place, diagonal, end)
    is_exact = len(labels.code) < options.tuning.exact_below
    source = memory_source(grams.K, place)
    found = solve_stack(stack, source, options, is_exact, n_threads)
    beta, level = found.points[BETA], found.levels(stack.n_groups)
    violation, objective, gap = found.evidence[:LEVEL]
    if fit is fit_margin:
        slopes = slope_sizes(np.abs(beta), first, diagonal, grams.bound)
        reading = _read_margins(level, violation, CANCELLED * slopes, options.tuning)
    else:
        reading = _read_levels(level)
    coef = beta / np.repeat(reading.margin, n_rows)
    offset = np.zeros(len(end))
    if grams.shift is not None:
        offset = np.add.reduceat(coef * grams.shift[place], first)
    return FittedPairs(
        end=end,
        beta=beta,
        image=found.points[GRAD] - problem.linear,
        level=level,
        coef=coef,
        scale=1.0 / reading.margin,
        intercept=reading.intercept - offset,
        offset=offset,
        objective=objective / reading.margin**2,
        gap=gap / reading.margin**2,
        violation=violation,
        n_iter=found.counts[N_MOVES],
        has_vanished=reading.has_vanished,
        is_fitted=found.has_converged & reading.is_final,
    )


def problem_parts(problem: DualProblem, end: IntVector) -> list[DualProblem]:
    """The problems of a stack, as views."""
    columns = [np.split(part, end[:-1]) for part in problem]
    return [DualProblem(*parts) for parts in zip(*columns, strict=True)]


def _nearest_starts(
    problem: DualProblem, end: IntVector, start: FloatVector
) -> FloatVector:
    """A feasible point of each problem of a stack, near the one that is given."""
    parts = zip(problem_parts(problem, end), np.split(start, end[:-1]), strict=True)
    return np.concatenate([project_start(part, beta) for part, beta in parts])


def _read_levels(level: FloatMatrix) -> _Reading:
    """C-SVC: the level is minus the intercept."""
    n = len(level)
    intercept = -level[:, 0] if level.shape[1] else np.zeros(n)
    return _Reading(np.ones(n), intercept, np.zeros(n, bool), np.ones(n, bool))


def _read_margins(
    level: FloatMatrix, violation: FloatVector, rounding: FloatVector, tuning: Tuning
) -> _Reading:
    """nu-SVC: half the distance of the two levels becomes 1, if it is not rounding.

    What lies between a margin and rounding is left to `fit_margin`.
    """
    upper, lower = level.T
    margin, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
    middle[np.abs(middle) <= CANCELLED * (np.abs(upper) + np.abs(lower))] = 0.0
    has_vanished = np.abs(margin) <= np.maximum(rounding, NOISE * violation)
    is_clear = (margin > rounding) & (violation <= tuning.stack.margin_share * margin)
    margin = np.where(is_clear, margin, 1.0)
    return _Reading(margin, -middle / margin, has_vanished, is_clear | has_vanished)
