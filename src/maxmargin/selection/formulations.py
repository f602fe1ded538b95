"""What does a fold minimise at a point of the grid, and how is its answer read?

Along a line of the grid one parameter grows, and with it the box or the sums; the
solution at the last point, scaled, is where the next one begins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from maxmargin.data.weights import box_sizes
from maxmargin.kernels.gram import Gram
from maxmargin.models.machine import (
    Reading,
    read_level,
    read_margin,
    read_tube,
    refine_margin,
)
from maxmargin.problems import DualProblem, epsilon_svr, nu_svr, project_start
from maxmargin.problems.classification import ROUNDING, c_svc, largest_nu, nu_svc
from maxmargin.problems.dual import snapped
from maxmargin.selection.sides import Sides
from maxmargin.solvers import Options, Solution, Status
from maxmargin.typing import BoolVector, FloatVector, IntVector

MOSTLY = 2.0 / 3.0  # of the support vectors at their bound

ALL_BOUND = 4.0  # times the way that a step along the means would go at most

Ask = Callable[[], Sides | None]
Again = Callable[[Solution, Options], Solution]


class Setting(NamedTuple):
    """A point of the grid; what a machine has no use for is left as it is."""

    kernel: int  # which of the engine's kernels
    C: float = 1.0
    epsilon: float = 0.0
    nu: float = 0.0


class Place(NamedTuple):
    """Where on its line a setting is, and what is the same along it."""

    at: float
    fixed: float = 0.0


class Start(NamedTuple):
    """Variables, and K times these where that is known."""

    beta: FloatVector
    image: FloatVector | None


class Formulation(Protocol):
    """One machine: its problem, how it walks, how it is read."""

    def place(self, setting: Setting) -> Place:
        """Where a setting is."""

    def is_feasible(self, y: FloatVector, weight: FloatVector, place: Place) -> bool:
        """Whether any point satisfies the constraints."""

    def problem(self, y: FloatVector, weight: FloatVector, place: Place) -> DualProblem:
        """What is minimised there; weight 0 is a sample held out."""

    def begin(self, problem: DualProblem, sides: Ask, fold: int) -> Start | None:
        """A feasible point where there is no solution yet; None: the problem's own."""

    def start(self, problem: DualProblem, near: Start, ratio: float) -> Start:
        """A feasible point, from the solution at a place `ratio` times smaller."""

    def is_final(self, problem: DualProblem, found: Solution) -> bool:
        """Whether it is the solution at all larger places too."""

    def refine(
        self, found: Solution, again: Again, gram: Gram, options: Options
    ) -> Solution:
        """The solution, as exact as the reading needs it."""

    def read(self, found: Solution, gram: Gram) -> Reading:
        """What makes decisions of kernel sums."""


class _Boxed:
    """Machines whose sums are 0, and whose box is C."""

    def is_feasible(self, y: FloatVector, weight: FloatVector, place: Place) -> bool:
        """Zero is always possible."""
        return True

    def begin(self, problem: DualProblem, sides: Ask, fold: int) -> Start | None:
        """At zero."""
        return None

    def start(self, problem: DualProblem, near: Start, ratio: float) -> Start:
        """Scaled if most support vectors were at their bound, where they mostly stay.

        Else as far on that way as the objective falls, if it rises before the end.
        """
        if not np.isfinite(ratio):
            return near
        beta = snapped(problem, ratio * near.beta)
        if near.image is None:
            return Start(beta, None)
        scaled = Start(beta, ratio * near.image)
        n_bound, n_support = _count_at_bound(problem, beta)
        if n_bound >= MOSTLY * max(n_support, 1):
            return scaled
        part = _lowest_multiple(problem, near)
        if part >= 0.5 * (1.0 + ratio):
            return scaled
        if part <= 1.0:
            return near
        return Start(part * near.beta, part * near.image)

    def is_final(self, problem: DualProblem, found: Solution) -> bool:
        """If nobody is at a bound that moves, no larger box makes a difference."""
        n_bound, _ = _count_at_bound(problem, found.beta)
        return found.status is Status.CONVERGED and n_bound == 0

    def refine(
        self, found: Solution, again: Again, gram: Gram, options: Options
    ) -> Solution:
        """It is exact enough."""
        return found

    def read(self, found: Solution, gram: Gram) -> Reading:
        """The level is minus the intercept."""
        return read_level(found)


@dataclass(frozen=True)
class CSvc(_Boxed):
    """C-SVC, along C."""

    has_intercept: bool = True

    def place(self, setting: Setting) -> Place:
        """C grows."""
        return Place(setting.C)

    def problem(self, y: FloatVector, weight: FloatVector, place: Place) -> DualProblem:
        """y is ±1."""
        box = box_sizes(place.at, weight)
        return c_svc(y, box, has_intercept=self.has_intercept)

    def begin(self, problem: DualProblem, sides: Ask, fold: int) -> Start | None:
        """As many at their bound as find a partner, if C is small enough for that.

        Those furthest on the wrong side first. Small enough means that from zero, on
        the way between the means of the classes, that is not yet too far. Boxes of
        different size would leave somebody off a bound, who then sets the intercept.
        """
        boxes = problem.upper - problem.lower
        n_up, n_down = (problem.upper > 0.0).sum(), (problem.lower < 0.0).sum()
        n_each = int(min(n_up, n_down))
        box = float(boxes.max())
        total, is_even = n_each * box, bool(np.isin(boxes, (0.0, box)).all())
        if not (self.has_intercept and is_even and 0.0 < total < np.inf):
            return None
        found = sides()
        if found is None:
            return None
        if total * found.distance > ALL_BOUND:
            return None
        up = _lowest(problem.upper > 0.0, found.lean, n_each)
        down = _lowest(problem.lower < 0.0, -found.lean, n_each)
        beta = np.zeros(len(boxes))
        beta[up], beta[down] = box, -box
        return Start(beta, found.image(beta, fold))


@dataclass(frozen=True)
class EpsilonSvr(_Boxed):
    """epsilon-SVR, along C; each tube is a line of its own."""

    has_intercept: bool = True

    def place(self, setting: Setting) -> Place:
        """C grows."""
        return Place(setting.C, setting.epsilon)

    def problem(self, y: FloatVector, weight: FloatVector, place: Place) -> DualProblem:
        """y is what to predict."""
        box, epsilon = box_sizes(place.at, weight), place.fixed
        return epsilon_svr(y, box, epsilon, has_intercept=self.has_intercept)


class NuSvc:
    """nu-SVC, along nu: the sums grow in a box that stays."""

    def place(self, setting: Setting) -> Place:
        """nu grows."""
        return Place(setting.nu)

    def is_feasible(self, y: FloatVector, weight: FloatVector, place: Place) -> bool:
        """Half of nu must fit into the lighter class."""
        return place.at <= largest_nu(y, weight) * (1.0 + ROUNDING)

    def problem(self, y: FloatVector, weight: FloatVector, place: Place) -> DualProblem:
        """y is ±1."""
        return nu_svc(y, weight, place.at)

    def begin(self, problem: DualProblem, sides: Ask, fold: int) -> Start | None:
        """Where the problem says."""
        return None

    def start(self, problem: DualProblem, near: Start, ratio: float) -> Start:
        """Scaled, but for those that meet their bound: the others make up for them."""
        return Start(project_start(problem, ratio * near.beta), None)

    def is_final(self, problem: DualProblem, found: Solution) -> bool:
        """Sums are larger at every place."""
        return False

    def refine(
        self, found: Solution, again: Again, gram: Gram, options: Options
    ) -> Solution:
        """What is left of the violation is divided by the margin."""
        return refine_margin(found, again, gram, options)

    def read(self, found: Solution, gram: Gram) -> Reading:
        """Decisions are in units of the margin."""
        return read_margin(found, gram)


class NuSvr:
    """nu-SVR, along C, box and sums alike; each nu is a line of its own."""

    def place(self, setting: Setting) -> Place:
        """C grows."""
        return Place(setting.C, setting.nu)

    def is_feasible(self, y: FloatVector, weight: FloatVector, place: Place) -> bool:
        """Half of all boxes is room enough for any nu."""
        return True

    def problem(self, y: FloatVector, weight: FloatVector, place: Place) -> DualProblem:
        """y is what to predict."""
        return nu_svr(y, box_sizes(place.at, weight), place.fixed)

    def begin(self, problem: DualProblem, sides: Ask, fold: int) -> Start | None:
        """Where the problem says."""
        return None

    def start(self, problem: DualProblem, near: Start, ratio: float) -> Start:
        """Scaled, it is feasible as it is."""
        image = None if near.image is None else ratio * near.image
        return Start(project_start(problem, ratio * near.beta), image)

    def is_final(self, problem: DualProblem, found: Solution) -> bool:
        """Sums are larger at every place."""
        return False

    def refine(
        self, found: Solution, again: Again, gram: Gram, options: Options
    ) -> Solution:
        """It is exact enough."""
        return found

    def read(self, found: Solution, gram: Gram) -> Reading:
        """The middle between the edges of the tube."""
        return read_tube(found)


def _lowest(is_open: BoolVector, slope: FloatVector, n: int) -> IntVector:
    """Those of the lowest slope, among variables that have a box."""
    own = np.flatnonzero(is_open)
    return own[np.argsort(slope[own], kind="stable")[:n]]


def _count_at_bound(problem: DualProblem, beta: FloatVector) -> tuple[int, int]:
    """How many of those that are not 0 are at a bound, and how many there are."""
    is_support = beta != 0.0
    is_bound = is_support & ((beta >= problem.upper) | (beta <= problem.lower))
    return int(np.count_nonzero(is_bound)), int(np.count_nonzero(is_support))


def _lowest_multiple(problem: DualProblem, point: Start) -> float:
    """Which multiple of a point has the lowest objective."""
    assert point.image is not None, "without it nothing is known"
    curvature = float(point.beta @ point.image)
    slope = float(problem.linear @ point.beta + problem.kink @ np.abs(point.beta))
    return -slope / curvature if curvature > 0.0 else np.inf
