"""How are numbers put into svmlight text fast? Digits first, then bytes.

`find_digits` finds the digits of each number, or says that it cannot; Python then
spells those. `put_rows` lays all of it out as C's %g would.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._jit import jit
from maxmargin.data.svmlight_numbers import (
    TEN,
    WHOLE_POWERS,
    ZERO,
    to_decimal,
    to_float,
)

LINE_FEED, BLANK, MINUS, POINT, DIGIT_0, COLON = 10, 32, 45, 46, 48, 58
PLUS, LETTER_D, LETTER_E, LETTER_I, LETTER_Q = 43, 100, 101, 105, 113
SHORT_DIGITS = 15  # of which every number survives float64
SPELT = -1  # a number that Python has spelt
LEAST_POSITIONAL = -4  # below that power C's %g writes an exponent
MOST_BYTES = 26  # of a number and what parts it from the next


class Digits(NamedTuple):
    """Each number as digits * 10^(power + 1 - precision), digits SPELT if not found."""

    digits: NDArray[np.int64]  # without zeros at the end
    power: NDArray[np.int64]  # of the first digit
    precision: NDArray[np.int64]  # what %g was asked for


class Rows(NamedTuple):
    """Rows to be written; qid may be empty."""

    y: Digits
    y_sign: NDArray[np.bool_]
    qid: NDArray[np.int64]
    ends: NDArray[np.int64]
    indices: NDArray[np.int64]
    value: Digits
    value_sign: NDArray[np.bool_]
    words: NDArray[np.uint8]  # what Python has spelt, a row each, zeros after it


@jit
def digits_of(size: float, precision: int) -> tuple[Any, int, int, bool]:
    """Digits of a number >= 0, the power of the first, of how many they are, if sure.

    A precision of 17 means as few of 15, 16 and 17 as give the number back.
    """
    n = precision if precision < 17 else SHORT_DIGITS
    if size == 0.0:
        return ZERO, 0, n, True
    while True:
        digits, power, is_sure = to_decimal(size, n)
        if not is_sure or n == precision:
            return digits, power, n, is_sure
        back, is_sure = to_float(digits, power + 1 - n)
        if not is_sure or back == size:
            return digits, power, n, is_sure
        n += 1


@jit
def find_digits(value: Any, precision: int, found: Digits) -> None:
    """The digits of each |value|, without zeros at their end."""
    for k in range(len(value)):
        digits, power, n, is_sure = digits_of(abs(value[k]), precision)
        while digits != ZERO and digits % TEN == ZERO:
            digits //= TEN
        found.digits[k] = np.int64(digits) if is_sure else SPELT
        found.power[k], found.precision[k] = power, n


@jit
def put_whole(out: Any, at: int, number: int) -> int:
    """A whole number in decimal; the place after it."""
    if number < 0:
        out[at] = MINUS
        at, number = at + 1, -number
    n_digits = 1
    while n_digits < 19 and np.uint64(number) >= WHOLE_POWERS[n_digits]:
        n_digits += 1
    for place in range(at + n_digits - 1, at - 1, -1):
        out[place] = DIGIT_0 + number % 10
        number //= 10
    return at + n_digits


@jit
def put_number(out: Any, at: int, digits: int, power: int, precision: int) -> int:
    """Digits with a point or an exponent, as %g has it; the place after them."""
    if power < LEAST_POSITIONAL or power >= precision:
        end = put_whole(out, at + 1, digits)
        out[at] = out[at + 1]
        out[at + 1] = POINT
        end -= end == at + 2  # a single digit has no point
        out[end] = LETTER_E
        out[end + 1] = MINUS if power < 0 else PLUS
        if abs(power) < 10:
            out[end + 2] = DIGIT_0
            end += 1
        return put_whole(out, end + 2, abs(power))
    if power < 0:
        out[at], out[at + 1] = DIGIT_0, POINT
        out[at + 2 : at + 1 - power] = DIGIT_0
        return put_whole(out, at + 1 - power, digits)
    end = put_whole(out, at, digits)
    whole_end = at + power + 1
    if end > whole_end:
        for place in range(end, whole_end, -1):
            out[place] = out[place - 1]
        out[whole_end] = POINT
        return end + 1
    out[end:whole_end] = DIGIT_0
    return whole_end


@jit
def put_signed(out: Any, at: int, number: Any, is_negative: bool, words: Any) -> Any:
    """A number, and the words that are left once it is written."""
    digits, power, precision = number
    if digits == SPELT:
        for c in words[0]:
            if c:
                out[at] = c
                at += 1
        return at, words[1:]
    if is_negative:
        out[at] = MINUS
        at += 1
    return put_number(out, at, digits, power, precision), words


@jit
def put_qid(out: Any, at: int, qid: int) -> int:
    out[at], out[at + 1], out[at + 2], out[at + 3] = BLANK, LETTER_Q, LETTER_I, LETTER_D
    out[at + 4] = COLON
    return put_whole(out, at + 5, qid)


@jit
def put_rows(rows: Rows, out: Any) -> int:
    """All rows as text, and its bytes; `out` has room for the most there may be."""
    at, k, words = 0, 0, rows.words
    y, value = rows.y, rows.value
    for i in range(len(rows.ends)):
        label = (y.digits[i], y.power[i], y.precision[i])
        at, words = put_signed(out, at, label, rows.y_sign[i], words)
        if len(rows.qid):
            at = put_qid(out, at, rows.qid[i])
        while k < rows.ends[i]:
            out[at] = BLANK
            at = put_whole(out, at + 1, rows.indices[k])
            out[at] = COLON
            number = (value.digits[k], value.power[k], value.precision[k])
            at, words = put_signed(out, at + 1, number, rows.value_sign[k], words)
            k += 1
        out[at] = LINE_FEED
        at += 1
    return at
