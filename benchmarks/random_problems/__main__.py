"""How fast is a kernel machine on problems nobody chose?

    python -m benchmarks.random_problems --seed S --n N

draws N problems (a set, 300 to 8,000 of its rows, a machine, a kernel, parameters) and
fits each with maxmargin and its peers, one after the other, in processes that stay up.
Everything is compiled first; the best of three fits counts where they take less than a
second. Objectives and KKT violations are recomputed in float64. Sets come from --data
or MAXMARGIN_DATA, else from scikit-learn. A ratio is the fastest peer's time divided by
ours. Judge speed with a seed that nobody has looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from benchmarks.random_problems.judged import kernel_matrix, worth_of
from benchmarks.random_problems.problems import Problem, make_problem
from benchmarks.random_problems.report import add_ratio, report
from benchmarks.random_problems.worker import OURS, PACKAGES, serve
from benchmarks.sets import find_folder
from benchmarks.watch import Watched

LIMIT = 20.0  # seconds for a fit; where it may be made three times, for all of them
REFERENCE = "scikit-learn"  # whose objective ours is compared with


def main() -> None:
    options = read_options()
    folder = find_folder(options.data)
    indices = range(options.first, options.first + options.n)
    if options.only is not None:
        indices = range(options.only, options.only + 1)
    libraries = [name for name, package in PACKAGES.items() if find_spec(package)]
    workers = {name: Watched(serve, name, folder) for name in libraries}
    records = []
    try:
        for index in indices:
            records.append(run(options, index, folder, workers))
            show(records[-1])
            if options.json:
                lines = "".join(json.dumps(record) + "\n" for record in records)
                Path(options.json).write_text(lines)
    finally:
        for worker in workers.values():
            worker.stop()
    print()
    report(records)


def run(
    options: argparse.Namespace,
    index: int,
    folder: Path | None,
    workers: dict[str, Watched],
) -> dict[str, Any]:
    """Fit one problem with every library, and judge the answers."""
    problem = make_problem(options.seed, index, folder)
    found = {
        name: worker.ask((options.seed, index), options.limit)
        for name, worker in workers.items()
    }
    ours = found[OURS]
    record = describe(problem) | {
        "index": index,
        "limit": options.limit,
        "seconds": {
            name: answer["seconds"] if answer["kind"] == "fitted" else None
            for name, answer in found.items()
        },
        "status": ours.get("attributes", {}).get("status"),
        "n_iter": ours.get("attributes", {}).get("n_iter"),
        "message": ours.get("message", ""),
    }
    add_ratio(record)
    if ours["kind"] == "fitted" and not options.no_judging:
        record |= judged(problem, found)
    return record


def describe(problem: Problem) -> dict[str, Any]:
    """What the table sorts by."""
    n, d = problem.X.shape
    return {
        "problem": str(problem),
        "set": problem.name,
        "machine": problem.machine,
        "kernel": problem.parameters["kernel"],
        "n": n,
        "d": d,
        "is_sparse": sp.issparse(problem.X),
        "n_classes": problem.n_classes,
    }


def judged(problem: Problem, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Violation and objective of ours, and by how much that exceeds the reference."""
    K = kernel_matrix(problem)
    worth = worth_of(problem, K, found[OURS]["attributes"])
    record: dict[str, Any] = {
        "violation": worth.violation,
        "objective": worth.objective,
        "is_feasible": worth.is_feasible,
        "excess": None,
    }
    reference = found.get(REFERENCE, {})
    if reference.get("kind") != "fitted":
        return record
    try:
        other = worth_of(problem, K, reference["attributes"])
    except AssertionError:  # scikit-learn's support_ may miscount sparse samples
        return record
    scale = max(abs(other.objective), 1e-300)
    record["excess"] = (worth.objective - other.objective) / scale
    return record


def show(record: dict[str, Any]) -> None:
    """One line while the others are still to come."""
    times = ", ".join(
        f"{name} {'-' if s is None else f'{s * 1e3:.1f}'}"
        for name, s in record["seconds"].items()
    )
    ratio = "-" if record["ratio"] is None else f"{record['ratio']:.2f}"
    print(f"{record['index']}: {ratio} {record['problem']} [{times} ms]", flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.random_problems",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--n", type=int, default=50, help="how many problems")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--only", type=int, help="the number of the one to run")
    parser.add_argument("--data", help="folder of .npz files; else MAXMARGIN_DATA")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a fit")
    parser.add_argument("--json", help="file for one line of JSON a problem")
    parser.add_argument(
        "--no-judging", action="store_true", help="do not recompute the objectives"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
