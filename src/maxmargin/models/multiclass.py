"""How do two-class machines decide between many classes? One vs one, by votes.

(Knerr, Personnaz & Dreyfus, 1990; the layout of coefficients is LIBSVM's.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from maxmargin._threads import run_all
from maxmargin.data.labels import Labels, pairs_of
from maxmargin.kernels.gram import Gram
from maxmargin.models.machine import Machine
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

WORTH_THREADS = 1000  # samples: below, threads mostly wait for one another

FitPair = Callable[[Gram, FloatVector, IntVector, int], Machine]


@dataclass(frozen=True)
class PairMachines:
    """Machines of all pairs, and their coefficients in LIBSVM's layout.

    The machine of classes i < j is positive for i. A support vector of class i has
    one coefficient per other class: row j - 1 holds that against j > i, row j against
    j < i.
    """

    machines: list[Machine]
    support: IntVector  # training rows, class by class
    n_support: IntVector
    dual_coef: FloatMatrix  # (n_classes - 1, n_SV)
    intercept: FloatVector


def fit_pairs(
    gram: Gram, labels: Labels, fit_pair: FitPair, n_threads: int
) -> PairMachines:
    """Fit every pair of classes on threads; `fit_pair` gets (gram, y, rows, number)."""
    pairs = labels.pairs()
    rows = [np.flatnonzero((labels.code == i) | (labels.code == j)) for i, j in pairs]
    tasks = [
        partial(_fit_one, gram, labels, fit_pair, pair, rows[k], k)
        for k, pair in enumerate(pairs)
    ]
    if gram.n < WORTH_THREADS:
        n_threads = 1
    return _gather(labels, rows, run_all(tasks, n_threads))


def _fit_one(
    gram: Gram,
    labels: Labels,
    fit_pair: FitPair,
    pair: tuple[int, int],
    rows: IntVector,
    number: int,
) -> Machine:
    y = np.where(labels.code[rows] == pair[0], 1.0, -1.0)
    whole = len(rows) == gram.n
    return fit_pair(gram if whole else gram.take(rows), y, rows, number)


def _gather(
    labels: Labels, rows: list[IntVector], machines: list[Machine]
) -> PairMachines:
    n = len(labels.code)
    coef = np.zeros((labels.n_classes - 1, n))
    for (i, j), here, machine in zip(labels.pairs(), rows, machines, strict=True):
        is_first = labels.code[here] == i
        coef[j - 1, here[is_first]] = machine.coef[is_first]
        coef[i, here[~is_first]] = machine.coef[~is_first]
    is_support = (coef != 0.0).any(axis=0)
    by_class = np.argsort(labels.code, kind="stable")
    support = by_class[is_support[by_class]]
    return PairMachines(
        machines=machines,
        support=support,
        n_support=np.bincount(labels.code[support], minlength=labels.n_classes),
        dual_coef=coef[:, support],
        intercept=np.array([machine.intercept for machine in machines]),
    )


def class_parts(
    dual_coef: FloatMatrix, n_support: IntVector
) -> list[tuple[slice, FloatMatrix]]:
    """The support vectors of each class with their coefficients, a column per rival."""
    ends = np.concatenate(([0], np.cumsum(n_support)))
    return [
        (slice(int(a), int(b)), np.ascontiguousarray(dual_coef[:, a:b].T))
        for a, b in pairwise(ends)
    ]


def pair_decisions(sums: list[FloatMatrix], intercept: FloatVector) -> FloatMatrix:
    """Decision values of all pairs from the kernel sums of each class."""
    pairs = pairs_of(len(sums))
    decisions = np.empty((len(sums[0]), len(pairs)))
    for p, (i, j) in enumerate(pairs):
        decisions[:, p] = sums[i][:, j - 1] + sums[j][:, i] + intercept[p]
    return decisions


def vote(decisions: FloatMatrix, n_classes: int) -> IntVector:
    """The class that wins most pairs, the first of them in a tie, as in LIBSVM."""
    votes = np.zeros((len(decisions), n_classes), dtype=np.intp)
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        votes[:, i] += decisions[:, p] > 0.0
        votes[:, j] += decisions[:, p] <= 0.0
    winner: IntVector = votes.argmax(axis=1)
    return winner
