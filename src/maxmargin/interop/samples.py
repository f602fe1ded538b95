"""How do lists, dictionaries, arrays and sparse matrices become one matrix?

LIBSVM counts features from 1. Rows of a precomputed kernel begin with feature 0, which
says the number of the sample.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.data.labels import Labels
from maxmargin.errors import InvalidInput
from maxmargin.typing import FloatVector, IntVector

LARGEST_INDEX = 2**31 - 2  # beyond, indices do not fit into 32 bits
LARGEST_LABEL = 2**31 - 1  # an int in C
FEW_CELLS = 1 << 22  # lists of numbers up to this size are made a dense matrix


class Samples(NamedTuple):
    """A matrix, and the largest index of a feature as LIBSVM counts them."""

    X: Any  # float64: C-ordered, or canonical CSR
    largest: int
    first: int = 1  # the index that column 0 stands for


class DataSet(NamedTuple):
    """Samples with what they should become, and how much each counts."""

    X: Any
    y: FloatVector
    largest: int
    weight: FloatVector | None = None
    first: int = 1

    def take(self, rows: IntVector) -> "DataSet":
        """These rows alone."""
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(X=self.X[rows], y=self.y[rows], weight=weight)


def gather(y: Any, x: Any, *, is_kernel: bool = False, weight: Any = None) -> DataSet:
    """Labels or numbers, and samples in any of the forms that the packages take."""
    numbers = as_numbers(y, "y")
    if not len(numbers):
        raise InvalidInput("There are no samples: y is empty.")
    samples = as_samples(x, is_kernel=is_kernel)
    if len(numbers) != samples.X.shape[0]:
        raise InvalidInput(
            f"len(y) != len(x): {len(numbers)} labels for {samples.X.shape[0]} samples."
        )
    if weight is not None:
        weight = as_numbers(weight, "W")
        if len(weight) != len(numbers):
            raise InvalidInput(
                f"len(W) != len(y): {len(weight)} weights for {len(numbers)} samples."
            )
    return DataSet(samples.X, numbers, samples.largest, weight, samples.first)


def as_numbers(y: Any, name: str) -> FloatVector:
    """A list, tuple or array of numbers as a vector."""
    if sp.issparse(y) or not isinstance(y, list | tuple | np.ndarray):
        raise TypeError(f"type of {name}: {type(y)} is not supported!")
    try:
        numbers = np.asarray(y, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must hold numbers: {error}.") from error
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{name} contains NaN or infinity.")
    return numbers


def as_samples(x: Any, *, is_kernel: bool = False) -> Samples:
    """One row per sample; column 0 is feature 1, or 0 where there is such a one."""
    if sp.issparse(x):
        return _of_sparse(x, is_kernel)
    if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype != object:
        return _of_dense(x, is_kernel)
    if isinstance(x, list | tuple | np.ndarray):
        return _of_rows(list(x), is_kernel)
    raise TypeError(f"type of x: {type(x)} is not supported!")


def _of_sparse(x: Any, is_kernel: bool) -> Samples:
    X = sp.csr_matrix(x, dtype=np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    _check_finite(X.data)
    return Samples(_with_a_column(X), int(X.shape[1]), 0 if is_kernel else 1)


def _of_dense(x: Any, is_kernel: bool) -> Samples:
    try:
        X = np.ascontiguousarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"x must hold numbers: {error}.") from error
    _check_finite(X)
    if is_kernel:
        return Samples(X, X.shape[1] - 1, 0)
    used = np.flatnonzero((X != 0.0).any(axis=0))
    largest = int(used[-1]) + 1 if len(used) else 0
    return Samples(_with_a_column(X[:, :largest]), largest)


def _of_rows(rows: list[Any], is_kernel: bool) -> Samples:
    if _is_table(rows):
        return _of_dense(rows, is_kernel)
    parts = [_nodes(row, 0 if is_kernel else 1) for row in rows]
    counts = [len(values) for _, values in parts]
    indptr = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    indices = _indices(list(chain.from_iterable(i for i, _ in parts)))
    try:
        every = list(chain.from_iterable(v for _, v in parts))
        data = np.array(every, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"Values of features must be numbers: {error}.") from error
    _check_finite(data)
    used = indices if is_kernel else indices[data != 0.0]
    first = 0 if is_kernel or (used == 0).any() else 1
    largest = int(used.max(initial=0))
    shape = (len(rows), int(indices.max(initial=0)) + 1)
    X = sp.csr_matrix((data, indices, indptr), shape=shape)
    X.sum_duplicates()
    if is_kernel:
        return Samples(X, largest, 0)
    X.eliminate_zeros()
    return Samples(_with_a_column(X[:, first : largest + 1]), largest, first)


def _is_table(rows: list[Any]) -> bool:
    """Whether these are lists of equally many numbers, few enough to write out."""
    if not rows or not all(isinstance(row, list | tuple) for row in rows):
        return False
    n = len(rows[0])
    is_even = all(len(row) == n for row in rows)
    is_flat = not any(isinstance(value, np.ndarray) for value in rows[0])
    return is_even and is_flat and 0 < n * len(rows) <= FEW_CELLS


def _nodes(row: Any, first: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Indices as LIBSVM counts them, and values, of one sample."""
    if isinstance(row, dict):
        return list(row.keys()), list(row.values())
    is_pair = isinstance(row, tuple) and len(row) == 2
    if is_pair and all(isinstance(part, np.ndarray) for part in row):
        return (row[0] + first).tolist(), row[1].tolist()
    if isinstance(row, list | tuple | np.ndarray):
        return range(first, len(row) + first), list(row)
    raise TypeError(
        "xi should be a dictionary, list, tuple, 1-d numpy array, or tuple of (index, "
        f"data), got {type(row).__name__}"
    )


def _indices(given: list[Any]) -> IntVector:
    numbers = np.array(given) if given else np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidInput("Indices of features must be whole numbers.")
    numbers = numbers.astype(np.int64)
    lowest, highest = numbers.min(initial=0), numbers.max(initial=0)
    if lowest < 0 or highest > LARGEST_INDEX:
        raise InvalidInput(
            f"Indices of features must be from 0 to {LARGEST_INDEX}, got "
            f"{lowest if lowest < 0 else highest}."
        )
    return numbers


def _with_a_column(X: Any) -> Any:
    """Samples without any feature get one that is zero."""
    if X.shape[1] > 0:
        return X if sp.issparse(X) else np.ascontiguousarray(X)
    shape = (X.shape[0], 1)
    return sp.csr_matrix(shape) if sp.issparse(X) else np.zeros(shape)


def _check_finite(values: Any) -> None:
    if not np.isfinite(values).all():
        raise InvalidInput("x contains NaN or infinity.")


def aligned(samples: Samples, first: int, width: int) -> Any:
    """The matrix with columns counted from `first`, as a model of that width does.

    A feature 0 where the model has none goes beyond its last column: it still counts
    in distances.
    """
    if samples.first == first:
        return samples.X
    X = sp.csr_matrix(samples.X)
    if first == 0:
        return sp.hstack([sp.csr_matrix((X.shape[0], 1)), X]).tocsr()
    if not (X.indices == 0).any():
        return X[:, 1:]
    gap = sp.csr_matrix((X.shape[0], max(0, width + 1 - X.shape[1])))
    return sp.hstack([X[:, 1:], gap, X[:, :1]]).tocsr()


def labels_as_met(y: FloatVector) -> Labels:
    """Classes in the order in which they first appear, cut to whole numbers.

    Of the two labels -1 and +1, +1 comes first wherever it appears, as in LIBSVM.
    """
    if len(y) and np.abs(y).max() > LARGEST_LABEL:
        raise InvalidInput("Labels of classes must be whole numbers of 32 bits.")
    whole = np.trunc(y).astype(np.int64)
    found, first, code = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    if found.tolist() == [-1, 1]:
        order = np.array([1, 0])
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return Labels(found[order], place[code.reshape(-1)])
