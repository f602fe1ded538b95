"""Do constructors take scikit-learn's words, and do messages say what is the matter?"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import SVC, SVCCV, LinearSVC, LinearSVCCV, LogisticRegression, NuSVC
from maxmargin.errors import InvalidInput, ModelFormatError
from maxmargin.solvers import Status

MIRRORED = (
    *("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"),
    *("LinearSVC", "LinearSVR"),
)


def draw() -> tuple[Any, Any]:
    return make_classification(80, 4, random_state=0)


# --------------------------------------------------------------- scikit-learn's words
@pytest.mark.parametrize("name", [*MIRRORED, "LogisticRegression"])
def test_scikit_learns_own_parameters_are_taken(name: str) -> None:
    X, y = draw()
    home = sklearn.linear_model if name == "LogisticRegression" else sklearn.svm
    words = getattr(home, name)().get_params()

    machine = getattr(maxmargin, name)(**words).fit(X, y)

    assert machine.status_ is Status.CONVERGED
    known = clone(machine).get_params()
    assert {key: known[key] for key in words} == words


@pytest.mark.parametrize(
    "words, penalty",
    [
        ({"l1_ratio": 1}, "l1"),
        ({"l1_ratio": 1.0, "penalty": "deprecated", "solver": "saga"}, "l1"),
        ({"l1_ratio": 0.0, "penalty": "l1"}, "l1"),
        ({"penalty": "deprecated", "solver": "lbfgs", "dual": False}, "l2"),
        ({"solver": "liblinear"}, "l2"),
        ({"solver": "newton-cholesky"}, "l2"),
    ],
    ids=str,
)
def test_scikit_learns_words_for_penalties_and_solvers(
    words: dict[str, Any], penalty: str, tmp_path: Path
) -> None:
    X, y = draw()

    machine = LogisticRegression(**words).fit(X, y)

    plain = LogisticRegression(penalty, dual=words.get("dual", "auto")).fit(X, y)
    assert machine.coef_.tobytes() == plain.coef_.tobytes()
    machine.save(tmp_path / "m.model", format="liblinear")
    again = maxmargin.load(tmp_path / "m.model")
    assert again.get_params()["penalty"] == penalty


@pytest.mark.parametrize(
    "words", [{"l1_ratio": 0.5}, {"penalty": "elasticnet"}, {"penalty": None}], ids=str
)
def test_mixtures_of_penalties_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(words))):
        LogisticRegression(**words).fit(*draw())


@pytest.mark.parametrize("kind", [SVC, LinearSVC, LogisticRegression])
def test_class_weights_may_name_a_class_whose_samples_weigh_nothing(kind: type) -> None:
    X, y = draw()
    y = y + 2 * (X[:, 0] > 0.5)
    weight = (y != 3).astype(float)

    machine = kind(class_weight={0: 2.0, 3: 4.0}).fit(X, y, weight)

    plain = kind(class_weight={0: 2.0}).fit(X[y != 3], y[y != 3])
    assert machine.classes_.tolist() == [0, 1, 2]
    assert machine.class_weight_.tolist() == [2.0, 1.0, 1.0]
    assert np.array_equal(machine.predict(X), plain.predict(X))


@pytest.mark.parametrize("search", [SVCCV(Cs=2, gammas=2), LinearSVCCV(Cs=2)])
def test_searches_know_classes_whose_samples_weigh_nothing(search: Any) -> None:
    X, y = draw()
    y = y + 2 * (X[:, 0] > 0.5)
    search = clone(search).set_params(cv=3, class_weight={0: 2.0, 3: 4.0})

    search.fit(X, y, sample_weight=(y != 3).astype(float))

    assert search.best_estimator_.class_weight_.tolist() == [2.0, 1.0, 1.0]
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("kind", [SVC, LinearSVC, LogisticRegression])
def test_class_weights_of_labels_that_y_does_not_hold(kind: type) -> None:
    X, y = draw()
    kind(class_weight={0: 2.0, 1: 1.0, 7: 3.0}).fit(X, y)

    with pytest.raises(InvalidInput, match=r"got \[7\].* no weight of \[1\]: correct"):
        kind(class_weight={0: 2.0, 7: 3.0}).fit(X, y)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_deprecated_probability_means_no_probabilities(kind: type) -> None:
    X, y = draw()
    machine = kind(probability="deprecated").fit(X, y)

    assert not hasattr(machine, "predict_proba")
    assert not hasattr(machine, "probA_")
    plain = kind().fit(X, y)
    assert machine.predict(X).tobytes() == plain.predict(X).tobytes()
    scores = [maxmargin.cross_validate(m, X, y)["test_score"] for m in (machine, plain)]
    assert np.array_equal(*scores)


def test_other_words_for_probability_are_refused() -> None:
    with pytest.raises(InvalidInput, match="True or False"):
        SVC(probability="yes").fit(*draw())


# ------------------------------------------------------------------------ named limits
@pytest.mark.parametrize(
    "machine, words",
    [
        (SVC(), "Solver terminated early (max_iter=-1, which stands for 1234 moves"),
        (LinearSVC(max_iter=-1), "max_iter=-1, which stands for 1234 iterations here"),
        (SVC(max_iter=7), "Solver terminated early (max_iter=7)."),
        (LinearSVC(max_iter=7), "(max_iter=7)"),
    ],
)
def test_warning_names_the_limit_that_was_met(machine: Any, words: str) -> None:
    machine.status_, machine.kkt_violation_ = Status.MAX_ITER, 0.5
    machine.n_iter_ = np.array([12, 1234])

    with pytest.warns(ConvergenceWarning, match=re.escape(words)):
        machine._warn_unless_converged()


def test_max_iter_of_a_fit_is_named() -> None:
    X, y = draw()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LinearSVC(max_iter=1, tol=1e-12).fit(X, y)

    assert "(max_iter=1)" in str(caught[0].message)


# ------------------------------------------------------------------------ what is where
@pytest.mark.parametrize("machine", [SVC(), sklearn.svm.LinearSVC(), LinearSVCCV()])
def test_search_of_C_says_which_machines_it_takes(machine: Any) -> None:
    name = type(machine).__name__

    with pytest.raises(InvalidInput, match=f"LogisticRegression .* got {name}; SVCCV"):
        maxmargin.search_C(machine, *draw())


@pytest.mark.parametrize("is_fitted", [False, True])
@pytest.mark.parametrize("search", [SVCCV(Cs=1, gammas=1), LinearSVCCV(Cs=1)])
def test_search_says_what_to_save(search: Any, is_fitted: bool, tmp_path: Path) -> None:
    search = clone(search)
    if is_fitted:
        search.fit(*draw())

    with pytest.raises(ModelFormatError, match="save its best_estimator_ after fit"):
        search.save(tmp_path / "m")


def test_best_machine_of_a_search_can_be_saved(tmp_path: Path) -> None:
    X, y = draw()
    search = SVCCV(Cs=2, gammas=2, time_limit=1e6).fit(X, y)

    search.best_estimator_.save(tmp_path / "m")

    again = maxmargin.load(tmp_path / "m")
    assert again.predict(X).tobytes() == search.predict(X).tobytes()


@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression])
def test_progress_of_the_l1_penalty_counts_active_features(
    kind: type, capsys: Any
) -> None:
    kind(penalty="l1", dual=False, verbose=True).fit(*draw())

    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert "0 active" not in {line.split(", ")[-1] for line in lines}


@pytest.mark.parametrize("kind", [SVC, maxmargin.SVR])
def test_progress_counts_active_variables(kind: type, capsys: Any) -> None:
    X, y = make_classification(400, 5, random_state=0)

    kind(verbose=True).fit(X, y)

    lines = capsys.readouterr().out.splitlines()
    counts = [int(line.split()[-2]) for line in lines]
    assert len(counts) > 1
    assert 0 < min(counts) <= max(counts) == 400
