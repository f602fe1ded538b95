"""What does the one-class machine minimise? (Schölkopf et al., 2001.)"""

import numpy as np

from maxmargin.problems.dual import DualProblem, fill_in_order
from maxmargin.typing import FloatVector


def one_class(weight: FloatVector, nu: float) -> DualProblem:
    """One-class machine on LIBSVM's scale: a share nu of all weight is spent."""
    n = len(weight)
    return DualProblem(
        linear=np.zeros(n),
        kink=np.zeros(n),
        lower=np.zeros(n),
        upper=weight.copy(),
        group=np.zeros(n, dtype=np.intp),
        row=np.arange(n),
        start=fill_in_order(weight, nu * weight.sum()),
    )
