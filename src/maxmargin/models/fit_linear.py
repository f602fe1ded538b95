"""How is a linear machine trained where nobody speaks scikit-learn's words?

Samples, targets and weights are those that count, and have been checked. Classes come
in the order that the model shall have them in. Costs are LIBLINEAR's: of two classes
each has its own weight; of more, class k has its own weight against all the others,
which then have none.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from maxmargin._threads import one_blas_thread, run_all
from maxmargin.data.design import Design
from maxmargin.data.labels import Labels
from maxmargin.errors import InvalidInput, NotAvailable
from maxmargin.models.linear import (
    check_size,
    check_targets,
    check_weights,
    cost_of,
    weights_of,
)
from maxmargin.models.linear_model import LinearModel
from maxmargin.problems.crammer_singer import CrammerSingerProblem
from maxmargin.problems.linear import LinearProblem, Loss
from maxmargin.solvers import Options, Solution
from maxmargin.solvers.crammer_singer import solve_crammer_singer
from maxmargin.solvers.l1 import solve_l1
from maxmargin.solvers.linear import solve_linear
from maxmargin.typing import FloatVector

LOSSES = {
    "L2R_LR": Loss.LOGISTIC,
    "L2R_L2LOSS_SVC_DUAL": Loss.SQUARED_HINGE,
    "L2R_L2LOSS_SVC": Loss.SQUARED_HINGE,
    "L2R_L1LOSS_SVC_DUAL": Loss.HINGE,
    "MCSVM_CS": Loss.HINGE,
    "L1R_L2LOSS_SVC": Loss.SQUARED_HINGE,
    "L1R_LR": Loss.LOGISTIC,
    "L2R_LR_DUAL": Loss.LOGISTIC,
    "L2R_L2LOSS_SVR": Loss.SQUARED_EPSILON,
    "L2R_L2LOSS_SVR_DUAL": Loss.SQUARED_EPSILON,
    "L2R_L1LOSS_SVR_DUAL": Loss.EPSILON,
    "ONECLASS_SVM": Loss.ONE_CLASS,
}
SPARSE = frozenset({"L1R_L2LOSS_SVC", "L1R_LR"})  # whose penalty is the sum of sizes
JOINT = "MCSVM_CS"
ONE_CLASS_BIAS = 1.0  # of the constant feature whose weight is -rho


class LinearSpec(NamedTuple):
    """Which machine, by LIBLINEAR's name of its solver, with which numbers."""

    solver: str
    C: float = 1.0
    epsilon: float = 0.1
    nu: float = 0.5
    bias: float = -1.0  # value of the constant feature; below 0: there is none
    is_bias_free: bool = False  # its weight is not penalised


class LinearSet(NamedTuple):
    """What to train on."""

    X: Any  # dense or canonical CSR
    target: Labels | FloatVector | None  # classes, numbers, or nothing (one-class)
    weight: FloatVector  # of the samples, positive
    class_weight: FloatVector | None = None


class LinearEvidence(NamedTuple):
    """One solved problem; a machine for all classes at once has none of this kind."""

    problem: LinearProblem | None
    solution: Solution


Solve = Callable[[int, LinearProblem], Solution]  # the number of a hyperplane first


def fit_linear_model(
    spec: LinearSpec,
    training: LinearSet,
    options: Options,
    n_threads: int = 1,
    solve: Solve | None = None,
) -> tuple[LinearModel, list[LinearEvidence]]:
    """Solve for every hyperplane, or for all of them at once.

    `solve` solves one after the other in its own way; by default each is solved as
    exactly as `options` say, on threads.
    """
    with one_blas_thread():
        if spec.solver == JOINT:
            design = _design(spec, training, n_threads)
            solution = _solve_joint(spec, training, design, options)
            found = [LinearEvidence(None, solution)]
            return _read(spec, training, found, _labels(training).n_classes), found
        problems = _problems(spec, training, n_threads)
        if solve is None:
            solutions = _solve(spec, problems, options)
        else:
            solutions = [solve(k, problem) for k, problem in enumerate(problems)]
    pairs = zip(problems, solutions, strict=True)
    found = [LinearEvidence(problem, solution) for problem, solution in pairs]
    return _read(spec, training, found, len(found)), found


def _design(spec: LinearSpec, training: LinearSet, n_threads: int) -> Design:
    design = Design(training.X, _constant(spec), n_threads)
    check_size(design)
    return design


def _constant(spec: LinearSpec) -> float:
    if spec.solver == "ONECLASS_SVM":
        return ONE_CLASS_BIAS
    return max(spec.bias, 0.0)


def _problems(
    spec: LinearSpec, training: LinearSet, n_threads: int
) -> list[LinearProblem]:
    """One for each hyperplane."""
    design = _design(spec, training, n_threads)
    base = LinearProblem(
        design=design,
        target=np.ones(design.n),
        cost=cost_of(spec.C, training.weight),
        loss=LOSSES[spec.solver],
        epsilon=spec.epsilon,
        is_intercept_free=spec.is_bias_free and design.bias != 0.0,
    )
    if base.loss is Loss.ONE_CLASS:
        total = spec.nu * float(training.weight.sum())
        cost = training.weight
        return [base._replace(cost=cost, is_intercept_free=True, total=total)]
    if base.loss.is_regression:
        if not isinstance(training.target, np.ndarray):
            raise InvalidInput("A regression needs a number for every sample: pass y.")
        check_targets(training.target)
        return [base._replace(target=training.target)]
    if base.loss not in (Loss.HINGE, Loss.SQUARED_HINGE, Loss.LOGISTIC):
        raise NotAvailable(
            f"No classifier has the loss {base.loss.name}: this case has not been "
            "written yet."
        )
    labels, weight = _labels(training), _class_weights(training)
    firsts = [0] if labels.n_classes == 2 else range(labels.n_classes)
    other = weight[1] if labels.n_classes == 2 else 1.0
    problems = []
    for k in firsts:
        is_own = labels.code == k
        cost = cost_of(spec.C, training.weight * np.where(is_own, weight[k], other))
        problems.append(base._replace(target=np.where(is_own, 1.0, -1.0), cost=cost))
    return problems


def _solve(
    spec: LinearSpec, problems: list[LinearProblem], options: Options
) -> list[Solution]:
    def solve(problem: LinearProblem) -> Solution:
        if spec.solver in SPARSE:
            return solve_l1(problem, options)
        return solve_linear(problem, options)

    tasks = [partial(solve, problem) for problem in problems]
    return run_all(tasks, problems[0].design.n_threads)


def _solve_joint(
    spec: LinearSpec, training: LinearSet, design: Design, options: Options
) -> Solution:
    labels = _labels(training)
    if labels.n_classes == 1:
        raise InvalidInput(
            "Crammer and Singer's machine (-s 4) needs at least two classes, and all "
            "samples are of one."
        )
    weight = _class_weights(training)[labels.code]
    cost = cost_of(spec.C, training.weight * weight)
    problem = CrammerSingerProblem(design, labels.code, cost, labels.n_classes)
    return solve_crammer_singer(problem, options)


def _read(
    spec: LinearSpec, training: LinearSet, found: list[LinearEvidence], n_planes: int
) -> LinearModel:
    weights = np.concatenate([weights_of(each.solution) for each in found])
    weights = weights.reshape(n_planes, -1)
    check_weights(weights)
    n_features = training.X.shape[1]
    at_end = weights[:, n_features:].sum(axis=1)  # none, or the constant feature's
    is_one_class = spec.solver == "ONECLASS_SVM"
    has_bias = spec.bias >= 0.0 and not is_one_class
    labels = training.target
    return LinearModel(
        solver=spec.solver,
        classes=labels.classes if isinstance(labels, Labels) else None,
        coef=np.ascontiguousarray(weights[:, :n_features]),
        bias=spec.bias if has_bias else -1.0,
        bias_weight=at_end if has_bias else None,
        rho=-float(at_end[0]) if is_one_class else 0.0,
    )


def _labels(training: LinearSet) -> Labels:
    if not isinstance(training.target, Labels):
        raise InvalidInput("A classifier needs a label for every sample: pass y.")
    return training.target


def _class_weights(training: LinearSet) -> FloatVector:
    if training.class_weight is None:
        return np.ones(_labels(training).n_classes)
    return training.class_weight
