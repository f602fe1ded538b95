"""Which float64 is nearest to a decimal number, and which decimals to a float64?

Decimal to binary: one rounded operation where both parts are exact (Clinger, PLDI
1990), else a product with 128 bits of a power of five (Lemire, Software: Practice and
Experience 51, 2021). Binary to decimal: the same product the other way. Where the bits
at hand do not decide the rounding, the answer says so, and Python is asked.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._jit import jit

MOST_DIGITS = 19  # that 64 bits always hold
LEAST_POWER, MOST_POWER = -342, 308
EXACT_POWER = 22  # the largest power of ten that float64 holds exactly
EXACT_WHOLE = np.uint64(2**53)
POWERS = 10.0 ** np.arange(EXACT_POWER + 1)
WHOLE_POWERS = np.array([10**k for k in range(20)], dtype=np.uint64)

ZERO, ONE, THREE = np.uint64(0), np.uint64(1), np.uint64(3)
TEN = np.uint64(10)
ALL_BITS = np.uint64(2**64 - 1)
LOW_BITS, HALF_WIDTH = np.uint64(2**32 - 1), np.uint64(32)
TOP_PLACE = np.uint64(63)
FRACTION_BITS, HIDDEN_BIT = np.uint64(52), np.uint64(2**52)
SPARE_BITS = np.uint64(9)  # of 64: 53 of the answer, one to round by, one to be sure
DOUBTFUL = np.uint64(2**9 - 1)  # bits of a product that a carry would run through
EXPONENT_MASK = np.uint64(2047)
UP_TO_64 = np.uint64(11)  # 53 bits moved to the top of 64
NEAR = np.uint64(4)  # units within which the last bits of a product are not known


def _make_fives() -> NDArray[np.uint64]:
    """The first 128 bits of each power of five, those below one rounded up."""
    rows = []
    for power in range(LEAST_POWER, MOST_POWER + 1):
        whole: int = 5 ** abs(power)
        n_bits = whole.bit_length()
        if power < 0:
            bits = (1 << (n_bits + 127)) // whole + 1
        elif n_bits <= 128:
            bits = whole << (128 - n_bits)
        else:
            bits = whole >> (n_bits - 128)
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


FIVES = _make_fives()


@jit
def multiply(a: Any, b: Any) -> tuple[Any, Any]:
    """The upper and the lower 64 bits of a product."""
    a_low, a_high = a & LOW_BITS, a >> HALF_WIDTH
    b_low, b_high = b & LOW_BITS, b >> HALF_WIDTH
    low = a_low * b_low
    cross = a_high * b_low + (low >> HALF_WIDTH)
    middle = a_low * b_high + (cross & LOW_BITS)
    high = a_high * b_high + (cross >> HALF_WIDTH) + (middle >> HALF_WIDTH)
    return high, (middle << HALF_WIDTH) | (low & LOW_BITS)


@jit
def move_up(whole: Any) -> tuple[Any, int]:
    """A positive number moved until its top bit is set, and by how many places."""
    places = 0
    for width in (32, 16, 8, 4, 2, 1):
        if whole >> np.uint64(64 - width) == ZERO:
            whole <<= np.uint64(width)
            places += width
    return whole, places


@jit
def to_float(whole: Any, power: Any) -> tuple[float, bool]:
    """whole * 10^power, correctly rounded, and whether it is sure to be."""
    if whole <= EXACT_WHOLE and -EXACT_POWER <= power <= EXACT_POWER:
        exact = float(np.int64(whole))
        if power < 0:
            return exact / POWERS[-power], True
        return exact * POWERS[power], True
    if whole == ZERO:
        return 0.0, True
    if power < LEAST_POWER or power > MOST_POWER:
        return 0.0, False
    return round_product(whole, power)


@jit
def round_product(whole: Any, power: Any) -> tuple[float, bool]:
    """The same for any whole > 0 of 64 bits, by a product with 5^power."""
    moved, places = move_up(whole)
    row = power - LEAST_POWER
    high, low = multiply(moved, FIVES[row, 0])
    if high & DOUBTFUL == DOUBTFUL:
        carry, _ = multiply(moved, FIVES[row, 1])
        low += carry
        if carry > low:
            high += ONE
    top = high >> TOP_PLACE
    kept = high >> (top + SPARE_BITS)
    exponent = ((217_706 * power) >> 16) + 1086 - places + np.int64(top)
    is_sure = low != ALL_BITS and 0 < exponent < 2046
    if low <= ONE and kept & THREE == ONE:  # perhaps halfway between two numbers
        is_sure = False
    if not is_sure:
        return 0.0, False
    kept = (kept + (kept & ONE)) >> ONE
    if kept >= HIDDEN_BIT << ONE:
        kept >>= ONE
        exponent += 1
    bits = (kept & (HIDDEN_BIT - ONE)) | (np.uint64(exponent) << FRACTION_BITS)
    return np.uint64(bits).view(np.float64), True


@jit
def to_decimal(value: float, n_digits: int) -> tuple[Any, Any, bool]:
    """The n digits nearest to a value > 0, the power of its first, and if it is sure.

    The value is then about digits * 10^(power - n_digits + 1).
    """
    bits = np.float64(value).view(np.uint64)
    exponent = np.int64(bits >> FRACTION_BITS & EXPONENT_MASK)
    if not 0 < exponent < 2047:  # subnormal, infinite
        return ZERO, 0, False
    fraction = (bits & (HIDDEN_BIT - ONE)) | HIDDEN_BIT
    power = ((exponent - 1023) * 315_653) >> 20  # never above, at most one below
    for _ in range(2):
        row = n_digits - 1 - power - LEAST_POWER
        if row < 0 or row >= len(FIVES):
            return ZERO, 0, False
        digits, is_sure = scale(fraction << UP_TO_64, exponent - 1075, row)
        if not is_sure:
            return ZERO, 0, False
        if digits < WHOLE_POWERS[n_digits]:
            return digits, power, True
        power += 1
    return ZERO, 0, False


@jit
def scale(moved: Any, exponent: Any, row: Any) -> tuple[Any, bool]:
    """moved * 2^(exponent - 11) * 10^(power of that row), to the nearest whole."""
    power = row + LEAST_POWER
    high, low = multiply(moved, FIVES[row, 0])
    carry, _ = multiply(moved, FIVES[row, 1])
    low += carry
    if carry > low:
        high += ONE
    below = 10 - exponent - power - ((152_170 * power) >> 16)  # bits after the point
    if below < 1 or below > 63:
        return ZERO, False
    places = np.uint64(below)
    part = high & ((ONE << places) - ONE)
    half = ONE << (places - ONE)
    if part == half and low <= NEAR:
        return ZERO, False
    if part == half - ONE and low >= ALL_BITS - NEAR:
        return ZERO, False
    digits = high >> places
    if part >= half:
        digits += ONE
    return digits, True
