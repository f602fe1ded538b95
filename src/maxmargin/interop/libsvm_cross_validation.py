"""What does LIBSVM predict for samples held out, and what does it say meanwhile?

Folds share one kernel matrix where that costs less than the rows that each would
compute, and are trained one by one where it does not.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from maxmargin._threads import count_cores, run_all
from maxmargin.interop.c_rand import PROCESS, CRand
from maxmargin.interop.folds import Fold, plain_folds, stratified_folds
from maxmargin.interop.libsvm_kernels import kernel_columns
from maxmargin.interop.libsvm_search import SvmGrid, can_share
from maxmargin.interop.libsvm_training import (
    CLASSIFIERS,
    DEFAULT_CACHE,
    Pace,
    Say,
    complain,
    probability_folds,
    quiet,
    state,
    train_stated,
    warn_of_weights,
)
from maxmargin.interop.option_strings import KernelType, SvmOptions
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.kernels.cache import default_cache_bytes
from maxmargin.models.fit_kernel import Folds
from maxmargin.typing import FloatVector

Told = tuple[FloatVector, str]  # what a fold predicts, and LIBSVM's lines about it


def cross_validate_svm(
    data: DataSet,
    told: SvmOptions,
    say: Say = quiet,
    pace: Pace | None = None,
    random: CRand = PROCESS,
) -> FloatVector:
    """What each sample is predicted to be by a machine that has not seen it."""
    warn_of_weights(data, told)
    pace = pace or Pace()
    folds = svm_folds(data, told, random)
    found = _share(data, told, pace, folds)
    if found is None:
        found = _train_each(data, told, pace, folds, random)
    out = np.empty(len(data.y))
    for fold, (predicted, report) in zip(folds, found, strict=True):
        say(report)
        out[fold.outside] = predicted
    return out


def svm_folds(data: DataSet, told: SvmOptions, random: CRand) -> list[Fold]:
    """LIBSVM's folds: of classifiers, the classes are dealt to all."""
    n, n_folds = len(data.y), int(told.nr_fold)
    if n_folds > n:
        complain(
            f"WARNING: # folds ({n_folds}) > # data ({n}). Will use # folds = # data "
            "instead (i.e., leave-one-out cross validation)"
        )
        n_folds = n
    if told.svm_type in CLASSIFIERS and n_folds < n:
        return stratified_folds(labels_as_met(data.y).code, n_folds, random)
    return plain_folds(n, n_folds, random)


def _share(
    data: DataSet, told: SvmOptions, pace: Pace, folds: list[Fold]
) -> list[Told] | None:
    """All folds on one kernel matrix; None where that does not pay."""
    if not can_share(told):
        return None
    grid = SvmGrid(data, told, [told.gamma], pace, folds, n_kept=0)
    return grid.report(told.C, told.gamma) if grid.pays_once() else None


def _train_each(
    data: DataSet, told: SvmOptions, pace: Pace, folds: list[Fold], random: CRand
) -> list[Told]:
    """Every fold by itself, on threads."""
    if told.cache_size == DEFAULT_CACHE:
        share = default_cache_bytes() / (1 << 20) / min(len(folds), count_cores())
        told = replace(told, cache_size=max(1.0, share))
    within = [_folds_inside(data, told, fold, random) for fold in folds]
    tasks = [
        partial(_hold_out, data, told, pace, fold, more)
        for fold, more in zip(folds, within, strict=True)
    ]
    return run_all(tasks, pace.threads)


def _folds_inside(
    data: DataSet, told: SvmOptions, fold: Fold, random: CRand
) -> Folds | None:
    """Where -b 1 holds samples out of those that are not held out."""
    if not told.probability:
        return None
    problem = state(data.take(fold.inside), told)
    folds = probability_folds(problem, told, random)
    return folds if told.svm_type in CLASSIFIERS else None


def _hold_out(
    data: DataSet, told: SvmOptions, pace: Pace, fold: Fold, folds: Folds | None
) -> Told:
    """With -b 1 the most probable class is what a classifier predicts."""
    inside = data.take(fold.inside)
    problem = state(inside, told)
    trained, report = train_stated(inside, problem, told, pace, folds)
    X = data.X[fold.outside]
    if told.kernel_type == KernelType.PRECOMPUTED:
        X = kernel_columns(X)
    model = trained.model
    if folds is None:
        return np.asarray(model.predict(X), dtype=np.float64), report
    winner = model.probabilities(X).argmax(axis=1)
    return np.asarray(model.classes[winner], dtype=np.float64), report
