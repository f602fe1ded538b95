"""How long does a kernel machine take beside its peers, and is its answer as good?

Each fit has its own process, with the RBF kernel and tol 1e-3; peers have 1000 MB for
their cache. The objective of every answer is computed from its coefficients by one
piece of NumPy, and so is the violation of its KKT conditions.
"""

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.kernel_cases import CASES, GROUPS, cases_of
from benchmarks.kernel_chart import draw_chart
from benchmarks.kernel_report import (
    HEADS,
    REFERENCE,
    SUMMARY_HEADS,
    Ratio,
    Result,
    cells_of,
    find,
    mean_of,
    slope_of,
    summarise,
    summary_cells,
)
from benchmarks.kernel_worker import OURS
from benchmarks.libraries import LIBRARIES
from benchmarks.processes import Run, run_in_time
from benchmarks.sets import find_folder
from benchmarks.surroundings import describe_machine, name_machine
from benchmarks.tables import print_table

PREDICTED = ("mnist", "a9a")  # by models that learn in a reasonable time
NOT_BY_DEFAULT = "maxmargin, 1 thread"


def main() -> None:
    given = read_arguments()
    given.folder = find_folder(given.data)
    machine = describe_machine()
    print(f"{name_machine(machine)}; best of {given.repeat}, RBF kernel, tol 1e-3")
    print(", ".join(f"{k} {v}" for k, v in machine["versions"].items()) + "\n")
    if given.predict:
        report = {"predictions": report_predictions(given)}
    else:
        report = report_fits(given, name_machine(machine))
    if given.json:
        asked = {k: v for k, v in vars(given).items() if k not in ("data", "folder")}
        whole = {"machine": machine, "asked": asked} | report
        given.json.write_text(json.dumps(whole, indent=1, default=as_json) + "\n")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kernel", description=__doc__
    )
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument("--group", choices=[*GROUPS, "all"], default="main")
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, metavar="CASE", help="instead of a group"
    )
    parser.add_argument(
        "--libraries",
        nargs="+",
        choices=LIBRARIES,
        help="default: all that are installed; on large cases, maxmargin",
    )
    parser.add_argument("--repeat", type=int, default=1, help="fits; the best counts")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a fit")
    parser.add_argument(
        "--certify",
        choices=("ours", "all", "none"),
        default="ours",
        help="whose KKT violation is computed",
    )
    parser.add_argument(
        "--dense", action="store_true", help="sparse sets of few features as arrays"
    )
    parser.add_argument(
        "--predict", action="store_true", help="time predictions instead of fits"
    )
    parser.add_argument("--json", type=Path, help="file for all numbers")
    parser.add_argument("--chart", type=Path, help="PNG file for the times")
    return parser.parse_args()


def as_json(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


# Fits.


def report_fits(given: argparse.Namespace, machine: str) -> dict[str, Any]:
    """Time all cases, print the tables, and return what they say."""
    names = given.cases or cases_of(given.group, given.folder)
    results = [result for name in names for result in results_of_case(name, given)]
    summaries = summarise(results)
    print_table(HEADS, [cells_of(r, find(results, r.case, OURS)) for r in results])
    print("\ntest score: accuracy, R2, or the share of rows told to be outliers\n")
    print_table(SUMMARY_HEADS, [summary_cells(summary) for summary in summaries])
    means = {
        "fastest peer": mean_of([summary["fastest"] for summary in summaries]),
        REFERENCE: mean_of([summary["reference"] for summary in summaries]),
    }
    slopes = {name: slope_of(results, name) for name in LIBRARIES}
    slopes = {name: slope for name, slope in slopes.items() if slope is not None}
    print()
    for who, mean in means.items():
        if mean is not None:
            print(f"{who} / maxmargin, geometric mean over the cases: {mean}")
    for library, slope in slopes.items():
        print(f"{library}, covtype: seconds grow as rows to the power {slope:.2f}")
    if given.chart:
        draw_chart(results, machine, given.chart)
    return {
        "fits": [fit_as_json(result) for result in results],
        "summary": [ratios_as_json(summary) for summary in summaries],
        "geometric_means": ratios_as_json(means),
        "slopes": slopes,
    }


def fit_as_json(result: Result) -> dict[str, Any]:
    case = CASES[result.case]
    kept = {
        "machine": case.machine,
        "settings": case.settings,
        "scaling": case.scale.__name__,
    }
    return result._asdict() | kept


def ratios_as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v._asdict() if isinstance(v, Ratio) else v for k, v in row.items()}


def results_of_case(name: str, given: argparse.Namespace) -> list[Result]:
    """The libraries take turns, so that a busy minute hits them all."""
    libraries = libraries_for(name, given.libraries)
    runs: dict[str, list[Run]] = {library: [] for library in libraries}
    for turn in range(given.repeat):
        for library in libraries:
            if turn and runs[library][0].ending != "done":
                continue
            run = run_elsewhere(name, library, given, is_judged=turn == 0)
            runs[library].append(run)
            result = read_runs(name, library, runs[library], given.limit)
            print(*cells_of(result, None), sep="  ", file=sys.stderr, flush=True)
    return [
        read_runs(name, library, runs[library], given.limit) for library in libraries
    ]


def libraries_for(name: str, asked: list[str] | None) -> list[str]:
    """Those asked for, or installed, that have the machine of a case."""
    case = CASES[name]
    if asked is None and case.group == "large":
        asked = [OURS]
    if asked is None:
        asked = [library for library in LIBRARIES if library != NOT_BY_DEFAULT]
    return [
        library
        for library in asked
        if find_spec(LIBRARIES[library].package)
        and case.machine not in LIBRARIES[library].lacks
    ]


def run_elsewhere(
    name: str,
    library: str,
    given: argparse.Namespace,
    *,
    is_judged: bool = False,
    is_predicting: bool = False,
) -> Run:
    """One fit in a process of its own."""
    is_ours = library.startswith(OURS)
    order = {
        "case": name,
        "library": library,
        "folder": str(given.folder) if given.folder else "",
        "is_dense": given.dense,
        "is_judged": is_judged,
        "is_certified": given.certify == "all" or (given.certify == "ours" and is_ours),
        "is_predicting": is_predicting,
        "repeat": given.repeat,
    }
    return run_in_time("benchmarks.kernel_worker", [json.dumps(order)], given.limit)


def read_runs(name: str, library: str, runs: list[Run], limit: float) -> Result:
    """The quickest of a library's fits, with the judgement of the first."""
    fits = [run.fits[0] for run in runs if run.fits]
    if not fits:
        return Result(name, library, runs[0].ending, limit, {})
    best = min(fits, key=lambda fit: fit["seconds"])
    judged = runs[0].fits[1] if len(runs[0].fits) > 1 else {}
    all_seconds = {"all_seconds": [fit["seconds"] for fit in fits]}
    return Result(name, library, runs[0].ending, limit, judged | best | all_seconds)


# Predictions.


def report_predictions(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows a second, ours beside scikit-learn's."""
    names = given.cases or [
        name for name in cases_of("main", given.folder) if name in PREDICTED
    ]
    names = names or ["digits"]
    found = []
    for name in names:
        for library in libraries_for(name, given.libraries or [OURS, REFERENCE]):
            run = run_elsewhere(name, library, given, is_predicting=True)
            line = {"case": name, "library": library, "ending": run.ending}
            found.append(line | (run.fits[0] if run.fits else {}))
            print(*prediction_cells(found[-1]), sep="  ", file=sys.stderr, flush=True)
    heads = ["case", "library", "test rows", "SVs", "seconds", "rows a second"]
    print_table(heads, [prediction_cells(line) for line in found])
    return found


def prediction_cells(line: dict[str, Any]) -> list[str]:
    words = [line["case"], line["library"]]
    if "seconds" not in line:
        return [*words, "", "", line["ending"], ""]
    return [
        *words,
        str(line["rows"]),
        str(line["n_support"]),
        f"{line['seconds']:.3f}",
        f"{line['rows_per_second']:.0f}",
    ]


if __name__ == "__main__":
    main()
