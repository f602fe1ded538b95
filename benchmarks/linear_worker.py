"""How long does one library take to come close to one optimum? Asked of a new process.

`python -m benchmarks.linear_worker` with a JSON argument climbs a ladder of
tolerances and prints a line of JSON per fit. The parent ends it when a fit takes longer
than its limit: no library needs to know of the limit.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.linear_cases import CASES, Rows, objective, prepare_rows
from benchmarks.linear_libraries import WAYS, Answer, Fit
from benchmarks.processes import READY, Run, run_in_time

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
WARM_ROWS = 100  # of a class
FAR = 30.0  # this many times the target away, one rung is skipped
WORTH_REPEATING = 5.0  # seconds: a shorter fit is timed twice


def climb_elsewhere(order: dict[str, Any], limit: float) -> Run:
    """One order in a new process."""
    return run_in_time("benchmarks.linear_worker", [json.dumps(order)], limit)


# In the process.


def climb_here(order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Fits from loose to tight, until the smallest target is reached."""
    case, way = CASES[order["case"]], WAYS[order["way"]]
    folder = Path(order["folder"]) if order["folder"] else None
    rows = prepare_rows(case.set, folder)
    way.prepare(some_of(rows), case.loss)(way.tols[0])()
    fit = way.prepare(rows, case.loss)
    reference, targets = order["reference"], sorted(order["targets"], reverse=True)
    tols, clock = order["tols"] or way.tols, CLOCKS[order["clock"]]
    print(READY, flush=True)
    k = 0
    while k < len(tols) and targets:
        answer, seconds = timed(fit, tols[k], clock)
        value = objective(case.loss, rows, answer.weights)
        distance = value / reference - 1.0 if reference else np.inf
        yield report(tols[k], seconds, value, answer)
        if distance <= targets[0] and seconds < WORTH_REPEATING:
            yield report(tols[k], timed(fit, tols[k], clock)[1], value, answer)
        if not answer.is_finished:
            return
        k += 2 if reference and distance > FAR * targets[0] else 1
        targets = [target for target in targets if distance > target]


def some_of(rows: Rows) -> Rows:
    """A few rows of every class: what they compile and wake is not on the clock."""
    if not np.issubdtype(rows.y.dtype, np.integer):
        return Rows(rows.X[:WARM_ROWS], rows.y[:WARM_ROWS])
    classes = range(int(rows.y.max()) + 1)
    picked = [np.flatnonzero(rows.y == label)[:WARM_ROWS] for label in classes]
    order = np.sort(np.concatenate(picked))
    return Rows(rows.X[order], rows.y[order])


def timed(fit: Fit, tol: float, clock: Callable[[], float]) -> tuple[Answer, float]:
    began = clock()
    read = fit(tol)
    seconds = clock() - began
    return read(), seconds


def report(tol: float, seconds: float, value: float, answer: Answer) -> dict[str, Any]:
    return {
        "tol": tol,
        "seconds": seconds,
        "objective": value,
        "bound": answer.bound,
        "is_finished": answer.is_finished,
    }


if __name__ == "__main__":
    for line in climb_here(json.loads(sys.argv[1])):
        print(json.dumps(line), flush=True)
