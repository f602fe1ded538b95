"""What may a line of svmlight text say, and how is a mistake in it described?

    line     = [label [qid] pair*] [comment]      parted by blanks
    label    = number
    qid      = "qid:" whole number
    pair     = index ":" number                   indices ascend within a line
    number   = [+-] digits [. digits] [e [+-] digits], or inf, nan in any case
    comment  = "#" anything

This is plain Python: it reads small files without loading Numba, and it judges the
tokens that compiled code leaves to it, so that there is one grammar and one wording.
"""

import math
import re
from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import DataFormatError

LONGEST_NUMBER = 2000  # characters; no float64 has more than 1,100 that matter
FIGURE = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER = re.compile(FIGURE + rb"|[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
PAIR = re.compile(rb"(\d{1,18}):(" + FIGURE + rb")")
QUERY = re.compile(rb"qid:([+-]?\d{1,18})")
TOKEN = re.compile(rb"\S+")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Rules(NamedTuple):
    """What is asked of a file; part of what compiled code sees."""

    shift: int  # from an index as written to a column
    lowest: int  # index
    highest: int  # index
    longest: int  # bytes of a line
    least_label: float
    has_pairs: bool  # not in a file of weights
    needs_qid: bool
    is_finite: bool


class Parsed(NamedTuple):
    """Rows in CSR's three arrays, the smallest and the largest index as written."""

    y: NDArray[np.float64]
    qid: NDArray[np.int64]
    ends: NDArray[Any]  # of each row
    indices: NDArray[Any]
    value: NDArray[np.float64]
    lowest: int
    highest: int


class Fault(Exception):
    """A mistake in a token, `offset` bytes from its start."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


# Tokens.


def show(token: bytes) -> str:
    """A token as it may appear in a message."""
    return repr(token[:30] + b"..." * (len(token) > 30))[1:]


def read_label(token: bytes, rules: Rules) -> float:
    """The number that a line starts with."""
    if b":" in token:
        raise Fault(
            f"a label was expected, found {show(token)}; every line starts with its "
            "label (write 0 where it is unknown)."
        )
    if b"," in token:
        raise Fault(
            f"several labels ({show(token)}): files with more than one label a line "
            "are not supported; keep one, or write a file for each. CSV files are read "
            "by `maxmargin fit` and `maxmargin apply`."
        )
    value = read_number(token, "a label", rules)
    if value < rules.least_label:
        raise Fault(
            f"numbers must be at least {rules.least_label:g}, found {show(token)}."
        )
    return value


def read_qid(token: bytes) -> int:
    """The whole number after "qid:"."""
    found = QUERY.fullmatch(token)
    if not found:
        raise Fault(
            f"'qid:' and a whole number of at most 18 digits expected, found "
            f"{show(token)}."
        )
    return int(found[1])


def read_pair(token: bytes, previous: int, rules: Rules) -> tuple[int, float]:
    """An index and its value; `previous` is the index before."""
    if not rules.has_pairs:
        raise Fault(f"one number a line was expected, found {show(token)} after it.")
    word, colon, number = token.partition(b":")
    if not colon:
        raise Fault(f"index:value was expected, found {show(token)}.")
    index = read_index(word, rules)
    if index <= previous:
        raise Fault(
            f"index {index} follows {previous}: the indices of a line must ascend; "
            "sort them, and keep one of each."
        )
    try:
        value = read_number(number, "a value", rules)
    except Fault as fault:
        raise Fault(str(fault), len(word) + 1) from None
    return index, value


def read_index(word: bytes, rules: Rules) -> int:
    """A whole number within the limits."""
    if not word.isdigit():
        raise Fault(
            f"an index is a whole number from {rules.lowest} on, found {show(word)}."
        )
    digits = word.lstrip(b"0") or b"0"
    index = int(digits[:20])
    if index > rules.highest:
        raise Fault(
            f"index {digits[:20].decode()}{'...' if len(digits) > 20 else ''} is above "
            f"{rules.highest}, the largest that is allowed here."
        )
    if index < rules.lowest:
        raise Fault(
            "index 0 in a file read as one-based: pass index_base=0 (or 'auto')."
        )
    return index


def read_number(token: bytes, what: str, rules: Rules) -> float:
    """A decimal number."""
    if len(token) > LONGEST_NUMBER:
        raise Fault(f"{what} of more than {LONGEST_NUMBER} characters: {show(token)}.")
    if not NUMBER.fullmatch(token):
        raise Fault(f"{what} must be a number, found {show(token)}.")
    value = float(token)
    if rules.is_finite and not math.isfinite(value):
        raise Fault(f"{what} must be finite, found {show(token)}.")
    return value


def lacks_qid(token: bytes) -> Fault:
    """What is wrong with the token after a label that should be a qid."""
    found = f", found {show(token)}" if token else ""
    return Fault(f"'qid:' and a whole number expected after the label{found}.")


def too_long(longest: int) -> Fault:
    """What is wrong with a line that does not end in time."""
    return Fault(
        f"a line of more than {longest:,} bytes; if that is meant, pass max_line_bytes."
    )


# Lines.


class Reader:
    """Collects the rows of a text, line by line."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.y, self.value = array("d"), array("d")
        self.qid, self.ends, self.indices = array("q"), array("q"), array("q")
        self.lowest, self.highest = 2**62, -1
        self.at = 0  # the token that is being read

    def read(self, line: bytes) -> None:
        tokens = line.partition(b"#")[0].split()
        if tokens:
            self._read_row(tokens)
        if len(line) > self.rules.longest:
            self.at = 0
            raise too_long(self.rules.longest)

    def _read_row(self, tokens: list[bytes]) -> None:
        self.at, rules = 0, self.rules
        self.y.append(read_label(tokens[0], rules))
        self.at = 1
        if len(tokens) > 1 and tokens[1].startswith(b"qid:"):
            self.qid.append(read_qid(tokens[1]))
            self.at = 2
        elif rules.needs_qid:
            raise lacks_qid(tokens[1] if len(tokens) > 1 else b"")
        self._read_pairs(tokens)
        self.ends.append(len(self.indices))

    def _read_pairs(self, tokens: list[bytes]) -> None:
        previous, rules = -1, self.rules
        for at in range(self.at, len(tokens)):
            self.at, token = at, tokens[at]
            index, value = -1, math.inf
            if found := PAIR.fullmatch(token):
                index, value = int(found[1]), float(found[2])
            is_usual = max(previous + 1, rules.lowest) <= index <= rules.highest
            if not is_usual or value in (math.inf, -math.inf) or len(token) > 99:
                index, value = read_pair(token, previous, rules)
            elif not rules.has_pairs:
                read_pair(token, previous, rules)
            self.indices.append(index - rules.shift)
            self.value.append(value)
            if previous < 0:
                self.lowest = min(self.lowest, index)
            previous = index
        self.highest = max(self.highest, previous)

    def result(self) -> Parsed:
        width = np.int32 if self.rules.highest < 2**31 else np.int64
        return Parsed(
            np.array(self.y),
            np.array(self.qid, dtype=np.int64),
            np.array(self.ends, dtype=np.int64),
            np.array(self.indices, dtype=width),
            np.array(self.value),
            self.lowest,
            self.highest,
        )


def parse_plain(text: bytes, rules: Rules, name: str) -> Parsed:
    """All lines of a text."""
    reader = Reader(rules)
    for number, line in enumerate(text.split(b"\n"), start=1):
        try:
            reader.read(line)
        except Fault as fault:
            body = line.partition(b"#")[0]
            places = [found.start() for found in TOKEN.finditer(body)]
            at = places[reader.at] if reader.at < len(places) else len(body)
            column = at + fault.offset + 1
            raise DataFormatError(
                str(fault), path=name, line=number, column=column
            ) from None
    return reader.result()
