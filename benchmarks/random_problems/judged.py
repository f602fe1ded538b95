"""What is a fit worth? Its objective and its KKT violation, recomputed in float64.

The kernel is scikit-learn's, the problem and its measures are those of the checker that
shares no code with maxmargin.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from benchmarks.fitted import judge
from benchmarks.random_problems.problems import Problem
from benchmarks.random_problems.worker import TOL

SHAPE = ("gamma", "degree", "coef0")


class Worth(NamedTuple):
    """The sum of all objectives, and the worst violation beyond rounding."""

    objective: float
    violation: float
    is_feasible: bool


def kernel_matrix(problem: Problem) -> np.ndarray:
    """K between all samples."""
    shape = {k: v for k, v in problem.parameters.items() if k in SHAPE}
    return pairwise_kernels(problem.X, metric=problem.parameters["kernel"], **shape)


def worth_of(problem: Problem, K: np.ndarray, attributes: dict[str, Any]) -> Worth:
    """Of any library's answer, in scikit-learn's layout."""
    kind = type(problem.machine, (SimpleNamespace,), {})
    told = problem.parameters | attributes | {"kernel": "precomputed", "tol": TOL}
    if problem.n_classes:
        told.setdefault("classes_", np.unique(problem.y))
        told["class_weight_"] = np.ones(problem.n_classes)
    measures = judge(kind(**told), K, problem.y, dtype=np.float64)
    return Worth(
        sum(m.objective * m.scale**2 for m in measures),
        max(max(m.violation_beyond, m.level_beyond) for m in measures),
        all(m.is_feasible for m in measures),
    )
