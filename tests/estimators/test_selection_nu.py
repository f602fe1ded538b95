"""Do searches for nu find what fits of every fold would find?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import load
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV

from maxmargin import NuSVC, NuSVCCV, NuSVR, NuSVRCV, cross_validate
from maxmargin.errors import InvalidInput

SHARP = 1e-6
NUS, GAMMAS = [0.1, 0.2, 0.4], [0.01, 0.3]


def splits_of(results: dict[str, Any]) -> np.ndarray:
    names = sorted(name for name in results if name.startswith("split"))
    return np.array([results[name] for name in names])


@pytest.mark.parametrize("name", ["splice", "vehicle"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_scores_are_those_of_fits_fold_by_fold(name: str, class_weight: Any) -> None:
    X, y = load(name, 260)
    words = {"tol": SHARP, "class_weight": class_weight}

    ours = NuSVCCV(nus=NUS, gammas=GAMMAS, cv=3, **words).fit(X, y)
    grid = {"nu": NUS, "gamma": GAMMAS}
    theirs = GridSearchCV(NuSVC(**words), grid, cv=3).fit(X, y)

    mine, others = ours.cv_results_, theirs.cv_results_
    assert mine["params"] == others["params"]
    assert np.abs(splits_of(mine) - splits_of(others)).max() < 1e-12
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_estimator_.nu == ours.nu_
    assert (mine["kkt_violation"] <= SHARP).all()
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_regressions_are_scored_alike(kernel: str) -> None:
    X, y = load("mpg", 200)
    # with C = 100, gamma = 0.05 and C = 0.1, gamma = 0.5 one cubic problem comes twice
    grid = {"C": [0.1, 10.0, 90.0], "gamma": [0.05, 0.5], "nu": [0.2, 0.6]}
    axes = {"Cs": grid["C"], "gammas": grid["gamma"], "nus": grid["nu"]}

    ours = NuSVRCV(kernel=kernel, tol=SHARP, cv=3, **axes).fit(X, y)
    theirs = GridSearchCV(NuSVR(kernel=kernel, tol=SHARP), grid, cv=3).fit(X, y)

    mine, others = ours.cv_results_, theirs.cv_results_
    assert mine["params"] == others["params"]
    assert np.abs(splits_of(mine) - splits_of(others)).max() < 1e-4
    assert ours.best_params_ == theirs.best_params_


def test_larger_sets_and_less_memory_lead_to_the_same_scores() -> None:
    X, y = load("splice", 700)
    axes = {"nus": [0.1, 0.3], "gammas": [0.03], "cv": 3, "tol": SHARP}

    held = NuSVCCV(**axes).fit(X, y).cv_results_
    computed = NuSVCCV(cache_size=4, **axes).fit(X, y).cv_results_

    assert np.array_equal(splits_of(held), splits_of(computed))


@pytest.mark.parametrize("search", [NuSVCCV(gammas=[0.1]), NuSVRCV(Cs=[1.0, 30.0])])
def test_threads_change_no_digit(search: Any) -> None:
    X, y = load("vehicle" if isinstance(search, NuSVCCV) else "mpg", 250)
    search.set_params(gammas=[0.1, 0.3], cv=3)

    one, two = (search.set_params(n_jobs=n).fit(X, y).cv_results_ for n in (1, 2))

    assert splits_of(one).tobytes() == splits_of(two).tobytes()


# --------------------------------------------------------------------- what has no nu
def test_nu_without_a_solution_has_no_score_as_in_grid_search() -> None:
    X, y = load("heart", 150)
    rare = np.concatenate((np.flatnonzero(y == y[0])[:60], np.flatnonzero(y != y[0])))
    X, y = X[rare[:80]], y[rare[:80]]

    with pytest.warns(UserWarning, match="nu must not exceed twice"):
        ours = NuSVCCV(nus=[0.1, 0.9], gammas=[0.1], cv=3, tol=SHARP).fit(X, y)
    grid = {"nu": [0.1, 0.9], "gamma": [0.1]}
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        theirs = GridSearchCV(NuSVC(tol=SHARP), grid, cv=3).fit(X, y)

    mine, others = ours.cv_results_, theirs.cv_results_
    assert np.isnan(mine["mean_test_score"]).tolist() == [False, True]
    assert np.allclose(splits_of(mine), splits_of(others), equal_nan=True)
    assert mine["rank_test_score"].tolist() == others["rank_test_score"].tolist()
    assert ours.nu_ == 0.1


def test_a_search_without_any_solution_is_refused() -> None:
    X, y = load("heart", 60)
    y = np.where(np.arange(60) < 6, 0, 1)

    with pytest.raises(InvalidInput, match="nu must not exceed twice"):
        NuSVCCV(nus=[0.5, 0.9], gammas=[0.1], cv=3).fit(X, y)


@pytest.mark.parametrize("n_rare", [12, 75])
def test_numbers_of_nus_stay_where_solutions_are(n_rare: int) -> None:
    X, _ = load("heart", 150)
    y = np.where(np.arange(150) < n_rare, "rare", "common")

    search = NuSVCCV(nus=4, gammas=["scale"], cv=3).fit(X, y)

    nus = search.cv_results_["param_nu"]
    assert np.allclose(nus, np.linspace(0.1, 0.9, 4) * 2.0 * n_rare / 150)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# ----------------------------------------------------------------------- one point only
@pytest.mark.parametrize("machine", [NuSVC(nu=0.3), NuSVR(nu=0.3, C=5.0)], ids=str)
def test_folds_of_cross_validation_share_a_kernel(machine: Any) -> None:
    X, y = load("heart" if isinstance(machine, NuSVC) else "mpg", 150)
    machine.set_params(gamma=0.1, tol=SHARP)

    found = cross_validate(machine, X, y, cv=3)

    grid = GridSearchCV(machine, {"nu": [0.3]}, cv=3).fit(X, y)
    theirs = splits_of(grid.cv_results_)[:, 0]
    assert np.allclose(found["test_score"], theirs, atol=1e-5)
