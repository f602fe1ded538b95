"""What do epsilon-SVR and nu-SVR minimise? (Chang & Lin, ACM TIST 2, 2011, sec. 2.)"""

import numpy as np

from maxmargin.problems.dual import NO_GROUP, DualProblem, fill_in_order
from maxmargin.typing import FloatVector


def epsilon_svr(
    z: FloatVector, C: FloatVector, epsilon: float, *, has_intercept: bool = True
) -> DualProblem:
    """epsilon-support vector regression: n variables, the tube is a kink at zero."""
    n = len(z)
    return DualProblem(
        linear=-z,
        kink=np.full(n, float(epsilon)),
        lower=-C,
        upper=C.copy(),
        group=np.full(n, 0 if has_intercept else NO_GROUP),
        row=np.arange(n),
        start=np.zeros(n),
    )


def nu_svr(z: FloatVector, C: FloatVector, nu: float) -> DualProblem:
    """nu-support vector regression: above and below the tube are two variables a row.

    The tube is found rather than given: half the distance between the two levels.
    """
    n = len(z)
    half = fill_in_order(C, 0.5 * nu * C.sum())
    return DualProblem(
        linear=np.concatenate((-z, -z)),
        kink=np.zeros(2 * n),
        lower=np.concatenate((np.zeros(n), -C)),
        upper=np.concatenate((C, np.zeros(n))),
        group=np.repeat((0, 1), n),
        row=np.tile(np.arange(n), 2),
        start=np.concatenate((half, -half)),
    )
