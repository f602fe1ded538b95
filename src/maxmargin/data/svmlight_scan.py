"""How is svmlight text read fast? One pass over the bytes of a chunk of whole lines.

Compiled code reads what files usually hold. A number that it cannot round for sure, or
does not know, becomes a NaN that carries the place of its token, and Python reads that
token (`svmlight_text`); a line that breaks the rules ends the chunk with the place of
the token to be blamed. Each chunk ends with a line feed, which is what ends the loops.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._jit import jit
from maxmargin.data.svmlight_numbers import MOST_DIGITS, ONE, TEN, ZERO, to_float
from maxmargin.data.svmlight_text import Rules

TAB, LINE_FEED, RETURN, BLANK, HASH = 9, 10, 13, 32, 35
PLUS, MINUS, POINT, DIGIT_0, DIGIT_9, COLON = 43, 45, 46, 48, 57, 58
LETTER_D, LETTER_E, LETTER_I, LETTER_Q = 100, 101, 105, 113
NOTHING: Any = np.int64(0)  # digits are added to it
LONGEST_WHOLE = 18  # digits that int64 always holds
LONGEST_USUAL = 99  # characters of a number that Python need not see
MOST_EXPONENT = 100_000  # beyond it all numbers are 0 or infinite

# What a chunk leaves behind: counts, then the fault (if any) and where it is.
ROWS, PAIRS, SLOW, LOWEST, HIGHEST, FAULT, PLACE, PREVIOUS, BEGIN = range(9)
N_MARKS = 9
BAD_LABEL, BAD_QID, NO_QID, BAD_PAIR, LONG_LINE = 1, 2, 3, 4, 5

LEFT_OPEN = np.uint64(0x7FF8 << 48)  # a NaN; its low bits are a place in the chunk
PLACE_BITS = np.uint64((1 << 48) - 1)


class Table(NamedTuple):
    """Where a chunk writes: rows, then pairs."""

    y: NDArray[np.float64]
    qid: NDArray[np.int64]
    ends: NDArray[Any]
    indices: NDArray[Any]
    value: NDArray[np.float64]


@jit
def ends_token(c: int) -> bool:
    is_space = c == BLANK or TAB <= c <= RETURN
    return is_space or c == HASH


@jit
def skip_token(text: Any, i: Any) -> Any:
    while not ends_token(text[i]):
        i += 1
    return i


@jit
def skip_blanks(text: Any, i: Any) -> Any:
    """To the next token, comment or line feed."""
    while text[i] == BLANK or (TAB <= text[i] <= RETURN and text[i] != LINE_FEED):
        i += 1
    return i


@jit
def read_exponent(text: Any, i: Any) -> tuple[Any, Any, bool]:
    """The whole number after the letter e, and whether there is one."""
    is_negative = text[i] == MINUS
    if is_negative or text[i] == PLUS:
        i += 1
    first, power = i, NOTHING
    while DIGIT_0 <= text[i] <= DIGIT_9:
        power = min(10 * power + np.int64(text[i]) - DIGIT_0, MOST_EXPONENT)
        i += 1
    return i, -power if is_negative else power, i > first


@jit
def has_few_digits(text: Any, first: int, i: Any) -> bool:
    """Whether no more digits follow the leading zeros than 64 bits hold."""
    n_digits = 0
    for j in range(first, i):
        if text[j] | BLANK == LETTER_E:
            break
        if text[j] != POINT and (n_digits or text[j] != DIGIT_0):
            n_digits += 1
    return n_digits <= MOST_DIGITS


@jit
def read_decimal(text: Any, i: Any) -> tuple[Any, float, bool]:
    """Where a number ends, its value, and whether it was read for sure."""
    token = i
    is_negative = text[i] == MINUS
    if is_negative or text[i] == PLUS:
        i += 1
    first, power, whole = i, 0, ZERO
    while DIGIT_0 <= text[i] <= DIGIT_9:
        whole = whole * TEN + np.uint64(text[i] - DIGIT_0)
        i += 1
    n_digits = i - first
    if text[i] == POINT:
        point = i
        i += 1
        while DIGIT_0 <= text[i] <= DIGIT_9:
            whole = whole * TEN + np.uint64(text[i] - DIGIT_0)
            i += 1
        power = point + 1 - i
        n_digits -= power
    is_sure = n_digits > 0
    if text[i] | BLANK == LETTER_E and is_sure:
        i, more, is_sure = read_exponent(text, i + 1)
        power += more
    if n_digits > MOST_DIGITS:
        is_sure = is_sure and has_few_digits(text, first, i)
    if not is_sure or not ends_token(text[i]) or i - token > LONGEST_USUAL:
        return skip_token(text, i), 0.0, False
    value, is_sure = to_float(whole, power)
    return i, -value if is_negative else value, is_sure


@jit
def leave_open(token: Any, marks: Any) -> float:
    """The NaN that stands for a token which Python shall read."""
    marks[SLOW] += 1
    return np.uint64(LEFT_OPEN | np.uint64(token - marks[BEGIN])).view(np.float64)


@jit
def read_long(text: Any, i: Any, token: Any, marks: Any) -> tuple[Any, float]:
    """Where a number ends, and its value or what stands for it."""
    end, value, is_sure = read_decimal(text, np.int64(i))
    return end, value if is_sure else leave_open(np.int64(token), marks)


@jit
def blame(fault: int, place: Any, previous: Any, marks: Any) -> None:
    marks[FAULT], marks[PLACE], marks[PREVIOUS] = fault, place, previous


@jit
def read_query(text: Any, i: Any, rules: Rules, table: Table, marks: Any) -> Any:
    """Past the qid, if there is one."""
    token = i
    is_there = text[i] == LETTER_Q and text[i + 1] == LETTER_I
    if not is_there or text[i + 2] != LETTER_D or text[i + 3] != COLON:
        if rules.needs_qid:
            blame(NO_QID, token, -1, marks)
        return i
    i += 4
    is_negative = text[i] == MINUS
    if is_negative or text[i] == PLUS:
        i += 1
    first, number = i, NOTHING
    while DIGIT_0 <= text[i] <= DIGIT_9:
        number = 10 * number + np.int64(text[i]) - DIGIT_0
        i += 1
    if i == first or i - first > LONGEST_WHOLE or not ends_token(text[i]):
        blame(BAD_QID, token, -1, marks)
    if rules.needs_qid:
        table.qid[marks[ROWS] - 1] = -number if is_negative else number
    return i


@jit
def read_pairs(text: Any, i: Any, rules: Rules, table: Table, marks: Any) -> Any:
    """All pairs of a line, up to its end, its comment or its first fault.

    This is where the time goes. It calls nobody with an array for a usual pair: such
    a call counts references, and costs as much as reading a number. Places are
    unsigned, since Numba asks of every other index whether it is negative.
    """
    k, previous, index_out, value_out = marks[PAIRS], -1, table.indices, table.value
    lowest, highest, shift = rules.lowest, rules.highest, rules.shift
    i = np.uint64(skip_blanks(text, i))
    while text[i] != LINE_FEED and text[i] != HASH:
        token, index = i, NOTHING
        while DIGIT_0 <= text[i] <= DIGIT_9 and index <= highest:
            index = 10 * index + np.int64(text[i]) - DIGIT_0
            i += ONE
        is_fine = i > token and text[i] == COLON and previous < index <= highest
        if not is_fine or index < lowest:
            blame(BAD_PAIR, np.int64(token), previous, marks)
            break
        number, whole = i + ONE, NOTHING
        first = i = number + np.uint64(text[number] == MINUS)
        while DIGIT_0 <= text[i] <= DIGIT_9:
            whole = 10 * whole + np.int64(text[i]) - DIGIT_0
            i += ONE
        n_digits, point = np.int64(i - first), i
        if text[i] == POINT:
            point = i = i + ONE
            while DIGIT_0 <= text[i] <= DIGIT_9:
                whole = 10 * whole + np.int64(text[i]) - DIGIT_0
                i += ONE
        n_after = np.int64(i - point)
        n_digits += n_after
        value, is_sure = 0.0, False
        if 0 < n_digits <= MOST_DIGITS and ends_token(text[i]):
            value, is_sure = to_float(np.uint64(whole), -n_after)
        if is_sure:
            value_out[k] = -value if text[number] == MINUS else value
        else:
            end, value_out[k] = read_long(text, number, token, marks)
            i = np.uint64(end)
        index_out[k] = index - shift
        previous, k = index, k + 1
        while text[i] == BLANK or (TAB <= text[i] <= RETURN and text[i] != LINE_FEED):
            i += ONE
    marks[HIGHEST] = max(marks[HIGHEST], previous)
    marks[PAIRS] = k
    return np.int64(i)


@jit
def read_row(text: Any, i: Any, rules: Rules, table: Table, marks: Any) -> Any:
    """Label, qid and pairs, from the first byte of the label on."""
    token, row = i, marks[ROWS]
    i, value, is_sure = read_decimal(text, i)
    if is_sure and value < rules.least_label:
        blame(BAD_LABEL, token, -1, marks)
        return i
    table.y[row] = value if is_sure else leave_open(token, marks)
    marks[ROWS] = row + 1
    i = read_query(text, skip_blanks(text, i), rules, table, marks)
    if marks[FAULT]:
        return i
    if not rules.has_pairs:
        i = skip_blanks(text, i)
        if text[i] != LINE_FEED and text[i] != HASH:
            blame(BAD_PAIR, i, -1, marks)
            return i
    before = marks[PAIRS]
    i = read_pairs(text, i, rules, table, marks)
    if marks[PAIRS] > before:
        marks[LOWEST] = min(marks[LOWEST], table.indices[before] + rules.shift)
    table.ends[row] = marks[PAIRS]
    return i


@jit
def read_chunk(
    text: Any, begin: int, end: int, rules: Rules, table: Table, marks: Any
) -> None:
    """All lines between two places; `marks` says what there was."""
    marks[:] = 0
    marks[LOWEST], marks[HIGHEST], marks[BEGIN] = rules.highest + 1, -1, begin
    line = begin
    while line < end:
        i = skip_blanks(text, line)
        if text[i] != LINE_FEED and text[i] != HASH:
            i = read_row(text, i, rules, table, marks)
            if marks[FAULT]:
                return
        while text[i] != LINE_FEED:
            i += 1
        if i - line > rules.longest:
            blame(LONG_LINE, line, -1, marks)
            return
        line = i + 1
