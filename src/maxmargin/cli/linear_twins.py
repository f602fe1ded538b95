"""When do LIBSVM and LIBLINEAR mean the same machine, and where does scaling go?

A linear kernel's expansion is one vector of weights; weights are the expansion of one
support vector. With scaling x -> factor x + offset, <w, scaled x> + b is linear in x.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse

from maxmargin.cli.console import Failure
from maxmargin.data.scaling import Scaling
from maxmargin.kernels.functions import Linear
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import LinearModel
from maxmargin.typing import FloatVector

SOLVERS = {
    "c_svc": "L2R_L1LOSS_SVC_DUAL",
    "nu_svc": "L2R_L1LOSS_SVC_DUAL",
    "one_class": "ONECLASS_SVM",
    "epsilon_svr": "L2R_L1LOSS_SVR_DUAL",
    "nu_svr": "L2R_L1LOSS_SVR_DUAL",
}


def as_linear_model(model: KernelModel) -> LinearModel:
    """The weights of a machine with a linear kernel."""
    if not isinstance(model.kernel, Linear):
        raise Failure("only a machine with a linear kernel fits LIBLINEAR's format")
    if model.n_classes != 2:
        raise Failure(
            f"LIBLINEAR compares each class with the rest, LIBSVM each pair: a machine "
            f"of {model.n_classes} classes cannot be converted"
        )
    if model.index_base == 0:
        raise Failure("LIBLINEAR counts features from 1, and this model from 0")
    weights = np.asarray(sparse.csr_matrix(model.support).T @ model.dual_coef[0])
    coef = weights.reshape(1, -1)
    if model.machine == "one_class":
        rho = -float(model.intercept[0])
        return LinearModel(SOLVERS[model.machine], None, coef, rho=rho)
    return LinearModel(
        SOLVERS[model.machine], model.classes, coef, 1.0, model.intercept.copy()
    )


def as_kernel_model(model: LinearModel) -> KernelModel:
    """One support vector, the weights, with coefficient 1."""
    if len(model.coef) != 1:
        raise Failure(
            f"LIBSVM compares pairs of classes, LIBLINEAR each class with the rest: a "
            f"machine of {model.n_classes} classes cannot be converted"
        )
    machine = "c_svc" if model.is_classifier else "one_class"
    return KernelModel(
        machine="epsilon_svr" if model.is_regressor else machine,
        kernel=Linear(),
        support=model.coef.copy(),
        support_index=None,
        dual_coef=np.ones((1, 1)),
        intercept=model.intercept,
        classes=model.classes,
        n_support=np.array([1, 0]) if model.is_classifier else None,
        n_features=model.n_features,
    )


def factor_and_offset(scaling: Scaling) -> tuple[FloatVector, FloatVector]:
    """Scaling as x -> factor x + offset; zero for features that do not vary."""
    width = np.where(scaling.varies, scaling.high - scaling.low, 1.0)
    factor = np.where(scaling.varies, (scaling.upper - scaling.lower) / width, 0.0)
    offset = np.where(scaling.varies, scaling.lower - factor * scaling.low, 0.0)
    return factor, offset


def unscaled(model: LinearModel, scaling: Scaling) -> LinearModel:
    """The same machine for features as they were before scaling."""
    factor, offset = factor_and_offset(scaling)
    moved = model.coef @ offset
    coef = model.coef * factor
    if model.solver == "ONECLASS_SVM":
        return replace(model, coef=coef, rho=model.rho - float(moved[0]))
    return replace(model, coef=coef, bias=1.0, bias_weight=model.intercept + moved)
