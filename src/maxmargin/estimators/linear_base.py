"""What do the linear machines share? Samples as they come, and hyperplanes."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from maxmargin._threads import one_blas_thread
from maxmargin.data.design import Design
from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine, evidence, worst_status
from maxmargin.estimators.formulation import LOSSES, Words, check_words, solver_of
from maxmargin.estimators.inputs import (
    TrainingSet,
    check_samples,
    check_training_set,
)
from maxmargin.estimators.parameters import LINEAR_RULES
from maxmargin.models.linear import (
    Hyperplanes,
    check_size,
    check_targets,
    check_weights,
    cost_of,
    fit_one,
    linear_heights,
)
from maxmargin.problems.linear import LinearProblem
from maxmargin.solvers import Options, Status
from maxmargin.typing import FloatMatrix, FloatVector


class LinearMachine(BaseMachine):
    """Fitting and hyperplanes; subclasses state the problem and shape the answer."""

    _rules = LINEAR_RULES
    _steps = "iterations"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    # Fitting.

    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        words, bias = self._words(), self._bias()
        check_words(words)
        training = check_training_set(self, X, y, sample_weight)
        targets = self._check_targets(y, training)
        with one_blas_thread():
            design = Design(training.samples, bias, self._n_threads())
            check_size(design)
            return self._solve(design, targets, training)

    def _solve(self, design: Design, targets: Any, training: TrainingSet) -> Any:
        """The attributes of a fit: here of one problem, classifiers have several."""
        shape = self._shape(training, design)
        starts, notes = self._start(shape)
        problem = self._problem(design, targets, training.weight)
        solve = solver_of(self._words(), self._options(training))
        planes = fit_one(problem, solve, starts[0] if starts else None)
        return self._as_attributes(planes, shape) | {"_notes": notes}

    def _words(self) -> Words:
        """Loss, penalty and solver, as the constructor was told."""
        raise NotImplementedError

    def _told(self, loss: str, penalty: str = "l2") -> Words:
        is_free = self.fit_intercept and not self.penalize_intercept
        return Words(
            loss=loss,
            penalty=penalty,
            dual=self.dual if isinstance(self.dual, str) else bool(self.dual),
            solver=self.solver,
            has_free_intercept=bool(is_free),
        )

    def _bias(self) -> float:
        """The value of the constant feature, 0 where there is none."""
        if not self.fit_intercept:
            return 0.0
        if self.intercept_scaling <= 0:
            raise InvalidInput(
                f"Intercept scaling is {self.intercept_scaling!r} but needs to be "
                "greater than 0. To disable fitting an intercept, set "
                "fit_intercept=False."
            )
        return float(self.intercept_scaling)

    def _problem(
        self, design: Design, target: FloatVector, weight: FloatVector
    ) -> LinearProblem:
        words = self._words()
        check_targets(target)
        return LinearProblem(
            design=design,
            target=target,
            cost=self._cost(weight),
            loss=LOSSES[words.loss],
            epsilon=float(getattr(self, "epsilon", 0.0)),
            is_intercept_free=words.has_free_intercept,
        )

    def _cost(self, weight: FloatVector) -> FloatVector:
        """C times the weights, which must not have become 0 or infinite."""
        return cost_of(float(self.C), weight)

    def _options(self, training: TrainingSet) -> Options:
        """The solver's options; without a random_state the seed is 0."""
        seed = 0
        if self.random_state is not None:
            seed = check_random_state(self.random_state).randint(np.iinfo("i").max)
        return replace(self._limits(training), seed=int(seed))

    def _shape(self, training: TrainingSet, design: Design) -> tuple[Any, ...]:
        """What a warm start must find unchanged."""
        return *training.shape, design.n_columns, *self._words().kind

    def _as_attributes(
        self, planes: Hyperplanes, shape: tuple[Any, ...]
    ) -> dict[str, Any]:
        """All that the fitted linear machines have in common."""
        solutions = planes.solutions
        check_weights(planes.coef, planes.intercept)
        fitted = {
            "coef_": planes.coef,
            "intercept_": planes.intercept if self._bias() else 0.0,
            "n_iter_": max(int(solution.n_iter) for solution in solutions),
            **evidence(
                worst_status(solutions),
                np.array([solution.objective for solution in solutions]),
                np.array([solution.gap for solution in solutions]),
                np.array([solution.violation for solution in solutions]),
            ),
        }
        if self.warm_start:  # as large as the samples are many, times the classes
            is_sparse = self._words().penalty == "l1"
            ends = [s.weight if is_sparse else s.beta for s in solutions]
            fitted["_warm"] = (shape, ends)
        return fitted

    def _reason(self) -> str:
        if self.status_ is Status.MAX_ITER:
            return (
                "Liblinear failed to converge, increase the number of iterations. "
                f"({self._most_iterations()})"
            )
        return super()._reason()

    # Predicting.

    def _decisions(self, X: Any) -> FloatMatrix:
        """One column per hyperplane."""
        return self._heights(X) + self.intercept_

    def _heights(self, X: Any) -> FloatMatrix:
        """<w, x> for every row of coef_, which may have been set by hand."""
        check_is_fitted(self)
        X = check_samples(self, X, reset=False)
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        if coef.shape[1] != X.shape[1]:
            raise InvalidInput(
                f"coef_ of {type(self).__name__} was altered: it holds "
                f"{coef.shape[1]} weights for {X.shape[1]} features."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # looked at next
            heights = linear_heights(X, coef, self._n_threads())
        if not np.isfinite(heights).all():
            raise InvalidInput(
                "Decision values are not finite: X holds values so large that sums "
                "overflow; scale the features as for fit."
            )
        return heights
