"""Which steps does LIBLINEAR take to a solution, and what does it print on its way?

For -s 0, 1, 2, 3 and 11. Its tolerances are loose: where it stops is part of the
answer, and only the same steps, in the same order, stop at the same place. On large
sets they cost ten times what our own solvers take to the optimum, and are not followed.
"""

from dataclasses import dataclass, field

import numpy as np

from maxmargin.errors import NotAvailable
from maxmargin.interop.c_rand import CRand
from maxmargin.interop.liblinear_newton import Minimum, minimise_in_steps
from maxmargin.interop.liblinear_sweeps import Terms, Walk, sweep
from maxmargin.interop.option_strings import PRIMAL, LinearOptions, SolverType
from maxmargin.problems.linear import LinearProblem, Loss, primal_objective
from maxmargin.solvers import Options, Solution, Status
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatMatrix, FloatVector

DUAL = (SolverType.L2R_L2LOSS_SVC_DUAL, SolverType.L2R_L1LOSS_SVC_DUAL)
FOLLOWED = (*PRIMAL, *DUAL)
FOLLOWED_VALUES = 1 << 18  # stored values of X, within a second
MAX_SWEEPS = 300
DOT_EVERY = 10  # sweeps
CLOSER = 0.1  # of the tolerance, after sweeps that did not arrive


@dataclass
class Steps:
    """Solves one problem after the other, and remembers what is to be printed."""

    told: LinearOptions
    options: Options
    random: CRand
    start: FloatMatrix | None = None  # a row per hyperplane
    lines: list[str] = field(default_factory=list)

    @property
    def report(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def solve(self, number: int, problem: LinearProblem) -> Solution:
        """As LIBLINEAR would, from the start that was given."""
        if self.told.solver_type in PRIMAL:
            weight = np.zeros(problem.design.n_columns)
            if self.start is not None:
                weight = self.start[number].copy()
            return self._newton(problem, weight, self._tolerance(problem))
        return self._sweeps(problem)

    def _tolerance(self, problem: LinearProblem) -> float:
        """Of the gradient: smaller where one class is."""
        eps = float(self.told.eps)
        if problem.loss.is_regression:
            return eps
        n = problem.design.n
        n_positive = int(np.count_nonzero(problem.target > 0.0))
        return eps * max(min(n_positive, n - n_positive), 1) / n

    # Newton's method.

    def _newton(
        self, problem: LinearProblem, weight: FloatVector, tol: float
    ) -> Solution:
        watch = Watch(self.options)
        found = minimise_in_steps(problem, weight, tol, watch.is_stopped)
        self._tell_newton(found)
        status = Status.CONVERGED
        if not found.is_reached:
            status = Status.TIME_LIMIT if watch.is_late() else Status.PRECISION_LIMIT
        weight, beta = found.point.weight, found.point.t
        return _solution(problem, weight, beta, len(found.steps) - 1, status)

    def _tell_newton(self, found: Minimum) -> None:
        first = found.steps[0]
        self.lines.append(f"init f {first.objective:5.3e} |g| {first.slope:5.3e}")
        self.lines += [
            f"iter {step.number:2d} f {step.objective:5.3e} |g| {step.slope:5.3e} "
            f"CG {step.n_inner:3d} step_size {step.length:4.2e} "
            for step in found.steps[1:]
        ]
        if found.note:
            self.lines.append(f"WARNING: {found.note}")

    # Dual coordinate descent.

    def _sweeps(self, problem: LinearProblem) -> Solution:
        terms, walk = _terms(problem), _begin(problem)
        watch = Watch(self.options)
        n_sweeps, marks, status = self._descend(problem, terms, walk, watch)
        self.lines += [marks, f"optimization finished, #iter = {n_sweeps}"]
        value = 0.5 * float(walk.weight @ walk.weight)
        value += float(walk.alpha @ (0.5 * terms.ridge * walk.alpha - 1.0))
        self.lines.append(f"Objective value = {value:f}")
        self.lines.append(f"nSV = {np.count_nonzero(walk.alpha)}")
        beta = terms.sign * walk.alpha
        if status is not Status.MAX_ITER:
            return _solution(problem, walk.weight, beta, n_sweeps, status)
        self.lines += ["", "WARNING: reaching max number of iterations"]
        if problem.loss is Loss.HINGE:
            self.lines += ["Using -s 2 may be faster (also see FAQ)", ""]
            return _solution(problem, walk.weight, beta, n_sweeps, status)
        self.lines += ["Switching to use -s 2", ""]
        return self._newton(problem, walk.weight, CLOSER * self._tolerance(problem))

    def _descend(
        self, problem: LinearProblem, terms: Terms, walk: Walk, watch: Watch
    ) -> tuple[int, str, Status]:
        """Sweep until all slopes are small; sweeps, marks, and how it ended."""
        design, eps, marks = problem.design, float(self.told.eps), ""
        state = self.random.state()
        n_active, status = design.n, Status.MAX_ITER
        for n_sweeps in range(1, MAX_SWEEPS + 1):
            n_active = sweep(design.rows, design.bias, terms, walk, n_active, state)
            marks += "." if n_sweeps % DOT_EVERY == 0 else ""
            most, least = walk.slopes
            if most - least <= eps and abs(most) <= eps and abs(least) <= eps:
                if n_active == design.n:
                    status = Status.CONVERGED
                    break
                n_active, marks = design.n, marks + "*"
                walk.slopes[:] = np.inf, -np.inf
                continue
            walk.slopes[0] = most if most > 0.0 else np.inf
            walk.slopes[1] = least if least < 0.0 else -np.inf
            if watch.is_stopped():
                status = Status.TIME_LIMIT
                break
        self.random.resume(state)
        return n_sweeps, marks, status


def _terms(problem: LinearProblem) -> Terms:
    cost, n = problem.cost, problem.design.n
    if problem.loss is Loss.HINGE:
        ridge, upper = np.zeros(n), cost
    elif problem.loss is Loss.SQUARED_HINGE:
        ridge, upper = 0.5 / cost, np.full(n, np.inf)
    else:
        raise NotAvailable(
            f"LIBLINEAR's sweeps are for hinge losses, got {problem.loss.name}."
        )
    return Terms(problem.target, upper, ridge, problem.design.squared_norms + ridge)


def _begin(problem: LinearProblem) -> Walk:
    design = problem.design
    return Walk(
        alpha=np.zeros(design.n),
        weight=np.zeros(design.n_columns),
        order=np.arange(design.n),
        slopes=np.array([np.inf, -np.inf]),
    )


def _solution(
    problem: LinearProblem,
    weight: FloatVector,
    beta: FloatVector,
    n_iter: int,
    status: Status,
) -> Solution:
    objective = primal_objective(problem, weight, problem.design.times(weight))
    return Solution(
        beta=beta,
        level=np.zeros(0),
        status=status,
        n_iter=n_iter,
        violation=np.nan,
        objective=objective,
        gap=np.nan,
        weight=weight,
    )
