"""Which samples does LIBSVM hold out, and which LIBLINEAR?

LIBSVM deals the samples of every class to all folds; where there are no classes, or as
many folds as samples, and in LIBLINEAR always, a shuffled list is cut.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.interop.c_rand import CRand
from maxmargin.typing import IntVector


class Fold(NamedTuple):
    """Rows to learn from, in the order in which they are met, and rows held out."""

    inside: IntVector
    outside: IntVector


def plain_folds(n: int, n_folds: int, random: CRand) -> list[Fold]:
    """A shuffled list, cut into parts whose lengths differ by one at most."""
    order = random.shuffled(np.arange(n))
    ends = [i * n // n_folds for i in range(n_folds + 1)]
    return _cut(order, ends)


def stratified_folds(code: IntVector, n_folds: int, random: CRand) -> list[Fold]:
    """The samples of each class, shuffled, go to the folds in equal parts."""
    n_classes = int(code.max()) + 1
    members = [random.shuffled(np.flatnonzero(code == k)) for k in range(n_classes)]
    parts = [
        np.concatenate([_share(mine, fold, n_folds) for mine in members])
        for fold in range(n_folds)
    ]
    ends = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    return _cut(np.concatenate(parts), ends.tolist())


def _share(items: IntVector, fold: int, n_folds: int) -> IntVector:
    n = len(items)
    return items[fold * n // n_folds : (fold + 1) * n // n_folds]


def _cut(order: IntVector, ends: list[int]) -> list[Fold]:
    if len(order) < 2:
        raise InvalidInput("Cross-validation needs two samples at least.")
    return [
        Fold(np.concatenate((order[:a], order[b:])), order[a:b])
        for a, b in pairwise(ends)
    ]
