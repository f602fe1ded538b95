r"""What would a machine say about each sample, had it not seen that one? No refits.

While the set of free variables F stays what it is, taking a sample away moves the
solution along a straight line, and the factor of the free block tells how far
(Cauwenberghs & Poggio, 2000; Opper & Winther, 2000). With the bordered matrix

.. math:: M = \begin{pmatrix} K_{FF} & 1 \\ 1^\top & 0 \end{pmatrix}^{-1}

a free sample's decision value falls by :math:`\beta_i / M_{ii}`, one at its bound by
:math:`\beta_i (K_{ii} - v_i^\top M v_i)` with :math:`v_i = (K_{Fi}, 1)`, and that of
any other does not change. O(|F|³ + |F|² n_SV), memory |F|² and a block of rows.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.models.held_out import Solved
from maxmargin.problems.dual import DualProblem, is_interior
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

RIDGE = 1e-10  # of the mean of the diagonal: equal samples make the block singular
BLOCK_ENTRIES = 1 << 22  # kernel values held at once


def leave_one_out_decisions(solved: Solved) -> FloatVector:
    """The decision value of every sample without it; of one group, or none."""
    problem, gram = solved.state(solved.weight), solved.gram
    machine = solved.machine
    beta = machine.solution.beta
    free = np.flatnonzero(is_interior(problem, beta))
    bound = np.setdiff1d(np.flatnonzero(beta), free)
    factor = _Factor(problem, gram, free) if len(free) else None
    decisions = machine.decisions.copy()
    diagonal = gram.diagonal()
    if factor is None:
        decisions[bound] -= beta[bound] * diagonal[bound]
        return decisions
    decisions[free] -= beta[free] / factor.inverse_diagonal()
    step = max(1, BLOCK_ENTRIES // len(free))
    for first in range(0, len(bound), step):
        part = bound[first : first + step]
        left = factor.unexplained(part, diagonal[part])
        decisions[part] -= beta[part] * left
    return decisions


class _Factor:
    """The Cholesky factor of the free block, and what its border adds."""

    def __init__(self, problem: DualProblem, gram: Gram, free: IntVector) -> None:
        self.gram, self.free = gram, free
        K = gram_block(gram, free, free)
        K[np.diag_indices_from(K)] += RIDGE * float(np.abs(K.diagonal()).mean())
        self.factor = cho_factor(K, lower=True, overwrite_a=True)
        self.has_border = not problem.is_free_of_equalities
        self.border = cho_solve(self.factor, np.ones(len(free)))
        self.total = float(self.border.sum())

    def inverse_diagonal(self) -> FloatVector:
        """M_ii of the free samples."""
        inverse: FloatMatrix = cho_solve(self.factor, np.eye(len(self.free)))
        diagonal: FloatVector = inverse.diagonal().copy()
        if self.has_border:
            diagonal -= self.border**2 / self.total
        return diagonal

    def unexplained(self, rows: IntVector, diagonal: FloatVector) -> FloatVector:
        """K_ii - v'Mv of these rows."""
        K = gram_block(self.gram, rows, self.free).T
        half = solve_triangular(self.factor[0], K, lower=True)
        left: FloatVector = diagonal - np.einsum("fr,fr->r", half, half)
        if self.has_border:
            left += (self.border @ K - 1.0) ** 2 / self.total
        return left
