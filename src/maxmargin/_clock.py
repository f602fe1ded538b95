"""How long has a limit been running? Seconds, those of compilation left out.

A process that finds no machine code on disk compiles for up to a minute, which no
`time_limit` is meant for. So limits are measured on a clock that stands still while any
thread compiles, or reads machine code from disk, and while a command reads its data: a
limit may be exceeded by that time, never cut short by it.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Clock:
    """Monotonic time without its pauses; pauses may overlap, and count once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_pauses = 0  # that have begun, and not ended
        self.stopped_at = 0.0  # the reading while there are any
        self.paused = 0.0  # seconds

    def read(self) -> float:
        with self.lock:
            return self.stopped_at if self.n_pauses else self._running()

    def stop(self) -> None:
        with self.lock:
            if not self.n_pauses:
                self.stopped_at = self._running()
            self.n_pauses += 1

    def go_on(self) -> None:
        with self.lock:
            self.n_pauses -= 1
            if not self.n_pauses:
                self.paused = time.monotonic() - self.stopped_at

    def renew(self) -> None:
        """After a fork: threads that paused it, or held the lock, are not there."""
        self.lock = threading.Lock()
        if self.n_pauses:
            self.n_pauses, self.paused = 0, time.monotonic() - self.stopped_at

    def _running(self) -> float:
        return time.monotonic() - self.paused


_clock = _Clock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.renew)


def now() -> float:
    """Seconds on the clock of all time limits."""
    return _clock.read()


@contextmanager
def paused() -> Iterator[None]:
    """The clock stands still inside, for all threads."""
    _clock.stop()
    try:
        yield
    finally:
        _clock.go_on()
