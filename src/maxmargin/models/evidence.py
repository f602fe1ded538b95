"""What does one solved problem say about itself? LIBSVM's figures, and how it ended."""

from dataclasses import dataclass

import numpy as np

from maxmargin.models.calibration import Sigmoid
from maxmargin.models.machine import Machine
from maxmargin.problems import DualProblem
from maxmargin.solvers import Status
from maxmargin.solvers.gradient import weight_of


@dataclass(frozen=True)
class KernelEvidence:
    """A machine, and what is counted of its support vectors."""

    machine: Machine
    n_support: int
    n_bounded: int  # support vectors at their upper bound
    nu: float  # C-SVC and epsilon-SVR: the nu that would lead to the same machine
    C: float  # nu-SVC: the C that would
    epsilon: float  # nu-SVR: the tube that was found
    sigmoid: Sigmoid | None = None  # of a pair of classes, where folds were given
    fold_status: Status = Status.CONVERGED  # how the worst of them ended

    @property
    def rho(self) -> float:
        return -self.machine.intercept


def weigh(machine: Machine, problem: DualProblem) -> KernelEvidence:
    """Count what is at its bound; nobody is in a box that is closed."""
    n, solution = len(machine.coef), machine.solution
    size = np.abs(weight_of(problem, solution.beta, n))
    bound = np.zeros(n)
    np.maximum.at(bound, problem.row, np.maximum(problem.upper, -problem.lower))
    level, total = solution.level, float(bound.sum())
    half = 0.5 * float(level[0] - level[1]) if len(level) == 2 else 0.0
    return KernelEvidence(
        machine=machine,
        n_support=int(np.count_nonzero(size)),
        n_bounded=int(np.count_nonzero((size > 0.0) & (size >= bound))),
        nu=float(size.sum()) / total,
        C=1.0 / half if half != 0.0 else np.inf,
        epsilon=-half,
    )
