"""How much does a search for C and gamma cost, and does it find the same point?

    python -m benchmarks.selection [--data FOLDER] [SET ...]

Six values of C, five of gamma, five folds: SVCCV and SVRCV against GridSearchCV over
scikit-learn's own machines, on the same folds, one run each, after a small search that
loads all machine code. "differs" is the largest difference of a cell's mean score, KKT
the largest violation of any machine of any cell and fold, certified in float64. CPU
seconds are those of all threads together, less disturbed by other work on the machine.
"""

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC, SVR

from benchmarks.sets import find_folder, load
from benchmarks.tables import print_table
from maxmargin import SVCCV, SVRCV

CS = [2.0**k for k in range(-5, 16, 4)]
GAMMAS = [2.0**k for k in range(-13, 4, 4)]
SETS = {  # rows at most, None for all
    "svmguide1": None,
    "satimage": None,
    "splice": None,
    "a1a": None,
    "magic04": 5000,
    "mpg": None,
}
REGRESSIONS = ("mpg",)
HEADS = (
    "set",
    "best C, gamma",
    "rows",
    "ours s",
    "theirs s",
    "ratio",
    "CPU s",
    "theirs",
    "differs",
    "KKT",
)


class Spent(NamedTuple):
    """Seconds on the clock, and of all cores together."""

    wall: float
    cpu: float


class Outcome(NamedTuple):
    """One set, both searches."""

    name: str
    n: int
    ours: Any
    theirs: Any
    spent: tuple["Spent", "Spent"]

    def row(self) -> list[str]:
        """As a line of the table."""
        best = [search.best_params_ for search in (self.ours, self.theirs)]
        shown = f"{best[0]['C']:g}, {best[0]['gamma']:g}"
        if any(best[0][name] != best[1][name] for name in best[1]):
            shown += f" (theirs {best[1]['C']:g}, {best[1]['gamma']:g})"
        scores = [s.cv_results_["mean_test_score"] for s in (self.ours, self.theirs)]
        return [
            self.name,
            shown,
            str(self.n),
            f"{self.spent[0].wall:.2f}",
            f"{self.spent[1].wall:.1f}",
            f"{self.spent[1].wall / self.spent[0].wall:.1f}",
            f"{self.spent[0].cpu:.2f}",
            f"{self.spent[1].cpu:.1f}",
            f"{np.abs(scores[0] - scores[1]).max():.5f}",
            f"{self.ours.cv_results_['kkt_violation'].max():.1e}",
        ]


def compare(name: str, X: Any, y: np.ndarray) -> Outcome:
    """Both searches on one set."""
    is_regression = name in REGRESSIONS
    if is_regression:
        y = (y - y.mean()) / y.std()
    shuffled = {"n_splits": 5, "shuffle": True, "random_state": 0}
    folds = (KFold if is_regression else StratifiedKFold)(**shuffled)
    splits = list(folds.split(X, y))
    search = SVRCV if is_regression else SVCCV
    ours = search(Cs=CS, gammas=GAMMAS, cv=splits)
    machine = SVR() if is_regression else SVC()
    theirs = GridSearchCV(machine, {"C": CS, "gamma": GAMMAS}, cv=splits)
    spent = _spend(ours, X, y), _spend(theirs, X, y)
    return Outcome(name, len(y), ours, theirs, spent)


def _spend(search: Any, X: Any, y: np.ndarray) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    search.fit(X, y)
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def _load_machine_code() -> None:
    """The same searches on made-up samples: what is compiled once is not counted."""
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 4))
    score = X[:, 0] + X[:, 1] ** 2 + 0.5 * random.normal(size=len(X))
    for cuts in ([0.5], [0.0, 0.7, 1.5]):
        y = np.digitize(score, cuts)
        SVCCV(Cs=CS, gammas=GAMMAS).fit(X[:1200], y[:1200])
        SVCCV(Cs=CS[2:4], gammas=GAMMAS[3:]).fit(X, y)
        SVCCV(Cs=CS[:2], gammas=GAMMAS[:2]).fit(
            sp.csr_array(np.round(X[:1200])), y[:1200]
        )
    SVRCV(Cs=CS, gammas=GAMMAS).fit(X[:300], score[:300])


def main() -> None:
    """Measure, and print a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--data")
    options = parser.parse_args()
    folder = find_folder(options.data)
    _load_machine_code()
    rows = []
    for name in options.sets:
        split = load(name, folder, SETS.get(name))
        rows.append(compare(name, split.X, split.y).row())
        print(*rows[-1], sep=" | ", flush=True)
    print_table(HEADS, rows)


if __name__ == "__main__":
    main()
