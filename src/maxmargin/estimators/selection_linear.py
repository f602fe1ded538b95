"""Which C and epsilon? Linear machines that find out for themselves."""

import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from maxmargin._threads import run_all
from maxmargin.estimators.document import (
    LINEAR_CLASSIFIER_ATTRIBUTES,
    SELECTION_ATTRIBUTES,
    documented_linear_selection,
)
from maxmargin.estimators.inputs import check_training_set
from maxmargin.estimators.linear import LinearSVC, LinearSVR
from maxmargin.estimators.parameters import LINEAR_SVC_RULES, LINEAR_SVR_RULES
from maxmargin.estimators.selection_base import (
    SELECTION_RULES,
    BaseSelection,
    Prepared,
)
from maxmargin.estimators.study import Cell, Score
from maxmargin.estimators.targets import Labelled, Numbered
from maxmargin.selection.folds import Fold
from maxmargin.solvers import Status
from maxmargin.typing import FloatVector, IntVector

C_ENDS = -10.0, 10.0  # exponents of two
OWN_RULES = {name: SELECTION_RULES[name] for name in ("Cs", "epsilons", "search")}


class LinearStudy:
    """Cells of linear machines: each fold keeps its machine from one C to the next."""

    def __init__(
        self,
        machine: Any,
        training: tuple[Any, np.ndarray, FloatVector],
        folds: Sequence[Fold],
        scoring: Any,
        n_threads: int,
    ) -> None:
        self.machine, self.training, self.folds = machine, training, folds
        self.scoring, self.n_threads = scoring, n_threads
        self.paths: dict[float, list[_Path]] = {}

    def cell(self, params: dict[str, Any]) -> Cell:
        """Where a point is found."""
        return Cell(0, params["C"], params.get("epsilon", 0.0))

    def batches(self, cells: Sequence[Cell]) -> Iterator[list[Cell]]:
        """One after the other, with C ascending."""
        yield from ([c] for c in sorted(cells, key=lambda c: (c.epsilon, c.C)))

    def solve(self, batch: Sequence[Cell]) -> list[Score]:
        """The score of the one cell there is."""
        (cell,) = batch
        if cell.epsilon not in self.paths:
            self.paths[cell.epsilon] = [
                _Path(self, fold, cell.epsilon) for fold in self.folds
            ]
        began = time.monotonic()
        tasks = [partial(path.step, cell.C) for path in self.paths[cell.epsilon]]
        steps = run_all(tasks, self.n_threads)
        return [
            Score(
                splits=np.array([step[0] for step in steps]),
                seconds=time.monotonic() - began,
                violation=max(step[1] for step in steps),
                is_complete=all(step[2] is not Status.TIME_LIMIT for step in steps),
            )
        ]


class _Path:
    """The machine of one fold on its way along C."""

    def __init__(self, study: LinearStudy, fold: Fold, epsilon: float) -> None:
        X, y, weight = study.training
        self.machine = clone(study.machine).set_params(warm_start=True, n_jobs=1)
        if "epsilon" in self.machine.get_params():
            self.machine.set_params(epsilon=epsilon)
        self.inside = _safe_indexing(X, fold.inside), y[fold.inside]
        self.outside = _safe_indexing(X, fold.outside), y[fold.outside]
        self.weight = weight[fold.inside]
        self.scoring = study.scoring

    def step(self, C: float) -> tuple[float, float, Status]:
        """Score, violation and status; nan where there is nothing to learn."""
        is_classifier = isinstance(self.machine, ClassifierMixin)
        counted = self.inside[1][self.weight > 0.0]
        if is_classifier and len(np.unique(counted)) < 2:
            return float("nan"), 0.0, Status.CONVERGED
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # see kkt_violation
            self.machine.set_params(C=C).fit(*self.inside, self.weight)
        violation = float(np.max(self.machine.kkt_violation_))
        score = check_scoring(self.machine, self.scoring)(self.machine, *self.outside)
        return float(score), violation, self.machine.status_


class _LinearSelection(BaseSelection):
    """Searches over linear machines."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self):
        """Weights of the features, of the best machine."""
        return self._shown("coef_")

    @property
    def intercept_(self):
        """Constants of its decision function."""
        return self._shown("intercept_")

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        training = check_training_set(self, X, y, sample_weight)
        self._check_targets(y, training)
        y = column_or_1d(y)
        is_classifier = isinstance(self, ClassifierMixin)
        weight = np.zeros(len(y))
        weight[training.kept] = training.weight
        axes = self._axes_of_cost(y, C_ENDS)

        def study(rows: IntVector, folds: list[Fold]) -> LinearStudy:
            part = _safe_indexing(training.X, rows), y[rows], weight[rows]
            machine = self._machine({})
            return LinearStudy(machine, part, folds, self.scoring, self._n_threads())

        folds = self._folds(y)
        n_classes = len(np.unique(y)) if is_classifier else 1
        return Prepared(X, len(y), axes, folds, n_classes, study)


@documented_linear_selection(**SELECTION_ATTRIBUTES, **LINEAR_CLASSIFIER_ATTRIBUTES)
class LinearSVCCV(ClassifierMixin, Labelled, _LinearSelection):
    r"""Linear support vector classification with C chosen by cross-validation.

    Each fold walks along C with one machine, every fit beginning where the last ended.
    """

    _rules = LINEAR_SVC_RULES | OWN_RULES

    def __init__(
        self,
        *,
        Cs=10,
        penalty="l2",
        loss="squared_hinge",
        cv=None,
        scoring=None,
        search="grid",
        dual="auto",
        tol=1e-4,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        max_iter=1000,
        solver="auto",
        penalize_intercept=True,
        time_limit=None,
        random_state=None,
        verbose=False,
        callback=None,
        n_jobs=None,
    ):
        self.Cs = Cs
        self.penalty = penalty
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.dual = dual
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def _plain(self) -> Any:
        return LinearSVC()

    def decision_function(self, X):
        """What the best machine says, as LinearSVC.decision_function."""
        return self._best().decision_function(X)


@documented_linear_selection(**SELECTION_ATTRIBUTES)
class LinearSVRCV(RegressorMixin, Numbered, _LinearSelection):
    r"""Linear support vector regression, C and epsilon chosen by cross-validation.

    As LinearSVCCV; the score is R² unless `scoring` says otherwise.
    """

    _rules = LINEAR_SVR_RULES | OWN_RULES

    def __init__(
        self,
        *,
        Cs=10,
        epsilons=(0.0,),
        loss="epsilon_insensitive",
        cv=None,
        scoring=None,
        search="grid",
        dual="auto",
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1.0,
        max_iter=1000,
        solver="auto",
        penalize_intercept=True,
        time_limit=None,
        random_state=None,
        verbose=False,
        callback=None,
        n_jobs=None,
    ):
        self.Cs = Cs
        self.epsilons = epsilons
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def _plain(self) -> Any:
        return LinearSVR()
