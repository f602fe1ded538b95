"""Are kernel values right to the last digits?"""

from __future__ import annotations

import naive
import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.kernels.elementwise import (
    SMALLEST,
    exp_of_negative,
    fill_exponential,
    fill_polynomial,
    fill_rbf,
    fill_sigmoid,
    integer_power,
)

Floats = npt.NDArray[np.float64]

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]


def exp_of_all(x: Floats) -> Floats:
    """The compiled loop's e**x."""
    out = np.empty((1, len(x)))
    fill_exponential(-x[None, :], 1.0, out, (0, 0))
    return out[0]


@pytest.mark.parametrize("low", [-1e-8, -1.0, -40.0, SMALLEST])
def test_exponential_is_within_two_ulp(low: float) -> None:
    x = np.concatenate((np.linspace(low, 0.0, 4001)[1:], low * np.geomspace(1e-9, 1)))
    x = x[x > SMALLEST]

    error = np.abs(exp_of_all(x) - np.exp(x)) / np.spacing(np.exp(x))

    assert error.max() <= 2.0


@pytest.mark.parametrize("x", [-708.001, -745.0, -1e4, -1e15])
def test_exponential_underflows_to_zero(x: float) -> None:
    assert exp_of_all(np.array([x])) == 0.0


def test_exponential_of_zero_is_one() -> None:
    assert exp_of_negative(0.0) == 1.0
    assert exp_of_negative(-0.0) == 1.0


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5, 8, 31])
def test_integer_power_agrees_with_pow(degree: int) -> None:
    bases = np.array([-3.7, -1.0, -1e-3, 0.0, 0.3, 1.0, 2.5, 10.0])

    found = [integer_power(base, degree) for base in bases]

    np.testing.assert_allclose(found, bases**degree, rtol=1e-14)


def tiles(dtype: type) -> tuple[Floats, Floats, npt.NDArray, slice]:
    """Two sets of rows, and a matrix with a margin that must not be touched."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    B[2] = A[1]
    return A, B, np.full((7, 8), 9.0, dtype=dtype), (slice(2, 6), slice(3, 8))


def assert_tile(
    out: npt.NDArray, inside: tuple[slice, slice], expected: Floats
) -> None:
    """The tile holds the values, and nothing else has been written."""
    rtol = 1e-12 if out.dtype == np.float64 else 1e-7
    np.testing.assert_allclose(out[inside], expected, rtol=rtol, atol=1e-15)
    outside = np.ones(out.shape, dtype=bool)
    outside[inside] = False
    assert np.all(out[outside] == 9.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rbf_tile(dtype: type) -> None:
    A, B, out, inside = tiles(dtype)
    norms = (A * A).sum(axis=1), (B * B).sum(axis=1)

    fill_rbf(A @ B.T, norms, 0.6, out, (2, 3))

    assert_tile(out, inside, naive.rbf(A, B, 0.6))
    assert out[inside][1, 2] == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_tile(dtype: type) -> None:
    A, B, out, inside = tiles(dtype)
    distances = np.abs(A[:, None] - B[None]).sum(axis=2)

    fill_exponential(distances, 0.6, out, (2, 3))

    assert_tile(out, inside, naive.laplacian(A, B, 0.6))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polynomial_tile(dtype: type) -> None:
    A, B, out, inside = tiles(dtype)

    fill_polynomial(A @ B.T, (0.6, 5.0, 4), out, (2, 3))

    assert_tile(out, inside, naive.polynomial(A, B, 0.6, 5.0, 4))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sigmoid_tile(dtype: type) -> None:
    A, B, out, inside = tiles(dtype)

    fill_sigmoid(A @ B.T, (0.6, 4.0), out, (2, 3))

    assert_tile(out, inside, naive.sigmoid(A, B, 0.6, 4.0))
