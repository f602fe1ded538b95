"""Novelty detection without kernels: the linear one-class machine."""

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from maxmargin.data.design import Design
from maxmargin.estimators.document import LINEAR_ONE_CLASS_ATTRIBUTES, documented_linear
from maxmargin.estimators.formulation import Words
from maxmargin.estimators.linear_base import LinearMachine
from maxmargin.estimators.targets import Unlabelled
from maxmargin.models.linear import Hyperplanes
from maxmargin.problems.linear import LinearProblem, Loss
from maxmargin.typing import FloatVector


@documented_linear(**LINEAR_ONE_CLASS_ATTRIBUTES)
class LinearOneClassSVM(OutlierMixin, Unlabelled, LinearMachine):
    r"""Linear one-class machine: which half-space do samples like these lie in?

    .. math:: \min_{w, \rho} \tfrac12 \|w\|^2 - \nu S \rho
       + \sum_i s_i \max(0, \rho - w^\top x_i)

    with :math:`s_i` the sample weight and :math:`S` their sum. At most a share nu of
    the weight lies outside. The half-space never holds the origin unless it holds
    everything: features should be such that zero is far from ordinary.
    """

    def __init__(
        self,
        *,
        nu=0.5,
        tol=1e-4,
        max_iter=1000,
        verbose=0,
        random_state=None,
        solver="auto",
        time_limit=None,
        callback=None,
        warm_start=False,
        n_jobs=None,
    ):
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state
        self.solver = solver
        self.time_limit = time_limit
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def decision_function(self, X):
        """Signed height over the boundary, positive inside, shape (n_samples,)."""
        return self._decisions(X)[:, 0]

    def score_samples(self, X):
        """The height before offset_ is subtracted, shape (n_samples,)."""
        return self._heights(X)[:, 0]

    def _words(self) -> Words:
        return Words("one_class", solver=self.solver, has_free_intercept=True)

    def _bias(self) -> float:
        return 1.0

    def _problem(
        self, design: Design, target: Any, weight: FloatVector
    ) -> LinearProblem:
        return LinearProblem(
            design=design,
            target=np.ones(design.n),
            cost=weight,
            loss=Loss.ONE_CLASS,
            is_intercept_free=True,
            total=float(self.nu) * float(weight.sum()),
        )

    def _as_attributes(self, planes: Hyperplanes, shape: Any) -> dict[str, Any]:
        fitted = super()._as_attributes(planes, shape)
        return fitted | {"offset_": -planes.intercept}
