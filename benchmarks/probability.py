"""Are probabilities right, calibrated, and cheap? Three tables.

`python -m benchmarks.probability` prints how far sigmoids and probabilities are from
LIBSVM's with the same folds, how well they are calibrated beside scikit-learn's
CalibratedClassifierCV, what `probability=True` costs, and how often intervals hold.
"""

import argparse
import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.sets import Split, find_folder, load
from benchmarks.tables import print_table
from maxmargin import SVC, SVR

BINS = 10
COVERAGES = (0.8, 0.9, 0.95)
AGREEMENT = ["heart", "svmguide1", "splice", "vehicle"]
AGREEMENT += ["glass", "dna", "a1a", "satimage"]
COSTS = {"a9a": 1.0, "satimage": 1.0, "magic04": 1.0, "usps": 1.0}
NUMBERS = ("mpg", "housing", "abalone", "cpusmall", "space_ga", "cadata")


class Quality(NamedTuple):
    """How good probabilities of test samples are."""

    log_loss: float
    error: float  # expected calibration error, in ten bins of the largest probability


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument("--rows", type=int, default=1000, help="of the first table")
    parser.add_argument("--repeat", type=int, default=3, help="fits, the best counts")
    parser.add_argument("--splits", type=int, default=50, help="of intervals")
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=list(TABLES),
        default=list(TABLES),
        help="default: all",
    )
    given = parser.parse_args()
    folder = find_folder(given.data)
    for name in given.tables:
        TABLES[name](folder, given)
        print()


def print_agreement(folder: Path | None, given: argparse.Namespace) -> None:
    """Sigmoids and probabilities beside LIBSVM's, at tol 1e-6 and with its folds."""
    rows = []
    for name in AGREEMENT:
        split = _dense(load(name, folder, given.rows))
        gamma = 1.0 / split.X.shape[1]
        slope, offset, shares = _differences(split, f"-c 1 -g {gamma} -e 1e-6 -b 1 -q")
        mine, theirs = _qualities(split, gamma)
        rows.append(
            [
                name,
                str(len(split.y)),
                f"{slope:.1e}",
                f"{offset:.1e}",
                f"{shares:.1e}",
                *(f"{value:.4f}" for value in (*mine, *theirs)),
            ]
        )
    heads = ["set", "rows", "|A|", "|B|", "|p|"]
    heads += ["log-loss", "error", "sklearn's", "error"]
    print("Largest differences from LIBSVM; quality on test samples\n")
    print_table(heads, rows)


def _differences(split: Split, options: str) -> tuple[float, float, float]:
    from libsvm import svmutil as theirs

    from maxmargin import svmutil as ours
    from maxmargin.interop.c_rand import PROCESS

    ctypes.CDLL(None).srand(1)
    yours = theirs.svm_train(split.y.astype(float), split.X, options)
    PROCESS.srand(1)
    mine = ours.svm_train(split.y.astype(float), split.X, options)
    n = len(mine.core.intercept)
    slope = np.abs(mine.core.prob_a - np.array(yours.probA[:n])).max()
    offset = np.abs(mine.core.prob_b - np.array(yours.probB[:n])).max()
    found = ours.svm_predict([], split.X_test, mine, "-b 1 -q")[2]
    expected = theirs.svm_predict([], split.X_test, yours, "-b 1 -q")[2]
    return slope, offset, float(np.abs(np.subtract(found, expected)).max())


def _qualities(split: Split, gamma: float) -> tuple[Quality, Quality]:
    import sklearn.svm
    from sklearn.calibration import CalibratedClassifierCV

    plain = sklearn.svm.SVC(gamma=gamma)
    others = CalibratedClassifierCV(plain, ensemble=False).fit(split.X, split.y)
    mine = SVC(gamma=gamma, probability=True).fit(split.X, split.y)
    return (
        quality(mine.predict_proba(split.X_test), mine.classes_, split.y_test),
        quality(others.predict_proba(split.X_test), others.classes_, split.y_test),
    )


def quality(shares: Any, classes: Any, y: Any) -> Quality:
    """Log-loss, and how far confidence is from the share that is right."""
    code = np.searchsorted(classes, y)
    told = np.clip(shares[np.arange(len(y)), code], 1e-15, 1.0)
    sure, right = shares.max(axis=1), shares.argmax(axis=1) == code
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    off = [abs(float((sure - right)[place == k].sum())) for k in range(BINS)]
    return Quality(float(-np.log(told).mean()), sum(off) / len(y))


def print_costs(folder: Path | None, given: argparse.Namespace) -> None:
    """Seconds with probability over seconds without."""
    rows = []
    for name, C in COSTS.items():
        split = load(name, folder)
        settings = {"C": C, "gamma": 1.0 / split.X.shape[1]}
        SVC(**settings, probability=True).fit(split.X[:500], split.y[:500])
        best = [np.inf, np.inf]  # without, and with
        for _ in range(given.repeat):
            for k in (0, 1):
                began = time.perf_counter()
                SVC(**settings, probability=k == 1).fit(split.X, split.y)
                best[k] = min(best[k], time.perf_counter() - began)
        ratio = best[1] / best[0]
        seconds = [f"{best[0]:.2f}", f"{best[1]:.2f}", f"{ratio:.2f}"]
        rows.append([name, str(len(split.y)), *seconds])
    print("Seconds of a fit, without and with probability=True\n")
    print_table(["set", "rows", "without", "with", "ratio"], rows)


def print_coverage(folder: Path | None, given: argparse.Namespace) -> None:
    """How often split-conformal intervals hold, averaged over splits."""
    rows = []
    for name in NUMBERS:
        split = load(name, folder, 1000)
        X = np.concatenate((split.X, split.X_test))
        y = np.concatenate((split.y, split.y_test))
        y = (y - y.mean()) / y.std()
        held = [_held(X, y, seed) for seed in range(given.splits)]
        means = np.mean(held, axis=0)
        rows.append([name, str(len(y)), *(f"{mean:.2%}" for mean in means)])
    print(f"Coverage of conformal intervals, mean of {given.splits} splits\n")
    print_table(["set", "rows", *(f"asked {c:.0%}" for c in COVERAGES)], rows)


def _held(X: Any, y: Any, seed: int) -> list[float]:
    order = np.random.default_rng(seed).permutation(len(y))[:2000]
    n = len(order)
    fitted, apart, test = np.split(order, [2 * n // 5, 7 * n // 10])
    machine = SVR().fit(X[fitted], y[fitted]).calibrate(X[apart], y[apart])
    shares = []
    for coverage in COVERAGES:
        ends = machine.predict_interval(X[test], coverage, method="conformal")
        inside = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
        shares.append(float(inside.mean()))
    return shares


def _dense(split: Split) -> Split:
    if not sp.issparse(split.X):
        return split
    return split._replace(X=split.X.toarray(), X_test=split.X_test.toarray())


TABLES: dict[str, Callable[[Path | None, argparse.Namespace], None]] = {
    "agreement": print_agreement,
    "costs": print_costs,
    "coverage": print_coverage,
}


if __name__ == "__main__":
    main()
