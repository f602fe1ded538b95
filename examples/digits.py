"""What does a fit look like? Handwritten digits, from raw pixels to a saved model.

Run by `make demo`; the data ship with scikit-learn, so nothing is downloaded.
"""

import os
import time
from pathlib import Path

import joblib
import numpy as np
import sklearn.svm
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import SVC

PARAMETERS = {"C": 10.0, "gamma": 0.01}
MODEL_FILE = Path(__file__).parents[1] / "build" / "demo-model.joblib"
WIDTH = 28  # of the column with names


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    print(f"maxmargin {maxmargin.__version__}: SVC on handwritten digits")
    show("training / test images", f"{len(X_train)} / {len(X_test)}")
    show("features, classes", f"{X.shape[1]}, {len(np.unique(y))}")

    ours, first = timed_fit(SVC(**PARAMETERS), X_train, y_train)
    ours, second = timed_fit(SVC(**PARAMETERS), X_train, y_train)
    theirs, other = timed_fit(sklearn.svm.SVC(**PARAMETERS), X_train, y_train)

    print("\nThe fit, certified in float64 over all 45 pairs of digits")
    machine = ours[-1]
    show("status", f"{machine.status_.name}: {machine.status_.value}")
    show("support vectors", f"{machine.n_support_.sum()} of {len(X_train)} images")
    show("largest KKT violation", f"{machine.kkt_violation_.max():.1e}   (tol 1e-03)")
    relative_gap = np.abs(machine.dual_gap_ / machine.objective_).max()
    show("largest duality gap", f"{relative_gap:.1e}   relative to the objective")

    print("\n" + " " * WIDTH + f"{'maxmargin':>12}{'scikit-learn':>15}")
    row(
        "test accuracy", ours.score(X_test, y_test), theirs.score(X_test, y_test), ".2%"
    )
    row("fit, seconds", second, other, ".3f")
    show("first fit of the process", f"{first:12.3f}   compiles, or reads the cache")

    print("\nTen test images")
    show("read as", " ".join(map(str, ours.predict(X_test[:10]))))
    show("are", " ".join(map(str, y_test[:10])))
    save_and_read_back(ours, X_test)


def timed_fit(machine, X, y):
    """The machine behind a scaler, fitted; and the seconds that took."""
    pipeline = make_pipeline(StandardScaler(), machine)
    began = time.perf_counter()
    pipeline.fit(X, y)
    return pipeline, time.perf_counter() - began


def save_and_read_back(pipeline, X_test) -> None:
    """A model is an ordinary pickle: joblib writes it, and its copy predicts alike."""
    MODEL_FILE.parent.mkdir(exist_ok=True)
    joblib.dump(pipeline, MODEL_FILE)
    copy = joblib.load(MODEL_FILE)
    assert np.array_equal(
        copy.decision_function(X_test), pipeline.decision_function(X_test)
    )
    size = MODEL_FILE.stat().st_size / 1024
    print(f"\nSaved to {os.path.relpath(MODEL_FILE)}")
    print(f"({size:.0f} KiB); read back, it gives the same decisions to the last bit.")


def show(name: str, value: str) -> None:
    print(f"  {name:<{WIDTH - 2}}{value}")


def row(name: str, ours: float, theirs: float, form: str) -> None:
    show(name, f"{ours:>12{form}}{theirs:>15{form}}")


if __name__ == "__main__":
    main()
