"""Is a fitted machine optimal? Slow twins in plain NumPy that share no code with it.

Everything here is recomputed in float64 from a fitted estimator's public attributes:
kernels by explicit differences and sums, the signed dual ``beta`` of every pair of
classes, its gradient, its KKT violation by LIBSVM's rule, and its dual objective.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from naive_kernels import (
    Floats,
    dense,
    gram,
    laplacian,
    linear,
    polynomial,
    rbf,
    sigmoid,
    training_gram,
)

__all__ = [
    "Certificate",
    "Floats",
    "assert_optimal",
    "certify",
    "decisions",
    "dense",
    "gram",
    "laplacian",
    "linear",
    "polynomial",
    "rbf",
    "sigmoid",
    "training_gram",
]

Ints = npt.NDArray[np.intp]

AT_BOUND = 1e-10  # relative: bounds are products, and products round
SUM_ERROR = 1e-8  # of the sum of |beta|: what a group's sum may be off by
ROUNDING = 64 * np.finfo(np.float64).eps  # of the largest term of a gradient


# ------------------------------------------------------- the problem, and its answer
class Solved(NamedTuple):
    """min 1/2 b'Kb + linear'b + kink |b|_1 in a box, group sums fixed; and some b."""

    rows: Ints  # of X, one per variable
    K: Floats
    linear: Floats
    kink: float
    lower: Floats
    upper: Floats
    group: Ints  # -1: free of any equality
    sums: tuple[float, ...]
    beta: Floats
    levels: tuple[float, ...]  # as the stored intercept implies them
    scale: float = 1.0  # stored coefficients are beta / scale
    budget: float = np.inf  # nu-SVR: sum |b| may not pass it, and its kink is unknown


class Certificate(NamedTuple):
    """What a fit is worth; arrays hold one entry per pair of classes."""

    violations: Floats
    objectives: Floats  # as LIBSVM prints them
    level_errors: Floats  # how far the intercept is outside its optimal interval
    noises: Floats  # what rounding alone may add to a violation
    objective_noises: Floats  # and to an objective
    gap_bounds: Floats  # violation x sum of C: no duality gap of SVC or SVR is larger

    @property
    def violation(self) -> float:
        return float(self.violations.max())


def machine(fitted: Any) -> str:
    """Which of the five machines this is."""
    names = [base.__name__ for base in type(fitted).__mro__]
    known = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
    return next(name for name in names if name in known)


def effective_weights(fitted: Any, y: Any, sample_weight: Any, n: int) -> Floats:
    """Class weight x sample weight; what is not positive becomes zero (dropped)."""
    given = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    if machine(fitted) in ("SVC", "NuSVC"):
        codes = np.searchsorted(fitted.classes_, np.asarray(y))
        given = given * np.asarray(fitted.class_weight_, float)[codes]
    return np.where(given > 0.0, given, 0.0)


def solved_problems(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> list[Solved]:
    """The dual problems behind a fitted machine, with the answers it stored."""
    K = training_gram(fitted, X)
    weight = effective_weights(fitted, y, sample_weight, len(K))
    check_support(fitted, X, weight)
    if machine(fitted) in ("SVC", "NuSVC"):
        return one_vs_one(fitted, K, np.asarray(y), weight)
    rows = np.flatnonzero(weight)
    beta = np.zeros(len(K))
    beta[fitted.support_] = dense(fitted.dual_coef_).ravel()
    K, beta, weight = K[np.ix_(rows, rows)], beta[rows], weight[rows]
    level = -float(np.ravel(fitted.intercept_)[0])
    if machine(fitted) == "OneClassSVM":
        assert np.allclose(fitted.offset_, level, rtol=1e-12), "offset_ = -intercept_"
        box = snapped(beta, 0 * weight, weight)
        total = fitted.nu * weight.sum()
        return [equality(rows, K, 0 * beta, 0.0, box, total, level)]
    C = fitted.C * weight
    z = np.asarray(y, dtype=np.float64)[rows]
    box = snapped(beta, -C, C)
    if machine(fitted) == "SVR":
        solved = equality(rows, K, -z, fitted.epsilon, box, 0.0, level)
        return [without_equality(fitted, solved)]
    solved = equality(rows, K, -z, 0.0, box, 0.0, level)
    return [solved._replace(budget=fitted.nu * float(C.sum()))]


def check_support(fitted: Any, X: Any, weight: Floats) -> None:
    """The three attributes that describe support vectors agree with each other."""
    support = np.asarray(fitted.support_)
    assert len(np.unique(support)) == len(support), "a support vector occurs twice"
    assert np.all(weight[support] > 0.0), "a row without weight supports"
    assert np.sum(fitted.n_support_) == len(support)
    assert fitted.dual_coef_.shape[1] == len(support)
    if fitted.kernel != "precomputed" and not callable(fitted.kernel):
        stored = dense(fitted.support_vectors_)
        assert np.array_equal(stored, dense(X)[support]), "support_vectors_ != X[...]"


def one_vs_one(fitted: Any, K: Floats, y: Any, weight: Floats) -> list[Solved]:
    """One problem per pair of classes, in LIBSVM's order."""
    k = len(fitted.classes_)
    ends = np.cumsum(fitted.n_support_)
    blocks = [np.arange(e - m, e) for e, m in zip(ends, fitted.n_support_, strict=True)]
    coef = dense(fitted.dual_coef_)
    codes = np.searchsorted(fitted.classes_, y)
    for c, block in enumerate(blocks):
        assert np.all(codes[fitted.support_[block]] == c), "support_ is not by class"
    problems = []
    for p, (i, j) in enumerate(combinations(range(k), 2)):
        beta = np.zeros(len(K))
        beta[fitted.support_[blocks[i]]] = coef[j - 1, blocks[i]]
        beta[fitted.support_[blocks[j]]] = coef[i, blocks[j]]
        positive = j if k == 2 else i  # two classes: classes_[1] is the positive one
        rows = np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0.0))
        sign = np.where(codes[rows] == positive, 1.0, -1.0)
        pair = (rows, K[np.ix_(rows, rows)], sign, weight[rows], beta[rows])
        problems.append(pair_problem(fitted, pair, float(fitted.intercept_[p])))
    return problems


def pair_problem(fitted: Any, pair: tuple[Any, ...], intercept: float) -> Solved:
    """C-SVC or nu-SVC on one pair of classes."""
    rows, K, sign, weight, beta = pair
    if machine(fitted) == "SVC":
        C = fitted.C * weight
        box = snapped(beta, np.minimum(C * sign, 0), np.maximum(C * sign, 0))
        solved = equality(rows, K, -sign, 0.0, box, 0.0, -intercept)
        return without_equality(fitted, solved)
    half = fitted.nu * weight.sum() / 2
    r = half / beta[sign > 0].sum()
    assert np.isfinite(r), f"the margin's half width r is {r}"
    assert r > -fitted.tol or fitted.kernel == "sigmoid", f"r is {r}"
    lower, upper = np.minimum(weight * sign, 0), np.maximum(weight * sign, 0)
    beta, lower, upper = snapped(beta * r, lower, upper)
    levels = (r * (1 - intercept), r * (-1 - intercept))
    group = np.where(sign > 0, 0, 1)
    zero = np.zeros(len(rows))
    return Solved(
        rows, K, zero, 0.0, lower, upper, group, (half, -half), beta, levels, r
    )


def equality(
    rows: Ints,
    K: Floats,
    linear: Floats,
    kink: float,
    box: tuple[Floats, Floats, Floats],
    total: float,
    level: float,
) -> Solved:
    """A problem with one group."""
    beta, lower, upper = box
    group = np.zeros(len(rows), dtype=np.intp)
    return Solved(rows, K, linear, kink, lower, upper, group, (total,), beta, (level,))


def without_equality(fitted: Any, solved: Solved) -> Solved:
    """The same without its group, where the machine has no intercept."""
    if getattr(fitted, "fit_intercept", True):
        return solved
    assert solved.levels == (0.0,), "a machine without intercept has one"
    return solved._replace(group=solved.group - 1, sums=(), levels=())


def snapped(
    beta: Floats, lower: Floats, upper: Floats
) -> tuple[Floats, Floats, Floats]:
    """beta in its box, put on a bound it misses by rounding only; else an error."""
    assert np.all(np.isfinite(beta)), "coefficients are not finite"
    for bound in (lower, upper):
        slack = AT_BOUND * np.where(np.isfinite(bound), np.abs(bound), 0.0)
        beta = np.where(np.abs(beta - bound) <= slack, bound, beta)
    assert np.all((lower <= beta) & (beta <= upper)), "outside the box"
    return beta, lower, upper


# ---------------------------------------------------------------------- certificate
def certify(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> Certificate:
    """Feasibility is asserted; violation and objective are returned."""
    found = [examine(solved) for solved in solved_problems(fitted, X, y, sample_weight)]
    return Certificate(*(np.array(column) for column in zip(*found, strict=True)))


def examine(solved: Solved) -> tuple[float, ...]:
    """The fields of a Certificate for one problem."""
    check_sums(solved)
    grad = solved.K @ solved.beta + solved.linear
    size = np.abs(solved.K) @ np.abs(solved.beta) + np.abs(solved.linear)
    noise = ROUNDING * float(size.max(initial=1.0))
    if np.isfinite(solved.budget):
        violation, level_error = nu_svr_violation(solved, grad)
    elif not solved.sums:
        violation, level_error = projected_violation(solved, grad), 0.0
    else:
        violation, level_error = group_violation(solved, grad)
    C = float(np.maximum(solved.upper, -solved.lower).sum())
    gap = max(violation, level_error, noise) * C
    blur = noise * float(np.abs(solved.beta).sum()) / solved.scale**2
    return violation, objective(solved), level_error, noise, blur, gap


def check_sums(solved: Solved) -> None:
    """Every group sums to its constant."""
    allowed = SUM_ERROR * max(1.0, float(np.abs(solved.beta).sum()))
    for g, total in enumerate(solved.sums):
        found = solved.beta[solved.group == g].sum()
        assert abs(found - total) <= allowed, f"group {g} sums to {found}, not {total}"


def objective(solved: Solved) -> float:
    """The dual objective as LIBSVM prints it (nu-SVC: over scale squared)."""
    b = solved.beta
    value = 0.5 * b @ (solved.K @ b) + solved.linear @ b
    value += solved.kink * np.abs(b).sum()
    return float(value) / solved.scale**2


def derivatives(solved: Solved, grad: Floats, kink: float) -> tuple[Floats, Floats]:
    """Left derivative where beta may fall, right one where it may rise; else -+inf."""
    b = solved.beta
    left = grad + np.where(b > 0, kink, -kink)
    right = grad + np.where(b >= 0, kink, -kink)
    left = np.where(b > solved.lower, left, -np.inf)
    return left, np.where(b < solved.upper, right, np.inf)


def group_violation(solved: Solved, grad: Floats) -> tuple[float, float]:
    """The largest violating pair inside a group, and the worst level's error."""
    left, right = derivatives(solved, grad, solved.kink)
    violation, error = 0.0, 0.0
    for g, level in enumerate(solved.levels):
        highest = left[solved.group == g].max()
        lowest = right[solved.group == g].min()
        violation = max(violation, float(highest - lowest))
        error = max(error, float(highest - level), float(level - lowest))
    return violation, error


def projected_violation(solved: Solved, grad: Floats) -> float:
    """Without a group: the largest projected gradient."""
    left, right = derivatives(solved, grad, solved.kink)
    return float(max(left.max(), -right.min(), 0.0))


def nu_svr_violation(solved: Solved, grad: Floats) -> tuple[float, float]:
    """nu-SVR through its n stored differences: the tube is the multiplier of |b|_1.

    The best tube makes this violation equal to that of the 2n variables. Where the
    tube closes, alpha and alpha* of a row cancel by an unknown share: the violation
    found is then at most twice theirs, and half of it is returned.
    """
    spent = np.abs(solved.beta).sum()
    assert spent <= solved.budget * (1 + SUM_ERROR), "sum |beta| above nu sum C"
    is_closed = spent < solved.budget * (1 - SUM_ERROR)
    tube = 0.0 if is_closed else best_tube(solved, grad)
    left, right = derivatives(solved, grad, tube)
    violation = (left.max() - right.min()) / (2 if is_closed else 1)
    return float(violation), tube_level_error(solved, grad, is_closed) / 2


def tube_ends(solved: Solved, grad: Floats) -> tuple[float, float, float, float]:
    """What a tube t and a level must meet: above + t <= level <= below - t, and
    inside_high - t <= level <= inside_low + t."""
    b, C = solved.beta, solved.upper
    above, below = grad[b > 0].max(initial=-np.inf), grad[b < 0].min(initial=np.inf)
    inside_high = grad[(b > -C) & (b <= 0)].max(initial=-np.inf)
    inside_low = grad[(b < C) & (b >= 0)].min(initial=np.inf)
    return above, below, inside_high, inside_low


def best_tube(solved: Solved, grad: Floats) -> float:
    """The half width of the tube that minimises the violation."""
    above, below, inside_high, inside_low = tube_ends(solved, grad)
    width = (inside_high - inside_low) - (above - below)
    return max(0.0, float(width) / 4) if np.isfinite(width) else 0.0


def tube_level_error(solved: Solved, grad: Floats, is_closed: bool) -> float:
    """How far the level is off for the tube that suits it best: both may be open."""
    above, below, inside_high, inside_low = tube_ends(solved, grad)
    level = solved.levels[0]
    outside = max(above - level, level - below)
    inside = max(inside_high - level, level - inside_low)
    tube = 0.0 if is_closed else max(0.0, (inside - outside) / 2)
    return float(max(outside + tube, inside - tube))


# ------------------------------------------------------------------------ decisions
def decisions(fitted: Any, X: Any, X_new: Any) -> Floats:
    """Decision values per pair of classes (or one column) at new rows."""
    support = np.asarray(fitted.support_)
    if fitted.kernel == "precomputed":
        K = dense(X_new)[:, support]
    else:
        K = gram(fitted, X_new, X[support])
    coef, intercept = dense(fitted.dual_coef_), np.ravel(fitted.intercept_)
    if machine(fitted) not in ("SVC", "NuSVC") or len(fitted.classes_) == 2:
        return (K @ coef.T + intercept).reshape(-1, 1)
    ends = np.cumsum(fitted.n_support_)
    part = [slice(e - m, e) for e, m in zip(ends, fitted.n_support_, strict=True)]
    columns = [
        K[:, part[i]] @ coef[j - 1, part[i]] + K[:, part[j]] @ coef[i, part[j]]
        for i, j in combinations(range(len(fitted.classes_)), 2)
    ]
    return np.column_stack(columns) + intercept


# ----------------------------------------------------------------------- assertions
def assert_optimal(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> Certificate:
    """The fit is optimal to its tol, and what it says about itself is true."""
    found = certify(fitted, X, y, sample_weight)
    allowed = fitted.tol * (1 + 1e-9) + found.noises
    assert np.all(found.violations <= allowed), f"{found.violations} > {fitted.tol}"
    assert np.all(found.level_errors <= allowed), f"level off by {found.level_errors}"
    assert fitted.status_.name == "CONVERGED"
    scalar = found.violations.size == 1
    for name in ("objective_", "kkt_violation_", "dual_gap_"):
        assert np.ndim(getattr(fitted, name)) == (0 if scalar else 1), name
        assert np.size(getattr(fitted, name)) == found.violations.size, name
    assert_honest(fitted, found)
    return found


def assert_honest(fitted: Any, found: Certificate) -> None:
    """objective_, kkt_violation_ and dual_gap_ are what the certificate finds."""
    sizes = np.abs(found.objectives)
    error = np.abs(np.ravel(fitted.objective_) - found.objectives)
    assert np.all(error <= 1e-7 * sizes + 1e-9 + found.objective_noises), error
    said, seen = np.ravel(fitted.kkt_violation_), np.maximum(found.violations, 0.0)
    assert np.all(said <= fitted.tol + found.noises)
    if machine(fitted) != "NuSVR":  # what cancelled there is not stored
        np.testing.assert_array_less(
            np.abs(np.maximum(said, 0.0) - seen), 1e-3 * fitted.tol + found.noises
        )
    gap = np.ravel(fitted.dual_gap_)
    assert np.all(gap >= -1e-9 * np.maximum(1.0, sizes)), f"negative gap {gap}"
    if machine(fitted) in ("SVC", "SVR"):
        assert np.all(gap <= found.gap_bounds * 1.001 + 1e-7 * np.maximum(1.0, sizes))
