"""What is left of a linear machine once it is fitted, and how does that predict?

A value that knows neither estimators nor files. Words, layout and signs are
LIBLINEAR's: of two classes, one hyperplane is positive for the first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from maxmargin.errors import InvalidInput
from maxmargin.models.linear import linear_heights
from maxmargin.typing import FloatMatrix, FloatVector

CLASSIFIERS = (
    "L2R_LR",
    "L2R_L2LOSS_SVC_DUAL",
    "L2R_L2LOSS_SVC",
    "L2R_L1LOSS_SVC_DUAL",
    "MCSVM_CS",
    "L1R_L2LOSS_SVC",
    "L1R_LR",
    "L2R_LR_DUAL",
)
LOGISTIC = ("L2R_LR", "L1R_LR", "L2R_LR_DUAL")
REGRESSORS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
ONE_CLASS = "ONECLASS_SVM"
SOLVERS = (*CLASSIFIERS, *REGRESSORS, ONE_CLASS)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """decision(x) = <coef, x> + bias * bias_weight - rho, a column per hyperplane.

    Samples may have fewer columns than there are weights; further ones are ignored.
    """

    solver: str  # one of SOLVERS
    classes: Any  # in the model's own order; None: not a classifier
    coef: FloatMatrix  # (n_planes, n_features)
    bias: float = -1.0  # the value of the constant feature; below 0: there is none
    bias_weight: FloatVector | None = None  # (n_planes,), where there is a bias
    rho: float = 0.0  # of a one-class machine

    @property
    def is_classifier(self) -> bool:
        return self.solver in CLASSIFIERS

    @property
    def is_regressor(self) -> bool:
        return self.solver in REGRESSORS

    @property
    def is_logistic(self) -> bool:
        return self.solver in LOGISTIC

    @property
    def n_features(self) -> int:
        return int(self.coef.shape[1])

    @property
    def n_classes(self) -> int:
        """As LIBLINEAR counts: 2 for machines without classes."""
        return 2 if self.classes is None else len(self.classes)

    @property
    def intercept(self) -> FloatVector:
        """What the constant feature adds, less rho; one per hyperplane."""
        at_zero = np.full(len(self.coef), -self.rho if self.rho else 0.0)
        if self.bias >= 0.0 and self.bias_weight is not None:
            at_zero += self.bias * self.bias_weight
        return at_zero

    def decisions(self, X: Any, n_threads: int = 1) -> FloatMatrix:
        """One column per hyperplane."""
        X = self._fitting(X)
        coef = np.ascontiguousarray(self.coef[:, : X.shape[1]])
        with np.errstate(over="ignore", invalid="ignore"):  # looked at next
            out = linear_heights(X, coef, n_threads) + self.intercept
        if not np.isfinite(out).all():
            raise InvalidInput(
                "Decision values are not finite: X or the model holds values so large "
                "(or none at all) that sums overflow; scale the features."
            )
        return out

    def predict(self, X: Any, n_threads: int = 1) -> Any:
        """Labels; +1 or -1 of a one-class machine; numbers of a regressor."""
        return self.read(self.decisions(X, n_threads))

    def read(self, decisions: FloatMatrix) -> Any:
        """What these decision values predict."""
        if self.is_regressor:
            return decisions[:, 0].copy()
        if not self.is_classifier:
            return np.where(decisions[:, 0] > 0.0, 1, -1)
        if self.n_classes == 2:
            return self.classes[np.where(decisions[:, 0] > 0.0, 0, 1)]
        return self.classes[decisions.argmax(axis=1)]

    def probabilities(self, X: Any, n_threads: int = 1) -> FloatMatrix:
        """How likely each of `classes` is; logistic regression only."""
        return self.read_probabilities(self.decisions(X, n_threads))

    def read_probabilities(self, decisions: FloatMatrix) -> FloatMatrix:
        """What these decision values say about the probability of each class."""
        if not self.is_logistic:
            raise InvalidInput(
                f"{self.solver} tells no probabilities: only logistic regression does "
                f"({', '.join(LOGISTIC)})."
            )
        likely = expit(decisions)
        if self.n_classes == 2:
            return np.column_stack((likely, expit(-decisions)))
        shares: FloatMatrix = likely / likely.sum(axis=1, keepdims=True)
        return shares

    def _fitting(self, X: Any) -> Any:
        """X in a type that can be multiplied, without columns that nobody weighs."""
        is_sparse = sp.issparse(X)
        X = X.tocsr() if is_sparse else np.asarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if X.ndim != 2:
            raise InvalidInput(
                f"X must have two dimensions, a row per sample, got {X.ndim}; reshape "
                "a single sample with X.reshape(1, -1)."
            )
        if X.shape[1] > self.n_features:
            X = X[:, : self.n_features]
        return X if is_sparse else np.ascontiguousarray(X)
