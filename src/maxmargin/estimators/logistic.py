"""Logistic regression: classes with probabilities."""

import numpy as np
from scipy.special import expit, logsumexp

from maxmargin.estimators.document import (
    LINEAR_CLASSIFIER_ATTRIBUTES,
    documented_linear,
)
from maxmargin.estimators.formulation import Words
from maxmargin.estimators.linear_classifier import LinearClassifier
from maxmargin.estimators.parameters import LOGISTIC_RULES, LOGISTIC_SOLVERS


@documented_linear(**LINEAR_CLASSIFIER_ATTRIBUTES)
class LogisticRegression(LinearClassifier):
    r"""Logistic regression with an L2 or L1 penalty.

    .. math:: \min_{w, b} \tfrac12 \|w\|_2^2 + \tfrac12 b'^2
       + C \sum_i s_i \log(1 + \exp(-y_i (w^\top x_i + b))), \quad b = \sigma b'

    with :math:`s_i` the class weight times the sample weight and :math:`\sigma` the
    `intercept_scaling`. penalty='l1' puts :math:`\|w\|_1 + |b'|` in place of the
    squares. More than two classes are one machine each, against the rest.

    Words of scikit-learn's LogisticRegression are taken: penalty='deprecated' leaves
    the choice to `l1_ratio`, and its solvers stand for solver='auto'.

    Examples
    --------
    >>> from maxmargin import LogisticRegression
    >>> machine = LogisticRegression().fit([[-1], [0], [1], [2]], [0, 0, 1, 1])
    >>> machine.predict_proba([[0.5]]).round(1)
    array([[0.5, 0.5]])
    """

    _rules = LOGISTIC_RULES

    def __init__(
        self,
        penalty="l2",
        *,
        C=1.0,
        dual="auto",
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        solver="auto",
        l1_ratio=0.0,
        penalize_intercept=True,
        warm_start=False,
        time_limit=None,
        callback=None,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.C = C
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.l1_ratio = l1_ratio
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.callback = callback
        self.n_jobs = n_jobs

    def predict_proba(self, X):
        """How likely each class is, shape (n_samples, n_classes).

        The logistic function of the decision values; of more than two, divided by
        their sum, as in LIBLINEAR.
        """
        decisions = self.decision_function(X)
        if decisions.ndim == 1:
            return np.column_stack((expit(-decisions), expit(decisions)))
        return np.exp(_log_shares(decisions))

    def predict_log_proba(self, X):
        """The logarithm of predict_proba, finite where that rounds to zero."""
        decisions = self.decision_function(X)
        if decisions.ndim == 1:
            decisions = np.column_stack((-decisions, decisions))
            return _log_logistic(decisions)
        return _log_shares(decisions)

    def _words(self) -> Words:
        is_l1 = self.penalty == "l1" or self.l1_ratio == 1
        words = self._told("logistic_regression", "l1" if is_l1 else "l2")
        is_elsewhere = self.solver in LOGISTIC_SOLVERS
        return words._replace(solver="auto") if is_elsewhere else words


def _log_logistic(decisions):
    return -np.logaddexp(0.0, -decisions)


def _log_shares(decisions):
    """Logistic functions over their sum; finite where all of them round to zero."""
    logs = _log_logistic(decisions)
    return logs - logsumexp(logs, axis=1, keepdims=True)
