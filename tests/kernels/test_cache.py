"""Does the cache keep the rows used last, and never hand out a wrong one?"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from maxmargin.kernels.cache import (
    MIN_SLOTS,
    N_USES,
    NOBODY,
    RowCache,
    claim_slots,
    default_cache_bytes,
    find_row,
    hold_all,
    keep_columns,
    make_cache,
)

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]

N = 12
K = np.arange(float(N * N)).reshape(N, N)


def use(cache: RowCache, row: int, columns: slice = slice(None)) -> bool:
    """Ask for a row as a solver does; True where it was there."""
    is_there = find_row(cache, row) != NOBODY
    if not is_there:
        cache.rows[claim_slots(cache, np.array([row]))] = K[row, columns]
        assert find_row(cache, row) != NOBODY
    assert np.array_equal(cache.rows[cache.slot[row]], K[row, columns])
    return is_there


def kept(cache: RowCache) -> set[int]:
    """The rows held, by both of the cache's own accounts."""
    owners = {int(row) for row in cache.owner if row != NOBODY}
    assert owners == set(np.flatnonzero(cache.slot != NOBODY).tolist())
    return owners


def rows_of_float64(n: int) -> RowCache:
    return make_cache(N, N, np.float64, n * N * 8)


def test_oldest_row_makes_room() -> None:
    cache = rows_of_float64(3)
    for row in (4, 7, 1):
        assert not use(cache, row)

    assert use(cache, 4)
    assert not use(cache, 9)

    assert kept(cache) == {4, 1, 9}


@pytest.mark.parametrize("n_slots", [2, 3, 7, N])
def test_cache_follows_a_plain_lru_list(n_slots: int) -> None:
    cache, model = rows_of_float64(n_slots), OrderedDict[int, None]()
    for row in np.random.default_rng(n_slots).integers(N, size=300):
        assert use(cache, row) == (int(row) in model)

        model.pop(int(row), None)
        model[int(row)] = None
        if len(model) > n_slots:
            model.popitem(last=False)
        assert kept(cache) == set(model)


def test_two_rows_at_once_are_always_possible() -> None:
    cache = make_cache(N, N, np.float32, 1)

    assert len(cache.owner) == MIN_SLOTS == 2
    for i, j in [(0, 1), (1, 2), (5, 0), (0, 5), (3, 4)]:
        use(cache, i)
        use(cache, j)
        assert kept(cache) == {i, j}


def test_no_more_slots_than_rows() -> None:
    assert len(make_cache(N, N, np.float32, 1 << 30).owner) == N
    assert len(make_cache(1, 1, np.float32, 1 << 30).owner) == MIN_SLOTS


def test_bytes_are_kept_to() -> None:
    cache = make_cache(1000, 500, np.float32, 100_000)

    assert cache.rows.nbytes <= 100_000
    assert len(cache.owner) == 50


def test_several_rows_are_stored_at_once() -> None:
    cache = rows_of_float64(5)
    for row in range(5):
        use(cache, row)
    use(cache, 0)

    cache.rows[claim_slots(cache, np.array([8, 9]))] = K[[8, 9]]

    assert kept(cache) == {0, 3, 4, 8, 9}
    assert use(cache, 8)
    assert use(cache, 9)


def test_fewer_columns_keep_their_values_and_make_slots() -> None:
    cache = rows_of_float64(3)
    for row in (4, 7, 1, 5):
        use(cache, row)
    keep = np.array([0, 2, 3, 11])

    narrow = keep_columns(cache, keep)

    assert kept(narrow) == {7, 1, 5}
    for row in (7, 1, 5):
        assert np.array_equal(narrow.rows[narrow.slot[row]], K[row, keep])
    assert len(narrow.owner) == 9
    assert narrow.counts.tolist() == cache.counts.tolist()
    assert np.shares_memory(narrow.rows, cache.rows)


def test_order_of_use_survives_fewer_columns() -> None:
    cache = rows_of_float64(3)
    for row in (4, 7, 1, 4):
        use(cache, row, slice(None))
    narrow = keep_columns(cache, np.arange(N - 1))
    few = slice(0, N - 1)

    assert not use(narrow, 2, few)

    assert kept(narrow) == {1, 4, 2}
    assert use(narrow, 4, few)


def test_cache_of_everything_misses_nothing() -> None:
    cache = hold_all(K)

    assert all(find_row(cache, row) == row for row in range(N))
    assert cache.counts[N_USES] == N
    assert np.shares_memory(cache.rows, K)


def test_default_is_a_part_of_memory() -> None:
    assert 1 << 20 < default_cache_bytes() < 1 << 50
