"""Is a part of K in memory what it was, however its rows were chosen?"""

import numpy as np
import pytest

from maxmargin.kernels.held import HeldGram

N = 90
PARTS = {
    "runs": np.concatenate([np.arange(5, 40), np.arange(50, 85)]),
    "scattered": np.arange(0, N, 2),
    "one": np.array([7]),
    "backwards": np.arange(N)[::-1],
    "all": np.arange(N),
}
every_part = pytest.mark.parametrize("index", PARTS.values(), ids=PARTS)


def some_kernel() -> np.ndarray:
    root = np.random.default_rng(0).normal(size=(N, N))
    return root + root.T


@every_part
def test_a_square_is_taken_run_by_run(index: np.ndarray) -> None:
    K = some_kernel()

    taken = HeldGram(K).take(index)

    assert np.array_equal(taken.K, K[np.ix_(index, index)])


@every_part
def test_a_part_says_what_its_copy_says(index: np.ndarray) -> None:
    K = some_kernel()
    expected = K[np.ix_(index, index)]
    rows = np.random.default_rng(1).permutation(len(index))[: len(index) // 2 + 1]
    columns, out = np.sort(rows), np.empty((len(rows), len(rows)))

    part = HeldGram(K).among(index)
    part.fill(rows, columns, out)

    assert np.array_equal(out, expected[np.ix_(rows, columns)])
    assert np.array_equal(part.diagonal(), expected.diagonal())
    whole, total = np.empty_like(expected), np.zeros(len(index))
    part.provider().fill_square(whole)
    part.provider().add_rows(rows, np.ones(len(rows)), total)
    assert np.array_equal(whole, expected)
    assert np.allclose(total, expected[rows].sum(axis=0), atol=1e-12)


def test_only_parts_that_stand_together_are_read_where_they_are() -> None:
    gram = HeldGram(some_kernel())

    assert gram.among(PARTS["runs"]).K is gram.K
    assert gram.among(PARTS["scattered"]).K is not gram.K


@pytest.mark.parametrize("known", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("asked", ["runs", "scattered", "one", "all"])
def test_sums_do_not_depend_on_who_stands_together(
    known: np.ndarray, asked: str
) -> None:
    K, columns = some_kernel(), PARTS[asked]
    weight = np.random.default_rng(2).normal(size=len(known))

    sums = HeldGram(K).sums(known, weight, columns)

    assert np.allclose(sums, weight @ K[np.ix_(known, columns)], atol=1e-11)


def test_nobody_asked_is_no_sum() -> None:
    sums = HeldGram(some_kernel()).sums(np.arange(3), np.ones(3), np.arange(0))

    assert sums.shape == (0,)


def test_a_distant_sample_is_no_bound_for_others() -> None:
    X = np.random.default_rng(2).normal(size=(N, 3))
    X[-1] *= 1e6
    K, near = X @ X.T, np.arange(N - 1)
    largest = float(K.diagonal()[:-1].max())

    for part in (HeldGram(K).among(near), HeldGram(K).take(near)):
        assert part.bound() == largest
    indefinite = HeldGram(K - 2.0 * np.diag(K.diagonal()[::-1]))
    assert indefinite.among(near).bound() == indefinite.bound()
