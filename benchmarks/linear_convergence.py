"""Do linear machines converge on raw features, with nothing but their defaults?

Every set of the folder is fitted as it was found, unscaled, by `LinearSVC()` or
`LinearSVR()`, beside scikit-learn's of the same names. A fit has its own process.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.linear_cases import Rows
from benchmarks.linear_worker import some_of
from benchmarks.processes import READY, run_in_time
from benchmarks.sets import find_folder, load_raw
from benchmarks.tables import print_table

REGRESSION = frozenset(
    {
        "abalone",
        "cadata",
        "casp",
        "cpuact",
        "cpusmall",
        "housing",
        "keggundirected",
        "mpg",
        "pol",
        "pyrim",
        "space_ga",
        "winequality-white",
    }
)
OUTLIERS = "ad_"  # how the names of sets for outlier detection begin
HEADS = ["set", "kind", "rows", "features", "seconds", "status", "relative gap"]
HEADS += ["scikit-learn's seconds", "its warning"]


def main() -> None:
    given = read_arguments()
    folder = find_folder(given.data)
    if folder is None:
        raise SystemExit("There is no folder of sets: pass --data FOLDER.")
    if given.fit:
        print(json.dumps(fit_here(*given.fit, folder)))
        return
    print("Defaults of LinearSVC and LinearSVR, raw features\n")
    lines = []
    for name in given.sets or names_in(folder):
        X, y = load_raw(name, folder)
        if len(y) > given.max_rows:
            continue
        lines.append([name, kind_of(name, y), str(len(y)), str(X.shape[1])])
        lines[-1] += cells_of_ours(fit_elsewhere("maxmargin", name, folder, None))
        limit = given.peer_limit
        lines[-1] += cells_of_peer(fit_elsewhere("sklearn", name, folder, limit), limit)
        print(*lines[-1], sep="  ", file=sys.stderr)
    print_table(HEADS, lines)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linear_convergence", description=__doc__
    )
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument("--sets", nargs="+", help="default: all but those for outliers")
    parser.add_argument("--max-rows", type=int, default=100_000)
    parser.add_argument(
        "--peer-limit", type=float, default=60.0, help="seconds for scikit-learn's fit"
    )
    parser.add_argument(
        "--fit", nargs=2, metavar=("LIBRARY", "SET"), help="one fit, in this process"
    )
    return parser.parse_args()


def names_in(folder: Path) -> list[str]:
    """The sets of a folder, the largest last."""
    files = [path for path in folder.glob("*.npz") if ".test." not in path.name]
    files.sort(key=lambda path: path.stat().st_size)
    names = [path.name.removesuffix(".npz").removesuffix(".train") for path in files]
    return [name for name in names if not name.startswith(OUTLIERS)]


def kind_of(name: str, y: np.ndarray) -> str:
    if name in REGRESSION:
        return "regression"
    n_classes = len(np.unique(y))
    return "binary" if n_classes == 2 else f"{n_classes} classes"


# One fit.


def fit_elsewhere(
    library: str, name: str, folder: Path, limit: float | None
) -> dict[str, Any] | None:
    """What a new process found, or None if it took too long."""
    arguments = ["--data", str(folder.resolve()), "--fit", library, name]
    found = run_in_time("benchmarks.linear_convergence", arguments, limit)
    if found.ending == "failed":
        raise SystemExit(f"{library} failed on {name}.")
    return found.fits[0] if found.fits else None


def fit_here(library: str, name: str, folder: Path) -> dict[str, Any]:
    """Seconds, how it ended, and the largest gap of its problems."""
    X, y = load_raw(name, folder)
    y = (
        y.astype(np.float64)
        if name in REGRESSION
        else np.unique(y, return_inverse=True)[1]
    )
    make = machine_of(library, is_regression=name in REGRESSION)
    few = some_of(Rows(X, y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make().fit(few.X, few.y)
        caught.clear()
        print(READY, flush=True)
        began = time.perf_counter()
        machine = make().fit(X, y)
        seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "warnings": sorted({each.category.__name__ for each in caught}),
        "status": machine.status_.name if hasattr(machine, "status_") else "",
        "gap": relative_gap(machine),
    }


def machine_of(library: str, *, is_regression: bool) -> Any:
    if library == "maxmargin":
        import maxmargin as module
    else:
        from sklearn import svm as module
    return module.LinearSVR if is_regression else module.LinearSVC


def relative_gap(machine: Any) -> float | None:
    """The largest duality gap over the objective, of machines that know theirs."""
    if not hasattr(machine, "dual_gap_"):
        return None
    return float(np.max(np.ravel(machine.dual_gap_) / np.ravel(machine.objective_)))


# The table.


def cells_of_ours(found: dict[str, Any] | None) -> list[str]:
    assert found is not None, "no limit was set"
    gap = "" if found["gap"] is None else f"{found['gap']:.1e}"
    return [f"{found['seconds']:.3f}", found["status"], gap]


def cells_of_peer(found: dict[str, Any] | None, limit: float) -> list[str]:
    if found is None:
        return [f"> {limit:g} s", ""]
    return [f"{found['seconds']:.3f}", " ".join(found["warnings"])]


if __name__ == "__main__":
    main()
