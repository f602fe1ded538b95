"""First or second order: which rule for choosing the next pair needs less work?"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.sets import find_folder, has_set, load
from benchmarks.tables import print_table

RULES = ("first_order", "second_order")
CASES = [  # set, most rows, C
    ("svmguide1", 3000, 10.0),
    ("splice", 1000, 1.0),
    ("a1a", 1605, 1.0),
    ("satimage", 4435, 10.0),
]
BUNDLED_CASES = [
    ("breast_cancer", 450, 10.0),
    ("digits", 1400, 10.0),
    ("blobs", 4000, 10.0),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.working_sets")
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    folder = find_folder(parser.parse_args().data)
    cases = [case for case in CASES if has_set(case[0], folder)] or BUNDLED_CASES
    print("SVC, RBF kernel, gamma = 1 / features, tol 1e-3, one thread, best of 3\n")
    heads = ["set", "working set", "rows", "C", "moves", "seconds", "objective"]
    rows = [row_of(case, rule, folder) for case in cases for rule in RULES]
    print_table(heads, rows)


def row_of(case: tuple[str, int, float], rule: str, folder: Path | None) -> list[str]:
    from maxmargin import SVC

    name, n_most, C = case
    split = load(name, folder, n_most)
    machine = SVC(C=C, gamma=1.0 / split.X.shape[1], working_set=rule, n_jobs=1)
    machine.fit(split.X, split.y)  # outside the clock: compiles
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        machine.fit(split.X, split.y)
        taken.append(time.perf_counter() - began)
    return [
        name,
        rule,
        str(len(split.y)),
        f"{C:g}",
        str(machine.n_iter_.sum()),
        f"{min(taken):.3f}",
        f"{np.sum(machine.objective_):.4f}",
    ]


if __name__ == "__main__":
    main()
