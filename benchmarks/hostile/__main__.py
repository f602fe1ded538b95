"""Which hostile problems are answered wrongly, late or not at all?

`python -m benchmarks.hostile --seed S --n N` fits N random problems (n_jobs=1), each in
a watched process with a limit of max(5 s, 20 times scikit-learn's CPU time), judges
every answer by a program that shares no code with the solvers, and prints a table and a
list of failures. `--only INDEX` runs one problem and prints how to repeat it. The
status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.hostile import verdict
from benchmarks.hostile.problems import MOST_ROWS, Problem, make_problem
from benchmarks.hostile.verdict import BAD, GOOD, Verdict, judge_answer
from benchmarks.hostile.watch import Watched
from benchmarks.hostile.worker import OURS, PEER
from benchmarks.tables import print_table

LEAST = 5.0  # CPU seconds that any fit may take
FACTOR = 20.0  # of scikit-learn's seconds that a fit may take
PEER_LIMIT = 20.0  # seconds after which scikit-learn is taken not to end
COMPARED = 1.0  # seconds that scikit-learn gets where only its objective is asked for

SNIPPET = """\
from benchmarks.hostile.problems import make_problem
from maxmargin import {machine}
p = make_problem({seed}, {index}{rows})
fitted = {machine}(**p.parameters, n_jobs=1).fit(
    p.X, *([] if p.y is None else [p.y]), sample_weight=p.sample_weight
)
print(fitted.status_, fitted.kkt_violation_, fitted.dual_gap_, fitted.n_iter_)"""


def main() -> None:
    options = read_options()
    hunt = Hunt(options)
    indices = range(options.first, options.first + options.n)
    if options.only is not None:
        indices = range(options.only, options.only + 1)
    try:
        records = [hunt.run(index) for index in indices]
    finally:
        hunt.stop()
    if options.only is not None:
        show_one(options, records[0])
    report(records)
    if options.json:
        lines = "".join(json.dumps(record) + "\n" for record in records)
        Path(options.json).write_text(lines)
    raise SystemExit(any(record["word"] in BAD for record in records))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hostile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n", type=int, default=200, help="how many problems")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--only", type=int, help="the number of the one to run")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="most samples")
    parser.add_argument("--json", help="file for one line of JSON a problem")
    parser.add_argument(
        "--peer-limit",
        type=float,
        default=PEER_LIMIT,
        help="CPU seconds after which scikit-learn is taken not to end",
    )
    parser.add_argument(
        "--no-comparison",
        action="store_true",
        help="run scikit-learn only where a fit takes more than 5 s",
    )
    return parser.parse_args()


class Hunt:
    """The two workers, and what is done with each problem."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.ours, self.peer = Watched(OURS), Watched(PEER)

    def run(self, index: int) -> dict[str, Any]:
        """Fit, judge and print a failure as soon as it is known."""
        problem = make_problem(self.options.seed, index, self.options.rows)
        found, limit = self.fit_in_time(index)
        judged = judge_answer(problem, found)
        if found["kind"] == "fitted" and judged.word in GOOD:
            judged = self.compared(problem, index, found, judged)
        record = {
            "index": index,
            "machine": problem.machine,
            "kernel": problem.parameters["kernel"],
            "word": judged.word,
            "status": judged.status,
            "detail": judged.detail,
            "seconds": found.get("seconds"),
            "limit": limit,
            "n_iter": int(max_of(found.get("attributes", {}).get("n_iter_", 0))),
            "problem": line_of(problem),
        }
        if judged.word in BAD:
            print_failure(self.options, record)
        return record

    def fit_in_time(self, index: int) -> tuple[dict[str, Any], float]:
        """Our answer, and its limit; the peer runs only where 5 s are not enough."""
        found, limit = self.fit(self.ours, index, LEAST), LEAST
        if found["kind"] == "late":
            peer = self.fit(self.peer, index, self.options.peer_limit)
            limit = max(LEAST, FACTOR * peer.get("seconds", 0.0))
            if limit > LEAST:
                found = self.fit(self.ours, index, limit)
        return found, limit

    def compared(
        self, problem: Problem, index: int, found: dict[str, Any], judged: Verdict
    ) -> Verdict:
        """The verdict, unless scikit-learn's point has a lower objective."""
        if self.options.no_comparison or not verdict.is_comparable(problem):
            return judged
        peer = self.fit(self.peer, index, COMPARED)
        if peer["kind"] != "fitted":
            return judged
        excess = verdict.excess_over(problem, found, peer)
        is_worse = excess and judged.status == "CONVERGED"
        return Verdict(verdict.WORSE, excess, judged.status) if is_worse else judged

    def fit(self, worker: Watched, index: int, limit: float) -> dict[str, Any]:
        return worker.fit(self.options.seed, index, self.options.rows, limit)

    def stop(self) -> None:
        self.ours.stop()
        self.peer.stop()


def max_of(values: Any) -> float:
    import numpy as np

    return float(np.max(values))


# ------------------------------------------------------------------------- reporting
def line_of(problem: Problem) -> str:
    """A problem in words."""
    n, d = problem.X.shape
    settings = ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in problem.parameters.items()
        if name != "class_weight"
    )
    weights = "" if problem.sample_weight is None else ", sample weights"
    if problem.parameters.get("class_weight") is not None:
        weights += ", class weights"
    return f"{problem.machine}({settings}), {n} x {d}: {problem.traits}{weights}"


def print_failure(options: argparse.Namespace, record: dict[str, Any]) -> None:
    rows = f" --rows {options.rows}" if options.rows != MOST_ROWS else ""
    print(f"{record['word']} {record['status']} {record['detail']}")
    print(f"    {record['problem']}")
    print(
        f"    python -m benchmarks.hostile --seed {options.seed} "
        f"--only {record['index']}{rows}",
        flush=True,
    )


def show_one(options: argparse.Namespace, record: dict[str, Any]) -> None:
    """One problem, how it went, and how to repeat it without this command."""
    print(f"{record['word']} {record['status']} in {record['seconds'] or 0:.3f} s")
    print(f"{record['detail']}\n{record['problem']}\n")
    rows = f", {options.rows}" if options.rows != MOST_ROWS else ""
    machine, index = record["machine"], record["index"]
    print(SNIPPET.format(machine=machine, seed=options.seed, index=index, rows=rows))
    print()


def report(records: list[dict[str, Any]]) -> None:
    """Counts by machine and kernel, then by status, then what was refused."""
    words = [w for w in (*GOOD, *BAD) if any(r["word"] == w for r in records)]
    rows = []
    for by in ("machine", "kernel"):
        for name in sorted({record[by] for record in records}):
            here = [record for record in records if record[by] == name]
            rows.append([name, *counts(here, words), f"{slowest(here):.1f}"])
    rows.append(["all", *counts(records, words), f"{slowest(records):.1f}"])
    print_table(["", *words, "slowest, s"], rows)
    statuses = Counter(record["status"] for record in records if record["status"])
    print("\nstatus:", ", ".join(f"{k} {v}" for k, v in statuses.most_common()))
    refused = [r["detail"][:70] for r in records if r["word"] == verdict.REFUSED]
    for message, count in Counter(refused).most_common():
        print(f"refused {count} times: {message}")


def counts(records: list[dict[str, Any]], words: list[str]) -> list[str]:
    found = Counter(record["word"] for record in records)
    return [str(found[word] or "") for word in words]


def slowest(records: list[dict[str, Any]]) -> float:
    return max(record["seconds"] or 0.0 for record in records)


if __name__ == "__main__":
    main()
