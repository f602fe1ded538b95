"""Is a part of K in memory what it was, however its rows were chosen?"""

import numpy as np
import pytest

from maxmargin.kernels.held import HeldGram


@pytest.mark.parametrize(
    "index",
    [[2, 3, 4, 7, 8, 1], [5], [9, 8, 7], list(range(10))],
    ids=["runs", "one", "backwards", "all"],
)
def test_a_square_is_taken_run_by_run(index: list[int]) -> None:
    K = np.random.default_rng(0).normal(size=(10, 10))
    rows = np.array(index)

    taken = HeldGram(K).take(rows)

    assert np.array_equal(taken.K, K[np.ix_(rows, rows)])
