"""How do two-class machines decide between many classes? One vs one, by votes.

(Knerr, Personnaz & Dreyfus, 1990; the layout of coefficients is LIBSVM's.)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, TypeGuard

import numpy as np

from maxmargin._threads import count_cores, run_all
from maxmargin.data.labels import Labels, pairs_of
from maxmargin.kernels.classes import (
    PairGrams,
    PairsInMemory,
    Sizes,
    computed_once,
    share_classes,
)
from maxmargin.kernels.gram import Gram, MatrixGram, VectorGram
from maxmargin.models.held_out import Solved
from maxmargin.models.machine import Machine
from maxmargin.models.pair_stack import FittedPairs, Stated, fit_stack, no_fits
from maxmargin.solvers.in_memory import can_solve
from maxmargin.solvers.result import Options, Status
from maxmargin.solvers.tuning import Tuning
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

DOUBLE_BYTES = 8

# What else a fit needs of a pair: its solved problem, y, training rows and number.
Finish = Callable[[Solved, FloatVector, IntVector, int], None]


@dataclass(frozen=True)
class PairMachines:
    """Machines of all pairs, and their coefficients in LIBSVM's layout.

    The machine of classes i < j is positive for i. A support vector of class i has
    one coefficient per other class: row j - 1 holds that against j > i, row j against
    j < i.
    """

    fitted: FittedPairs
    status: Status  # of the machine that ended worst
    support: IntVector  # training rows, class by class
    n_support: IntVector
    dual_coef: FloatMatrix  # (n_classes - 1, n_SV)


def share_between_pairs(
    gram: Gram, labels: Labels, options: Options
) -> tuple[PairGrams, Options]:
    """What pairs of classes have in common, and the options of each pair.

    `options` are those of a pair that shares nothing. What is shared takes memory, but
    never what a pair needs for its own square.
    """
    if labels.n_classes == 2:
        return PairGrams(gram, []), options
    if gram.n >= options.tuning.exact_below:
        options = replace(options, polish=False)
    members = [np.flatnonzero(labels.code == c) for c in range(labels.n_classes)]
    n_at_once = min(len(labels.pairs()), count_cores())
    total, counts = n_at_once * options.cache_bytes, sorted(map(len, members))
    pairs = options.tuning.pairs
    n_shared = pairs.shared_memory * total
    if can_solve(options) and _is_shared(gram, counts, options.tuning, n_shared):
        return PairsInMemory(gram, members), options
    gram = computed_once(gram, counts, int(n_shared))
    largest = min(sum(counts[-2:]), pairs.max_whole)
    needed = int(n_at_once * largest**2 * (4 / options.tuning.square_share + 2))
    n_bytes = min(total - needed, int(n_shared))
    short, fewest = options.tuning.rows.short, options.tuning.min_decomposed
    sizes = Sizes(fewest, pairs.max_whole, n_bytes, short)
    grams = share_classes(gram, members, sizes)
    share = (total - grams.n_bytes) // n_at_once
    return grams, replace(options, cache_bytes=share)


def _is_shared(
    gram: Gram, counts: list[int], tuning: Tuning, n_bytes: float
) -> TypeGuard[VectorGram | MatrixGram]:
    """Whether all of K is computed for all pairs, in so much memory at most.

    The pairs of k classes have more values than K, by k - 2 times the squares of all
    classes.
    """
    if gram.n > tuning.pairs.max_shared_samples or DOUBLE_BYTES * gram.n**2 > n_bytes:
        return False
    if sum(counts[-2:]) > tuning.pairs.max_samples:
        return False
    if isinstance(gram, VectorGram):
        return 0.5 * gram.n * gram.rows.n_values <= tuning.pairs.max_shared_products
    return isinstance(gram, MatrixGram)


class PairFit(NamedTuple):
    """What is fitted to every pair of classes."""

    weight: FloatVector  # of all samples
    stated: Stated
    options: Options
    finish: Finish | None = None


def fit_pairs(
    grams: PairGrams,
    labels: Labels,
    fit: PairFit,
    n_threads: int,
    start: FloatVector | None = None,
) -> PairMachines:
    """Fit every pair of classes on threads, from `start` where there is one.

    The rows of a pair come class by class, unless it is the only one; `start` has the
    variables of all pairs.
    """
    pairs = labels.pairs()
    if labels.n_classes == 2:
        rows = [np.arange(grams.gram.n)]
    else:
        rows = [grams.index(i, j) for i, j in pairs]
    options = fit.options
    if grams.gram.n < options.tuning.pairs.min_threaded:
        n_threads = 1
    if isinstance(grams, PairsInMemory):
        fitted = fit_stack(
            grams, labels, fit.weight, fit.stated, options, n_threads, start
        )
        start = fitted.beta
        options = replace(options, method="smo")  # for what the stack left unsolved
    else:
        end = np.cumsum([len(own) for own in rows])
        fitted = no_fits(end, np.zeros(end[-1]))

    def fit_pair(number: int) -> Machine:
        (i, j), own = pairs[number], rows[number]
        gram = grams.gram if labels.n_classes == 2 else grams.of(i, j)
        y, weight = np.where(labels.code[own] == i, 1.0, -1.0), fit.weight[own]
        state, fit_one = fit.stated(y, np.array([len(own)]))
        problem = state(weight)
        if fitted.is_fitted[number]:
            machine = fitted.machine(number, problem)
        else:
            first = None if start is None else start[fitted.rows(number)].copy()
            machine = fit_one(problem, gram, options, first, None)
        if fit.finish is not None:
            solved = Solved(state, fit_one, gram, weight, machine, fit.options)
            fit.finish(solved, y, own, number)
        return machine

    left = list(range(len(pairs)))
    if fit.finish is None:
        left = np.flatnonzero(~fitted.is_fitted).tolist()
    status = Status.CONVERGED
    machines = run_all([partial(fit_pair, number) for number in left], n_threads)
    for number, machine in zip(left, machines, strict=True):
        if not fitted.is_fitted[number]:
            fitted.store(number, machine)
        status = max(status, machine.solution.status, key=attrgetter("rank"))
    return _gather(labels, rows, fitted, status)


def in_pair(folds: list[IntVector], rows: IntVector) -> list[IntVector]:
    """Folds that count the rows of a pair in ascending order, as the pair counts."""
    place = np.argsort(rows)
    return [np.sort(place[fold]) for fold in folds]


def _gather(
    labels: Labels, rows: list[IntVector], fitted: FittedPairs, status: Status
) -> PairMachines:
    row, n_rows = np.concatenate(rows), np.diff(fitted.end, prepend=0)
    i, j = np.repeat(labels.pairs(), n_rows, axis=0).T
    coef = np.zeros((labels.n_classes - 1, len(labels.code)))
    coef[np.where(labels.code[row] == i, j - 1, i), row] = fitted.coef
    is_support = (coef != 0.0).any(axis=0)
    by_class = np.argsort(labels.code, kind="stable")
    support = by_class[is_support[by_class]]
    return PairMachines(
        fitted=fitted,
        status=status,
        support=support,
        n_support=np.bincount(labels.code[support], minlength=labels.n_classes),
        dual_coef=coef[:, support],
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
