"""How long until a linear machine is as good as optimal, beside other libraries?

A library's time is that of its quickest fit whose primal objective is within the target
of the optimum, over a ladder of tolerances: stopping rules differ, objectives do not.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.linear_cases import CASES
from benchmarks.linear_libraries import WAYS, Way, ways_for
from benchmarks.linear_worker import CLOCKS, climb_elsewhere
from benchmarks.processes import Run
from benchmarks.sets import find_folder, has_set
from benchmarks.tables import print_table

OURS = "maxmargin"
TIGHT = 1e-9  # our tol for the optimum that all are measured by
LIBRARIES = list(dict.fromkeys(way.library for way in WAYS))


class Times(NamedTuple):
    """One library's seconds to each target; None where it did not come so close."""

    way: Way
    seconds: list[float | None]
    ending: str  # of its climb


def main() -> None:
    given = read_arguments()
    folder = find_folder(given.data)
    names = [name for name in given.cases if has_set(CASES[name].set, folder)]
    if not names:
        raise SystemExit("None of the sets is there: pass --data FOLDER.")
    known = read_references(given.references)
    print(
        "Seconds to a relative distance from the optimum; C = 1, intercept penalised\n"
        f"{os.cpu_count()} cores ({platform.machine()}), Python "
        f"{platform.python_version()}; clock: {given.clock}\n"
        "> N: not within N seconds of wall time; never: stops by itself before\n"
    )
    heads = ["case", "library", *(f"{target:g}" for target in given.targets)]
    lines = []
    for name in names:
        if name not in known:
            known[name] = find_reference(name, folder, given)
            keep_references(given.references, known)
        lines += lines_of_case(name, folder, known[name], given)
    print_table(heads, lines)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linear", description=__doc__
    )
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--targets", nargs="+", type=float, default=[1e-3, 1e-6])
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for a fit")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: of all threads together"
    )
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES)
    parser.add_argument(
        "--references", type=Path, help="JSON file of optima, read and added to"
    )
    return parser.parse_args()


# The optimum that all are measured by.


def read_references(path: Path | None) -> dict[str, float]:
    return json.loads(path.read_text()) if path and path.exists() else {}


def keep_references(path: Path | None, known: dict[str, float]) -> None:
    if path:
        path.write_text(json.dumps(known, indent=1) + "\n")


def find_reference(name: str, folder: Path | None, given: argparse.Namespace) -> float:
    """Our dual bound at a very small tol; else the lowest objective that is found."""
    loss = CASES[name].loss
    for way in ways_for(loss, [name for name in given.libraries if name == OURS]):
        found = climb(way, name, folder, given, tols=[TIGHT]).fits
        if found and found[-1]["is_finished"]:
            return found[-1]["bound"]
    others = [library for library in given.libraries if library != OURS]
    values = [
        fit["objective"]
        for way in ways_for(loss, others)
        for fit in climb(way, name, folder, given).fits
    ]
    if not values:
        raise SystemExit(f"Nobody solved {name} in time: pass a larger --limit.")
    return min(values)


# The times.


def lines_of_case(
    name: str, folder: Path | None, reference: float, given: argparse.Namespace
) -> list[list[str]]:
    """A line per way of solving the case, and one that compares."""
    times = []
    for way in ways_for(CASES[name].loss, given.libraries):
        climbed = climb(way, name, folder, given, reference=reference)
        times.append(judge(way, climbed, reference, given.targets))
        print(*line_of(name, times[-1], given.limit), file=sys.stderr, sep="  ")
    lines = [line_of(name, found, given.limit) for found in times]
    ratios = [ratio(times, k, given) for k in range(len(given.targets))]
    return [*lines, [name, "fastest peer / maxmargin", *ratios]]


def climb(
    way: Way, name: str, folder: Path | None, given: argparse.Namespace, **order: Any
) -> Run:
    """The fits of one way, in a process of its own."""
    asked = {
        "case": name,
        "way": WAYS.index(way),
        "folder": str(folder) if folder else "",
        "targets": given.targets,
        "reference": None,
        "tols": None,
        "clock": given.clock,
    }
    return climb_elsewhere(asked | order, given.limit)


def judge(way: Way, climbed: Run, reference: float, targets: list[float]) -> Times:
    """The quickest fit that reaches each target."""
    seconds = []
    for target in targets:
        near = [
            fit["seconds"]
            for fit in climbed.fits
            if fit["objective"] / reference - 1.0 <= target
        ]
        seconds.append(min(near, default=None))
    return Times(way, seconds, climbed.ending)


def line_of(name: str, found: Times, limit: float) -> list[str]:
    late = {"cut": f"> {limit:g}", "done": "never", "failed": "failed"}[found.ending]
    cells = [late if s is None else f"{s:.3f}" for s in found.seconds]
    return [name, f"{found.way.library} {found.way.label}".rstrip(), *cells]


def ratio(times: list[Times], k: int, given: argparse.Namespace) -> str:
    """The fastest peer's seconds over ours; at least the limit's, if one was cut off.

    The limit is by the wall clock, and says nothing of a processor's.
    """
    ours = [each.seconds[k] for each in times if each.way.library == OURS]
    peers = [each for each in times if each.way.library != OURS]
    reached = [each.seconds[k] for each in peers if each.seconds[k] is not None]
    if not ours or ours[0] is None or not peers:
        return ""
    if reached:
        return f"{min(reached) / ours[0]:.2f}"
    if any(each.ending == "cut" for each in peers):
        return f"> {given.limit / ours[0]:.2f}" if given.clock == "wall" else ""
    return "no peer"


if __name__ == "__main__":
    main()
