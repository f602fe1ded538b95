"""How does data come out of a text file in svmlight's format, and go into one?

The format of LIBSVM, LIBLINEAR and SVMlight: a line for each sample, its label, then
index:value for what is not zero. `svmlight_text` has the grammar in full.
"""

import sys
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.svmlight_files import Source, name_of, opened, read_head
from maxmargin.data.svmlight_text import BYTE_ORDER_MARK, Parsed, Rules, parse_plain
from maxmargin.data.svmlight_write import write_svmlight
from maxmargin.errors import DataFormatError, InvalidInput
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

__all__ = [
    "KernelRows",
    "TextData",
    "read_svmlight",
    "read_weights",
    "split_kernel_rows",
    "write_svmlight",
]

MOST_FEATURES = 2**31 - 1  # what LIBSVM and 32-bit indices can count
MOST_INDEX = 10**17  # what 64 bits hold with digits to spare
MAX_LINE_BYTES = 2**26  # a kernel row of three million samples
SMALL, SMALL_BEFORE_NUMBA = 2**16, 2**19  # bytes sooner read than Numba is loaded
FREE_VALUES, PER_PAIR = 2**23, 4  # of a kernel matrix that may be mostly left out
WIDE_CHARACTERS = (b"\xff\xfe", b"\xfe\xff")

IndexBase = Literal["auto", 0, 1]


class TextData(NamedTuple):
    """Samples (float64, CSR), their labels, and the query of each if asked for."""

    X: Any
    y: FloatVector
    qid: IntVector | None = None


def read_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    index_base: IndexBase = "auto",
    with_qid: bool = False,
    n_threads: int = 1,
    finite: bool = True,
    max_index: int = MOST_FEATURES,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_bytes: int | None = None,
) -> TextData:
    """Read labels and sparse rows from a text file, packed or not.

    Numbers are rounded correctly, and the arrays do not depend on `n_threads`. Blank
    lines and what follows a ``#`` are skipped; zeros that are written are kept.

    Parameters
    ----------
    source : path, bytes or binary file
        Plain, or packed by gzip, bzip2 or xz, which its first bytes tell.
    n_features : int, optional
        Columns of X; by default the largest index decides.
    index_base : "auto", 0 or 1
        What the first column is called; "auto" says 0 if any index is 0, else 1.
    with_qid : bool
        Return the numbers after ``qid:``, which every line must then have.
    finite : bool
        Refuse inf and nan; otherwise they are read as what they are.
    max_index, max_line_bytes, max_bytes : int
        Limits against files that claim too much. `max_bytes` is of text, unpacked;
        by default a packed file may grow 200 times, and a plain one is as it is.
    """
    limits = (max_index, max_line_bytes)
    rules = _make_rules(index_base, n_features, limits)
    rules = rules._replace(needs_qid=bool(with_qid), is_finite=bool(finite))
    name = name_of(source)
    found = _parse(source, rules, max_bytes, n_threads)
    return TextData(
        _make_matrix(found, index_base, n_features, name),
        found.y,
        found.qid.astype(np.intp, copy=False) if with_qid else None,
    )


def read_weights(
    source: Source, n_samples: int | None = None, *, n_threads: int = 1
) -> FloatVector:
    """Weights of samples: a number, at least 0, on each line."""
    rules = _make_rules("auto", None, (MOST_FEATURES, MAX_LINE_BYTES))
    rules = rules._replace(least_label=0.0, has_pairs=False)
    weight = _parse(source, rules, None, n_threads).y
    if n_samples is not None and len(weight) != n_samples:
        raise DataFormatError(
            f"{len(weight)} weights for {n_samples} samples: write one a line.",
            path=name_of(source),
        )
    return weight


class KernelRows(NamedTuple):
    """Rows of a kernel matrix, and the number (from 1) that each gives itself."""

    serial: IntVector
    K: FloatMatrix


def split_kernel_rows(X: Any) -> KernelRows:
    """Take apart rows of the form ``0:serial 1:K(x,x1) 2:K(x,x2) ...``.

    X is as `read_svmlight` returns it, so that its first column has the serials.
    """
    serial = np.asarray(X[:, [0]].todense()).ravel()
    bad = np.flatnonzero((serial < 1.0) | (serial != np.floor(serial)))
    if len(bad) or X.shape[1] < 2:
        which = f" (sample {bad[0] + 1} has {serial[bad[0]]:g})" if len(bad) else ""
        raise DataFormatError(
            "rows of a precomputed kernel start with 0:serial, a whole number from 1, "
            f"and go on with 1:K(x,x1) 2:K(x,x2) and so on{which}."
        )
    if serial.max() > MOST_FEATURES:
        raise DataFormatError(f"serial {serial.max():g} is too large for a sample.")
    n, m = X.shape[0], X.shape[1] - 1
    if n * m > max(FREE_VALUES, PER_PAIR * X.nnz):
        raise DataFormatError(
            f"a kernel matrix of {n} x {m} was expected, but only {X.nnz} of its "
            "values are written: every row has to hold all of them."
        )
    return KernelRows(serial.astype(np.intp), X[:, 1:].toarray())


def _parse(
    source: Source, rules: Rules, max_bytes: int | None, n_threads: int
) -> Parsed:
    name = name_of(source)
    small = SMALL if "numba" in sys.modules else SMALL_BEFORE_NUMBA
    try:
        with opened(source, max_bytes) as stream:
            head = read_head(stream, small + 1)
            if head.startswith(WIDE_CHARACTERS):
                raise DataFormatError("the text is in UTF-16; save it as UTF-8.")
            text = head.removeprefix(BYTE_ORDER_MARK)
            if len(head) <= small:
                found = parse_plain(text, rules, name)
            else:
                from maxmargin.data.svmlight_chunks import parse_stream

                found = parse_stream(stream, text, rules, name, n_threads)
    except DataFormatError as error:
        if error.path is not None:
            raise
        raise error.in_file(name) from error
    if not len(found.y):
        raise DataFormatError("the file holds no samples.", path=name)
    return found


def _make_rules(
    index_base: IndexBase, n_features: int | None, limits: tuple[int, int]
) -> Rules:
    if index_base not in ("auto", 0, 1):
        raise InvalidInput(f"index_base must be 'auto', 0 or 1, got {index_base!r}.")
    max_index, longest = limits
    if n_features is not None and n_features < 1:
        raise InvalidInput(f"n_features must be at least 1, got {n_features}.")
    if not 1 <= max_index <= MOST_INDEX or longest < 1:
        raise InvalidInput(
            f"max_index must be between 1 and {MOST_INDEX} and max_line_bytes at "
            f"least 1, got {max_index} and {longest}."
        )
    most = max_index if n_features is None else min(max_index, n_features)
    return Rules(
        shift=0 if index_base == 0 else 1,
        lowest=1 if index_base == 1 else 0,
        highest=most - (index_base == 0 and n_features is not None),
        longest=longest,
        least_label=-np.inf,
        has_pairs=True,
        needs_qid=False,
        is_finite=True,
    )


def _make_matrix(
    found: Parsed, index_base: IndexBase, n_features: int | None, name: str
) -> sp.csr_matrix:
    is_zero_based = index_base == 0 or (index_base == "auto" and found.lowest == 0)
    if is_zero_based and index_base == "auto":
        np.add(found.indices, 1, out=found.indices)
    needed = found.highest + is_zero_based
    if n_features is not None and needed > n_features:
        raise DataFormatError(
            f"index {found.highest}, counted from 0, does not fit into n_features = "
            f"{n_features}.",
            path=name,
        )
    width = n_features or max(1, needed)
    start: NDArray[Any] = np.zeros(len(found.ends) + 1, dtype=found.indices.dtype)
    start[1:] = found.ends
    X = sp.csr_matrix((found.value, found.indices, start), shape=(len(found.y), width))
    X.has_sorted_indices = X.has_canonical_format = True
    return X
