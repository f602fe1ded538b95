"""How is a kernel machine trained where nobody speaks scikit-learn's words?

Samples, targets and weights are those that count, and have been checked. Classes come
in the order that the model shall have them in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._threads import count_cores, one_blas_thread
from maxmargin.data.labels import Labels
from maxmargin.data.rows import as_rows
from maxmargin.errors import InvalidInput
from maxmargin.kernels.functions import Kernel
from maxmargin.kernels.gram import Gram, MatrixGram, VectorGram, check_symmetric
from maxmargin.kernels.memory import forget_spares
from maxmargin.models.kernel_model import MANY_COLUMNS, KernelModel, pick_columns
from maxmargin.models.machine import Machine, fit_decision, fit_margin, fit_tube
from maxmargin.models.multiclass import fit_pairs
from maxmargin.problems import epsilon_svr, nu_svr, one_class
from maxmargin.problems.classification import c_svc, nu_svc
from maxmargin.solvers import Options
from maxmargin.solvers.gradient import check_finite
from maxmargin.typing import FloatVector, IntVector


class KernelSpec(NamedTuple):
    """Which machine, in LIBSVM's words, with which numbers."""

    machine: str  # "c_svc", "nu_svc", "one_class", "epsilon_svr" or "nu_svr"
    kernel: Kernel | None  # None: the kernel is given as a matrix
    C: float = 1.0
    nu: float = 0.5
    epsilon: float = 0.1


class KernelSet(NamedTuple):
    """What to train on."""

    X: Any  # dense or canonical CSR; the kernel between all samples where it is given
    target: Labels | FloatVector | None  # classes, numbers, or nothing (one-class)
    weight: FloatVector  # positive; of a classifier times that of the class


@dataclass(frozen=True)
class KernelEvidence:
    """What one solved problem says about itself."""

    machine: Machine
    n_support: int
    n_bounded: int  # support vectors at their upper bound
    nu: float  # C-SVC and epsilon-SVR: the nu that would lead to the same machine
    C: float  # nu-SVC: the C that would
    epsilon: float  # nu-SVR: the tube that was found

    @property
    def rho(self) -> float:
        return -self.machine.intercept


def fit_kernel_model(
    spec: KernelSpec, training: KernelSet, options: Options, n_threads: int = 1
) -> tuple[KernelModel, list[KernelEvidence]]:
    """Solve every pair of classes, or the one problem there is.

    `support_index` of the model counts the rows of this training set.
    """
    with one_blas_thread():
        gram = _gram(spec.kernel, training.X, n_threads)
        try:
            if isinstance(training.target, Labels):
                return _fit_classes(spec, training, gram, options, n_threads)
            return _fit_single(spec, training, gram, options)
        finally:
            forget_spares()


def _gram(kernel: Kernel | None, X: Any, n_threads: int) -> Gram:
    if kernel is not None:
        if sp.issparse(X) and X.shape[1] > max(MANY_COLUMNS, X.nnz):
            X, _ = pick_columns(X, np.unique(X.indices))  # the others are empty
        return VectorGram(kernel, as_rows(X), n_threads)
    check_symmetric(X)
    return MatrixGram(X)


def _fit_classes(
    spec: KernelSpec, training: KernelSet, gram: Gram, options: Options, n_threads: int
) -> tuple[KernelModel, list[KernelEvidence]]:
    labels, weight = training.target, training.weight
    assert isinstance(labels, Labels)
    if labels.n_classes == 1:
        return _single_class(spec, training, labels), []
    options = _sharing(options, len(labels.pairs()))
    found: dict[int, KernelEvidence] = {}

    def fit_pair(gram: Gram, y: FloatVector, rows: IntVector, number: int) -> Machine:
        found[number] = _fit_pair(spec, y, weight[rows], gram, options)
        return found[number].machine

    pairs = fit_pairs(gram, labels, fit_pair, n_threads)
    check_finite(np.append(pairs.intercept, pairs.dual_coef))
    model = KernelModel(
        machine=spec.machine,
        kernel=spec.kernel,
        support=_rows_of(spec, training, pairs.support),
        support_index=pairs.support,
        dual_coef=pairs.dual_coef,
        intercept=pairs.intercept,
        classes=labels.classes,
        n_support=pairs.n_support,
        n_features=_n_features(spec, training),
    )
    return model, [found[number] for number in sorted(found)]


def _fit_pair(
    spec: KernelSpec, y: FloatVector, weight: FloatVector, gram: Gram, options: Options
) -> KernelEvidence:
    if spec.machine == "c_svc":
        C = spec.C * weight
        return _weigh(fit_decision(c_svc(y, C), gram, options), C)
    machine = fit_margin(nu_svc(y, weight, spec.nu), gram, options)
    return _weigh(machine, weight, machine.solution.beta)


def _fit_single(
    spec: KernelSpec, training: KernelSet, gram: Gram, options: Options
) -> tuple[KernelModel, list[KernelEvidence]]:
    found = ONE_PROBLEM[spec.machine](spec, training, gram, options)
    machine = found.machine
    inside = np.flatnonzero(machine.coef)
    check_finite(np.append(machine.coef, machine.intercept))
    model = KernelModel(
        machine=spec.machine,
        kernel=spec.kernel,
        support=_rows_of(spec, training, inside),
        support_index=inside,
        dual_coef=machine.coef[None, inside],
        intercept=np.array([machine.intercept]),
        n_features=_n_features(spec, training),
    )
    return model, [found]


def _fit_one_class(
    spec: KernelSpec, training: KernelSet, gram: Gram, options: Options
) -> KernelEvidence:
    problem = one_class(training.weight, spec.nu)
    return _weigh(fit_decision(problem, gram, options), training.weight)


def _fit_epsilon(
    spec: KernelSpec, training: KernelSet, gram: Gram, options: Options
) -> KernelEvidence:
    C = spec.C * training.weight
    problem = epsilon_svr(_numbers(training), C, spec.epsilon)
    return _weigh(fit_decision(problem, gram, options), C)


def _fit_nu(
    spec: KernelSpec, training: KernelSet, gram: Gram, options: Options
) -> KernelEvidence:
    C = spec.C * training.weight
    machine = fit_tube(nu_svr(_numbers(training), C, spec.nu), gram, options)
    return _weigh(machine, C)


FitOne = Callable[[KernelSpec, KernelSet, Gram, Options], KernelEvidence]
ONE_PROBLEM: dict[str, FitOne] = {
    "one_class": _fit_one_class,
    "epsilon_svr": _fit_epsilon,
    "nu_svr": _fit_nu,
}


def _numbers(training: KernelSet) -> FloatVector:
    if not isinstance(training.target, np.ndarray):
        raise InvalidInput("A regression needs a number for every sample: pass y.")
    return training.target


def _weigh(
    machine: Machine, bound: FloatVector, beta: FloatVector | None = None
) -> KernelEvidence:
    """Count what is at its bound; `beta` where coefficients have been rescaled."""
    size = np.abs(machine.coef if beta is None else beta)
    level, total = machine.solution.level, float(bound.sum())
    half = 0.5 * float(level[0] - level[1]) if len(level) == 2 else 0.0
    return KernelEvidence(
        machine=machine,
        n_support=int(np.count_nonzero(size)),
        n_bounded=int(np.count_nonzero((size > 0.0) & (size >= bound))),
        nu=float(size.sum()) / total,
        C=1.0 / half if half != 0.0 else np.inf,
        epsilon=-half,
    )


def _single_class(spec: KernelSpec, training: KernelSet, labels: Labels) -> KernelModel:
    """Nothing to tell apart: every sample is of the one class there is."""
    nobody = np.empty(0, dtype=np.intp)
    return KernelModel(
        machine=spec.machine,
        kernel=spec.kernel,
        support=_rows_of(spec, training, nobody),
        support_index=nobody,
        dual_coef=np.empty((1, 0)),
        intercept=np.empty(0),
        classes=labels.classes,
        n_support=np.zeros(1, dtype=np.intp),
        n_features=_n_features(spec, training),
    )


def _rows_of(spec: KernelSpec, training: KernelSet, support: IntVector) -> Any:
    return None if spec.kernel is None else training.X[support]


def _n_features(spec: KernelSpec, training: KernelSet) -> int:
    return 0 if spec.kernel is None else int(training.X.shape[1])


def _sharing(options: Options, n_problems: int) -> Options:
    """The cache divided among the problems that are solved at once.

    By the machine's cores, not by threads, whose number thus changes no answer.
    """
    share = options.cache_bytes // min(n_problems, count_cores())
    return replace(options, cache_bytes=share)
