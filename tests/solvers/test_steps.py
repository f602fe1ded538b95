"""Does one move go exactly where the objective is lowest? Compared with a fine grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.kernels.cache import hold_all
from maxmargin.problems import DualProblem
from maxmargin.solvers.coordinates import move_one
from maxmargin.solvers.pairs import (
    CONVERGED,
    OUT_OF_MOVES,
    STALLED,
    exchange,
    pair_epoch,
)
from maxmargin.solvers.work import Work, gather_work, set_masks

Floats = npt.NDArray[np.float64]

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]

KINKS = [0.0, 0.3]
SIZES = [0.0, 0.4, 1.0, np.inf]


def draw(seed: int, group: int) -> tuple[Work, Floats]:
    """Two variables at a random point of a random box, and their objective's K."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(2, rng.integers(1, 3)))  # curvature may be small
    K = factor @ factor.T + (0.0 if seed % 5 == 0 else 0.05) * np.eye(2)
    upper, lower = rng.choice(SIZES, size=2), -rng.choice(SIZES, size=2)
    inside = np.clip(rng.choice([-0.2, -0.05, 0.0, 0.1, 0.3], size=2), lower, upper)
    ends = np.where(rng.random(2) < 0.5, upper, lower)
    beta = np.where((rng.random(2) < 0.3) & np.isfinite(ends), ends, inside)
    problem = DualProblem(
        linear=rng.normal(size=2),
        kink=rng.choice(KINKS, size=2),
        lower=lower,
        upper=upper,
        group=np.full(2, group),
        row=np.arange(2),
        start=beta,
    )
    grad = K @ beta + problem.linear
    return gather_work(problem, np.arange(2), beta, grad, K.diagonal()), K


def pair_moves(work: Work, curvature: float) -> float:
    """The first variable rises, the second one falls."""
    slope = work.grad[1] + work.fall[1] - work.grad[0] - work.rise[0]
    kinks, stops = work.kink, (work.upper[0], work.lower[1])
    *after, step, gain = exchange(*work.beta, slope, curvature, *kinks, *stops)
    work.beta[:] = after
    work.gained[0] += gain
    set_masks(work, 0, 2)
    return step


def loss(work: Work, K: Floats, before: Floats, change: Floats) -> Floats:
    """The objective after a change (one row each), relative to that before."""
    after = before + change
    quadratic = 0.5 * np.einsum("ti,ij,tj->t", change, K, change)
    kinks = (work.kink * (np.abs(after) - np.abs(before))).sum(axis=1)
    return quadratic + change @ work.grad + kinks


def grid(room: float) -> Floats:
    return np.linspace(0.0, min(room, 40.0), 20_001)


def assert_masks(work: Work) -> None:
    """rise and fall are those of the new point."""
    for k in range(2):
        beta, kink = work.beta[k], work.kink[k]
        rise = np.inf if beta >= work.upper[k] else kink if beta >= 0 else -kink
        fall = -np.inf if beta <= work.lower[k] else kink if beta > 0 else -kink
        assert (work.rise[k], work.fall[k]) == (rise, fall)


def assert_in_box(work: Work) -> None:
    assert np.all((work.lower <= work.beta) & (work.beta <= work.upper))


def assert_no_grid_point_is_better(
    reached: float, others: Floats, gained: float
) -> None:
    assert reached <= others.min() + 1e-10
    assert reached <= 0.0
    assert gained == pytest.approx(-reached, abs=1e-10)


@pytest.mark.parametrize("chunk", range(10))
def test_pair_moves_to_the_lowest_point_of_its_line(chunk: int) -> None:
    n_moved = 0
    for seed in range(100 * chunk, 100 * chunk + 100):
        work, K = draw(seed, group=0)
        before, direction = work.beta.copy(), np.array([1.0, -1.0])
        if work.grad[1] + work.fall[1] <= work.grad[0] + work.rise[0]:
            continue
        curvature = max(direction @ K @ direction, 1e-12)
        room = min(work.upper[0] - before[0], before[1] - work.lower[1])
        if np.isinf(room) and curvature < 1e-3:
            continue  # without end, or as good as

        step = pair_moves(work, curvature)

        n_moved += 1
        steps = np.append(grid(room), step)[:, None] * direction
        losses = loss(work, K, before, steps)
        assert_no_grid_point_is_better(losses[-1], losses[:-1], work.gained[0])
        np.testing.assert_allclose(work.beta, before + step * direction, atol=1e-14)
        assert_in_box(work)
        assert_masks(work)
    assert n_moved > 10


@pytest.mark.parametrize("chunk", range(10))
def test_one_moves_to_the_lowest_point_of_its_axis(chunk: int) -> None:
    n_moved = 0
    for seed in range(100 * chunk, 100 * chunk + 100):
        work, K = draw(seed, group=-1)
        before, axis = work.beta.copy(), np.array([1.0, 0.0])
        up = work.grad[0] + work.rise[0] < 0.0
        down = work.grad[0] + work.fall[0] > 0.0
        if not (up or down) or K[0, 0] < 1e-3:
            continue

        step = move_one(work, 0, K[0, 0])

        n_moved += 1
        rising, falling = work.upper[0] - before[0], before[0] - work.lower[0]
        steps = np.concatenate((grid(rising), -grid(falling), [step]))[:, None] * axis
        losses = loss(work, K, before, steps)
        assert_no_grid_point_is_better(losses[-1], losses[:-1], work.gained[0])
        assert work.beta[0] == pytest.approx(before[0] + step, abs=1e-14)
        assert work.beta[1] == before[1]
        assert_in_box(work)
        assert_masks(work)
    assert n_moved > 10


def test_bounds_and_kinks_are_met_exactly() -> None:
    problem = DualProblem(
        linear=np.array([-1.0, 1.0]),
        kink=np.array([0.9, 0.0]),
        lower=np.array([-0.1, -0.7]),
        upper=np.array([0.1 + 0.2, 0.7]),
        group=np.zeros(2, dtype=np.intp),
        row=np.arange(2),
        start=np.array([-0.1, 0.1]),
    )
    flat = np.zeros(2)
    work = gather_work(problem, np.arange(2), problem.start, problem.linear, flat)

    pair_moves(work, 1e-12)
    assert work.beta[0] == problem.upper[0]

    steep = problem._replace(linear=np.array([-0.5, 0.0]))
    work = gather_work(steep, np.arange(2), steep.start, steep.linear, flat)
    move_one(work, 0, 1e-12)
    assert work.beta[0] == 0.0


# ----------------------------------------------------------- sums, and moves that stall
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4, 1e9])
def test_one_variable_gives_what_the_other_takes(scale: float) -> None:
    """To the last bit of the larger one, at any scale."""
    n_moved = 0
    for seed in range(200):
        work, K = draw(seed, 0)
        lower, upper = scale * work.lower, scale * work.upper
        work = work._replace(beta=scale * work.beta, lower=lower, upper=upper)
        before = work.beta.copy()
        if work.grad[1] + work.fall[1] <= work.grad[0] + work.rise[0]:
            continue

        step = pair_moves(work, max(K[0, 0] + K[1, 1] - 2.0 * K[0, 1], 1e-12))

        n_moved += 1
        change = work.beta - before
        last_bit = np.spacing(max(np.abs(before).max(), np.abs(work.beta).max()))
        assert abs(change.sum()) <= last_bit
        assert abs(step - change[0]) <= last_bit
    assert n_moved > 30


def epoch_on(K: Floats, linear: Floats, C: float, kink: float) -> tuple[int, Work]:
    n = len(K)
    problem = DualProblem(
        linear=linear,
        kink=np.full(n, kink),
        lower=np.full(n, -C),
        upper=np.full(n, C),
        group=np.zeros(n, dtype=np.intp),
        row=np.arange(n),
        start=np.zeros(n),
    )
    everything = np.arange(n)
    work = gather_work(problem, everything, np.zeros(n), linear.copy(), K.diagonal())
    why, _, _, _ = pair_epoch(work, hold_all(K.copy()), None, 1e-9, 20 * n, True)
    return why, work


@pytest.mark.parametrize("kink", [0.0, 2345.8])
@pytest.mark.parametrize("seed", range(10))
def test_a_variable_is_not_its_own_partner(seed: int, kink: float) -> None:
    """Rounding of large slopes over no curvature once promised the largest gain."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    linear = -1e6 * (3.0 + np.sin(X[:, 0]))

    _, work = epoch_on(K, linear, 1e6, kink)

    assert abs(work.beta.sum()) <= 1e-12 * np.abs(work.beta).sum()
    grad = K @ work.beta + linear
    np.testing.assert_allclose(work.grad, grad, atol=1e-12 * np.abs(grad).max() * 40)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_slopes_that_are_no_numbers_never_become_an_index(value: float) -> None:
    K = np.eye(300)
    linear = np.linspace(-1.0, 1.0, 300)
    linear[17] = value

    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, as plain Python
        why, work = epoch_on(K, linear, 1.0, 0.0)

    assert why in (CONVERGED, STALLED, OUT_OF_MOVES)
    assert len(work.beta) == 300
