"""How well does a machine predict what it has not seen? Fold by fold."""

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from maxmargin._threads import run_all
from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine
from maxmargin.estimators.selection import SVCCV, SVRCV
from maxmargin.estimators.selection_nu import NuSVCCV, NuSVRCV
from maxmargin.estimators.study import Score, make_folds
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.estimators.svr import SVR, NuSVR
from maxmargin.selection.folds import Fold

SHARED = {SVC: SVCCV, SVR: SVRCV, NuSVC: NuSVCCV, NuSVR: NuSVRCV}
AXES = {"Cs": "C", "gammas": "gamma", "epsilons": "epsilon", "nus": "nu"}


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    groups: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    random_state: int | None = None,
) -> dict[str, Any]:
    """Score a machine on samples that it was not fitted to.

    Folds of SVC, SVR, NuSVC and NuSVR share one kernel matrix; gamma='scale' is that
    of all samples. Other machines, and those with probability=True, are fitted fold by
    fold, on threads.

    Parameters
    ----------
    estimator : one of the machines of this package
        It is not fitted.
    X, y, sample_weight : as for its fit
    cv : int, splitter, list of splits or None
        Folds, by default 5; stratified for classifiers.
    groups : array-like of shape (n_samples,), default None
        Samples of one group are held out together.
    scoring : str, callable or None
        By default accuracy or R².
    random_state : int, default None
        Seed of shuffled folds; None leaves samples in order.

    Returns
    -------
    dict
        test_score, an array with the score of each fold; fit_time, seconds for a fold
        on average; kkt_violation, the largest of all folds.
    """
    if not isinstance(estimator, BaseMachine) or y is None:
        raise InvalidInput(
            "cross_validate needs a machine of this package and y, got "
            f"{type(estimator).__name__}; sklearn.model_selection.cross_validate takes "
            "any estimator."
        )
    cut = {"cv": cv, "groups": groups, "random_state": random_state}
    if type(estimator) in SHARED and not estimator._wants_probability:
        found = _share(estimator, (X, y, sample_weight), scoring, cut)
    else:
        found = _fit_each(estimator, (X, y, sample_weight), scoring, cut)
    if not found.is_complete:
        warnings.warn(
            f"time_limit={estimator.time_limit:g} ended folds before they were solved: "
            f"the largest KKT violation is {found.violation:.3g}. Raise time_limit.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return {
        "test_score": found.splits,
        "fit_time": found.seconds / len(found.splits),
        "kkt_violation": found.violation,
    }


def _share(
    estimator: Any, data: tuple[Any, Any, Any], scoring: Any, cut: dict[str, Any]
) -> Score:
    """All folds on one kernel matrix."""
    groups = cut.pop("groups")
    search = _as_search(estimator).set_params(scoring=scoring, **cut)
    found: Score = search._only_scores(*data, groups)
    return found


def _fit_each(
    estimator: Any, data: tuple[Any, Any, Any], scoring: Any, cut: dict[str, Any]
) -> Score:
    """A fit for every fold, on threads."""
    X, y, weight = data
    y, seed = column_or_1d(y), cut["random_state"]
    weight = None if weight is None else np.asarray(weight)
    kinds = {"is_classifier": is_classifier(estimator), "groups": cut["groups"]}
    folds = make_folds(cut["cv"], y, seed=seed, **kinds)
    began = time.monotonic()
    tasks = [
        partial(_hold_out, estimator, (X, y, weight), fold, scoring) for fold in folds
    ]
    done = run_all(tasks, estimator._n_threads())
    return Score(
        splits=np.array([score for score, _ in done]),
        seconds=time.monotonic() - began,
        violation=max(violation for _, violation in done),
        is_complete=True,
    )


def _as_search(estimator: Any) -> Any:
    """A search over the one point that the machine stands for."""
    search = SHARED[type(estimator)]()
    own, known = estimator.get_params(deep=False), search.get_params(deep=False)
    shared = {name: value for name, value in own.items() if name in known}
    points = {axis: [own[name]] for axis, name in AXES.items() if axis in known}
    return search.set_params(**shared | {"callback": None} | points)


def _hold_out(
    estimator: Any, data: tuple[Any, Any, Any], fold: Fold, scoring: Any
) -> tuple[float, float]:
    X, y, weight = data
    machine = clone(estimator).set_params(n_jobs=1)
    is_pairwise = getattr(machine, "kernel", None) == "precomputed"
    inside, outside = _safe_indexing(X, fold.inside), _safe_indexing(X, fold.outside)
    if is_pairwise:
        inside, outside = inside[:, fold.inside], outside[:, fold.inside]
    learnt, judged = {}, {}
    if weight is not None:
        learnt["sample_weight"] = weight[fold.inside]
        judged["sample_weight"] = weight[fold.outside]
    machine.fit(inside, y[fold.inside], **learnt)
    score = check_scoring(machine, scoring)(machine, outside, y[fold.outside], **judged)
    return float(score), float(np.max(machine.kkt_violation_))
