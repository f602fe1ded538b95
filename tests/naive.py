"""Is a fitted machine optimal? Asked of plain NumPy that shares no code with it.

The problem, the point and the measures come from `benchmarks.fitted` and
`benchmarks.optimality`, the checker that the benchmarks and the hunt for hostile
problems use too: group sums, boxes, KKT violation by LIBSVM's rule, duality gap.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fitted import Claim, claims_of, machine
from benchmarks.optimality import Measures, Solved, best_tube, measure
from benchmarks.plain_kernels import (
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
    "Claim",
    "Floats",
    "Measures",
    "Solved",
    "assert_optimal",
    "assert_stated",
    "best_tube",
    "certify",
    "claims_of",
    "decisions",
    "dense",
    "gram",
    "laplacian",
    "linear",
    "machine",
    "measure",
    "polynomial",
    "rbf",
    "sigmoid",
    "training_gram",
]


# ---------------------------------------------------------------------- certificate
class Certificate(NamedTuple):
    """What a fit is worth: one entry per pair of classes."""

    measures: tuple[Measures, ...]

    def all(self, name: str) -> Floats:
        """One measure of every problem."""
        return np.array([getattr(found, name) for found in self.measures])

    @property
    def violations(self) -> Floats:
        return self.all("violation")

    @property
    def violation(self) -> float:
        return float(self.violations.max())

    @property
    def noises(self) -> Floats:
        """What rounding alone may add to a violation."""
        return self.all("rounding")


def certify(
    fitted: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> Certificate:
    """Feasibility is asserted; the measures are returned."""
    check_support(fitted, X, sample_weight)
    claims = claims_of(fitted, X, y, sample_weight)
    found = Certificate(tuple(measure(claim.solved) for claim in claims))
    assert np.all(found.all("sum_error") <= 1.0), "a group misses its sum"
    assert np.all(found.all("box_error") <= 1.0), "outside the box"
    return found


def check_support(fitted: Any, X: Any, sample_weight: Any) -> None:
    """The attributes that describe support vectors agree with each other."""
    support = np.asarray(fitted.support_)
    assert len(np.unique(support)) == len(support), "a support vector occurs twice"
    assert np.sum(fitted.n_support_) == len(support)
    assert fitted.dual_coef_.shape[1] == len(support)
    if sample_weight is not None:
        weight = np.asarray(sample_weight)[support]
        assert np.all(weight > 0.0), "a row without weight supports"
    if fitted.kernel != "precomputed" and not callable(fitted.kernel):
        stored = dense(fitted.support_vectors_)
        assert np.array_equal(stored, dense(X)[support]), "support_vectors_ != X[...]"
    if machine(fitted) == "OneClassSVM":
        assert np.allclose(fitted.offset_, -fitted.intercept_, rtol=1e-12)


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
    """The fit is feasible, optimal to its tol, and what it says of itself is true."""
    found = certify(fitted, X, y, sample_weight)
    is_optimal = [its.is_optimal(fitted.tol) for its in found.measures]
    assert all(is_optimal), f"{found.violations} > {fitted.tol}, or the level is off"
    assert fitted.status_.name == "CONVERGED"
    scalar = len(found.measures) == 1
    for name in ("objective_", "kkt_violation_", "dual_gap_"):
        assert np.ndim(getattr(fitted, name)) == (0 if scalar else 1), name
        assert np.size(getattr(fitted, name)) == len(found.measures), name
    assert_honest(fitted, found)
    return found


def assert_honest(fitted: Any, found: Certificate) -> None:
    """objective_, kkt_violation_ and dual_gap_ are what the certificate finds."""
    assert np.all(np.ravel(fitted.kkt_violation_) <= fitted.tol + found.noises)
    assert_stated(fitted, found)
    assert_true_gap(fitted, found)


def assert_stated(fitted: Any, found: Certificate) -> None:
    """objective_ and kkt_violation_ are what the certificate finds, however large."""
    objectives, blur = found.all("objective"), found.all("objective_rounding")
    error = np.abs(np.ravel(fitted.objective_) - objectives)
    assert np.all(error <= 1e-7 * np.abs(objectives) + 1e-9 + blur), error
    said, seen = np.ravel(fitted.kkt_violation_), np.maximum(found.violations, 0.0)
    if machine(fitted) != "NuSVR":  # what cancelled there is not stored
        np.testing.assert_array_less(
            np.abs(np.maximum(said, 0.0) - seen),
            1e-3 * np.maximum(fitted.tol, seen) + found.noises,
        )


def assert_true_gap(fitted: Any, found: Certificate) -> None:
    """dual_gap_ is primal minus dual, both summed independently of each other."""
    gap, expected = np.ravel(fitted.dual_gap_), found.all("gap")
    known = np.isfinite(expected)  # an infinite box has no primal value
    sizes = np.maximum(1.0, found.all("objective_terms"))
    blur = found.all("objective_rounding") + 1e-7 * sizes
    assert np.all(gap >= -1e-9 * sizes), f"negative gap {gap}"
    assert np.all(expected[known] >= -blur[known]), f"infeasible: gap {expected}"
    assert np.all((gap <= found.all("gap_bound") * 1.001 + blur)[known])
    if machine(fitted) != "NuSVR":  # whose two levels are not stored
        assert np.all((np.abs(gap - expected) <= 1e-3 * expected + blur)[known])
