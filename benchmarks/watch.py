"""How is a fit ended that does not end? Its process is killed, and replaced.

A worker answers one question after the other through a pipe: "ready" once, then for
each question "begun" when its problem is made, and a dictionary when it is solved.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from typing import Any

START_LIMIT = 900.0  # seconds: a first start compiles everything


class Watched:
    """A worker that is started when first asked, and again after each end."""

    def __init__(self, serve: Callable[..., None], *arguments: Any) -> None:
        self.serve, self.arguments = serve, arguments
        self.process: Any = None
        self.connection: Any = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=self.serve, args=(theirs, *self.arguments), daemon=True
        )
        self.process.start()
        theirs.close()
        if self.receive(START_LIMIT) != "ready":
            raise RuntimeError(f"the worker {self.arguments} did not start")

    def ask(self, question: Any, patience: float) -> dict[str, Any]:
        """What the worker answers within `patience` seconds, or how it ended."""
        if self.process is None:
            self.start()
        self.connection.send(question)
        self.receive(START_LIMIT)  # the problem is made
        found = self.receive(patience)
        return found if isinstance(found, dict) else self.ending()

    def receive(self, seconds: float) -> Any:
        """One message; None where the process ended, or nothing came in time."""
        try:
            return self.connection.recv() if self.connection.poll(seconds) else None
        except (EOFError, ConnectionResetError):
            return None

    def ending(self) -> dict[str, Any]:
        """Why nothing came back: too late, or a signal."""
        self.process.join(1.0)
        code = self.process.exitcode
        self.stop()
        if code is None or code == -signal.SIGXCPU:
            return {"kind": "late"}
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
