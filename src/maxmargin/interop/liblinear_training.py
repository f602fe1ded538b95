"""What does LIBLINEAR do with samples and options, and what does it say meanwhile?

Its tolerances are loose. For -s 0, 1, 2, 3 and 11 its own steps are followed, and end
where they do. The others are solved more exactly, so that both answers are near the one
solution there is.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._threads import run_all
from maxmargin.data.labels import Labels
from maxmargin.data.weights import counted_samples
from maxmargin.errors import InvalidInput
from maxmargin.interop.c_rand import PROCESS, CRand
from maxmargin.interop.folds import Fold, plain_folds
from maxmargin.interop.liblinear_steps import DUAL, FOLLOWED, FOLLOWED_VALUES, Steps
from maxmargin.interop.libsvm_training import (
    Pace,
    Say,
    class_weights,
    complain,
    quiet,
    warn_of_unknown,
    warn_unless_converged,
)
from maxmargin.interop.option_strings import PRIMAL, LinearOptions, SolverType
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.models.fit_linear import (
    LinearEvidence,
    LinearSet,
    LinearSpec,
    fit_linear_model,
)
from maxmargin.models.linear import weights_of
from maxmargin.models.linear_model import LinearModel
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatMatrix, FloatVector

REGRESSORS = (
    SolverType.L2R_L2LOSS_SVR,
    SolverType.L2R_L2LOSS_SVR_DUAL,
    SolverType.L2R_L1LOSS_SVR_DUAL,
)
WITH_FREE_BIAS = (*PRIMAL, SolverType.L1R_L2LOSS_SVC, SolverType.L1R_LR)
SPARSE = (SolverType.L1R_L2LOSS_SVC, SolverType.L1R_LR)
LOGISTIC = (SolverType.L2R_LR, SolverType.L1R_LR, SolverType.L2R_LR_DUAL)
RECALCULATES = (SolverType.L2R_L2LOSS_SVC_DUAL, SolverType.L2R_L1LOSS_SVC_DUAL)
AT_BOUND = 1e-6  # of a variable's bound
FINE = 1e-4  # of violation and relative gap: eps as given, but never above this


class TrainedLinear(NamedTuple):
    """A model, and what each of its hyperplanes is a solution of."""

    model: LinearModel
    evidence: list[LinearEvidence]


def check_linear(data: DataSet, told: LinearOptions) -> str | None:
    """LIBLINEAR's complaint about the parameters, if it has one."""
    solver = told.solver_type
    is_free = not told.regularize_bias
    tests = [
        (data.first == 0, "features are counted from 1, and one has index 0"),
        (not told.eps > 0.0, "eps <= 0"),
        (not told.C > 0.0, "C <= 0"),
        (not told.p >= 0.0 and solver in REGRESSORS, "p < 0"),
        (
            told.bias >= 0.0 and solver == SolverType.ONECLASS_SVM,
            "prob->bias >=0, but this is ignored in ONECLASS_SVM",
        ),
        (
            is_free and told.bias != 1.0,
            "To not regularize bias, must specify -B 1 along with -R",
        ),
        (
            is_free and solver not in WITH_FREE_BIAS,
            "-R option supported only for solver L2R_LR, L2R_L2LOSS_SVC, "
            "L1R_L2LOSS_SVC, L1R_LR, and L2R_L2LOSS_SVR",
        ),
        (solver not in list(SolverType), "unknown solver type"),
        (
            told.init_sol is not None and solver not in PRIMAL,
            "Initial-solution specification supported only for solvers L2R_LR, "
            "L2R_L2LOSS_SVC, and L2R_L2LOSS_SVR",
        ),
        (
            told.w_recalc and solver not in RECALCULATES,
            "Recalculating w in the end is only for dual solvers for L2-regularized "
            "L1/L2-loss SVM",
        ),
        (
            solver == SolverType.ONECLASS_SVM and not 0.0 < told.nu <= 1.0,
            "nu <= 0 or nu > 1",
        ),
    ]
    return next((words for is_wrong, words in tests if is_wrong), None)


# Training.


def train_linear(
    data: DataSet,
    told: LinearOptions,
    say: Say = quiet,
    pace: Pace | None = None,
    random: CRand = PROCESS,
) -> TrainedLinear:
    """Train, and report in LIBLINEAR's words."""
    _warn_of_weights(data, told)
    trained, report = train_from(data, told, pace or Pace(), random)
    say(report)
    return trained


def train_from(
    data: DataSet, told: LinearOptions, pace: Pace, random: CRand
) -> tuple[TrainedLinear, str]:
    """A model, and what is to be said about it."""
    spec, training = spec_of(told), training_of(data, told)
    options = _options(told, pace)
    X = training.X
    n_values = X.nnz if sp.issparse(X) else X.size
    if told.solver_type in FOLLOWED and n_values <= FOLLOWED_VALUES:
        steps = Steps(told, options, random, _given_start(data, told))
        model, found = fit_linear_model(
            spec, training, options, pace.threads, steps.solve
        )
        if any(each.solution.status is Status.TIME_LIMIT for each in found):
            warn_unless_converged(Status.TIME_LIMIT)  # the steps tell the rest
        return TrainedLinear(model, found), steps.report
    model, found = fit_linear_model(spec, training, options, pace.threads)
    if told.solver_type == SolverType.ONECLASS_SVM:
        model = replace(model, rho=_middle(model, training, found[0]))
    for each in found:
        warn_unless_converged(each.solution.status)
    report = "".join(_report(told, model, each) for each in found)
    return TrainedLinear(model, found), report


def _middle(model: LinearModel, training: LinearSet, found: LinearEvidence) -> float:
    """Where no variable is free, the middle of all that rho may be."""
    share = found.solution.beta / training.weight
    height = model.decisions(training.X)[:, 0] + model.rho
    at_top, at_zero = share >= 1.0 - AT_BOUND, share <= AT_BOUND
    if not (at_top | at_zero).all() or at_top.all() or at_zero.all():
        return model.rho
    return 0.5 * float(height[at_top].max() + height[at_zero].min())


def spec_of(told: LinearOptions) -> LinearSpec:
    """The machine that the options name."""
    return LinearSpec(
        solver=SolverType(told.solver_type).name,
        C=float(told.C),
        epsilon=float(told.p),
        nu=float(told.nu),
        bias=float(told.bias),
        is_bias_free=not told.regularize_bias,
    )


def training_of(data: DataSet, told: LinearOptions) -> LinearSet:
    """The samples that count, class by class in the order in which they are met."""
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    kept = counted_samples(weight)
    X = data.X if len(kept) == len(weight) else data.X[kept]
    y, weight = data.y[kept], weight[kept]
    if told.solver_type in REGRESSORS:
        return LinearSet(X, y, weight)
    if told.solver_type == SolverType.ONECLASS_SVM:
        return LinearSet(X, None, weight)
    labels = labels_as_met(y)
    order = np.argsort(labels.code, kind="stable")
    if (np.diff(order) != 1).any():
        X, weight = X[order], weight[order]
        labels = Labels(labels.classes, labels.code[order])
    return LinearSet(X, labels, weight, class_weights(labels, told))


def _warn_of_weights(data: DataSet, told: LinearOptions) -> None:
    is_classifier = told.solver_type not in (*REGRESSORS, SolverType.ONECLASS_SVM)
    if told.nr_weight and is_classifier:
        warn_of_unknown(labels_as_met(data.y), told)


def _options(told: LinearOptions, pace: Pace) -> Options:
    return Options(
        tol=min(float(told.eps), FINE),
        time_limit=pace.time_limit,
        started=pace.started,
        callback=pace.callback,
    )


def _given_start(data: DataSet, told: LinearOptions) -> FloatMatrix | None:
    """init_sol, in which the weights of all classes for one feature come together."""
    if told.init_sol is None:
        return None
    n_classes = 2
    if told.solver_type not in REGRESSORS:
        n_classes = labels_as_met(data.y).n_classes
    n_planes = 1 if n_classes == 2 else n_classes
    width = data.X.shape[1] + int(told.bias >= 0.0)
    try:
        given = np.array([float(told.init_sol[i]) for i in range(width * n_planes)])
    except (IndexError, TypeError) as error:
        raise InvalidInput(
            f"init_sol must hold {width} x {n_planes} numbers, a weight per feature "
            "(and bias) and class."
        ) from error
    weights = given.reshape(width, n_planes).T
    if told.bias == 0.0:
        weights = weights[:, :-1]  # of a feature that is always zero
    return np.ascontiguousarray(weights)


# Reporting.


def _report(told: LinearOptions, model: LinearModel, found: LinearEvidence) -> str:
    solution, weight = found.solution, weights_of(found.solution)
    lines = ["*"]
    if told.solver_type == SolverType.L1R_LR:
        lines = [f"iter {solution.n_iter:3d}  #CD cycles 1", "=" * 25]
    lines.append(f"optimization finished, #iter = {solution.n_iter}")
    if told.solver_type in SPARSE:
        lines.append(f"Objective value = {solution.objective:f}")
        n_used = np.count_nonzero(weight)
        lines.append(f"#nonzeros/#features = {n_used}/{len(weight)}")
        return _joined(lines)
    value = -solution.objective
    if told.solver_type == SolverType.ONECLASS_SVM:
        value = 0.5 * float(np.sum(model.coef**2))
    lines.append(f"Objective value = {value:f}")
    if told.solver_type not in LOGISTIC:
        lines.append(f"nSV = {np.count_nonzero(solution.beta)}")
    if told.solver_type == SolverType.ONECLASS_SVM:
        lines.append(f"rho = {model.rho:f}")
    return _joined(lines)


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# Cross-validation.


def cross_validate_linear(
    data: DataSet,
    told: LinearOptions,
    say: Say = quiet,
    pace: Pace | None = None,
    random: CRand = PROCESS,
) -> FloatVector:
    """What each sample is predicted to be by a machine that has not seen it."""
    pace = pace or Pace()
    _warn_of_weights(data, told)
    folds = linear_folds(data, told, random)
    tasks = [partial(_hold_out, data, told, pace, fold, random) for fold in folds]
    n_threads = 1 if told.solver_type in DUAL else pace.threads  # they share rand()
    out = np.empty(len(data.y))
    for fold, (predicted, report) in zip(folds, run_all(tasks, n_threads), strict=True):
        say(report)
        out[fold.outside] = predicted
    return out


def linear_folds(data: DataSet, told: LinearOptions, random: CRand) -> list[Fold]:
    """LIBLINEAR's folds, whatever the classes."""
    n, n_folds = len(data.y), int(told.nr_fold)
    if n_folds > n:
        complain(
            "WARNING: # folds > # data. Will use # folds = # data instead (i.e., "
            "leave-one-out cross validation)"
        )
        n_folds = n
    return plain_folds(n, n_folds, random)


def _hold_out(
    data: DataSet, told: LinearOptions, pace: Pace, fold: Fold, random: CRand
) -> tuple[FloatVector, str]:
    trained, report = train_from(data.take(fold.inside), told, pace, random)
    predicted = trained.model.predict(data.X[fold.outside])
    return np.asarray(predicted, dtype=np.float64), report
