"""Do folds share out samples, classes and groups, whatever the seed?"""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.errors import InvalidInput
from maxmargin.selection.folds import (
    Fold,
    grouped_folds,
    plain_folds,
    stratified_folds,
)


def assert_partition(folds: list[Fold], n: int) -> None:
    outside = np.concatenate([fold.outside for fold in folds])
    assert np.array_equal(np.sort(outside), np.arange(n))
    for fold in folds:
        both = np.concatenate((fold.inside, fold.outside))
        assert np.array_equal(np.sort(both), np.arange(n))


@pytest.mark.parametrize("n_folds", [2, 3, 7])
def test_each_sample_is_held_out_once(n_folds: int) -> None:
    code = np.arange(50) % 3

    assert_partition(stratified_folds(code, n_folds), 50)
    assert_partition(plain_folds(50, n_folds), 50)
    assert_partition(grouped_folds(np.arange(50) // 5, n_folds), 50)


def test_classes_are_dealt_evenly_and_folds_are_equally_large() -> None:
    code = np.repeat([0, 1, 2], [23, 11, 7])

    folds = stratified_folds(code, 5, seed=3)

    counts = np.array([np.bincount(code[f.outside], minlength=3) for f in folds])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_groups_stay_together() -> None:
    group = np.array([f"g{k % 9}" for k in range(60)])

    for fold in grouped_folds(group, 4):
        assert set(group[fold.inside]).isdisjoint(group[fold.outside])


def test_the_seed_decides() -> None:
    first, again, other = (plain_folds(40, 4, seed) for seed in (1, 1, 2))

    assert all(
        np.array_equal(a.outside, b.outside) for a, b in zip(first, again, strict=True)
    )
    assert not np.array_equal(first[0].outside, other[0].outside)


def test_impossible_folds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="got 4 folds for n_samples=3"):
        plain_folds(3, 4)
    with pytest.raises(InvalidInput, match="at least 3 groups, got 2"):
        grouped_folds(np.array([0, 0, 1, 1]), 3)
