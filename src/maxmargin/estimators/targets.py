"""What should the samples become? Labels, numbers, or nothing in particular."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, column_or_1d

from maxmargin.data.labels import Labels, encode_labels
from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.typing import FloatVector

PLAIN_LABELS = (
    "biuUS"  # kinds of arrays that can be nothing else: bool, int, str, bytes
)


class ClassTargets(NamedTuple):
    """Labels of the samples that count."""

    labels: Labels
    weight: FloatVector  # class weight x sample weight
    per_class: FloatVector  # class weights

    @property
    def attributes(self) -> dict[str, Any]:
        """What a fitted classifier keeps of them."""
        return {"classes_": self.labels.classes, "class_weight_": self.per_class}


class Labelled(BaseMachine):
    """A classifier: y holds labels."""

    def _check_targets(self, y: Any, training: TrainingSet) -> ClassTargets:
        require_targets(self, y)
        y = as_vector(y)
        every = encode_labels(y)
        if y.dtype.kind not in PLAIN_LABELS:
            check_classification_targets(y)
        if every.n_classes < 2:
            raise InvalidInput(
                "The number of classes has to be greater than one; got 1 class"
            )
        labels = every if training.is_whole else encode_labels(y[training.kept])
        if labels.n_classes < 2:
            self._refuse_single_class()
        if self.class_weight is None:
            return ClassTargets(labels, training.weight, np.ones(labels.n_classes))
        per_class = compute_class_weight(
            known_weights(self.class_weight, every.classes, labels.classes),
            classes=labels.classes,
            y=y[training.kept],
            sample_weight=training.weight,
        )
        if not (np.isfinite(per_class).all() and (per_class > 0).all()):
            raise InvalidInput(
                f"Class weights must be finite and above 0, got {self.class_weight!r}; "
                "leave a class out by dropping its samples."
            )
        weight = training.weight * per_class[labels.code]
        return ClassTargets(labels, weight, per_class)

    def _refuse_single_class(self) -> None:
        raise InvalidInput(
            "Invalid input - all samples with positive weights belong to the same "
            "class: at least two classes must have positive weights."
        )


class Numbered(BaseMachine):
    """A regressor: y holds numbers."""

    def _check_targets(self, y: Any, training: TrainingSet) -> FloatVector:
        require_targets(self, y)
        y = _check_y(as_vector(y), y_numeric=True, estimator=self)
        targets: FloatVector = y.astype(np.float64)[training.kept]
        return targets


class Unlabelled(BaseMachine):
    """A detector of novelties: y holds nothing."""

    def fit(self, X, y=None, sample_weight=None):
        """Fit the machine to samples, which may be weighted.

        Parameters
        ----------
        X, sample_weight : as for the other machines
        y : ignored
            There for the protocol's sake.

        Returns
        -------
        self
        """
        return self._fit(X, None, sample_weight)

    def predict(self, X):
        """+1 for samples inside the boundary or on it, -1 for those outside."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def _check_targets(self, y: Any, training: TrainingSet) -> None:
        return None


def known_weights(class_weight: Any, every: np.ndarray, counted: np.ndarray) -> Any:
    """Class weights without those of labels that no sample has which counts.

    A label that y does not hold is a mistake where it stands in another's place.
    """
    if not isinstance(class_weight, dict):
        return class_weight
    held, kept = every.tolist(), counted.tolist()
    unknown = [label for label in class_weight if label not in held]
    missing = [label for label in kept if label not in class_weight]
    if unknown and missing:
        raise InvalidInput(
            f"class_weight must name labels of y, got {unknown}, which y does not "
            f"hold, and no weight of {missing}: correct the labels, or leave them out."
        )
    return {k: v for k, v in class_weight.items() if k in kept or k in unknown}


def as_vector(y: Any) -> np.ndarray:
    """y in one dimension, as scikit-learn reads it, which leaves a plain one alone."""
    is_plain = type(y) is np.ndarray and y.dtype.kind in PLAIN_LABELS + "f"
    if is_plain and y.ndim == 1 and y.flags.c_contiguous:
        return y
    vector: np.ndarray = column_or_1d(y, warn=True)
    return vector


def require_targets(estimator: Any, y: Any) -> None:
    """Say so where y was left out, in scikit-learn's words."""
    if y is None:
        raise InvalidInput(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None."
        )
