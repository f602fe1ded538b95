"""When may an interrupt be raised? Between slices of work, not inside compiled calls.

Python runs its SIGINT handler as soon as the main thread executes bytecode. That may be
inside Numba, while a result is converted to Python objects: it does not expect an
exception there, and the process crashes. It may also be in the middle of a compilation,
which then fails with another error. So while the library works the handler takes a
note, and KeyboardInterrupt is raised where solvers look for it, or between two
functions that are compiled.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class Flag:
    """A boolean that other threads read; a signal handler may set it at any moment."""

    is_set = False

    def set(self) -> None:
        self.is_set = True


class _Deferral:
    """What is known of SIGINT while the main thread is inside `interrupts_deferred`."""

    def __init__(self) -> None:
        self.depth = 0
        self.is_pending = False
        self.stops: list[Flag] = []  # of the task lists that the main thread waits for

    def handle(self, number: int, frame: Any) -> None:
        """Note the first interrupt; raise at once when there is a second one."""
        if self.is_pending:
            self.is_pending = False
            raise KeyboardInterrupt
        self.is_pending = True
        for stop in self.stops:
            stop.set()


_deferral = _Deferral()
_cleanups: list[Callable[[], Any]] = []


@contextmanager
def interrupts_deferred(stop: Flag | None = None) -> Iterator[None]:
    """Within, Ctrl-C takes effect at the next safe point, and at the latest at the end.

    A second Ctrl-C takes effect at once. Nothing changes outside the main thread, or
    where the application has a SIGINT handler of its own. `stop` is set, too.
    """
    if not _is_main() or not (_deferral.depth or _is_default()):
        yield
        return
    stops = [stop] if stop is not None else []
    _deferral.stops += stops
    if stop is not None and _deferral.is_pending:
        stop.set()
    _deferral.depth += 1
    if _deferral.depth == 1:
        signal.signal(signal.SIGINT, _deferral.handle)
    try:
        yield
    finally:
        for each in stops:
            _deferral.stops.remove(each)
        _deferral.depth -= 1
        if _deferral.depth == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise_if_interrupted()


def raise_if_interrupted() -> None:
    """A safe point: raise the KeyboardInterrupt that was deferred, if there is one."""
    if _deferral.is_pending and _is_main():
        _deferral.is_pending = False
        raise KeyboardInterrupt


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_default() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


# While code is compiled, the signal is noted and answered between two functions.


class _Noted:
    """An interrupt that has arrived, and the handler that it was meant for."""

    def __init__(self, handler: Any) -> None:
        self.handler = handler
        self.frame: FrameType | None = None
        self.has_come = False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.has_come, self.frame = True, frame

    def answer(self) -> None:
        if self.has_come:
            self.handler(signal.SIGINT, self.frame)


_noted: list[_Noted] = []  # the innermost last; changed by the main thread alone


@contextmanager
def interrupts_noted() -> Iterator[None]:
    """Hold SIGINT back while code is compiled; the former handler is called at the end.

    LLVM calls Python back through ctypes, where an exception is printed and dropped: a
    KeyboardInterrupt raised there is lost, and Numba fails later with a RuntimeError
    about code that was never stored. Other threads than the main one never see signals,
    and handlers that are not functions (ignore, or end the process) are left as they
    are.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not _is_main() or not callable(handler):
        yield
        return
    noted = _Noted(handler)
    try:
        _noted.append(noted)
        signal.signal(signal.SIGINT, noted.note)
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        _noted[:] = [other for other in _noted if other is not noted]
        noted.answer()


def raise_if_noted() -> None:
    """KeyboardInterrupt for one that waits, where that is what its handler leads to."""
    if not _noted or not _is_main() or not _noted[-1].has_come:
        return
    if _noted[-1].handler in (signal.default_int_handler, _deferral.handle):
        _noted[-1].has_come = False
        raise KeyboardInterrupt


# A program may end without unwinding: threads are busy, and memory must not be freed.


@contextmanager
def cleaned_up(cleanup: Callable[[], Any]) -> Iterator[None]:
    """Within, `cleanup` is called if the process is ended by `clean_up`."""
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


def clean_up() -> None:
    """Call what has been left to do, the latest first; for the end of a process."""
    for cleanup in reversed(_cleanups):
        with suppress(Exception):
            cleanup()
