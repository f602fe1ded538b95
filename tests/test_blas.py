"""Does the square that BLAS adds equal the sum of products?"""

import numpy as np
import pytest

from maxmargin._blas import add_square


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
