"""How much memory does a linear fit take beside its input?

Each case has its own process. There the code is compiled on a few rows first; then the
mark of the highest resident memory is reset, the machine is fitted, and the growth of
that mark is divided by the bytes of the input.
"""

import argparse
import gc
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.tables import print_table

ROOT = Path(__file__).resolve().parents[1]
MEGABYTE = 2**20
DENSE_FEATURES = 200
SPARSE_FEATURES = 20_000
PER_ROW = 100  # entries that are not zero, of a sparse row
WARM_ROWS = 300
MAX_ITER = 30  # memory is taken at the start: nobody needs to converge


class Case(NamedTuple):
    """A library, a layout, and what its LinearSVC is given."""

    library: str
    layout: str
    settings: dict[str, Any]


NEWTON = {"loss": "squared_hinge", "dual": False}
HINGE = {"loss": "hinge"}
LASSO = {"penalty": "l1", "dual": False}
CASES = [
    Case("maxmargin", "dense", NEWTON | {"solver": "newton"}),
    Case("maxmargin", "dense", HINGE | {"solver": "interior"}),
    Case("maxmargin", "dense", HINGE | {"solver": "dcd"}),
    Case("maxmargin", "dense", LASSO),
    Case("maxmargin", "csr", HINGE | {"solver": "dcd"}),
    Case("maxmargin", "csr", NEWTON | {"solver": "newton-cg"}),
    Case("maxmargin", "csr", LASSO),
    Case("scikit-learn", "dense", NEWTON),
    Case("scikit-learn", "dense", HINGE),
    Case("scikit-learn", "dense", LASSO),
    Case("scikit-learn", "csr", HINGE),
    Case("scikit-learn", "csr", NEWTON),
    Case("scikit-learn", "csr", LASSO),
]


def main() -> None:
    given = read_arguments()
    if given.case is not None:
        print(json.dumps(growth_here(CASES[given.case], given.megabytes)))
        return
    print(f"LinearSVC, input of about {given.megabytes} MiB in float64\n")
    lines = []
    for number, case in enumerate(CASES):
        if case.library in given.libraries:
            lines.append(line_of(case, growth_elsewhere(number, given.megabytes)))
            print(*lines[-1], sep="  ", file=sys.stderr)
    print_table(
        ["library", "settings", "layout", "input, MiB", "growth", "ratio"], lines
    )
    print("\ngrowth: of the peak of resident memory during fit, in MiB")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linear_memory", description=__doc__
    )
    libraries = sorted({case.library for case in CASES})
    parser.add_argument("--megabytes", type=int, default=200, help="size of the input")
    parser.add_argument("--libraries", nargs="+", choices=libraries, default=libraries)
    parser.add_argument("--case", type=int, help="one case, in this process")
    return parser.parse_args()


def line_of(case: Case, found: dict[str, float]) -> list[str]:
    settings = " ".join(f"{name}={value}" for name, value in case.settings.items())
    return [
        case.library,
        settings,
        case.layout,
        f"{found['input'] / MEGABYTE:.0f}",
        f"{found['growth'] / MEGABYTE:.0f}",
        f"{found['growth'] / found['input']:.2f}",
    ]


# One case.


def growth_elsewhere(number: int, megabytes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.linear_memory"]
    command += ["--case", str(number), "--megabytes", str(megabytes)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{CASES[number]} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def growth_here(case: Case, megabytes: int) -> dict[str, float]:
    """Bytes of the input, and by how much the peak of memory grew."""
    X, y = make_rows(case.layout, megabytes * MEGABYTE)
    machine = machine_of(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is known
        machine.fit(X[:WARM_ROWS], y[:WARM_ROWS])
        gc.collect()
        before = reset_peak()
        machine.fit(X, y)
    return {"input": bytes_of(X), "growth": memory("VmHWM") - before}


def machine_of(case: Case) -> Any:
    if case.library == "maxmargin":
        from maxmargin import LinearSVC
    else:
        from sklearn.svm import LinearSVC
    return LinearSVC(max_iter=MAX_ITER, random_state=0, **case.settings)


def make_rows(layout: str, n_bytes: int) -> tuple[Any, np.ndarray]:
    """Noise, and labels that a direction explains in part."""
    rng = np.random.default_rng(0)
    if layout == "dense":
        n = n_bytes // (8 * DENSE_FEATURES)
        X = rng.standard_normal((n, DENSE_FEATURES))
    else:
        n = n_bytes // ((8 + 4) * PER_ROW)
        columns = rng.integers(0, SPARSE_FEATURES, size=(n, PER_ROW), dtype=np.int32)
        columns.sort(axis=1)
        parts = (
            rng.standard_normal(n * PER_ROW),
            columns.ravel(),
            PER_ROW * np.arange(n + 1, dtype=np.int32),
        )
        X = sp.csr_matrix(parts, shape=(n, SPARSE_FEATURES))
        X.sum_duplicates()
    score = X @ rng.standard_normal(X.shape[1])
    noise = score.std() * rng.standard_normal(n)
    return X, (score + noise > 0.0).astype(np.int64)


def bytes_of(X: Any) -> int:
    if sp.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes


# What Linux says of this process, in bytes.


def reset_peak() -> int:
    """Make the present memory the highest so far, and return it."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name: str) -> int:
    """VmRSS, or its highest value since the last reset, VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(name))
    return 1024 * int(kilobytes)


if __name__ == "__main__":
    main()
