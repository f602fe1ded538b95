"""Are squares added up, and inverted, as they should be?"""

import numpy as np
import pytest

from maxmargin._blas import add_square, invert_positive


@pytest.mark.parametrize("factor", [1.0, -2.5])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 7), (40, 5), (200, 130)])
def test_the_lower_triangle_grows_by_the_square(n: int, d: int, factor: float) -> None:
    rng = np.random.default_rng(0)
    rows, before = rng.normal(size=(n, d)), rng.normal(size=(d, d))
    total = before.copy()

    add_square(factor, rows, total)

    expected = before + factor * (rows.T @ rows)
    np.testing.assert_allclose(np.tril(total), np.tril(expected), atol=1e-10)
    assert np.array_equal(np.triu(total, 1), np.triu(before, 1))


def test_rows_of_another_order_are_refused() -> None:
    with pytest.raises(AssertionError):
        add_square(1.0, np.asfortranarray(np.ones((3, 2))), np.zeros((2, 2)))


@pytest.mark.parametrize("n", [1, 2, 17, 300])
def test_positive_matrices_are_inverted(n: int) -> None:
    factor = np.random.default_rng(n).normal(size=(n, n + 5))
    matrix = factor @ factor.T + np.eye(n)
    inverse = matrix.copy()

    assert invert_positive(inverse)

    whole = np.tril(inverse) + np.tril(inverse, -1).T
    np.testing.assert_allclose(whole @ matrix, np.eye(n), atol=1e-9)


def test_what_is_not_positive_has_no_inverse() -> None:
    assert not invert_positive(np.array([[1.0, 2.0], [2.0, 1.0]]))
