"""What is kept, and how does it predict?"""

from maxmargin.models.expansion import KernelSum, MatrixSum
from maxmargin.models.machine import (
    Machine,
    fit_decision,
    fit_margin,
    fit_tube,
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
    "fit_decision",
    "fit_margin",
    "fit_pairs",
    "fit_tube",
    "pair_decisions",
    "vote",
]
