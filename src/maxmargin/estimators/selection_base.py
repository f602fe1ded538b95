"""What do all searches share? Cross-validate points, take the best, fit once more."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin import _clock
from maxmargin.errors import ModelFormatError
from maxmargin.estimators.base import BaseMachine
from maxmargin.estimators.parameters import RULES, Rule, check_parameters
from maxmargin.estimators.search_plans import (
    FEWEST_EACH,
    Tried,
    coarse_to_fine,
    halving,
    whole_grid,
)
from maxmargin.estimators.search_progress import shown
from maxmargin.estimators.search_run import Axes, Prepared, Run
from maxmargin.estimators.search_trials import check_optuna, check_ranges, suggested
from maxmargin.estimators.study import Score, make_folds
from maxmargin.selection.folds import Fold
from maxmargin.solvers import Status

SEARCHES = ("grid", "coarse-to-fine", "halving", "optuna")
EPSILON_ENDS = -6.0, -1.0  # exponents of two, of the deviation of the targets
REFIT_SHARE = 0.2  # of time_limit: for the last fit, where no fold was solved in time


def spread(values: Any, ends: tuple[float, float], unit: float) -> list[Any]:
    """The values themselves, or as many powers of two as are asked for."""
    if not isinstance(values, int | np.integer):
        return [v if isinstance(v, str) else float(v) for v in values]
    middle = 0.5 * (ends[0] + ends[1])
    exponents = np.linspace(*ends, int(values)) if values > 1 else [middle]
    return [float(unit * 2.0**exponent) for exponent in exponents]


def spread_evenly(values: Any, ends: tuple[float, float]) -> list[float]:
    """The values themselves, or as many at equal distances as are asked for."""
    if not isinstance(values, int | np.integer):
        return [float(value) for value in values]
    if values == 1:
        return [0.5 * (ends[0] + ends[1])]
    return [float(value) for value in np.linspace(*ends, int(values))]


def _are_values(values: Any, is_one: Any) -> bool:
    if isinstance(values, int | np.integer) and not isinstance(values, bool):
        return bool(values >= 1)
    if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
        return False
    return all(is_one(value) for value in values)


def _axis(name: str) -> Rule:
    rule = RULES[name]
    words = f"how many values to try, or a list of them, each {rule.words}"
    return Rule(lambda values: _are_values(values, rule.holds), words)


SELECTION_RULES = RULES | {
    "Cs": _axis("C"),
    "gammas": _axis("gamma"),
    "epsilons": _axis("epsilon"),
    "nus": _axis("nu"),
    "search": Rule(
        lambda v: isinstance(v, str) and v in SEARCHES,
        " or ".join(repr(name) for name in SEARCHES),
    ),
    "n_trials": Rule(
        lambda v: isinstance(v, int | np.integer) and int(v) > 0,
        "a whole number above 0",
    ),
    "random_state": Rule(
        lambda v: v is None or (isinstance(v, int | np.integer) and int(v) >= 0),
        "None or a whole number, 0 or above",
    ),
}


class BaseSelection(BaseMachine):
    """Fit, results and predictions; subclasses say what the points are."""

    _rules = SELECTION_RULES
    _fold_needs = (
        "each fold must learn from at least two classes; use fewer folds, or "
        "stratified ones."
    )

    def fit(self, X, y, sample_weight=None, *, groups=None):
        """Cross-validate the grid, then fit the best machine to all samples.

        Parameters
        ----------
        X, y, sample_weight : as for the machine itself
        groups : array-like of shape (n_samples,), default None
            Samples of one group are held out together.

        Returns
        -------
        self
        """
        self._groups = groups
        try:
            return self._fit(X, y, sample_weight)
        finally:
            del self._groups

    def save(self, path, *, format=None, digits=None):
        """Not for searches: a file holds one machine, such as `best_estimator_`."""
        raise ModelFormatError(
            f"a file holds one machine, and {type(self).__name__} is a search: save "
            "its best_estimator_ after fit."
        )

    # What subclasses say.

    def _plain(self) -> Any:
        """The plain estimator."""
        raise NotImplementedError

    def _machine(self, params: dict[str, Any]) -> Any:
        """The plain estimator with these parameters, and those of the search."""
        machine = self._plain()
        own, known = self.get_params(deep=False), machine.get_params(deep=False)
        shared = {name: value for name, value in own.items() if name in known}
        shared |= {"verbose": False, "callback": None}
        return machine.set_params(**shared | params)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        raise NotImplementedError

    # Fitting.

    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        if self.search == "optuna":
            check_optuna()
        started = _clock.now()
        prepared = self._prepare(X, y, sample_weight)
        with shown(self.verbose) as show:
            run = Run(self, prepared, show, started)
            tried = self._try(run, prepared)
        found = run.summary(tried)
        machine = self._machine(found["best_params_"])
        machine.set_params(time_limit=self._limit_of_refit(run, found))
        began = time.monotonic()
        machine._known_gram = run.gram(found["best_params_"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said by this fit
            machine.fit(prepared.X, y, sample_weight)
        del machine._known_gram
        machine.set_params(time_limit=self.time_limit)
        found |= {"best_estimator_": machine, "refit_time_": time.monotonic() - began}
        found |= {"status_": machine.status_, "n_splits_": len(prepared.folds)}
        found |= {"kkt_violation_": machine.kkt_violation_, "n_iter_": machine.n_iter_}
        for name in ("classes_", "class_weight_"):
            if hasattr(machine, name):
                found[name] = getattr(machine, name)
        for name, value in found["best_params_"].items():
            found[f"{name}_"] = value
        return found

    def _limit_of_refit(self, run: Run, found: dict[str, Any]) -> float | None:
        """None where all folds were solved: one more fit costs less than they did."""
        is_solved = found.pop("_is_solved")
        if self.time_limit is None or is_solved:
            return None
        return max(run.seconds_left(), REFIT_SHARE * self.time_limit)

    def _reason(self) -> str:
        if self.status_ is Status.TIME_LIMIT:
            limit = f"time_limit={self.time_limit:g}"
            return f"Solver terminated early in the last fit ({limit})."
        return super()._reason()

    def _try(self, run: Run, prepared: Prepared) -> list[Tried]:
        """Points and their scores, in the order that `search` says."""
        sizes = [len(values) for values in prepared.axes.values()]
        n = prepared.n
        if self.search == "optuna":
            ranges = check_ranges(prepared.axes)
            run.n_expected = int(self.n_trials)
            seed = 0 if self.random_state is None else int(self.random_state)
            return suggested(ranges, run.judge_params, run.n_expected, seed)
        if self.search == "halving":
            n_first = FEWEST_EACH * len(prepared.folds) * prepared.n_classes
            return halving(sizes, run.judge, n, n_first)
        if self.search == "coarse-to-fine":
            return coarse_to_fine(sizes, run.judge, n)
        return whole_grid(sizes, run.judge, n)

    # Predicting.

    def predict(self, X):
        """What the best machine predicts."""
        return self._best().predict(X)

    def _only_scores(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Score:
        """The score of the first point, without any fit after that."""
        check_parameters(self, self._rules)
        self._groups = groups
        prepared = self._prepare(X, y, sample_weight)
        study = prepared.study(np.arange(prepared.n), prepared.folds)
        params = {name: values[0] for name, values in prepared.axes.items()}
        score: Score = study.solve([study.cell(params)])[0]
        return score

    def _folds(self, y: np.ndarray) -> list[Fold]:
        """As `cv`, `random_state` and groups have it."""
        return make_folds(
            self.cv,
            y,
            is_classifier=isinstance(self, ClassifierMixin),
            seed=self.random_state,
            groups=self._groups,
        )

    def _axes_of_cost(self, y: np.ndarray, C_ends: tuple[float, float]) -> Axes:
        """C, and epsilon where there is one."""
        axes: Axes = {}
        if hasattr(self, "Cs"):
            axes["C"] = spread(self.Cs, C_ends, 1.0)
        if hasattr(self, "epsilons"):
            axes["epsilon"] = spread(self.epsilons, EPSILON_ENDS, float(y.std()) or 1.0)
        return axes

    def _shown(self, name: str) -> Any:
        """An attribute of the best machine, once there is one."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{name} is known after fit only")
        return getattr(self.best_estimator_, name)

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "best_estimator_")
