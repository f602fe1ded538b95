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
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.hostile.hunt import PEER_LIMIT, Hunt
from benchmarks.hostile.problems import MOST_ROWS
from benchmarks.hostile.verdict import BAD, GOOD, REFUSED
from benchmarks.tables import print_table

REPORT_EVERY = 250  # problems
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
    indices = range(options.first, options.first + options.n)
    if options.only is not None:
        indices = range(options.only, options.only + 1)
    records = []
    with Hunt(
        options.seed,
        most_rows=options.rows,
        peer_limit=options.peer_limit,
        is_compared=not options.no_comparison,
    ) as hunt:
        for index in indices:
            records.append(hunt.run(index))
            if records[-1]["word"] in BAD:
                print_failure(options, records[-1])
            if len(records) % REPORT_EVERY == 0:
                print(f"{len(records)} problems", file=sys.stderr, flush=True)
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


# ------------------------------------------------------------------------- reporting
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
    refused = [r["detail"][:70] for r in records if r["word"] == REFUSED]
    for message, count in Counter(refused).most_common():
        print(f"refused {count} times: {message}")


def counts(records: list[dict[str, Any]], words: list[str]) -> list[str]:
    found = Counter(record["word"] for record in records)
    return [str(found[word] or "") for word in words]


def slowest(records: list[dict[str, Any]]) -> float:
    return max(record["seconds"] or 0.0 for record in records)


if __name__ == "__main__":
    main()
