"""Which model does a fitted estimator hold, and which estimator does a model make?

A model has LIBSVM's or LIBLINEAR's order of classes, an estimator sorts them. LIBSVM
gives a tie of votes to the class that its file names first, an estimator to the
smallest label.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

import maxmargin
from maxmargin.data.labels import pairs_of
from maxmargin.data.rows import as_rows
from maxmargin.errors import ModelFormatError
from maxmargin.interop.native_models import Model, kernel_word
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import ONE_CLASS, LinearModel
from maxmargin.typing import FloatMatrix, IntVector

MACHINES = {
    "SVC": "c_svc",
    "NuSVC": "nu_svc",
    "SVR": "epsilon_svr",
    "NuSVR": "nu_svr",
    "OneClassSVM": "one_class",
}
LINEAR_WORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "L2R_LR": ("LogisticRegression", {"dual": False}),
    "L2R_LR_DUAL": ("LogisticRegression", {"dual": True}),
    "L1R_LR": ("LogisticRegression", {"penalty": "l1"}),
    "L2R_L2LOSS_SVC": ("LinearSVC", {"dual": False}),
    "L2R_L2LOSS_SVC_DUAL": ("LinearSVC", {"dual": True}),
    "L2R_L1LOSS_SVC_DUAL": ("LinearSVC", {"loss": "hinge"}),
    "L1R_L2LOSS_SVC": ("LinearSVC", {"penalty": "l1"}),
    "MCSVM_CS": ("LinearSVC", {"multi_class": "crammer_singer"}),
    "L2R_L2LOSS_SVR": (
        "LinearSVR",
        {"loss": "squared_epsilon_insensitive", "dual": False},
    ),
    "L2R_L2LOSS_SVR_DUAL": (
        "LinearSVR",
        {"loss": "squared_epsilon_insensitive", "dual": True},
    ),
    "L2R_L1LOSS_SVR_DUAL": ("LinearSVR", {"loss": "epsilon_insensitive"}),
    ONE_CLASS: ("LinearOneClassSVM", {}),
}
NAMES = {*MACHINES, *(name for name, _ in LINEAR_WORDS.values())}
LOSSES = {
    ("hinge", "l2"): "L2R_L1LOSS_SVC_DUAL",
    ("squared_hinge", "l2"): "L2R_L2LOSS_SVC",
    ("squared_hinge", "l1"): "L1R_L2LOSS_SVC",
    ("epsilon_insensitive", "l2"): "L2R_L1LOSS_SVR_DUAL",
    ("squared_epsilon_insensitive", "l2"): "L2R_L2LOSS_SVR",
}


def name_of(estimator: Any) -> str:
    """Which of our estimators it is, or is derived from."""
    for kind in type(estimator).__mro__:
        if kind.__name__ in NAMES and kind is class_named(kind.__name__):
            return kind.__name__
    raise ModelFormatError(f"{type(estimator).__name__} is no estimator of maxmargin.")


def class_named(name: str) -> Any:
    """One of our estimators."""
    return getattr(maxmargin, name)


# From estimators to models.


def as_model(estimator: Any) -> Model:
    """The model that a fitted estimator holds."""
    check_is_fitted(estimator)
    name = name_of(estimator)
    if name in MACHINES:
        return _kernel_model(estimator, MACHINES[name])
    return _linear_model(estimator, name)


def _kernel_model(estimator: Any, machine: str) -> KernelModel:
    if callable(estimator._fitted_kernel):
        raise ModelFormatError(
            "the kernel is a Python function, which no file can hold: compute the "
            "kernel matrix yourself and fit with kernel='precomputed'."
        )
    kernel = estimator._kernel
    classes = getattr(estimator, "classes_", None)
    return KernelModel(
        machine=machine,
        kernel=kernel,
        support=None if kernel is None else estimator.support_vectors_,
        support_index=getattr(estimator, "support_", None),
        dual_coef=estimator._dense_dual_coef(),
        intercept=estimator._intercept_,
        classes=classes,
        n_support=None if classes is None else estimator._n_support,
        prob_a=getattr(estimator, "probA_", None),
        prob_b=getattr(estimator, "probB_", None),
        prob_power=float(getattr(estimator, "prob_power_", 1.0)),
        density_marks=getattr(estimator, "prob_density_marks_", None),
        n_features=int(estimator.n_features_in_),
    )


def _linear_model(estimator: Any, name: str) -> LinearModel:
    coef = estimator.coef_
    coef = coef.toarray() if sp.issparse(coef) else np.asarray(coef, dtype=np.float64)
    coef = np.atleast_2d(coef)
    if name == "LinearOneClassSVM":
        rho = float(np.asarray(estimator.offset_).ravel()[0])
        return LinearModel(ONE_CLASS, None, coef, rho=rho)
    bias, weight = -1.0, None
    solver, classes = _solver_of(estimator, name), getattr(estimator, "classes_", None)
    intercept = np.broadcast_to(np.asarray(estimator.intercept_), len(coef))
    if estimator.fit_intercept:
        bias = float(estimator.intercept_scaling)
        weight = intercept / bias
    if classes is not None and len(classes) == 2:
        classes = classes[::-1]  # one hyperplane is positive for the first
        if solver == "MCSVM_CS":
            coef = np.vstack((0.5 * coef, -0.5 * coef))
            weight = None if weight is None else 0.5 * np.append(weight, -weight)
    return LinearModel(solver, classes, coef, bias, weight)


def _solver_of(estimator: Any, name: str) -> str:
    """LIBLINEAR's name for what was solved; of two, the dual form if asked for."""
    told = estimator.get_params(deep=False)
    if told.get("multi_class") == "crammer_singer":
        return "MCSVM_CS"
    penalty = estimator._words().penalty
    if name == "LogisticRegression":
        choice = "L1R_LR" if penalty == "l1" else "L2R_LR"
    else:
        choice = LOSSES[told["loss"], penalty]
    has_both = penalty == "l2" and not choice.endswith("_DUAL")
    return f"{choice}_DUAL" if has_both and told["dual"] is True else choice


# From models to estimators.


def as_estimator(model: Model) -> Any:
    """A fitted estimator, as far as a model knows: it can predict, and be fitted anew.

    What only a fit knows is not there: C, nu and epsilon are the constructor's, and
    the attributes of the certificate are missing.
    """
    if model.classes is not None and len(model.classes) < 2:
        raise ModelFormatError(
            "the model knows one class only, and an estimator needs two: read it as "
            "a model, with maxmargin.interop."
        )
    if isinstance(model, LinearModel):
        name, settings = LINEAR_WORDS[model.solver]
        settings = dict(settings)
        if name != "LinearOneClassSVM":
            settings |= {"fit_intercept": model.bias > 0.0}
            if model.bias > 0.0:
                settings |= {"intercept_scaling": model.bias}
        estimator = class_named(name)(**settings)
        fill_linear(estimator, model)
        return estimator
    name = next(name for name, word in MACHINES.items() if word == model.machine)
    settings = {"kernel": kernel_word(model.kernel)}
    if model.has_probabilities:
        settings["probability"] = True
    if model.kernel is not None:
        settings |= model.kernel._asdict()
    estimator = class_named(name)(**settings)
    fill_kernel(estimator, model)
    return estimator


def fill_kernel(estimator: Any, model: KernelModel) -> None:
    """Set the attributes that make a fitted kernel machine."""
    model = _sorted_classes(model)
    dual_coef: Any = np.ascontiguousarray(model.dual_coef)
    if sp.issparse(model.support):
        is_array = isinstance(model.support, sp.sparray)
        dual_coef = (sp.csr_array if is_array else sp.csr_matrix)(dual_coef)
    counts = [model.n_vectors] if model.n_support is None else model.n_support
    fitted: dict[str, Any] = {
        "support_vectors_": np.empty((0, 0)) if model.kernel is None else model.support,
        "_n_support": np.asarray(counts, dtype=np.int32),
        "_dual_coef_": dual_coef,
        "_intercept_": model.intercept,
        "_kernel": model.kernel,
        "_sparse": sp.issparse(model.support),
        "_fitted_kernel": kernel_word(model.kernel),
        "_gamma": getattr(model.kernel, "gamma", 0.0),
        "_training": None,
        "n_features_in_": int(model.n_features),
    }
    optional = {
        "classes_": model.classes,
        "support_": model.support_index,
        "probA_": model.prob_a,
        "probB_": model.prob_b,
        "prob_power_": model.prob_power if model.prob_b is not None else None,
        "prob_density_marks_": model.density_marks,
    }
    fitted |= {name: value for name, value in optional.items() if value is not None}
    if model.machine == "one_class":
        fitted["_largest"] = _largest(model)
    estimator.__dict__.update(estimator._with_public_signs(fitted))


def _largest(model: KernelModel) -> float:
    """The largest kernel value of a support vector with itself; 0 if unknown."""
    if model.kernel is None or not model.n_vectors:
        return 0.0
    return float(np.abs(model.kernel.of_self(as_rows(model.support))).max())


def _sorted_classes(model: KernelModel) -> KernelModel:
    """The same model with its classes in order."""
    if model.classes is None:
        return model
    order = np.argsort(model.classes, kind="stable")
    if (order == np.arange(len(order))).all():
        return model
    return reordered(model, order)


def reordered(model: KernelModel, order: IntVector) -> KernelModel:
    """Classes in another order: pairs that turn round change their sign."""
    assert model.n_support is not None
    k, n_pairs = len(order), len(model.intercept)
    ends = np.concatenate(([0], np.cumsum(model.n_support)))
    rows = np.concatenate([np.arange(ends[a], ends[a + 1]) for a in order])
    number = {pair: p for p, pair in enumerate(pairs_of(k))}
    source, sign = np.empty(n_pairs, dtype=np.intp), np.empty(n_pairs)
    for p, (i, j) in enumerate(pairs_of(k)):
        a, b = int(order[i]), int(order[j])
        source[p] = number[min(a, b), max(a, b)]
        sign[p] = 1.0 if a < b else -1.0

    def pick(values: Any) -> Any:
        return None if values is None else values[source]

    index, support = model.support_index, model.support
    flipped = None if model.prob_b is None else model.prob_b[source] * sign
    return KernelModel(
        machine=model.machine,
        kernel=model.kernel,
        support=None if support is None else support[rows],
        support_index=None if index is None else index[rows],
        dual_coef=_reordered_coef(model, order, ends),
        intercept=0.0 + model.intercept[source] * sign,
        classes=model.classes[order],
        n_support=model.n_support[order],
        prob_a=pick(model.prob_a),
        prob_b=flipped,
        prob_power=model.prob_power,
        n_features=model.n_features,
        index_base=model.index_base,
    )


def _reordered_coef(
    model: KernelModel, order: IntVector, ends: IntVector
) -> FloatMatrix:
    blocks = []
    for i, a in enumerate(order.tolist()):
        old = model.dual_coef[:, ends[a] : ends[a + 1]]
        new = np.empty_like(old)
        for j, b in enumerate(order.tolist()):
            if a == b:
                continue
            sign = 1.0 if (a < b) == (i < j) else -1.0
            new[j - 1 if j > i else j] = sign * old[b - 1 if b > a else b]
        blocks.append(new)
    return np.hstack(blocks)


def fill_linear(estimator: Any, model: LinearModel) -> None:
    """Set the attributes that make a fitted linear machine."""
    coef, intercept = model.coef, model.intercept
    fitted: dict[str, Any] = {"n_features_in_": model.n_features}
    if model.classes is not None:
        order = np.argsort(model.classes, kind="stable")
        fitted["classes_"] = model.classes[order]
        if len(order) > 2:
            coef, intercept = coef[order], intercept[order]
        elif len(coef) == 2:
            coef = coef[order[1:]] - coef[order[:1]]
            intercept = intercept[order[1:]] - intercept[order[:1]]
        elif order[0] == 0:  # the hyperplane is positive for the smaller label
            coef, intercept = 0.0 - coef, 0.0 - intercept
    elif model.is_regressor:
        coef = coef[0]
    else:
        fitted["offset_"] = 0.0 - intercept
    has_intercept = getattr(estimator, "fit_intercept", True)
    fitted["intercept_"] = intercept if has_intercept else 0.0
    fitted["coef_"] = np.ascontiguousarray(coef)
    estimator.__dict__.update(fitted)
