"""Do threads share work without changing results, losing errors or leaving a mess?"""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from maxmargin import _threads
from maxmargin._threads import (
    Stopped,
    count_cores,
    one_blas_thread,
    raise_if_stopped,
    run_all,
)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def blas_threads() -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))  # makes sure that BLAS is loaded
    return [
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    ]


def value_after(seconds: float, value: int) -> int:
    time.sleep(seconds)
    return value


# ----------------------------------------------------------------------------- run_all
@pytest.mark.parametrize("n_threads", [1, 2, 4, 100])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 17])
def test_results_come_back_in_order(n_tasks: int, n_threads: int) -> None:
    tasks = [partial(value_after, 0.001 * (k % 3), k) for k in range(n_tasks)]

    assert run_all(tasks, n_threads) == list(range(n_tasks))


@pytest.mark.skipif(count_cores() < 2, reason="the pool has no second thread")
def test_two_threads_work_at_once() -> None:
    meeting = threading.Barrier(2, timeout=10.0)

    places = run_all([meeting.wait, meeting.wait], 2)

    assert sorted(places) == [0, 1]


def test_first_error_of_the_list_is_raised_and_the_rest_is_left() -> None:
    done: list[int] = []

    def work(k: int) -> None:
        if k >= 3:
            raise ZeroDivisionError(f"task {k}")
        done.append(k)

    with pytest.raises(ZeroDivisionError, match="task 3"):
        run_all([partial(work, k) for k in range(50)], 2)
    assert sorted(done) == [0, 1, 2]


def test_running_tasks_stop_when_another_fails() -> None:
    started = threading.Event()

    def endless() -> None:
        started.set()
        give_up = time.monotonic() + 20.0
        while time.monotonic() < give_up:
            raise_if_stopped()
            time.sleep(0.001)
        raise AssertionError("nobody said stop")

    def fail() -> None:
        assert started.wait(10.0)
        raise ValueError("from the other")

    with pytest.raises(ValueError, match="from the other"):
        run_all([endless, fail], 2)


def test_interrupt_of_the_caller_stops_its_helpers() -> None:
    ended: list[str] = []
    waiting = threading.Barrier(2, timeout=10.0)
    caller = threading.current_thread()

    def task() -> None:
        waiting.wait()
        if threading.current_thread() is caller:
            raise KeyboardInterrupt
        try:
            while True:
                raise_if_stopped()
                time.sleep(0.001)
        except Stopped:
            ended.append("stopped")
            raise

    if count_cores() < 2:
        pytest.skip("the pool has no second thread")
    with pytest.raises(KeyboardInterrupt):
        run_all([task, task], 2)
    assert ended == ["stopped"]


def test_threads_can_be_used_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run_all([lambda: 1 // 0, lambda: 1], 2)

    raise_if_stopped()
    assert run_all([lambda: 1, lambda: 2], 2) == [1, 2]


def test_nested_lists_run_in_place() -> None:
    def outer(k: int) -> tuple[list[int], bool]:
        here = threading.get_ident()
        inside = run_all([threading.get_ident for _ in range(4)], 4)
        return [k, *run_all([lambda: 10 * k, lambda: 20 * k], 2)], set(inside) == {here}

    found = run_all([partial(outer, k) for k in range(6)], 2)

    assert found == [([k, 10 * k, 20 * k], True) for k in range(6)]


def test_two_callers_at_once() -> None:
    found: dict[int, list[int]] = {}

    def call(who: int) -> None:
        tasks = [partial(value_after, 0.002, 100 * who + k) for k in range(20)]
        found[who] = run_all(tasks, 4)

    callers = [threading.Thread(target=call, args=(who,)) for who in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=30.0)

    assert found == {who: [100 * who + k for k in range(20)] for who in range(4)}


# ------------------------------------------------------------------------ BLAS's limit
def test_blas_is_held_to_one_thread_and_let_go() -> None:
    before = blas_threads()

    with one_blas_thread():
        assert set(blas_threads()) == {1}
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}

    assert blas_threads() == before


def test_blas_is_let_go_after_an_error() -> None:
    before = blas_threads()

    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError

    assert blas_threads() == before


def test_scopes_of_two_threads_may_overlap() -> None:
    before = blas_threads()
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))
    seen: list[Any] = []

    def first() -> None:
        with one_blas_thread():
            first_is_in.set()
            second_is_in.wait(10.0)
        first_is_out.set()

    def second() -> None:
        first_is_in.wait(10.0)
        with one_blas_thread():
            second_is_in.set()
            first_is_out.wait(10.0)
            seen.append(set(blas_threads()))

    both = [threading.Thread(target=work) for work in (first, second)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(timeout=30.0)

    assert seen == [{1}]
    assert blas_threads() == before


# -------------------------------------------------------------------------------- fork
def exit_of_child(work: Any) -> int:
    """Run something in a forked child; 0 where it returned True."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    give_up = time.monotonic() + 30.0
    while time.monotonic() < give_up:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside threads
def test_child_has_threads_of_its_own() -> None:
    run_all([lambda: time.sleep(0.01)] * 4, 2)

    assert exit_of_child(lambda: run_all([lambda: 1, lambda: 2], 2) == [1, 2]) == 0
    assert run_all([lambda: 1, lambda: 2], 2) == [1, 2]


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_of_a_limited_parent_is_not_limited() -> None:
    before = blas_threads()

    def is_free_and_works() -> bool:
        is_free = blas_threads() == before
        with one_blas_thread():
            return is_free and set(blas_threads()) == {1}

    with one_blas_thread():
        assert exit_of_child(is_free_and_works) == 0


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_does_not_inherit_a_lock() -> None:
    with _threads._shared.lock:
        assert exit_of_child(lambda: run_all([lambda: 1, lambda: 2], 2) == [1, 2]) == 0
