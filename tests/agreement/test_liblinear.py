"""Do the linear machines reach LIBLINEAR's optimum on real data, all twelve solvers?

Both sides are solved tightly, and judged by one primal objective in float64. Ours may
not be worse; where LIBLINEAR itself says that it converged, neither may it. Ours must
besides be certified by ``naive_linear``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import datasets
import naive_linear
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from naive_linear import Solved, primal
from sklearn.feature_extraction.text import TfidfTransformer

import maxmargin

liblinear = pytest.importorskip(
    "liblinear.liblinear",
    reason="liblinear-official could not be built or installed: nothing to agree with",
    exc_type=Exception,
)
pytestmark = pytest.mark.agreement

Floats = npt.NDArray[np.float64]

TOL = 1e-8  # ours
OBJECTIVE = 1e-6  # relative
EPSILON = 0.1
NU = 0.2
MAX_ITER = 100_000  # tol is what should end a fit


class Solver(NamedTuple):
    """Our machine for one of LIBLINEAR's solvers, and how tightly that one is run."""

    machine: str
    settings: dict[str, Any]
    eps: float
    biases: tuple[str, ...] = ("none", "penalised")


ALL_BIASES = ("none", "penalised", "free")
SQUARED = "squared_epsilon_insensitive"
SOLVERS = {
    0: Solver("LogisticRegression", {"dual": False}, 1e-6, ALL_BIASES),
    1: Solver("LinearSVC", {"dual": True}, 1e-8),
    2: Solver("LinearSVC", {"dual": False}, 1e-6, ALL_BIASES),
    3: Solver("LinearSVC", {"loss": "hinge"}, 1e-8),
    4: Solver("LinearSVC", {"multi_class": "crammer_singer"}, 1e-8),
    5: Solver("LinearSVC", {"penalty": "l1", "dual": False}, 1e-7, ALL_BIASES),
    6: Solver("LogisticRegression", {"penalty": "l1"}, 1e-7, ALL_BIASES),
    7: Solver("LogisticRegression", {"dual": True}, 1e-8),
    11: Solver("LinearSVR", {"loss": SQUARED, "dual": False}, 1e-6, ALL_BIASES),
    12: Solver("LinearSVR", {"loss": SQUARED, "dual": True}, 1e-9),
    13: Solver("LinearSVR", {"loss": "epsilon_insensitive"}, 1e-9),
    21: Solver("LinearOneClassSVM", {"nu": NU}, 1e-9, ("none",)),
}
ROWS = {  # at scale 1
    "a9a": 800,
    "phishing": 600,
    "splice": 500,
    "reuters_lasvm": 300,
    "dna": 400,
    "20newsgroups": 150,
    "cadata": 800,
    "abalone": 600,
    "ad_pendigits": 500,
}
TWO_CLASSES = ("a9a", "phishing", "splice", "reuters_lasvm")
MORE_CLASSES = ("dna", "20newsgroups")
N_GROUPS = 3  # of the newsgroups' classes


class Case(NamedTuple):
    """One fit to compare."""

    solver: int
    name: str  # of the data set
    layout: str
    bias: str


def sets_for(solver: int) -> tuple[str, ...]:
    """The data sets that a solver is for."""
    if solver in (11, 12, 13):
        return ("cadata", "abalone")
    if solver == 21:
        return ("ad_pendigits", "phishing")
    return MORE_CLASSES if solver == 4 else TWO_CLASSES + MORE_CLASSES


CASES = [
    Case(solver, name, layout, bias)
    for solver in SOLVERS
    for name in sets_for(solver)
    for layout in ("dense", "sparse")
    for bias in SOLVERS[solver].biases
]
CERTIFIED = [  # LIBLINEAR gives up on many of those whose loss has a kink
    case
    for case in CASES
    if case.layout == "sparse" and case.bias == SOLVERS[case.solver].biases[-1]
]
WEIGHTED = [Case(solver, "splice", "dense", "penalised") for solver in (1, 2, 3, 5, 6)]


def label(case: Case) -> str:
    return f"s{case.solver}-{case.name}-{case.layout}-{case.bias}"


def test_every_solver_is_compared() -> None:
    assert {case.solver for case in CASES} == {*liblinear.solver_names}


@pytest.mark.parametrize("case", CASES, ids=label)
def test_agrees_with_liblinear(case: Case) -> None:
    X, y = rows_of(case.name, case.layout)
    ours = machine_for(case).fit(X, y)
    theirs, is_converged = fitted_there(case, X, y)

    solved = naive_linear.solved_problems(ours, X, y)
    found = np.array([primal(*each) for each in solved])
    expected = objectives_of(solved, theirs)

    allowed = OBJECTIVE * np.abs(expected)
    assert ours.status_.name == "CONVERGED"
    assert np.all(found <= expected + allowed), found / expected - 1
    if is_converged:
        assert np.all(found >= expected - allowed), found / expected - 1


@pytest.mark.parametrize("case", CERTIFIED, ids=label)
def test_optimum_is_certified(case: Case) -> None:
    X, y = rows_of(case.name, case.layout)

    ours = machine_for(case).fit(X, y)

    naive_linear.assert_optimal_linear(ours, X, y)


@pytest.mark.parametrize("case", WEIGHTED, ids=label)
def test_class_weights_agree_with_liblinear(case: Case) -> None:
    X, y = rows_of(case.name, case.layout)
    ours = machine_for(case).set_params(class_weight={0: 0.3, 1: 2.0}).fit(X, y)
    theirs, is_converged = fitted_there(case, X, y, "-w0 0.3 -w1 2.0")

    solved = naive_linear.solved_problems(ours, X, y)
    found = np.array([primal(*each) for each in solved])

    expected = objectives_of(solved, theirs)
    assert np.all(found <= expected * (1 + OBJECTIVE)), found / expected - 1
    assert not is_converged or np.all(found >= expected * (1 - OBJECTIVE))


# --------------------------------------------------------------------------- our side
@cache
def rows_of(name: str, layout: str) -> tuple[Any, Floats]:
    """Rows sorted by class, so that both sides number classes alike."""
    rows = datasets.many(ROWS[name])
    if name == "20newsgroups":
        X, y = newsgroups(rows)
    else:
        X, y = datasets.load(name, rows)
    if name in ("cadata", "abalone"):
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    else:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    X = sp.csr_matrix(X)
    X = X[:, np.diff(X.tocsc().indptr) > 0]  # what never occurs has no weight
    return (X if layout == "sparse" else X.toarray()), y.astype(np.float64)


def newsgroups(rows: int) -> tuple[Any, npt.NDArray[Any]]:
    """tf-idf of some rows of the first few groups."""
    X, y = datasets.load("20newsgroups", 100_000)
    picked = np.flatnonzero(y < N_GROUPS)[:rows]
    return TfidfTransformer().fit_transform(X[picked]).tocsr(), y[picked]


def machine_for(case: Case) -> Any:
    """Our machine, not yet fitted."""
    name, settings, _, _ = SOLVERS[case.solver]
    settings = settings | {"tol": TOL, "max_iter": MAX_ITER, "random_state": 0}
    if case.solver in (11, 12, 13):
        settings["epsilon"] = EPSILON
    if case.solver != 21:
        settings["fit_intercept"] = case.bias != "none"
        settings["penalize_intercept"] = case.bias != "free"
    return getattr(maxmargin, name)(**settings)


# ------------------------------------------------------------------------- their side
def fitted_there(case: Case, X: Any, y: Floats, more: str = "") -> tuple[Floats, bool]:
    """LIBLINEAR's weights, a row per problem and the intercept last; is it content?"""
    from liblinear.liblinearutil import parameter, problem, train

    said: list[bytes] = []
    bias = {"none": "-B -1", "penalised": "-B 1", "free": "-B 1 -R"}[case.bias]
    words = f"-s {case.solver} -e {SOLVERS[case.solver].eps} {bias} {more}"
    options = parameter(f"{words} -c 1 -p {EPSILON} -n {NU}")
    options.print_func = liblinear.PRINT_STRING_FUN(said.append)
    model = train(problem(y, sp.csr_matrix(X)), options)
    return weights_of(model, case), is_converged(b"".join(said).decode())


def is_converged(text: str) -> bool:
    """Whether no solver gave up; one that hands over to another did not."""
    given_up = text.count("reaching max number of iterations")
    stuck = ("max number of Newton iterations", "line search fails", "actred too small")
    return given_up == text.count("Switching to use") and not any(
        words in text for words in stuck
    )


def weights_of(model: Any, case: Case) -> Floats:
    """Classes in rising order; of two, the second is the positive one."""
    if case.solver == 21:
        w = np.ctypeslib.as_array(model.w, shape=(model.nr_feature,))
        return np.append(w, -model.rho)[None]
    k = model.nr_class if case.solver not in (11, 12, 13) else 1
    n_problems = k if k > 2 or case.solver == 4 else 1
    n_weights = model.nr_feature + (case.bias != "none")
    w = np.ctypeslib.as_array(model.w, shape=(n_weights, n_problems)).T
    w = np.column_stack([w, np.zeros(n_problems)]) if case.bias == "none" else w.copy()
    assert k == 1 or model.get_labels() == [*range(k)]
    return -w if k == 2 and n_problems == 1 else w


def objectives_of(solved: list[Solved], weights: Floats) -> Floats:
    """The same objectives at LIBLINEAR's weights."""
    if solved[0].problem.loss == "crammer_singer":
        return np.array([primal(solved[0].problem, weights[:, :-1], weights[:, -1])])
    return np.array(
        [
            primal(each.problem, w[:-1], w[-1])
            for each, w in zip(solved, weights, strict=True)
        ]
    )
