"""How fast is it beside scikit-learn, what does starting cost, how fast are files?"""

import argparse
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.libraries import LIBRARIES, installed
from benchmarks.sets import find_folder, has_set
from benchmarks.startup import startup_rows
from benchmarks.svmlight import KINDS, print_svmlight
from benchmarks.tables import print_table
from benchmarks.worker import fit_elsewhere

REFERENCE = "scikit-learn"


class Case(NamedTuple):
    """A data set and the C it is fitted with; gamma is 1 / number of features."""

    set: str
    C: float


CASES = {
    "satimage": Case("satimage", 1.0),
    "letter": Case("letter", 10.0),
    "letter-C1": Case("letter", 1.0),
    "digits": Case("digits", 10.0),
    "breast_cancer": Case("breast_cancer", 10.0),
    "blobs": Case("blobs", 10.0),
}
FROM_FOLDER = ["satimage", "letter", "letter-C1"]
FROM_SKLEARN = ["digits", "breast_cancer", "blobs"]


def main() -> None:
    given = read_arguments()
    folder = find_folder(given.data)
    names = given.cases or default_cases(folder, is_quick=given.quick)
    repeat = given.repeat or (1 if given.quick else 3)
    print(
        "SVC, RBF kernel, features in [-1, 1], gamma = 1 / features, tol 1e-3\n"
        f"{os.cpu_count()} cores ({platform.machine()}), Python "
        f"{platform.python_version()}; best of {repeat}, each fit in its own process\n"
    )
    rows = []
    for name in names:
        rows += rows_of_case(name, folder, given.libraries, repeat)
    heads = ["case", "library", "seconds", "ratio", "objective", "accuracy"]
    print_table(heads, rows)
    print("\nratio: seconds over scikit-learn's; maxmargin takes every core it may\n")
    print("Start-up, in seconds (median of new processes)\n")
    heads = ["what", "", "maxmargin", REFERENCE, "ratio"]
    print_table(heads, startup_rows(3 if given.quick else 5, cold=given.cold))
    print()
    print_svmlight(10 if given.quick else 100, list(KINDS), repeat)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, help="default: all there are"
    )
    parser.add_argument("--repeat", type=int, help="fits per library, the best counts")
    parser.add_argument("--quick", action="store_true", help="one fit, smallest case")
    parser.add_argument(
        "--cold", action="store_true", help="also the first fit with an empty cache"
    )
    parser.add_argument(
        "--libraries",
        nargs="+",
        choices=LIBRARIES,
        default=installed(),
        help="default: all that are installed, but for libsvm-official",
    )
    return parser.parse_args()


def default_cases(folder: Path | None, *, is_quick: bool) -> list[str]:
    known = [name for name in FROM_FOLDER if has_set(CASES[name].set, folder)]
    known = known or FROM_SKLEARN
    return known[:1] if is_quick else known


def rows_of_case(
    name: str, folder: Path | None, libraries: list[str], repeat: int
) -> list[list[str]]:
    """The libraries take turns, so that a busy minute hits them all."""
    case = CASES[name]
    found: dict[str, list[dict[str, float]]] = {library: [] for library in libraries}
    for _ in range(repeat):
        for library in libraries:
            order = case._asdict() | {
                "library": library,
                "folder": str(folder) if folder else "",
            }
            fit = fit_elsewhere(order)
            found[library].append(fit)
            print(f"{name}: {library} {fit['seconds']:.2f} s", file=sys.stderr)
    best = {k: min(v, key=lambda fit: fit["seconds"]) for k, v in found.items()}
    reference = best.get(REFERENCE, {}).get("seconds")
    return [
        [
            f"{name}, C={case.C:g}",
            library,
            f"{fit['seconds']:.2f}",
            f"{fit['seconds'] / reference:.2f}" if reference else "",
            f"{fit['objective']:.3f}",
            f"{fit['accuracy']:.2%}",
        ]
        for library, fit in best.items()
    ]


if __name__ == "__main__":
    main()
