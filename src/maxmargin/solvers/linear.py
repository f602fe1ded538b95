"""Which solver for which linear problem? The one that ends soonest, and then the next.

Few columns: Newton steps with the matrix formed, on the problem itself where it is
smooth, on a sequence of smooth ones where it is not. Many columns: dual coordinate
descent, which likes sparse data, and if it has not arrived after its share of work,
Newton steps by conjugate gradients from where it is.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from maxmargin.errors import InvalidInput, refuse
from maxmargin.problems.linear import Certificate, LinearProblem, Loss, certify
from maxmargin.solvers.coarse import dual_guess, is_worth_sampling, sampled
from maxmargin.solvers.dcd import CoordinateDescent
from maxmargin.solvers.directions import (
    MOST_SAMPLES,
    BySamples,
    Directions,
    Explicit,
    Implicit,
)
from maxmargin.solvers.interior import follow_path
from maxmargin.solvers.newton import Goal, minimise
from maxmargin.solvers.proximal import Rounds, minimise_proximal
from maxmargin.solvers.result import Options, Solution, Status, proven_solution
from maxmargin.solvers.smooth import Smooth
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatVector

MOST_FORMED = 1500  # columns of a matrix that is formed
BADLY_SCALED = 100.0  # ratio of two columns: of their largest values, of their means
FIRST_STIFFNESS = 1.0  # a slope of one margin moves a variable across its box
CLOSER = 0.1  # of tol: what the gradient may leave, so that the certificate holds
COARSE_TOL = 1e-2  # a sample of the samples is not worth more
COARSE_STIFFNESS = 0.1  # margins that the sample leaves in doubt
PATH_END = 1e-2  # of tol: the relative gap at which the interior point stops
BISECTIONS = 60  # to the last bits of a number
CROSSOVER_STIFFNESS = 1e-3  # soft enough to take variables to their bounds in one step
BLAS_SPEED = 16.0  # products by BLAS in the time of one stored value by a sweep
PASSES = 4.0  # over the samples, in one Newton step
TYPICAL_STEPS = 15  # of Newton's method after the sweeps; 3 to 13 were counted
OVERHEAD = 8.0  # of a visit to a sample, in stored values
POLISH_SHARE = 0.05  # of the work of all sweeps: what further Newton steps may cost
POLISH_FREE = 1e6  # operations: a millisecond, which a fit takes in any case
POLISH_STEPS = 10  # at most; two to four as a rule
POLISH_TOL = 1e-10  # reached in one Newton step more; further on rounding takes many


def solve_linear(
    problem: LinearProblem,
    options: Options,
    method: str = "auto",
    start: FloatVector | None = None,
) -> Solution:
    """Solve to `options.tol`, certified in float64.

    Parameters
    ----------
    problem : LinearProblem
        Any loss with the squared length of w as penalty.
    options : Options
        Tolerance, limits, seed, callback.
    method : str
        "auto"; "dual" or "primal", where it begins; "corners", for hinges and tubes; or
        one solver: "dcd", "newton", "newton-cg", "proximal", "interior".
    start : array of shape (n,), optional
        The dual point of a former fit.
    """
    return _Run(problem, options, start).by(method)


class _Run:
    """One problem and the point that its solvers hand on."""

    def __init__(
        self, problem: LinearProblem, options: Options, start: FloatVector | None
    ) -> None:
        self.problem, self.tol = problem, options.tol
        self.watch = Watch(options)
        n = problem.design.n
        self.beta = np.zeros(n) if start is None else _inside(problem, start)
        self.is_cold = start is None
        self.intercept = 0.0  # weight of a free intercept
        self.work_done = 0.0  # operations of all sweeps
        if not self.is_cold and problem.is_intercept_free:
            self.intercept = _free_intercept(problem, self.beta)

    def by(self, method: str) -> Solution:
        """Run what the method stands for."""
        if method == "dcd":
            found, status = self._sweep()
        elif method == "newton":
            found, status = self._newton(Explicit(self.problem))
        elif method == "newton-cg":
            found, status = self._newton(Implicit(self.problem))
        elif method == "proximal":
            found, status = self._multipliers()
        elif method == "interior":
            found, status = self._interior()
        elif method == "corners":
            found, status = self._corners()
        else:
            found, status = self._choose(method)
            if status is Status.CONVERGED:
                found = self._polished(found)
        return self._solution(found, status)

    def _corners(self) -> tuple[Certificate, Status]:
        """Newton on a hinge or a tube: by proximal rounds, or along the path.

        Rounds are faster as a rule. Where features differ widely in scale they take
        many, and rounding shows: the path minds neither.
        """
        if self._is_badly_scaled():
            return self._interior()
        found, status = self._multipliers()
        is_stuck = status in (Status.PRECISION_LIMIT, Status.STALLED)
        if is_stuck and self._can_form():
            return self._interior()
        return found, status

    def _choose(self, method: str) -> tuple[Certificate, Status]:
        problem, can_form = self.problem, self._can_form()
        is_smooth, is_sparse = problem.loss.is_smooth, problem.design.is_sparse
        if method == "primal" or problem.is_intercept_free:
            begins_with_sweeps = False
        elif method == "dual":
            begins_with_sweeps = True
        elif is_smooth or not is_sparse or self._is_badly_scaled():
            begins_with_sweeps = not can_form
        else:
            begins_with_sweeps = True
        if problem.is_intercept_free and not can_form:
            self._sweep_with_penalty()
        if begins_with_sweeps:
            found, status = self._sweep(self._is_newton_cheaper)
            if status is not Status.MAX_ITER or self.watch.limit() is not None:
                return found, status
        return self._newton(self._directions()) if is_smooth else self._corners()

    def _is_badly_scaled(self) -> bool:
        """Whether some feature is very much larger than another.

        Not by its largest value alone, which is large where a rare mark was
        standardised; nor by its mean square alone, which is small for a rare mark.
        """
        design = self.problem.design
        if not self._can_form() or _spread(design.column_sizes()) <= BADLY_SCALED:
            return False
        mean_square = design.squares_times(np.ones(design.n))[: design.n_features]
        return _spread(np.sqrt(mean_square)) > BADLY_SCALED

    def _can_form(self) -> bool:
        return self.problem.design.n_columns <= MOST_FORMED

    def _directions(self) -> Directions:
        return Explicit(self.problem) if self._can_form() else BySamples(self.problem)

    # The solvers.

    def _sweep(
        self, give_up: Callable[[CoordinateDescent], bool] | None = None
    ) -> tuple[Certificate, Status]:
        problem = self.problem
        if problem.is_intercept_free:
            raise InvalidInput("Coordinate descent needs a penalised intercept.")
        descent = CoordinateDescent(problem, self.watch, self.beta)
        found, status = descent.run(self.tol, give_up)
        self.beta, self.is_cold = descent.beta, False
        self.work_done = descent.n_visits * self._visit_cost()
        return found, status

    def _polished(self, found: Certificate) -> Certificate:
        """The answer, or one much nearer the optimum where that is cheap.

        An answer may be anywhere within tol; further Newton steps end at the optimum
        itself, so that weights and copies of samples have the same answer.
        """
        problem, tol = self.problem, POLISH_TOL
        cost = POLISH_STEPS * self._step_cost(self.beta)
        if cost > max(POLISH_FREE, POLISH_SHARE * self.work_done) or found.meets(tol):
            return found
        left = min(self.watch.max_iter - self.watch.n_iter, POLISH_STEPS)
        options = replace(self.watch.options, max_iter=left, callback=None)
        watch = Watch(replace(options, started=self.watch.started))
        if problem.loss.is_smooth:
            reach = tol * problem.unit if problem.is_intercept_free else np.inf
            smooth, goal = Smooth(problem), Goal(tol, tol, reach)
            end = minimise(smooth, self._directions(), found.weight, goal, watch)
        else:
            rounds = Rounds(tol, CROSSOVER_STIFFNESS, watch)
            start, directions = (self.beta, found.weight), self._directions()
            end = minimise_proximal(problem, directions, start, rounds)
        self.watch.n_iter += watch.n_iter
        if end.certificate.worst >= found.worst:
            return found
        self.beta = end.dual
        return end.certificate

    def _sweep_with_penalty(self) -> None:
        """A few sweeps with the intercept penalised: from zero, Newton has it hard."""
        if self.is_cold and self.problem.loss is not Loss.ONE_CLASS:
            penalised = self.problem._replace(is_intercept_free=False)
            descent = CoordinateDescent(penalised, self.watch, self.beta)
            descent.run(self.tol, lambda _: True)
            self.beta, self.is_cold = descent.beta, False
            self.intercept = float(descent.sweep.w[-1])

    def _is_newton_cheaper(self, descent: CoordinateDescent) -> bool:
        """Compare operations: what the sweeps still need, and what steps would.

        Counts, not times: the choice must be the same on every machine.
        """
        sweeps = descent.visits_left() * self._visit_cost()
        return sweeps > TYPICAL_STEPS * self._step_cost(descent.beta)

    def _visit_cost(self) -> float:
        """Operations of a sweep for one sample."""
        design = self.problem.design
        return 2.0 * (design.n_values / design.n + OVERHEAD)

    def _step_cost(self, beta: FloatVector) -> float:
        """Operations of a Newton step from a dual point."""
        design = self.problem.design
        if self._can_form():
            products = design.square_cost
        else:
            products = min(self._n_curved(beta), MOST_SAMPLES) ** 3 / 3.0
        return products / BLAS_SPEED + PASSES * design.n_values

    def _n_curved(self, beta: FloatVector) -> int:
        """How many samples would enter a Newton step from here."""
        is_curved = beta != 0.0
        if not self.problem.loss.is_smooth:
            is_curved &= np.abs(beta) < self.problem.cost
        return int(np.count_nonzero(is_curved))

    def _newton(self, directions: Directions) -> tuple[Certificate, Status]:
        problem, tol = self.problem, self.tol
        smooth = Smooth(problem)
        w, closer = self._begin("newton"), 1.0
        while True:
            reach = closer * tol * problem.unit if problem.is_intercept_free else np.inf
            goal = Goal(closer * tol, closer * tol, reach)
            end = minimise(smooth, directions, w, goal, self.watch)
            self.beta, w, found, status = end
            if found.meets(tol):
                return found, Status.CONVERGED
            if status is not Status.CONVERGED:
                return found, status
            closer *= CLOSER

    def _multipliers(self) -> tuple[Certificate, Status]:
        stiffness, w = FIRST_STIFFNESS, self._begin("proximal")
        if not self.is_cold:
            found = certify(self.problem, self.beta, w)
            stiffness = min(stiffness, max(found.violation, self.tol))
        elif w.any():
            stiffness = COARSE_STIFFNESS
            z = self.problem.design.times(w)
            self.beta = dual_guess(self.problem, z, stiffness)
        return self._proximal_rounds(w, stiffness)

    def _interior(self) -> tuple[Certificate, Status]:
        """Along the path, and across to the bounds by proximal rounds."""
        goal = PATH_END * min(self.tol, 1e-3)
        self.beta, w = follow_path(self.problem, goal, self.watch)
        return self._proximal_rounds(w, CROSSOVER_STIFFNESS)

    def _proximal_rounds(
        self, w: FloatVector, stiffness: float
    ) -> tuple[Certificate, Status]:
        directions, rounds = self._directions(), Rounds(self.tol, stiffness, self.watch)
        end = minimise_proximal(self.problem, directions, (self.beta, w), rounds)
        self.beta = end.dual
        return end.certificate, end.status

    def _begin(self, method: str) -> FloatVector:
        """The weights to begin with: those of the start, of a sample, or zeros."""
        if self.is_cold and is_worth_sampling(self.problem):
            options = self.watch.options
            tol = max(self.tol, COARSE_TOL)
            coarse = replace(
                options, tol=tol, callback=None, started=self.watch.started
            )
            few = sampled(self.problem, options.seed)
            weight = solve_linear(few, coarse, method).weight
            assert weight is not None
            return weight
        if self.is_cold:
            return np.zeros(self.problem.design.n_columns)
        w = self.problem.design.transposed_times(self.beta)
        if self.problem.is_intercept_free:
            w[-1] = self.intercept
        return w

    def _solution(self, found: Certificate, status: Status) -> Solution:
        self.watch.report(found.violation, found.primal, self.problem.design.n, True)
        return proven_solution(self.beta, found, status, self.watch.n_iter)


def _spread(size: FloatVector) -> float:
    """The largest over the smallest that is not 0."""
    size = size[size > 0.0]
    return float(size.max() / size.min()) if len(size) else 1.0


def _free_intercept(problem: LinearProblem, beta: FloatVector) -> float:
    """The intercept at which the dual variables of all samples have the right sum."""
    design = problem.design
    w = design.transposed_times(beta)
    w[-1] = 0.0
    z = design.times(w)
    smooth = Smooth(problem, beta, CROSSOVER_STIFFNESS)
    if problem.loss.is_smooth:
        smooth = Smooth(problem)

    def excess(weight: float) -> float:
        t, _ = smooth.dual_point(z + design.bias * weight)
        return float(t.sum()) - problem.total

    reach = (float(np.abs(z).max()) + problem.unit) / abs(design.bias)
    low, high = -reach, reach
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if excess(middle) > 0.0:  # falls as decision values rise
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _inside(problem: LinearProblem, beta: FloatVector) -> FloatVector:
    """The nearest point of the box."""
    y, c = problem.target, problem.cost
    if problem.loss is Loss.HINGE or problem.loss is Loss.LOGISTIC:
        return y * np.clip(y * beta, 0.0, c)
    if problem.loss is Loss.SQUARED_HINGE:
        return y * np.maximum(y * beta, 0.0)
    if problem.loss is Loss.EPSILON:
        return np.clip(beta, -c, c)
    if problem.loss is Loss.ONE_CLASS:
        return np.clip(beta, 0.0, c)
    if problem.loss is Loss.SQUARED_EPSILON:
        return beta.copy()
    refuse(problem.loss, "A box of dual variables")
