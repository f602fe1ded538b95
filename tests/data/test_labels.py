"""Are labels of every kind put in order, and those without order refused?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin.data.labels import encode_labels
from maxmargin.errors import InvalidInput


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 2, 1]),
        np.array([0.5, -1.0, 0.0, -1.0]),
        np.array([True, False, True]),
        np.array(["b", "a", "c"]),
        np.array(["b", "a", "b"], dtype=object),
        ["no", "yes", "no"],
    ],
    ids=str,
)
def test_codes_point_at_sorted_classes(y: Any) -> None:
    labels = encode_labels(y)

    assert np.array_equal(labels.classes[labels.code], y)
    assert labels.classes.tolist() == sorted(set(np.asarray(y).tolist()))
    assert labels.classes.dtype == np.asarray(y).dtype
    assert labels.n_classes == len(labels.classes)


def test_pairs_are_in_the_order_of_libsvm() -> None:
    labels = encode_labels([0, 1, 2, 3])

    assert labels.pairs() == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_missing_labels_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"None.*drop"):
        encode_labels(np.array(["a", None, "b"], dtype=object))


def test_labels_of_two_kinds_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"int, str.*astype"):
        encode_labels(np.array(["a", 1, "b"], dtype=object))
