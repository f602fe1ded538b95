"""What happens beside a compilation? Limits and Ctrl-C wait, and so do other processes.

Processes that start together, as the workers of a grid search do, would all compile the
same functions. So each function is locked while it is compiled: whoever comes second
waits, and then finds the machine code on disk. Locks are taken from callers to callees,
so that two processes never wait for each other. And somebody who waits for more than
two seconds is told why, once.
"""

import gc
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from maxmargin import _clock
from maxmargin._interrupts import interrupts_noted, raise_if_noted

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

NOTICED = 2.0  # seconds of compilation: who waits that long wants to know why
LONGEST_WAIT = 300.0  # seconds for another process, which may have been stopped
LOOK_EVERY = 0.02  # seconds
# Thresholds of the garbage collector: a compiler makes many objects that live on, and
# looking for cycles among all that were imported costs a tenth of its time.
SELDOM = (100_000, 50, 100)

logger = logging.getLogger("maxmargin")


class _Compilation:
    """What this process is compiling, has compiled, and keeps others from compiling."""

    def __init__(self) -> None:
        self.guard = threading.Lock()  # of the next three
        self.depth = 0
        self.began = 0.0
        self.seconds = 0.0  # of calls that ended
        self.is_told = False
        self.locks: dict[Path, IO[bytes]] = {}
        self.thresholds = gc.get_threshold()

    def enter(self) -> None:
        with self.guard:
            self.depth += 1
            if self.depth == 1:
                self.began = time.monotonic()
                self.thresholds = gc.get_threshold()
                if self.thresholds[0] > 0:  # not switched off
                    gc.set_threshold(*map(max, self.thresholds, SELDOM))

    def leave(self) -> None:
        """Locks that are left belong to functions that could not be compiled."""
        with self.guard:
            self.depth -= 1
            if self.depth:
                return
            gc.set_threshold(*self.thresholds)
            self.seconds += time.monotonic() - self.began
            for path in list(self.locks):
                release(path)

    def seconds_so_far(self) -> float:
        with self.guard:
            running = time.monotonic() - self.began if self.depth else 0.0
            return self.seconds + running

    def renew(self) -> None:
        """After a fork: what other threads compiled goes on in the parent alone."""
        self.guard = threading.Lock()
        if self.depth:
            gc.set_threshold(*self.thresholds)
        self.depth, self.locks = 0, {}


_compilation = _Compilation()


@contextmanager
def compiling() -> Iterator[None]:
    """A call for which functions are compiled, or read from disk.

    The clock of limits stands still, and Ctrl-C waits for the end of a function.
    """
    with _clock.paused(), interrupts_noted():
        _compilation.enter()
        try:
            yield
        finally:
            _compilation.leave()


def tell_once(folder: Path | None) -> None:
    """Say why nothing seems to happen, after two seconds of compilation in all."""
    if _compilation.is_told or _compilation.seconds_so_far() < NOTICED:
        return
    _compilation.is_told = True
    kept = "but cannot be kept: set NUMBA_CACHE_DIR to a writable folder"
    if folder is not None:
        kept = f"once: it is kept in {folder}"
    logger.warning("maxmargin: machine code is made for this processor, %s", kept)


def lock(path: Path) -> None:
    """Wait until no other process compiles this function, and keep others waiting."""
    if not HAS_LOCKS or path in _compilation.locks:
        return
    with suppress(OSError):  # a file system without locks: compile all the same
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _compilation.locks[path] = path.open("ab")
        until = time.monotonic() + LONGEST_WAIT
        while not _is_locked(file) and time.monotonic() < until:
            raise_if_noted()
            time.sleep(LOOK_EVERY)


def _is_locked(file: IO[bytes]) -> bool:
    """Whether this process has the lock now; it ends with the process."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(path: Path) -> None:
    """Let others go on."""
    file = _compilation.locks.pop(path, None)
    if file is not None:
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compilation.renew)
