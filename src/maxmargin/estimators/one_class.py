"""Novelty detection: the one-class machine."""

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import NotFittedError

from maxmargin.estimators.document import MARKS, OFFSET, documented
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.kernel import OneProblem
from maxmargin.estimators.targets import Unlabelled
from maxmargin.kernels.gram import Gram
from maxmargin.models import fit_decision
from maxmargin.models.calibration import density_marks
from maxmargin.models.held_out import Solved, State
from maxmargin.models.machine import Fit
from maxmargin.models.probability import inlier_probability
from maxmargin.problems import one_class

ON_BOUNDARY = 1e-12  # of the terms summed: what rounding leaves of zero
ROUNDING_32 = 1e-6  # decision values of training samples are no more exact
TOO_FEW = (
    "Fewer than five training samples lie outside the boundary, or inside: too few for "
    "probabilities. Raise nu, or leave probability=False."
)


@documented(**OFFSET, **MARKS)
class OneClassSVM(OutlierMixin, Unlabelled, OneProblem):
    r"""One-class machine: where do samples like these lie?

    .. math:: \min_{w, \xi, \rho} \tfrac12 \|w\|^2 - \rho
       + \tfrac{1}{\nu S} \sum_i s_i \xi_i
       \quad w^\top \phi(x_i) \ge \rho - \xi_i, \; \xi_i \ge 0

    with :math:`s_i` the sample weight and :math:`S` their sum. At most a share nu of
    the weight lies outside. Coefficients are on LIBSVM's scale, their sum is
    :math:`\nu S`.
    """

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        nu=0.5,
        shrinking=True,
        probability=False,
        cache_size="auto",
        verbose=False,
        max_iter=-1,
        solver="auto",
        working_set="second_order",
        time_limit=None,
        warm_start=False,
        callback=None,
        n_jobs=None,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.probability = probability
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.working_set = working_set
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs

    def _stated(self, targets: None) -> tuple[State, Fit]:
        nu = float(self.nu)
        return lambda weight: one_class(weight, nu), fit_decision

    def _is_balanced(self) -> bool:
        return False  # the sum is nu, and the origin is what samples are told from

    def _solve(self, gram: Gram, targets: Any, training: TrainingSet) -> dict[str, Any]:
        fitted = super()._solve(gram, targets, training)
        if self._wants_probability and "prob_density_marks_" not in fitted:
            fitted["_notes"] = [*fitted["_notes"], TOO_FEW]
        return fitted | {"_largest": float(np.abs(gram.diagonal()).max())}

    def _found(
        self, solved: Solved, targets: None, training: TrainingSet
    ) -> dict[str, Any]:
        """Marks on the decision value; samples on the boundary count as inside."""
        if not self._wants_probability:
            return {}
        decisions = solved.machine.decisions
        on_boundary = max(solved.machine.solution.violation, ROUNDING_32)
        decisions[np.abs(decisions) <= on_boundary] = 0.0
        marks = density_marks(decisions)
        return {} if marks is None else {"prob_density_marks_": marks}

    def _with_public_signs(self, fitted: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._with_public_signs(fitted)
        fitted["offset_"] = -fitted["intercept_"]
        return fitted

    def decision_function(self, X):
        """Signed distance to the boundary, positive inside, shape (n_samples,).

        Support vectors that are not outliers lie on the boundary. Their values are
        zero up to rounding, and are given as zero so that rounding decides nothing.
        """
        decision = self._decision(X)
        terms = self._largest * float(np.abs(self._dense_dual_coef()).sum())
        decision[np.abs(decision) <= ON_BOUNDARY * terms] = 0.0
        return decision

    def score_samples(self, X):
        """The kernel sum before offset_ is subtracted, shape (n_samples,)."""
        return self.decision_function(X) + self.offset_

    def inlier_probability(self, X):
        """How likely each sample is an ordinary one, shape (n_samples,).

        In steps of a tenth, by how many training samples lie farther out (Que & Lin,
        2023); 0.001 and 0.999 beyond all of them. Fit with probability=True first.
        """
        decisions = self.decision_function(X)
        if not hasattr(self, "prob_density_marks_"):
            raise NotFittedError(
                "inlier_probability is not available: fit with probability=True, and "
                "with at least five samples on either side of the boundary."
            )
        return inlier_probability(decisions, self.prob_density_marks_)
