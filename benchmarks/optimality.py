"""Is a point of a dual problem feasible, and is it optimal?

The one checker of tests and benchmarks. It shares no code with maxmargin: plain NumPy,
on whatever precision the point comes in (`benchmarks.fitted` uses extended precision).
A problem is

    min  1/2 b'Kb + linear'b + kink |b|_1   with  lower <= b <= upper, group sums fixed

and the measures are the group sums, the box, LIBSVM's stopping rule, and the duality
gap from primal and dual values that are summed independently of each other.

What rounding explains: K b cannot be known, nor b be stored, more exactly than
eps * sum_j |K_ij b_j|. `ROUNDING` times that is allowed for each slope; a kernel whose
own evaluation loses more says so in `size`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.intp]

AT_BOUND = 1e-12  # of the bound: a variable no further from it counts as on it
OUTSIDE = 1e-12  # of the box: what a variable may be outside, bounds are products
SUM_ERROR = 1e-9  # of the sum of |beta|: what a group's sum may be off by
STORED = 4 * np.finfo(np.float64).eps  # of a level that was stored
ROUNDING = 64 * np.finfo(np.float64).eps  # of the terms that make up a slope


class Solved(NamedTuple):
    """A problem and a point of it."""

    image: Floats  # K @ beta
    size: Floats  # |K| @ |beta|, or more where K itself rounds more than |K| eps
    linear: Floats
    kink: Any  # one number, or one per variable
    lower: Floats
    upper: Floats
    group: Ints  # -1: free of any equality
    sums: tuple[float, ...]
    beta: Floats
    levels: tuple[float, ...]  # multipliers of the sums, as the intercept implies them
    scale: float = 1.0  # stored coefficients are beta / scale
    budget: float = np.inf  # nu-SVR: sum |b| may not pass it, and its kink is unknown

    @property
    def grad(self) -> Floats:
        return self.image + self.linear

    @property
    def slack(self) -> Floats:
        """What rounding alone may add to each slope, or to its distance from a level.

        Levels of nu-SVC are sums of the margin and one stored intercept, which rounds
        with the largest of them.
        """
        kink = np.abs(self.kink)
        stored = STORED * max((abs(level) for level in self.levels), default=0.0)
        return ROUNDING * (self.size + np.abs(self.linear) + kink) + stored


class Measures(NamedTuple):
    """What a point is worth. Feasible: the first two are at most 1."""

    sum_error: float  # the worst group, in units of SUM_ERROR * sum |beta|
    box_error: float  # the worst variable, in units of OUTSIDE * its box
    violation: float  # LIBSVM's stopping rule
    level_error: float  # how far the intercept is outside its optimal interval
    violation_beyond: float  # the same two, less what rounding explains
    level_beyond: float
    rounding: float  # the largest slack of a slope
    objective: float  # the dual one, as LIBSVM prints it (nu-SVC: over scale squared)
    gap: float  # primal minus dual, likewise; nan where the box is infinite
    gap_bound: float  # no gap of a feasible point with this level error is larger
    objective_rounding: float
    objective_terms: float  # the size of what the objective is summed from
    spent: float  # sum |beta|: what an error of 1 in all slopes adds to the objective
    scale: float  # the objective before it is divided is objective * scale squared

    @property
    def is_feasible(self) -> bool:
        return bool(self.sum_error <= 1.0 and self.box_error <= 1.0)

    def is_optimal(self, tol: float) -> bool:
        """Feasible, and violating the conditions by tol and rounding at most."""
        worst = max(self.violation_beyond, self.level_beyond)
        return self.is_feasible and bool(worst <= tol * (1 + 1e-9))


def measure(solved: Solved) -> Measures:
    """All measures of one point."""
    exact, beyond = violations(solved, 0.0), violations(solved, solved.slack)
    dual, primal = dual_value(solved), primal_value(solved)
    width = np.where(np.isfinite(solved.upper), solved.upper - solved.lower, 0.0)
    blur = float(solved.slack @ (np.abs(solved.beta) + width))
    scale = solved.scale**2
    terms = 0.5 * np.abs(solved.image) + np.abs(solved.linear) + np.abs(solved.kink)
    off = sum(abs(a) * b for a, b in zip(solved.levels, sums_off(solved), strict=True))
    worst = exact[1] if solved.sums else exact[0]  # of a slope, from its level
    bound = max(worst, 0.0) * float(width.sum()) + off + blur
    return Measures(
        sum_error=sum_error(solved),
        box_error=box_error(solved),
        violation=exact[0],
        level_error=exact[1],
        violation_beyond=beyond[0],
        level_beyond=beyond[1],
        rounding=float(np.max(solved.slack, initial=0.0)),
        objective=float(dual / scale),
        gap=float((dual - primal) / scale),
        gap_bound=float(bound / scale),
        objective_rounding=float(blur / scale),
        objective_terms=float(np.abs(solved.beta) @ terms / scale),
        spent=float(np.abs(solved.beta).sum() / scale),
        scale=solved.scale,
    )


# ----------------------------------------------------------------------- feasibility
def sums_off(solved: Solved) -> list[float]:
    """How far each group is from its sum."""
    return [
        abs(float(solved.beta[solved.group == g].sum() - total))
        for g, total in enumerate(solved.sums)
    ]


def sum_error(solved: Solved) -> float:
    """The worst group's error, in units of what rounding explains.

    The differences stored by nu-SVR are of variables whose sum is its budget, and
    which may cancel: each rounds by itself.
    """
    total = float(np.abs(solved.beta).sum())
    worst = max(sums_off(solved), default=0.0)
    allowed = SUM_ERROR * max(total, float(np.abs(solved.sums).sum()))
    if np.isfinite(solved.budget):
        worst = max(worst, total - solved.budget)
        allowed += ROUNDING * solved.budget
    return _in_units(worst, allowed)


def box_error(solved: Solved) -> float:
    """The worst variable's distance from its box, in units of what rounding explains.

    A coefficient that is not a number is infinitely far away.
    """
    beta, lower, upper = solved.beta, solved.lower, solved.upper
    if not np.all(np.isfinite(beta)):
        return float(np.inf)
    off = np.maximum(np.maximum(lower - beta, beta - upper), 0.0)
    allowed = OUTSIDE * box_size(solved)
    return max((_in_units(o, a) for o, a in zip(off, allowed, strict=True)), default=0)


def _in_units(error: float, allowed: float) -> float:
    if error <= 0.0:
        return 0.0
    return float(error / allowed) if allowed > 0.0 else float(np.inf)


def box_size(solved: Solved) -> Floats:
    """The larger finite bound of each variable."""
    ends = np.abs(np.stack((solved.lower, solved.upper)))
    return np.where(np.isfinite(ends), ends, 0.0).max(axis=0)


# ------------------------------------------------------------------------ optimality
def violations(solved: Solved, slack: Any) -> tuple[float, float]:
    """KKT violation and level error, each slope taken where within slack it is best."""
    if np.isfinite(solved.budget):
        return nu_svr_violation(solved, slack)
    ends = derivatives(solved, solved.kink, slack)
    if not solved.sums:
        return projected_violation(*ends), 0.0
    return group_violation(solved, *ends)


def derivatives(solved: Solved, kink: Any, slack: Any = 0.0) -> tuple[Floats, Floats]:
    """Left derivative where beta may fall, right one where it may rise; else -+inf."""
    b, grad = solved.beta, solved.grad
    can_fall, can_rise = free_to_move(solved)
    left = grad + np.where(b > 0, kink, -kink) - slack
    right = grad + np.where(b >= 0, kink, -kink) + slack
    return np.where(can_fall, left, -np.inf), np.where(can_rise, right, np.inf)


def free_to_move(solved: Solved) -> tuple[Any, Any]:
    """Which variables may fall, and which may rise.

    A bound other than zero is a product, and is reached up to its rounding.
    """
    low, high = solved.lower, solved.upper
    near_low = AT_BOUND * np.where(np.isfinite(low), np.abs(low), 0.0)
    near_high = AT_BOUND * np.where(np.isfinite(high), np.abs(high), 0.0)
    return solved.beta > low + near_low, solved.beta < high - near_high


def group_violation(solved: Solved, left: Floats, right: Floats) -> tuple[float, float]:
    """The largest violating pair inside a group, and the worst level's error."""
    violation, error = 0.0, 0.0
    for g, level in enumerate(solved.levels):
        here = solved.group == g
        highest = left[here].max(initial=-np.inf)
        lowest = right[here].min(initial=np.inf)
        violation = max(violation, float(highest - lowest))
        error = max(error, float(highest - level), float(level - lowest))
    return violation, error


def best_levels(solved: Solved) -> tuple[float, ...]:
    """For each group the middle between its highest and its lowest slope."""
    left, right = derivatives(solved, solved.kink)
    levels = []
    for g in range(len(solved.sums)):
        here = solved.group == g
        ends = left[here].max(initial=-np.inf), right[here].min(initial=np.inf)
        known = [float(end) for end in ends if np.isfinite(end)]
        levels.append(sum(known) / max(len(known), 1))
    return tuple(levels)


def projected_violation(left: Floats, right: Floats) -> float:
    """Without a group: the largest projected gradient."""
    return float(max(left.max(), -right.min(), 0.0))


# --------------------------------------------------------------------------- nu-SVR
def nu_svr_violation(solved: Solved, slack: Any) -> tuple[float, float]:
    """nu-SVR through its n stored differences: the tube is the multiplier of |b|_1.

    The best tube makes this violation equal to that of the 2n variables. Where the
    tube closes, alpha and alpha* of a row cancel by an unknown share: the violation
    found is then at most twice theirs, and half of it is returned.
    """
    closed = is_closed(solved)
    tube = 0.0 if closed else best_tube(solved)
    left, right = derivatives(solved, tube, slack)
    violation = float(left.max() - right.min()) / (2 if closed else 1)
    return violation, tube_level_error(solved, slack) / 2


def is_closed(solved: Solved) -> bool:
    """Whether the tube of nu-SVR has no width: sum |b| is below what it may be."""
    return bool(np.abs(solved.beta).sum() < solved.budget * (1 - SUM_ERROR))


def tube_ends(solved: Solved, slack: Any = 0.0) -> tuple[float, float, float, float]:
    """What a tube t and a level must meet: above + t <= level <= below - t, and
    inside_high - t <= level <= inside_low + t."""
    b, (can_fall, can_rise) = solved.beta, free_to_move(solved)
    lowered, raised = solved.grad - slack, solved.grad + slack
    above = lowered[b > 0].max(initial=-np.inf)
    below = raised[b < 0].min(initial=np.inf)
    inside_high = lowered[can_fall & (b <= 0)].max(initial=-np.inf)
    inside_low = raised[can_rise & (b >= 0)].min(initial=np.inf)
    return above, below, inside_high, inside_low


def best_tube(solved: Solved) -> float:
    """The half width of the tube that minimises the violation."""
    above, below, inside_high, inside_low = tube_ends(solved)
    width = (inside_high - inside_low) - (above - below)
    return max(0.0, float(width) / 4) if np.isfinite(width) else 0.0


def level_tube(solved: Solved, slack: Any = 0.0) -> float:
    """The half width that suits the level best; 0 where the tube is closed."""
    above, below, inside_high, inside_low = tube_ends(solved, slack)
    level = solved.levels[0]
    outside = max(above - level, level - below)
    inside = max(inside_high - level, level - inside_low)
    width = (inside - outside) / 2
    return 0.0 if is_closed(solved) or not np.isfinite(width) else max(0.0, width)


def tube_level_error(solved: Solved, slack: Any) -> float:
    """How far the level is off for the tube that suits it best: both may be open."""
    above, below, inside_high, inside_low = tube_ends(solved, slack)
    level, tube = solved.levels[0], level_tube(solved, slack)
    outside = max(above - level, level - below)
    inside = max(inside_high - level, level - inside_low)
    return float(max(outside + tube, inside - tube))


# --------------------------------------------------------------------------- the gap
def dual_value(solved: Solved) -> Any:
    """1/2 b'Kb + linear'b + kink |b|, the function that is minimised."""
    b = solved.beta
    value = 0.5 * b @ solved.image + solved.linear @ b
    return value + (solved.kink * np.abs(b)).sum()


def primal_value(solved: Solved) -> Any:
    """Minus the primal objective at w = K b and the stored levels; nan if unbounded.

    By duality no feasible point has a smaller dual value, whatever w and the levels.
    """
    if not np.all(np.isfinite(solved.upper) & np.isfinite(solved.lower)):
        return np.nan
    kink, constant = solved.kink, 0.0
    if np.isfinite(solved.budget):
        kink = level_tube(solved)
        constant = -kink * solved.budget
    slope = solved.grad
    for g, (level, total) in enumerate(zip(solved.levels, solved.sums, strict=True)):
        slope = slope - np.where(solved.group == g, level, 0.0)
        constant = constant + level * total
    up = np.minimum((slope + kink) * np.maximum(solved.upper, 0.0), 0.0)
    down = np.minimum((kink - slope) * np.maximum(-solved.lower, 0.0), 0.0)
    least = np.minimum(up, down)
    return least.sum() + constant - 0.5 * solved.beta @ solved.image
