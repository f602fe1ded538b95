"""Does a search find what fits of every fold would find, and say so as GridSearchCV?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import load
from scipy import sparse
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  its import enables it
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    ShuffleSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    cross_validate,
)
from maxmargin.errors import InvalidInput

CS, GAMMAS = [0.1, 10.0, 1000.0], [0.01, 0.3]
SHARP = 1e-6


def both(
    ours: Any, machine: Any, grid: dict[str, Any], X: Any, y: Any
) -> tuple[Any, Any]:
    theirs = GridSearchCV(machine, grid, cv=ours.cv, scoring=ours.scoring)
    return [ours.fit(X, y), theirs.fit(X, y)]


def assert_alike(ours: Any, theirs: Any, tolerance: float) -> None:
    mine, others = ours.cv_results_, theirs.cv_results_
    assert set(others) <= set(mine)
    assert mine["params"] == others["params"]
    for name in others:
        if "score" in name and "time" not in name and "rank" not in name:
            assert np.abs(mine[name] - others[name]).max() <= tolerance, name


# ------------------------------------------------------------------------------- scores
@pytest.mark.parametrize("name", ["splice", "vehicle", "a1a"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_scores_are_those_of_fits_fold_by_fold(name: str, class_weight: Any) -> None:
    X, y = load(name, 260)
    words = {"tol": SHARP, "class_weight": class_weight}

    ours, theirs = both(
        SVCCV(Cs=CS, gammas=GAMMAS, cv=3, **words),
        SVC(**words),
        {"C": CS, "gamma": GAMMAS},
        X,
        y,
    )

    assert_alike(ours, theirs, 1e-12)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    assert np.array_equal(
        ours.cv_results_["rank_test_score"], theirs.cv_results_["rank_test_score"]
    )
    assert (ours.cv_results_["kkt_violation"] <= SHARP).all()
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_regressions_are_scored_alike(kernel: str) -> None:
    X, y = load("mpg", 200)
    grid = {"C": [0.1, 10.0], "epsilon": [0.05, 0.3], "gamma": [0.05, 0.5]}
    search = SVRCV(
        Cs=grid["C"], epsilons=grid["epsilon"], gammas=grid["gamma"], kernel=kernel
    )

    ours, theirs = both(
        search.set_params(tol=SHARP, cv=3),
        SVR(kernel=kernel, tol=SHARP),
        grid,
        X,
        y,
    )

    assert_alike(ours, theirs, 1e-4)
    assert ours.best_params_ == theirs.best_params_


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "f1_macro", make_scorer(lambda a, b: 1)]
)
def test_any_scorer_of_answers_can_be_used(scoring: Any) -> None:
    X, y = load("splice", 200)

    ours, theirs = both(
        SVCCV(Cs=[1.0, 10.0], gammas=[0.05], cv=3, scoring=scoring, tol=SHARP),
        SVC(tol=SHARP),
        {"C": [1.0, 10.0], "gamma": [0.05]},
        X,
        y,
    )

    assert_alike(ours, theirs, 1e-6)


@pytest.mark.parametrize(
    "search", [SVCCV(), SVCCV(kernel="precomputed"), LinearSVCCV()]
)
def test_folds_of_every_kind(search: Any) -> None:
    X, y = load("heart", 150)
    X = X @ X.T if search.get_params().get("kernel") == "precomputed" else X
    search = clone(search).set_params(Cs=[0.5, 5.0], cv=ShuffleSplit(4, random_state=0))

    search.fit(X, y)

    assert search.n_splits_ == 4
    assert np.isfinite(search.cv_results_["split3_test_score"]).all()
    assert search.score(X, y) > 0.7


def test_groups_are_held_out_together() -> None:
    X, y = load("heart", 150)
    group = np.arange(len(y)) // 10
    settings = {"Cs": [1.0], "gammas": [0.1], "tol": SHARP}

    seeded = SVCCV(cv=3, **settings).fit(X, y, groups=group)
    given = SVCCV(cv=GroupKFold(3), **settings).fit(X, y, groups=group)

    assert np.isfinite(seeded.best_score_)
    for fold in GroupKFold(3).split(X, y, group):
        machine = SVC(C=1.0, gamma=0.1, tol=SHARP).fit(X[fold[0]], y[fold[0]])
        score = machine.score(X[fold[1]], y[fold[1]])
        splits = [given.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
        assert np.abs(np.array(splits) - score).min() < 1e-12


def test_weights_and_sparse_rows_count_as_in_fits() -> None:
    X, y = load("a1a", 200)
    X = sparse.csr_matrix(X)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    grid = {"C": [1.0, 10.0], "gamma": [0.05]}

    ours = SVCCV(Cs=grid["C"], gammas=grid["gamma"], cv=3, tol=SHARP)
    theirs = GridSearchCV(SVC(tol=SHARP), grid, cv=3)
    ours.fit(X, y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)

    assert_alike(ours, theirs, 1e-12)


@pytest.mark.parametrize(
    ("search", "machine"),
    [(LinearSVCCV(tol=1e-8), LinearSVC()), (LinearSVRCV(tol=1e-8), LinearSVR())],
    ids=["classes", "numbers"],
)
def test_linear_searches_agree_with_fits(search: Any, machine: Any) -> None:
    X, y = load("heart" if isinstance(machine, LinearSVC) else "mpg", 150)
    machine = machine.set_params(tol=1e-8)
    search = clone(search).set_params(Cs=[0.01, 1.0, 10.0], cv=3)
    grid = {"C": [0.01, 1.0, 10.0]}
    if isinstance(machine, LinearSVR):
        search.set_params(epsilons=[0.0, 0.2])
        grid["epsilon"] = [0.0, 0.2]

    ours, theirs = both(search, machine, grid, X, y)

    assert_alike(ours, theirs, 1e-5)
    assert ours.best_params_ == theirs.best_params_
    assert np.allclose(ours.coef_, theirs.best_estimator_.coef_, atol=1e-5)


# ------------------------------------------------------------------------ ties, threads
def test_of_equals_the_first_is_best() -> None:
    X = np.array([[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0]] * 3)
    y = (X[:, 0] > 0).astype(int)

    search = SVCCV(Cs=[100.0, 1.0, 10.0], gammas=[0.5, 0.1], cv=3).fit(X, y)

    assert search.best_score_ == 1.0
    assert search.best_index_ == 0
    assert search.best_params_ == {"C": 100.0, "gamma": 0.5}
    assert (search.cv_results_["rank_test_score"] == 1).all()


@pytest.mark.parametrize("name", ["vehicle", "splice"])
def test_threads_change_no_digit(name: str) -> None:
    X, y = load(name, 250)

    one, two = (SVCCV(Cs=CS, gammas=GAMMAS, cv=3, n_jobs=n).fit(X, y) for n in (1, 2))

    for key in ("mean_test_score", "kkt_violation"):
        assert one.cv_results_[key].tobytes() == two.cv_results_[key].tobytes()
    assert one.best_params_ == two.best_params_


# --------------------------------------------------------------------------- strategies
@pytest.mark.parametrize("how", ["coarse-to-fine", "halving"])
def test_cheaper_searches_come_close_to_the_grid(how: str) -> None:
    X, y = load("splice", 400)
    settings = {"Cs": [0.1, 1.0, 10.0, 100.0], "gammas": 4, "cv": 3}

    whole = SVCCV(**settings).fit(X, y)
    cheap = SVCCV(search=how, **settings).fit(X, y)

    n_whole, n_cheap = (len(s.cv_results_["params"]) for s in (whole, cheap))
    assert cheap.best_score_ >= whole.best_score_ - 0.02
    if how == "coarse-to-fine":
        assert n_cheap < n_whole
    else:
        resources = cheap.cv_results_["n_resources"]
        assert resources[0] < 400 == resources[-1]
        rounds = cheap.cv_results_["iter"]
        assert rounds[cheap.best_index_] == max(rounds) > 0


def test_time_limit_ends_with_the_best_so_far() -> None:
    X, y = load("splice", 400)
    seen: list[Any] = []
    search = SVCCV(Cs=8, gammas=8, cv=3, time_limit=1e-6, callback=seen.append)

    with pytest.warns(UserWarning, match="The search ended at time_limit") as caught:
        search.fit(X, y)

    finished = np.isfinite(search.cv_results_["mean_test_score"])
    assert 1 <= finished.sum() == len(seen) < 64
    assert f"tried {len(seen)} of 64 settings" in str(caught[0].message)
    assert search.cv_results_["is_tried"].tolist() == finished.tolist()
    assert search.best_score_ == max(report.score for report in seen)


def test_verbose_says_every_point(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = load("heart", 60)

    SVCCV(Cs=[1.0, 2.0], gammas=["scale"], cv=2, verbose=True).fit(X, y)

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("[maxmargin] 1 of 2: C=1, gamma=scale, score 0.")


# -------------------------------------------------------------- scikit-learn's own ways
def test_plain_machines_work_in_searches_and_pipelines() -> None:
    X, y = load("heart", 150)
    machine = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.01, 0.1]}

    whole = GridSearchCV(machine, grid, cv=3, n_jobs=2).fit(X, y)
    halved = HalvingGridSearchCV(machine, grid, cv=3, random_state=0).fit(X, y)

    assert min(whole.best_score_, halved.best_score_) > 0.7


def test_a_search_works_in_a_pipeline() -> None:
    X, y = load("heart", 150)

    machine = make_pipeline(StandardScaler(), SVCCV(Cs=[1.0, 10.0], gammas=[0.05]))

    assert machine.fit(X, y).score(X, y) > 0.7


# ----------------------------------------------------------------------- cross_validate
@pytest.mark.parametrize(
    "machine", [SVC(C=3.0, tol=SHARP), SVC(kernel="linear"), LinearSVC()], ids=str
)
def test_cross_validation_is_that_of_fits(machine: Any) -> None:
    X, y = load("heart", 150)

    found = cross_validate(machine, X, y, cv=3, random_state=4)
    again = cross_validate(machine, X, y, cv=3, random_state=4)
    other = cross_validate(machine, X, y, cv=3, random_state=5)

    assert found["test_score"].shape == (3,)
    assert np.array_equal(found["test_score"], again["test_score"])
    assert not np.array_equal(found["test_score"], other["test_score"])
    assert found["test_score"].mean() > 0.7
    assert found["kkt_violation"] <= machine.tol


def test_cross_validation_takes_only_our_machines() -> None:
    with pytest.raises(InvalidInput, match="got StandardScaler"):
        cross_validate(StandardScaler(), [[0.0], [1.0]], [0, 1])


# ----------------------------------------------------------------------- hostile inputs
def test_a_class_missing_in_a_fold_is_not_voted_for() -> None:
    X, y = load("vehicle", 150)
    splits = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in np.unique(y)]

    ours, theirs = both(
        SVCCV(Cs=[1.0], gammas=[0.1], cv=splits, tol=SHARP),
        SVC(tol=SHARP),
        {"C": [1.0], "gamma": [0.1]},
        X,
        y,
    )

    assert_alike(ours, theirs, 1e-12)
    assert ours.best_score_ == 0.0


def test_folds_with_one_class_are_refused() -> None:
    X, y = load("heart", 60)
    splits = [(np.flatnonzero(y == k), np.flatnonzero(y != k)) for k in (0, 1)]

    with pytest.raises(InvalidInput, match="at least two classes"):
        SVCCV(Cs=[1.0], gammas=[0.1], cv=splits).fit(X, y)


@pytest.mark.parametrize("search", [SVCCV(), LinearSVCCV()])
def test_impossible_inputs_are_refused_and_leave_no_trace(search: Any) -> None:
    X, y = load("heart", 60)
    search = clone(search).set_params(Cs=[1.0])
    holes = X.copy()
    holes[3, 2] = np.nan

    with pytest.raises(ValueError, match="NaN"):
        search.fit(holes, y)
    with pytest.raises(ValueError, match=r"folds|n_splits"):
        search.set_params(cv=70).fit(X, y)
    with pytest.raises(ValueError, match=r"splits|folds"):
        search.set_params(cv=1).fit(X, y)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize(
    "wrong",
    [
        {"Cs": []},
        {"Cs": [1.0, -1.0]},
        {"Cs": 0},
        {"gammas": "scale"},
        {"search": "random"},
        {"kernel": "cosine"},
        {"scoring": "neg_log_loss"},
        {"scoring": ["accuracy", "f1"]},
        {"random_state": -1},
    ],
    ids=str,
)
def test_impossible_parameters_are_refused(wrong: dict[str, Any]) -> None:
    X, y = load("heart", 60)

    with pytest.raises(InvalidInput, match=f"The '{next(iter(wrong))}' parameter"):
        SVCCV(**wrong).fit(X, y)
