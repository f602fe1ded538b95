"""Does a search that optuna leads keep to its range, and repeat itself?"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from datasets import load
from sklearn.base import clone

from maxmargin import SVC, SVCCV, SVR, SVRCV, LinearSVCCV, NuSVCCV, cross_validate
from maxmargin.errors import InvalidInput, NotAvailable


@pytest.fixture
def optuna() -> Any:
    return pytest.importorskip("optuna", reason="optuna is not installed")


def test_points_lie_between_the_ends_and_are_scored_as_ever(optuna: Any) -> None:
    X, y = load("heart", 150)
    search = SVCCV(Cs=[0.1, 1000.0], gammas=["scale", 1e-3], cv=3, tol=1e-6)

    found = search.set_params(search="optuna", n_trials=12).fit(X, y)

    results = found.cv_results_
    C, gamma = (np.asarray(results[f"param_{name}"]) for name in ("C", "gamma"))
    widest = SVC(gamma="scale").fit(X, y)._gamma
    assert len(np.unique(C)) == len(np.unique(gamma)) == 12
    assert ((C >= 0.1) & (C <= 1000.0)).all()
    assert ((gamma >= 1e-3) & (gamma <= widest * (1 + 1e-12))).all()
    assert np.median(C) < 100.0  # ratios count, not differences
    for k in (0, 11):
        machine = SVC(tol=1e-6, **results["params"][k])
        expected = cross_validate(machine, X, y, cv=3)["test_score"].mean()
        assert results["mean_test_score"][k] == pytest.approx(expected)
    assert found.best_score_ == results["mean_test_score"].max()
    assert found.best_estimator_.C == found.C_ == C[found.best_index_]


def test_the_seed_decides_and_threads_do_not(optuna: Any) -> None:
    X, y = load("splice", 200)
    search = SVCCV(cv=3, search="optuna", n_trials=6)

    one, two = (clone(search).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    other = clone(search).set_params(random_state=3).fit(X, y)

    assert one.cv_results_["params"] == two.cv_results_["params"]
    scores = [s.cv_results_["mean_test_score"].tobytes() for s in (one, two)]
    assert scores[0] == scores[1]
    assert other.cv_results_["params"] != one.cv_results_["params"]


@pytest.mark.parametrize(
    "search",
    [
        SVRCV(Cs=[1.0, 100.0], gammas=[0.1], epsilons=[0.0, 1.0]),
        NuSVCCV(nus=[0.05, 0.3], gammas=[0.01, 1.0]),
        LinearSVCCV(Cs=[0.01, 10.0]),
    ],
    ids=str,
)
def test_every_search_can_be_led(search: Any, optuna: Any) -> None:
    X, y = load("mpg" if isinstance(search, SVRCV) else "heart", 120)
    search = clone(search).set_params(search="optuna", n_trials=5, cv=3)

    found = search.fit(X, y)

    assert len(found.cv_results_["params"]) == 5
    assert np.isfinite(found.best_score_)
    if isinstance(search, SVRCV):
        assert set(found.cv_results_["param_gamma"]) == {0.1}
        assert isinstance(found.best_estimator_, SVR)


def test_time_limit_ends_the_trials(optuna: Any) -> None:
    X, y = load("heart", 120)
    search = SVCCV(search="optuna", n_trials=40, cv=3, time_limit=1e-9)

    with pytest.warns(UserWarning) as caught:
        search.fit(X, y)

    assert any("tried 1 of 40 settings" in str(one.message) for one in caught)
    assert len(search.cv_results_["params"]) == 1


def test_optuna_says_nothing_of_its_own(
    optuna: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = load("heart", 60)
    before = optuna.logging.get_verbosity()

    SVCCV(search="optuna", n_trials=2, cv=2).fit(X, y)

    assert capsys.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before


def test_endless_ranges_are_refused(optuna: Any) -> None:
    X, y = load("heart", 60)

    with pytest.raises(InvalidInput, match="finite values of C"):
        SVCCV(Cs=[1.0, np.inf], search="optuna").fit(X, y)


def test_without_optuna_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    X, y = load("heart", 60)

    with pytest.raises(NotAvailable, match="pip install 'optuna>=4'"):
        SVCCV(search="optuna").fit(X, y)
