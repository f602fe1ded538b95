"""How is data written as svmlight text, so that it is read back as it was?

By default each number has as many of 15, 16 or 17 digits as it takes to give it back.
A file appears whole or not at all.
"""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.svmlight_files import replaced
from maxmargin.errors import InvalidInput

EXACT_DIGITS = 17
PAIRS_AT_ONCE = 2**17  # of a piece that is formatted and written
FEW_PAIRS = 2**14  # sooner written in plain Python than Numba is loaded
INDEX_BYTES = 20


class Piece(NamedTuple):
    """Some rows to be written, CSR."""

    y: NDArray[np.float64]
    qid: NDArray[np.int64]  # empty if there are none
    ends: NDArray[np.int64]
    indices: NDArray[np.int64]  # as written
    value: NDArray[np.float64]


def write_svmlight(
    target: str | os.PathLike[str] | BinaryIO,
    X: Any,
    y: Any,
    *,
    index_base: int = 1,
    qid: Any = None,
    comment: str | None = None,
    digits: int = EXACT_DIGITS,
) -> None:
    """Write samples and labels as text.

    Parameters
    ----------
    target : path or binary file
        A path is replaced when all is written; .gz, .bz2 and .xz are packed.
    X : array or sparse matrix of shape (n_samples, n_features)
        Zeros are left out, unless a sparse matrix holds them explicitly.
    y : array of shape (n_samples,)
    index_base : 0 or 1
        What the first column is called.
    qid : array of whole numbers, optional
        The query of each sample.
    comment : str, optional
        Lines for the top of the file.
    digits : int
        Significant digits of values; 17 means as many as give back the same float64.
        Labels always have those.
    """
    if index_base not in (0, 1):
        raise InvalidInput(f"index_base must be 0 or 1, got {index_base!r}.")
    if not 1 <= digits <= EXACT_DIGITS:
        raise InvalidInput(f"digits must be from 1 to 17, got {digits!r}.")
    pieces = _pieces(_matrix(X), _targets(y), _queries(qid), index_base)
    if hasattr(target, "write"):
        _write(cast(BinaryIO, target), pieces, comment, digits)
        return
    with replaced(target) as file:
        _write(file, pieces, comment, digits)


def _write(
    file: BinaryIO, pieces: Iterator[Piece], comment: str | None, digits: int
) -> None:
    for line in (comment or "").splitlines():
        file.write(f"# {line}".rstrip().encode() + b"\n")
    spell = None
    for piece in pieces:
        if spell is None:  # the first piece is full, if there is a second
            spell = spell_plain if len(piece.indices) <= FEW_PAIRS else spell_fast
        file.write(spell(piece, digits))


# What is written.


def _matrix(X: Any) -> Any:
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InvalidInput(
            f"X must be a matrix of real numbers, got shape {X.shape} of {X.dtype}."
        )
    return X


def _targets(y: Any) -> NDArray[np.float64]:
    y = np.asarray(y)
    if y.ndim != 1 or y.dtype.kind not in "fiub":
        raise InvalidInput(
            f"y must be one number a sample, got shape {y.shape} of {y.dtype}; turn "
            "labels of another kind into numbers first."
        )
    return _finite(y.astype(np.float64), "y")


def _queries(qid: Any) -> NDArray[np.int64]:
    qid = np.asarray([] if qid is None else qid)
    if qid.ndim != 1 or (qid.size and qid.dtype.kind not in "iu"):
        raise InvalidInput(
            f"qid must be whole numbers, one a sample, got shape {qid.shape} of "
            f"{qid.dtype}."
        )
    if qid.size and max(-int(qid.min()), int(qid.max())) >= 10**18:
        raise InvalidInput("qid must have no more than 18 digits.")
    return qid.astype(np.int64)


def _finite(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"{name} contains NaN or infinity, which a data file cannot hold."
        )
    return values


def _pieces(
    X: Any, y: NDArray[np.float64], qid: NDArray[np.int64], base: int
) -> Iterator[Piece]:
    n = X.shape[0]
    if len(y) != n or (len(qid) and len(qid) != n):
        raise InvalidInput(
            f"X, y and qid must have the same number of samples, got {n}, {len(y)} "
            f"and {len(qid)}."
        )
    begin = 0
    while begin < n:
        end = _end_of_piece(X, begin)
        part = sp.csr_matrix(X[begin:end])
        part.sort_indices()
        yield Piece(
            y[begin:end],
            qid[begin:end],
            part.indptr[1:].astype(np.int64),
            part.indices.astype(np.int64) + base,
            _finite(part.data.astype(np.float64), "X"),
        )
        begin = end


def _end_of_piece(X: Any, begin: int) -> int:
    """As many rows as have about the pairs of a piece, one at least."""
    most = begin + PAIRS_AT_ONCE
    if sp.issparse(X):
        limit = X.indptr[begin] + PAIRS_AT_ONCE
        end = int(np.searchsorted(X.indptr, limit, side="right")) - 1
    else:
        end = begin + PAIRS_AT_ONCE // max(1, X.shape[1])
    return min(X.shape[0], max(begin + 1, min(end, most)))


# How it is written.


def spell(value: float, digits: int) -> str:
    """A number as %g writes it, with 15 to 17 digits if it must be given back."""
    if digits < EXACT_DIGITS:
        return f"{value:.{digits}g}"
    for n in (15, 16):
        text = f"{value:.{n}g}"
        if float(text) == value:
            return text
    return f"{value:.17g}"


def spell_plain(piece: Piece, digits: int) -> bytes:
    """The text of some rows, without Numba."""
    lines, begin = [], 0
    index, value = piece.indices.tolist(), piece.value.tolist()
    queries = [f" qid:{number}" for number in piece.qid.tolist()] or [""] * len(piece.y)
    rows = zip(piece.y.tolist(), queries, piece.ends.tolist(), strict=True)
    for label, query, end in rows:
        pairs = [f" {index[k]}:{spell(value[k], digits)}" for k in range(begin, end)]
        lines.append(f"{spell(label, EXACT_DIGITS)}{query}{''.join(pairs)}\n")
        begin = end
    return "".join(lines).encode()


def spell_fast(piece: Piece, digits: int) -> Any:
    """The same text by compiled code, but for the numbers that it leaves to `spell`."""
    from maxmargin.data import svmlight_format as form

    def find(values: NDArray[np.float64], digits: int) -> Any:
        found = form.Digits(*(np.empty(len(values), dtype=np.int64) for _ in range(3)))
        form.find_digits(values, digits, found)
        return found

    y, value = find(piece.y, EXACT_DIGITS), find(piece.value, digits)
    begins = np.append(0, piece.ends[:-1])
    at_y = np.flatnonzero(y.digits == form.SPELT)
    at_value = np.flatnonzero(value.digits == form.SPELT)
    words = [(int(begins[i]), 0, spell(piece.y[i], EXACT_DIGITS)) for i in at_y]
    words += [(int(k), 1, spell(piece.value[k], digits)) for k in at_value]
    rows = form.Rows(
        y,
        np.signbit(piece.y),
        piece.qid,
        piece.ends,
        piece.indices,
        value,
        np.signbit(piece.value),
        _words([word for *_, word in sorted(words, key=_place)]),
    )
    width = form.MOST_BYTES + INDEX_BYTES
    room = (len(piece.indices) + 2 * len(piece.y)) * width
    out = np.empty(room, dtype=np.uint8)
    return out[: form.put_rows(rows, out)].data


def _place(word: tuple[int, int, str]) -> tuple[int, int]:
    return word[:2]


def _words(words: list[str]) -> NDArray[np.uint8]:
    table = np.zeros((len(words), 32), dtype=np.uint8)
    for row, word in zip(table, words, strict=True):
        row[: len(word)] = np.frombuffer(word.encode(), dtype=np.uint8)
    return table
