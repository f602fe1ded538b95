"""Is a fitted linear machine optimal? Slow twins in plain NumPy that share no code.

The primal objective is taken from coefficients by its formula. The lower bound beside
it is the dual objective of a feasible point, found without the solver under test: by an
interior point for losses with kinks (``naive_interior``), else from the slopes of the
losses near the machine's weights (``naive_smooth``).

Everything is float64, dense and of the order rows x weights^2: for small problems.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import naive_interior as interior
import naive_smooth
import numpy as np
from naive_losses import Problem, primal
from threadpoolctl import threadpool_limits

from benchmarks.plain_kernels import Floats, dense

KINKED = ("hinge", "epsilon_insensitive", "one_class", "crammer_singer")
OWN_GAP = 1e-8  # relative: the bounds found here are no further from the optimum
ROUNDING = 1e-10  # relative: what sums in another order may differ by


# --------------------------------------------------------------------- lower bounds
def lower_bound(problem: Problem, coef: Floats, intercept: Any) -> float:
    """A dual objective: no weights whatever have a smaller primal objective."""
    has_many = problem.penalty == "l2" and problem.X.shape[1] > problem.X.shape[0]
    with threadpool_limits(1):  # small matrices: threads would wait for each other
        small = rotated(problem) if has_many else problem
        if problem.loss in KINKED:
            return interior.bounds(kinked(small)).lower
        if has_many:
            return naive_smooth.polished(small, np.zeros(small.columns.shape[1]))
        return naive_smooth.polished(small, problem.weights(coef, intercept))


def rotated(problem: Problem) -> Problem:
    """The same with as many features as rows: the l2 norm knows no axes."""
    R = np.linalg.qr(problem.X.T, mode="r")
    return problem._replace(X=np.ascontiguousarray(R.T))


def kinked(problem: Problem) -> interior.Kinked:
    """The problem as rows z, c in groups: C max(0, the largest c - z'u of a group)."""
    X, y, n = problem.columns, problem.y, len(problem.X)
    free, group, c, Z = problem.is_free, np.arange(n), np.ones(n), X
    if problem.loss == "crammer_singer":
        return kinked_classes(problem)
    q = np.zeros(X.shape[1])
    if problem.loss == "hinge":
        Z = X * y[:, None]
    elif problem.loss == "one_class":
        Z, c, free = np.column_stack([X, -c]), 0 * c, np.append(free, True)
        q = np.append(q, -problem.total)
    else:
        Z = np.stack([X, -X], axis=1).reshape(2 * n, -1)
        c = np.stack([y, -y], axis=1).ravel() - problem.epsilon
        group = np.repeat(group, 2)
    return interior.Kinked(Z, c, group, problem.C, q, free)


def kinked_classes(problem: Problem) -> interior.Kinked:
    """Crammer and Singer's: a row for every sample and every class but its own."""
    X, y, k = problem.columns, problem.y.astype(int), int(problem.y.max()) + 1
    own = np.eye(k)[y]
    others = np.array([np.delete(np.arange(k), code) for code in y])
    turn = own[:, None, :] - np.eye(k)[others]  # (rows, k - 1, k)
    Z = (turn[:, :, :, None] * X[:, None, None, :]).reshape(-1, k * X.shape[1])
    free, group = np.tile(problem.is_free, k), np.repeat(np.arange(len(y)), k - 1)
    return interior.Kinked(
        Z, np.ones(len(Z)), group, problem.C, np.zeros(len(free)), free
    )


# ------------------------------------------------------------------ fitted machines
class Solved(NamedTuple):
    """A problem, and the answer that a machine gave to it."""

    problem: Problem
    coef: Floats
    intercept: Any


def machine(fitted: Any) -> str:
    """Which of the linear machines this is."""
    names = [base.__name__ for base in type(fitted).__mro__]
    known = ("LinearSVC", "LinearSVR", "LinearOneClassSVM", "LogisticRegression")
    return next(name for name in names if name in known)


def solved_problems(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> list[Solved]:
    """The problems behind a fitted machine, from its parameters and public attributes.

    An intercept is taken as penalised where a machine has no `penalize_intercept`.
    """
    n = X.shape[0]
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    X = dense(X).astype(np.float64)
    if machine(fitted) == "LinearOneClassSVM":
        total = fitted.nu * weight.sum()
        problem = Problem(X, 0 * weight, weight, "one_class", bias="none", total=total)
        return [answered(problem, fitted.coef_, fitted.intercept_)]
    problem = Problem(
        X,
        np.asarray(y),
        fitted.C * weight,
        getattr(fitted, "loss", "logistic"),
        getattr(fitted, "penalty", "l2"),
        bias_of(fitted),
        float(fitted.intercept_scaling),
        float(getattr(fitted, "epsilon", 0.0)),
    )
    if machine(fitted) == "LinearSVR":
        return [answered(problem, fitted.coef_, fitted.intercept_)]
    return classified(fitted, problem)


def bias_of(fitted: Any) -> str:
    if not fitted.fit_intercept:
        return "none"
    return "penalised" if getattr(fitted, "penalize_intercept", True) else "free"


def answered(problem: Problem, coef: Any, intercept: Any) -> Solved:
    """One answer; rows without weight are left out of its problem."""
    kept = problem.C > 0.0
    problem = problem._replace(X=problem.X[kept], y=problem.y[kept], C=problem.C[kept])
    return Solved(problem, np.ravel(coef).astype(float), float(np.ravel(intercept)[0]))


def classified(fitted: Any, problem: Problem) -> list[Solved]:
    """One problem per class, one for two classes, or one for Crammer and Singer."""
    k = len(fitted.classes_)
    codes = np.searchsorted(fitted.classes_, problem.y)
    by_class = np.asarray(getattr(fitted, "class_weight_", np.ones(k)), dtype=float)
    problem = problem._replace(C=problem.C * by_class[codes])
    coef = np.asarray(fitted.coef_, dtype=float)
    intercept = np.broadcast_to(np.ravel(fitted.intercept_), len(coef)).astype(float)
    if getattr(fitted, "multi_class", "ovr") == "crammer_singer":
        if k == 2:  # what is stored is the difference of two opposite rows
            coef, intercept = (np.concatenate([-v, v]) / 2 for v in (coef, intercept))
        kept = problem.C > 0.0
        problem = Problem(
            problem.X[kept],
            codes[kept].astype(float),
            problem.C[kept],
            "crammer_singer",
            bias=problem.bias,
            scaling=problem.scaling,
        )
        return [Solved(problem, coef, intercept)]
    positives = [1] if k == 2 else range(k)
    return [
        answered(problem._replace(y=np.where(codes == c, 1.0, -1.0)), w, b)
        for c, w, b in zip(positives, coef, intercept, strict=True)
    ]


# ----------------------------------------------------------------------- assertions
class Certificate(NamedTuple):
    """The primal objective of a fit, and a lower bound of all; one entry a problem."""

    objectives: Floats
    bounds: Floats

    @property
    def gaps(self) -> Floats:
        """How far above the optimum the objectives can be, relative to it."""
        return (self.objectives - self.bounds) / np.abs(self.bounds)


def certify_linear(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> Certificate:
    """Objectives and lower bounds of the problems behind a fitted machine."""
    solved = solved_problems(fitted, X, y, sample_weight)
    return Certificate(
        np.array([primal(*each) for each in solved]),
        np.array([lower_bound(*each) for each in solved]),
    )


def assert_optimal_linear(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> Certificate:
    """The fit is optimal to its tol, and what it says about itself is true."""
    found = certify_linear(fitted, X, y, sample_weight)
    assert np.all(found.gaps <= fitted.tol + ROUNDING), f"{found.gaps} > {fitted.tol}"
    assert np.all(found.gaps >= -ROUNDING), f"below a lower bound: {found.gaps}"
    assert fitted.status_.name == "CONVERGED"
    n = found.objectives.size
    for name in ("objective_", "dual_gap_", "kkt_violation_"):
        assert np.ndim(getattr(fitted, name)) == (0 if n == 1 else 1), name
        assert np.size(getattr(fitted, name)) == n, name
    assert np.all(np.ravel(fitted.kkt_violation_) <= fitted.tol * (1 + 1e-9))
    said, gap = np.ravel(fitted.objective_), np.ravel(fitted.dual_gap_)
    np.testing.assert_allclose(said, found.objectives, rtol=1e-9)
    size = np.abs(found.objectives)
    assert np.all(gap <= fitted.tol * size * (1 + 1e-9)), f"{gap} > tol x {size}"
    assert np.all(gap >= -ROUNDING * size), f"negative gap {gap}"
    assert np.all(said - gap <= found.bounds + OWN_GAP * size), (
        "bound above the optimum"
    )
    return found
