"""Does the solver solve? Every problem of the zoo, every way of solving it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import naive
import numpy as np
import numpy.typing as npt
import problems_zoo as zoo
import pytest
from problems_zoo import CASES, NAMES, Case
from solved import TOL, assert_solved

from maxmargin.kernels import RBF, Linear, MatrixGram
from maxmargin.problems import (
    c_svc,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
    project_start,
)
from maxmargin.solvers import (
    Options,
    PairRule,
    Progress,
    Solution,
    Status,
    solve,
    watch,
)
from maxmargin.solvers.rows_at_hand import RowsAtHand

Floats = npt.NDArray[np.float64]

TWO_ROWS, TEN_ROWS, PLENTY = 1, 40 * zoo.N, 200 << 20  # bytes of cache
VARIANTS = [
    (working_set, shrinking, cache_bytes)
    for working_set in PairRule
    for shrinking in (True, False)
    for cache_bytes in (TWO_ROWS, TEN_ROWS, PLENTY)
]
ALSO_PLAIN = [  # these run without the compiler and with bounds checks too
    (PairRule.SECOND_ORDER, True, TWO_ROWS),
    (PairRule.FIRST_ORDER, False, PLENTY),
]
MARKS = [pytest.mark.nojit, pytest.mark.boundscheck]
every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
every_variant = pytest.mark.parametrize(
    "variant",
    [
        pytest.param(
            variant,
            marks=MARKS if variant in ALSO_PLAIN else [],
            id=f"{variant[0].name.lower()}-{variant[1]}-{variant[2]}",
        )
        for variant in VARIANTS
    ],
)


def name_of(case: Case) -> str:
    return case.name


def options(variant: tuple[PairRule, bool, int]) -> Options:
    working_set, shrinking, cache_bytes = variant
    return Options(
        method="smo",
        tol=TOL,
        working_set=working_set,
        shrinking=shrinking,
        cache_bytes=cache_bytes,
    )


@cache
def solved_by(name: str, variant: tuple[PairRule, bool, int]) -> Solution:
    case = CASES[NAMES.index(name)]
    return solve(case.problem, case.gram, options(variant))


@every_variant
@every_case
def test_solution_satisfies_kkt(case: Case, variant: Any) -> None:
    solution = solved_by(case.name, variant)

    assert_solved(case, solution)
    room = np.where(np.isinf(case.problem.upper), 0.0, case.problem.upper)
    room = room - np.where(np.isinf(case.problem.lower), 0.0, case.problem.lower)
    assert (
        0.0 <= solution.gap <= 1e-12 + TOL * room.sum() + 1e-9 * abs(solution.objective)
    )


@pytest.mark.parametrize("case", [c for c in CASES if zoo.is_convex(c)], ids=name_of)
def test_every_way_leads_to_the_same_optimum(case: Case) -> None:
    found = np.array([solved_by(case.name, v).objective for v in VARIANTS])

    np.testing.assert_allclose(found, found[0], rtol=1e-9, atol=1e-12)


@every_case
def test_start_from_any_feasible_point(case: Case) -> None:
    somewhere = np.random.default_rng(5).normal(size=len(case.problem.linear))
    start = project_start(case.problem, somewhere)
    problem = case.problem._replace(start=start)

    solution = solve(problem, case.gram, Options(method="smo", tol=TOL))

    assert_solved(case._replace(problem=problem), solution)
    if zoo.is_convex(case):
        cold = solved_by(case.name, VARIANTS[-1])
        assert solution.objective == pytest.approx(cold.objective, rel=1e-9, abs=1e-12)


@every_case
def test_start_from_the_solution_needs_no_moves(case: Case) -> None:
    cold = solved_by(case.name, VARIANTS[-1])
    warm_problem = case.problem._replace(start=cold.beta)

    warm = solve(warm_problem, case.gram, Options(method="smo", tol=1e-5, polish=False))

    assert_solved(case._replace(problem=warm_problem), warm, 1e-5)
    assert warm.n_iter == 0


# ------------------------------------------------------------------- limits and reports
@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report after every slice, and make slices short."""
    monkeypatch.setattr(watch, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(watch, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "FIRST_SLICE", 4)


def watched(case: Case, **more: Any) -> tuple[Solution, list[Progress]]:
    """Solve, and return all that the callback was told."""
    told: list[Progress] = []
    chosen = replace(Options(method="smo", tol=TOL), callback=told.append, **more)
    return solve(case.problem, case.gram, chosen), told


@pytest.mark.usefixtures("talkative")
@every_case
def test_progress_only_gets_better(case: Case) -> None:
    solution, told = watched(case, cache_bytes=TEN_ROWS)

    moves = np.array([progress.n_iter for progress in told])
    objectives = np.array([progress.objective for progress in told])
    assert np.all(np.diff(moves) >= 0)
    assert np.all(np.diff(objectives) <= 1e-6 * np.abs(objectives).max() + 1e-12)
    assert moves[-1] == solution.n_iter
    assert objectives[-1] == pytest.approx(solution.objective, rel=1e-12, abs=1e-15)
    assert told[-1].violation == solution.violation
    assert told[-1].n_active == len(case.problem.linear)
    assert told[-1].cache_misses == solution.cache_misses
    assert told[-1].cache_hits == solution.cache_hits


def hard_case(n: int = 300, C: float = 100.0) -> Case:
    """Takes thousands of moves."""
    X, y, _ = zoo.draw(n)
    return Case("hard", c_svc(y, zoo.ones(n, C)), zoo.gram_of(Linear(), 10.0 * X))


@pytest.mark.parametrize(
    "case", [hard_case(), CASES[NAMES.index("svr free")]], ids=name_of
)
@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_max_iter_is_kept_and_told(case: Case, max_iter: int) -> None:
    solution = solve(
        case.problem, case.gram, Options(method="smo", tol=TOL, max_iter=max_iter)
    )

    solved = zoo.stated(case.problem, case.gram, solution.beta, solution.level)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == max_iter
    violation = naive.measure(solved).violation
    assert solution.violation == pytest.approx(violation, rel=1e-9)
    assert solution.violation > TOL


def test_time_limit_is_kept_and_told() -> None:
    case = hard_case()

    solution = solve(
        case.problem, case.gram, Options(method="smo", tol=TOL, time_limit=1e-9)
    )

    assert solution.status is Status.TIME_LIMIT
    assert solution.violation > TOL


def test_limit_met_at_the_optimum_is_no_limit() -> None:
    case = CASES[NAMES.index("c_svc")]
    best = solved_by(case.name, VARIANTS[-1]).beta
    problem = case.problem._replace(start=best)

    solution = solve(problem, case.gram, Options(method="smo", tol=1e-5, max_iter=0))

    assert solution.status is Status.CONVERGED


def test_tolerance_below_rounding_ends_with_a_reason() -> None:
    case = hard_case(60, C=1e6)

    solution = solve(case.problem, case.gram, Options(method="smo", tol=1e-300))

    assert solution.status is Status.PRECISION_LIMIT
    assert solution.violation < 1e-3


def test_error_in_a_callback_is_not_lost() -> None:
    def fail(progress: Progress) -> None:
        raise ZeroDivisionError("from the callback")

    case = CASES[0]
    with pytest.raises(ZeroDivisionError, match="from the callback"):
        solve(case.problem, case.gram, Options(method="smo", callback=fail))


def test_two_rows_of_cache_are_counted() -> None:
    case = CASES[0]

    few = solve(
        case.problem, case.gram, Options(method="smo", tol=TOL, cache_bytes=TWO_ROWS)
    )
    many = solve(case.problem, case.gram, Options(method="smo", tol=TOL))
    held = solve(
        case.problem,
        MatrixGram(zoo.matrix_of(case.gram)),
        Options(method="smo", tol=TOL),
    )

    assert few.cache_misses > zoo.N >= many.cache_misses > 0
    assert held.cache_misses == 0
    assert min(few.cache_hits, many.cache_hits, held.cache_hits) > 0


# ---------------------------------------------------------- shrinking and precision
def shrinkable() -> list[Case]:
    """Problems most of whose variables end at a bound, or in the tube."""
    n = 600
    X, y, z = zoo.draw(n)
    gram = zoo.gram_of(RBF(0.5), X)
    return [
        Case("c_svc", c_svc(y, zoo.ones(n)), gram),
        Case("c_svc free", c_svc(y, zoo.ones(n), has_intercept=False), gram),
        Case("svr", epsilon_svr(z, zoo.ones(n), 0.5), gram),
        Case("svr free", epsilon_svr(z, zoo.ones(n), 0.5, has_intercept=False), gram),
        Case("nu_svc", nu_svc(y, zoo.ones(n), 0.5), gram),
        Case("nu_svr", nu_svr(z, zoo.ones(n), 0.3), gram),
        Case("one_class", one_class(zoo.ones(n), 0.3), gram),
    ]


@pytest.mark.usefixtures("talkative")
@pytest.mark.parametrize("case", shrinkable(), ids=name_of)
def test_shrinking_happens_and_changes_nothing(case: Case) -> None:
    small = {"cache_bytes": 1 << 20}
    shrunk, told = watched(case, **small)
    whole, told_whole = watched(case, shrinking=False, **small)

    n = len(case.problem.linear)
    assert min(progress.n_active for progress in told) < 0.9 * n
    assert {progress.n_active for progress in told_whole} == {n}
    assert_solved(case, shrunk)
    assert_solved(case, whole)
    assert shrunk.objective == pytest.approx(whole.objective, rel=1e-9)
    np.testing.assert_allclose(shrunk.beta, whole.beta, atol=1e-5)


@pytest.mark.usefixtures("talkative")
def test_shrinking_happens_with_the_default_cache() -> None:
    n = 2200
    X, y, _ = zoo.draw(n)
    case = Case("large", c_svc(y, zoo.ones(n, 0.5)), zoo.gram_of(RBF(0.5), X))

    solution, told = watched(case)

    assert min(progress.n_active for progress in told) < 0.9 * n
    assert_solved(case, solution)


@pytest.fixture
def precisions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The types that kernel rows were kept in, in order."""
    seen: list[Any] = []
    begin, restart = RowsAtHand.__init__, RowsAtHand.restart

    def noted_begin(self: RowsAtHand, *args: Any) -> None:
        begin(self, *args)
        seen.append(self.dtype)

    def noted_restart(self: RowsAtHand, *args: Any) -> None:
        restart(self, *args)
        seen.append(self.dtype)

    monkeypatch.setattr(RowsAtHand, "__init__", noted_begin)
    monkeypatch.setattr(RowsAtHand, "restart", noted_restart)
    return seen


def test_rows_become_float64_where_rounding_could_be_seen(
    precisions: list[Any],
) -> None:
    n = 200
    X, y, _ = zoo.draw(n)
    case = Case("large C", c_svc(y, zoo.ones(n, 1e5)), zoo.gram_of(RBF(0.5), X))

    solution = solve(
        case.problem, case.gram, Options(method="smo", tol=TOL, cache_bytes=1 << 18)
    )

    assert precisions[0] == np.float32
    assert precisions[-1] == np.float64
    assert_solved(case, solution)


def test_rows_stay_float32_where_rounding_cannot_matter(precisions: list[Any]) -> None:
    n = 200
    X, y, _ = zoo.draw(n)
    case = Case("small C", c_svc(y, zoo.ones(n, 0.1)), zoo.gram_of(RBF(0.5), X))

    solution = solve(
        case.problem, case.gram, Options(method="smo", tol=1e-3, cache_bytes=1 << 18)
    )

    assert set(precisions) == {np.dtype(np.float32)}
    assert_solved(case, solution, 1e-3)


def test_kernel_values_beyond_float32_are_solved_in_float64(
    precisions: list[Any],
) -> None:
    gram = zoo.gram_of(Linear(), 1e20 * zoo.APART)
    case = Case("huge", c_svc(zoo.Y, zoo.ones()), gram)

    solution = solve(
        case.problem, case.gram, Options(method="smo", tol=1e-3, cache_bytes=1)
    )

    assert precisions[-1] == np.float64
    assert_solved(case, solution, 1e-3)
