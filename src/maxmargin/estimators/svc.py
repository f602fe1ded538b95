"""Classification: C-SVC and nu-SVC."""

from typing import Any

from maxmargin.data.weights import box_sizes
from maxmargin.errors import InfeasibleProblem, InvalidInput
from maxmargin.estimators.classifier import PairwiseClassifier
from maxmargin.estimators.document import CLASSIFIER_ATTRIBUTES, documented
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.targets import ClassTargets
from maxmargin.models import fit_decision, fit_margin
from maxmargin.models.held_out import State
from maxmargin.models.machine import Fit
from maxmargin.problems.classification import (
    c_svc,
    check_nu_of_pairs,
    feasible_nu_svc,
)
from maxmargin.typing import FloatVector, IntVector


@documented(**CLASSIFIER_ATTRIBUTES)
class SVC(PairwiseClassifier):
    r"""C-support vector classification.

    .. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + C \sum_i s_i \xi_i
       \quad y_i (w^\top \phi(x_i) + b) \ge 1 - \xi_i, \; \xi_i \ge 0

    with :math:`s_i` the class weight times the sample weight. Solved in the dual, at
    its exact optimum up to `tol`; more than two classes by one machine per pair.

    A fit costs between O(n²) and O(n³) kernel values; memory stays within
    `cache_size`. Scale the features first.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> machine = SVC(C=10).fit([[0, 0], [0, 1], [2, 2], [2, 3]], [0, 0, 1, 1])
    >>> machine.predict([[2, 2.5]])
    array([1])
    """

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        calibration="folds",
        predict_by="auto",
        tol=1e-3,
        cache_size="auto",
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        solver="auto",
        working_set="second_order",
        fit_intercept=True,
        time_limit=None,
        warm_start=False,
        callback=None,
        n_jobs=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.calibration = calibration
        self.predict_by = predict_by
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.working_set = working_set
        self.fit_intercept = fit_intercept
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs

    def _stated(self, y: FloatVector, end: IntVector) -> tuple[State, Fit]:
        has_intercept, C = bool(self.fit_intercept), float(self.C)
        return lambda w: c_svc(
            y, box_sizes(C, w), has_intercept=has_intercept
        ), fit_decision


@documented(**CLASSIFIER_ATTRIBUTES)
class NuSVC(PairwiseClassifier):
    r"""nu-support vector classification: the share of misses instead of their price.

    .. math:: \min_{w, b, \xi, \rho} \tfrac12 \|w\|^2 - \nu \rho
       + \tfrac1S \sum_i s_i \xi_i
       \quad y_i (w^\top \phi(x_i) + b) \ge \rho - \xi_i, \; \xi_i, \rho \ge 0

    with :math:`s_i` the class weight times the sample weight and :math:`S` their sum.
    A nu above twice the lighter class's share of the weight has no solution and is
    refused before any kernel is computed.
    """

    def __init__(
        self,
        *,
        nu=0.5,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        calibration="folds",
        predict_by="auto",
        tol=1e-3,
        cache_size="auto",
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        solver="auto",
        working_set="second_order",
        time_limit=None,
        warm_start=False,
        callback=None,
        n_jobs=None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.calibration = calibration
        self.predict_by = predict_by
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.working_set = working_set
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs

    def _check_targets(self, y: Any, training: TrainingSet) -> ClassTargets:
        """As for every classifier; and nu must fit every pair, before any work."""
        targets = super()._check_targets(y, training)
        check_nu_of_pairs(targets.labels, targets.weight, float(self.nu))
        return targets

    def _check_calibration(self) -> None:
        super()._check_calibration()
        if self._wants_probability and self.calibration != "folds":
            raise InvalidInput(
                "NuSVC's calibration must be 'folds', got 'leave_one_out': without a "
                "sample its nu means another problem. Use SVC, or 'folds'."
            )

    def _refuse_single_class(self) -> None:
        raise InfeasibleProblem(
            "specified nu is infeasible: all samples with positive weights belong to "
            "the same class; at least two classes must have positive weights."
        )

    def _stated(self, y: FloatVector, end: IntVector) -> tuple[State, Fit]:
        nu = float(self.nu)
        return lambda w: feasible_nu_svc(y, nu, w, end), fit_margin
