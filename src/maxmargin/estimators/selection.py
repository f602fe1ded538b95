"""Which C, gamma and epsilon? Kernel machines that find out for themselves."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import column_or_1d

from maxmargin.data.labels import Labels, encode_labels
from maxmargin.estimators.document import (
    CLASSIFIER_ATTRIBUTES,
    SELECTION_ATTRIBUTES,
    documented_selection,
)
from maxmargin.estimators.kernel_inputs import (
    check_kernel_set,
    resolve_gamma,
    resolve_kernel,
)
from maxmargin.estimators.selection_base import Axes, BaseSelection, Prepared, spread
from maxmargin.estimators.study import Cell, KernelStudy, Scoring, Sheet
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR
from maxmargin.estimators.targets import Labelled, Numbered
from maxmargin.kernels.gram import check_symmetric
from maxmargin.typing import IntVector

C_ENDS = -5.0, 15.0  # exponents of two, LIBSVM's
GAMMA_ENDS = -6.0, 6.0  # likewise, around gamma="scale"
WITHOUT_GAMMA = ("linear", "precomputed")


class _KernelSelection(BaseSelection):
    """Searches over kernel machines."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        training = check_kernel_set(self, X, y, sample_weight)
        self._check_targets(y, training)
        y = column_or_1d(y)
        is_classifier = isinstance(self, ClassifierMixin)
        target = encode_labels(y) if is_classifier else y.astype(np.float64)
        axes = self._axes(training, y)
        if self.kernel in WITHOUT_GAMMA:
            kernels = [resolve_kernel(self._machine({}), training)]
            gammas = [None]
        else:
            gammas = axes["gamma"]
            kernels = [
                resolve_kernel(self._machine({"gamma": g}), training) for g in gammas
            ]
        if self.kernel == "precomputed":
            check_symmetric(training.X)
        weight = np.zeros(len(y))
        weight[training.kept] = training.weight
        options = self._machine({})._options(training)
        how = self._n_threads(), bool(self.fit_intercept)

        def study(rows: IntVector, folds: list[Any]) -> _Study:
            sheet = _sheet(self, training.X, y, target, weight, rows)
            heeded = None if sample_weight is None else sheet.weight
            scoring = Scoring(self, self.scoring, sheet.X, sheet.y, heeded)
            made = _Study(sheet, folds, kernels, options, scoring, how)
            made.gammas = gammas
            return made

        folds = self._folds(y)
        n_classes = target.n_classes if isinstance(target, Labels) else 1
        return Prepared(X, len(y), axes, folds, n_classes, study)

    def _axes(self, training: Any, y: np.ndarray) -> Axes:
        axes = self._axes_of_cost(y, C_ENDS)
        if self.kernel not in WITHOUT_GAMMA:
            unit = 1.0
            if isinstance(self.gammas, int | np.integer):
                unit = resolve_gamma(self._machine({"gamma": "scale"}), training)
            axes["gamma"] = spread(self.gammas, GAMMA_ENDS, unit)
        return axes


class _Study(KernelStudy):
    """Cells in the words of an estimator."""

    gammas: list[Any]

    def cell(self, params: dict[str, Any]) -> Cell:
        """Where the engine finds a point."""
        kernel = self.gammas.index(params.get("gamma"))
        return Cell(kernel, params["C"], params.get("epsilon", 0.0))


def _sheet(
    search: Any, X: Any, y: np.ndarray, target: Any, weight: Any, rows: IntVector
) -> Sheet:
    class_weight = getattr(search, "class_weight", None)
    if len(rows) == len(y):
        return Sheet(X, target, y, weight, class_weight)
    if isinstance(target, Labels):
        target = Labels(target.classes, target.code[rows])
    else:
        target = target[rows]
    X = X[np.ix_(rows, rows)] if search.kernel == "precomputed" else X[rows]
    return Sheet(X, target, y[rows], weight[rows], class_weight)


@documented_selection(**SELECTION_ATTRIBUTES, **CLASSIFIER_ATTRIBUTES)
class SVCCV(ClassifierMixin, Labelled, _KernelSelection):
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

    def decision_function(self, X):
        """What the best machine says, as SVC.decision_function."""
        return self._best().decision_function(X)


@documented_selection(**SELECTION_ATTRIBUTES)
class SVRCV(RegressorMixin, Numbered, _KernelSelection):
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
