"""What do C-SVC and nu-SVC minimise? (Chang & Lin, ACM TIST 2, 2011, section 2.)"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.data.labels import Labels
from maxmargin.errors import InfeasibleProblem
from maxmargin.problems.dual import NO_GROUP, DualProblem
from maxmargin.typing import BoolVector, FloatVector, IntVector

ROUNDING = 1e-12  # sums of weights are no more exact than this


def c_svc(y: FloatVector, C: FloatVector, *, has_intercept: bool = True) -> DualProblem:
    """C-support vector classification: y is ±1, C has one bound per sample."""
    n, positive = len(y), y > 0
    return DualProblem(
        linear=-y,
        kink=np.zeros(n),
        lower=np.where(positive, 0.0, -C),
        upper=np.where(positive, C, 0.0),
        group=np.full(n, 0 if has_intercept else NO_GROUP),
        row=np.arange(n),
        start=np.zeros(n),
    )


def nu_svc(
    y: FloatVector, weight: FloatVector, nu: float, end: IntVector | None = None
) -> DualProblem:
    """nu-support vector classification: one equality per label, on LIBSVM's scale.

    Several problems may stand one after the other, each up to its `end`.
    """
    sides = _sides(y, weight, end)
    for limit in _largest_nu(sides):
        _check_nu(nu, limit, "the two classes")
    return _nu_svc(y, weight, np.full(len(sides.end), nu), sides)


def feasible_nu_svc(
    y: FloatVector, nu: float, weight: FloatVector, end: IntVector | None = None
) -> DualProblem:
    """nu-SVC where a fold may have left fewer samples than nu needs."""
    sides = _sides(y, weight, end)
    return _nu_svc(y, weight, np.minimum(nu, _largest_nu(sides)), sides)


class _Sides(NamedTuple):
    """Sums of weights in each of several problems."""

    end: IntVector
    positive: FloatVector
    negative: FloatVector


def _sides(y: FloatVector, weight: FloatVector, end: IntVector | None) -> _Sides:
    if end is None:
        end = np.array([len(y)])
    first = np.concatenate(([0], end[:-1]))
    positive = np.add.reduceat(np.where(y > 0, weight, 0.0), first)
    return _Sides(end, positive, np.add.reduceat(np.where(y > 0, 0.0, weight), first))


def _nu_svc(
    y: FloatVector, weight: FloatVector, nu: FloatVector, sides: _Sides
) -> DualProblem:
    n, positive = len(y), y > 0
    total = 0.5 * nu * (sides.positive + sides.negative)
    start = np.zeros(n)
    _fill_sides(weight, positive, sides.end, total, start)
    return DualProblem(
        linear=np.zeros(n),
        kink=np.zeros(n),
        lower=np.where(positive, 0.0, -weight),
        upper=np.where(positive, weight, 0.0),
        group=np.where(positive, 0, 1),
        row=np.arange(n),
        start=start,
    )


@jit
def _fill_sides(
    weight: FloatVector,
    positive: BoolVector,
    end: IntVector,
    total: FloatVector,
    start: FloatVector,
) -> None:
    """The first variables of each side at their bounds, up to half of nu."""
    first = 0
    for p in range(len(end)):
        up, down = total[p], total[p]
        for k in range(first, end[p]):
            if positive[k]:
                start[k] = min(weight[k], up)
                up -= start[k]
            else:
                start[k] = -min(weight[k], down)
                down += start[k]
        first = end[p]


def largest_nu(y: FloatVector, weight: FloatVector) -> float:
    """Half of nu times all weight must fit into the lighter class."""
    return float(_largest_nu(_sides(y, weight, None))[0])


def _largest_nu(sides: _Sides) -> FloatVector:
    total: FloatVector = sides.positive + sides.negative
    return 2.0 * np.minimum(sides.positive, sides.negative) / total


def round_down(value: float) -> float:
    """Three significant digits, never more than the value itself."""
    if value <= 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.floor(value / unit) * unit


def check_nu(
    y: FloatVector, weight: FloatVector, nu: float, classes: str = "the two classes"
) -> None:
    """Refuse a nu that no solution can have."""
    _check_nu(nu, largest_nu(y, weight), classes)


def check_nu_of_pairs(labels: Labels, weight: FloatVector, nu: float) -> None:
    """Refuse a nu that is infeasible for some pair of classes."""
    of_class = np.bincount(labels.code, weight, minlength=labels.n_classes)
    for i, j in labels.pairs():
        limit = 2.0 * min(of_class[i], of_class[j]) / (of_class[i] + of_class[j])
        if nu > limit * (1.0 + ROUNDING):
            names = f"classes {labels.classes[i]} and {labels.classes[j]}"
            _check_nu(nu, limit, names)


def _check_nu(nu: float, limit: float, classes: str) -> None:
    if nu <= limit * (1.0 + ROUNDING):
        return
    raise InfeasibleProblem(
        f"specified nu is infeasible: nu must be in (0, {round_down(limit):g}] for the "
        f"weights of {classes}, got {nu:g}; lower nu or balance the classes with "
        "class_weight."
    )
