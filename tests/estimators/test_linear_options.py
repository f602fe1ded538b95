"""Which options of linear machines go together, and what does each of them do?"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_machines import (
    FREE,
    MACHINES,
    SQUARED,
    data_for,
    every_machine,
)
from naive_linear import assert_optimal_linear
from naive_linear import machine as name_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from surface import assert_refused, assert_unfitted, draw, overlapping, values

from maxmargin import LinearOneClassSVM, LinearSVC, LinearSVR, LogisticRegression
from maxmargin.errors import InvalidInput
from maxmargin.solvers import Progress, Status

# ------------------------------------------------------------------------ combinations
SOLVERS = [
    LinearSVC(solver="dcd"),
    LinearSVC(dual=True),
    LinearSVC(dual=False),
    LinearSVC(dual=True, solver="dcd"),
    LinearSVC(solver="newton"),
    LinearSVC(dual=False, solver="newton-cg"),
    LinearSVC(solver="newton-cg", penalize_intercept=False),
    LinearSVC(dual=False, penalize_intercept=False),
    LinearSVC(loss="hinge", dual=True),
    LinearSVC(loss="hinge", solver="dcd"),
    LinearSVC(loss="hinge", solver="interior"),
    LinearSVC(loss="hinge", solver="proximal"),
    LinearSVC(loss="hinge", dual=True, solver="interior", penalize_intercept=False),
    LinearSVC(loss="hinge", dual=True, penalize_intercept=False),
    LinearSVC(penalty="l1"),
    LinearSVC(penalty="l1", dual=False, solver="cd"),
    LinearSVC(penalty="l1", penalize_intercept=False),
    LinearSVC(penalty="l1", loss="hinge", multi_class="crammer_singer"),
    LinearSVC(multi_class="crammer_singer", dual=False, solver="dcd"),
    LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, penalize_intercept=False
    ),
    LinearSVR(dual=True, solver="dcd"),
    LinearSVR(solver="interior"),
    LinearSVR(solver="proximal", penalize_intercept=False),
    LinearSVR(loss=SQUARED, dual=True),
    LinearSVR(loss=SQUARED, dual=False, solver="newton"),
    LogisticRegression(dual=True),
    LogisticRegression(dual=False, solver="newton"),
    LogisticRegression(solver="dcd"),
    LogisticRegression(penalty="l1", dual=False, solver="cd"),
    LinearOneClassSVM(solver="interior"),
    LinearOneClassSVM(solver="proximal"),
]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("machine", SOLVERS, ids=str)
def test_supported(machine: Any, layout: Any) -> None:
    X, y = data_for(machine)

    fitted = clone(machine).set_params(max_iter=100_000).fit(layout(X), y)

    assert_optimal_linear(fitted, X, y)


UNSUPPORTED = {
    "The combination of penalty='l1' and loss='hinge' is not supported": [
        LinearSVC(penalty="l1", loss="hinge", dual=True),
        LinearSVC(penalty="l1", loss="hinge", dual=False),
        LinearSVC(penalty="l1", loss="hinge"),
    ],
    "are not supported when dual=True": [
        LinearSVC(penalty="l1", dual=True),
        LogisticRegression(penalty="l1", dual=True),
    ],
    "are not supported when dual=False": [
        LinearSVC(loss="hinge", dual=False),
        LinearSVR(dual=False),
    ],
    "multi_class='crammer_singer' and penalize_intercept=False": [
        LinearSVC(multi_class="crammer_singer", penalize_intercept=False),
    ],
    "dual=True needs penalize_intercept=True": [
        LinearSVC(dual=True, penalize_intercept=False),
        LogisticRegression(dual=True, penalize_intercept=False),
    ],
    "does not fit": [
        LinearSVC(loss="hinge", solver="newton"),
        LinearSVC(loss="hinge", solver="newton-cg"),
        LinearSVC(solver="interior"),
        LinearSVC(solver="proximal"),
        LinearSVC(solver="cd"),
        LinearSVC(solver="dcd", penalize_intercept=False),
        LinearSVC(solver="newton", dual=True),
        LinearSVC(solver="dcd", dual=False),
        LinearSVC(penalty="l1", solver="newton"),
        LinearSVC(multi_class="crammer_singer", solver="newton"),
        LinearSVR(solver="newton"),
        LinearSVR(loss=SQUARED, solver="interior"),
        LogisticRegression(solver="interior"),
        LogisticRegression(penalty="l1", solver="dcd"),
        LinearOneClassSVM(solver="newton"),
        LinearOneClassSVM(solver="cd"),
    ],
}


@pytest.mark.parametrize("reason", UNSUPPORTED)
def test_unsupported(reason: str) -> None:
    X, y = overlapping(20)
    form = (
        f"Unsupported set of arguments: .*{re.escape(reason)}.*, Parameters: penalty="
    )

    for machine in UNSUPPORTED[reason]:
        assert_refused(machine, X, y, form)


def test_refusal_is_in_scikit_learns_words() -> None:
    machine = LinearSVC(penalty="l1", loss="hinge", dual=np.True_)

    with pytest.raises(InvalidInput) as caught:
        machine.fit(*overlapping(20))

    assert str(caught.value) == (
        "Unsupported set of arguments: The combination of penalty='l1' and "
        "loss='hinge' is not supported, Parameters: penalty='l1', loss='hinge', "
        "dual=True"
    )


BAD = {
    "C": [0.0, -1.0, np.inf, np.nan, "1"],
    "nu": [0.0, 1.5, np.nan],
    "epsilon": [-0.1, np.inf],
    "tol": [0.0, -1.0, np.inf],
    "max_iter": [-7, 2.5],
    "time_limit": [-1.0, 0.0],
    "n_jobs": [0, "two"],
    "callback": [3],
    "penalty": ["elastic", None],
    "loss": ["log", 2],
    "dual": ["yes", None, 1],
    "multi_class": ["ovo"],
    "solver": ["smo", None],
    "fit_intercept": ["no"],
    "penalize_intercept": [1],
    "warm_start": ["no"],
    "verbose": [-1],
    "random_state": ["dice", -1, 2**32],
    "intercept_scaling": [np.inf, np.nan, "wide"],
    "class_weight": ["heavy", [1, 2]],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named(name: str) -> None:
    X, y = overlapping(10)
    kinds = (LinearSVC, LinearSVR, LogisticRegression, LinearOneClassSVM)
    knowing = [kind for kind in kinds if name in kind().get_params()]

    for kind in knowing:
        for value in BAD[name]:
            words = f"'{name}' parameter of {kind.__name__} must be"
            assert_refused(kind(**{name: value}), X, y, words)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, LogisticRegression])
@pytest.mark.parametrize("scaling", [0, -1.5])
def test_intercept_scaling_counts_with_an_intercept_only(
    kind: type, scaling: float
) -> None:
    X, y = overlapping(20)
    machine = kind(intercept_scaling=scaling)

    assert_refused(machine, X, y, f"Intercept scaling is {scaling} but needs to be")
    machine.set_params(fit_intercept=False).fit(X, y)


# -------------------------------------------------------------------------- warm starts
@pytest.mark.parametrize(
    "machine", [*MACHINES.values(), *FREE.values()], ids=[*MACHINES, *FREE]
)
def test_warm_start_on_the_same_data_takes_fewer_iterations(machine: Any) -> None:
    X, y = data_for(machine)
    cold = clone(machine).set_params(warm_start=True).fit(X, y)
    n_cold, decisions = cold.n_iter_, values(cold, X)

    warm = cold.fit(X, y)

    is_intercept_known = machine in MACHINES.values() and "nu" not in vars(machine)
    assert warm.n_iter_ <= max(1, (0.7 if is_intercept_known else 1.0) * n_cold)
    np.testing.assert_allclose(values(warm, X), decisions, rtol=0.02, atol=0.02)
    assert_optimal_linear(warm, X, y)


@pytest.mark.parametrize("C", [0.1, 10.0])
@every_machine
def test_warm_start_meets_a_new_problem(machine: Any, C: float) -> None:
    X, y = data_for(machine)
    machine = clone(machine).set_params(warm_start=True).fit(X, y)
    change = {"nu": 0.1 * C**0.5} if "nu" in machine.get_params() else {"C": C}

    machine.set_params(**change).fit(X, y)

    assert_optimal_linear(machine, X, y)


@every_machine
def test_warm_start_on_other_data_is_a_cold_one_with_a_word(machine: Any) -> None:
    X, y = data_for(machine)
    machine = clone(machine).set_params(warm_start=True).fit(X, y)

    with pytest.warns(UserWarning, match="starting from zero") as caught:
        machine.fit(X[:100], y[:100])

    assert caught[0].filename == __file__
    cold = clone(machine).fit(X[:100], y[:100])
    assert values(machine, X).tobytes() == values(cold, X).tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "hinge"},
        {"penalty": "l1"},
        {"multi_class": "crammer_singer"},
        {"penalize_intercept": False},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_warm_start_for_another_formulation_is_a_cold_one(
    change: dict[str, Any],
) -> None:
    X, y = draw()
    machine = LinearSVC(warm_start=True).fit(X, y)

    with pytest.warns(UserWarning, match="starting from zero"):
        machine.set_params(**change).fit(X, y)

    assert_optimal_linear(machine, X, y)


def test_no_warm_start_unless_asked_for() -> None:
    X, y = draw()
    machine = LinearSVC().fit(X, y)
    before = machine.n_iter_

    assert machine.fit(X, y).n_iter_ == before
    assert not hasattr(machine, "_warm")  # one number per sample and class


# ---------------------------------------------------------------------- told about it
@every_machine
def test_callback_is_told_about_every_problem(machine: Any) -> None:
    told: list[Progress] = []
    X, y = data_for(machine)

    fitted = clone(machine).set_params(callback=told.append).fit(X, y)

    assert len(told) >= np.size(fitted.objective_)
    assert all(isinstance(progress, Progress) for progress in told)
    assert max(progress.n_iter for progress in told) == fitted.n_iter_
    assert {progress.objective for progress in told} >= {*np.ravel(fitted.objective_)}


@pytest.mark.parametrize("verbose", [1, True, 0])
@every_machine
def test_verbose_prints(
    machine: Any, verbose: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    clone(machine).set_params(verbose=verbose).fit(*data_for(machine))

    printed = capsys.readouterr().out
    assert printed.startswith("[maxmargin]") == bool(verbose)
    assert ("iterations, violation" in printed) == bool(verbose)


@every_machine
def test_error_in_a_callback_leaves_nothing_fitted(machine: Any) -> None:
    def fail(progress: Progress) -> None:
        raise ZeroDivisionError("mine")

    machine = clone(machine).set_params(callback=fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        machine.fit(*data_for(machine))
    assert_unfitted(machine)


# ------------------------------------------------------------------------------- limits
@pytest.mark.parametrize(
    "limit", [{"max_iter": 1}, {"time_limit": 1e-9}], ids=["max_iter", "time_limit"]
)
@every_machine
def test_early_stop_is_one_honest_warning(machine: Any, limit: dict[str, Any]) -> None:
    X, y = data_for(machine)
    machine = clone(machine).set_params(tol=1e-10, **limit)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(X, y)

    assert [warning.category for warning in caught] == [ConvergenceWarning]
    assert caught[0].filename == __file__
    text, worst = str(caught[0].message), float(np.max(machine.kkt_violation_))
    if "max_iter" in limit:
        expected = "Liblinear failed to converge, increase the number of iterations."
        assert machine.n_iter_ == 1
    else:
        expected = "Solver terminated early (time_limit=1e-09)."
    assert text.startswith(expected)
    assert f"{worst:.3g}" in text and "tol=1e-10" in text
    assert worst > machine.tol or np.max(machine.dual_gap_ / machine.objective_) > 1e-10
    assert machine.status_.name == next(iter(limit)).upper()
    assert machine.status_ is not Status.CONVERGED


# ------------------------------------------------------------------ everything the same
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "machine", [*MACHINES.values(), *FREE.values()], ids=[*MACHINES, *FREE]
)
def test_bytes_do_not_depend_on_n_jobs(machine: Any, layout: Any) -> None:
    X, y = data_for(machine)
    X = layout(X)

    one, two = (clone(machine).set_params(n_jobs=n).fit(X, y) for n in (1, 2))

    for name in ("coef_", "intercept_", "n_iter_", "objective_", "kkt_violation_"):
        found, expected = (np.asarray(getattr(m, name)) for m in (one, two))
        assert found.tobytes() == expected.tobytes(), name
    assert values(one, X).tobytes() == values(two, X).tobytes()


@every_machine
def test_random_state_makes_fits_repeatable(machine: Any) -> None:
    X, y = data_for(machine)
    state = np.random.RandomState(3)
    before = np.random.get_state()[1].tobytes()

    fits = [
        clone(machine).set_params(random_state=seed).fit(X, y)
        for seed in (None, None, 7, 7, state)
    ]

    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
    assert fits[2].coef_.tobytes() == fits[3].coef_.tobytes()
    assert np.random.get_state()[1].tobytes() == before
    for fitted in fits[2::2]:
        assert_optimal_linear(fitted, X, y)
    assert name_of(fits[0]) == type(machine).__name__
