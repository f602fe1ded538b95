"""Linear classification and regression without kernels: what LIBLINEAR does."""

from typing import Any

from sklearn.base import RegressorMixin

from maxmargin.estimators.document import (
    LINEAR_CLASSIFIER_ATTRIBUTES,
    LINEAR_REGRESSOR_ATTRIBUTES,
    documented_linear,
)
from maxmargin.estimators.formulation import Words
from maxmargin.estimators.linear_base import LinearMachine
from maxmargin.estimators.linear_classifier import LinearClassifier
from maxmargin.estimators.linear_probability import CalibratedPlanes
from maxmargin.estimators.parameters import LINEAR_SVC_RULES, LINEAR_SVR_RULES
from maxmargin.estimators.targets import Numbered
from maxmargin.models.linear import Hyperplanes


@documented_linear(**LINEAR_CLASSIFIER_ATTRIBUTES)
class LinearSVC(CalibratedPlanes, LinearClassifier):
    r"""Linear support vector classification.

    .. math:: \min_{w, b} \tfrac12 \|w\|_2^2 + \tfrac12 b'^2
       + C \sum_i s_i \max(0, 1 - y_i (w^\top x_i + b))^p, \quad b = \sigma b'

    with p = 2 for the squared hinge, 1 for the hinge, :math:`s_i` the class weight
    times the sample weight, and :math:`\sigma` the `intercept_scaling`. penalty='l1'
    puts :math:`\|w\|_1 + |b'|` in place of the squares. More than two classes are one
    machine each, against the rest; or, with multi_class='crammer_singer', together:

    .. math:: \min_W \tfrac12 \|W\|_2^2
       + C \sum_i s_i \max_{m \ne y_i} \max(0, 1 + (w_m - w_{y_i})^\top x_i)

    A fit costs a small number of passes over X; memory beside X is O(n_samples +
    n_features), with up to n_features² values where features are few.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> machine = LinearSVC().fit([[0, 0], [0, 1], [2, 2], [2, 3]], [0, 0, 1, 1])
    >>> machine.predict([[2, 2.5]])
    array([1])
    """

    _rules = LINEAR_SVC_RULES

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        solver="auto",
        penalize_intercept=True,
        probability=False,
        predict_by="auto",
        warm_start=False,
        time_limit=None,
        callback=None,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.probability = probability
        self.predict_by = predict_by
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.callback = callback
        self.n_jobs = n_jobs

    def _words(self) -> Words:
        is_joint = self.multi_class == "crammer_singer"
        return self._told(self.loss, self.penalty)._replace(is_joint=is_joint)


@documented_linear(**LINEAR_REGRESSOR_ATTRIBUTES)
class LinearSVR(RegressorMixin, Numbered, LinearMachine):
    r"""Linear support vector regression.

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \tfrac12 b'^2
       + C \sum_i s_i \max(0, |z_i - w^\top x_i - b| - \varepsilon)^p,
       \quad b = \sigma b'

    with p = 1, or 2 for the squared loss, :math:`s_i` the sample weight, and
    :math:`\sigma` the `intercept_scaling`.

    Examples
    --------
    >>> from maxmargin import LinearSVR
    >>> machine = LinearSVR(C=100.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(float(machine.predict([[3.0]])[0]), 2)
    7.0
    """

    _rules = LINEAR_SVR_RULES

    def __init__(
        self,
        *,
        epsilon=0.0,
        tol=1e-4,
        C=1.0,
        loss="epsilon_insensitive",
        fit_intercept=True,
        intercept_scaling=1.0,
        dual="auto",
        verbose=0,
        random_state=None,
        max_iter=1000,
        solver="auto",
        penalize_intercept=True,
        warm_start=False,
        time_limit=None,
        callback=None,
        n_jobs=None,
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.callback = callback
        self.n_jobs = n_jobs

    def predict(self, X):
        """The fitted function at these samples, shape (n_samples,)."""
        return self._decisions(X)[:, 0]

    def _words(self) -> Words:
        return self._told(self.loss)

    def _as_attributes(self, planes: Hyperplanes, shape: Any) -> dict[str, Any]:
        fitted = super()._as_attributes(planes, shape)
        return fitted | {"coef_": planes.coef[0]}
