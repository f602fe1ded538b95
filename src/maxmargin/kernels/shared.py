"""What have kernels of different gamma in common? Distances, or dot products.

They are computed once; each gamma then costs one pass over memory.
"""

from functools import partial

import numpy as np

from maxmargin._jit import jit
from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.rows import (
    CITY_BLOCK,
    SQUARED,
    DenseRows,
    Rows,
    densify_if_better,
)
from maxmargin.errors import InvalidInput, refuse
from maxmargin.kernels.elementwise import (
    ROUNDING,
    fill_exponential,
    fill_polynomial,
    fill_sigmoid,
)
from maxmargin.kernels.functions import (
    RBF,
    ExactRBF,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    centring,
    suited_to,
)
from maxmargin.kernels.memory import new_square
from maxmargin.kernels.turning import copy_turned
from maxmargin.typing import FloatMatrix, FloatVector

OF_PAIRS = (Linear, Polynomial, RBF, ExactRBF, Sigmoid, Laplacian)  # others: of rows
STEP = 64  # rows in a task: what one pass wrote is at hand for the next


class SharedPairs:
    """What all kernels of one family need to know of every pair of samples.

    A kernel that is no function of one dot product or distance shares nothing: its
    values are computed from the rows, for each gamma anew.
    """

    def __init__(self, kernels: list[Kernel], rows: Rows, n_threads: int) -> None:
        """`kernels` are of one kind, and differ in gamma alone."""
        self.n_threads = n_threads
        widest = max(kernels, key=lambda kernel: getattr(kernel, "gamma", 0.0))
        rows = densify_if_better(rows)
        middle = centring(widest, rows)
        if middle is not None and isinstance(rows, DenseRows):
            rows = rows.centred_on(middle)
        kind, self.rows = suited_to(widest, rows), rows
        self.has_pairs = isinstance(kind, OF_PAIRS)
        if not self.has_pairs:
            self.pairs = new_square(len(rows))  # memory for values, and nothing else
        elif isinstance(kind, ExactRBF | Laplacian):
            power = CITY_BLOCK if isinstance(kind, Laplacian) else SQUARED
            self.pairs = new_square(len(rows))
            self._each(partial(_fill_distances, self.pairs, rows, power))
        elif isinstance(rows, DenseRows):
            self.pairs = new_square(len(rows))
            norms = rows.squared_norms() if isinstance(kind, RBF) else None
            self._each(partial(_fill_dots, self.pairs, rows, norms))
        else:
            self.pairs = np.asarray(rows.dots(rows), dtype=np.float64)
            if isinstance(kind, RBF):
                turn = partial(_turn_to_distances, self.pairs, rows.squared_norms())
                self._each(turn)

    def fill(self, kernel: Kernel, room: FloatMatrix) -> FloatMatrix:
        """K in float64, written over what was there."""
        totals = np.zeros(-(-len(room) // STEP))
        if self.has_pairs:
            self._each(partial(_fill_kernel, kernel, self.pairs, room, totals))
        else:
            self._each(partial(_fill_rows, kernel, self.rows, room, totals))
        if not np.isfinite(totals).all():
            raise InvalidInput(
                "Kernel values overflowed: they must be finite numbers; scale the "
                "features or lower gamma, coef0 or degree."
            )
        return room

    def bound(self, kernel: Kernel, K: FloatMatrix) -> float:
        """No value is larger in size: those of a sigmoid are no products."""
        if not self.has_pairs or isinstance(kernel, Sigmoid):
            return kernel.bound(self.rows)
        return float(np.abs(K.diagonal()).max())

    def _each(self, work: partial[None]) -> None:
        n = len(self.pairs)
        tasks = [partial(work, k, min(k + STEP, n)) for k in range(0, n, STEP)]
        run_all(tasks, self.n_threads)


def _fill_distances(
    pairs: FloatMatrix, rows: Rows, power: int, first: int, last: int
) -> None:
    raise_if_stopped()
    pairs[first:last] = rows.take(slice(first, last)).distances(rows, power)


def _fill_dots(
    pairs: FloatMatrix,
    rows: DenseRows,
    norms: FloatVector | None,
    first: int,
    last: int,
) -> None:
    """Dot products with rows up to these, or distances; the others see their mirror."""
    raise_if_stopped()
    met = rows.take(slice(0, last))
    with np.errstate(over="ignore", invalid="ignore"):  # K is checked where it is used
        rows.take(slice(first, last)).dots(met, out=pairs[first:last, :last])
    if norms is not None:
        _turn_to_distances(pairs, norms[:last], first, last)
    copy_turned(pairs, (first, last), (0, first), pairs, (0, first))


@jit
def _turn_to_distances(
    dots: FloatMatrix, norms: FloatVector, first: int, last: int
) -> None:
    """Squared distances in the place of dot products; 0 where only rounding is left.

    Of these rows, and of as many columns as there are norms.
    """
    for i in range(first, last):
        row = dots[i]
        for j in range(norms.size):
            both = norms[i] + norms[j]
            distance = both - 2.0 * row[j]
            row[j] = distance if distance > ROUNDING * both else 0.0


def _fill_kernel(
    kernel: Kernel,
    pairs: FloatMatrix,
    out: FloatMatrix,
    totals: FloatVector,
    first: int,
    last: int,
) -> None:
    """These rows of K, and their total, which is not finite if any value is not."""
    raise_if_stopped()
    part, corner = pairs[first:last], (first, 0)
    if isinstance(kernel, RBF | ExactRBF | Laplacian):
        fill_exponential(part, kernel.gamma, out, corner)
    elif isinstance(kernel, Polynomial):
        fill_polynomial(part, (kernel.gamma, kernel.coef0, kernel.degree), out, corner)
    elif isinstance(kernel, Sigmoid):
        fill_sigmoid(part, (kernel.gamma, kernel.coef0), out, corner)
    elif isinstance(kernel, Linear):
        out[first:last] = part
    else:
        refuse(kernel, "A kernel from dot products or distances of all pairs")
    with np.errstate(over="ignore", invalid="ignore"):
        totals[first // STEP] = out[first:last].sum()


def _fill_rows(
    kernel: Kernel,
    rows: Rows,
    out: FloatMatrix,
    totals: FloatVector,
    first: int,
    last: int,
) -> None:
    """The same for a kernel that shares nothing with others."""
    raise_if_stopped()
    with np.errstate(over="ignore", invalid="ignore"):
        kernel.fill(rows.take(slice(first, last)), rows, out, (first, 0))
        totals[first // STEP] = out[first:last].sum()
