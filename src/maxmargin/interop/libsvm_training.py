"""What does LIBSVM do with samples and options, and what does it say meanwhile?"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from maxmargin._threads import count_cores, run_all
from maxmargin.data.labels import Labels
from maxmargin.data.weights import counted_samples
from maxmargin.errors import InvalidInput
from maxmargin.interop.c_rand import PROCESS, CRand
from maxmargin.interop.evaluation import laplace_lines
from maxmargin.interop.folds import Fold, plain_folds, stratified_folds
from maxmargin.interop.libsvm_kernels import (
    WITH_GAMMA,
    kernel_columns,
    kernel_of,
    serial_numbers,
)
from maxmargin.interop.option_strings import KernelType, SvmOptions, SvmType
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.kernels.cache import default_cache_bytes
from maxmargin.models.fit_kernel import (
    Folds,
    KernelEvidence,
    KernelSet,
    KernelSpec,
    fit_kernel_model,
)
from maxmargin.models.held_out import N_FOLDS
from maxmargin.models.kernel_model import KernelModel, dense_columns
from maxmargin.solvers import Options, Progress, Status
from maxmargin.typing import FloatVector, IntVector

MACHINES = {
    SvmType.C_SVC: "c_svc",
    SvmType.NU_SVC: "nu_svc",
    SvmType.ONE_CLASS: "one_class",
    SvmType.EPSILON_SVR: "epsilon_svr",
    SvmType.NU_SVR: "nu_svr",
}
CLASSIFIERS = (SvmType.C_SVC, SvmType.NU_SVC)
REGRESSORS = (SvmType.EPSILON_SVR, SvmType.NU_SVR)
WITH_C = (SvmType.C_SVC, SvmType.EPSILON_SVR, SvmType.NU_SVR)
WITH_NU = (SvmType.NU_SVC, SvmType.ONE_CLASS, SvmType.NU_SVR)
LARGEST_CACHE = 2.0**40  # MB: more bytes than 64 bits can count
DEFAULT_CACHE = 100.0  # LIBSVM's; where it was not changed, ours is as large as fits

Say = Callable[[str], object]


@dataclass(frozen=True)
class Pace:
    """How long, on how many threads, and who is told; None: nobody asked."""

    n_threads: int | None = None
    time_limit: float | None = None
    callback: Callable[[Progress], object] | None = None
    started: float | None = None  # on the monotonic clock: when the limit began

    @property
    def threads(self) -> int:
        return count_cores() if self.n_threads is None else self.n_threads

    def is_over(self) -> bool:
        """Whether the limit has passed."""
        if self.time_limit is None or self.started is None:
            return False
        return time.monotonic() - self.started > self.time_limit


class Trained(NamedTuple):
    """A model, and the rows of the training set that its support vectors were."""

    model: KernelModel
    support: IntVector
    evidence: list[KernelEvidence]


class _Problem(NamedTuple):
    """Everything that the words and the data lead to."""

    spec: KernelSpec
    training: KernelSet
    kept: IntVector
    serial: IntVector | None  # of a precomputed kernel: the number of each sample
    has_equal_weights: bool


def quiet(text: str) -> None:
    """Says nothing."""


def aloud(text: str) -> None:
    """Says it on the standard output, now."""
    sys.stdout.write(text)
    sys.stdout.flush()


def complain(text: str) -> None:
    """Says it on the standard error."""
    print(text, file=sys.stderr)


# Checking.


def check_svm(data: DataSet, told: SvmOptions) -> str | None:
    """LIBSVM's complaint about the parameters, if it has one."""
    tests = [
        (told.svm_type not in MACHINES, "unknown svm type"),
        (told.kernel_type not in list(KernelType), "unknown kernel type"),
        (told.kernel_type in WITH_GAMMA and not told.gamma >= 0.0, "gamma < 0"),
        (
            told.kernel_type == KernelType.POLY and told.degree < 0,
            "degree of polynomial kernel < 0",
        ),
        (not told.cache_size > 0.0, "cache_size <= 0"),
        (not told.eps > 0.0, "eps <= 0"),
        (told.svm_type in WITH_C and not told.C > 0.0, "C <= 0"),
        (told.svm_type in WITH_NU and not 0.0 < told.nu <= 1.0, "nu <= 0 or nu > 1"),
        (told.svm_type == SvmType.EPSILON_SVR and not told.p >= 0.0, "p < 0"),
        (told.shrinking not in (0, 1), "shrinking != 0 and shrinking != 1"),
        (told.probability not in (0, 1), "probability != 0 and probability != 1"),
        (
            not all(map(math.isfinite, (told.gamma, told.coef0, told.p, told.eps))),
            "gamma, coef0, p and eps must be finite",
        ),
        (told.cache_size > LARGEST_CACHE, f"cache_size > {LARGEST_CACHE:g} MB"),
    ]
    complaint = next((words for is_wrong, words in tests if is_wrong), None)
    if complaint is None and told.svm_type == SvmType.NU_SVC:
        return _check_nu(data, told)
    return complaint


def _check_nu(data: DataSet, told: SvmOptions) -> str | None:
    labels = labels_as_met(data.y)
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    mass = np.bincount(labels.code, np.maximum(weight, 0.0))
    for i, j in labels.pairs():
        if told.nu * (mass[i] + mass[j]) / 2 > min(mass[i], mass[j]):
            return "specified nu is infeasible"
    return None


# Training.


def train_svm(
    data: DataSet,
    told: SvmOptions,
    say: Say = quiet,
    pace: Pace | None = None,
    random: CRand = PROCESS,
) -> Trained:
    """Train, and report in LIBSVM's words; `random` makes the folds of -b 1."""
    _warn_of_weights(data, told)
    problem = _state(data, told)
    folds = _probability_folds(problem, told, random)
    trained, report = _train(data, problem, told, pace or Pace(), folds)
    say(report)
    return trained


def _train(
    data: DataSet, problem: _Problem, told: SvmOptions, pace: Pace, folds: Folds | None
) -> tuple[Trained, str]:
    model, evidence = fit_kernel_model(
        problem.spec, problem.training, _options(told, pace), pace.threads, folds
    )
    place = np.asarray(model.support_index)
    rows = problem.kept[place]
    shown = place if problem.serial is None else problem.serial[place]
    model = replace(
        model,
        support_index=rows if problem.serial is None else shown,
        n_features=model.n_features if problem.serial is None else data.largest,
        index_base=data.first,
    )
    report = _report(problem, model, evidence)
    if folds is not None:
        report += _words_of_probability(model)
    return Trained(model, rows, evidence), report


def _probability_folds(
    problem: _Problem, told: SvmOptions, random: CRand
) -> Folds | None:
    """The folds of -b 1: of a pair, the samples of its first class come first."""
    if not told.probability:
        return None
    target = problem.training.target
    if target is None:
        return []
    if not isinstance(target, Labels):
        n = len(target)
        return [[fold.outside for fold in plain_folds(n, min(N_FOLDS, n), random)]]
    folds = []
    for i, j in target.pairs():
        code = target.code[(target.code == i) | (target.code == j)]
        order = np.argsort(code, kind="stable")
        parts = plain_folds(len(order), N_FOLDS, random)
        folds.append([order[fold.outside] for fold in parts])
    return folds


def _state(data: DataSet, told: SvmOptions) -> _Problem:
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    kept = counted_samples(weight)
    is_whole = len(kept) == len(weight)
    X = data.X if is_whole else data.X[kept]
    weight, y = weight[kept], data.y[kept]
    serial = None
    if told.kernel_type == KernelType.PRECOMPUTED:
        serial = serial_numbers(X, data.largest)
        X = dense_columns(X, serial + 1)
    target: Labels | FloatVector | None = y
    per_class = np.ones(1)
    if told.svm_type in CLASSIFIERS:
        target = labels_as_met(y)
        per_class = class_weights(target, told)
        if told.svm_type == SvmType.C_SVC:
            weight = weight * per_class[target.code]
    elif told.svm_type == SvmType.ONE_CLASS:
        target = None
    spec = KernelSpec(
        MACHINES[SvmType(told.svm_type)],
        kernel_of(told, data.largest),
        float(told.C),
        float(told.nu),
        float(told.p),
    )
    is_even = bool((per_class == per_class[0]).all())
    return _Problem(spec, KernelSet(X, target, weight), kept, serial, is_even)


def class_weights(labels: Labels, told: Any) -> FloatVector:
    """The factors of -wi, in the order of the classes."""
    weights = np.ones(labels.n_classes)
    for i in range(told.nr_weight):
        weights[labels.classes == told.weight_label[i]] *= told.weight[i]
    if not (np.isfinite(weights).all() and (weights > 0.0).all()):
        raise InvalidInput(
            "Weights of classes (-wi) must be finite and above 0, got "
            f"{list(told.weight)[: told.nr_weight]}."
        )
    return weights


def _warn_of_weights(data: DataSet, told: SvmOptions) -> None:
    if told.nr_weight and told.svm_type in CLASSIFIERS:
        warn_of_unknown(labels_as_met(data.y), told)


def warn_of_unknown(labels: Labels, told: Any) -> None:
    """Say which labels of -wi no sample has."""
    for label in list(told.weight_label)[: told.nr_weight]:
        if label not in labels.classes:
            complain(f"WARNING: class label {label} specified in weight is not found")


def _options(told: SvmOptions, pace: Pace) -> Options:
    n_bytes = default_cache_bytes()
    if told.cache_size != DEFAULT_CACHE:
        n_bytes = int(told.cache_size * (1 << 20))
    return Options(
        tol=float(told.eps),
        shrinking=bool(told.shrinking),
        cache_bytes=n_bytes,
        time_limit=pace.time_limit,
        started=pace.started,
        callback=pace.callback,
    )


# Reporting.


def _report(
    problem: _Problem, model: KernelModel, evidence: list[KernelEvidence]
) -> str:
    machine, lines = problem.spec.machine, []
    if model.is_classifier and model.n_classes == 1:
        lines.append(
            "WARNING: training data in only one class. See README for details."
        )
    for found in evidence:
        lines += [f"*\noptimization finished, #iter = {found.machine.solution.n_iter}"]
        if machine == "nu_svc":
            lines.append(f"C = {found.C:f}")
        elif machine == "nu_svr":
            lines.append(f"epsilon = {found.epsilon:f}")
        elif machine != "one_class" and problem.has_equal_weights:
            lines.append(f"nu = {found.nu:f}")
        lines.append(f"obj = {found.machine.objective:f}, rho = {found.rho:f}")
        lines.append(f"nSV = {found.n_support}, nBSV = {found.n_bounded}")
        warn_unless_converged(found.machine.solution.status)
        warn_unless_converged(found.fold_status)
    if model.is_classifier:
        lines.append(f"Total nSV = {model.n_vectors}")
    return "".join(f"{line}\n" for line in lines)


def _words_of_probability(model: KernelModel) -> str:
    if model.is_regressor:
        return laplace_lines(model.sigma)
    if not model.has_probabilities:
        complain(
            "WARNING: number of positive or negative decision values <5; too few to "
            "do a probability estimation."
        )
    return ""


def warn_unless_converged(status: Status) -> None:
    """On the standard error: why a solution is not as exact as it should be."""
    if status is Status.MAX_ITER:
        complain("\nWARNING: reaching max number of iterations")
    elif status is not Status.CONVERGED:
        complain(f"\nWARNING: {status.value}")


# Cross-validation.


def cross_validate_svm(
    data: DataSet,
    told: SvmOptions,
    say: Say = quiet,
    pace: Pace | None = None,
    random: CRand = PROCESS,
) -> FloatVector:
    """What each sample is predicted to be by a machine that has not seen it."""
    _warn_of_weights(data, told)
    pace = pace or Pace()
    folds = svm_folds(data, told, random)
    if told.cache_size == DEFAULT_CACHE:
        share = default_cache_bytes() / (1 << 20) / min(len(folds), count_cores())
        told = replace(told, cache_size=max(1.0, share))
    within = [_folds_inside(data, told, fold, random) for fold in folds]
    tasks = [
        partial(_hold_out, data, told, pace, fold, more)
        for fold, more in zip(folds, within, strict=True)
    ]
    out = np.empty(len(data.y))
    for fold, (predicted, report) in zip(
        folds, run_all(tasks, pace.threads), strict=True
    ):
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


def _folds_inside(
    data: DataSet, told: SvmOptions, fold: Fold, random: CRand
) -> Folds | None:
    """Where -b 1 holds samples out of those that are not held out."""
    if not told.probability:
        return None
    problem = _state(data.take(fold.inside), told)
    folds = _probability_folds(problem, told, random)
    return folds if told.svm_type in CLASSIFIERS else None


def _hold_out(
    data: DataSet, told: SvmOptions, pace: Pace, fold: Fold, folds: Folds | None
) -> tuple[FloatVector, str]:
    """With -b 1 the most probable class is what a classifier predicts."""
    inside = data.take(fold.inside)
    problem = _state(inside, told)
    trained, report = _train(inside, problem, told, pace, folds)
    X = data.X[fold.outside]
    if told.kernel_type == KernelType.PRECOMPUTED:
        X = kernel_columns(X)
    model = trained.model
    if folds is None:
        return np.asarray(model.predict(X), dtype=np.float64), report
    winner = model.probabilities(X).argmax(axis=1)
    return np.asarray(model.classes[winner], dtype=np.float64), report
