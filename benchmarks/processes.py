"""How is a fit stopped that takes too long? In a process of its own, which is ended.

No library needs to know of the limit. The process says when its clock starts and, where
it has more to do afterwards, when it stops; what it finds are lines of JSON.
"""

import json
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
READY = "ready"  # from here on, each line of JSON has to come in time
AT_LEISURE = "at leisure"  # from here on, none has to
START_LIMIT = 300.0  # seconds to load the data and warm up


class Run(NamedTuple):
    """The fits of a process, and why there are no more: done, cut off, or failed."""

    fits: list[dict[str, Any]]
    ending: str


def run_in_time(module: str, arguments: list[str], limit: float | None) -> Run:
    """A module in a new process, which has `limit` seconds for each line of JSON."""
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        try:
            found = read_in_time(process, limit)
        finally:
            process.kill()
            process.wait()
        if found.ending == "failed":
            complaints.seek(0)
            print(complaints.read(), file=sys.stderr)
    return found


def read_in_time(process: Any, limit: float | None) -> Run:
    """Its lines of JSON, until it ends or one line is late once it is ready."""
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=pass_on, args=(process, lines), daemon=True).start()
    fits: list[dict[str, Any]] = []
    patience: float | None = START_LIMIT
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            return Run(fits, "cut")
        if not line:
            break
        if line.startswith(READY):
            patience = limit
        elif line.startswith(AT_LEISURE):
            patience = None
        elif line.startswith("{"):
            fits.append(json.loads(line))
    return Run(fits, "failed" if process.wait() else "done")


def pass_on(process: Any, lines: "queue.Queue[str]") -> None:
    """Every line of the process, and an empty one at its end."""
    for line in process.stdout:
        lines.put(line)
    lines.put("")
