"""What is the kernel between two rows? One formula per kernel, over blocks of rows."""

from typing import NamedTuple, TypeAlias

import numpy as np

from maxmargin.data.rows import CITY_BLOCK, SQUARED, DenseRows, Rows
from maxmargin.kernels.elementwise import (
    fill_exponential,
    fill_polynomial,
    fill_rbf,
    fill_sigmoid,
)
from maxmargin.typing import FloatVector, KernelMatrix

EXACT_FROM = (
    1e4  # times 2e-16: where dot products would spoil the exponent's 12th digit
)
FAR_OFF = 16.0  # squared distance of all rows from the origin, in their mean spread
MILD = 16.0  # mean exponent of a row: float64 then has digits to spare
Corner: TypeAlias = tuple[int, int]  # first row and column of a tile


class Linear(NamedTuple):
    """<x, z>."""

    def fill(self, a: Rows, b: Rows, out: KernelMatrix, corner: Corner) -> None:
        """Write the kernel between rows of a and of b, as a tile of `out`."""
        top, left = corner
        out[top : top + len(a), left : left + len(b)] = a.dots(b)

    def of_self(self, rows: Rows) -> FloatVector:
        """The kernel of each row with itself."""
        return rows.squared_norms()

    def bound(self, rows: Rows) -> float:
        """No kernel value between these rows is larger in size."""
        return float(rows.squared_norms().max())


class Polynomial(NamedTuple):
    """(gamma <x, z> + coef0) ** degree."""

    gamma: float
    coef0: float
    degree: int

    def fill(self, a: Rows, b: Rows, out: KernelMatrix, corner: Corner) -> None:
        shape = self.gamma, self.coef0, self.degree
        fill_polynomial(a.dots(b), shape, out, corner)

    def of_self(self, rows: Rows) -> FloatVector:
        out = np.empty((1, len(rows)))
        norms = rows.squared_norms()[None, :]
        shape = self.gamma, self.coef0, self.degree
        fill_polynomial(norms, shape, out, (0, 0))
        return out[0]

    def bound(self, rows: Rows) -> float:
        largest = self.gamma * float(rows.squared_norms().max()) + abs(self.coef0)
        with np.errstate(over="ignore"):  # an infinite bound is a bound
            return float(np.float64(largest) ** self.degree)


class RBF(NamedTuple):
    """exp(-gamma |x - z|²)."""

    gamma: float

    def fill(self, a: Rows, b: Rows, out: KernelMatrix, corner: Corner) -> None:
        norms = a.squared_norms(), b.squared_norms()
        fill_rbf(a.dots(b), norms, self.gamma, out, corner)

    def of_self(self, rows: Rows) -> FloatVector:
        return np.ones(len(rows))

    def bound(self, rows: Rows) -> float:
        return 1.0


class ExactRBF(NamedTuple):
    """exp(-gamma |x - z|²) from differences: slower, and right for any gamma."""

    gamma: float

    def fill(self, a: Rows, b: Rows, out: KernelMatrix, corner: Corner) -> None:
        fill_exponential(a.distances(b, SQUARED), self.gamma, out, corner)

    def of_self(self, rows: Rows) -> FloatVector:
        return np.ones(len(rows))

    def bound(self, rows: Rows) -> float:
        return 1.0


class Sigmoid(NamedTuple):
    """tanh(gamma <x, z> + coef0); not positive definite for every choice."""

    gamma: float
    coef0: float

    def fill(self, a: Rows, b: Rows, out: KernelMatrix, corner: Corner) -> None:
        fill_sigmoid(a.dots(b), (self.gamma, self.coef0), out, corner)

    def of_self(self, rows: Rows) -> FloatVector:
        return np.tanh(self.gamma * rows.squared_norms() + self.coef0)

    def bound(self, rows: Rows) -> float:
        return 1.0


class Laplacian(NamedTuple):
    """exp(-gamma sum |x - z|)."""

    gamma: float

    def fill(self, a: Rows, b: Rows, out: KernelMatrix, corner: Corner) -> None:
        fill_exponential(a.distances(b, CITY_BLOCK), self.gamma, out, corner)

    def of_self(self, rows: Rows) -> FloatVector:
        return np.ones(len(rows))

    def bound(self, rows: Rows) -> float:
        return 1.0


Kernel: TypeAlias = Linear | Polynomial | RBF | ExactRBF | Sigmoid | Laplacian
KERNELS: dict[str, type[Kernel]] = {  # by their words in constructors and model files
    "linear": Linear,
    "poly": Polynomial,
    "rbf": RBF,
    "sigmoid": Sigmoid,
    "laplacian": Laplacian,
}


def suited_to(kernel: Kernel, rows: Rows) -> Kernel:
    """The same kernel, computed from differences where dot products would not do.

    Distances from dot products are exact to rounding of the largest squared norm; a
    large gamma would make that rounding visible.
    """
    if not isinstance(kernel, RBF) or not len(rows):
        return kernel
    largest = float(rows.squared_norms().max())
    if 2.0 * kernel.gamma * largest > EXACT_FROM:
        return ExactRBF(kernel.gamma)
    return kernel


def centring(
    kernel: Kernel, rows: Rows, is_balanced: bool = False
) -> FloatVector | None:
    """The vector to subtract from all rows first, or None if little is to be gained.

    A distance from dot products loses what the norms have in common; dense rows moved
    to their middle have the smallest norms. With the linear kernel slopes lose what all
    rows have in common; there another origin is allowed where `is_balanced`.
    """
    if not isinstance(rows, DenseRows) or not len(rows):
        return None
    if isinstance(kernel, RBF):
        is_mild = kernel.gamma * float(rows.squared_norms().mean()) <= MILD
        return None if is_mild else rows.middle()
    if isinstance(kernel, Linear) and is_balanced:
        middle = rows.middle()
        with np.errstate(over="ignore"):  # infinite values are refused elsewhere
            common = float(middle @ middle)
        spread = float(rows.squared_norms().mean()) - common
        return middle if common > FAR_OFF * spread else None
    return None
