"""One fit in a process of its own: `python -m benchmarks.worker` with a JSON argument.

Before the clock starts, the two largest classes are fitted once: that loads or compiles
what is needed and wakes the threads.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificate import c_svc_objective
from benchmarks.libraries import LIBRARIES, read_fit
from benchmarks.sets import load

ROOT = Path(__file__).resolve().parents[1]


def fit_elsewhere(order: dict[str, Any]) -> dict[str, float]:
    """Run one order in a new process and read its answer."""
    command = [sys.executable, "-m", "benchmarks.worker", json.dumps(order)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{order['library']} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def fit_here(order: dict[str, Any]) -> dict[str, float]:
    """Seconds, objective summed over pairs, and accuracy on the test rows."""
    folder = Path(order["folder"]) if order["folder"] else None
    split = load(order["set"], folder)
    gamma = 1.0 / split.X.shape[1]
    settings = {"C": order["C"], "gamma": gamma}
    prepare = LIBRARIES[order["library"]].prepare
    near = rows_of_largest_pair(split.y)
    prepare(split.X[near], split.y[near], **settings)()
    fit = prepare(split.X, split.y, **settings)
    began = time.perf_counter()
    model = fit()
    seconds = time.perf_counter() - began
    found = read_fit(model)
    return {
        "seconds": seconds,
        "objective": c_svc_objective(found, split.X[found.support], gamma),
        "accuracy": model.score(split.X_test, split.y_test),
    }


def rows_of_largest_pair(y: np.ndarray) -> np.ndarray:
    labels, counts = np.unique(y, return_counts=True)
    return np.flatnonzero(np.isin(y, labels[np.argsort(counts)[-2:]]))


if __name__ == "__main__":
    print(json.dumps(fit_here(json.loads(sys.argv[1]))))
