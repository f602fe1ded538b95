"""How do classifiers decide between classes? One machine per pair, and votes."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from maxmargin.data.labels import Labels, pairs_of
from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import evidence
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.kernel import KernelMachine
from maxmargin.estimators.probable import Probable, as_attributes, fold_notes
from maxmargin.estimators.targets import Labelled
from maxmargin.kernels.gram import Gram
from maxmargin.models import fit_pairs, vote
from maxmargin.models.calibration import CalibratedPair, calibrate_pair
from maxmargin.models.held_out import Solved, State, stratified_folds
from maxmargin.models.machine import Fit
from maxmargin.models.multiclass import (
    PairFit,
    PairMachines,
    class_parts,
    in_pair,
    pair_decisions,
    share_between_pairs,
)
from maxmargin.models.probability import couple, pair_probabilities, sharpen
from maxmargin.models.sharpness import calibrate_power
from maxmargin.solvers import Status
from maxmargin.typing import FloatMatrix, FloatVector, IntVector


class PairwiseClassifier(Probable, ClassifierMixin, Labelled, KernelMachine):
    """What SVC and NuSVC share; they differ in the problem of a pair."""

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
        """The class of each sample; `predict_by` says what decides.

        By decision values: most votes of the pairs, or largest decision (break_ties).
        By probability: the class that `predict_proba` finds likeliest.
        """
        check_is_fitted(self)
        if self._follows_probability():
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InvalidInput(
                "break_ties must be False when decision_function_shape is 'ovo'"
            )
        if self.break_ties and len(self.classes_) > 2:
            return self.classes_[self.decision_function(X).argmax(axis=1)]
        return self.classes_[vote(self._decisions(X), len(self.classes_))]

    def _shares(self, X: Any) -> FloatMatrix:
        """Probabilities of the pairs, coupled (Wu, Lin & Weng, 2004) and sharpened."""
        pairwise = pair_probabilities(self._decisions(X), self.probA_, self.probB_)
        return sharpen(couple(pairwise, len(self.classes_)), self.prob_power_)

    def _decisions(self, X: Any) -> FloatMatrix:
        X = self._check_for_predict(X)
        parts = class_parts(self._dense_dual_coef(), self._n_support)
        return pair_decisions(self._kernel_sums(X, parts), self._intercept_)

    def _solve(self, gram: Gram, targets: Any, training: TrainingSet) -> dict[str, Any]:
        labels, weight = targets.labels, targets.weight
        shape = (*training.shape, labels.classes.tolist(), labels.code.tobytes())
        start, notes = self._start(shape)
        options = self._options(training, len(labels.pairs()))
        grams, options = share_between_pairs(gram, labels, options)
        folds = self._folds(labels)
        n_threads = self._n_threads()
        told: dict[int, CalibratedPair] = {}

        def calibrate(
            solved: Solved, y: FloatVector, rows: IntVector, number: int
        ) -> None:
            assert folds is not None
            copies, held_out = training.weight[rows], folds[number]
            if held_out is not None:
                held_out = in_pair(held_out, rows)
            told[number] = calibrate_pair(solved, y, held_out, copies, n_threads)

        finish = None if folds is None else calibrate
        fit = PairFit(weight, self._stated, options, finish)
        pairs = fit_pairs(grams, labels, fit, n_threads, start)
        names = labels.classes.tolist()
        notes += [
            f"The margin between classes {names[i]!r} and "
            f"{names[j]!r} vanishes, so that their machine decides nothing: "
            "raise nu, choose a kernel that can tell them apart, or use SVC."
            for (i, j), has_vanished in zip(
                labels.pairs(), pairs.fitted.has_vanished, strict=True
            )
            if has_vanished
        ]
        calibrated = [told[number] for number in sorted(told)]
        notes += fold_notes([pair.status for pair in calibrated])
        fitted = _as_attributes(pairs, training, shape)
        fitted |= as_attributes([pair.sigmoid for pair in calibrated])
        if len(calibrated) > 1:
            power = calibrate_power(gram, labels, pairs, calibrated, training.weight)
            fitted["prob_power_"] = power
        return fitted | targets.attributes | {"_notes": notes}

    def _stated(self, y: FloatVector, end: IntVector) -> tuple[State, Fit]:
        """How the problems of pairs are stated from weights, and how they are fitted.

        y = ±1 of one pair or of several, which end there.
        """
        raise NotImplementedError

    def _folds(self, labels: Labels) -> list[list[IntVector] | None] | None:
        """What each pair holds out; None: no probabilities, or one sample at a time."""
        if not self._wants_probability:
            return None
        pairs = labels.pairs()
        if self.calibration == "leave_one_out":
            return [None] * len(pairs)
        random = self._random()
        codes = [labels.code[(labels.code == i) | (labels.code == j)] for i, j in pairs]
        return [stratified_folds(code, random) for code in codes]

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
    fitted = pairs.fitted
    return {
        **evidence(pairs.status, fitted.objective, fitted.gap, fitted.violation),
        "support_": training.kept[pairs.support].astype(np.int32),
        "_n_support": pairs.n_support.astype(np.int32),
        "_dual_coef_": pairs.dual_coef,
        "_intercept_": fitted.intercept,
        "fit_status_": int(pairs.status is not Status.CONVERGED),
        "n_iter_": fitted.n_iter.astype(np.int32),
        "_warm": (shape, fitted.beta),
    }
