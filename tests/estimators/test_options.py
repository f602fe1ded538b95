"""What do the options that scikit-learn does not have do?"""

from __future__ import annotations

import warnings
from typing import Any

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from surface import draw, values

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.solvers import Progress, Status

MACHINES = [SVC(C=5.0), NuSVC(nu=0.3), SVR(C=5.0), NuSVR(C=5.0), OneClassSVM(nu=0.3)]
every_machine = pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda machine: type(machine).__name__
)


def total_moves(fitted: Any) -> int:
    return int(np.sum(fitted.n_iter_))


# -------------------------------------------------------------------------- warm starts
@every_machine
def test_warm_start_on_the_same_data_needs_fewer_moves(machine: Any) -> None:
    X, y = draw()
    cold = clone(machine).set_params(warm_start=True).fit(X, y)
    moves, decisions = total_moves(cold), values(cold, X)

    warm = cold.fit(X, y)

    assert total_moves(warm) < 0.5 * moves
    np.testing.assert_allclose(values(warm, X), decisions, atol=1e-6)
    naive.assert_optimal(warm, X, y)


def test_warm_start_meets_a_new_box() -> None:
    X, y = draw()
    machine = SVC(C=5.0, warm_start=True).fit(X, y)

    machine.set_params(C=1.0).fit(X, y)

    naive.assert_optimal(machine, X, y)
    cold = SVC(C=1.0).fit(X, y)
    np.testing.assert_allclose(machine.objective_, cold.objective_, rtol=1e-6)


@every_machine
def test_warm_start_on_other_data_is_a_cold_one_with_a_word(machine: Any) -> None:
    X, y = draw()
    machine = clone(machine).set_params(warm_start=True).fit(X, y)

    with pytest.warns(UserWarning, match="starting from zero"):
        machine.fit(X[:100], y[:100])

    cold = clone(machine).fit(X[:100], y[:100])
    assert values(machine, X).tobytes() == values(cold, X).tobytes()


def test_no_warm_start_unless_asked_for() -> None:
    X, y = draw()
    machine = SVC().fit(X, y)
    before = total_moves(machine)

    assert total_moves(machine.fit(X, y)) == before


# ---------------------------------------------------------------------- told about it
@every_machine
def test_callback_is_told_about_every_problem(machine: Any) -> None:
    told: list[Progress] = []
    X, y = draw()

    fitted = clone(machine).set_params(callback=told.append).fit(X, y)

    n_problems = 3 if hasattr(fitted, "classes_") else 1
    assert len(told) >= 2 * n_problems
    assert max(progress.n_iter for progress in told) == np.max(fitted.n_iter_)
    assert all(isinstance(progress, Progress) for progress in told)


@pytest.mark.parametrize("verbose", [True, 1, False])
def test_verbose_prints(verbose: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Progress] = []

    SVC(verbose=verbose, callback=told.append).fit(*draw())

    printed = capsys.readouterr().out
    assert ("violation" in printed and "objective" in printed) == bool(verbose)
    assert told


def test_error_in_a_callback_leaves_nothing_fitted() -> None:
    def fail(progress: Progress) -> None:
        raise ZeroDivisionError("mine")

    machine = SVC(callback=fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        machine.fit(*draw())
    assert not hasattr(machine, "support_")


# ------------------------------------------------------------------------------- limits
@pytest.mark.parametrize(
    "limit", [{"max_iter": 2}, {"time_limit": 1e-9}], ids=["max_iter", "time_limit"]
)
@every_machine
def test_early_stop_is_one_honest_warning(machine: Any, limit: dict[str, Any]) -> None:
    X, y = draw(600)
    machine = clone(machine).set_params(tol=1e-6, gamma=1.0, **limit)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(X, y)

    assert [warning.category for warning in caught] == [ConvergenceWarning]
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    worst = float(np.max(machine.kkt_violation_))
    assert "Solver terminated early" in text
    assert next(iter(limit)) in text
    assert f"{worst:.3g}" in text
    assert worst > machine.tol
    assert machine.status_.name == next(iter(limit)).upper()
    assert machine.status_ is not Status.CONVERGED
    assert machine.fit_status_ == 1
    if not isinstance(machine, NuSVR):  # whose stored differences bound it only
        found = naive.certify(machine, X, y)
        assert worst == pytest.approx(found.violation, rel=1e-6, abs=1e-9)


# ------------------------------------------------------------------ everything the same
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@every_machine
def test_bytes_do_not_depend_on_n_jobs(machine: Any, layout: Any) -> None:
    X, y = draw(700, 4)
    X = layout(X)

    fitted = [
        clone(machine).set_params(n_jobs=n).fit(X, y) for n in (1, 2, 4, -1, None)
    ]

    for other in fitted[1:]:
        for name in ("support_", "intercept_", "n_iter_", "objective_"):
            one, two = getattr(fitted[0], name), getattr(other, name)
            assert np.asarray(one).tobytes() == np.asarray(two).tobytes(), name
        one, two = naive.dense(fitted[0].dual_coef_), naive.dense(other.dual_coef_)
        assert one.tobytes() == two.tobytes()
        assert values(fitted[0], X).tobytes() == values(other, X).tobytes()


@pytest.mark.slow
def test_bytes_do_not_depend_on_n_jobs_where_rows_are_fetched() -> None:
    X, y = draw(2500, 2)

    one, two = (SVC(n_jobs=n, C=0.5, tol=1e-2).fit(X, y) for n in (1, 2))

    assert one.dual_coef_.tobytes() == two.dual_coef_.tobytes()
    assert one.intercept_.tobytes() == two.intercept_.tobytes()
    assert values(one, X).tobytes() == values(two, X).tobytes()


@pytest.mark.parametrize("cache_size", [1e-6, 0.5, 200, "auto"])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("working_set", ["first_order", "second_order"])
def test_no_option_changes_the_answer(
    working_set: str, shrinking: bool, cache_size: Any
) -> None:
    X, y = draw()
    options = {"working_set": working_set, "shrinking": shrinking}

    fitted = SVC(cache_size=cache_size, tol=1e-6, **options).fit(X, y)

    naive.assert_optimal(fitted, X, y)
    plain = SVC(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(fitted.objective_, plain.objective_, rtol=1e-9)
    assert np.array_equal(fitted.support_, plain.support_)


@every_machine
def test_dense_and_sparse_agree(machine: Any) -> None:
    X, y = draw()
    X = np.where(np.abs(X) > 1.0, X, 0.0)

    dense, sparse = clone(machine).fit(X, y), clone(machine).fit(sp.csr_array(X), y)

    np.testing.assert_allclose(values(dense, X), values(sparse, sp.csr_array(X)))


@every_machine
def test_row_alone_and_in_a_batch_are_worth_the_same(machine: Any) -> None:
    X, y = draw(400)
    fitted = clone(machine).fit(X, y)

    alone = np.concatenate([values(fitted, row[None, :]) for row in X[:20]])

    np.testing.assert_allclose(alone, values(fitted, X)[:20], rtol=1e-11, atol=1e-12)
