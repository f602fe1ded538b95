"""Does the path over C find what separate fits find?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, search_C
from maxmargin.errors import InvalidInput


def scaled(load: Any) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


CLASSIFIERS = [
    LinearSVC(tol=1e-6),
    LinearSVC(loss="hinge", tol=1e-6),
    LogisticRegression(tol=1e-6),
]


@pytest.mark.parametrize("machine", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_scores_are_those_of_cold_fits(machine: Any, load: Any) -> None:
    X, y = scaled(load)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)

    found = search_C(machine, X, y, first_C=2.0**-6, last_C=4.0, cv=folds)

    np.testing.assert_allclose(found.Cs, 2.0 ** np.arange(-6, 3))
    for k, C in enumerate(found.Cs):
        cold = cross_val_score(clone(machine).set_params(C=C), X, y, cv=folds)
        np.testing.assert_allclose(found.fold_scores[k], cold, atol=0.01)
    assert found.best_score == found.scores.max()
    assert found.best_C == found.Cs[found.scores.argmax()]
    assert found.epsilons is None


def test_regression_finds_a_tube_too() -> None:
    X, y = scaled(load_diabetes)
    y = (y - y.mean()) / y.std()
    folds = KFold(4)
    machine = LinearSVR(tol=1e-6, loss="squared_epsilon_insensitive")

    found = search_C(
        machine, X, y, first_C=2.0**-8, last_C=1.0, epsilons=[0.0, 0.5], cv=folds
    )

    assert len(found.Cs) == 18
    assert found.epsilons is not None
    assert set(found.epsilons) == {0.0, 0.5}
    best = int(found.scores.argmin())
    assert (found.best_C, found.best_epsilon) == (found.Cs[best], found.epsilons[best])
    cold = clone(machine).set_params(C=found.best_C, epsilon=found.best_epsilon)
    scores = cross_val_score(cold, X, y, cv=folds, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(found.fold_scores[best], -scores, rtol=1e-3)


def test_the_path_begins_where_weights_are_nearly_zero() -> None:
    X, y = scaled(load_breast_cancer)

    found = search_C(LinearSVC(), X, y, cv=3)

    assert np.log2(found.Cs[0]) == int(np.log2(found.Cs[0]))
    weights = LinearSVC(C=found.Cs[0]).fit(X, y).coef_
    assert np.abs(weights).max() < 0.05
    assert found.Cs[-1] <= 1024.0


def test_the_estimator_is_left_alone() -> None:
    X, y = scaled(load_iris)
    machine = LinearSVC(C=3.0)

    search_C(machine, X, y, last_C=0.01, first_C=0.001)

    assert machine.C == 3.0
    assert not hasattr(machine, "coef_")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"first_C": 2.0, "last_C": 1.0}, "first_C <= last_C"),
        ({"first_C": -1.0}, "0 < first_C"),
        ({"last_C": np.inf}, "finite"),
        ({"epsilons": [0.1]}, "for regressions"),
    ],
)
def test_wrong_paths_are_refused(wrong: dict[str, Any], words: str) -> None:
    X, y = scaled(load_iris)

    with pytest.raises(InvalidInput, match=words):
        search_C(LinearSVC(), X, y, **wrong)
