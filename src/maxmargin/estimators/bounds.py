"""From which C on does an L1 penalty leave any weight at all?"""

import numpy as np
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array, check_consistent_length

from maxmargin.errors import InvalidInput
from maxmargin.estimators.parameters import L1_MIN_C_RULES, check_parameter

STEEPEST = {"squared_hinge": 2.0, "log": 0.5}  # slope of the loss at 0, for C = 1


def l1_min_c(X, y, *, loss="squared_hinge", fit_intercept=True, intercept_scaling=1.0):
    r"""The largest C for which an L1 penalty makes every weight zero.

    At w = 0 the loss falls along feature j with slope
    :math:`C \, \ell'(0) \, |\sum_i y_i x_{ij}|`; while that is at most 1, the penalty
    wins. Valid without class weights and sample weights.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Class labels.
    loss : {'squared_hinge', 'log'}, default 'squared_hinge'
        That of LinearSVC, or of LogisticRegression.
    fit_intercept : bool, default True
        As for fit: the intercept is a weight too.
    intercept_scaling : float > 0, default 1.0
        As for fit.

    Returns
    -------
    float
        Above it, some weight or the intercept is not zero.
    """
    given = {"fit_intercept": fit_intercept, "intercept_scaling": intercept_scaling}
    for name, value in (given | {"loss": loss}).items():
        check_parameter("l1_min_c", name, value, L1_MIN_C_RULES[name])
    X = check_array(X, accept_sparse="csc")
    check_consistent_length(X, y)
    signs = LabelBinarizer(neg_label=-1).fit_transform(y)
    pull = float(np.abs(safe_sparse_dot(signs.T, X)).max())
    if fit_intercept:
        pull = max(pull, intercept_scaling * float(np.abs(signs.sum(axis=0)).max()))
    if pull == 0.0:
        raise InvalidInput(
            "Ill-posed l1_min_c calculation: l1 will always select zero coefficients "
            "for this data"
        )
    return 1.0 / (STEEPEST[loss] * pull)
