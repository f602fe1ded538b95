"""Do we reach LIBSVM's optimum, and whose answer is more exact?

Both solve the same problem to the same tol (--tol, 1e-6). Then objectives, decisions on
the training rows and KKT violations are computed from the coefficients by one piece of
NumPy.
"""

import argparse
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import certificate
from benchmarks.certificate import Answered, Fit, problems_of
from benchmarks.libraries import LibsvmModel, libsvm_trainer, read_fit
from benchmarks.sets import find_folder, has_set, load
from benchmarks.tables import print_table

TOL = 1e-6  # unless told otherwise; both libraries' default is 1e-3


class Case(NamedTuple):
    """A machine, a set, the most rows taken of it, and what it is fitted with."""

    machine: str
    name: str
    rows: int
    settings: dict[str, float]


CASES = [
    Case("SVC", "heart", 270, {"C": 1.0, "gamma": 0.1}),
    Case("SVC", "heart", 270, {"C": 1000.0, "gamma": 0.1}),
    Case("SVC", "a1a", 1000, {"C": 1.0, "gamma": 0.05}),
    Case("SVC", "svmguide1", 1500, {"C": 10.0, "gamma": 1.0}),
    Case("SVC", "splice", 1000, {"C": 1.0, "gamma": 0.02}),
    Case("SVC", "satimage", 1500, {"C": 10.0, "gamma": 0.1}),
    Case("SVC", "vehicle", 800, {"C": 1000.0, "gamma": 0.1}),
    Case("NuSVC", "heart", 270, {"nu": 0.5, "gamma": 0.1}),
    Case("NuSVC", "vehicle", 400, {"nu": 0.5, "gamma": 0.1}),
    Case("SVR", "mpg", 392, {"C": 1.0, "epsilon": 0.1, "gamma": 0.2}),
    Case("SVR", "abalone", 1500, {"C": 10.0, "epsilon": 0.1, "gamma": 0.2}),
    Case("NuSVR", "mpg", 392, {"C": 1.0, "nu": 0.4, "gamma": 0.2}),
    Case("NuSVR", "abalone", 1000, {"C": 1.0, "nu": 0.4, "gamma": 0.2}),
    Case("OneClassSVM", "ad_pendigits", 1500, {"nu": 0.1, "gamma": 0.2}),
]
BUNDLED_CASES = [
    Case("SVC", "breast_cancer", 450, {"C": 1.0, "gamma": 0.03}),
    Case("SVC", "breast_cancer", 450, {"C": 1000.0, "gamma": 0.03}),
    Case("SVC", "digits", 1400, {"C": 10.0, "gamma": 0.02}),
    Case("SVC", "blobs", 1500, {"C": 10.0, "gamma": 0.05}),
    Case("NuSVC", "breast_cancer", 450, {"nu": 0.3, "gamma": 0.03}),
    Case("NuSVC", "wine", 140, {"nu": 0.3, "gamma": 0.1}),
    Case("SVR", "diabetes", 350, {"C": 1.0, "epsilon": 0.1, "gamma": 0.1}),
    Case("NuSVR", "diabetes", 350, {"C": 1.0, "nu": 0.4, "gamma": 0.1}),
    Case("OneClassSVM", "breast_cancer", 450, {"nu": 0.1, "gamma": 0.03}),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement")
    parser.add_argument("--data", help="folder of .npz files (or set MAXMARGIN_DATA)")
    parser.add_argument("--tol", type=float, default=TOL, help="of both libraries")
    given = parser.parse_args()
    folder = find_folder(given.data)
    if not find_spec("libsvm"):
        raise SystemExit("libsvm-official is not installed: nobody to agree with.")
    cases = [case for case in CASES if has_set(case.name, folder)] or BUNDLED_CASES
    print(f"maxmargin and LIBSVM, RBF kernel, both at tol {given.tol:g}\n")
    heads = ["machine", "set", "rows", "settings", "objective", "decision"]
    heads += ["violation, ours", "LIBSVM's"]
    print_table(heads, [row_of(case, given.tol, folder) for case in cases])
    print("\nobjective: relative difference; decision: largest difference over largest")
    print("decision value; violation: of the KKT conditions, recomputed in float64.")
    print(
        "The objective of nu-SVC is divided by the square of a margin, and so is what"
    )
    print("LIBSVM's violation costs there.")


def row_of(case: Case, tol: float, folder: Path | None) -> list[str]:
    X, y = rows_and_targets(case, folder)
    K = certificate.rbf(X, X, case.settings["gamma"])
    fits = fit_ours(case, X, y, tol), fit_libsvm(case, X, y, tol)
    asked = Answered(case.machine, y, case.settings)
    ours, theirs = (problems_of(asked, fit, K) for fit in fits)
    objectives = [
        np.array([certificate.objective([solved]) for solved in problems])
        for problems in (ours, theirs)
    ]
    decisions = [decide(fit, K) for fit in fits]
    largest = np.abs(decisions[1]).max()
    return [
        case.machine,
        case.name,
        str(len(y)),
        " ".join(f"{name}={value:g}" for name, value in case.settings.items()),
        f"{np.abs(objectives[0] / objectives[1] - 1.0).max():.1e}",
        f"{np.abs(decisions[0] - decisions[1]).max() / largest:.1e}",
        f"{certificate.violation(ours):.1e}",
        f"{certificate.violation(theirs):.1e}",
    ]


def rows_and_targets(case: Case, folder: Path | None) -> tuple[Any, np.ndarray]:
    """Targets standardised, or labels from 0 with rows in their order."""
    split = load(case.name, folder, case.rows)
    X, y = split.X, split.y
    if case.machine in ("SVR", "NuSVR"):
        return X, (y - y.mean()) / y.std()
    if case.machine == "OneClassSVM":
        X, y = (X[y == 0], y[y == 0]) if case.name.startswith("ad_") else (X, y)
        return X, np.zeros(len(y))
    code = np.unique(y, return_inverse=True)[1]
    order = np.argsort(code, kind="stable")  # LIBSVM numbers classes as they come
    return X[order], code[order]


def fit_ours(case: Case, X: Any, y: np.ndarray, tol: float) -> Fit:
    import maxmargin

    machine = getattr(maxmargin, case.machine)(tol=tol, **case.settings).fit(X, y)
    fit = read_fit(machine)
    if case.machine in ("SVC", "NuSVC") and len(fit.n_support) == 2:
        return fit._replace(coef=-fit.coef, intercept=-fit.intercept)  # LIBSVM's sign
    return fit


def fit_libsvm(case: Case, X: Any, y: np.ndarray, tol: float) -> Fit:
    settings = case.settings | {"tol": tol}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LibsvmModel(libsvm_trainer(case.machine, X, y, settings)()).fit


def decide(fit: Fit, K: np.ndarray) -> np.ndarray:
    """Decisions on the training rows, a column per pair."""
    if len(fit.n_support) == 1:
        coefs = [np.zeros(len(K))]
        coefs[0][fit.support] = fit.coef[0]
    else:
        coefs = [coef for _, _, coef in certificate.pairs_of(fit, len(K))]
    return K @ np.array(coefs).T + fit.intercept


if __name__ == "__main__":
    main()
