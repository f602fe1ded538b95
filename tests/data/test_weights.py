"""Do weights count as copies do?"""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.data.weights import counted_samples, weighted_variance
from maxmargin.errors import InvalidInput


def test_only_positive_weights_count() -> None:
    kept = counted_samples(np.array([1.0, 0.0, -2.0, 1e-300]))

    assert kept.tolist() == [0, 3]


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_somebody_must_count(weight: float) -> None:
    with pytest.raises(InvalidInput, match="At least one sample_weight"):
        counted_samples(np.full(3, weight))


def test_weighted_variance_is_that_of_copies() -> None:
    x, weight = np.array([1.0, 4.0, -2.0]), np.array([2.0, 1.0, 3.0])

    found = weighted_variance(weight @ x, weight @ x**2, weight.sum())

    assert found == pytest.approx(np.repeat(x, [2, 1, 3]).var())
