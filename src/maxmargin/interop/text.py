"""What do the text files of LIBSVM and LIBLINEAR have in common? Keys and numbers.

A header of lines, each a key and its values, ends at a line with a word of its own;
numbers follow. Nothing is allocated for a size that the file only claims.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np

from maxmargin.interop.files import Content
from maxmargin.typing import FloatVector, IntVector

HEADER_LINES = 100  # the keys are at most a dozen
LONGEST_TOKEN = 1000  # characters of a number
PIECE = 1 << 20  # characters at a time, so that tokens never take much memory
LARGEST_INT = 2**31 - 1  # what the other programs can hold
NOT_NUMBERS = re.compile(rb"[^0-9+\-.eE: \t\r\n]")


class Field(NamedTuple):
    """The values after a key, as they stand, and where they stand."""

    text: bytes
    offset: int


class Header:
    """Keys with their values; says which line when one cannot be used."""

    def __init__(
        self, content: Content, fields: dict[str, Field], body: int, end: bytes
    ) -> None:
        self.content, self.fields = content, fields
        self.body = body  # where the numbers begin
        self.end = end.decode()

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def fail(self, key: str, message: str) -> NoReturn:
        """Refuse the file because of this key."""
        offset = self.fields[key].offset if key in self.fields else self.body - 1
        self.content.fail(f"{key}: {message}", offset)

    def word(self, key: str, choices: tuple[str, ...]) -> str:
        """One of these words."""
        found = self._field(key).text.strip()
        word = found[:80].decode("ascii", "replace")
        if word not in choices:
            self.fail(key, f"must be one of {', '.join(choices)}, got {word!r}.")
        return word

    def integer(self, key: str, lowest: int, highest: int = LARGEST_INT) -> int:
        """One whole number in a range."""
        return int(self.integers(key, 1, lowest, highest)[0])

    def integers(
        self, key: str, n: int, lowest: int, highest: int = LARGEST_INT
    ) -> IntVector:
        """As many whole numbers in a range."""
        tokens = self._tokens(key, n)
        try:
            values = [int(token) for token in tokens]
        except ValueError:
            self.fail(key, "must be whole numbers.")
        for value in values:
            if not lowest <= value <= highest:
                self.fail(key, f"must lie between {lowest} and {highest}, got {value}.")
        return np.array(values, dtype=np.int64)

    def number(self, key: str) -> float:
        """One finite number."""
        return float(self.numbers(key, 1)[0])

    def numbers(self, key: str, n: int) -> FloatVector:
        """As many finite numbers."""
        try:
            return as_numbers(self._tokens(key, n))
        except ValueError as error:
            self.fail(key, f"{error}.")

    def _field(self, key: str) -> Field:
        if key not in self.fields:
            self.content.fail(f"{key!r} is missing before {self.end!r}.", self.body - 1)
        return self.fields[key]

    def _tokens(self, key: str, n: int) -> list[bytes]:
        text = self._field(key).text
        if NOT_NUMBERS.search(text):
            self.fail(key, "must be followed by finite numbers.")
        if n > len(text):  # each takes at least a character and a space
            self.fail(key, f"{n} numbers expected, got fewer.")
        tokens = text.split(maxsplit=n)  # what is too much stays whole
        if len(tokens) != n:
            self.fail(key, f"{n} numbers expected, got {len(tokens)} or more.")
        return tokens


def read_header(content: Content, end: bytes, keys: tuple[str, ...]) -> Header:
    """Read keys and values up to the line that only says `end`."""
    fields: dict[str, Field] = {}
    offset, data = 0, content.data
    for _ in range(HEADER_LINES):
        stop = data.find(b"\n", offset)
        line = data[offset : stop if stop >= 0 else len(data)]
        name, _, rest = line.strip(b" \t\r").partition(b" ")
        if name == end and not rest:
            body = stop + 1 if stop >= 0 else len(data)
            return Header(content, fields, body, end)
        key = name[:80].decode("ascii", "replace")
        if name and key not in keys:
            content.fail(f"the key {key!r} is not known here.", offset)
        if key in fields:
            content.fail(f"the key {key!r} is there twice.", offset)
        if name:
            fields[key] = Field(rest, offset)
        if stop < 0:
            break
        offset = stop + 1
    content.fail(f"a header must end with a line {end.decode()!r}.", offset)


def as_numbers(tokens: list[bytes]) -> FloatVector:
    """Finite numbers, each from a token of its own; else ValueError."""
    if max(map(len, tokens), default=0) > LONGEST_TOKEN:
        raise ValueError(f"a number is longer than {LONGEST_TOKEN} characters")
    values = np.fromiter(map(float, tokens), np.float64, len(tokens))
    if not np.isfinite(values).all():
        raise ValueError("a number is too large for float64")
    return values


def as_indices(tokens: list[bytes]) -> IntVector:
    """Whole numbers from 0 to the largest that the other programs know."""
    if max(map(len, tokens), default=0) > LONGEST_TOKEN:
        raise ValueError(f"an index is longer than {LONGEST_TOKEN} characters")
    wrong = ValueError(f"an index must lie between 0 and {LARGEST_INT}")
    try:
        values = np.fromiter(map(int, tokens), np.int64, len(tokens))
    except OverflowError:
        raise wrong from None
    if values.min(initial=0) < 0 or values.max(initial=0) > LARGEST_INT:
        raise wrong
    return values


class Piece(NamedTuple):
    """Some lines; the last of them may go on in the next piece."""

    lines: list[bytes]
    offset: int
    is_cut: bool  # the last line goes on


def pieces(content: Content, begin: int) -> Iterator[Piece]:
    """The rest of a file in pieces that end at a newline, or between two numbers."""
    data, n = content.data, len(content.data)
    while begin < n:
        stop = min(begin + PIECE, n)
        if stop < n:
            cut = data.rfind(b"\n", begin, stop)
            if cut < 0:
                cut = max(data.rfind(b" ", begin, stop), data.rfind(b"\t", begin, stop))
            if cut < 0:
                content.fail("a number must not be a megabyte long.", begin)
            stop = cut + 1
        text = data[begin:stop]
        wrong = NOT_NUMBERS.search(text)
        if wrong:
            found = wrong.group().decode("latin-1")
            content.fail(f"numbers expected, got {found!r}.", begin + wrong.start())
        is_cut = stop < n and not text.endswith(b"\n")
        lines = text.split(b"\n")
        if text.endswith(b"\n"):
            lines.pop()
        yield Piece(lines, begin, is_cut)
        begin = stop
