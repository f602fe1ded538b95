"""Is what came back right, honest, or wrong? Judged from the answer's numbers alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fitted import Extended, judge
from benchmarks.hostile.problems import Problem, class_totals, largest_nu
from benchmarks.optimality import OUTSIDE, SUM_ERROR, Measures
from benchmarks.plain_kernels import training_gram

CONFIRMED, ROUNDED, HONEST, REFUSED = "confirmed", "rounding", "honest", "refused"
WRONG, INFEASIBLE, DISHONEST = "WRONG", "INFEASIBLE", "DISHONEST"
UNJUSTIFIED, CRASHED, MEMORY = "UNJUSTIFIED", "CRASHED", "MEMORY"
LATE, SIGNAL, WORSE = "LATE", "SIGNAL", "WORSE"
GOOD = (CONFIRMED, ROUNDED, HONEST, REFUSED)
BAD = (WRONG, INFEASIBLE, DISHONEST, WORSE, UNJUSTIFIED, CRASHED, MEMORY, LATE, SIGNAL)
NEAR_NU = 1e-9  # relative: whether such a nu is feasible is decided by rounding
FLOAT32 = 1e-6  # of its terms: slopes of objectives and gaps may be sums of float32
SLOPES = 0.01  # of tol: what float32 may leave in slopes that objectives are read off
FLOAT_MAX = float(np.finfo(np.float64).max)


class Verdict(NamedTuple):
    """A word for the table, and the numbers behind it."""

    word: str
    detail: str
    status: str = ""


def judge_answer(problem: Problem, found: dict[str, Any]) -> Verdict:
    """What came back from our worker."""
    if found["kind"] == "late":
        return Verdict(LATE, f"no end after {found['seconds']:.1f} s")
    if found["kind"] == "signal":
        return Verdict(SIGNAL, found["message"])
    if found["kind"] == "error":
        return judge_error(problem, found)
    fitted = stand_in(problem, found["attributes"])
    status = found["attributes"]["status"]
    try:
        measures = judge(fitted, problem.X, problem.y, problem.sample_weight)
    except AssertionError as error:
        return Verdict(WRONG, str(error), status)
    word, detail = weigh(fitted, measures, status)
    return Verdict(word, detail, status)


def stand_in(problem: Problem, attributes: dict[str, Any]) -> Any:
    """An object with the attributes of a fitted machine, and its parameters."""
    kind = type(problem.machine, (SimpleNamespace,), {})
    gamma = {"_gamma": problem.parameters.get("gamma")}
    return kind(**problem.parameters | attributes | gamma)


def weigh(fitted: Any, measures: list[Measures], status: str) -> tuple[str, str]:
    """The word for a fitted machine; the worst problem of all pairs decides."""
    stated = fitted.kkt_violation_, fitted.objective_, fitted.dual_gap_
    said = [Said(*row) for row in np.column_stack([*map(np.ravel, stated)])]
    words = [
        word_for(found, its, fitted.tol, status)
        for found, its in zip(measures, said, strict=True)
    ]
    order = [CONFIRMED, ROUNDED, HONEST, DISHONEST, WRONG, INFEASIBLE]
    worst = max(range(len(words)), key=lambda p: order.index(words[p]))
    return words[worst], describe(measures[worst], said[worst], fitted.tol)


class Said(NamedTuple):
    """What a machine says of one of its problems."""

    violation: float
    objective: float
    gap: float


def word_for(found: Measures, said: Said, tol: float, status: str) -> str:
    """One problem: feasible, then optimal, then honest."""
    if not found.is_feasible:
        return INFEASIBLE
    if status == "CONVERGED" and not found.is_optimal(tol):
        return WRONG
    if not is_honest(found, said, tol):
        return DISHONEST
    if status != "CONVERGED":
        return HONEST
    return CONFIRMED if found.violation <= tol * (1 + 1e-9) else ROUNDED


def is_honest(found: Measures, said: Said, tol: float) -> bool:
    """Violation, objective and gap are as stated, up to rounding.

    The true violation may be half of what is stated (nu-SVR stores differences, which
    bound it only) but not more than a tenth above it.
    """
    allowed = 1.1 * said.violation + 0.1 * tol + 2 * found.rounding
    if not found.violation <= allowed:
        return False
    blur = 2 * found.objective_rounding + FLOAT32 * found.objective_terms + 1e-300
    blur += SLOPES * tol * found.spent
    if not abs(said.objective - found.objective) <= blur:
        return False
    if not np.isfinite(found.gap):
        return True
    return bool(found.gap <= 2 * abs(said.gap) + found.gap_bound + blur)


def describe(found: Measures, said: Said, tol: float) -> str:
    """The numbers of one problem in a line."""
    return (
        f"tol {tol:.1e}, violation {found.violation:.2e} (stated {said.violation:.2e}, "
        f"beyond rounding {found.violation_beyond:.2e}), level {found.level_error:.2e} "
        f"(beyond {found.level_beyond:.2e}), gap {found.gap:.2e} (stated "
        f"{said.gap:.2e}, bound {found.gap_bound:.2e}), objective "
        f"{found.objective:.9g} (stated {said.objective:.9g}), sums off by "
        f"{found.sum_error * SUM_ERROR:.1e}, boxes {found.box_error * OUTSIDE:.1e}"
    )


# ----------------------------------------------------------------------------- errors
def judge_error(problem: Problem, found: dict[str, Any]) -> Verdict:
    """An error is right where the problem has no solution, or no numbers."""
    kind, message = found["types"][0], found["message"]
    detail = f"{kind}: {message.splitlines()[0] if message else ''}"
    if "MemoryError" in found["types"]:
        return Verdict(MEMORY, detail)
    if "MaxMarginError" not in found["types"] and "ValueError" not in found["types"]:
        return Verdict(CRASHED, detail)
    return Verdict(REFUSED if may_refuse(problem) else UNJUSTIFIED, detail)


def may_refuse(problem: Problem) -> bool:
    """Whether there is something to refuse: nu, weights, or an infinite kernel."""
    return has_no_class(problem) or has_no_nu(problem) or overflows(problem)


def has_no_class(problem: Problem) -> bool:
    """Whether a class, or every sample, is without weight."""
    weight = problem.sample_weight
    if weight is not None and not np.any(weight > 0.0):
        return True
    if problem.machine not in ("SVC", "NuSVC"):
        return False
    class_weight = problem.parameters["class_weight"]
    return not np.all(class_totals(problem.y, weight, class_weight) > 0.0)


def has_no_nu(problem: Problem) -> bool:
    """Whether nu is larger than a pair of classes allows, or rounding decides."""
    if problem.machine != "NuSVC":
        return False
    parameters = problem.parameters
    class_weight, weight = parameters["class_weight"], problem.sample_weight
    largest = largest_nu(problem.y, weight, class_weight)
    return bool(parameters["nu"] > largest * (1 - NEAR_NU))


def overflows(problem: Problem) -> bool:
    """Whether a kernel value, or the square of its sum, is beyond float64."""
    kernel = stand_in(problem, {})
    largest = np.abs(training_gram(kernel, problem.X, Extended)).max()
    return not bool(largest * problem.X.shape[0] < FLOAT_MAX)


# ------------------------------------------------------------------------ comparisons
def is_comparable(problem: Problem) -> bool:
    """Convex, so that objectives can be compared, and known to scikit-learn."""
    return problem.is_convex and problem.parameters.get("fit_intercept", True)


def excess_over(problem: Problem, ours: dict[str, Any], peer: dict[str, Any]) -> str:
    """What is wrong with our objective beside the peer's; empty where nothing is.

    Ours may exceed that of the peer's feasible point by its own duality gap, and by
    rounding.
    """
    answers = [stand_in(problem, found["attributes"]) for found in (ours, peer)]
    if len(answers[0].n_support_) != len(answers[1].n_support_):
        return ""  # not the same classes: one is without weight
    if "class_weight" in problem.parameters:
        mine, other = (np.asarray(answer.class_weight_) for answer in answers)
        if mine.shape != other.shape or not np.allclose(mine, other):
            return ""  # not the same problem
    given = problem.X, problem.y, problem.sample_weight
    try:
        mine, other = (judge(answer, *given) for answer in answers)
    except AssertionError:
        return ""  # scikit-learn's support_ may miscount sparse samples with weights
    for a, b in zip(mine, other, strict=True):
        value, expected = (m.objective * m.scale**2 for m in (a, b))
        blur = a.objective_rounding * a.scale**2 + b.objective_rounding * b.scale**2
        allowed = a.gap_bound * a.scale**2 + blur + 1e-9 * abs(expected)
        if b.is_feasible and not value <= expected + allowed:
            return f"objective {value:.10g}, scikit-learn's {expected:.10g}"
    return ""
