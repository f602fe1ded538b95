"""Which nu, and which gamma and C? nu machines that find out for themselves."""

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from maxmargin.estimators.document import (
    CLASSIFIER_ATTRIBUTES,
    SELECTION_ATTRIBUTES,
    documented_selection,
)
from maxmargin.estimators.selection_kernel import KernelSelection, most_nu_of_pairs
from maxmargin.estimators.svc import NuSVC
from maxmargin.estimators.svr import NuSVR
from maxmargin.estimators.targets import ClassTargets, Labelled, Numbered
from maxmargin.selection.formulations import Formulation, NuSvc, NuSvr


@documented_selection(**SELECTION_ATTRIBUTES, **CLASSIFIER_ATTRIBUTES)
class NuSVCCV(ClassifierMixin, Labelled, KernelSelection):
    r"""nu-support vector classification, nu and gamma chosen by cross-validation.

    As SVCCV, with nu in the place of C: each fold walks along nu. A nu that has no
    solution on all samples, or on one of the folds, has the score nan there, as in
    GridSearchCV with error_score=nan, and is never chosen.
    """

    _fold_needs = (
        "each fold must learn from at least two classes, and nu must not exceed twice "
        "the lighter one's share of their weight; lower nus, use fewer folds, or "
        "stratified ones."
    )

    def __init__(
        self,
        *,
        nus=5,
        gammas=5,
        kernel="rbf",
        degree=3,
        coef0=0.0,
        cv=None,
        scoring=None,
        search="grid",
        n_trials=50,
        tol=1e-3,
        cache_size="auto",
        max_iter=-1,
        class_weight=None,
        decision_function_shape="ovr",
        break_ties=False,
        time_limit=None,
        random_state=None,
        verbose=False,
        callback=None,
        n_jobs=None,
    ):
        self.nus = nus
        self.gammas = gammas
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.n_trials = n_trials
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def _plain(self) -> Any:
        return NuSVC()

    def _formulation(self) -> Formulation:
        return NuSvc()

    def _most_nu(self, targets: ClassTargets) -> float:
        return most_nu_of_pairs(targets.labels, targets.weight)

    def decision_function(self, X):
        """What the best machine says, as NuSVC.decision_function."""
        return self._best().decision_function(X)


@documented_selection(**SELECTION_ATTRIBUTES)
class NuSVRCV(RegressorMixin, Numbered, KernelSelection):
    r"""nu-support vector regression, its parameters chosen by cross-validation.

    As SVRCV, with nu in the place of epsilon; the score is R² unless `scoring` says
    otherwise.
    """

    def __init__(
        self,
        *,
        Cs=6,
        gammas=5,
        nus=(0.5,),
        kernel="rbf",
        degree=3,
        coef0=0.0,
        cv=None,
        scoring=None,
        search="grid",
        n_trials=50,
        tol=1e-3,
        cache_size="auto",
        max_iter=-1,
        time_limit=None,
        random_state=None,
        verbose=False,
        callback=None,
        n_jobs=None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.nus = nus
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.n_trials = n_trials
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def _plain(self) -> Any:
        return NuSVR()

    def _formulation(self) -> Formulation:
        return NuSvr()
