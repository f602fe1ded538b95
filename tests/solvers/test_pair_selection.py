"""Are the variables chosen those that a slow search would choose?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.problems import DualProblem
from maxmargin.solvers.coordinates import choose
from maxmargin.solvers.pair_selection import (
    SLICE,
    add_difference,
    add_row,
    find_highest,
    place_of_lowest,
    second_order_partner,
    worst_group,
)
from maxmargin.solvers.shrinking import survivors
from maxmargin.solvers.tuning import TUNING
from maxmargin.solvers.work import Work, gather_work

MIN_SHARE = TUNING.smo.min_shrunk_share
Floats = npt.NDArray[np.float64]

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]
every_size = pytest.mark.parametrize(
    ("n", "n_groups"), [(2, 1), (7, 2), (SLICE, 1), (2 * SLICE + 3, 3)]
)


def draw(n: int, n_groups: int, seed: int = 0) -> tuple[Work, Floats]:
    """Variables in groups, a third of them at a bound, and a row of K for each."""
    rng = np.random.default_rng(seed)
    group = np.sort(np.arange(n) % n_groups) if n_groups else np.full(n, -1)
    beta = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=n)
    problem = DualProblem(
        linear=np.zeros(n),
        kink=rng.choice([0.0, 0.2], size=n),
        lower=-np.ones(n),
        upper=np.ones(n),
        group=group,
        row=np.arange(n),
        start=beta,
    )
    factor = rng.normal(size=(n, 3))
    K = factor @ factor.T
    work = gather_work(problem, np.arange(n), beta, rng.normal(size=n), K.diagonal())
    return work, K


def look_for_worst(work: Work) -> tuple[int, int, float, float]:
    return worst_group(work.grad, work.rise, work.fall, work.start)


def violations(work: Work) -> list[float]:
    """One per group, by plain NumPy."""
    up, down = work.grad + work.rise, work.grad + work.fall
    ends = zip(work.start[:-1], work.start[1:], strict=True)
    return [float(down[a:b].max() - up[a:b].min()) for a, b in ends]


@every_size
def test_worst_group_and_its_pair(n: int, n_groups: int) -> None:
    work, _ = draw(n, n_groups)
    found = violations(work)
    expected = int(np.argmax(found))
    inside = slice(work.start[expected], work.start[expected + 1])

    first, g, lowest, violation = worst_group(
        work.grad, work.rise, work.fall, work.start
    )

    up, down = (work.grad + work.rise)[inside], (work.grad + work.fall)[inside]
    i = place(work, first, g, lowest)
    assert g == expected
    assert violation == pytest.approx(found[expected])
    assert lowest == up.min() == work.grad[i] + work.rise[i]
    assert inside.start <= i < inside.stop
    j = find_highest(work.grad, work.fall, inside.start, inside.stop)
    assert j == inside.start + int(np.argmax(down))


def place(work: Work, first: int, g: int, lowest: float) -> int:
    """Of the variable that has the lowest slope, which is in this slice."""
    last = min(first + SLICE, work.start[g + 1])
    return first + place_of_lowest(work.grad[first:last], work.rise[first:last], lowest)


def test_gains_too_small_for_float32_still_find_a_partner() -> None:
    n = SLICE + 3
    fall = np.full(n, -np.inf)
    fall[SLICE:] = 1e-25, 3e-25, 2e-25
    row, ends = np.zeros(n, dtype=np.float32), (0, n)

    j = second_order_partner(np.zeros(n), fall, np.ones(n), row, 1.0, ends, 0.0, 1e-12)

    assert j == SLICE + 1


@every_size
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_second_order_partner_gains_most(n: int, n_groups: int, dtype: type) -> None:
    work, K = draw(n, n_groups)
    first, g, lowest, _ = look_for_worst(work)
    i = place(work, first, g, lowest)
    row = K[i].astype(dtype)

    slopes, own, least = (work.grad, work.fall), work.diagonal[i], work.min_curvature
    ends = work.start[g], work.start[g + 1]
    j = second_order_partner(*slopes, work.diagonal, row, own, ends, lowest, least)

    gain = np.maximum(work.grad + work.fall - lowest, 0.0) ** 2 / np.maximum(
        work.diagonal[i] + work.diagonal - 2.0 * row.astype(float), work.min_curvature
    )
    inside = slice(work.start[g], work.start[g + 1])
    assert inside.start <= j < inside.stop
    assert gain[j] == pytest.approx(gain[inside].max())


@pytest.mark.parametrize("is_second_order", [True, False])
@pytest.mark.parametrize("n", [1, 7, SLICE, 2 * SLICE + 3])
def test_single_variable_is_the_best_one(n: int, is_second_order: bool) -> None:
    work, _ = draw(n, 0)
    slope = np.maximum(work.grad + work.fall, -work.grad - work.rise)
    slope = np.maximum(slope, 0.0)
    gain = slope**2 / np.maximum(work.diagonal, work.min_curvature)

    k, violation = choose(work, is_second_order)

    assert violation == pytest.approx(slope.max())
    worth = gain if is_second_order else slope
    assert worth[k] == pytest.approx(worth.max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradient_follows_a_move(dtype: type) -> None:
    work, K = draw(30, 1)
    rows, before = K.astype(dtype), work.grad.copy()

    add_difference(work.grad, rows[3], rows[5], 0.25)
    add_row(work.grad, rows[7], -0.5)

    exact = rows.astype(float)
    expected = before + 0.25 * (exact[3] - exact[5]) - 0.5 * exact[7]
    np.testing.assert_allclose(work.grad, expected, rtol=1e-14, atol=1e-15)


# --------------------------------------------------------------------------- shrinking
def test_survivors_are_those_that_may_still_move() -> None:
    work, _ = draw(60, 2)
    work.grad[work.rise == np.inf] -= 3.0  # at the upper bound, and wants to be there
    work.grad[work.fall == -np.inf] += 3.0

    keep = survivors(work, False, MIN_SHARE)

    up, down = work.grad + work.rise, work.grad + work.fall
    gone = np.setdiff1d(np.arange(60), keep)
    assert len(gone) > 10
    for g in range(2):
        inside = np.arange(work.start[g], work.start[g + 1])
        lowest, highest = up[inside].min(), down[inside].max()
        here = np.intersect1d(gone, inside)
        assert np.all(up[here] > highest)
        assert np.all(down[here] < lowest)


def test_survivors_without_equalities_leave_the_violation_alone() -> None:
    work, _ = draw(60, 0)
    work.grad[work.rise == np.inf] -= 3.0
    work.grad[work.fall == -np.inf] += 3.0

    keep = survivors(work, True, MIN_SHARE)

    slope = np.maximum(work.grad + work.fall, -work.grad - work.rise)
    gone = np.setdiff1d(np.arange(60), keep)
    assert len(gone) > 10
    assert slope.argmax() in keep
    assert np.all(slope[gone] < 0.0)


def test_too_few_are_not_worth_it() -> None:
    work, _ = draw(60, 1)
    work.grad[:] = 0.0

    assert survivors(work, False, MIN_SHARE) is None
