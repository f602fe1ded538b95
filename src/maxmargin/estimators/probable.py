"""How likely is each class? What classifiers that calibrate themselves share."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine
from maxmargin.models.calibration import Sigmoid
from maxmargin.solvers import Status
from maxmargin.typing import FloatMatrix


def _has_probability(estimator: Any) -> bool:
    if not estimator._wants_probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class Probable(BaseMachine):
    """Classifiers with sigmoids; subclasses say what these make of samples."""

    @available_if(_has_probability)
    def predict_proba(self, X):
        """How likely each class is, shape (n_samples, n_classes), of `classes_`.

        Sigmoids of decision values, fitted to samples held out. Unless predict_by is
        "decision", the likeliest class is the one that `predict` gives.
        """
        self._require_sigmoids()
        return self._shares(X)

    @available_if(_has_probability)
    def predict_log_proba(self, X):
        """The logarithm of predict_proba."""
        return np.log(self.predict_proba(X))

    def _shares(self, X: Any) -> FloatMatrix:
        raise NotImplementedError

    def _require_sigmoids(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "probA_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )

    def _follows_probability(self) -> bool:
        """Whether labels are those of the largest probability."""
        if self.predict_by == "auto":
            return self._wants_probability and hasattr(self, "probA_")
        return self.predict_by == "probability"

    def _check_calibration(self) -> None:
        """Refuse words that contradict one another, before any work."""
        if self.predict_by == "probability" and not self._wants_probability:
            raise InvalidInput(
                "predict_by='probability' needs probability=True: set it, or leave "
                "predict_by at 'auto'."
            )

    def _random(self) -> np.random.RandomState:
        """What makes the folds; without a random_state always the same."""
        seed = 0 if self.random_state is None else self.random_state
        return check_random_state(seed)


def as_attributes(sigmoids: list[Sigmoid]) -> dict[str, Any]:
    """The fitted sigmoids, one per problem; nothing if there are none.

    probA_ and probB_ are LIBSVM's names: 1 / (1 + exp(probA_ * decision + probB_)).
    The power is 1 unless somebody finds another.
    """
    if not sigmoids:
        return {}
    return {
        "probA_": np.array([sigmoid.slope for sigmoid in sigmoids]),
        "probB_": np.array([sigmoid.offset for sigmoid in sigmoids]),
        "prob_power_": 1.0,
    }


def fold_notes(ends: Iterable[Status]) -> list[str]:
    """What to warn of where folds ended before they were solved."""
    worst = max(ends, key=lambda status: status.rank, default=Status.CONVERGED)
    if worst in (Status.CONVERGED, Status.PRECISION_LIMIT):
        return []
    return [
        "The folds of probability=True were left before they were solved, so that "
        f"probabilities are less exact. {worst.value}"
    ]
