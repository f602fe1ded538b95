"""What do the five kernel machines share?"""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from maxmargin._threads import count_cores, one_blas_thread
from maxmargin.data.rows import as_rows
from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine, evidence
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.kernel_inputs import (
    check_kernel_samples,
    check_kernel_set,
    make_gram,
    resolve_kernel,
)
from maxmargin.kernels.cache import default_cache_bytes
from maxmargin.kernels.gram import Gram
from maxmargin.kernels.memory import forget_spares
from maxmargin.models import KernelSum, MatrixSum
from maxmargin.models.expansion import Part
from maxmargin.models.held_out import Solved, State
from maxmargin.models.machine import Fit
from maxmargin.solvers import Options, PairRule, Status
from maxmargin.solvers.gradient import check_finite
from maxmargin.typing import FloatMatrix, FloatVector

WORKING_SETS = {
    "first_order": PairRule.FIRST_ORDER,
    "second_order": PairRule.SECOND_ORDER,
}


class KernelMachine(BaseMachine):
    """Fitting and kernel sums; subclasses state the problem and read the answer."""

    _known_gram: Gram | None = None  # of a search, which has computed it already

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_dual_coef_")

    # Fitting.

    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        training = check_kernel_set(self, X, y, sample_weight)
        X = training.X
        targets = self._check_targets(y, training)
        with one_blas_thread():
            kernel = resolve_kernel(self, training)
            gram = self._known_gram
            if gram is None:
                gram = make_gram(self, kernel, training, self._n_threads())
            try:
                fitted = self._solve(gram, targets, training)
            finally:
                forget_spares()
        check_finite(np.append(fitted["_intercept_"], fitted["_dual_coef_"]))
        fitted["support_vectors_"] = _support_vectors(kernel, X, fitted["support_"])
        if training.is_sparse:
            as_sparse = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
            fitted["_dual_coef_"] = as_sparse(fitted["_dual_coef_"])
        fitted["_kernel"], fitted["_sparse"] = kernel, training.is_sparse
        fitted["_fitted_kernel"] = self.kernel
        fitted["_gamma"] = getattr(kernel, "gamma", 0.0)
        fitted["_training"] = X if callable(self.kernel) else None
        fitted["shape_fit_"] = X.shape if hasattr(X, "shape") else (len(X),)
        return self._with_public_signs(fitted)

    def _with_public_signs(self, fitted: dict[str, Any]) -> dict[str, Any]:
        fitted["dual_coef_"] = fitted["_dual_coef_"]
        fitted["intercept_"] = fitted["_intercept_"].copy()
        return fitted

    def _is_balanced(self) -> bool:
        """Whether dual variables sum to zero, so that the origin of X is free."""
        return bool(getattr(self, "fit_intercept", True))

    def _solve(self, gram: Gram, targets: Any, training: TrainingSet) -> dict[str, Any]:
        raise NotImplementedError

    def _options(self, training: TrainingSet, n_problems: int = 1) -> Options:
        """The solver's options; the cache is shared by all problems solved at once.

        Its share depends on the machine and not on n_jobs, so that n_jobs cannot
        change the answer.
        """
        if self.cache_size == "auto":
            n_bytes = default_cache_bytes()
        else:
            n_bytes = int(self.cache_size * (1 << 20))
        return replace(
            self._limits(training),
            working_set=WORKING_SETS[self.working_set],
            shrinking=bool(self.shrinking),
            method=self.solver,
            cache_bytes=n_bytes // min(n_problems, count_cores()),
            n_problems=n_problems,
        )

    # Predicting.

    def _check_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        X = check_kernel_samples(self, X, reset=False)
        name = type(self).__name__
        if sp.issparse(X) and not self._sparse and not callable(self._fitted_kernel):
            raise InvalidInput(
                f"cannot use sparse input in {name!r} trained on dense data: pass "
                "X.toarray(), or fit on sparse data."
            )
        if self._sparse and not sp.issparse(X):
            X = sp.csr_matrix(X)
        support = self.support_vectors_
        n_rows = support.shape[0]
        if support.shape[1] and self._n_support.sum() != n_rows:
            raise InvalidInput(f"The internal representation of {name} was altered")
        return X

    def _kernel_sums(self, X: Any, parts: list[Part]) -> list[FloatMatrix]:
        """Kernel sums of checked samples, one matrix per part."""
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            sums = self._unchecked_sums(X, parts)
        if not all(np.isfinite(total).all() for total in sums):
            raise InvalidInput(
                "Decision values are not finite: X holds values so large that the "
                "kernel overflows; scale the features as for fit."
            )
        return sums

    def _unchecked_sums(self, X: Any, parts: list[Part]) -> list[FloatMatrix]:
        if callable(self._fitted_kernel):
            source = MatrixSum(self.support_, self._training)
            return source.of_function(self._fitted_kernel, X, parts)
        if self._kernel is None:
            return MatrixSum(self.support_).of_matrix(X, parts)
        sums = KernelSum(self._kernel, as_rows(self.support_vectors_))
        return sums.of(as_rows(X), parts, self._n_threads())

    def _dense_dual_coef(self) -> FloatMatrix:
        coef = self._dual_coef_
        return coef.toarray() if sp.issparse(coef) else np.asarray(coef)

    # What scikit-learn shows of a fitted machine.

    @property
    def coef_(self):
        """Weights of the features, for kernel="linear"; read-only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._linear_weights()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _linear_weights(self) -> Any:
        return safe_sparse_dot(self._dual_coef_, self.support_vectors_)

    @property
    def n_support_(self):
        """Number of support vectors, per class for classifiers."""
        with suppress(NotFittedError):
            check_is_fitted(self)
            return self._n_support
        raise AttributeError("n_support_ is known after fit only")


class OneProblem(KernelMachine):
    """Machines with a single dual problem: regression and novelty detection."""

    def _solve(self, gram: Gram, targets: Any, training: TrainingSet) -> dict[str, Any]:
        shape = training.shape
        start, notes = self._start(shape)
        state, fit = self._stated(targets)
        options, weight = self._options(training), training.weight
        first = start[0] if start else None
        machine = fit(state(weight), gram, options, first, None)
        solved = Solved(state, fit, gram, weight, machine, options)
        found = self._found(solved, targets, training)
        solution = machine.solution
        inside = np.flatnonzero(machine.coef)
        return {
            "support_": training.kept[inside].astype(np.int32),
            "_n_support": np.array([len(inside)], dtype=np.int32),
            "_dual_coef_": machine.coef[None, inside],
            "_intercept_": np.array([machine.intercept]),
            "fit_status_": int(solution.status is not Status.CONVERGED),
            "n_iter_": solution.n_iter,
            "_warm": (shape, [solution.beta]),
            **evidence(
                solution.status,
                np.array([machine.objective]),
                np.array([machine.gap]),
                np.array([solution.violation]),
            ),
            **found,
            "_notes": notes + found.get("_notes", []),
        }

    def _stated(self, targets: Any) -> tuple[State, Fit]:
        """How the problem is stated from weights, and how it is fitted."""
        raise NotImplementedError

    def _found(
        self, solved: Solved, targets: Any, training: TrainingSet
    ) -> dict[str, Any]:
        """What else the solved problem tells, for probabilities."""
        raise NotImplementedError

    def _decision(self, X: Any) -> FloatVector:
        X = self._check_for_predict(X)
        coef = self._dense_dual_coef()
        part = (slice(0, coef.shape[1]), np.ascontiguousarray(coef.T))
        return self._kernel_sums(X, [part])[0][:, 0] + self._intercept_[0]


def _support_vectors(kernel: Any, X: Any, support: Any) -> Any:
    """Rows of X in their own type; nothing where K is given and X has no vectors."""
    if kernel is None:
        return np.empty((0, 0))
    return X[support]
