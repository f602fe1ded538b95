"""What is kept, and how does it predict?"""

from maxmargin.models.expansion import KernelSum, MatrixSum
from maxmargin.models.machine import (
    Machine,
    fit_c_svc,
    fit_epsilon_svr,
    fit_nu_svc,
    fit_nu_svr,
    fit_one_class,
)
from maxmargin.models.multiclass import (
    PairMachines,
    fit_pairs,
    pair_decisions,
    vote,
)

__all__ = [
    "KernelSum",
    "Machine",
    "MatrixSum",
    "PairMachines",
    "fit_c_svc",
    "fit_epsilon_svr",
    "fit_nu_svc",
    "fit_nu_svr",
    "fit_one_class",
    "fit_pairs",
    "pair_decisions",
    "vote",
]
