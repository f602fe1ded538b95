"""How does a machine predict? Sums of kernels with its support vectors, in blocks."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from maxmargin._threads import raise_if_stopped, run_all
from maxmargin.data.rows import DenseRows, Rows, SparseRows, densify_if_better
from maxmargin.kernels.functions import Kernel, Linear, centring, suited_to
from maxmargin.kernels.gram import (
    CALL_ENTRIES,
    call_kernel,
    count_samples,
    take_samples,
)
from maxmargin.typing import FloatMatrix, IntVector

BLOCK_ROWS = 32  # test rows at a time, always: BLAS rounds other shapes differently
BLOCK_COLUMNS = 512  # support vectors at a time
TASK_ROWS = 256  # test rows per task of a thread
MAX_DENSE_COLUMNS = 1 << 14  # a block of sparse test rows is written out up to here

MANY_WEIGHTS = 1 << 20  # from here on, fewer values than columns are left as they are
FEW_CELLS = 1 << 12  # values of support vectors: too few for `coef_` to save time

Part = tuple[slice, FloatMatrix]  # some support vectors, and their coefficients


class KernelSum:
    """K(x, support) @ coefficients for vectors, holding a block of K at a time.

    Blocks have one shape, filled up with zeros if need be, so that a row alone gets
    the very value that it gets among others.
    """

    def __init__(self, kernel: Kernel, support: Rows) -> None:
        if support.n_columns <= MAX_DENSE_COLUMNS and not isinstance(kernel, Linear):
            support = densify_if_better(support)
        self.middle = centring(kernel, support) if len(support) else None
        self.support = support
        self.support = self._alike(support)
        self.kernel = suited_to(kernel, self.support)

    def of(
        self, rows: Rows, parts: Sequence[Part], n_threads: int
    ) -> list[FloatMatrix]:
        """One matrix per part: test rows by coefficient columns."""
        if isinstance(self.kernel, Linear) and self._has_weights():
            return [self._of_linear(rows, part) for part in parts]
        sums = [np.zeros((len(rows), weight.shape[1])) for _, weight in parts]
        tasks = [
            partial(self._add_task, rows, parts, sums, first)
            for first in range(0, len(rows), TASK_ROWS)
        ]
        run_all(tasks, n_threads)
        return sums

    def _has_weights(self) -> bool:
        """Whether one vector of weights costs less than the support vectors do."""
        n_columns, n_values = self.support.n_columns, self.support.n_values
        is_mostly_empty = n_columns > max(MANY_WEIGHTS, n_values)
        return len(self.support) * n_columns > FEW_CELLS and not is_mostly_empty

    def _alike(self, rows: Rows) -> Rows:
        """Rows in the layout and position of the support vectors."""
        if isinstance(rows, SparseRows) and isinstance(self.support, DenseRows):
            rows = rows.dense()
        if self.middle is None or not isinstance(rows, DenseRows):
            return rows
        return rows.centred_on(self.middle)

    def _of_linear(self, rows: Rows, part: Part) -> FloatMatrix:
        where, weight = part
        support = self.support.take(where)
        direction = support.weighted_sum(np.ascontiguousarray(weight.T))
        return rows.times(np.ascontiguousarray(direction.T))

    def _add_task(
        self,
        rows: Rows,
        parts: Sequence[Part],
        sums: list[FloatMatrix],
        first: int,
    ) -> None:
        for begin in range(first, min(first + TASK_ROWS, len(rows)), BLOCK_ROWS):
            near = slice(begin, min(begin + BLOCK_ROWS, len(rows)))
            block = self._alike(rows.take(near))
            if isinstance(block, DenseRows):
                block = block.padded(BLOCK_ROWS)
            for part, total in zip(parts, sums, strict=True):
                total[near] = self._sum(block, part)[: near.stop - near.start]

    def _sum(self, block: Rows, part: Part) -> FloatMatrix:
        where, weight = part
        total = np.zeros((BLOCK_ROWS, weight.shape[1]))
        for first in range(where.start, where.stop, BLOCK_COLUMNS):
            raise_if_stopped()
            last = min(first + BLOCK_COLUMNS, where.stop)
            K = np.zeros((BLOCK_ROWS, last - first))
            self.kernel.fill(block, self.support.take(slice(first, last)), K, (0, 0))
            total += K @ weight[first - where.start : last - where.start]
        return total


def weigh(K: FloatMatrix, weight: FloatMatrix) -> FloatMatrix:
    """K @ weight, in the blocks that `KernelSum` uses."""
    out = np.empty((len(K), weight.shape[1]))
    for top in range(0, len(K), BLOCK_ROWS):
        near = slice(top, min(top + BLOCK_ROWS, len(K)))
        block = DenseRows(K[near]).padded(BLOCK_ROWS).values
        total = np.zeros((BLOCK_ROWS, weight.shape[1]))
        for left in range(0, len(weight), BLOCK_COLUMNS):
            there = slice(left, left + BLOCK_COLUMNS)
            total += np.ascontiguousarray(block[:, there]) @ weight[there]
        out[near] = total[: near.stop - near.start]
    return out


class MatrixSum:
    """K(x, training set) @ coefficients where K is given, or a function gives it."""

    def __init__(self, support: IntVector, training: Any = None) -> None:
        self.support, self.training = support, training

    def of_matrix(self, K: FloatMatrix, parts: Sequence[Part]) -> list[FloatMatrix]:
        """K holds one column per training row."""
        return [weigh(K[:, self.support[where]], weight) for where, weight in parts]

    def of_function(
        self, function: Callable[[Any, Any], Any], X: Any, parts: Sequence[Part]
    ) -> list[FloatMatrix]:
        """The function is given blocks of X, each against the whole training set."""
        n = count_samples(X)
        step = max(1, CALL_ENTRIES // count_samples(self.training))
        sums = [np.zeros((n, weight.shape[1])) for _, weight in parts]
        for first in range(0, n, step):
            near = np.arange(first, min(first + step, n))
            block = X if step >= n else take_samples(X, near)
            K = call_kernel(function, block, self.training)
            for total, value in zip(sums, self.of_matrix(K, parts), strict=True):
                total[near] = value
        return sums
