"""Do searches take what the machines themselves take, and mean the same by it?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from datasets import load
from sklearn.base import clone, is_classifier
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    NuSVC,
    NuSVCCV,
    NuSVR,
    NuSVRCV,
    cross_validate,
)
from maxmargin.errors import InvalidInput

SHARP = 1e-7
CLASSIFIERS = [
    (SVCCV(Cs=[1.0, 10.0], gammas=[0.05]), SVC(), {"C": [1.0, 10.0], "gamma": [0.05]}),
    (
        NuSVCCV(nus=[0.1, 0.2], gammas=[0.05]),
        NuSVC(),
        {"nu": [0.1, 0.2], "gamma": [0.05]},
    ),
    (LinearSVCCV(Cs=[0.1, 1.0]), LinearSVC(), {"C": [0.1, 1.0]}),
]
REGRESSORS = [
    (SVRCV(Cs=[1.0, 10.0], gammas=[0.05]), SVR(), {"C": [1.0, 10.0], "gamma": [0.05]}),
    (
        NuSVRCV(Cs=[1.0, 10.0], gammas=[0.05]),
        NuSVR(),
        {"C": [1.0, 10.0], "gamma": [0.05]},
    ),
    (LinearSVRCV(Cs=[0.1, 1.0]), LinearSVR(), {"C": [0.1, 1.0]}),
]
every_search = pytest.mark.parametrize(
    ("search", "machine", "grid"),
    CLASSIFIERS + REGRESSORS,
    ids=lambda value: type(value).__name__,
)
every_classifier = pytest.mark.parametrize(
    ("search", "machine", "grid"),
    CLASSIFIERS,
    ids=lambda value: type(value).__name__,
)


def data_for(search: Any) -> tuple[Any, Any]:
    return load("heart" if is_classifier(search) else "mpg", 150)


def assert_alike(
    search: Any, machine: Any, grid: Any, X: Any, y: Any, **fit: Any
) -> Any:
    """Both searches give every fold the same scores; ours is returned."""
    same = {"tol": SHARP}
    if "class_weight" in search.get_params():
        same["class_weight"] = search.class_weight
    ours = clone(search).set_params(**same, cv=search.cv or 3).fit(X, y, **fit)
    theirs = GridSearchCV(
        clone(machine).set_params(**same),
        grid,
        cv=search.cv or 3,
        scoring=search.scoring,
    ).fit(X, y, **fit)
    for k in range(3):
        name = f"split{k}_test_score"
        mine, others = ours.cv_results_[name], theirs.cv_results_[name]
        assert np.allclose(mine, others, atol=2e-5), name
    return ours


# ------------------------------------------------------------------ weights and groups
@every_search
def test_sample_weights_count_in_fits_and_scores(
    search: Any, machine: Any, grid: Any
) -> None:
    X, y = data_for(search)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)

    assert_alike(search, machine, grid, X, y, sample_weight=weight)


@every_search
def test_cross_validation_counts_weights_alike(
    search: Any, machine: Any, grid: Any
) -> None:
    X, y = data_for(search)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    first = {name: values[0] for name, values in grid.items()}
    machine = clone(machine).set_params(tol=SHARP, **first)

    found = cross_validate(machine, X, y, cv=3, sample_weight=weight)

    theirs = GridSearchCV(machine, {"tol": [SHARP]}, cv=3)
    results = theirs.fit(X, y, sample_weight=weight).cv_results_
    splits = [results[f"split{k}_test_score"][0] for k in range(3)]
    assert np.allclose(found["test_score"], splits, atol=2e-5)


@every_classifier
def test_class_weights_are_those_of_each_fold(
    search: Any, machine: Any, grid: Any
) -> None:
    X, y = load("heart", 150)
    search = clone(search).set_params(class_weight="balanced")

    assert_alike(search, machine, grid, X, y)


@every_search
def test_groups_are_held_out_together(search: Any, machine: Any, grid: Any) -> None:
    X, y = data_for(search)
    search = clone(search).set_params(cv=GroupKFold(3))

    assert_alike(search, machine, grid, X, y, groups=np.arange(len(y)) // 7)


# --------------------------------------------------------------- labels and sparse rows
@every_classifier
def test_labels_may_be_words(search: Any, machine: Any, grid: Any) -> None:
    X, y = load("heart", 150)
    y = np.where(y == y[0], "sound", "ill")

    ours = assert_alike(search, machine, grid, X, y)

    assert set(ours.predict(X)) == {"sound", "ill"}
    assert ours.classes_.tolist() == ["ill", "sound"]


@every_search
def test_sparse_rows_may_have_long_indices(
    search: Any, machine: Any, grid: Any
) -> None:
    X, y = data_for(search)
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)

    ours = assert_alike(search, machine, grid, X, y)

    assert np.isfinite(ours.score(X, y))


# ---------------------------------------------------------------------------- scorers
@every_search
def test_scorers_of_predictions(search: Any, machine: Any, grid: Any) -> None:
    X, y = data_for(search)
    error = make_scorer(mean_absolute_error, greater_is_better=False)
    search = clone(search).set_params(scoring=error)

    ours = assert_alike(search, machine, grid, X, y)

    assert ours.best_score_ <= 0.0


@every_search
def test_scorers_of_probabilities_are_refused_at_once(
    search: Any, machine: Any, grid: Any
) -> None:
    X, y = data_for(search)
    search = clone(search).set_params(scoring="neg_log_loss", callback=pytest.fail)

    with pytest.raises(InvalidInput, match="asks for probabilities"):
        search.fit(X, y)


def test_cross_validation_heeds_probabilities() -> None:
    X, y = load("heart", 150)
    machine = SVC(probability=True, random_state=0)

    found = cross_validate(machine, X, y, cv=3, scoring="neg_log_loss")

    assert (found["test_score"] < 0.0).all()
    assert found["test_score"].mean() > np.log(0.5)


# -------------------------------------------------------------- kernels and odd values
def count(a: Any, b: Any) -> np.ndarray:
    """How many letters two words share: no vectors, no gamma."""
    return np.array([[float(len(set(u) & set(v))) for v in b] for u in a])


def test_a_function_is_asked_once_for_all_points() -> None:
    X, y = load("heart", 150)
    calls = []

    def kernel(a: Any, b: Any) -> Any:
        calls.append(len(a))
        return (0.1 * a @ b.T + 1.0) ** 2

    axes = {"Cs": [0.1, 1.0, 10.0], "cv": 3, "tol": SHARP}
    ours = SVCCV(kernel=kernel, **axes).fit(X, y)
    given = SVCCV(kernel="precomputed", **axes).fit(kernel(X, X), y)

    assert "param_gamma" not in ours.cv_results_
    means = "mean_test_score"
    assert np.array_equal(ours.cv_results_[means], given.cv_results_[means])
    assert np.array_equal(ours.predict(X), given.predict(kernel(X, X)))
    assert calls.count(150) == 4  # the search with its last fit, predict, and we: two


@pytest.mark.parametrize(
    "search", [SVCCV(Cs=[1.0, 9.0]), SVRCV(Cs=[1.0, 9.0]), NuSVCCV(nus=[0.2])], ids=str
)
def test_samples_may_be_anything_a_function_understands(search: Any) -> None:
    words = [f"{'abcdef'[i % 6]}{'ghij'[i % 4]}{'klmno'[i % 5]}" for i in range(60)]
    y = np.array(["a" in w or "k" in w for w in words]).astype(float)
    search = clone(search).set_params(kernel=count, cv=3)

    found = search.fit(words, y if not is_classifier(search) else y.astype(int))

    assert found.predict(words).shape == (60,)
    assert found.best_score_ > 0.3
    plain = cross_validate(found.best_estimator_, words, y.astype(int), cv=3)
    assert plain["test_score"].mean() == pytest.approx(found.best_score_, abs=1e-3)


def test_a_function_that_needs_too_much_memory_is_refused() -> None:
    X, y = load("heart", 150)

    with pytest.raises(InvalidInput, match="Raise cache_size"):
        SVCCV(Cs=[1.0], kernel=lambda a, b: a @ b.T, cache_size=0.1).fit(X, y)


def test_boxes_may_be_endless() -> None:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 1))
    y = (X[:, 0] > 0.1).astype(int)
    grid = {"C": [1.0, np.inf], "gamma": [1.0]}

    ours = SVCCV(Cs=grid["C"], gammas=grid["gamma"], cv=4, tol=SHARP).fit(X, y)
    theirs = GridSearchCV(SVC(tol=SHARP), grid, cv=4).fit(X, y)

    assert np.array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


# ------------------------------------------------------------------------- the last fit
@pytest.mark.parametrize("name", ["splice", "vehicle"])
def test_the_last_fit_is_that_of_a_plain_machine(name: str) -> None:
    X, y = load(name, 300)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)

    search = SVCCV(Cs=[1.0, 10.0], gammas=[0.05, 0.1], cv=3, tol=SHARP)
    found = search.fit(X, y, sample_weight=weight).best_estimator_

    plain = clone(found).fit(X, y, sample_weight=weight)
    assert np.array_equal(found.support_, plain.support_)
    assert np.allclose(found.dual_coef_, plain.dual_coef_, atol=1e-4)
    assert np.allclose(
        found.decision_function(X), plain.decision_function(X), atol=1e-5
    )
    assert set(vars(found)) == set(vars(plain))
    assert np.max(found.kkt_violation_) <= SHARP
