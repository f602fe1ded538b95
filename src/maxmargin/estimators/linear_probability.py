"""How likely are classes to a linear machine? Sigmoids of its hyperplanes."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from maxmargin._threads import run_all
from maxmargin.data.design import Design
from maxmargin.data.labels import Labels
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.linear_classifier import LinearClassifier
from maxmargin.estimators.probable import Probable, as_attributes
from maxmargin.estimators.targets import ClassTargets
from maxmargin.models.calibration import fit_sigmoid
from maxmargin.models.held_out import stratified_folds
from maxmargin.models.linear import linear_heights
from maxmargin.models.probability import sharpen
from maxmargin.models.sharpness import ENOUGH, fit_power, spread
from maxmargin.solvers import Options
from maxmargin.typing import FloatMatrix, IntVector


class CalibratedPlanes(Probable, LinearClassifier):
    """A sigmoid per hyperplane, from five folds; of several, divided by their sum."""

    def predict(self, X):
        """The class of each sample; `predict_by` says what decides.

        The largest decision value, or the largest probability.
        """
        if self._follows_probability():
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return super().predict(X)

    def _shares(self, X: Any) -> FloatMatrix:
        likely = expit(-(self._decisions(X) * self.probA_ + self.probB_))
        if len(self.classes_) == 2:
            return np.column_stack((1.0 - likely[:, 0], likely[:, 0]))
        return sharpen(_of_one(likely), self.prob_power_)

    def _solve(self, design: Design, targets: Any, training: TrainingSet) -> Any:
        fitted = super()._solve(design, targets, training)
        if not self._wants_probability:
            return fitted
        options = replace(self._options(training), callback=None)
        folds = stratified_folds(targets.labels.code, self._random())
        tasks = [
            partial(self._held_out, fold, targets, training, options) for fold in folds
        ]
        decisions = np.empty((len(training.kept), len(fitted["coef_"])))
        for fold, values in zip(folds, run_all(tasks, self._n_threads()), strict=True):
            decisions[fold] = values
        code = targets.labels.code
        classes = [1] if len(fitted["coef_"]) == 1 else range(targets.labels.n_classes)
        sigmoids = [
            fit_sigmoid(decisions[:, column], code == k, training.weight)
            for column, k in enumerate(classes)
        ]
        fitted |= as_attributes(sigmoids)
        if len(sigmoids) > 1:
            rows = spread(code, ENOUGH)
            likely = expit(-(decisions[rows] * fitted["probA_"] + fitted["probB_"]))
            fitted["prob_power_"] = fit_power(
                _of_one(likely), code[rows], training.weight[rows]
            )
        return fitted

    def _held_out(
        self,
        fold: IntVector,
        targets: ClassTargets,
        training: TrainingSet,
        options: Options,
    ) -> FloatMatrix:
        """Decision values of a fold by hyperplanes that have not seen it."""
        is_in = np.ones(len(training.kept), dtype=bool)
        is_in[fold] = False
        X, labels = training.samples, targets.labels
        design = Design(X[is_in], self._bias(), 1)
        inside = targets._replace(
            labels=Labels(labels.classes, labels.code[is_in]),
            weight=targets.weight[is_in],
        )
        planes = self._planes(design, inside, options)
        return linear_heights(X[fold], planes.coef, 1) + planes.intercept


def _of_one(likely: FloatMatrix) -> FloatMatrix:
    """Divided by their sum; even where all are zero."""
    total = likely.sum(axis=1, keepdims=True)
    even = np.full_like(likely, 1.0 / likely.shape[1])
    return np.divide(likely, total, out=even, where=total > 0.0)
