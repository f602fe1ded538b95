"""Which points of a grid are looked at, and in which order? All, or fewer of them.

(Jamieson & Talwalkar, AISTATS 2016, for successive halving.)
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from maxmargin.estimators.study import Score

Point: TypeAlias = tuple[int, ...]  # one place on each axis
FACTOR = 3  # of the points one is kept, and as many times the samples are taken
FEWEST_EACH = 20  # samples for each fold and class in the first round of halving


class Tried(NamedTuple):
    """A point with its score."""

    point: Point
    score: Score
    round: int
    n_samples: int


Judge: TypeAlias = Callable[[Sequence[Point], int], list[Tried]]  # points, samples


def best_of(tried: Sequence[Tried]) -> int:
    """The first of the best: scikit-learn's rule. Those without a score come last."""
    return int(ranks([one.score.mean for one in tried]).argmin())


def ranks(means: Sequence[float]) -> np.ndarray:
    """1 for the best, equal ones alike, as GridSearchCV counts."""
    values = np.asarray(means, dtype=np.float64)
    if np.isnan(values).all():
        return np.ones(len(values), dtype=np.int32)
    values = np.where(np.isnan(values), np.nanmin(values) - 1.0, values)
    places = np.searchsorted(np.sort(-values), -values, side="left")
    return (places + 1).astype(np.int32)


def whole_grid(sizes: Sequence[int], judge: Judge, n: int) -> list[Tried]:
    """Every point."""
    return judge(_all(sizes), n)


def coarse_to_fine(sizes: Sequence[int], judge: Judge, n: int) -> list[Tried]:
    """Every fourth or second point first, then finer around the best."""
    stride = 4 if max(sizes) >= 9 else 2
    found = judge([p for p in _all(sizes) if _is_on(p, sizes, stride)], n)
    while stride > 1:
        stride //= 2
        best = found[best_of(found)].point
        known = {one.point for one in found}
        near = [p for p in _all(sizes) if p not in known and _is_near(p, best, stride)]
        found = sorted(found + judge(near, n), key=lambda one: one.point)
    return found


def _is_near(point: Point, other: Point, stride: int) -> bool:
    return all(abs(a - b) <= stride for a, b in zip(point, other, strict=True))


def _is_on(point: Point, sizes: Sequence[int], stride: int) -> bool:
    """Whether a coarse grid, centred on each axis, has this point."""
    return all(
        (place - (size - 1) % stride // 2) % stride == 0
        for place, size in zip(point, sizes, strict=True)
    )


def halving(
    sizes: Sequence[int], judge: Judge, n: int, n_first: int = 0
) -> list[Tried]:
    """All points on few samples, the best third of them on three times as many, ..."""
    points = _all(sizes)
    n_rounds = 1
    while FACTOR**n_rounds < len(points) and n // FACTOR**n_rounds >= n_first:
        n_rounds += 1
    every: list[Tried] = []
    for k in range(n_rounds):
        n_samples = n // FACTOR ** (n_rounds - 1 - k)
        found = [one._replace(round=k) for one in judge(points, n_samples)]
        every += found
        order = np.argsort(ranks([one.score.mean for one in found]), kind="stable")
        n_kept = max(-(-len(points) // FACTOR), 1)
        points = sorted(found[i].point for i in order[:n_kept])
    return every


def _all(sizes: Sequence[int]) -> list[Point]:
    return list(product(*(range(size) for size in sizes)))
