"""What does a solved dual problem say about the machine? One reading per machine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from maxmargin.kernels.gram import Gram, slope_size
from maxmargin.problems import DualProblem, project_start
from maxmargin.solvers import Options, Solution, Status, solve
from maxmargin.solvers.by_weights import solve_by_weights
from maxmargin.solvers.gradient import weight_of
from maxmargin.typing import FloatVector

MOST_REFINEMENTS = 8
MOVES, MOVES_PER_ROW = 10, 20  # of a refinement: times those so far, and for a row
NOISE = 0.5  # of the violation: without such a margin both levels are still met
CANCELLED = 1e-14  # relative: what rounding leaves of a difference that is zero


@dataclass(frozen=True)
class Machine:
    """decision(x) = sum of coef_i K(x_i, x) + intercept, and the evidence for it."""

    coef: FloatVector  # one per training row
    intercept: float
    objective: float  # as LIBSVM prints it
    gap: float
    solution: Solution
    image: FloatVector  # K @ beta at every training row, as exact as the slopes are
    scale: float = 1.0  # coef is beta times this
    has_vanished: bool = False  # nu-SVC without a margin: the decision means nothing
    offset: float = 0.0  # what the origin that the Gram matrix has chosen adds

    @property
    def gram_intercept(self) -> float:
        """The intercept that goes with sums of the Gram matrix itself."""
        return self.intercept + self.offset

    @property
    def decisions(self) -> FloatVector:
        """The decision value of every training row: no kernel has to be computed."""
        values: FloatVector = self.scale * self.image + self.gram_intercept
        return values


class Reading(NamedTuple):
    """decision = K @ beta / margin + intercept."""

    margin: float
    intercept: float
    has_vanished: bool = False


Fit = Callable[
    [DualProblem, Gram, Options, FloatVector | None, FloatVector | None], Machine
]


def fit_decision(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None = None,
    image: FloatVector | None = None,
) -> Machine:
    """C-SVC, epsilon-SVR and one-class: the solution is the machine.

    `start`: variables to begin with; `image`: K times these, if they are feasible and
    that is known.
    """
    solution = _solve(problem, gram, options, start, image)
    return machine_of(problem, solution, read_level(solution), gram.n, gram.shift)


def fit_margin(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None = None,
    image: FloatVector | None = None,
) -> Machine:
    """nu-SVC: the two levels are the margins', and half their distance becomes 1.

    What is left of the violation is divided by the margin too: where tol would be
    too coarse for a small margin, the solver goes on with a finer one. And where nu is
    so small that no slope is as large as tol, it begins with a finer one.
    """
    size = options.tuning.stack.meaningful_violation * slope_size(gram, problem.start)
    options = replace(options, tol=min(options.tol, size or options.tol))

    def again(found: Solution, finer: Options) -> Solution:
        return _solve(problem, gram, finer, found.beta)

    first = _solve(problem, gram, options, start, image)
    solution = refine_margin(first, again, gram, options)
    reading = read_margin(solution, gram)
    return machine_of(problem, solution, reading, gram.n, gram.shift)


def refine_margin(
    solution: Solution,
    again: Callable[[Solution, Options], Solution],
    gram: Gram,
    options: Options,
) -> Solution:
    """Solve nu-SVC again, and finer, while the violation is much of the margin.

    Where nu is too small for the data the optimal margin is zero (Chang & Lin, Neural
    Computation 13, 2001), and what is read off any tol is a small part of it.
    """
    n_negligible, tuning = 0, options.tuning.stack
    meaningful = tuning.meaningful_violation * slope_size(gram, solution.beta)
    for _ in range(MOST_REFINEMENTS):
        margin, floor = _margin(solution), _rounding(gram, solution)
        tol, violation = options.tol, solution.violation
        is_negligible = margin <= min(tuning.negligible_margin * tol, NOISE * violation)
        if is_negligible and violation <= meaningful:
            # As fine as the next tolerance would be: that is a second look already.
            n_negligible += 2 if violation <= tuning.refinement * tol else 1
        is_fine = violation <= tuning.margin_share * margin
        is_fine = is_fine or solution.status is not Status.CONVERGED
        if is_fine or n_negligible > 1 or tol <= floor:
            break
        tol = tuning.refinement * min(tol, violation)
        if margin > violation:  # else it does not say yet what it needs
            tol = min(tol, tuning.margin_share * margin)
        options = replace(options, tol=max(tol, floor))
        most = MOVES * solution.n_iter + MOVES_PER_ROW * gram.n
        finer = again(solution, _with_patience(options, most))
        n_iter = solution.n_iter + finer.n_iter
        if finer.status is not Status.CONVERGED:
            return replace(solution, n_iter=n_iter)
        solution = replace(finer, n_iter=n_iter)
    return solution


def _with_patience(options: Options, n_moves: int) -> Options:
    """For a fit that makes so many moves at most; small problems know no `max_iter`."""
    if options.max_iter >= 0:
        return replace(options, max_iter=min(n_moves, options.max_iter))
    patience = options.tuning.patience._replace(
        moves_of_fit=0,
        min_moves=n_moves,
        min_moves_per_variable=0,
        max_moves=n_moves,
        max_moves_per_variable=0,
    )
    return replace(options, tuning=options.tuning._replace(patience=patience))


def read_margin(solution: Solution, gram: Gram) -> Reading:
    """nu-SVC: half the distance of the two levels becomes 1, if it is not noise."""
    upper, lower = solution.level
    margin, middle = _margin(solution), 0.5 * float(upper + lower)
    if abs(middle) <= CANCELLED * (abs(upper) + abs(lower)):
        middle = 0.0  # a difference of equal numbers, not a direction
    has_vanished = _is_noise(margin, gram, solution)
    if has_vanished:
        margin = 1.0  # w = 0 is optimal: there is no direction to scale
    return Reading(margin, -middle / margin, has_vanished)


def _margin(solution: Solution) -> float:
    return 0.5 * float(solution.level[0] - solution.level[1])


def _rounding(gram: Gram, solution: Solution) -> float:
    """What float64 leaves of a difference of two levels that are equal."""
    return CANCELLED * slope_size(gram, solution.beta)


def _is_noise(margin: float, gram: Gram, solution: Solution) -> bool:
    """Whether a margin cannot be told from zero, as far as the solver got."""
    if solution.status not in (Status.CONVERGED, Status.PRECISION_LIMIT):
        return margin == 0.0
    return abs(margin) <= max(_rounding(gram, solution), NOISE * solution.violation)


def fit_tube(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None = None,
    image: FloatVector | None = None,
) -> Machine:
    """nu-SVR: the variables above and below a row are added."""
    solution = _solve(problem, gram, options, start, image)
    return machine_of(problem, solution, read_tube(solution), gram.n, gram.shift)


def read_level(solution: Solution) -> Reading:
    """C-SVC, epsilon-SVR and one-class: the level is minus the intercept."""
    return Reading(1.0, -float(solution.level[0]) if len(solution.level) else 0.0)


def read_tube(solution: Solution) -> Reading:
    """nu-SVR: the middle between the edges of the tube."""
    return Reading(1.0, -float(solution.level.mean()))


def machine_of(
    problem: DualProblem,
    solution: Solution,
    reading: Reading,
    n: int,
    shift: FloatVector | None = None,
) -> Machine:
    """The machine that a solution is read as, on n rows of K; `shift` as in `Gram`.

    K @ beta is read off the slopes; rows that no variable stands for are zero.
    """
    assert solution.grad is not None, "only kernel machines are read here"
    image = np.zeros(n)
    image[problem.row] = solution.grad - problem.linear
    margin = reading.margin
    coef = weight_of(problem, solution.beta, n) / margin
    offset = 0.0 if shift is None else float(coef @ shift)
    return Machine(
        coef=coef,
        intercept=reading.intercept - offset,
        objective=solution.objective / margin**2,
        gap=solution.gap / margin**2,
        solution=solution,
        image=image,
        scale=1.0 / margin,
        has_vanished=reading.has_vanished,
        offset=offset,
    )


def _solve(
    problem: DualProblem,
    gram: Gram,
    options: Options,
    start: FloatVector | None,
    image: FloatVector | None = None,
) -> Solution:
    if start is not None:
        near = project_start(problem, start)
        image = image if np.array_equal(near, start) else None
        problem = problem._replace(start=near)
    solution = solve_by_weights(problem, gram, options)
    return solve(problem, gram, options, image) if solution is None else solution
