"""How is a kernel machine trained where nobody speaks scikit-learn's words?

Samples, targets and weights are those that count, and have been checked. Classes come
in the order that the model shall have them in.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._threads import count_cores, one_blas_thread
from maxmargin.data.labels import Labels
from maxmargin.data.rows import Rows, as_rows
from maxmargin.data.weights import box_sizes
from maxmargin.errors import InvalidInput
from maxmargin.kernels.functions import Kernel
from maxmargin.kernels.gram import Gram, MatrixGram, VectorGram, check_symmetric
from maxmargin.kernels.memory import forget_spares
from maxmargin.models.calibration import (
    calibrate_pair,
    density_marks,
    laplace_scale,
)
from maxmargin.models.evidence import KernelEvidence, weigh
from maxmargin.models.held_out import Solved, State, held_out_decisions
from maxmargin.models.kernel_model import (
    MANY_COLUMNS,
    KernelModel,
    MachineWord,
    pick_columns,
)
from maxmargin.models.machine import Fit, fit_decision, fit_margin, fit_tube
from maxmargin.models.multiclass import PairFit, fit_pairs, in_pair, share_between_pairs
from maxmargin.problems import DualProblem, epsilon_svr, nu_svr, one_class
from maxmargin.problems.classification import c_svc, feasible_nu_svc
from maxmargin.solvers import Options
from maxmargin.solvers.gradient import check_finite
from maxmargin.typing import FloatVector, IntVector


class KernelSpec(NamedTuple):
    """Which machine, in LIBSVM's words, with which numbers."""

    machine: MachineWord
    kernel: Kernel | None  # None: the kernel is given as a matrix
    C: float = 1.0
    nu: float = 0.5
    epsilon: float = 0.1


class KernelSet(NamedTuple):
    """What to train on."""

    X: Any  # dense or canonical CSR; the kernel between all samples where it is given
    target: Labels | FloatVector | None  # classes, numbers, or nothing (one-class)
    weight: FloatVector  # positive; of a classifier times that of the class


Folds = list[list[IntVector]]  # of each problem: its samples to hold out, from 0


def fit_kernel_model(
    spec: KernelSpec,
    training: KernelSet,
    options: Options,
    n_threads: int = 1,
    folds: Folds | None = None,
) -> tuple[KernelModel, list[KernelEvidence]]:
    """Solve every pair of classes, or the one problem there is.

    `support_index` of the model counts the rows of this training set. With `folds`, a
    list for every problem (of a one-class machine nothing is held out, and the list is
    not read), the model can tell probabilities.
    """
    with one_blas_thread():
        gram = _gram(spec, training.X, n_threads)
        try:
            if isinstance(training.target, Labels):
                return _fit_classes(spec, training, gram, options, n_threads, folds)
            return _fit_single(spec, training, gram, options, n_threads, folds)
        finally:
            forget_spares()


def _gram(spec: KernelSpec, X: Any, n_threads: int) -> Gram:
    if spec.kernel is not None:
        is_balanced = spec.machine != "one_class"
        rows = sample_rows(X)
        return VectorGram(spec.kernel, rows, n_threads, is_balanced=is_balanced)
    check_symmetric(X)
    return MatrixGram(X)


def sample_rows(X: Any) -> Rows:
    """Samples, without columns that are empty where these are very many."""
    if sp.issparse(X) and X.shape[1] > max(MANY_COLUMNS, X.nnz):
        X, _ = pick_columns(X, np.unique(X.indices))
    return as_rows(X)


def _fit_classes(
    spec: KernelSpec,
    training: KernelSet,
    gram: Gram,
    options: Options,
    n_threads: int,
    folds: Folds | None,
) -> tuple[KernelModel, list[KernelEvidence]]:
    labels, weight = training.target, training.weight
    assert isinstance(labels, Labels)
    if labels.n_classes == 1:
        return _single_class(spec, training, labels), []
    options = _sharing(options, len(labels.pairs()))
    grams, options = share_between_pairs(gram, labels, options)
    found: dict[int, KernelEvidence] = {}

    def weigh_pair(
        solved: Solved, y: FloatVector, rows: IntVector, number: int
    ) -> None:
        evidence = weigh(solved.machine, solved.state(solved.weight))
        if folds is not None:
            held_out = in_pair(folds[number], rows)
            told = calibrate_pair(solved, y, held_out, None, n_threads)
            evidence = replace(evidence, sigmoid=told.sigmoid, fold_status=told.status)
        found[number] = evidence

    fit = PairFit(weight, partial(_stated, spec), options, weigh_pair)
    pairs = fit_pairs(grams, labels, fit, n_threads)
    check_finite(np.append(pairs.fitted.intercept, pairs.dual_coef))
    model = KernelModel(
        machine=spec.machine,
        kernel=spec.kernel,
        support=_rows_of(spec, training, pairs.support),
        support_index=pairs.support,
        dual_coef=pairs.dual_coef,
        intercept=pairs.fitted.intercept,
        classes=labels.classes,
        n_support=pairs.n_support,
        n_features=_n_features(spec, training),
    )
    evidence = [found[number] for number in sorted(found)]
    sigmoids = [one.sigmoid for one in evidence if one.sigmoid is not None]
    if folds is not None:
        model = replace(
            model,
            prob_a=np.array([sigmoid.slope for sigmoid in sigmoids]),
            prob_b=np.array([sigmoid.offset for sigmoid in sigmoids]),
        )
    return model, evidence


def _stated(spec: KernelSpec, y: FloatVector, end: IntVector) -> tuple[State, Fit]:
    """The problems of pairs of classes from weights, and how they are fitted."""
    if spec.machine == "c_svc":
        return partial(_c_svc, y, spec.C), fit_decision
    if spec.machine == "nu_svc":
        return partial(_nu_svc, y, spec.nu, end), fit_margin
    raise InvalidInput(
        f"The machine {spec.machine!r} learns no classes: its targets must be numbers, "
        "or none."
    )


def _c_svc(y: FloatVector, C: float, weight: FloatVector) -> DualProblem:
    return c_svc(y, box_sizes(C, weight))


def _nu_svc(
    y: FloatVector, nu: float, end: IntVector, weight: FloatVector
) -> DualProblem:
    return feasible_nu_svc(y, nu, weight, end)


def _fit_single(
    spec: KernelSpec,
    training: KernelSet,
    gram: Gram,
    options: Options,
    n_threads: int,
    folds: Folds | None,
) -> tuple[KernelModel, list[KernelEvidence]]:
    state, fit = _single_problem(spec, training)
    weight = training.weight
    problem = state(weight)
    machine = fit(problem, gram, options, None, None)
    found = weigh(machine, problem)
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
    if folds is None:
        return model, [found]
    if spec.machine == "one_class":
        return replace(model, density_marks=density_marks(machine.decisions)), [found]
    solved = Solved(state, fit, gram, weight, machine, options)
    said = held_out_decisions(solved, folds[0], n_threads)
    sigma = laplace_scale(_numbers(training) - said.decisions)
    found = replace(found, fold_status=said.status)
    return replace(model, prob_a=np.array([sigma])), [found]


def _single_problem(spec: KernelSpec, training: KernelSet) -> tuple[State, Fit]:
    """How to state and to fit a machine without classes."""
    if spec.machine == "one_class":
        return partial(_one_class, spec), fit_decision
    z = _numbers(training)
    if spec.machine == "nu_svr":
        return partial(_nu_svr, spec, z), fit_tube
    if spec.machine == "epsilon_svr":
        return partial(_epsilon_svr, spec, z), fit_decision
    raise InvalidInput(
        f"The machine {spec.machine!r} learns no numbers: it needs a label for every "
        "sample."
    )


def _one_class(spec: KernelSpec, weight: FloatVector) -> DualProblem:
    return one_class(weight, spec.nu)


def _epsilon_svr(spec: KernelSpec, z: FloatVector, weight: FloatVector) -> DualProblem:
    return epsilon_svr(z, box_sizes(spec.C, weight), spec.epsilon)


def _nu_svr(spec: KernelSpec, z: FloatVector, weight: FloatVector) -> DualProblem:
    return nu_svr(z, box_sizes(spec.C, weight), spec.nu)


def _numbers(training: KernelSet) -> FloatVector:
    if not isinstance(training.target, np.ndarray):
        raise InvalidInput("A regression needs a number for every sample: pass y.")
    return training.target


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
    return replace(options, cache_bytes=share, n_problems=n_problems)
