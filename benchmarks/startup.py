"""What does starting cost? Imports and first fits, each in a new process."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
IMPORT = "from {module} import SVC"
SCRIPT = """
import time
began = time.perf_counter()
{statement}
print(time.perf_counter() - began)
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 5)), np.arange(200) % 2
began = time.perf_counter()
SVC().fit(X, y)
print(time.perf_counter() - began)
"""


def measure(module: str, cache: str | None = None) -> tuple[float, float]:
    """Seconds of the import, and of the first fit after it, in a new process."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    script = SCRIPT.format(statement=IMPORT.format(module=module))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = map(float, done.stdout.split())
    return first, second


def startup_rows(n_times: int, *, cold: bool) -> list[list[str]]:
    """Rows of the table; the two libraries take turns."""
    modules = ("maxmargin", "sklearn.svm")
    for module in modules:
        measure(module)  # fills the disk's and Numba's caches
    taken = {module: [] for module in modules}
    for _ in range(n_times):
        for module in modules:
            taken[module].append(measure(module))
    rows = []
    for k, what in enumerate(("import", "first fit, warm cache")):
        ours, theirs = (median(t[k] for t in taken[m]) for m in modules)
        rows.append([what, "", f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}"])
    if cold:
        with tempfile.TemporaryDirectory() as empty:
            _, first = measure("maxmargin", empty)
        rows.append(["first fit, empty cache", "", f"{first:.3f}", "", ""])
    return rows
