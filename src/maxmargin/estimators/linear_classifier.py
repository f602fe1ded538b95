"""How do linear classifiers decide? By the hyperplane that a sample lies highest on."""

from typing import Any

import numpy as np
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin

from maxmargin.data.design import Design
from maxmargin.estimators.formulation import solver_of
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.linear_base import LinearMachine
from maxmargin.estimators.targets import ClassTargets, Labelled
from maxmargin.models.linear import (
    Hyperplanes,
    fit_one_vs_rest,
    read_joint,
)
from maxmargin.problems.crammer_singer import CrammerSingerProblem
from maxmargin.solvers import Options
from maxmargin.solvers.crammer_singer import solve_crammer_singer


class LinearClassifier(LinearClassifierMixin, SparseCoefMixin, Labelled, LinearMachine):
    """What LinearSVC and LogisticRegression share; they differ in the loss."""

    def decision_function(self, X):
        """How far each sample is on which side.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, positive for classes_[1]; else
        (n_samples, n_classes).
        """
        decisions = self._decisions(X)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X):
        """The class of each sample: the largest decision value wins."""
        decisions = self.decision_function(X)
        if decisions.ndim == 1:
            return self.classes_[(decisions > 0.0).astype(np.intp)]
        return self.classes_[decisions.argmax(axis=1)]

    def _solve(self, design: Design, targets: Any, training: TrainingSet) -> Any:
        labels = targets.labels
        classes = (labels.classes.tolist(), labels.code.tobytes())
        shape = (*self._shape(training, design), *classes)
        starts, notes = self._start(shape)
        options = self._options(training)
        planes = self._planes(design, targets, options, starts)
        fitted = self._as_attributes(planes, shape)
        return fitted | targets.attributes | {"_notes": notes}

    def _planes(
        self,
        design: Design,
        targets: ClassTargets,
        options: Options,
        starts: list[Any] | None = None,
    ) -> Hyperplanes:
        if self._words().is_joint:
            return self._fit_jointly(design, targets, options, starts)
        problem = self._problem(design, np.empty(0), targets.weight)
        solve = solver_of(self._words(), options)
        return fit_one_vs_rest(problem, targets.labels, solve, starts)

    def _fit_jointly(
        self,
        design: Design,
        targets: ClassTargets,
        options: Options,
        starts: list[Any] | None,
    ) -> Hyperplanes:
        labels = targets.labels
        problem = CrammerSingerProblem(
            design, labels.code, self._cost(targets.weight), labels.n_classes
        )
        start = None if starts is None else starts[0]
        solution = solve_crammer_singer(problem, options, start=start)
        return read_joint(solution, labels.n_classes, design)
