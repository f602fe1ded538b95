"""A package of three files, run in new processes: what is compiled, what is loaded?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from maxmargin import _jit

SOURCES = {
    "__init__.py": "",
    "facts.py": "SCALE = 10.0\n",
    "callee.py": (
        "from tiny._jit import jit, larger\n"
        "@jit\n"
        "def twice(x):\n"
        "    return 2.0 * larger(x, 0.0)\n"
    ),
    "caller.py": (
        "from tiny._jit import jit\n"
        "from tiny.callee import twice\n"
        "from tiny.facts import SCALE\n"
        "@jit\n"
        "def scaled(x):\n"
        "    return SCALE * twice(x)\n"
    ),
}
REPORT = """
from tiny import _jit
from tiny.caller import scaled
value = scaled(1.0)
hits = getattr(scaled, "stats", None) and sum(scaled.stats.cache_hits.values())
print(json.dumps([value, hits, str(_jit.cache_folder())]))
"""
COPIED = (
    "_jit.py",
    "_callees.py",
    "_clock.py",
    "_compiling.py",
    "_contexts.py",
    "_interrupts.py",
    "_processor.py",
)
NOWHERE = "/dev/null/nowhere"  # under a file, where not even root can write


class TinyPackage:
    """A copy of `_jit.py` with a caller, a callee and a constant in files apart."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "tiny"
        self.root.mkdir()
        for name in COPIED:
            source = (_jit.PACKAGE / name).read_text()
            (self.root / name).write_text(source.replace("from maxmargin", "from tiny"))
        for name, source in SOURCES.items():
            (self.root / name).write_text(source)

    def edit(self, name: str, old: str, new: str) -> None:
        source = (self.root / name).read_text()
        assert old in source
        (self.root / name).write_text(source.replace(old, new))

    def run(self, before: str = "", **environment: str) -> tuple[float, int, str]:
        """Call the caller in a new process: its value, cache hits and cache folder."""
        numba_free = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        cache = {"HOME": str(self.home), "XDG_CACHE_HOME": str(self.home)}
        done = subprocess.run(
            [
                sys.executable,
                "-B",
                "-W",
                "error",
                "-c",
                f"import json\n{before}{REPORT}",
            ],
            env=numba_free | cache | environment,
            cwd=self.root.parent,
            check=True,
            capture_output=True,
            text=True,
        )
        return tuple(json.loads(done.stdout))
