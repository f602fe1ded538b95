"""What does a line of a support vector say? Coefficients, then index:value pairs."""

from typing import NamedTuple

import numpy as np

from maxmargin.interop.files import Content
from maxmargin.interop.text import Piece, as_indices, as_numbers, pieces
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

COLON, SPACE = ord(":"), ord(" ")
NOTHING = -1  # smaller than any index


class SupportLines(NamedTuple):
    """All lines: coefficients as in a model, pairs as in a CSR matrix."""

    coef: FloatMatrix  # (n_coef, n_vectors)
    place: IntVector  # the index as written
    value: FloatVector
    indptr: IntVector


class Row(NamedTuple):
    """What is known of a row that may go on in the next piece."""

    is_open: bool = False
    missing: int = 0  # coefficients it still needs
    last: int = NOTHING  # its last index


class Tokens(NamedTuple):
    """A piece taken apart."""

    coefs: list[bytes]
    pairs: list[bytes]
    n_pairs: list[int]  # of each row that begins here, or goes on here
    is_continued: bool  # the first of them began before


def read_support_lines(
    content: Content, begin: int, n_vectors: int, n_coef: int
) -> SupportLines:
    """Read the lines that follow a header, which has said how many there are."""
    n_bytes = len(content.data) - begin
    if 2 * n_vectors * n_coef > n_bytes + 1:  # a digit and a space each
        content.fail(
            f"total_sv and nr_class promise {n_vectors} lines of {n_coef} coefficients "
            "and more, but the file ends before.",
            len(content.data),
        )
    lines = SupportLines(
        coef=np.empty(n_vectors * n_coef),
        place=np.empty(content.data.count(b":", begin), dtype=np.int32),
        value=np.empty(content.data.count(b":", begin)),
        indptr=np.zeros(n_vectors + 1, dtype=np.int64),
    )
    n_rows = _fill(lines, content, begin, n_coef)
    if n_rows != n_vectors:
        content.fail(
            f"total_sv says {n_vectors} support vectors, but {n_rows} follow.",
            len(content.data),
        )
    np.cumsum(lines.indptr, out=lines.indptr)
    return lines._replace(coef=lines.coef.reshape(n_vectors, n_coef).T)


def _fill(lines: SupportLines, content: Content, begin: int, n_coef: int) -> int:
    """Write all pieces to their places; returns the number of rows."""
    row, n_rows, n_coefs, n_pairs = Row(), 0, 0, 0
    n_vectors = len(lines.indptr) - 1
    for piece in pieces(content, begin):
        try:
            tokens, after = _take_apart(piece, row, n_coef)
            index, value = _read_pairs(tokens, row)
            coef = as_numbers(tokens.coefs)
        except ValueError as error:
            _fail_at_line(content, piece, row, n_coef, str(error))
        first = n_rows - tokens.is_continued
        n_rows = first + len(tokens.n_pairs)
        if n_rows > n_vectors:
            content.fail(f"more lines than total_sv, {n_vectors}.", piece.offset)
        lines.indptr[first + 1 : n_rows + 1] += tokens.n_pairs
        lines.coef[n_coefs : n_coefs + len(coef)] = coef
        lines.place[n_pairs : n_pairs + len(index)] = index
        lines.value[n_pairs : n_pairs + len(value)] = value
        n_coefs, n_pairs = n_coefs + len(coef), n_pairs + len(index)
        last = int(index[-1]) if tokens.n_pairs and tokens.n_pairs[-1] else row.last
        row = after._replace(last=last) if after.is_open else Row()
    return n_rows


def _take_apart(piece: Piece, row: Row, n_coef: int) -> tuple[Tokens, Row]:
    """Which tokens are coefficients, which are pairs, and where do rows end?"""
    tokens = Tokens([], [], [], row.is_open)
    is_open, missing = row.is_open, row.missing
    last = len(piece.lines) - 1
    for number, line in enumerate(piece.lines):
        words = line.split()
        if not words and not is_open:
            continue
        if not is_open:
            missing = n_coef
        n = min(missing, len(words))
        tokens.coefs.extend(words[:n])
        tokens.pairs.extend(words[n:])
        tokens.n_pairs.append(len(words) - n)
        missing -= n
        is_open = piece.is_cut and number == last
        if missing and not is_open:
            raise ValueError(f"a line must begin with {n_coef} coefficients")
    return tokens, Row(is_open, missing)


def _read_pairs(tokens: Tokens, row: Row) -> tuple[IntVector, FloatVector]:
    """Indices, ascending in each row, and values; ValueError where they are not."""
    index, value = _split_pairs(tokens.pairs)
    if not len(index):
        return index, value
    is_wrong = np.empty(len(index), dtype=bool)
    is_wrong[0] = tokens.is_continued and index[0] <= row.last
    is_wrong[1:] = index[1:] <= index[:-1]
    starts = np.cumsum(tokens.n_pairs)[:-1]
    is_wrong[starts[(starts > 0) & (starts < len(index))]] = False
    if is_wrong.any():
        raise ValueError("indices must ascend")
    return index, value


def _split_pairs(tokens: list[bytes]) -> tuple[IntVector, FloatVector]:
    """`index:value` each, nothing else; otherwise ValueError."""
    text = b" ".join(tokens)
    signs = np.frombuffer(text, dtype=np.uint8)
    between = signs[(signs == COLON) | (signs == SPACE)]
    expected = 2 * len(tokens) - 1 if tokens else 0
    if len(between) != expected or (between[::2] != COLON).any():
        raise ValueError("index:value expected after the coefficients")
    words = text.replace(b":", b" ").split(b" ") if tokens else []
    return as_indices(words[::2]), as_numbers(words[1::2])


def _fail_at_line(
    content: Content, piece: Piece, row: Row, n_coef: int, message: str
) -> None:
    """Read line by line what could not be read at once, to say where it is wrong."""
    offset = piece.offset
    for number, line in enumerate(piece.lines):
        is_last = number == len(piece.lines) - 1
        alone = Piece([line], offset, piece.is_cut and is_last)
        try:
            tokens, _ = _take_apart(alone, row, n_coef)
            _read_pairs(tokens, row)
            as_numbers(tokens.coefs)
        except ValueError as error:
            content.fail(f"{error}.", offset)
        row, offset = Row(), offset + len(line) + 1
    content.fail(f"{message}.", piece.offset)
