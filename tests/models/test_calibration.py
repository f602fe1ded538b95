"""Are sigmoids, scales and marks those that slow twins find?"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from maxmargin.models import calibration
from maxmargin.models.calibration import density_marks, fit_sigmoid, laplace_scale
from maxmargin.models.probability import conformal_width, couple, laplace_width

Floats = npt.NDArray[np.float64]


def likelihood(at: Floats, decisions: Floats, y: Floats, weight: Floats) -> float:
    """Platt's regularised loss, sample by sample."""
    positive = sum(w for w, s in zip(weight, y, strict=True) if s > 0)
    negative = sum(w for w, s in zip(weight, y, strict=True) if s <= 0)
    total = 0.0
    for d, s, w in zip(decisions, y, weight, strict=True):
        target = (positive + 1) / (positive + 2) if s > 0 else 1 / (negative + 2)
        likely = 1 / (1 + math.exp(at[0] * d + at[1]))
        total -= w * (target * math.log(likely) + (1 - target) * math.log(1 - likely))
    return total


def draw(seed: int, n: int = 60) -> tuple[Floats, Floats, Floats]:
    random = np.random.default_rng(seed)
    y = np.where(random.random(n) < 0.4, 1.0, -1.0)
    return y + random.normal(0.3, 1.2, n), y, random.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("seed", range(5))
def test_a_sigmoid_is_the_likeliest(seed: int) -> None:
    decisions, y, weight = draw(seed)

    found = fit_sigmoid(decisions, y, weight)

    best = minimize(
        likelihood, np.zeros(2), (decisions, y, weight), "BFGS", options={"gtol": 1e-8}
    )
    assert np.abs(np.array(found) - best.x).max() < 1e-5
    assert found.slope < 0.0


def test_weights_of_sigmoids_count_as_copies() -> None:
    decisions, y, _ = draw(7)
    copies = np.random.default_rng(0).integers(1, 4, len(y))

    weighted = fit_sigmoid(decisions, y, copies.astype(float))
    repeated = fit_sigmoid(np.repeat(decisions, copies), np.repeat(y, copies))

    assert np.abs(np.subtract(weighted, repeated)).max() < 1e-9


@pytest.mark.parametrize("distance", [1e-3, 1.0, 1e4, 1e8])
def test_separated_classes_have_a_finite_sigmoid(distance: float) -> None:
    y = np.repeat([1.0, -1.0], 20)

    found = fit_sigmoid(distance * y, y)

    likely = 1 / (1 + np.exp(found.slope * distance + found.offset))
    assert np.isfinite(found).all()
    assert likely == pytest.approx(21 / 22, abs=1e-3)


def test_one_class_alone_is_likely() -> None:
    found = fit_sigmoid(np.zeros(30), np.ones(30))

    assert 1 / (1 + math.exp(found.offset)) == pytest.approx(31 / 32, abs=1e-6)


def test_the_scale_is_the_mean_error_without_the_outlying() -> None:
    errors = np.array([*np.linspace(-1, 1, 99), 500.0])

    mean = sum(abs(e) for e in errors) / 100
    kept = [abs(e) for e in errors if abs(e) <= 5 * math.sqrt(2) * mean]
    assert len(kept) == 99
    assert laplace_scale(errors) == pytest.approx(sum(kept) / 99, rel=1e-12)
    assert laplace_scale(np.repeat(errors, 2)) == pytest.approx(laplace_scale(errors))
    weight = np.array([2.0] * 50 + [1.0] * 50)
    repeated = np.repeat(errors, weight.astype(int))
    assert laplace_scale(errors, weight) == pytest.approx(laplace_scale(repeated))


def naive_marks(decisions: list[float]) -> list[float]:
    """Que & Lin: fifths of the samples outside and of those inside, then midpoints."""
    values = sorted(decisions)
    outside = [v for v in values if v < 0]
    inside = [v for v in values if v >= 0]
    ends = [outside[i * len(outside) // 5] for i in range(5)] + [0.0]
    ends += [[0.0, *inside][i * len(inside) // 5] for i in range(1, 6)]
    return [(a + b) / 2 for a, b in pairwise(ends)]


@pytest.mark.parametrize("n", [5, 6, 9, 50, 333])
def test_marks_are_midway_between_fifths(n: int) -> None:
    random = np.random.default_rng(n)
    decisions = np.concatenate((-random.random(n), random.random(n + 3)))

    found = density_marks(random.permutation(decisions))

    assert found is not None
    assert found.tolist() == pytest.approx(naive_marks(decisions.tolist()))
    assert (np.diff(found) >= 0).all()


def test_too_few_samples_leave_no_marks() -> None:
    assert density_marks(np.array([-1.0] * 4 + [1.0] * 50)) is None
    assert density_marks(np.array([-1.0] * 50 + [1.0] * 4)) is None


def naive_coupling(r: Floats) -> Floats:
    """One sample, one class at a time (Wu, Lin & Weng, algorithm 1)."""
    k = len(r)
    Q = np.array(
        [
            [
                sum(r[s, t] ** 2 for s in range(k) if s != t)
                if t == j
                else -r[j, t] * r[t, j]
                for j in range(k)
            ]
            for t in range(k)
        ]
    )
    p = np.full(k, 1 / k)
    for _ in range(100):
        if max(abs(Q[t] @ p - p @ Q @ p) for t in range(k)) < 0.005 / k:
            break
        for t in range(k):
            p[t] = (p @ Q @ p - (Q[t] @ p - Q[t, t] * p[t])) / Q[t, t]
            p = p / p.sum()
    return p


@pytest.mark.parametrize("k", [3, 4, 7])
def test_coupling_is_that_of_the_algorithm(k: int) -> None:
    random = np.random.default_rng(k)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    first = random.uniform(0.02, 0.98, (25, len(pairs)))

    found = couple(first, k)

    for sample, values in zip(found, first, strict=True):
        r = np.zeros((k, k))
        for (i, j), value in zip(pairs, values, strict=True):
            r[i, j], r[j, i] = value, 1 - value
        assert np.abs(sample - naive_coupling(r)).max() < 1e-12
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-12


def test_widths_of_intervals() -> None:
    assert laplace_width(2.0, 0.9) == pytest.approx(2.0 * math.log(10.0))
    errors = np.arange(1.0, 10.0)
    assert conformal_width(errors, 0.9) == 9.0
    assert conformal_width(errors, 0.5) == 5.0
    assert conformal_width(errors, 0.91) == math.inf


def test_a_sigmoid_does_not_look_for_what_rounding_hides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a loss of 1e9, no step of a line search can tell the last digits."""
    seen, loss = [], calibration._loss

    def counted(*given: Any) -> Any:
        seen.append(loss(*given))
        return seen[-1]

    monkeypatch.setattr(calibration, "_loss", counted)
    decisions, y, weight = draw(1, 2000)
    likeliest = getattr(calibration._likeliest, "py_func", calibration._likeliest)

    slope, offset = likeliest(decisions, (y + 1.0) / 2.0, 1e6 * weight, 0.0)

    assert len(seen) < 15
    last = loss(decisions, (y + 1.0) / 2.0, 1e6 * weight, slope, offset)
    assert max(abs(last.by_slope), abs(last.by_offset)) < 1e-12 * last.value
