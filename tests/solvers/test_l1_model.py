"""Does the model of an L1 problem end where its subgradients vanish?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from maxmargin.data.design import Design
from maxmargin.solvers.l1_columns import (
    Face,
    Side,
    Sweeps,
    minimise_columns,
)
from maxmargin.solvers.l1_model import (
    Place,
    lowest,
    minimise_square,
    step_on_support,
    violation_of,
    violations,
)
from maxmargin.solvers.result import Options
from maxmargin.solvers.watch import Watch

Floats = npt.NDArray[np.float64]

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]
every_rank = pytest.mark.parametrize("rank", [2, 6, 30], ids="rank {}".format)


def draw(rank: int, seed: int = 0, n: int = 9) -> tuple[Floats, Floats, Place]:
    """Rows, their curvature, and a random place of the model they make."""
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(rank, n)), rng.uniform(0.1, 2.0, size=rank)
    x = np.where(rng.random(n) < 0.5, rng.normal(size=n), 0.0)
    penalty = np.ones(n)
    penalty[-1] = seed % 2
    grad = (X.T * theta) @ (X @ x - 3.0 * rng.normal(size=rank))
    return X, theta, Place(x, grad, penalty)


def square(X: Floats, theta: Floats) -> Floats:
    return np.ascontiguousarray((X.T * theta) @ X)


def value(H: Floats, start: Place, x: Floats) -> float:
    """The model at x, relative to its smooth part at the start."""
    d = x - start.x
    return float(start.grad @ d + 0.5 * d @ H @ d + start.penalty @ np.abs(x))


def copy(place: Place) -> Place:
    return Place(place.x.copy(), place.grad.copy(), place.penalty)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("curve", [0.5, 4.0])
def test_one_weight_goes_where_its_parabola_is_lowest(
    penalty: float, curve: float
) -> None:
    grid = np.linspace(-12.0, 12.0, 24_001)
    for x in (-1.0, 0.0, 2.0):
        for slope in (-3.0, -0.7, 0.0, 0.7, 3.0):
            parabola = slope * (grid - x) + 0.5 * curve * (grid - x) ** 2

            found = lowest(x, slope, curve, penalty)

            best = grid[np.argmin(parabola + penalty * np.abs(grid))]
            assert found == pytest.approx(best, abs=2e-3)


def test_violations_agree_one_by_one() -> None:
    _, _, place = draw(6)

    expected = [violation_of(*each) for each in zip(*place, strict=True)]

    np.testing.assert_allclose(violations(*place), expected)


@every_rank
def test_newton_step_goes_down_and_keeps_the_slope(rank: int) -> None:
    for seed in range(20):
        X, theta, start = draw(rank, seed)
        H, place = square(X, theta), copy(start)
        support = np.flatnonzero(place.is_bent)

        n_zeros = step_on_support(H, place, support)

        assert value(H, start, place.x) <= value(H, start, start.x) + 1e-12
        slope = start.grad + H @ (place.x - start.x)
        np.testing.assert_allclose(place.grad, slope, atol=1e-9)
        assert n_zeros == np.count_nonzero((place.x == 0.0) & (start.x != 0.0))
        assert (place.x * start.x >= 0.0)[start.penalty > 0.0].all()


@every_rank
def test_both_ways_end_at_the_same_value(rank: int) -> None:
    for seed in range(5):
        X, theta, start = draw(rank, seed)
        H, watch = square(X, theta), Watch(Options())
        rng = np.random.default_rng(0)
        by_square, by_columns = copy(start), copy(start)
        face = Face(Side(Design(X)), np.arange(9))

        is_solved = minimise_square(H, by_square, 1e-9, 1e12, rng, watch)
        sweeps = Sweeps(1e-9, 50_000, rng, watch)
        is_swept = minimise_columns(face.weighted(theta), by_columns, sweeps)

        assert is_solved
        assert is_swept
        ends = [value(H, start, place.x) for place in (by_square, by_columns)]
        assert ends[0] == pytest.approx(ends[1], abs=1e-7)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("columns", [[4, 9], [0, 1, 2, 4, 5, 6, 8, 9]])
def test_a_face_is_the_columns_it_was_made_of(
    columns: list[int], is_sparse: bool
) -> None:
    X, theta, place = draw(30)
    whole = Design(sp.csr_matrix(X) if is_sparse else X, 2.0)
    A = np.column_stack([X, np.full(30, 2.0)])  # column 9 is the constant one
    n = len(columns)

    face = Face(Side(whole), np.array(columns))
    by_samples = [face.square(c * theta) for c in (1.0, 0.0, 2.0)]
    weighted = face.weighted(theta)

    W = A[:, columns]
    np.testing.assert_allclose(face.times(place.x[:n]), W @ place.x[:n])
    np.testing.assert_allclose(by_samples[-1], 2.0 * square(W, theta), atol=1e-12)
    assert weighted.sizes.tolist() == [30] * n
    assert weighted.at.tolist() == (list(range(n)) if n == 2 else columns)
    np.testing.assert_allclose(weighted.curves, np.diag(square(W, theta)))
