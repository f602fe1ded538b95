"""Who solves linear problems? Each way is a function from data to a fit at some tol.

All minimise the objective of `linear_cases`. What a library does to the data inside
its own fit is on its clock; LIBLINEAR's problem is stated before, as from a program
of its own.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.linear_cases import EPSILON, HINGES, JOINT, TUBES, C, Rows, Weights

UNLIMITED = 10**7  # sweeps: tol is what ends a fit
CAP_REACHED = "reaching max number of iterations"  # LIBLINEAR's own words
GOES_ON = "Switching to use"  # another of its solvers, which then ends by tol


class Answer(NamedTuple):
    """Weights; whether tol ended the fit; a lower bound of the optimum, if known."""

    weights: Weights
    is_finished: bool = True
    bound: float | None = None


Fit = Callable[[float], Callable[[], Answer]]  # tol -> what reads the answer


class Way(NamedTuple):
    """One library's way to solve a loss."""

    library: str
    package: str
    label: str
    losses: tuple[str, ...]
    tols: tuple[float, ...]
    prepare: Callable[[Rows, str], Fit]


def ladder(first: float, last: float) -> tuple[float, ...]:
    """Tolerances from loose to tight, two a decade."""
    n_rungs = round(2 * np.log10(first / last)) + 1
    return tuple(first * 10.0 ** (-k / 2) for k in range(n_rungs))


def prepare_maxmargin(rows: Rows, loss: str) -> Fit:
    import maxmargin

    def fit(tol: float) -> Callable[[], Answer]:
        machine = estimator(maxmargin, loss, tol=tol, max_iter=UNLIMITED)
        machine.fit(rows.X, rows.y)
        return lambda: Answer(
            Weights(machine.coef_, machine.intercept_),
            machine.status_.name == "CONVERGED",
            float(np.sum(machine.objective_) - np.sum(machine.dual_gap_)),
        )

    return fit


def prepare_sklearn(rows: Rows, loss: str, **settings: Any) -> Fit:
    from sklearn import svm

    settings |= {"max_iter": UNLIMITED, "random_state": 0}

    def fit(tol: float) -> Callable[[], Answer]:
        machine = estimator(svm, loss, tol=tol, **settings).fit(rows.X, rows.y)
        return lambda: Answer(Weights(machine.coef_, machine.intercept_))

    return fit


def estimator(module: Any, loss: str, **settings: Any) -> Any:
    """The machine for a loss, by the names that both modules share."""
    if loss in TUBES:
        return module.LinearSVR(loss=loss, C=C, epsilon=EPSILON, **settings)
    if loss == JOINT:
        return module.LinearSVC(multi_class=JOINT, C=C, **settings)
    return module.LinearSVC(loss=loss, C=C, **settings)


def prepare_snapml(rows: Rows, loss: str) -> Fit:
    from snapml import SupportVectorMachine

    settings = {
        "loss": loss,
        "regularizer": 1.0 / C,
        "fit_intercept": True,
        "n_jobs": os.cpu_count() or 1,
        "max_iter": UNLIMITED,
        "random_state": 0,
    }
    n_problems = n_problems_of(rows, loss)

    def fit(tol: float) -> Callable[[], Answer]:
        machine = SupportVectorMachine(tol=tol, **settings).fit(rows.X, rows.y)
        coef = np.asarray(machine.coef_).reshape(n_problems, -1)
        return lambda: Answer(Weights(coef, machine.intercept_))

    return fit


def n_problems_of(rows: Rows, loss: str) -> int:
    """One for regression and for two classes; else one per class."""
    n_classes = 1 if loss in TUBES else int(rows.y.max()) + 1
    return n_classes if n_classes > 2 else 1


# LIBLINEAR's own Python module.


def prepare_liblinear(rows: Rows, loss: str, solver: int) -> Fit:
    from liblinear import liblinear as library
    from liblinear.liblinearutil import parameter, problem, train

    stated = problem(rows.y.astype(np.float64), sp.csr_matrix(rows.X), bias=1)
    said: list[bytes] = []
    listen = library.PRINT_STRING_FUN(said.append)

    def fit(tol: float) -> Callable[[], Answer]:
        said.clear()
        options = parameter(f"-s {solver} -c {C} -p {EPSILON} -B 1 -e {tol!r}")
        options.print_func = listen
        model = train(stated, options)
        return lambda: Answer(read_liblinear(model, loss), is_finished(said))

    return fit


def is_finished(said: list[bytes]) -> bool:
    """Whether tol ended LIBLINEAR's fit, by what it printed."""
    text = b"".join(said).decode()
    return text.count(CAP_REACHED) == text.count(GOES_ON)


def read_liblinear(model: Any, loss: str) -> Weights:
    """Its weights, classes in rising order and the second of two as the positive."""
    n_classes = 1 if loss in TUBES else model.get_nr_class()
    n_problems = n_classes if n_classes > 2 else 1
    w = np.ctypeslib.as_array(model.w, shape=(model.nr_feature + 1, n_problems)).T
    if n_classes > 2:
        w = w[np.argsort(model.get_labels())]
    elif n_classes == 2 and model.get_labels()[0] != 1:
        w = -w
    return Weights(w[:, :-1].copy(), w[:, -1].copy())


def liblinear_way(solver: int, losses: tuple[str, ...], tols: tuple[float, ...]) -> Way:
    return Way(
        "LIBLINEAR",
        "liblinear",
        f"-s {solver}",
        losses,
        tols,
        lambda rows, loss: prepare_liblinear(rows, loss, solver),
    )


def sklearn_way(label: str, losses: tuple[str, ...], **settings: Any) -> Way:
    return Way(
        "scikit-learn",
        "sklearn",
        label,
        losses,
        ladder(1.0, 1e-10),
        lambda rows, loss: prepare_sklearn(rows, loss, **settings),
    )


WAYS = [
    Way(
        "maxmargin",
        "maxmargin",
        "",
        (*HINGES, *TUBES, JOINT),
        ladder(1.0, 1e-9),
        prepare_maxmargin,
    ),
    liblinear_way(1, ("squared_hinge",), ladder(1.0, 1e-8)),
    liblinear_way(2, ("squared_hinge",), ladder(1.0, 1e-9)),
    liblinear_way(3, ("hinge",), ladder(1.0, 1e-8)),
    liblinear_way(4, (JOINT,), ladder(1.0, 1e-8)),
    liblinear_way(11, TUBES[1:], ladder(1e-1, 1e-10)),
    liblinear_way(12, TUBES[1:], ladder(1.0, 1e-10)),
    liblinear_way(13, TUBES[:1], ladder(1.0, 1e-10)),
    sklearn_way("dual", ("hinge", "squared_hinge", *TUBES), dual=True),
    sklearn_way("primal", ("squared_hinge", *TUBES[1:]), dual=False),
    sklearn_way("", (JOINT,)),
    Way("snapml", "snapml", "", HINGES, ladder(1e-2, 1e-10), prepare_snapml),
]


def ways_for(loss: str, libraries: list[str]) -> list[Way]:
    """The ways to solve a loss that are asked for and installed."""
    return [
        way
        for way in WAYS
        if loss in way.losses and way.library in libraries and find_spec(way.package)
    ]
