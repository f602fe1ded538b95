"""Which samples are held out together? Seeded folds: by class, plain, or by group.

LIBSVM's and LIBLINEAR's own are in `interop.folds`.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.typing import IntVector


class Fold(NamedTuple):
    """Rows to learn from and rows held out, both in ascending order."""

    inside: IntVector
    outside: IntVector


def stratified_folds(code: IntVector, n_folds: int, seed: int = 0) -> list[Fold]:
    """The samples of each class go to all folds in equal parts."""
    random = np.random.default_rng(seed)
    _check(len(code), n_folds)
    fold_of = np.empty(len(code), dtype=np.intp)
    first = 0  # where the next class begins to deal: folds stay equally large
    for k in range(int(code.max()) + 1):
        members = random.permutation(np.flatnonzero(code == k))
        fold_of[members] = (first + np.arange(len(members))) % n_folds
        first += len(members)
    return _by_number(fold_of, n_folds)


def plain_folds(n: int, n_folds: int, seed: int = 0) -> list[Fold]:
    """A shuffled list, dealt to the folds."""
    _check(n, n_folds)
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[np.random.default_rng(seed).permutation(n)] = np.arange(n) % n_folds
    return _by_number(fold_of, n_folds)


def grouped_folds(group: IntVector, n_folds: int, seed: int = 0) -> list[Fold]:
    """Samples of a group are held out together: the largest groups are dealt first."""
    names, code, sizes = np.unique(group, return_inverse=True, return_counts=True)
    if len(names) < n_folds:
        raise InvalidInput(
            f"Each fold needs a group of its own: expected at least {n_folds} groups, "
            f"got {len(names)}; ask for fewer folds."
        )
    _check(len(code), n_folds)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    load, fold_of_group = np.zeros(n_folds), np.empty(len(names), dtype=np.intp)
    for k in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of_group[k] = load.argmin()
        load[fold_of_group[k]] += sizes[k]
    return _by_number(fold_of_group[code.reshape(-1)], n_folds)


def _check(n: int, n_folds: int) -> None:
    if not 2 <= n_folds <= n:
        raise InvalidInput(
            "The number of folds must be from 2 to the number of samples: got "
            f"{n_folds} folds for n_samples={n}; ask for fewer folds."
        )


def _by_number(fold_of: IntVector, n_folds: int) -> list[Fold]:
    return [
        Fold(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k))
        for k in range(n_folds)
    ]
