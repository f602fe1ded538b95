"""Do limits count solving alone? Compilation stops the clock of all limits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runs import command, write_classes
from compiling import fresh_function
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVCCV, LinearSVCCV, _clock, cross_validate
from maxmargin.cli.console import Context
from maxmargin.data import svmlight
from maxmargin.data.svmlight import read_svmlight
from maxmargin.solvers import Status

LONG = 1e6  # seconds: far beyond any limit here
SECONDS = 300.0  # for a child that compiles

Advance = Callable[[float], None]


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch) -> Advance:
    """Make monotonic time jump ahead."""
    real, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])

    def jump(seconds: float) -> None:
        ahead[0] += seconds

    return jump


def draw(n: int = 120) -> tuple[Any, Any]:
    return make_classification(n, 4, random_state=0)


# -------------------------------------------------------------------------- the clock
def test_clock_goes_on_and_stands_still(advance: Advance) -> None:
    began = _clock.now()
    advance(LONG)
    assert _clock.now() >= began + LONG

    with _clock.paused():
        stopped = _clock.now()
        advance(LONG)
        assert _clock.now() == stopped
    assert stopped <= _clock.now() < stopped + LONG


def test_pauses_inside_each_other_and_of_other_threads_count_once(
    advance: Advance,
) -> None:
    is_inside, may_leave = threading.Event(), threading.Event()

    def pause() -> None:
        with _clock.paused():
            is_inside.set()
            may_leave.wait(SECONDS)

    with _clock.paused():
        stopped = _clock.now()
        other = threading.Thread(target=pause)
        other.start()
        is_inside.wait(SECONDS)
        with _clock.paused():
            advance(LONG)
    advance(LONG)  # the other thread is inside still
    assert _clock.now() == stopped

    may_leave.set()
    other.join(SECONDS)
    assert stopped <= _clock.now() < stopped + LONG


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_does_not_wait_for_threads_of_its_parent() -> None:
    clock = _clock._Clock()
    clock.stop()
    clock.lock.acquire()
    stopped = clock.stopped_at

    clock.renew()

    assert clock.read() >= stopped
    assert clock.n_pauses == 0


# --------------------------------------------------------------------- compilation
def test_compilation_stops_the_clock(
    advance: Advance, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    function = fresh_function(lambda: (advance(LONG), seen.append(1.0)), monkeypatch)
    began = _clock.now()

    assert function(2.0) == 2.0

    assert seen, "the function was not compiled"
    assert _clock.now() < began + LONG


def test_failed_compilation_lets_the_clock_go_on(
    advance: Advance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("mine")

    function = fresh_function(fail, monkeypatch)
    with pytest.raises(ZeroDivisionError, match="mine"):
        function(2.0)

    began = _clock.now()
    advance(LONG)
    assert _clock.now() >= began + LONG


def test_compilation_does_not_count_against_a_fit(
    advance: Advance, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw()
    n_seen = []
    function = fresh_function(lambda: advance(LONG), monkeypatch)

    def compile_at_once(progress: Any) -> None:
        n_seen.append(function(1.0))

    machine = SVC(C=10.0, tol=1e-6, callback=compile_at_once, time_limit=LONG / 2)
    machine.fit(X, y)

    assert n_seen
    assert machine.status_ is Status.CONVERGED


def test_compilation_inside_a_kernel_does_not_count(
    advance: Advance, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw()
    function = fresh_function(lambda: advance(LONG), monkeypatch)

    def kernel(a: Any, b: Any) -> Any:
        return function(1.0) * (a @ b.T)

    search = SVCCV(kernel=kernel, Cs=[0.5, 1.0, 2.0], cv=3, time_limit=LONG / 2)
    machine = SVC(kernel=kernel, time_limit=LONG / 2).fit(X, y)

    assert machine.status_ is Status.CONVERGED
    search.fit(X, y)
    assert search.cv_results_["is_tried"].all()


def test_seconds_left_to_a_command_do_not_count_compilation(advance: Advance) -> None:
    context = Context(time_limit=10.0)

    with _clock.paused():
        advance(LONG)
    assert 0.0 < context.seconds_left() <= 10.0

    advance(11.0)
    assert context.seconds_left() < 0.0


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "--gamma", "1"],
        ["svm-train"],
        ["svm-train", "-v", "3"],
        ["train"],
        ["train", "-C", "-s", "2"],
        ["grid", "-log2c", "0,2,1", "-log2g", "null"],
        ["easy"],
    ],
    ids=str,
)
def test_reading_data_does_not_count_against_a_command(
    words: list[str], advance: Advance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two", n=40)
    seen: list[Any] = []

    def read_slowly(*arguments: Any, **options: Any) -> Any:
        advance(LONG)
        seen.append(arguments)
        return read_svmlight(*arguments, **options)

    monkeypatch.setattr(svmlight, "read_svmlight", read_slowly)
    done = command(words[0], "--time-limit", LONG / 2, *words[1:], "two")

    assert seen
    assert done.code == 0
    assert "limit" not in done.out + done.err


EMPTY_CACHE = """
import time, warnings
import numpy as np
from maxmargin import _clock, LinearSVC
warnings.simplefilter("error")
X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)
began, counted = time.monotonic(), _clock.now()
machine = LinearSVC(time_limit=LIMIT, dual=True).fit(X, y)
seconds, counted = time.monotonic() - began, _clock.now() - counted
print(machine.status_.name, counted < 0.5 * seconds)
"""


def test_first_fit_with_an_empty_cache_keeps_a_short_limit(tmp_path: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EMPTY_CACHE.replace("LIMIT", "2.0")],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.stdout.split() == ["CONVERGED", "True"], done.stderr


# ---------------------------------------------------------------- searches cut short
@pytest.mark.parametrize("search", [SVCCV(gammas=[0.1, 1.0]), LinearSVCCV()])
def test_search_cut_short_says_how_much_was_tried_and_solves_the_last_fit(
    search: Any, advance: Advance
) -> None:
    X, y = draw()
    seen: list[Any] = []

    def stop_after_two(report: Any) -> None:
        seen.append(report)
        if len(seen) == 2:
            advance(LONG)

    search.set_params(Cs=4, cv=3, n_jobs=1, time_limit=LONG / 2)
    search.set_params(callback=stop_after_two)
    n = len(search.get_params().get("gammas", [None])) * 4
    with pytest.warns(UserWarning, match=f"tried 2 of {n} settings") as caught:
        search.fit(X, y)

    assert len(caught) == 1
    is_tried = search.cv_results_["is_tried"]
    assert len(is_tried) == n and is_tried.sum() == 2
    scores = search.cv_results_["mean_test_score"]
    assert np.array_equal(np.isfinite(scores), is_tried)
    assert search.best_score_ == scores[is_tried].max()
    assert search.status_ is search.best_estimator_.status_ is Status.CONVERGED
    assert search.best_estimator_.time_limit == LONG / 2


def test_last_point_cut_short_is_said_too(advance: Advance) -> None:
    X, y = draw()

    def slow(a: Any, b: Any) -> Any:
        return a @ b.T

    calls: list[int] = []

    def scorer(machine: Any, X: Any, y: Any) -> float:
        calls.append(1)
        if len(calls) == 3:  # all folds of the first point
            advance(LONG)
        return float(np.mean(machine.predict(X) == y))

    search = SVCCV(
        kernel=slow, Cs=[1.0, 2.0], cv=3, scoring=scorer, time_limit=LONG / 2, n_jobs=1
    )
    with pytest.warns(UserWarning, match="tried 1 of 2 settings"):
        search.fit(X, y)

    assert search.cv_results_["is_tried"].tolist() == [True, False]
    assert search.status_ is Status.CONVERGED


def hard() -> tuple[Any, Any]:
    """Labels that follow no rule: more than one call of compiled code is needed."""
    rng = np.random.default_rng(0)
    return 0.3 * rng.normal(size=(2000, 8)), rng.integers(2, size=2000)


def test_search_without_time_for_one_point_says_so(advance: Advance) -> None:
    X, y = hard()

    def slow(a: Any, b: Any) -> Any:
        advance(LONG)
        return np.exp(-np.square(a[:, None] - b[None]).sum(axis=2))

    search = SVCCV(kernel=slow, Cs=[1e3, 1e4], time_limit=LONG / 2)
    words = "tried 1 of 2 settings, which was not solved to tol"
    with pytest.warns(UserWarning, match=words):
        search.fit(X, y)

    assert search.cv_results_["is_tried"].tolist() == [True, False]
    assert search.status_ is Status.CONVERGED  # a fifth of the limit is left for it


def test_folds_cut_short_are_said(advance: Advance) -> None:
    X, y = hard()

    def slow(a: Any, b: Any) -> Any:
        advance(LONG)
        return np.exp(-np.square(a[:, None] - b[None]).sum(axis=2))

    machine = SVC(C=1e3, kernel=slow, time_limit=LONG / 2)
    with pytest.warns(ConvergenceWarning, match="ended folds before they were solved"):
        found = cross_validate(machine, X, y)

    assert found["kkt_violation"] > machine.tol


def test_halving_cut_short_takes_the_best_that_was_scored(advance: Advance) -> None:
    X, y = draw(600)
    seen: list[Any] = []

    def stop_after_the_first_round(report: Any) -> None:
        seen.append(report)
        if len(seen) == 9:
            advance(LONG)

    search = SVCCV(Cs=3, gammas=3, cv=2, search="halving", time_limit=LONG / 2)
    search.set_params(callback=stop_after_the_first_round, n_jobs=1)
    with pytest.warns(UserWarning, match="The search ended at time_limit"):
        search.fit(X, y)

    assert search.best_score_ == max(report.score for report in seen)


def test_search_without_a_limit_says_nothing() -> None:
    X, y = draw()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = SVCCV(Cs=2, gammas=2, cv=2, time_limit=LONG).fit(X, y)

    assert search.cv_results_["is_tried"].all()
