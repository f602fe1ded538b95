"""Regression: epsilon-SVR and nu-SVR."""

from typing import Any

from sklearn.base import RegressorMixin

from maxmargin.data.weights import box_sizes
from maxmargin.errors import InvalidInput
from maxmargin.estimators.document import REGRESSOR_ATTRIBUTES, documented
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.intervals import Intervals
from maxmargin.estimators.kernel import OneProblem
from maxmargin.estimators.targets import Numbered
from maxmargin.models import fit_decision, fit_tube
from maxmargin.models.held_out import Solved, State
from maxmargin.models.machine import Fit
from maxmargin.problems import DualProblem, epsilon_svr, nu_svr
from maxmargin.typing import FloatVector


class _Regressor(RegressorMixin, Intervals, Numbered, OneProblem):
    def predict(self, X):
        """The fitted function at these samples, shape (n_samples,)."""
        return self._decision(X)

    def _found(
        self, solved: Solved, targets: FloatVector, training: TrainingSet
    ) -> dict[str, Any]:
        return self._calibrated(solved, targets, training.weight)


@documented(**REGRESSOR_ATTRIBUTES)
class SVR(_Regressor):
    r"""epsilon-support vector regression.

    .. math:: \min_{w, b, \xi, \xi^*} \tfrac12 \|w\|^2
       + C \sum_i s_i (\xi_i + \xi_i^*)
       \quad z_i - w^\top \phi(x_i) - b \le \varepsilon + \xi_i, \;
       w^\top \phi(x_i) + b - z_i \le \varepsilon + \xi_i^*

    with :math:`s_i` the sample weight. Solved with n variables and one gradient.
    """

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        C=1.0,
        epsilon=0.1,
        shrinking=True,
        probability=False,
        calibration="folds",
        random_state=None,
        cache_size="auto",
        verbose=False,
        max_iter=-1,
        solver="auto",
        working_set="second_order",
        fit_intercept=True,
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
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.probability = probability
        self.calibration = calibration
        self.random_state = random_state
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.working_set = working_set
        self.fit_intercept = fit_intercept
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs

    def _stated(self, targets: FloatVector) -> tuple[State, Fit]:
        C, epsilon = float(self.C), float(self.epsilon)
        has_intercept = bool(self.fit_intercept)

        def state(weight: FloatVector) -> DualProblem:
            return epsilon_svr(
                targets, box_sizes(C, weight), epsilon, has_intercept=has_intercept
            )

        return state, fit_decision


@documented(**REGRESSOR_ATTRIBUTES)
class NuSVR(_Regressor):
    r"""nu-support vector regression: the width of the tube is found, not given.

    .. math:: \min_{w, b, \xi, \xi^*, \varepsilon} \tfrac12 \|w\|^2
       + C \bigl(\nu S \varepsilon + \sum_i s_i (\xi_i + \xi_i^*)\bigr)

    under the constraints of :class:`SVR`, with :math:`s_i` the sample weight and
    :math:`S` their sum. As in LIBSVM, C is not divided by the number of samples.
    """

    def __init__(
        self,
        *,
        nu=0.5,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        calibration="folds",
        random_state=None,
        tol=1e-3,
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
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.calibration = calibration
        self.random_state = random_state
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.working_set = working_set
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs

    def _check_calibration(self) -> None:
        if self._wants_probability and self.calibration != "folds":
            raise InvalidInput(
                "NuSVR's calibration must be 'folds', got 'leave_one_out': without a "
                "sample its nu means another problem. Use SVR, or 'folds'."
            )

    def _stated(self, targets: FloatVector) -> tuple[State, Fit]:
        C, nu = float(self.C), float(self.nu)
        return lambda weight: nu_svr(targets, box_sizes(C, weight), nu), fit_tube
