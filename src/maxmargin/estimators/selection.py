"""Which C, gamma and epsilon? Kernel machines that find out for themselves."""

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from maxmargin.estimators.document import (
    CLASSIFIER_ATTRIBUTES,
    SELECTION_ATTRIBUTES,
    documented_selection,
)
from maxmargin.estimators.selection_kernel import KernelSelection
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR
from maxmargin.estimators.targets import Labelled, Numbered
from maxmargin.selection.formulations import CSvc, EpsilonSvr, Formulation


@documented_selection(**SELECTION_ATTRIBUTES, **CLASSIFIER_ATTRIBUTES)
class SVCCV(ClassifierMixin, Labelled, KernelSelection):
    r"""C-support vector classification with C and gamma chosen by cross-validation.

    Every point of the grid is solved to `tol` on every fold, as GridSearchCV over SVC
    would, for the price of far fewer fits: kernel values are computed once for every
    gamma, each fold begins where it ended at the last C, and samples held out are
    judged by what the solver knows of them already.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCCV(Cs=[1, 10, 100], gammas=[0.01, 0.1]).fit(X, y)
    >>> round(search.best_score_, 3)
    0.98
    """

    def __init__(
        self,
        *,
        Cs=6,
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
        fit_intercept=True,
        decision_function_shape="ovr",
        break_ties=False,
        time_limit=None,
        random_state=None,
        verbose=False,
        callback=None,
        n_jobs=None,
    ):
        self.Cs = Cs
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
        self.fit_intercept = fit_intercept
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def _plain(self) -> Any:
        return SVC()

    def _formulation(self) -> Formulation:
        return CSvc(bool(self.fit_intercept))

    def decision_function(self, X):
        """What the best machine says, as SVC.decision_function."""
        return self._best().decision_function(X)


@documented_selection(**SELECTION_ATTRIBUTES)
class SVRCV(RegressorMixin, Numbered, KernelSelection):
    r"""epsilon-support vector regression, its parameters chosen by cross-validation.

    As SVCCV; the score is R² unless `scoring` says otherwise.
    """

    def __init__(
        self,
        *,
        Cs=6,
        gammas=5,
        epsilons=(0.1,),
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
        fit_intercept=True,
        time_limit=None,
        random_state=None,
        verbose=False,
        callback=None,
        n_jobs=None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
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
        self.fit_intercept = fit_intercept
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def _plain(self) -> Any:
        return SVR()

    def _formulation(self) -> Formulation:
        return EpsilonSvr(bool(self.fit_intercept))
