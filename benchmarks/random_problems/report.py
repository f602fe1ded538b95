"""What do many ratios say? Geometric means by kind of problem, and who is behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from benchmarks.random_problems.worker import OURS
from benchmarks.tables import print_table

Record = dict[str, Any]
KINDS: dict[str, Callable[[Record], bool]] = {
    "all": lambda r: True,
    "fastest peer 30 ms or more": lambda r: r["fastest"] >= 0.03,
    "fastest peer below 3 ms": lambda r: r["fastest"] < 0.003,
    "up to 350 rows": lambda r: r["n"] <= 350,
    "350 to 1,100": lambda r: 350 < r["n"] <= 1100,
    "1,100 to 3,100": lambda r: 1100 < r["n"] <= 3100,
    "more than 3,100": lambda r: r["n"] > 3100,
    "SVC": lambda r: r["machine"] == "SVC",
    "NuSVC": lambda r: r["machine"] == "NuSVC",
    "SVR": lambda r: r["machine"] == "SVR",
    "NuSVR": lambda r: r["machine"] == "NuSVR",
    "one-class": lambda r: r["machine"] == "OneClassSVM",
    "rbf": lambda r: r["kernel"] == "rbf",
    "linear": lambda r: r["kernel"] == "linear",
    "poly": lambda r: r["kernel"] == "poly",
    "sparse": lambda r: r["is_sparse"],
    "more than 10 classes": lambda r: r["n_classes"] > 10,
}
SHOWN = 15  # of those behind most
TWICE, AT_ONCE = 2.0, 0.002  # the fastest peer's time, or so many seconds


def add_ratio(record: Record) -> None:
    """The fastest peer's time over ours; None where neither or no peer has ended."""
    ended = {k: s for k, s in record["seconds"].items() if s is not None}
    ours = ended.pop(OURS, None)
    record["fastest_peer"] = min(ended, key=ended.__getitem__, default=None)
    record["fastest"] = ended.get(record["fastest_peer"], math.inf)
    record["ratio"] = None
    if ended:
        record["ratio"] = record["fastest"] / (ours or record["limit"])
        record["is_late"] = ours is None or ours > max(
            TWICE * record["fastest"], AT_ONCE
        )


def report(records: list[Record]) -> None:
    """The table, those behind most, and what is wrong."""
    compared = [record for record in records if record["ratio"] is not None]
    rows = []
    for kind, is_it in KINDS.items():
        here = [record for record in compared if is_it(record)]
        if here:
            rows.append([kind, str(len(here)), *summary(here)])
    print_table(["", "problems", "geomean", "median", "behind on", "late"], rows)
    print(f"\nnot ended by any peer: {len(records) - len(compared)}")
    print(f"not ended by us: {sum(r['seconds'][OURS] is None for r in records)}")
    behind = sorted((r for r in compared if r["ratio"] < 1), key=lambda r: r["ratio"])
    for record in behind[:SHOWN]:
        ours = record["seconds"][OURS]
        told = "not ended" if ours is None else f"{ours * 1e3:.1f} ms"
        print(
            f"  {record['ratio']:.2f}: #{record['index']} {record['problem']}: {told}, "
            f"{record['fastest_peer']} {record['fastest'] * 1e3:.1f} ms"
        )
    report_answers(records)


def summary(records: list[Record]) -> list[str]:
    """Geometric mean, median, share behind, and how many take twice as long."""
    ratios = sorted(record["ratio"] for record in records)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    n_behind = sum(ratio < 1.0 for ratio in ratios)
    n_late = sum(record["is_late"] for record in records)
    median = ratios[len(ratios) // 2]
    share = f"{100 * n_behind / len(ratios):.0f} %"
    return [f"{mean:.2f}", f"{median:.2f}", share, str(n_late or "")]


def report_answers(records: list[Record]) -> None:
    """The worst violation, the worst objective, and every status but converged."""
    known = [record for record in records if record.get("violation") is not None]
    if known:
        worst = max(known, key=lambda record: record["violation"])
        print(f"largest violation: {worst['violation']:.1e} (#{worst['index']})")
        print(f"infeasible: {sum(not record['is_feasible'] for record in known)}")
    excess = [record for record in records if record.get("excess") is not None]
    if excess:
        worst = max(excess, key=lambda record: record["excess"])
        print(
            f"objective above scikit-learn's: {worst['excess']:.1e} at most, relative"
            f" (#{worst['index']})"
        )
    for record in records:
        if record["status"] not in ("CONVERGED", None):
            print(f"  {record['status']}: #{record['index']} {record['problem']}")
        if record["message"]:
            print(f"  {record['message']}: #{record['index']} {record['problem']}")
