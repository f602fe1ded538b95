"""Are decimal numbers and float64 turned into one another exactly?"""

from __future__ import annotations

import random
import struct
from decimal import Decimal

import datasets
import numpy as np
import pytest

from maxmargin.data.svmlight_numbers import multiply, to_decimal, to_float

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]

N = int(4000 * datasets.SCALE)


@pytest.fixture(autouse=True)
def wrap_silently() -> object:
    """Plain Python warns where compiled code wraps."""
    with np.errstate(over="ignore"):
        yield


def draw_float(rng: random.Random) -> float:
    """Any positive finite number, each exponent as likely."""
    bits = rng.randrange(1, 0x7FF0 << 48)
    return float(struct.unpack("d", struct.pack("Q", bits))[0])


def test_products_have_all_their_bits() -> None:
    rng = random.Random(0)
    for _ in range(200):
        a, b = rng.getrandbits(64), rng.getrandbits(rng.choice([5, 32, 33, 64]))

        high, low = multiply(np.uint64(a), np.uint64(b))

        assert (int(high) << 64) + int(low) == a * b


def test_decimals_become_the_nearest_float() -> None:
    rng = random.Random(1)
    n_sure = 0
    for _ in range(N):
        whole = rng.randrange(10 ** rng.randint(1, 19))
        power = rng.choice([rng.randint(-30, 30), rng.randint(-350, 320)])

        value, is_sure = to_float(np.uint64(whole), power)

        n_sure += is_sure
        assert not is_sure or value == float(f"{whole}e{power}")
    assert n_sure > 0.9 * N


def test_decimals_between_two_floats_go_to_the_nearer_or_are_left() -> None:
    rng = random.Random(2)
    for _ in range(N // 4):
        x = draw_float(rng) / 2
        middle = (Decimal(x) + Decimal(float(np.nextafter(x, np.inf)))) / 2
        digits, power = f"{middle:.18e}".split("e")
        for step in (-1, 0, 1):
            whole = int(digits.replace(".", "")) + step

            value, is_sure = to_float(np.uint64(whole), int(power) - 18)

            assert not is_sure or value == float(f"{whole}e{int(power) - 18}")


def test_floats_become_the_nearest_decimals() -> None:
    rng = random.Random(3)
    n_sure = 0
    for _ in range(N):
        x, n = (
            rng.choice([draw_float(rng), rng.lognormvariate(0, 5)]),
            rng.randint(1, 17),
        )

        digits, power, is_sure = to_decimal(x, n)

        expected, expected_power = f"{x:.{n - 1}e}".split("e")
        n_sure += is_sure
        if is_sure:
            assert int(digits) == int(expected.replace(".", ""))
            assert power == int(expected_power)
    assert n_sure > 0.95 * N


@pytest.mark.parametrize("x", [0.5, 2.5, 0.125, 1e22, 9.5, 99.5, 0.999999, 5e-324])
@pytest.mark.parametrize("n", [1, 2, 6, 15, 17])
def test_ties_and_edges_are_right_or_left_to_python(x: float, n: int) -> None:
    digits, power, is_sure = to_decimal(x, n)

    expected, expected_power = f"{x:.{n - 1}e}".split("e")
    if is_sure:
        assert int(digits) == int(expected.replace(".", ""))
        assert power == int(expected_power)
    else:
        assert Decimal(x).as_tuple().digits[n:][:1] == (5,) or x < 1e-300
