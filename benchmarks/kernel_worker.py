"""How long does one library take for one kernel machine? Asked of a new process.

`python -m benchmarks.kernel_worker` with a JSON argument prints a line of JSON with the
time and the memory of a fit and, if asked, another one with what its answer is worth.
Before the clock starts, some hundred and some thousand rows are fitted, and then all
of them by a fit that is stopped at once (LIBSVM cannot be): these only load or compile
what is needed.
"""

import ctypes
import gc
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import certificate
from benchmarks.certificate import Answered, Fit, LargeGram
from benchmarks.compilations import Compilations
from benchmarks.kernel_cases import CASES, Case, as_dense, prepare_split
from benchmarks.libraries import LIBRARIES, read_fit
from benchmarks.linear_memory import MEGABYTE, memory, reset_peak
from benchmarks.processes import AT_LEISURE, READY
from benchmarks.sets import Split

OURS = "maxmargin"
TOL = 1e-3
PEER_CACHE = 1000  # megabytes; ours chooses its own
WARM_ROWS, MORE_WARM_ROWS = 300, 5000
LARGEST_CLASSES = 3  # and no others, in the second of these fits
FEWEST_OF_A_CLASS = 10
WARM_MOVES = 100
SMALL_SECONDS = 1.0  # a small fit is repeated for this long, the best counts
MOST_DENSE_FEATURES = 1000


def work_here(order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines that an order asks for."""
    case = CASES[order["case"]]
    split = prepare_split(case, Path(order["folder"]) if order["folder"] else None)
    if order["is_dense"] and split.X.shape[1] <= MOST_DENSE_FEATURES:
        split = as_dense(split)
    fit = warmed_up(case, order["library"], split)
    print(READY, flush=True)
    if order["is_predicting"]:
        yield time_prediction(fit(), split, order["repeat"])
        return
    compiled = Compilations() if order["library"].startswith(OURS) else None
    model, found = timed(fit, compiled, is_small=case.group == "small")
    yield found | {"rows": len(split.y), "features": split.X.shape[1]}
    print(AT_LEISURE, flush=True)
    if order["is_judged"]:
        yield judge(case, model, split, is_certified=order["is_certified"])


# The fit.


def warmed_up(case: Case, library: str, split: Split) -> Callable[[], Any]:
    """The fit, ready to be called, with everything loaded that it needs."""
    prepare = LIBRARIES[library].prepare
    settings = case.settings | {"machine": case.machine, "tol": TOL}
    if not library.startswith(OURS):
        settings["cache_size"] = PEER_CACHE
    warm = []
    for rows in warming_rows(split.y, is_classified=case.machine == "SVC"):
        warm.append(prepare(split.X[rows], split.y[rows], **settings))
    if library != "libsvm-official":
        warm.append(prepare(split.X, split.y, max_iter=WARM_MOVES, **settings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is known
        for fit in warm:
            fit().predict(split.X_test[:WARM_ROWS])
    return prepare(split.X, split.y, **settings)


def warming_rows(y: np.ndarray, *, is_classified: bool) -> list[np.ndarray]:
    """A few rows, with some of every class, and more, of the largest ones."""
    if not is_classified:
        return [np.arange(min(n, len(y))) for n in (WARM_ROWS, MORE_WARM_ROWS)]
    labels, counts = np.unique(y, return_counts=True)
    n_each = max(WARM_ROWS // len(labels), FEWEST_OF_A_CLASS)
    largest = labels[np.argsort(-counts, kind="stable")[:LARGEST_CLASSES]]
    n_more = MORE_WARM_ROWS // len(largest)
    return [first_of_each(y, labels, n_each), first_of_each(y, largest, n_more)]


def first_of_each(y: np.ndarray, labels: np.ndarray, n: int) -> np.ndarray:
    """The first n rows with each of these labels."""
    return np.sort(np.concatenate([np.flatnonzero(y == k)[:n] for k in labels]))


def timed(
    fit: Callable[[], Any], compiled: Compilations | None, *, is_small: bool
) -> tuple[Any, dict[str, float | None]]:
    """A fitted model, its seconds, and the growth and the height of the memory.

    A fit during which something was compiled all the same is made again.
    """
    while True:
        before, n_compiled = settle_memory(), compiled.n if compiled else 0
        began = time.perf_counter()
        model = fit()
        seconds = time.perf_counter() - began
        if compiled is None or compiled.n == n_compiled:
            break
    peak = memory("VmHWM") if before is not None else None
    if is_small:
        seconds = min(seconds, best_of_many(fit))
    found = {"seconds": seconds, "growth_mb": None, "peak_mb": None}
    if before is not None and peak is not None:
        found["growth_mb"] = (peak - before) / MEGABYTE
        found["peak_mb"] = peak / MEGABYTE
    return model, found


def settle_memory() -> int | None:
    """Give free memory back and reset its highest mark; None where nobody can tell."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else a fit reuses what warming up left
        return reset_peak()
    except (OSError, AttributeError, TypeError):
        return None


def best_of_many(fit: Callable[[], Any]) -> float:
    best, until = np.inf, time.perf_counter() + SMALL_SECONDS
    while time.perf_counter() < until:
        began = time.perf_counter()
        fit()
        best = min(best, time.perf_counter() - began)
    return best


def time_prediction(model: Any, split: Split, repeat: int) -> dict[str, float]:
    """Rows a second, the best of `repeat`."""
    model.predict(split.X_test[:WARM_ROWS])
    taken = []
    for _ in range(repeat):
        began = time.perf_counter()
        model.predict(split.X_test)
        taken.append(time.perf_counter() - began)
    n = len(split.y_test)
    return {
        "seconds": min(taken),
        "rows": n,
        "rows_per_second": n / min(taken),
        "n_support": len(read_fit(model).support),
    }


# What the answer is worth.


def judge(
    case: Case, model: Any, split: Split, *, is_certified: bool
) -> dict[str, float | None]:
    """Objective and violation summed up in float64, and the score on the test rows."""
    fit, settings = read_fit(model), dict(case.settings)
    if settings["gamma"] == "scale":
        settings["gamma"] = 1.0 / (split.X.shape[1] * split.X.var())
    y = split.y
    if case.machine == "SVC":
        y = (y[:, None] == np.asarray(model.classes_)).argmax(axis=1)
    gram = LargeGram(split.X, settings["gamma"])
    asked = Answered(case.machine, y, settings)
    state = certificate.problems_of if is_certified else certificate.on_support
    problems = state(asked, fit, gram)
    return {
        "objective": certificate.objective(problems),
        "violation": certificate.violation(problems) if is_certified else None,
        "n_support": count_support(fit),
        "score": score(case.machine, model.predict(split.X_test), split.y_test),
    }


def count_support(fit: Fit) -> int:
    """Rows with a coefficient that is not zero."""
    return int((fit.coef != 0.0).any(axis=0).sum())


def score(machine: str, found: np.ndarray, y: np.ndarray) -> float:
    """Accuracy, R2, or the share of rows that are told to be outliers."""
    if machine == "OneClassSVM":
        return float(np.mean(found < 0))
    if machine == "SVR":
        return float(1.0 - np.square(found - y).sum() / np.square(y - y.mean()).sum())
    return float(np.mean(found == y))


if __name__ == "__main__":
    for line in work_here(json.loads(sys.argv[1])):
        print(json.dumps(line), flush=True)
