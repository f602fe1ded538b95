"""How can a scorer ask a machine that was never fitted? It gets the answers there are.

Scorers of scikit-learn ask an estimator for predictions on samples held out. Those are
known when a cell of a grid has been solved; there is nothing to compute.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import _ovr_decision_function

from maxmargin.models import vote
from maxmargin.selection.lines import Answer
from maxmargin.typing import FloatVector


class HeardClassifier(ClassifierMixin, BaseEstimator):
    """Decisions of one fold, as SVC would give them."""

    def __init__(self, answer: Answer, classes: np.ndarray, words: Any) -> None:
        self.answer, self.words = answer, words
        self.classes_ = classes[answer.present]

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X=None):
        """The classes of the samples held out."""
        n_classes = len(self.classes_)
        if self.words.break_ties and n_classes > 2:
            return self.classes_[self.decision_function(X).argmax(axis=1)]
        return self.classes_[vote(self.answer.decisions, n_classes)]

    def decision_function(self, X=None):
        """How far they are on which side."""
        decisions, n_classes = self.answer.decisions, len(self.classes_)
        if n_classes == 2:
            return -decisions[:, 0]
        if self.words.decision_function_shape == "ovr":
            return _ovr_decision_function(decisions < 0, -decisions, n_classes)
        return decisions


class HeardRegressor(RegressorMixin, BaseEstimator):
    """Predictions of one fold."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X=None) -> FloatVector:
        """The numbers predicted for the samples held out."""
        return self.answer.decisions[:, 0]


def determination(
    y: FloatVector, predicted: FloatVector, weight: FloatVector | None = None
) -> float:
    """R²; of fewer than two samples, nan."""
    if len(y) < 2:
        return float("nan")
    lost = float(np.average(np.square(y - predicted), weights=weight))
    middle = np.average(y, weights=weight)
    spread = float(np.average(np.square(y - middle), weights=weight))
    if spread == 0.0:
        return 1.0 if lost == 0.0 else 0.0
    return 1.0 - lost / spread
