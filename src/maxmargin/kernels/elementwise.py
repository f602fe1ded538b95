"""How do dot products become kernel values? One pass over memory per block.

`math.exp` in compiled code is a call per element; the polynomial here has no branch
and vectorises. It is within 2 ulp of the library's (tests/kernels/test_elementwise.py).
"""

import math

import numpy as np

from maxmargin._jit import jit
from maxmargin.typing import FloatMatrix, FloatVector, KernelMatrix

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93145751953125e-1  # 20 bits of ln 2, so that n * LN2_HIGH is exact
LN2_LOW = 1.42860682030941723212e-6  # the rest of ln 2
ROUND_TO_INT = 6755399441055744.0  # 1.5 * 2**52: adding it leaves n in the low bits
ROUNDING = 7e-15  # relative: a squared distance below this is one of equal rows
SMALLEST = -708.0  # below, e**x is 0 here: the library has denormals down to -745


@jit
def exp_of_negative(x: float) -> float:
    """e**x for x <= 0: 2**n times a polynomial on |r| <= ln(2)/2 (Cody & Waite)."""
    shifted = x * LOG2_E + ROUND_TO_INT
    n = shifted - ROUND_TO_INT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 2.08767569878681e-09  # 1/12!, and so on down to 1/0!
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.3888888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)
    value = p * np.int64(bits).view(np.float64)
    return value if x > SMALLEST else 0.0


# Each pass below writes a tile whose upper left corner is (top, left) of `out`: rows of
# a C-ordered matrix are contiguous for the compiler, those of a view of it are not.


@jit
def fill_rbf(
    dots: FloatMatrix,
    norms: tuple[FloatVector, FloatVector],
    gamma: float,
    out: KernelMatrix,
    corner: tuple[int, int],
) -> None:
    """exp(-gamma (|a|² + |b|² - 2 <a, b>))."""
    norms_a, norms_b = norms
    top, left = corner
    for i in range(dots.shape[0]):
        row = out[top + i][left : left + dots.shape[1]]
        rbf_row(dots[i], norms_a[i], norms_b, gamma, row)


@jit
def rbf_row(
    dots: FloatVector,
    norm: float,
    norms: FloatVector,
    gamma: float,
    row: KernelMatrix,
) -> None:
    """One row of the above."""
    for j in range(dots.size):
        squared = norm + norms[j] - 2.0 * dots[j]
        squared = squared if squared > ROUNDING * (norm + norms[j]) else 0.0
        row[j] = exp_of_negative(-gamma * squared)


@jit
def fill_exponential(
    distances: FloatMatrix, gamma: float, out: KernelMatrix, corner: tuple[int, int]
) -> None:
    """exp(-gamma distances)."""
    top, left = corner
    for i in range(distances.shape[0]):
        row = out[top + i][left : left + distances.shape[1]]
        for j in range(row.size):
            row[j] = exp_of_negative(-gamma * distances[i, j])


@jit
def fill_polynomial(
    dots: FloatMatrix,
    shape: tuple[float, float, int],
    out: KernelMatrix,
    corner: tuple[int, int],
) -> None:
    """(gamma dots + coef0) ** degree by repeated squaring."""
    gamma, coef0, degree = shape
    top, left = corner
    for i in range(dots.shape[0]):
        row = out[top + i][left : left + dots.shape[1]]
        for j in range(row.size):
            row[j] = integer_power(gamma * dots[i, j] + coef0, degree)


@jit
def integer_power(base: float, degree: int) -> float:
    """base ** degree with log2(degree) products instead of a call of pow()."""
    result = 1.0
    while degree > 0:
        if degree & 1:
            result *= base
        base *= base
        degree >>= 1
    return result


@jit
def fill_sigmoid(
    dots: FloatMatrix,
    shape: tuple[float, float],
    out: KernelMatrix,
    corner: tuple[int, int],
) -> None:
    """tanh(gamma dots + coef0)."""
    gamma, coef0 = shape
    top, left = corner
    for i in range(dots.shape[0]):
        row = out[top + i][left : left + dots.shape[1]]
        for j in range(row.size):
            row[j] = math.tanh(gamma * dots[i, j] + coef0)
