"""How is all machine code made ahead of time? By small fits of every kind.

What is compiled depends on the machine, its kernel, how the samples are stored and how
many they are. So each combination is fitted once, by processes that share the work: a
function that one of them compiles, the others load.
"""

import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.cli.console import Context
from maxmargin.cli.flags import parse
from maxmargin.cli.progress import progress_line

USAGE = """\
Usage: maxmargin compile

Makes all machine code for this processor now, and keeps it, so that no fit has to:
for images of containers and continuous integration.

options:
  --threads N       processes to compile in (default: all cores)
  --json, --help
"""
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
KERNELS = ("rbf", "linear", "poly", "sigmoid", "laplacian")
SIZES = (3500, 1500, 400, 60)  # samples: one for each way to solve, the longest first
SMALL = 400
WIDE = 400  # columns: narrow sparse samples are written out
N_CLASSES = 4
LINEAR: tuple[tuple[str, dict[str, Any]], ...] = (
    ("LinearSVC", {}),
    ("LinearSVC", {"loss": "hinge"}),
    ("LinearSVC", {"penalty": "l1", "dual": False}),
    ("LinearSVC", {"multi_class": "crammer_singer"}),
    ("LinearSVC", {"probability": True}),
    ("LinearSVR", {}),
    ("LinearSVR", {"loss": "squared_epsilon_insensitive"}),
    ("LogisticRegression", {}),
    ("LogisticRegression", {"penalty": "l1"}),
    ("LinearOneClassSVM", {}),
)
SEARCHES = ("SVCCV", "SVRCV", "NuSVCCV", "NuSVRCV", "LinearSVCCV", "LinearSVRCV")


class Kind(NamedTuple):
    """A fit that needs machine code of its own."""

    estimator: str
    settings: dict[str, Any]
    n: int
    layout: str = "dense"


def run(arguments: list[str], context: Context) -> int:
    """Fit every kind, in as many processes as there are cores."""
    parse(arguments, {}, USAGE, range(0, 1))
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from maxmargin._jit import cache_folder

    began, kinds = time.monotonic(), list(all_kinds())
    with (
        progress_line(context) as line,
        ProcessPoolExecutor(context.cores, get_context("spawn")) as pool,
    ):
        tasks = [pool.submit(fit, kind) for kind in kinds]
        tasks.append(pool.submit(read_and_write))
        for n_done, task in enumerate(as_completed(tasks), start=1):
            task.result()
            line.show(f"compiling: {n_done} of {len(tasks)} kinds of fits")
    folder, seconds = cache_folder(), time.monotonic() - began
    kept = f"kept in {folder}" if folder else "not kept: no folder is writable"
    context.say(f"machine code for {len(kinds)} kinds of fits, {kept}")
    context.report(kinds=len(kinds), seconds=seconds, folder=str(folder or ""))
    return 0


def all_kinds() -> Iterator[Kind]:
    """Those that take longest to compile come first."""
    for estimator in SEARCHES:
        yield Kind(estimator, {}, SMALL)
        yield Kind(estimator, {}, SMALL, "wide")
    for estimator in MACHINES[:-1]:
        yield Kind(estimator, {"probability": True}, SMALL)
    for n, machine, kernel in product(SIZES, MACHINES, KERNELS):
        yield Kind(machine, {"kernel": kernel}, n)
        yield Kind(machine, {"kernel": kernel}, n, "wide")
    for machine in MACHINES:
        yield Kind(machine, {}, SMALL, "sparse")
    for n, machine in product(SIZES[-2:], MACHINES):
        yield Kind(machine, {"kernel": "precomputed"}, n, "matrix")
    for solver, machine in product(("smo", "grow"), MACHINES):
        yield Kind(machine, {"solver": solver}, SMALL)
    for (estimator, settings), layout in product(LINEAR, ("dense", "sparse")):
        yield Kind(estimator, settings, SMALL, layout)


def fit(kind: Kind) -> None:
    """Fit and predict, on samples that have nothing to say."""
    import numpy as np
    import scipy.sparse as sp

    import maxmargin

    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(kind.n, 6))
    values = X[:, 0] + 0.3 * rng.normal(size=kind.n)
    y = values
    if "SVC" in kind.estimator or kind.estimator == "LogisticRegression":
        y = np.argsort(np.argsort(values)) * N_CLASSES // kind.n
    if kind.layout in ("sparse", "wide"):
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.5))
    if kind.layout == "wide":
        X.resize(kind.n, WIDE)
    if kind.layout == "matrix":
        X = X @ X.T
    nu = {"nu": 0.2} if kind.estimator in ("NuSVC", "NuSVR", "OneClassSVM") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody wants to know of these machines
        machine = getattr(maxmargin, kind.estimator)(**kind.settings, **nu)
        machine.fit(X, y).predict(X)


def read_and_write() -> None:
    """A data file, there and back."""
    import numpy as np

    from maxmargin.data.svmlight import read_svmlight
    from maxmargin.data.svmlight_write import write_svmlight

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "samples"))
        write_svmlight(path, np.eye(3), np.arange(3.0))
        read_svmlight(path)
