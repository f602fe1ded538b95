"""How do classifiers decide between classes? One machine per pair, and votes."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import (
    _ovr_decision_function,
    check_classification_targets,
)
from sklearn.utils.validation import check_is_fitted, column_or_1d

from maxmargin.data.labels import Labels, encode_labels, pairs_of
from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import KernelMachine
from maxmargin.estimators.inputs import TrainingSet, require_targets
from maxmargin.kernels.gram import Gram
from maxmargin.models import Machine, fit_pairs, vote
from maxmargin.models.multiclass import PairMachines, class_parts, pair_decisions
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatMatrix, FloatVector, IntVector


def _has_probability(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class PairwiseClassifier(ClassifierMixin, KernelMachine):
    """What SVC and NuSVC share; they differ in the problem of a pair."""

    def fit(self, X, y, sample_weight=None):
        """Fit the classifier; the class docstring states its problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; the kernel between all of them for kernel="precomputed", whatever
            the function understands for a callable kernel.
        y : array-like of shape (n_samples,)
            Class labels of any one kind.
        sample_weight : array-like of shape (n_samples,), default None
            Weight k counts as k copies of a sample; zero or less leaves it out.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def decision_function(self, X):
        """How far each sample is on which side.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, positive for classes_[1]; else
        (n_samples, n_classes) for decision_function_shape="ovr", or one column per
        pair of classes for "ovo", positive for the first class of the pair.
        """
        decisions = self._decisions(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return -decisions[:, 0]
        if self.decision_function_shape == "ovr":
            return _ovr_decision_function(decisions < 0, -decisions, n_classes)
        return decisions

    def predict(self, X):
        """The class of each sample: most votes, or largest decision (break_ties)."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InvalidInput(
                "break_ties must be False when decision_function_shape is 'ovo'"
            )
        if self.break_ties and len(self.classes_) > 2:
            return self.classes_[self.decision_function(X).argmax(axis=1)]
        return self.classes_[vote(self._decisions(X), len(self.classes_))]

    @available_if(_has_probability)
    def predict_proba(self, X):
        """Not there yet: fit refuses probability=True."""
        raise NotFittedError(
            "predict_proba is not available when fitted with probability=False"
        )

    def _decisions(self, X: Any) -> FloatMatrix:
        X = self._check_for_predict(X)
        parts = class_parts(self._dense_dual_coef(), self._n_support)
        return pair_decisions(self._kernel_sums(X, parts), self._intercept_)

    def _check_targets(
        self, y: Any, training: TrainingSet
    ) -> tuple[Labels, FloatVector, dict[str, Any]]:
        """Labels of the samples that count, their weights, and what to keep of them."""
        require_targets(self, y)
        y = column_or_1d(y, warn=True)
        every = encode_labels(y)
        check_classification_targets(y)
        if every.n_classes < 2:
            raise InvalidInput(
                "The number of classes has to be greater than one; got 1 class"
            )
        labels = every if training.is_whole else encode_labels(y[training.kept])
        if labels.n_classes < 2:
            self._refuse_single_class()
        per_class = compute_class_weight(
            self.class_weight,
            classes=labels.classes,
            y=y[training.kept],
            sample_weight=training.weight,
        )
        weight = training.weight * per_class[labels.code]
        if not (np.isfinite(per_class).all() and (per_class > 0).all()):
            raise InvalidInput(
                f"Class weights must be finite and above 0, got {self.class_weight!r}; "
                "leave a class out by dropping its samples."
            )
        kept = {"classes_": labels.classes, "class_weight_": per_class}
        return labels, weight, kept

    def _refuse_single_class(self) -> None:
        raise InvalidInput(
            "Invalid input - all samples with positive weights belong to the same "
            "class: at least two classes must have positive weights."
        )

    def _solve(self, gram: Gram, targets: Any, training: TrainingSet) -> dict[str, Any]:
        labels, weight, kept = targets
        shape = (*training.shape, labels.classes.tolist(), labels.code.tobytes())
        start = self._start(shape)
        options = self._options(training, len(labels.pairs()))

        def fit_pair(
            gram: Gram, y: FloatVector, rows: IntVector, number: int
        ) -> Machine:
            first = None if start is None else start[number]
            return self._fit_pair(gram, y, weight[rows], options, first)

        pairs = fit_pairs(gram, labels, fit_pair, self._n_threads())
        names = labels.classes.tolist()
        kept["_notes"] = [
            f"The margin between classes {names[i]!r} and "
            f"{names[j]!r} vanishes, so that their machine decides nothing: "
            "raise nu, choose a kernel that can tell them apart, or use SVC."
            for (i, j), machine in zip(labels.pairs(), pairs.machines, strict=True)
            if machine.has_vanished and machine.solution.status.rank <= 1
        ]
        return kept | _as_attributes(pairs, training, shape)

    def _fit_pair(
        self,
        gram: Gram,
        y: FloatVector,
        weight: FloatVector,
        options: Options,
        start: FloatVector | None,
    ) -> Machine:
        raise NotImplementedError

    def _with_public_signs(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """Two classes: positive means classes_[1], the other way round from LIBSVM."""
        fitted = super()._with_public_signs(fitted)
        if len(fitted["classes_"]) == 2:
            fitted["dual_coef_"] = -fitted["_dual_coef_"]
            fitted["intercept_"] = -fitted["_intercept_"]
        return fitted

    def _linear_weights(self) -> Any:
        """One row per pair: what its two classes contribute."""
        if len(self.classes_) == 2:
            return safe_sparse_dot(self.dual_coef_, self.support_vectors_)
        ends = np.concatenate(([0], np.cumsum(self._n_support)))
        by_class = [
            safe_sparse_dot(self._dual_coef_[:, a:b], self.support_vectors_[a:b])
            for a, b in pairwise(ends)
        ]
        rows = [
            by_class[i][[j - 1]] + by_class[j][[i]]
            for i, j in pairs_of(len(self.classes_))
        ]
        return sp.vstack(rows).tocsr() if self._sparse else np.vstack(rows)


def _as_attributes(
    pairs: PairMachines, training: TrainingSet, shape: tuple[Any, ...]
) -> dict[str, Any]:
    machines = pairs.machines
    solutions = [machine.solution for machine in machines]
    worst = max((solution.status for solution in solutions), key=lambda s: s.rank)
    values: dict[str, Any] = {
        "objective_": np.array([machine.objective for machine in machines]),
        "dual_gap_": np.array([machine.gap for machine in machines]),
        "kkt_violation_": np.array([solution.violation for solution in solutions]),
    }
    if len(machines) == 1:
        values = {name: float(value[0]) for name, value in values.items()}
    return values | {
        "support_": training.kept[pairs.support].astype(np.int32),
        "_n_support": pairs.n_support.astype(np.int32),
        "_dual_coef_": pairs.dual_coef,
        "_intercept_": pairs.intercept,
        "status_": worst,
        "fit_status_": int(worst is not Status.CONVERGED),
        "n_iter_": np.array([s.n_iter for s in solutions], dtype=np.int32),
        "_warm": (shape, [solution.beta for solution in solutions]),
    }
