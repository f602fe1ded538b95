"""How do two-class machines decide between many classes? One vs one, by votes.

(Knerr, Personnaz & Dreyfus, 1990; the layout of coefficients is LIBSVM's.)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from maxmargin._jit import jit
from maxmargin._threads import count_cores, run_all
from maxmargin.data.labels import Labels, pairs_of
from maxmargin.kernels.classes import PairGrams, Sizes, computed_once, share_classes
from maxmargin.kernels.gram import Gram
from maxmargin.models.machine import Machine
from maxmargin.solvers.grow import SQUARE_SHARE
from maxmargin.solvers.kernel import MANY
from maxmargin.solvers.result import Options
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

WORTH_THREADS = 1000  # samples: below, threads mostly wait for one another
MOST_SHARED = 0.25  # of the memory
MOST_WHOLE = 2800  # samples of a pair that has half of its K from others

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


def share_between_pairs(
    gram: Gram, labels: Labels, options: Options
) -> tuple[PairGrams, Options]:
    """What pairs of classes have in common, and the options of each pair.

    `options` are those of a pair that shares nothing. Who shares gives up memory for
    it, but never what a pair needs for its own square.
    """
    if labels.n_classes == 2:
        return PairGrams(gram, []), options
    members = [np.flatnonzero(labels.code == c) for c in range(labels.n_classes)]
    n_at_once = min(len(labels.pairs()), count_cores())
    total, counts = n_at_once * options.cache_bytes, sorted(map(len, members))
    gram = computed_once(gram, counts, int(MOST_SHARED * total))
    largest = min(sum(counts[-2:]), MOST_WHOLE)
    needed = int(n_at_once * largest**2 * (4 / SQUARE_SHARE + 2))
    n_bytes = min(total - needed, int(MOST_SHARED * total))
    grams = share_classes(gram, members, Sizes(MANY, MOST_WHOLE, n_bytes))
    share = (total - grams.n_bytes) // n_at_once
    return grams, replace(options, cache_bytes=share)


def fit_pairs(
    grams: PairGrams, labels: Labels, fit_pair: FitPair, n_threads: int
) -> PairMachines:
    """Fit every pair of classes on threads; `fit_pair` gets (gram, y, rows, number).

    The rows of a pair come class by class, unless it is the only one.
    """
    if labels.n_classes == 2:
        rows = [np.arange(grams.gram.n)]
    else:
        rows = [grams.index(i, j) for i, j in labels.pairs()]
    tasks = [
        partial(_fit_one, grams, labels, fit_pair, pair, rows[k], k)
        for k, pair in enumerate(labels.pairs())
    ]
    if grams.gram.n < WORTH_THREADS:
        n_threads = 1
    return _gather(labels, rows, run_all(tasks, n_threads))


def _fit_one(
    grams: PairGrams,
    labels: Labels,
    fit_pair: FitPair,
    pair: tuple[int, int],
    rows: IntVector,
    number: int,
) -> Machine:
    y = np.where(labels.code[rows] == pair[0], 1.0, -1.0)
    gram = grams.gram if labels.n_classes == 2 else grams.of(*pair)
    return fit_pair(gram, y, rows, number)


def in_pair(folds: list[IntVector], rows: IntVector) -> list[IntVector]:
    """Folds that count the rows of a pair in ascending order, as the pair counts."""
    place = np.argsort(rows)
    return [np.sort(place[fold]) for fold in folds]


def _gather(
    labels: Labels, rows: list[IntVector], machines: list[Machine]
) -> PairMachines:
    n = len(labels.code)
    coef = np.zeros((labels.n_classes - 1, n))
    for (i, j), here, machine in zip(labels.pairs(), rows, machines, strict=True):
        _lay_out(machine.coef, here, labels.code, (i, j), coef)
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


@jit
def _lay_out(
    own: FloatVector,
    rows: IntVector,
    code: IntVector,
    pair: tuple[int, int],
    coef: FloatMatrix,
) -> None:
    """Write the coefficients of a pair where they belong."""
    i, j = pair
    for k in range(len(rows)):
        coef[j - 1 if code[rows[k]] == i else i, rows[k]] = own[k]


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
