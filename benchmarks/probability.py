"""Are probabilities right, calibrated, and cheap? Six tables.

`python -m benchmarks.probability` prints how far sigmoids, probabilities and scales are
from LIBSVM's with the same folds, how well they are calibrated beside scikit-learn's
CalibratedClassifierCV, what the power of many classes does, what `probability=True`
costs, and how often intervals hold.
"""

import argparse
import ctypes
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.sets import Split, find_folder, load, load_parts, scale_to_range
from benchmarks.tables import print_table
from maxmargin import SVC, SVR

BINS = 10
COVERAGES = (0.8, 0.9, 0.95)
AGREEMENT = ["heart", "svmguide1", "splice", "vehicle"]
AGREEMENT += ["glass", "dna", "a1a", "satimage"]
POWERS = {"satimage": (16.0, 1.0), "vehicle": (10.0, 0.1), "segment": (10.0, 0.5)}
POWERS |= {"pendigits": (10.0, 0.5), "usps": (10.0, 1 / 128), "letter": (10.0, 1.0)}
MOST_TESTED = 2000
DRAWS = 20  # of outcomes that probabilities foretell perfectly
COSTS = {"a9a": 1.0, "satimage": 1.0, "magic04": 1.0, "usps": 1.0}
NUMBERS = ("mpg", "housing", "abalone", "cpusmall", "space_ga", "cadata")


class Quality(NamedTuple):
    """How good probabilities of test samples are."""

    log_loss: float
    error: float  # expected calibration error, in ten bins of the largest probability
    chance: float  # the error that perfect probabilities would have, by chance alone
    sure: np.ndarray  # the largest probability of each sample
    right: np.ndarray  # whether that class was the right one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument("--rows", type=int, default=1000, help="to train on, at most")
    parser.add_argument("--repeat", type=int, default=3, help="fits, the best counts")
    parser.add_argument("--splits", type=int, default=50, help="to average over")
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
        found = _differences(split, f"-c 1 -g {gamma} -e 1e-6 -b 1 -q")
        rows.append([name, str(len(split.y)), *(f"{value:.1e}" for value in found)])
    print("Largest differences from LIBSVM\n")
    print_table(["set", "rows", "|A|", "|B|", "|p|"], rows)


def _differences(split: Split, options: str) -> tuple[float, float, float]:
    from libsvm import svmutil as theirs

    from maxmargin import svmutil as ours

    mine, yours = _trained(split, split.y.astype(float), options)
    n = len(mine.core.intercept)
    slope = np.abs(mine.core.prob_a - np.array(yours.probA[:n])).max()
    offset = np.abs(mine.core.prob_b - np.array(yours.probB[:n])).max()
    found = ours.svm_predict([], split.X_test, mine, "-b 1 -q")[2]
    expected = theirs.svm_predict([], split.X_test, yours, "-b 1 -q")[2]
    return slope, offset, float(np.abs(np.subtract(found, expected)).max())


def _trained(split: Split, y: Any, options: str) -> tuple[Any, Any]:
    """By us and by LIBSVM, with the same random numbers."""
    from libsvm import svmutil as theirs

    from maxmargin import svmutil as ours
    from maxmargin.interop.c_rand import PROCESS

    ctypes.CDLL(None).srand(1)
    yours = theirs.svm_train(y, split.X, options)
    PROCESS.srand(1)
    return ours.svm_train(y, split.X, options), yours


def print_scales(folder: Path | None, given: argparse.Namespace) -> None:
    """The scale of regressors' errors beside LIBSVM's, at tol 1e-6, with its folds."""
    rows = []
    for name in NUMBERS:
        split = load(name, folder, given.rows)
        y = (split.y - split.y.mean()) / split.y.std()
        options = f"-s 3 -g {1.0 / split.X.shape[1]} -e 1e-6 -b 1 -q"
        mine, yours = (
            model.get_svr_probability() for model in _trained(split, y, options)
        )
        off = f"{abs(mine / yours - 1.0):.1e}"
        rows.append([name, str(len(y)), f"{mine:.6f}", f"{yours:.6f}", off])
    print("Scale of the Laplace distribution of errors\n")
    print_table(["set", "rows", "ours", "LIBSVM's", "relative difference"], rows)


def print_quality(folder: Path | None, given: argparse.Namespace) -> None:
    """Log-loss and calibration error beside CalibratedClassifierCV, over splits."""
    rows = []
    for name in AGREEMENT:
        told = [_both(split) for split in _splits(name, folder, given)]
        ours, theirs = zip(*told, strict=True)
        cells = [name, f"{len(ours[0].right)}"]
        for part in ("log_loss", "error", "chance"):
            mine, yours = (
                np.array([getattr(one, part) for one in many])
                for many in (ours, theirs)
            )
            cells += [f"{mine.mean():.4f}", f"{yours.mean():.4f}"]
            if part != "chance":
                cells.append(_with_error(mine - yours))
        cells += [f"{pooled(ours):.4f}", f"{pooled(theirs):.4f}"]
        rows.append(cells)
    heads = ["set", "tested", "log-loss", "sklearn's", "difference"]
    heads += ["error", "sklearn's", "difference", "by chance", "sklearn's"]
    heads += ["pooled", "sklearn's"]
    print(f"Means of {given.splits} splits beside CalibratedClassifierCV\n")
    print_table(heads, rows)


def print_powers(folder: Path | None, given: argparse.Namespace) -> None:
    """Log-loss and calibration error with the power of many classes, and without."""
    rows = []
    for name, (C, gamma) in POWERS.items():
        told = []
        for split in _splits(name, folder, given):
            machine = SVC(C=C, gamma=gamma, probability=True).fit(split.X, split.y)
            power, after = machine.prob_power_, _foretold(machine, split)
            machine.prob_power_ = 1.0
            before = _foretold(machine, split)
            told.append(
                [power, before.log_loss, after.log_loss, before.error, after.error]
            )
        means = np.mean(told, axis=0)
        rows.append([name, f"{C:g}, {gamma:g}", *(f"{mean:.4f}" for mean in means)])
    heads = ["set", "C, gamma", "power", "log-loss without", "with"]
    print(f"The power of coupled probabilities, means of {given.splits} splits\n")
    print_table([*heads, "error without", "with"], rows)


def _splits(
    name: str, folder: Path | None, given: argparse.Namespace
) -> Iterator[Split]:
    """Training and test rows drawn anew each time, features scaled to [-1, 1]."""
    X, y = _whole(name, folder)
    n = min(given.rows, 4 * len(y) // 5)
    for seed in range(given.splits):
        order = np.random.default_rng(seed).permutation(len(y))
        fitted, test = order[:n], order[n : n + MOST_TESTED]
        yield scale_to_range(Split(X[fitted], y[fitted], X[test], y[test]))


def _whole(name: str, folder: Path | None) -> tuple[Any, Any]:
    parts = load_parts(name, folder)
    width = max(X.shape[1] for X, _ in parts)
    dense = [X.toarray() if sp.issparse(X) else X for X, _ in parts]
    wide = [np.pad(X, ((0, 0), (0, width - X.shape[1]))) for X in dense]
    return np.concatenate(wide), np.concatenate([y for _, y in parts])


def _both(split: Split) -> tuple[Quality, Quality]:
    import sklearn.svm
    from sklearn.calibration import CalibratedClassifierCV

    gamma = 1.0 / split.X.shape[1]
    mine = SVC(gamma=gamma, probability=True).fit(split.X, split.y)
    plain = sklearn.svm.SVC(gamma=gamma)
    with warnings.catch_warnings():  # of classes rarer than folds, in glass
        warnings.filterwarnings("ignore", "The least populated class")
        others = CalibratedClassifierCV(plain, ensemble=False).fit(split.X, split.y)
    return _foretold(mine, split), _foretold(others, split)


def _foretold(machine: Any, split: Split) -> Quality:
    shares = machine.predict_proba(split.X_test)
    return quality(shares, machine.classes_, split.y_test)


def _with_error(values: Any) -> str:
    spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():+.4f} ± {spread:.4f}"


def quality(shares: Any, classes: Any, y: Any) -> Quality:
    """Log-loss, and how far confidence is from the share that is right."""
    code = np.searchsorted(classes, y)
    told = np.clip(shares[np.arange(len(y)), code], 1e-15, 1.0)
    sure, right = shares.max(axis=1), shares.argmax(axis=1) == code
    random = np.random.default_rng(0)
    drawn = [_error(sure, random.random(len(sure)) < sure) for _ in range(DRAWS)]
    loss, chance = float(-np.log(told).mean()), float(np.mean(drawn))
    return Quality(loss, _error(sure, right), chance, sure, right)


def pooled(qualities: Sequence[Quality]) -> float:
    """The calibration error of all splits' test samples in the same ten bins."""
    sure = np.concatenate([one.sure for one in qualities])
    return _error(sure, np.concatenate([one.right for one in qualities]))


def _error(sure: Any, right: Any) -> float:
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    off = np.bincount(place, weights=sure - right, minlength=BINS)
    return float(np.abs(off).sum()) / len(sure)


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
    "scales": print_scales,
    "quality": print_quality,
    "powers": print_powers,
    "costs": print_costs,
    "coverage": print_coverage,
}


if __name__ == "__main__":
    main()
