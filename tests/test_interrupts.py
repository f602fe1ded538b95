"""Does Ctrl-C end what runs, at a safe point, without a crash or a lost interrupt?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.interrupts import COMMANDS, RIGHT, interrupt, write_samples
from maxmargin._interrupts import (
    Flag,
    clean_up,
    cleaned_up,
    interrupts_deferred,
    raise_if_interrupted,
)
from maxmargin._threads import raise_if_stopped, run_all

needs_kill = pytest.mark.skipif(os.name != "posix", reason="no signals to send")
HANG = 120.0  # seconds

COMPILED = """
import os, signal, threading
from typing import NamedTuple
import numpy as np
from maxmargin._jit import jit_new
from maxmargin._threads import one_blas_thread, raise_if_stopped

class Found(NamedTuple):
    total: float
    values: np.ndarray

@jit_new
def spin(n):
    total = 0.0
    for k in range(n):
        total += np.sin(total + k)
    return Found(total, np.zeros(3)), np.zeros(2)

spin(10)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    with one_blas_thread():
        spin(50_000_000)
        print("returned")
        raise_if_stopped()
        print("missed")
except KeyboardInterrupt:
    print("interrupted")
"""
FIT = """
import os, signal, sys, threading
import numpy as np
from maxmargin import SVC, SVCCV

rng = np.random.default_rng(0)
X, y = rng.normal(size=(6000, 10)), rng.integers(0, 4, 6000)
machine = eval(sys.argv[1])
machine.fit(X[:400], y[:400])
before = dict(vars(machine))
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    machine.fit(X, y)
    print("missed")
except KeyboardInterrupt:
    print("interrupted", vars(machine).keys() == before.keys())
print(machine.fit(X[:400], y[:400]).status_.name)
"""


def output_of(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


# --------------------------------------------------------------------- in this process
@needs_kill
def test_an_interrupt_waits_for_a_safe_point() -> None:
    seen: list[str] = []

    with pytest.raises(KeyboardInterrupt), interrupts_deferred():
        os.kill(os.getpid(), signal.SIGINT)
        seen.append("went on")
        raise_if_interrupted()
        seen.append("missed")

    assert seen == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    raise_if_interrupted()  # it is raised once


@needs_kill
def test_an_interrupt_is_raised_at_the_end_of_the_outermost_scope() -> None:
    seen: list[str] = []

    with pytest.raises(KeyboardInterrupt), interrupts_deferred():
        with interrupts_deferred():
            os.kill(os.getpid(), signal.SIGINT)
        seen.append("inner scope left")

    assert seen == ["inner scope left"]


@needs_kill
def test_a_second_interrupt_does_not_wait() -> None:
    seen: list[str] = []

    with pytest.raises(KeyboardInterrupt), interrupts_deferred():
        os.kill(os.getpid(), signal.SIGINT)
        seen.append("first")
        os.kill(os.getpid(), signal.SIGINT)
        seen.append("second")

    assert seen == ["first"]


@needs_kill
def test_a_handler_of_the_application_is_left_alone() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupts_deferred():
            os.kill(os.getpid(), signal.SIGINT)
            raise_if_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)

    assert seen == [signal.SIGINT]


def test_other_threads_do_not_touch_the_handler() -> None:
    seen: list[bool] = []

    def work() -> None:
        with interrupts_deferred(Flag()):
            handler = signal.getsignal(signal.SIGINT)
            seen.append(handler is signal.default_int_handler)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(HANG)

    assert seen == [True]


@needs_kill
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_stops_all_threads_of_a_list(n_threads: int) -> None:
    sent = threading.Event()

    def endless() -> None:
        if not sent.is_set():
            sent.set()
            os.kill(os.getpid(), signal.SIGINT)
        while True:
            raise_if_stopped()

    with pytest.raises(KeyboardInterrupt), interrupts_deferred():
        run_all([endless] * 4, n_threads)
    assert run_all([lambda: 1, lambda: 2], n_threads) == [1, 2]


def test_what_is_left_to_do_is_done_once_and_whatever_fails() -> None:
    done: list[str] = []

    with cleaned_up(lambda: done.append("first")), cleaned_up(lambda: 1 / 0):
        clean_up()
    clean_up()

    assert done == ["first"]


# ----------------------------------------------------------------- in their own process
@needs_kill
def test_an_interrupted_compiled_call_returns_its_result() -> None:
    """Numba crashes where KeyboardInterrupt is raised while it converts a result."""
    assert output_of(COMPILED) == ["returned", "interrupted"]


@needs_kill
@pytest.mark.parametrize(
    "machine", ["SVC(C=1e5)", "SVCCV(Cs=[1, 99], gammas=[0.1], cv=3)"]
)
@pytest.mark.parametrize("seconds", ["0.02", "0.3"])
def test_an_interrupted_fit_leaves_the_machine_as_it_was(
    machine: str, seconds: str
) -> None:
    said = output_of(FIT, machine, seconds)

    assert said == ["interrupted True", "CONVERGED"]


@needs_kill
@pytest.mark.parametrize("seconds", [0.0, 0.4, 0.8, 1.5, 3.0])
def test_a_command_ends_with_130(seconds: float, tmp_path: Path) -> None:
    """`python -m benchmarks.interrupts` does this hundreds of times."""
    write_samples(tmp_path / "samples")

    ending = interrupt(COMMANDS[0], str(tmp_path), seconds)

    assert ending is not None
    assert ending.kind == RIGHT, ending.err
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]
