"""Which dual problems does a fitted machine claim to have solved, and at which point?

Read from public attributes alone, in scikit-learn's layout, whichever library fitted
the machine: `dual_coef_`, `support_`, `n_support_`, `intercept_`, `class_weight_`.
Kernel values and all sums are computed in extended precision unless asked otherwise, so
that the answer is judged rather than the rounding of the checker.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.optimality import (
    Floats,
    Ints,
    Measures,
    Solved,
    best_levels,
    measure,
)
from benchmarks.plain_kernels import dense, gram, rounding_sizes

Extended = np.longdouble
UNDIVIDED = 1e-9  # by how much the sums of nu-SVC may differ from what nu says
NO_MARGIN = 0.5  # a margin of 1 leaves coefficients as they are, too
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


class Claim(NamedTuple):
    """A problem with its point, and the training rows its variables stand for."""

    solved: Solved
    rows: Ints


class Columns(NamedTuple):
    """K between all training rows and the support vectors, and how it rounds."""

    K: Floats
    size: Floats
    position: Ints  # of a training row among the support vectors; -1: not among them


class Pair(NamedTuple):
    """Two classes: their rows, +1 or -1 for each, weights, coefficients, K @ these."""

    rows: Ints
    sign: Floats
    weight: Floats
    coef: Floats
    image: Floats
    size: Floats


def machine(fitted: Any) -> str:
    """Which of the five machines this is."""
    names = [base.__name__ for base in type(fitted).__mro__]
    return next(name for name in names if name in MACHINES)


def claims_of(
    fitted: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    dtype: Any = Extended,
) -> list[Claim]:
    """One claim per pair of classes, or one; sums are in the precision of `dtype`."""
    name, support = machine(fitted), np.asarray(fitted.support_)
    columns = support_columns(fitted, X, support, dtype)
    weight = effective_weights(fitted, y, sample_weight, len(columns.K))
    if name in ("SVC", "NuSVC"):
        pairs = pairs_of(fitted, columns, np.asarray(y), weight)
        state = c_svc if name == "SVC" else nu_svc
        intercepts = np.ravel(fitted.intercept_)
        return [
            Claim(state(fitted, pair, float(b)), pair.rows)
            for pair, b in zip(pairs, intercepts, strict=True)
        ]
    beta = np.zeros(len(columns.K), dtype=dtype)
    beta[support] = dense(fitted.dual_coef_).ravel()
    rows = np.flatnonzero(weight)
    image, size = sums_of(columns, rows, beta)
    bound = weight[rows].astype(dtype)
    point = Pair(rows, np.ones(len(rows)), bound, beta[rows], image, size)
    if name == "OneClassSVM":
        return [Claim(one_class(fitted, point), rows)]
    z = np.asarray(y, dtype=dtype)[rows]
    return [Claim(regression(fitted, point, z), rows)]


def judge(
    fitted: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    dtype: Any = Extended,
) -> list[Measures]:
    """What every claim of a fitted machine is worth."""
    claims = claims_of(fitted, X, y, sample_weight, dtype)
    return [measure(claim.solved) for claim in claims]


# ------------------------------------------------------------------- rows and weights
def effective_weights(fitted: Any, y: Any, sample_weight: Any, n: int) -> Floats:
    """Class weight x sample weight; what is not positive becomes zero (dropped)."""
    given = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    if machine(fitted) in ("SVC", "NuSVC"):
        codes = codes_of(fitted, y)
        given = given * np.asarray(fitted.class_weight_, float)[codes]
        given = np.where(codes >= 0, given, 0.0)
    return np.where(given > 0.0, given, 0.0)


def codes_of(fitted: Any, y: Any) -> Ints:
    """Each label's place in classes_; -1: a class without weight, which was dropped."""
    classes = np.asarray(fitted.classes_)
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[codes] == np.asarray(y), codes, -1)


def support_columns(fitted: Any, X: Any, support: Ints, dtype: Any) -> Columns:
    """K[:, support]."""
    if fitted.kernel == "precomputed":
        K = dense(X)[:, support].astype(dtype)
        size = np.abs(K)
    else:
        K = gram(fitted, X, X[support], dtype)
        size = rounding_sizes(fitted, X, X[support], K)
    position = np.full(len(K), -1)
    position[support] = np.arange(len(support))
    return Columns(K, size, position)


def sums_of(columns: Columns, rows: Ints, beta: Floats) -> tuple[Floats, Floats]:
    """K @ beta at some rows, and the size of its terms."""
    near = np.flatnonzero(beta)
    across = np.ix_(rows, columns.position[near])
    return columns.K[across] @ beta[near], columns.size[across] @ np.abs(beta[near])


def pairs_of(fitted: Any, columns: Columns, y: Any, weight: Floats) -> list[Pair]:
    """Every pair of classes in LIBSVM's order."""
    k = len(fitted.classes_)
    support, ends = np.asarray(fitted.support_), np.cumsum(fitted.n_support_)
    blocks = [np.arange(e - m, e) for e, m in zip(ends, fitted.n_support_, strict=True)]
    coef = dense(fitted.dual_coef_)
    codes = codes_of(fitted, y)
    for c, block in enumerate(blocks):
        assert np.all(codes[support[block]] == c), "support_ is not by class"
    found = []
    for i, j in combinations(range(k), 2):
        beta = np.zeros(len(codes), dtype=columns.K.dtype)
        beta[support[blocks[i]]] = coef[j - 1, blocks[i]]
        beta[support[blocks[j]]] = coef[i, blocks[j]]
        positive = j if k == 2 else i  # two classes: classes_[1] is the positive one
        rows = np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0.0))
        sign = np.where(codes[rows] == positive, 1.0, -1.0)
        image, size = sums_of(columns, rows, beta)
        bound = weight[rows].astype(columns.K.dtype)
        found.append(Pair(rows, sign, bound, beta[rows], image, size))
    return found


# ------------------------------------------------------------------- the five machines
def c_svc(fitted: Any, pair: Pair, intercept: float) -> Solved:
    """One group of sum 0, and labels in the box."""
    C = fitted.C * pair.weight * pair.sign
    zero = np.zeros(len(C))
    solved = Solved(
        image=pair.image,
        size=pair.size,
        linear=-pair.sign,
        kink=0.0,
        lower=np.minimum(C, zero),
        upper=np.maximum(C, zero),
        group=np.zeros(len(C), dtype=np.intp),
        sums=(0.0,),
        beta=pair.coef,
        levels=(-intercept,),
    )
    return without_equality(fitted, solved)


def nu_svc(fitted: Any, pair: Pair, intercept: float) -> Solved:
    """Two groups; coefficients were divided by the margin, which the sums give back.

    Coefficients that were not divided by it say that the margin vanished: half the
    distance of the best levels must be zero, up to tol. The intercept then means
    nothing, and the best levels are taken. (b'Kb is no measure of the margin: variables
    at their bounds take from it, and an indefinite kernel makes it negative.)
    """
    half = fitted.nu * pair.weight.sum() / 2
    total = pair.coef[pair.sign > 0].sum()
    assert total != 0.0, "the coefficients of a class are all zero"
    r = half / total
    bound = pair.weight * pair.sign
    solved = Solved(
        image=pair.image * r,
        size=pair.size * abs(r),
        linear=np.zeros(len(bound)),
        kink=0.0,
        lower=np.minimum(bound, 0.0),
        upper=np.maximum(bound, 0.0),
        group=np.where(pair.sign > 0, 0, 1),
        sums=(float(half), -float(half)),
        beta=pair.coef * r,
        levels=(float(r * (1.0 - intercept)), float(r * (-1.0 - intercept))),
        scale=float(r),
    )
    best = best_levels(solved)
    margin = abs(best[0] - best[1]) / 2
    if abs(r - 1) >= UNDIVIDED or margin >= NO_MARGIN:
        return solved
    rounding = float(np.max(solved.slack))
    assert margin <= fitted.tol + rounding, (
        f"a margin of {margin:.3g} is called vanished"
    )
    return solved._replace(levels=best)


def one_class(fitted: Any, point: Pair) -> Solved:
    """One group of sum nu S."""
    n, level = len(point.rows), float(np.ravel(fitted.offset_)[0])
    return Solved(
        image=point.image,
        size=point.size,
        linear=np.zeros(n),
        kink=0.0,
        lower=np.zeros(n),
        upper=point.weight,
        group=np.zeros(n, dtype=np.intp),
        sums=(float(fitted.nu * point.weight.sum()),),
        beta=point.coef,
        levels=(level,),
    )


def regression(fitted: Any, point: Pair, z: Floats) -> Solved:
    """epsilon-SVR, or nu-SVR by its differences and their budget."""
    C = fitted.C * point.weight
    is_nu = machine(fitted) == "NuSVR"
    solved = Solved(
        image=point.image,
        size=point.size,
        linear=-z,
        kink=0.0 if is_nu else fitted.epsilon,
        lower=-C,
        upper=C,
        group=np.zeros(len(z), dtype=np.intp),
        sums=(0.0,),
        beta=point.coef,
        levels=(-float(np.ravel(fitted.intercept_)[0]),),
        budget=float(fitted.nu * C.sum()) if is_nu else np.inf,
    )
    return without_equality(fitted, solved)


def without_equality(fitted: Any, solved: Solved) -> Solved:
    """The same without its group, where the machine has no intercept."""
    if getattr(fitted, "fit_intercept", True):
        return solved
    assert solved.levels == (0.0,), "a machine without intercept has one"
    return solved._replace(group=solved.group - 1, sums=(), levels=())
