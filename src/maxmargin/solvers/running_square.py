"""What is Xᵀ Θ X now? What it was, and the samples whose theta has changed since."""

import numpy as np

from maxmargin.data.design import Design
from maxmargin.typing import FloatMatrix, FloatVector

CHANGED_SHARE = 0.5  # of the curved samples: beyond, the matrix is formed anew


class RunningSquare:
    """The matrix at any theta, cheapest near the last theta asked for."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.theta = np.zeros(design.n)
        self.matrix: FloatMatrix | None = None

    def is_near(self, theta: FloatVector) -> bool:
        """Whether few enough samples have changed."""
        n_changed = int(np.count_nonzero(theta != self.theta))
        is_worth = n_changed < CHANGED_SHARE * np.count_nonzero(theta)
        return self.matrix is not None and bool(is_worth)

    def at(self, theta: FloatVector) -> FloatMatrix:
        """Xᵀ diag(theta) X: to be read, not written to."""
        if self.matrix is None or not self.is_near(theta):
            self.matrix = self.design.square(theta)
        elif not np.array_equal(theta, self.theta):
            self.matrix += self.design.square(theta - self.theta)
        self.theta = theta.copy()
        return self.matrix
