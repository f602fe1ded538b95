"""What does a first fit cost? With an empty cache, and with machine code at hand.

    python -m benchmarks.first_fits [--only KIND]

Each kind is fitted in two new processes: one whose cache is empty, so that everything
is compiled, and one that loads what the first has kept. Imports are not counted, the
making of the samples neither. "functions" is how many functions were compiled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.tables import print_table

ROOT = Path(__file__).resolve().parents[1]

# Samples first, then the estimator; both are source code for a new process.
KINDS = {
    "iris": ("load_iris(return_X_y=True)", "SVC()"),
    "digits": ("load_digits(return_X_y=True)", "SVC()"),
    "5,000 x 50": ("made(5000, 50, 2)", "SVC()"),
    "26 classes": ("made(2600, 16, 26)", "SVC()"),
    "sparse": ("sparse(2000, 1000, 2)", "SVC()"),
    "SVR": ("load_diabetes(return_X_y=True)", "SVR()"),
    "one-class": ("load_iris(return_X_y=True)", "OneClassSVM()"),
    "LinearSVC, dense": ("load_digits(return_X_y=True)", "LinearSVC()"),
    "LinearSVC, sparse": ("sparse(2000, 1000, 2)", "LinearSVC()"),
    "digits, probability": (
        "load_digits(return_X_y=True)",
        "SVC(probability=True, random_state=0)",
    ),
    "iris, SVCCV": ("load_iris(return_X_y=True)", "SVCCV()"),
}
SCRIPT = """
import time
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris
from maxmargin import *

def made(n, d, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.argsort(np.argsort(X[:, 0] + 0.3 * rng.normal(size=n))) * n_classes // n
    return X, y

def sparse(n, d, n_classes):
    X, y = made(n, d, n_classes)
    return sp.csr_matrix(X * (np.random.default_rng(1).random(X.shape) < 0.02)), y

X, y = {samples}
machine = {estimator}
began = time.perf_counter(), time.process_time()
machine.fit(X, y)
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""
COUNT = """
from numba.core import event
class Counting(event.Listener):
    n = 0
    def on_start(self, event): pass
    def on_end(self, event): Counting.n += 1
event.register("numba:compile", Counting())
"""


def first_fit(samples: str, estimator: str, cache: str) -> tuple[float, float, int]:
    """Seconds and CPU seconds of a fit in a new process, and functions compiled."""
    script = COUNT + SCRIPT.format(samples=samples, estimator=estimator)
    done = subprocess.run(
        [sys.executable, "-c", script + "print(Counting.n)"],
        cwd=ROOT,
        env=dict(os.environ, NUMBA_CACHE_DIR=cache),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, cpu, n_compiled = done.stdout.split()
    return float(seconds), float(cpu), int(n_compiled)


def main() -> None:
    """Print a row a kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(KINDS), metavar="KIND")
    given = parser.parse_args()
    rows = []
    for name, kind in KINDS.items():
        if given.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as cache:
            ever, cpu, n_compiled = first_fit(*kind, cache)
            later, _, _ = first_fit(*kind, cache)
        figures = f"{ever:.1f}", f"{cpu:.1f}", str(n_compiled), f"{later:.2f}"
        rows.append([name, *figures])
    heads = ["first fit", "ever (s)", "CPU (s)", "functions", "of a process (s)"]
    print_table(heads, rows)


if __name__ == "__main__":
    main()
