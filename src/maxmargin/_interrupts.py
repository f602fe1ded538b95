"""What becomes of Ctrl-C while code is compiled? It waits for a safe place.

LLVM calls Python back through ctypes, where an exception is printed and dropped: a
KeyboardInterrupt raised there is lost, and Numba fails later with a RuntimeError about
code that was never stored. So the signal is noted while code is compiled, and answered
between two functions or at the end.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


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
    """Hold SIGINT back inside; the handler that was in place is called at the end.

    Other threads than the main one never see signals, and handlers that are not
    functions (ignore, or end the process) are left as they are.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not _is_main_thread() or not callable(handler):
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
    """KeyboardInterrupt for one that waits, where that is what its handler raises."""
    if not _noted or not _is_main_thread():
        return
    if _noted[-1].has_come and _noted[-1].handler is signal.default_int_handler:
        raise KeyboardInterrupt


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
