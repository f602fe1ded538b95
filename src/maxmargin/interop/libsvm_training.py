"""What does LIBSVM do with samples and options, and what does it say meanwhile?"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _clock
from maxmargin._threads import count_cores
from maxmargin.data.labels import Labels
from maxmargin.data.weights import counted_samples
from maxmargin.errors import InvalidInput, refuse
from maxmargin.interop.c_rand import PROCESS, CRand
from maxmargin.interop.evaluation import laplace_lines
from maxmargin.interop.folds import plain_folds
from maxmargin.interop.libsvm_kernels import (
    WITH_GAMMA,
    kernel_of,
    serial_numbers,
)
from maxmargin.interop.option_strings import KernelType, SvmOptions, SvmType
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.kernels.cache import default_cache_bytes
from maxmargin.models.evidence import KernelEvidence
from maxmargin.models.fit_kernel import (
    Folds,
    KernelSet,
    KernelSpec,
    fit_kernel_model,
)
from maxmargin.models.held_out import N_FOLDS
from maxmargin.models.kernel_model import KernelModel, MachineWord, dense_columns
from maxmargin.solvers import Options, Progress, Status
from maxmargin.typing import FloatVector, IntVector

MACHINES: dict[SvmType, MachineWord] = {
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
    started: float | None = None  # on the clock of `_clock`: when the limit began

    @property
    def threads(self) -> int:
        return count_cores() if self.n_threads is None else self.n_threads

    def is_over(self) -> bool:
        """Whether the limit has passed."""
        if self.time_limit is None or self.started is None:
            return False
        return _clock.now() - self.started > self.time_limit


class Trained(NamedTuple):
    """A model, and the rows of the training set that its support vectors were."""

    model: KernelModel
    support: IntVector
    evidence: list[KernelEvidence]


class Problem(NamedTuple):
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
    warn_of_weights(data, told)
    problem = state(data, told)
    folds = probability_folds(problem, told, random)
    trained, report = train_stated(data, problem, told, pace or Pace(), folds)
    say(report)
    return trained


def train_stated(
    data: DataSet, problem: Problem, told: SvmOptions, pace: Pace, folds: Folds | None
) -> tuple[Trained, str]:
    """A model, and LIBSVM's lines about it."""
    model, evidence = fit_kernel_model(
        problem.spec, problem.training, solver_options(told, pace), pace.threads, folds
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
    facts = Facts(problem.spec.machine, problem.has_equal_weights)
    n_classes = len(model.classes) if model.is_classifier else None
    report = lines_about(facts, evidence, model.n_vectors, n_classes)
    if folds is not None:
        report += _words_of_probability(model)
    return Trained(model, rows, evidence), report


def probability_folds(
    problem: Problem, told: SvmOptions, random: CRand
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


def state(data: DataSet, told: SvmOptions) -> Problem:
    """The machine and the samples that count."""
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
    training = KernelSet(X, target, weight)
    return Problem(spec, training, kept, serial, are_equal(per_class))


def are_equal(weights: FloatVector) -> bool:
    """Whether classes weigh the same: only then LIBSVM tells nu."""
    return bool((weights == weights[0]).all())


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


def warn_of_weights(data: DataSet, told: SvmOptions) -> None:
    """Say which labels of -wi no sample has, if that matters."""
    if told.nr_weight and told.svm_type in CLASSIFIERS:
        warn_of_unknown(labels_as_met(data.y), told)


def warn_of_unknown(labels: Labels, told: Any) -> None:
    """Say which labels of -wi are none of these."""
    for label in list(told.weight_label)[: told.nr_weight]:
        if label not in labels.classes:
            complain(f"WARNING: class label {label} specified in weight is not found")


def solver_options(told: SvmOptions, pace: Pace) -> Options:
    """How the solvers go about it."""
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


class Facts(NamedTuple):
    """What the lines about a machine depend on, apart from its evidence."""

    machine: MachineWord
    has_equal_weights: bool  # of its classes


def lines_about(
    facts: Facts, evidence: list[KernelEvidence], n_vectors: int, n_classes: int | None
) -> str:
    """What LIBSVM says of a trained machine; `n_classes` is None for a regressor."""
    lines = []
    if n_classes == 1:
        lines.append(
            "WARNING: training data in only one class. See README for details."
        )
    for found in evidence:
        lines += [f"*\noptimization finished, #iter = {found.machine.solution.n_iter}"]
        lines += _lines_of_parameter(facts, found)
        lines.append(f"obj = {found.machine.objective:f}, rho = {found.rho:f}")
        lines.append(f"nSV = {found.n_support}, nBSV = {found.n_bounded}")
        warn_unless_converged(found.machine.solution.status)
        warn_unless_converged(found.fold_status)
    if n_classes is not None:
        lines.append(f"Total nSV = {n_vectors}")
    return "".join(f"{line}\n" for line in lines)


def _lines_of_parameter(facts: Facts, found: KernelEvidence) -> list[str]:
    """The parameter of the other formulation, where there is one."""
    match facts.machine:
        case "nu_svc":
            return [f"C = {found.C:f}"]
        case "nu_svr":
            return [f"epsilon = {found.epsilon:f}"]
        case "c_svc" | "epsilon_svr":
            return [f"nu = {found.nu:f}"] if facts.has_equal_weights else []
        case "one_class":
            return []
        case _:
            refuse(facts.machine, "LIBSVM's report")


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
