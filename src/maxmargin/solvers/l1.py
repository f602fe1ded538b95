r"""How is a sum of losses minimised when most weights should be 0? (L1 penalty.)

.. math:: \min_w \sum_j p_j |w_j| + \sum_i C_i \ell_i(\langle w, x_i \rangle)

By a proximal Newton method on working sets. The losses become a quadratic model on the
support and the worst violators; coordinate descent finds its minimum, Newton steps do
where that is slow, and a line search leads there. From a cold start C grows in stages,
and the support with it.
(Yuan, Ho & Lin, JMLR 13, 2012; working sets: Bertrand et al., NeurIPS 35, 2022.)
"""

from typing import NamedTuple

import numpy as np

from maxmargin.problems.linear import (
    TINY,
    Certificate,
    LinearProblem,
    dual_loss,
    primal_objective,
)
from maxmargin.solvers.l1_columns import (
    MOST_SQUARE,
    Face,
    Side,
    Sweeps,
    minimise_columns,
)
from maxmargin.solvers.l1_model import (
    Place,
    minimise_square,
    violations,
)
from maxmargin.solvers.result import Options, Solution, Status, proven_solution
from maxmargin.solvers.smooth import Smooth
from maxmargin.solvers.watch import Watch
from maxmargin.typing import BoolVector, FloatVector

# C in stages.
GROWTH = 10.0  # of C, from stage to stage
FIRST_PULL = 20.0  # the largest gradient at w = 0, in penalties, in the first stage
MOST_STAGES = 6  # more, where one feature is a million times the others, would be waste
LOOSE = 1.0  # violation at which a stage ends

# Working sets.
FIRST_SET = 64  # features
SUPPORTS = 2  # working set, in supports
KEEP = 0.5  # of the largest gain: the set stays while nothing outside promises more

# The model.
FEW_SWEEPS, MANY_SWEEPS = 10, 100  # over columns: a matrix is cheaper than few
INNER, SQUARE_INNER = 0.3, 0.03  # where the model's descent ends, of the violation
TIGHTEST = 1e-3  # the same, near the end
BUDGET = 4.0  # for one model, in the cost of its matrix

# Damping, of the diagonal: a short step says that samples without curvature came in.
SHORT = 0.9
FIRST_DAMPING, LEAST_DAMPING = 1e-3, 1e-5
RAISE, LOWER = 4.0, 0.25

LINE_TRIALS = 40
LINE_TOL = 0.1  # of the slope at the start of the line
STALLED = 6  # steps without progress: slow sweeps are to blame, or else rounding
LESS = 0.9  # of the smallest violation so far is progress
ROUNDING = 1e-15  # of the objective: a smaller decrease may be none


def solve_l1(
    problem: LinearProblem, options: Options, start: FloatVector | None = None
) -> Solution:
    """Solve to `options.tol`, certified in float64.

    At the end the largest violation of a subgradient, in penalties, is at most tol, and
    so is the duality gap relative to the objective. A step costs a pass over X and a
    weighted square of the columns in the working set.

    Parameters
    ----------
    problem : LinearProblem
        Squared hinge or logistic loss.
    options : Options
        Tolerance, limits, seed, callback.
    start : array of shape (n_columns,), optional
        The weights of a former fit.
    """
    run = _Run(problem, options)
    if start is None:
        w, status = run.grow(np.zeros(problem.design.n_columns))
    else:
        w, status = run.descend(problem, start.astype(np.float64))
    return run.solution(w, status)


class Evidence(NamedTuple):
    """What a weight vector proves, computed from scratch."""

    beta: FloatVector  # feasible dual point
    certificate: Certificate


def examine(problem: LinearProblem, w: FloatVector) -> Evidence:
    """Objectives and violation at w."""
    z = problem.design.times(w)
    t, _ = Smooth(problem).dual_point(z)
    gradient = -problem.design.transposed_times(t)
    misses = violations(w, gradient, problem.penalty)
    primal = objective(problem, w, z)
    beta = feasible(problem, t)
    gap = max(primal + dual_loss(problem, beta), 0.0)
    violation = float(misses.max(initial=0.0))
    return Evidence(beta, Certificate(w, primal, gap, violation, TINY))


def objective(problem: LinearProblem, w: FloatVector, z: FloatVector) -> float:
    """Sum of penalties and losses, with z = X w known."""
    losses = primal_objective(problem, np.zeros(len(w)), z)
    return float(problem.penalty @ np.abs(w)) + losses


def feasible(problem: LinearProblem, t: FloatVector) -> FloatVector:
    """A dual point near t: no pull above its penalty, none for a free intercept."""
    beta = t.copy()
    if problem.is_intercept_free:
        ups, downs = np.maximum(beta, 0.0), np.minimum(beta, 0.0)
        up, down = float(ups.sum()), -float(downs.sum())
        if up != down:
            larger = max(up, down)
            beta = ups * (down / larger if up > down else 1.0)
            beta += downs * (up / larger if down > up else 1.0)
    pulls = problem.penalty * problem.design.transposed_times(beta)
    return beta / max(1.0, float(np.abs(pulls).max(initial=0.0)))


class Point(NamedTuple):
    """Weights, and what the losses are like there."""

    w: FloatVector
    z: FloatVector
    theta: FloatVector
    gradient: FloatVector
    misses: FloatVector  # violations

    @property
    def violation(self) -> float:
        return float(self.misses.max(initial=0.0))


class _Run:
    """One problem, and what its stages hand on."""

    def __init__(self, problem: LinearProblem, options: Options) -> None:
        self.problem, self.tol = problem, options.tol
        self.watch = Watch(options)
        self.rng = np.random.default_rng(options.seed)
        self.design, self.penalty = problem.design, problem.penalty
        self.curves = self.design.squares_times(problem.cost)
        self.curves[self.curves == 0.0] = 1.0  # empty columns never gain anything
        self.whole = Side(self.design)
        self.face = Face(self.whole, np.empty(0, dtype=np.intp))
        self.is_stiff = False  # sweeps over columns were too many
        self.damping = 0.0
        self.found: Evidence | None = None

    def grow(self, w: FloatVector) -> tuple[FloatVector, Status]:
        """Stage after stage from w = 0."""
        smooth = Smooth(self.problem)
        t, _ = smooth.dual_point(np.zeros(self.design.n))
        pulls = np.abs(self.penalty * self.design.transposed_times(t))
        excess = max(float(pulls.max(initial=0.0)) / FIRST_PULL, 1.0)
        n_stages = min(round(np.log(excess) / np.log(GROWTH)), MOST_STAGES)
        for k in range(n_stages):
            share = excess ** (k / n_stages - 1.0)
            stage = self.problem._replace(cost=share * self.problem.cost)
            w, _ = self.descend(stage, w)
        return self.descend(self.problem, w)

    def descend(
        self, problem: LinearProblem, w: FloatVector
    ) -> tuple[FloatVector, Status]:
        """Newton steps from w until the problem is solved, or a stage of it over."""
        smooth = Smooth(problem)
        progress = _Progress()
        z = self.design.times(w)
        is_first = True
        while True:
            point = self._look(smooth, w, z)
            value = objective(problem, w, z)
            self.watch.report(point.violation, value, self._n_active())
            if self._is_solved(problem, point):
                return w, Status.CONVERGED
            progress.note(w, value, point.violation)
            status = self._ending(progress, point.violation)
            if status is not None:
                return progress.w, status
            self._choose(point, is_first)
            w, z = self._step(smooth, point)
            self.watch.n_iter += 1
            is_first = False

    def _look(self, smooth: Smooth, w: FloatVector, z: FloatVector) -> Point:
        t, theta = smooth.dual_point(z)
        gradient = -self.design.transposed_times(t)
        misses = violations(w, gradient, self.penalty)
        return Point(w, z, theta, gradient, misses)

    def _is_solved(self, problem: LinearProblem, point: Point) -> bool:
        if problem is not self.problem:
            return point.violation <= LOOSE
        if point.violation > self.tol:
            return False
        self.found = examine(problem, point.w)
        return self.found.certificate.meets(self.tol)

    def _ending(self, progress: "_Progress", violation: float) -> Status | None:
        """A limit; or that rounding hides the way: only after Newton steps in vain."""
        limit = self.watch.limit()
        if limit is not None:
            return limit
        is_stalled = progress.n_stalled >= STALLED
        if violation == 0.0 or (is_stalled and self.is_stiff):
            return Status.PRECISION_LIMIT
        if is_stalled:
            self.is_stiff = True
            progress.n_stalled = 0
        return None

    def _choose(self, point: Point, is_first: bool) -> None:
        """A new working set, unless the old one still promises the most.

        In the first step of a stage all violations are due to the larger C, and say
        little about who will be needed.
        """
        gains = point.misses**2 / self.curves
        outside = gains.copy()
        outside[self.face.columns] = 0.0
        is_kept = is_first and len(self.face.columns) > 0
        if is_kept or float(outside.max()) <= KEEP * float(gains.max()):
            return
        is_in = (point.w != 0.0) | (self.penalty == 0.0)
        others = np.flatnonzero((point.misses > 0.0) & ~is_in)
        order = np.argsort(-gains[others], kind="stable")
        is_in[others[order[: _room(is_in)]]] = True
        self.face = Face(self.whole, np.flatnonzero(is_in))

    def _step(self, smooth: Smooth, point: Point) -> tuple[FloatVector, FloatVector]:
        """The next w and z."""
        at = self.face.columns
        old, new = point.w[at], self._model_minimum(point)
        d = new - old
        u = self.face.times(d)
        line = Line(old, d, self.penalty[at], point.z, u)
        step = line.search(smooth)
        if step < SHORT:
            self.damping = max(RAISE * self.damping, FIRST_DAMPING)
        elif step == 1.0:
            self.damping *= LOWER if self.damping > LEAST_DAMPING else 0.0
        w = point.w.copy()
        w[at] = new if step == 1.0 else old + step * d
        return w, point.z + step * u

    def _model_minimum(self, point: Point) -> FloatVector:
        face, theta, at = self.face, point.theta, self.face.columns
        place = Place(point.w[at], point.gradient[at], self.penalty[at])
        most = MANY_SWEEPS
        if face.is_small:
            most = int(min(face.square_in_sweeps(theta), MANY_SWEEPS))
            if self.is_stiff or most < FEW_SWEEPS:
                self._minimise_square(place, theta)
                return place.x
        sweeps = Sweeps(_goal(place, INNER), most, self.rng, self.watch)
        is_met = minimise_columns(face.weighted(theta), place, sweeps)
        self.is_stiff |= face.is_small and not is_met
        return place.x

    def _minimise_square(self, place: Place, theta: FloatVector) -> None:
        goal = _goal(place, SQUARE_INNER)
        square = self.face.square(theta)
        budget = BUDGET * self.face.design.square_cost
        if self.damping > 0.0:
            square = square.copy()
            at = np.diag_indices_from(square)
            square[at] += self.damping * self.curves[self.face.columns]
        minimise_square(square, place, goal, budget, self.rng, self.watch)

    def _n_active(self) -> int:
        """The columns of the working set; all, before there is one."""
        return len(self.face.columns) or self.design.n_columns

    def solution(self, w: FloatVector, status: Status) -> Solution:
        """The last word, computed from scratch."""
        if self.found is None or self.found.certificate.weight is not w:
            self.found = examine(self.problem, w)
        beta, found = self.found
        self.watch.report(found.violation, found.primal, self._n_active(), True)
        return proven_solution(beta, found, status, self.watch.n_iter)


def _goal(place: Place, inner: float) -> float:
    """Violation at which the model is good enough: the nearer the end, the smaller."""
    worst = place.violation
    return worst * min(max(worst, TIGHTEST), inner)


def _room(is_in: BoolVector) -> int:
    """How many may join those who are in."""
    n_in = int(np.count_nonzero(is_in))
    size = max(FIRST_SET, SUPPORTS * n_in)
    if n_in <= 0.8 * MOST_SQUARE:
        size = min(size, MOST_SQUARE)
    return size - n_in


class _Progress:
    """The lowest point so far, and for how many steps it has been so."""

    def __init__(self) -> None:
        self.w = np.empty(0)
        self.value = self.violation = self.least = np.inf
        self.n_stalled = 0

    def note(self, w: FloatVector, value: float, violation: float) -> None:
        """Progress is a lower objective, or a violation clearly smaller than ever.

        Among points that rounding makes equally low, the one with the least violation
        is the best.
        """
        has_fallen = value < self.value - ROUNDING * abs(value)
        is_nearer = violation < LESS * self.violation
        self.n_stalled = 0 if has_fallen or is_nearer else self.n_stalled + 1
        if has_fallen or violation < self.least:
            self.w, self.least = w, violation
        self.value = min(self.value, value)
        self.violation = min(self.violation, violation)


class Line(NamedTuple):
    """From w to w + d, on the working set, and from z to z + u."""

    w: FloatVector
    d: FloatVector
    penalty: FloatVector
    z: FloatVector
    u: FloatVector

    def slope(self, smooth: Smooth, step: float) -> tuple[float, float]:
        """First and second derivative; at a kink, the one on the side of the start."""
        slope, curve = smooth.along(self.z, self.u, step)
        there = self.w + step * self.d
        towards = np.sign(self.d) if step == 0.0 else -np.sign(self.d)
        side = np.where(there == 0.0, towards, np.sign(there))
        return slope + float((self.penalty * side) @ self.d), curve

    def search(self, smooth: Smooth) -> float:
        """A step of at most 1 that goes down: about where the slope is 0.

        A slope grows along the line, so that the sum of the slopes at half the step
        and at its end, if it is not positive, proves that the objective falls.
        """
        first, _ = self.slope(smooth, 0.0)
        if first >= 0.0:
            return 0.0
        low, high, step = 0.0, 1.0, 1.0
        for _ in range(LINE_TRIALS):
            slope, curve = self.slope(smooth, step)
            if slope <= 0.0 and step == 1.0:
                return step
            is_flat = abs(slope) <= LINE_TOL * -first
            if is_flat and self.slope(smooth, 0.5 * step)[0] + slope <= 0.0:
                return step
            low, high = (step, high) if slope < 0.0 else (low, step)
            step = step - slope / curve if curve > 0.0 else low
            if not low < step < high:
                step = 0.5 * (low + high)
        return low
