"""Are features brought to their range, and zeros to where they belong?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.data.scaling import (
    Scaling,
    find_scaling,
    fitted_to,
    symmetric_scaling,
)


def dense(n: int = 30) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(n, 4)) * [1.0, 1e6, 1e-6, 0.0] + 3.0
    X[X[:, 0] < 2.5] = 0.0
    return X


def test_extremes_go_exactly_to_the_bounds() -> None:
    X = dense()

    scaling = find_scaling(sparse.csr_matrix(X), -2.0, 5.0)
    moved = scaling.apply(X)

    assert np.array_equal(scaling.low, X.min(axis=0))
    assert np.array_equal(scaling.high, X.max(axis=0))
    assert np.array_equal(moved.min(axis=0), np.full(4, -2.0))
    assert np.array_equal(moved.max(axis=0), np.full(4, 5.0))


def test_absent_values_count_as_zero() -> None:
    X = sparse.csr_matrix(np.array([[1.0, 0.0], [3.0, 5.0]]))

    scaling = find_scaling(X)

    assert scaling.low.tolist() == [1.0, 0.0]
    assert scaling.of_zero().tolist() == [-2.0, -1.0]
    assert scaling.apply(X).tolist() == [[-1.0, -1.0], [1.0, 1.0]]


def test_features_that_do_not_vary_become_zero() -> None:
    X = sparse.csr_matrix(np.array([[7.0, 1.0], [7.0, 2.0]]))

    scaling = find_scaling(X)

    assert scaling.varies.tolist() == [False, True]
    assert scaling.apply(X)[:, 0].tolist() == [0.0, 0.0]


def test_symmetric_scaling_keeps_zeros() -> None:
    X = sparse.random(50, 20, 0.1, random_state=0, format="csr") - sparse.eye(50, 20)

    moved = symmetric_scaling(sparse.csr_matrix(X)).apply(X)

    assert sparse.issparse(moved)
    assert moved.nnz == X.nnz
    assert abs(moved).max() == 1.0
    assert np.array_equal(np.sign(moved.toarray()), np.sign(X.toarray()))


def test_columns_are_cut_or_filled() -> None:
    X = sparse.csr_matrix(np.ones((2, 3)))

    assert fitted_to(X, 2).toarray().tolist() == [[1.0, 1.0]] * 2
    assert fitted_to(X, 4).toarray().tolist() == [[1.0, 1.0, 1.0, 0.0]] * 2
    assert X.shape == (2, 3)


def test_new_samples_may_leave_the_range() -> None:
    scaling = Scaling(0.0, 1.0, np.array([0.0]), np.array([10.0]))

    moved = scaling.apply(np.array([[20.0], [-10.0]]))

    assert moved.toarray().tolist() == [[2.0], [-1.0]]


@pytest.mark.parametrize("n", [0, 1])
def test_sets_without_variation(n: int) -> None:
    X = sparse.csr_matrix(np.ones((n, 2)))

    scaling = find_scaling(X)

    assert not scaling.varies.any()
    assert scaling.apply(X).shape == (n, 2)
