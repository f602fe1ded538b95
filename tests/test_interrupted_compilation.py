"""Is Ctrl-C a KeyboardInterrupt every time while code is compiled?"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compiling import fresh_function
from llvmlite.binding.executionengine import ExecutionEngine

from maxmargin import _jit
from maxmargin._interrupts import interrupts_noted, raise_if_noted
from maxmargin._jit import jit


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt_inside_llvm_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """LLVM hands its object code to Python in a callback, which drops exceptions."""
    monkeypatch.setattr(_jit, "cache_folder", lambda: tmp_path)
    find, is_called = ExecutionEngine._find_module_ptr, []

    def find_and_interrupt(engine: Any, module: Any) -> Any:
        is_called.append(True)
        interrupt()
        return find(engine, module)

    monkeypatch.setattr(ExecutionEngine, "_find_module_ptr", find_and_interrupt)

    @jit
    def square(x: float) -> float:
        return x * x

    with pytest.raises(KeyboardInterrupt):
        square(3.0)

    assert is_called
    monkeypatch.undo()
    assert square(3.0) == 9.0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_beside_a_failing_compilation_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        interrupt()
        raise ZeroDivisionError("because of the interrupt, as far as anybody knows")

    function = fresh_function(fail, monkeypatch)

    with pytest.raises(KeyboardInterrupt):
        function(1.0)


def test_interrupted_compilation_ends_between_two_functions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inner = fresh_function(interrupt, monkeypatch)
    monkeypatch.setattr(_jit, "cache_folder", lambda: tmp_path)

    @jit
    def later(x: float) -> float:
        return 2.0 * x

    @jit
    def outer(x: float) -> float:
        return later(inner(x))

    with pytest.raises(KeyboardInterrupt):
        outer(1.0)

    assert not later.signatures, "compilation went on after the interrupt"
    assert outer(1.0) == 2.0


def test_handlers_of_others_are_called_once_and_in_their_own_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))

    def during() -> None:
        interrupt()
        assert not seen

    function = fresh_function(during, monkeypatch)

    assert function(4.0) == 4.0
    assert seen == [signal.SIGINT]


def test_ignored_interrupts_stay_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    function = fresh_function(interrupt, monkeypatch)

    assert function(4.0) == 4.0
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_leave_handlers_alone() -> None:
    seen: list[Any] = []

    def look() -> None:
        with interrupts_noted():
            seen.append(signal.getsignal(signal.SIGINT))
            raise_if_noted()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert seen == [signal.default_int_handler]


def test_nothing_is_raised_without_an_interrupt() -> None:
    raise_if_noted()
    with interrupts_noted():
        raise_if_noted()
    raise_if_noted()
