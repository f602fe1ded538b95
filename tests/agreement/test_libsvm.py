"""Do the five machines reach LIBSVM's optimum on real data?

Both are solved to tol 1e-6; objectives, decision values and support vectors must then
agree. Ours must besides be certified by ``naive`` (LIBSVM keeps its kernel values in
single precision, so its own certificate is only nearly as good).
"""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

import datasets
import naive
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

svmutil = pytest.importorskip(
    "libsvm.svmutil",
    reason="libsvm-official could not be built or installed: no LIBSVM to agree with",
    exc_type=Exception,
)
pytestmark = pytest.mark.agreement

Floats = npt.NDArray[np.float64]

TOL = 1e-6
OBJECTIVE = 1e-6  # relative
DECISION = 1e-4  # of the largest decision value
NEAR = 1e-4  # a row this close to its margin may support or not

FORMS = {"SVC": 0, "NuSVC": 1, "OneClassSVM": 2, "SVR": 3, "NuSVR": 4}
KERNELS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}
MACHINES = {
    "SVC": SVC(tol=TOL, decision_function_shape="ovo"),
    "NuSVC": NuSVC(tol=TOL, decision_function_shape="ovo"),
    "SVR": SVR(tol=TOL),
    "NuSVR": NuSVR(tol=TOL),
    "OneClassSVM": OneClassSVM(tol=TOL),
}


class Case(NamedTuple):
    """One fit to compare."""

    machine: str
    name: str  # of the data set
    kernel: str
    layout: str = "dense"


class Settings(NamedTuple):
    """What a data set is fitted with."""

    rows: int
    gamma: float
    C: float = 1.0
    nu: float = 0.5


SETS = {
    ("SVC", "heart"): Settings(270, 0.1),
    ("SVC", "a1a"): Settings(600, 0.05),
    ("SVC", "svmguide1"): Settings(1000, 1.0, C=10.0),
    ("SVC", "splice"): Settings(600, 0.02),
    ("SVC", "satimage"): Settings(800, 0.1, C=10.0),
    ("SVC", "vehicle"): Settings(700, 0.1),
    ("NuSVC", "heart"): Settings(270, 0.1, nu=0.5),
    ("NuSVC", "splice"): Settings(400, 0.02, nu=0.5),
    ("NuSVC", "vehicle"): Settings(400, 0.1, nu=0.78),
    ("SVR", "mpg"): Settings(392, 0.2),
    ("SVR", "abalone"): Settings(700, 0.2),
    ("NuSVR", "mpg"): Settings(392, 0.2, nu=0.4),
    ("NuSVR", "abalone"): Settings(700, 0.2, nu=0.4),
    ("OneClassSVM", "ad_pendigits"): Settings(900, 0.2, nu=0.1),
    ("OneClassSVM", "ad_musk"): Settings(400, 0.01, nu=0.3),
}
SHAPES = [*product(("linear", "poly", "rbf"), ("dense", "sparse"))]
CASES = [
    Case(machine, name, kernel, layout)
    for machine, name in SETS
    for kernel, layout in [*SHAPES, ("precomputed", "dense")]
]
SIGMOIDS = [
    Case("SVC", "heart", "sigmoid"),
    Case("SVC", "vehicle", "sigmoid", "sparse"),
    Case("NuSVC", "heart", "sigmoid"),
    Case("SVR", "mpg", "sigmoid", "sparse"),
    Case("NuSVR", "mpg", "sigmoid"),
    Case("OneClassSVM", "ad_pendigits", "sigmoid"),
]


def label(case: Case) -> str:
    return "-".join(case)


def test_there_are_enough_cases() -> None:
    assert len(set(CASES)) >= 60
    assert {case.machine for case in CASES} == set(MACHINES)
    assert {case.kernel for case in CASES} == set(KERNELS) - {"sigmoid"}


@pytest.mark.parametrize("case", CASES, ids=label)
def test_agrees_with_libsvm(case: Case) -> None:
    X, y = rows_of(case)
    ours = fitted_here(case, X, y)
    theirs = fitted_there(ours, case, X, y)

    naive.assert_optimal(ours, X, y)
    assert_same_objective(ours, theirs, X, y)
    assert_same_decisions(ours, theirs, X)
    assert_same_support(ours, theirs, X, y)


@pytest.mark.parametrize("case", SIGMOIDS, ids=label)
def test_sigmoid_is_stationary(case: Case) -> None:
    X, y = rows_of(case)
    ours = fitted_here(case, X, y).set_params(coef0=-0.5).fit(X, y)

    naive.assert_optimal(ours, X, y)


# --------------------------------------------------------------------------- fitting
def rows_of(case: Case) -> tuple[Any, npt.NDArray[Any]]:
    """The rows of a case, sorted by class so that both sides number classes alike."""
    settings = SETS[case.machine, case.name]
    X, y = datasets.load(case.name, datasets.many(settings.rows))
    if case.machine in ("SVC", "NuSVC"):
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    if case.kernel == "precomputed":
        dense = naive.dense(X)
        return naive.rbf(dense, dense, settings.gamma), y
    return (sp.csr_matrix(X) if case.layout == "sparse" else naive.dense(X)), y


def fitted_here(case: Case, X: Any, y: npt.NDArray[Any]) -> Any:
    """Our machine, fitted."""
    settings = SETS[case.machine, case.name]._asdict()
    ours = clone(MACHINES[case.machine])
    known = {name: settings[name] for name in settings if name in ours.get_params()}
    return ours.set_params(kernel=case.kernel, **known).fit(X, y)


def fitted_there(ours: Any, case: Case, X: Any, y: npt.NDArray[Any]) -> Any:
    """LIBSVM's model under the attribute names of scikit-learn."""
    problem = svmutil.svm_problem(
        y.astype(np.float64), their_rows(case, X), isKernel=case.kernel == "precomputed"
    )
    model = svmutil.svm_train(problem, svmutil.svm_parameter(options(ours, case)))
    is_classifier = case.machine in ("SVC", "NuSVC")
    k = model.nr_class
    assert not is_classifier or model.get_labels() == [*range(k)]
    sign = -1.0 if is_classifier and k == 2 else 1.0  # ours: classes_[1] is positive
    support = np.array(model.get_sv_indices()) - 1
    intercept = -sign * np.array(model.rho[: k * (k - 1) // 2])
    return type(case.machine, (SimpleNamespace,), {})(
        **ours.get_params(),
        _gamma=ours._gamma,
        classes_=np.arange(k),
        class_weight_=np.ones(k),
        support_=support,
        support_vectors_=X[support],
        dual_coef_=sign * np.array(model.get_sv_coef()).T,
        intercept_=intercept,
        offset_=-intercept,
        n_support_=np.array(model.nSV[:k] if is_classifier else [model.l]),
    )


def their_rows(case: Case, X: Any) -> sp.csr_matrix:
    """LIBSVM reads CSR; a precomputed row starts with its number, zeros written out."""
    if case.kernel != "precomputed":
        return sp.csr_matrix(X)
    n = len(X)
    numbered = np.column_stack([np.arange(1.0, n + 1), X])
    columns = np.tile(np.arange(n + 1), n)
    starts = (n + 1) * np.arange(n + 1)
    return sp.csr_matrix((numbered.ravel(), columns, starts), shape=(n, n + 1))


def options(ours: Any, case: Case) -> str:
    """The options of LIBSVM that state the same problem."""
    values = {
        "-s": FORMS[case.machine],
        "-t": KERNELS[case.kernel],
        "-d": ours.degree,
        "-g": repr(float(ours._gamma)),
        "-r": ours.coef0,
        "-e": TOL,
        "-m": 400,
    }
    for option, name in (("-c", "C"), ("-n", "nu"), ("-p", "epsilon")):
        if name in ours.get_params():
            values[option] = getattr(ours, name)
    return " ".join(f"{option} {value}" for option, value in values.items()) + " -q"


# ------------------------------------------------------------------------- comparing
def assert_same_objective(ours: Any, theirs: Any, X: Any, y: npt.NDArray[Any]) -> None:
    """Dual objectives, both from coefficients, agree for every pair of classes.

    A nu-SVC's are compared before the division by its margin, which LIBSVM knows to
    tol only: it is the objective that is accurate to the square of tol.
    """
    found, expected = (
        [
            naive.measure(claim.solved._replace(scale=1.0)).objective
            for claim in naive.claims_of(machine, X, y)
        ]
        for machine in (ours, theirs)
    )
    np.testing.assert_allclose(found, expected, rtol=OBJECTIVE)


def assert_same_decisions(ours: Any, theirs: Any, X: Any) -> None:
    """What our machine says of its training rows is what LIBSVM's model says."""
    decide = getattr(ours, "decision_function", ours.predict)
    expected = naive.decisions(theirs, X, X)
    found = decide(X).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, atol=DECISION * np.abs(expected).max())


def assert_same_support(ours: Any, theirs: Any, X: Any, y: npt.NDArray[Any]) -> None:
    """The same rows support, equal rows counting as one; margins may go either way."""
    mine = naive.claims_of(ours, X, y)
    other = naive.claims_of(theirs, X, y)
    for (a, rows), (b, _) in zip(mine, other, strict=True):
        copies = equal_rows(a, naive.dense(X)[rows])
        supports = merged(a, copies) != 0.0, merged(b, copies) != 0.0
        differs = supports[0] != supports[1]
        assert np.all(distance_to_margin(a)[differs[copies]] <= NEAR)
        assert differs.sum() <= 0.1 * supports[0].sum()


def equal_rows(solved: naive.Solved, X: Floats) -> npt.NDArray[np.intp]:
    """For every variable the number of its set of equal variables."""
    bounds = (solved.linear, solved.lower, solved.group)
    told_apart = np.column_stack([X, *bounds]).astype(np.float64)
    return np.unique(told_apart, axis=0, return_inverse=True)[1].ravel()


def merged(solved: naive.Solved, copies: npt.NDArray[np.intp]) -> Floats:
    """beta, added up over equal rows."""
    return np.bincount(copies, weights=solved.beta.astype(np.float64))


def distance_to_margin(solved: naive.Solved) -> Floats:
    """How far a row is from where its coefficient may leave zero, on K's scale."""
    grad = solved.grad
    tube = naive.best_tube(solved) if solved.budget < np.inf else solved.kink
    off = np.abs(grad - np.array(solved.levels)[solved.group])
    return np.abs(off - tube) / max(1.0, float(np.abs(grad).max()))
