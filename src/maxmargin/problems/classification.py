"""What do C-SVC and nu-SVC minimise? (Chang & Lin, ACM TIST 2, 2011, section 2.)"""

import math

import numpy as np

from maxmargin.errors import InfeasibleProblem
from maxmargin.problems.dual import NO_GROUP, DualProblem, fill_in_order
from maxmargin.typing import FloatVector

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


def nu_svc(y: FloatVector, weight: FloatVector, nu: float) -> DualProblem:
    """nu-support vector classification: one equality per label, on LIBSVM's scale."""
    n = len(y)
    check_nu(y, weight, nu)
    positive = y > 0
    total = 0.5 * nu * weight.sum()
    start = np.zeros(n)
    for side, sign in ((positive, 1.0), (~positive, -1.0)):
        start[side] = sign * fill_in_order(weight[side], total)
    return DualProblem(
        linear=np.zeros(n),
        kink=np.zeros(n),
        lower=np.where(positive, 0.0, -weight),
        upper=np.where(positive, weight, 0.0),
        group=np.where(positive, 0, 1),
        row=np.arange(n),
        start=start,
    )


def feasible_nu_svc(y: FloatVector, nu: float, weight: FloatVector) -> DualProblem:
    """nu-SVC where a fold may have left fewer samples than nu needs."""
    return nu_svc(y, weight, min(nu, largest_nu(y, weight)))


def largest_nu(y: FloatVector, weight: FloatVector) -> float:
    """Half of nu times all weight must fit into the lighter class."""
    positive, negative = weight[y > 0].sum(), weight[y <= 0].sum()
    return float(2.0 * min(positive, negative) / weight.sum())


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
    limit = largest_nu(y, weight)
    if nu <= limit * (1.0 + ROUNDING):
        return
    raise InfeasibleProblem(
        f"specified nu is infeasible: nu must be in (0, {round_down(limit):g}] for the "
        f"weights of {classes}, got {nu:g}; lower nu or balance the classes with "
        "class_weight."
    )
