"""How is a fit ended that does not end? Its process is killed, and replaced."""

from __future__ import annotations

import multiprocessing
import signal
from typing import Any

from benchmarks.hostile.worker import OURS, serve

START_LIMIT = 900.0  # seconds: a first start compiles everything
ALL_SIZES = (30, 400, 1000)  # samples: one for each kind of solver
LEAST_SIZES = (30,)
GRACE = 60.0  # seconds, and ten times the limit: a busy machine slows the clock


class Watched:
    """A worker of one library, started when first needed and again after each end."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.warm_sizes = ALL_SIZES if library == OURS else LEAST_SIZES
        self.process: Any = None
        self.connection: Any = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, self.library, self.warm_sizes), daemon=True
        )
        self.warm_sizes = LEAST_SIZES  # machine code is on disk from now on
        self.process.start()
        theirs.close()
        if self.receive(START_LIMIT) != "ready":
            raise RuntimeError(f"the worker of {self.library} did not start")

    def fit(
        self, seed: int, index: int, most_rows: int, limit: float
    ) -> dict[str, Any]:
        """What the worker answers, or how it ended."""
        if self.process is None:
            self.start()
        self.connection.send((seed, index, most_rows, limit))
        self.receive(START_LIMIT)  # the problem is drawn
        found = self.receive(10 * limit + GRACE)
        if not isinstance(found, dict):
            return self.ending(limit)
        if found["seconds"] > limit:
            found = {"kind": "late", "seconds": found["seconds"]}
        return found

    def receive(self, seconds: float) -> Any:
        """One message; None where the process ended, or nothing came in time."""
        try:
            return self.connection.recv() if self.connection.poll(seconds) else None
        except (EOFError, ConnectionResetError):
            return None

    def ending(self, limit: float) -> dict[str, Any]:
        """Why nothing came back: too late, or a signal."""
        self.process.join(1.0)
        code = self.process.exitcode
        self.stop()
        if code is None or code == -signal.SIGXCPU:
            return {"kind": "late", "seconds": limit}
        if code < 0:
            return {"kind": "signal", "message": signal.Signals(-code).name}
        return {"kind": "signal", "message": f"exit {code}"}

    def stop(self) -> None:
        """End the process, however busy it is."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
        self.process = None
