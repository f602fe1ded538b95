"""Which classes are there, and which sample belongs to which?"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.typing import IntVector


class Labels(NamedTuple):
    """Distinct labels in order, and for each sample the place of its own."""

    classes: np.ndarray
    code: IntVector

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of these classes."""
        return pairs_of(self.n_classes)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """All pairs of classes in LIBSVM's order: 01, 02, ..., 12, ..."""
    return list(combinations(range(n_classes), 2))


def encode_labels(y: Any) -> Labels:
    """Labels of any type that can be put in order."""
    y = np.asarray(y)
    if y.dtype == object and any(label is None for label in y):
        raise InvalidInput(
            "y contains None: every sample needs a label; drop the samples without one."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidInput(
            "Input y contains NaN or infinity: every sample needs a label; drop the "
            "samples without one."
        )
    try:
        classes = np.unique(y)
        code = np.searchsorted(classes, y)  # faster than sorting y with its places
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y})
        raise InvalidInput(
            f"Labels must be of one kind, so that they can be put in order; y holds "
            f"{', '.join(kinds)}. Convert them, for instance with y.astype(str)."
        ) from error
    return Labels(classes, code.astype(np.intp))
