"""What is minimised? Five machines, stated as values of one dual problem."""

from maxmargin.problems.classification import c_svc, nu_svc
from maxmargin.problems.dual import (
    DualProblem,
    dual_gap,
    dual_objective,
    group_levels,
    kkt_violation,
    project_start,
)
from maxmargin.problems.novelty import one_class
from maxmargin.problems.regression import epsilon_svr, nu_svr

__all__ = [
    "DualProblem",
    "c_svc",
    "dual_gap",
    "dual_objective",
    "epsilon_svr",
    "group_levels",
    "kkt_violation",
    "nu_svc",
    "nu_svr",
    "one_class",
    "project_start",
]
