"""What does a solver take and give? Values, and a status that can speak."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from maxmargin.problems.linear import Certificate
from maxmargin.solvers.tuning import TUNING, Tuning
from maxmargin.typing import FloatVector


class Status(Enum):
    """How a fit ended, from best to worst."""

    CONVERGED = "The KKT violation is at most tol, in float64."
    PRECISION_LIMIT = (
        "Rounding in float64 hides what is left of the violation: scale the features, "
        "lower C or the range of the kernel, or raise tol. With C=inf, perhaps no "
        "solution meets every constraint."
    )
    STALLED = (
        "Stopped because the KKT violation hardly decreases any more: scale the "
        "features, lower C, or raise tol; max_iter sets a limit of your own."
    )
    TIME_LIMIT = "Stopped at time_limit: raise it, raise tol, or scale the features."
    MAX_ITER = "Stopped at max_iter: raise it, raise tol, or scale the features."

    @property
    def rank(self) -> int:
        """0 for convergence, larger for worse."""
        return list(Status).index(self)


class PairRule(IntEnum):
    """How the pair to move is chosen."""

    FIRST_ORDER = 1  # the maximal violating pair
    SECOND_ORDER = 2  # the partner that promises the largest decrease


@dataclass(frozen=True)
class Progress:
    """What a callback receives, about ten times a second and once at the end."""

    n_iter: int
    violation: float
    objective: float
    n_active: int  # variables not shrunk away
    cache_hits: int = 0
    cache_misses: int = 0


@dataclass(frozen=True)
class Options:
    """How to solve, apart from what."""

    tol: float = 1e-3
    max_iter: int = -1  # -1: as long as the violation decreases
    time_limit: float | None = None  # seconds
    started: float | None = None  # on the clock of `_clock`; None: when solving begins
    working_set: PairRule = PairRule.SECOND_ORDER
    shrinking: bool = True
    method: str = "auto"  # of kernel machines: "grow", "smo"
    cache_bytes: int = 200 << 20
    polish: bool = True
    confirm: bool = True  # compute float32 slopes afresh in float64 before the end
    seed: int = 0  # of the order in which linear solvers visit samples or features
    n_problems: int = 1  # of the fit, such as pairs of classes: they share its patience
    callback: Callable[[Progress], object] | None = None
    tuning: Tuning = TUNING


@dataclass(frozen=True)
class Solution:
    """A point, its multipliers and the float64 evidence for it."""

    beta: FloatVector
    level: FloatVector  # one per group; minus their mean is the intercept
    status: Status
    n_iter: int
    violation: float
    objective: float
    gap: float
    cache_hits: int = 0
    cache_misses: int = 0
    grad: FloatVector | None = None  # kernel machines: the slope of every variable
    weight: FloatVector | None = None  # linear machines: w, the intercept's at the end


def proven_solution(
    beta: FloatVector, found: Certificate, status: Status, n_iter: int
) -> Solution:
    """What a certificate of a linear machine says of its dual point."""
    return Solution(
        beta=beta,
        level=np.zeros(0),
        status=status,
        n_iter=n_iter,
        violation=found.violation,
        objective=found.primal,
        gap=found.gap,
        weight=found.weight,
    )
