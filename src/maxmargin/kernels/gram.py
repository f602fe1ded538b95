"""Where do rows of K come from? From vectors, from a matrix, or from a function."""

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import DTypeLike

from maxmargin._threads import raise_if_stopped
from maxmargin.data.rows import DenseRows, Rows, densify_if_better
from maxmargin.errors import InvalidInput
from maxmargin.kernels.functions import RBF, Kernel, Linear, centring, suited_to
from maxmargin.kernels.held import POSITIVE, copy_of, part_of_kernel
from maxmargin.kernels.panel_rows import WIDEST, pack_rows
from maxmargin.kernels.provider import GramRows, KernelProvider, LinearRows
from maxmargin.kernels.single import SingleRows, is_mild
from maxmargin.kernels.source import (
    RowSource,
    make_source,
)
from maxmargin.kernels.tiles import fill_tiles, is_all, sum_rows, symmetric
from maxmargin.typing import FloatMatrix, FloatVector, IntVector, KernelMatrix

BLOCK_ENTRIES = 1 << 22  # kernel values summed at once: 32 MB
SOURCE_VALUES = 1 << 18  # 2 MB of samples: beyond, blocks of rows by BLAS are faster
SYMMETRY_ROWS = 256  # compared at a time
ASYMMETRY = 1e-5  # of the largest value: more than rounding, in float32 too
CALL_ENTRIES = 1 << 23  # a callable kernel is asked for at most this many values


class Gram(Protocol):
    """The kernel between all training rows, computed when asked for.

    Columns are asked for in ascending order, so n of them are all of them. `shift` is
    set where K is that of rows about another origin: what to subtract from the kernel
    between a row and any sample about the old one.
    """

    n: int
    shift: FloatVector | None

    def diagonal(self) -> FloatVector:
        """K_ii."""

    def bound(self) -> float:
        """A number that no |K_ij| exceeds; inf where none is known."""

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        """Write K_ij for these rows and columns, computed in float64."""

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        """The weighted sum of these rows in some columns, in float64."""
        return sum_blocks(self, rows, weight, columns)

    def source(self, columns: IntVector) -> RowSource | None:
        """What compiled code needs to compute rows over these columns, if it can."""
        return None

    def provider(self) -> KernelProvider:
        """What computes whole rows for decomposition; in float64 by default."""
        return GramRows(self, getattr(self, "n_threads", 1))

    def take(self, index: IntVector) -> "Gram":
        """The Gram matrix of these rows alone."""


def gram_block(
    gram: Gram, rows: IntVector, columns: IntVector, dtype: DTypeLike = np.float64
) -> KernelMatrix:
    """K_ij for these rows and columns, as a new matrix."""
    out = np.empty((len(rows), len(columns)), dtype=dtype)
    gram.fill(rows, columns, out)
    return out


def whole_matrix(gram: Gram) -> FloatMatrix:
    """All of K."""
    if isinstance(gram, MatrixGram):
        return np.ascontiguousarray(gram.K, dtype=np.float64)
    if isinstance(gram, VectorGram):
        return symmetric(gram.kernel, gram.rows, gram.n_threads)
    everything = np.arange(gram.n)
    return gram_block(gram, everything, everything)


def slope_size(gram: Gram, weight: FloatVector) -> float:
    """How large K @ weight may be at a row with weight, since |K_ij|² <= K_ii K_jj.

    Where a kernel is indefinite, and its bound shows it, that stands for every value.
    """
    first = np.zeros(1, dtype=np.intp)
    size = slope_sizes(np.abs(weight), first, gram.diagonal(), gram.bound())
    return float(size[0])


def slope_sizes(
    size: FloatVector, first: IntVector, diagonal: FloatVector, bound: float
) -> FloatVector:
    """The same of problems one after the other, which begin there."""
    diagonal = np.abs(diagonal)
    total: FloatVector = np.add.reduceat(size, first)
    if POSITIVE * float(diagonal.max()) < bound < np.inf:
        return bound * total
    root = np.where(size > 0.0, np.sqrt(diagonal), 0.0)
    largest: FloatVector = np.maximum.reduceat(root, first)
    return largest * np.add.reduceat(root * size, first)


def sum_blocks(
    gram: Gram, rows: IntVector, weight: FloatVector, columns: IntVector
) -> FloatVector:
    """The weighted sum of rows, some of which are written out at a time."""
    out = np.zeros(len(columns))
    step = max(1, BLOCK_ENTRIES // max(len(columns), 1))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        out += weight[part] @ gram_block(gram, rows[part], columns)
    return out


class VectorGram:
    """K between vectors: tiles of dot products on a fixed grid, on threads.

    Where dual variables sum to zero (`is_balanced`), the origin is free: with the
    linear kernel another one changes nothing but the intercept. (The square of the new
    one is part of `shift` for the sake of sums that are zero up to rounding only.)
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        n_threads: int = 1,
        *,
        is_balanced: bool = False,
    ) -> None:
        rows = densify_if_better(rows)
        middle = centring(kernel, rows, is_balanced)
        self.shift: FloatVector | None = None
        if middle is not None and isinstance(rows, DenseRows):
            rows = rows.centred_on(middle)
            if isinstance(kernel, Linear):
                self.shift = rows.values @ middle + middle @ middle
        self.n, self.kernel, self.rows = len(rows), suited_to(kernel, rows), rows
        self.n_threads = n_threads
        self._provider: KernelProvider | None = None
        self._diagonal: FloatVector | None = None  # every pair of classes asks for
        self._bound: float | None = None  # these two

    def diagonal(self) -> FloatVector:
        if self._diagonal is None:
            self._diagonal = self.kernel.of_self(self.rows)
        return self._diagonal

    def bound(self) -> float:
        if self._bound is None:
            self._bound = self.kernel.bound(self.rows)
        return self._bound

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        everything = is_all(columns, self.n)
        others = self.rows if everything else self.rows.take(columns)
        fill_tiles(self.kernel, self.rows.take(rows), others, out, self.n_threads)

    def sums(
        self, rows: IntVector, weight: FloatVector, columns: IntVector
    ) -> FloatVector:
        return sum_rows(self.kernel, self.rows, rows, weight, columns, self.n_threads)

    def source(self, columns: IntVector) -> RowSource | None:
        """What compiled code needs to compute rows over these columns by itself."""
        rows = self.rows
        if not isinstance(rows, DenseRows):
            return None
        if len(columns) * rows.n_columns > SOURCE_VALUES:
            return None
        return make_source(self.kernel, rows.take(columns))

    def provider(self) -> KernelProvider:
        """Made once: folds and pairs of classes that share this matrix share it too.

        In float32, where that is nearly as exact.
        """
        if self._provider is None:
            self._provider = self._make_provider()
        return self._provider

    def _make_provider(self) -> KernelProvider:
        kernel, rows, n_threads = self.kernel, self.rows, self.n_threads
        if isinstance(kernel, Linear):
            return LinearRows(self, n_threads)
        if not isinstance(kernel, RBF):
            return GramRows(self, n_threads)
        if not isinstance(rows, DenseRows):
            norms = rows.squared_norms()
            if not is_mild(kernel, norms):
                return GramRows(self, n_threads)
            return SingleRows(kernel, rows.single(), norms, n_threads)
        middle = rows.middle()
        norms = rows.norms_about(middle)
        if not is_mild(kernel, norms):
            return GramRows(self, n_threads)
        if rows.n_columns <= WIDEST:
            return pack_rows(kernel, rows, norms, middle, n_threads)
        return SingleRows(kernel, rows.single(middle), norms, n_threads)

    def take(self, index: IntVector) -> "VectorGram":
        part = VectorGram(self.kernel, self.rows.take(index), n_threads=1)
        part.shift = None if self.shift is None else self.shift[index]
        return part


def is_linear(gram: Gram) -> TypeGuard[VectorGram]:
    """Whether a weighted sum of rows costs a vector w and its products with samples."""
    return isinstance(gram, VectorGram) and isinstance(gram.kernel, Linear)


class MatrixGram(Gram):
    """K given as a square matrix."""

    def __init__(
        self,
        K: FloatMatrix,
        bound: float | None = None,
        shift: FloatVector | None = None,
    ) -> None:
        self.n, self.K, self._bound, self.shift = len(K), K, bound, shift

    def diagonal(self) -> FloatVector:
        return self.K.diagonal().astype(np.float64)

    def bound(self) -> float:
        if self._bound is None:
            self._bound = float(max(self.K.max(), -self.K.min()))
        return self._bound

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        whole_rows = is_all(columns, self.n)
        out[...] = self.K[rows] if whole_rows else self.K[np.ix_(rows, columns)]

    def take(self, index: IntVector) -> "MatrixGram":
        shift = None if self.shift is None else self.shift[index]
        return MatrixGram(copy_of(part_of_kernel(self.K, index)), self.bound(), shift)


class RowsGram(Gram):
    """K from a Python function of two blocks of samples, of whatever kind they are.

    The function is asked for whole rows: its second argument is always the full
    training set, as scikit-learn does, and small sets are asked for at once.
    """

    shift: FloatVector | None = None

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        X: Any,
        index: IntVector,
        diagonal: FloatVector | None = None,
    ) -> None:
        self.n, self.function, self.X, self.index = len(index), function, X, index
        self._diagonal = diagonal
        self._asking = threading.Lock()

    def diagonal(self) -> FloatVector:
        """K_ii, computed once, by the thread that comes first."""
        with self._asking:
            if self._diagonal is None:
                self._diagonal = self._ask_diagonal()
            return self._diagonal

    def _ask_diagonal(self) -> FloatVector:
        """It takes all rows to find them."""
        everything = np.arange(self.n)
        step = self._rows_per_call()
        parts = [
            gram_block(self, part, everything)[np.arange(len(part)), part]
            for part in np.split(everything, np.arange(step, self.n, step))
        ]
        return np.concatenate(parts)

    def bound(self) -> float:
        return np.inf

    def fill(self, rows: IntVector, columns: IntVector, out: KernelMatrix) -> None:
        step = self._rows_per_call()
        for first in range(0, len(rows), step):
            raise_if_stopped()
            part = slice(first, first + step)
            block = take_samples(self.X, self.index[rows[part]])
            K = call_kernel(self.function, block, self.X)
            out[part] = K[:, self.index[columns]]

    def take(self, index: IntVector) -> "RowsGram":
        diagonal = self.diagonal()[index]
        return RowsGram(self.function, self.X, self.index[index], diagonal)

    def _rows_per_call(self) -> int:
        return max(1, CALL_ENTRIES // count_samples(self.X))


def gram_of_function(
    function: Callable[[Any, Any], Any], X: Any, index: IntVector
) -> Gram:
    """Ask once where the answer is small, row by row otherwise."""
    n = count_samples(X)
    if n * n > CALL_ENTRIES:
        return RowsGram(function, X, index)
    K = call_kernel(function, X, X)
    check_symmetric(K)
    return MatrixGram(K[np.ix_(index, index)])


def check_symmetric(K: KernelMatrix) -> None:
    """A kernel of (x, z) is that of (z, x): otherwise nothing is being minimised."""
    largest = float(max(K.max(), -K.min()))
    for first in range(0, len(K), SYMMETRY_ROWS):
        part = slice(first, first + SYMMETRY_ROWS)
        difference = float(np.abs(K[part] - K[:, part].T).max())
        if difference > ASYMMETRY * largest:
            raise InvalidInput(
                "The kernel matrix must be symmetric, but K[i, j] and K[j, i] differ "
                f"by up to {difference:.3g} in rows {first} to "
                f"{min(first + SYMMETRY_ROWS, len(K)) - 1}; pass (K + K.T) / 2."
            )


def count_samples(X: Any) -> int:
    """How many samples a list, an array or a sparse matrix holds."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_samples(X: Any, index: IntVector) -> Any:
    """These samples, of an array, a sparse matrix, a data frame or a plain list."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    return X[index] if hasattr(X, "shape") else [X[i] for i in index]


def call_kernel(function: Callable[[Any, Any], Any], a: Any, b: Any) -> FloatMatrix:
    """The function's answer as a float64 matrix of the right shape, or an error."""
    answer = function(a, b)
    if hasattr(answer, "toarray"):
        answer = answer.toarray()
    values = np.asarray(answer)
    if values.dtype.kind not in "biuf":
        raise InvalidInput(
            "A callable kernel must return a matrix of real numbers, got "
            f"{type(answer).__name__} of dtype {values.dtype}."
        )
    K = np.asarray(values, dtype=np.float64, order="C")
    expected = (count_samples(a), count_samples(b))
    if K.shape != expected:
        raise InvalidInput(
            f"A callable kernel must return one value per pair: expected shape "
            f"{expected} for {expected[0]} and {expected[1]} samples, got {K.shape}."
        )
    if not np.isfinite(K).all():
        raise InvalidInput("The callable kernel returned NaN or infinity.")
    return K
