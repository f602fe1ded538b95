"""How far does LIBLINEAR's coordinate descent come in one sweep over shuffled samples?

Samples at a bound that the last sweep's slopes leave no reason to move are left out of
the next ones. The order is drawn by C's rand(), so that the visits, and what a loose
tolerance makes of them, are those of LIBLINEAR. (Hsieh et al., ICML 2008, algorithm 3.)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._jit import jit
from maxmargin.data.row_verbs import RowParts, row_add, row_dot
from maxmargin.typing import FloatVector, IntVector

LAGS = 31  # numbers that rand() remembers
SHORT_LAG = 3
WORD = 0xFFFFFFFF
LEAST_SLOPE = 1e-12  # a smaller one moves nothing

State = NDArray[np.int64]  # the last 31 numbers of rand(), and where the oldest is


class Terms(NamedTuple):
    """What each sample's variable alpha, from 0 to `upper`, is judged by."""

    sign: FloatVector
    upper: FloatVector
    ridge: FloatVector
    curvature: FloatVector  # squared norm and ridge


class Walk(NamedTuple):
    """Where the descent is."""

    alpha: FloatVector
    weight: FloatVector
    order: IntVector  # samples in the order of visits, those left out at the end
    slopes: FloatVector  # the largest and the smallest of the last sweep


@jit
def draw(state: State) -> int:
    """The next number of rand()."""
    place = state[LAGS]
    value = (state[place] + state[(place + LAGS - SHORT_LAG) % LAGS]) & WORD
    state[place] = value
    state[LAGS] = (place + 1) % LAGS
    return value >> 1


@jit
def sweep(
    rows: RowParts, bias: float, terms: Terms, walk: Walk, n_active: int, state: State
) -> int:
    """Visit the first `n_active` samples, shuffled; return how many stay active."""
    order = walk.order
    for i in range(n_active):
        j = i + draw(state) % (n_active - i)
        order[i], order[j] = order[j], order[i]
    most, least = -np.inf, np.inf
    place = 0
    while place < n_active:
        i = order[place]
        slope = slope_of(rows, bias, terms, walk, i)
        if is_settled(walk.alpha[i], terms.upper[i], slope, walk.slopes):
            n_active -= 1
            order[place], order[n_active] = order[n_active], order[place]
            continue
        place += 1
        gain = projected(walk.alpha[i], terms.upper[i], slope)
        most, least = max(most, gain), min(least, gain)
        if abs(gain) > LEAST_SLOPE:
            move(rows, bias, terms, walk, i, slope)
    walk.slopes[0], walk.slopes[1] = most, least
    return n_active


@jit
def slope_of(rows: RowParts, bias: float, terms: Terms, walk: Walk, i: int) -> float:
    """The derivative of the dual objective by alpha_i."""
    height = row_dot(rows, i, walk.weight)
    if bias != 0.0:
        height += bias * walk.weight[-1]
    return terms.sign[i] * height - 1.0 + walk.alpha[i] * terms.ridge[i]


@jit
def is_settled(alpha: float, upper: float, slope: float, slopes: FloatVector) -> bool:
    """Whether a variable at its bound is held there by more than all slopes seen."""
    if alpha == 0.0:
        return slope > slopes[0]
    return alpha == upper and slope < slopes[1]


@jit
def projected(alpha: float, upper: float, slope: float) -> float:
    """The slope along which the variable may move."""
    if alpha == 0.0:
        return min(slope, 0.0)
    if alpha == upper:
        return max(slope, 0.0)
    return slope


@jit
def move(
    rows: RowParts, bias: float, terms: Terms, walk: Walk, i: int, slope: float
) -> None:
    """To the minimum along one variable."""
    before = walk.alpha[i]
    after = min(max(before - slope / terms.curvature[i], 0.0), terms.upper[i])
    walk.alpha[i] = after
    change = (after - before) * terms.sign[i]
    row_add(rows, i, change, walk.weight)
    if bias != 0.0:
        walk.weight[-1] += bias * change
