"""Do weights count as copies do?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC
from maxmargin.data.weights import counted_samples
from maxmargin.errors import InvalidInput


def test_only_positive_weights_count() -> None:
    kept = counted_samples(np.array([1.0, 0.0, -2.0, 1e-300]))

    assert kept.tolist() == [0, 3]


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_somebody_must_count(weight: float) -> None:
    with pytest.raises(InvalidInput, match="At least one sample_weight"):
        counted_samples(np.full(3, weight))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_gamma_by_scale_is_that_of_copies(layout: Any) -> None:
    X = np.array([[1.0, 0.0], [4.0, 1e4], [-2.0, 0.0], [0.0, 3.0]])
    y, weight = np.array([0, 1, 0, 1]), np.array([2, 1, 3, 0])
    copies = np.repeat(X, weight, axis=0)

    machine = SVC().fit(layout(X), y, sample_weight=weight)

    assert machine._gamma == pytest.approx(1.0 / (2 * copies.var()), rel=1e-12)
