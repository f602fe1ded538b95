"""Do the verbs of a working set do what a slow reading of their names would?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.problems import DualProblem, c_svc, nu_svc
from maxmargin.solvers.tuning import TUNING, RoundSizes
from maxmargin.solvers.work import Work, gather_work, part_of
from maxmargin.solvers.working_set import (
    HIGHEST,
    LOWEST,
    N_NEW,
    OUTSIDE,
    SINGLY,
    N,
    WorkingSet,
    admit,
    admit_all,
    admit_free,
    close_gaps,
    evict,
    kth_smallest,
    make_working_set,
    measure,
    sort_members,
    take_changes,
)

Floats = npt.NDArray[np.float64]

N_ALL = 60
SIZES = RoundSizes(0.0, 12, 12, 24, 0.0, 0.1)  # members at rest leave at once
pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]
every_number_of_groups = pytest.mark.parametrize("n_groups", [0, 1, 2])


def posed(n_groups: int) -> DualProblem:
    rng = np.random.default_rng(n_groups)
    y = np.where(rng.random(N_ALL) < 0.5, 1.0, -1.0)
    if n_groups == 2:
        problem = nu_svc(y, np.ones(N_ALL), 0.4)
        return problem.reordered(np.argsort(problem.group, kind="stable"))
    return c_svc(y, np.ones(N_ALL), has_intercept=n_groups == 1)


def drawn(n_groups: int, seed: int = 0) -> tuple[Work, WorkingSet, Floats]:
    """Variables at a bound or between, slopes at random, no members; K."""
    rng, problem = np.random.default_rng(seed), posed(n_groups)
    share = rng.choice([0.0, 0.5, 1.0], size=N_ALL)
    beta = problem.lower + share * (problem.upper - problem.lower)
    everything = np.arange(N_ALL)
    work = gather_work(
        problem, everything, beta, rng.normal(size=N_ALL), np.ones(N_ALL)
    )
    square = np.full((N_ALL, N_ALL), np.nan, dtype=np.float32)
    working_set = make_working_set(N_ALL, problem.n_groups, square, SIZES)
    factor = rng.normal(size=(N_ALL, 4))
    return work, working_set, factor @ factor.T


def members_of(working_set: WorkingSet) -> npt.NDArray[np.intp]:
    return working_set.members[: working_set.counts[N]].copy()


def extend(working_set: WorkingSet, K: Floats) -> None:
    members = members_of(working_set)
    n = len(members)
    working_set.square.rows[:n, :n] = K[np.ix_(members, members)]


def groups_of(work: Work) -> npt.NDArray[np.intp]:
    return np.searchsorted(work.start, np.arange(N_ALL), side="right") - 1


@every_number_of_groups
def test_the_violation_is_the_largest_of_all_groups(n_groups: int) -> None:
    work, working_set, _ = drawn(n_groups)
    up, down, group = work.grad + work.rise, work.grad + work.fall, groups_of(work)

    violation = measure(work, working_set, None if n_groups else SINGLY)

    for g in range(max(n_groups, 1)):
        assert working_set.extremes[LOWEST, g] == up[group == g].min()
        assert working_set.extremes[HIGHEST, g] == down[group == g].max()
    spread = working_set.extremes[HIGHEST] - working_set.extremes[LOWEST]
    expected = spread.max() if n_groups else max(down.max(), -up.min())
    assert violation == expected


@every_number_of_groups
def test_those_that_violate_most_are_admitted(n_groups: int) -> None:
    work, working_set, _ = drawn(n_groups)
    singly = None if n_groups else SINGLY
    measure(work, working_set, singly)

    admit(work, working_set, singly)

    members, group = members_of(working_set), groups_of(work)
    assert len(np.unique(members)) == len(members)
    assert np.array_equal(np.flatnonzero(working_set.age != OUTSIDE), np.sort(members))
    n_each = 12 // (2 * max(n_groups, 1))
    expected = set()
    for g in range(max(n_groups, 1)):
        up = np.where(group == g, work.grad + work.rise, np.inf)
        down = np.where(group == g, work.grad + work.fall, -np.inf)
        top, bottom = (down.max(), up.min()) if n_groups else (0.0, 0.0)
        low = np.argsort(up)[:n_each]
        expected |= set(low[up[low] < top].tolist())
        down[list(expected)] = -np.inf
        high = np.argsort(-down)[:n_each]
        expected |= set(high[down[high] > bottom].tolist())
    assert set(members.tolist()) == expected


@pytest.mark.parametrize("n_new", [4, 10])
def test_of_equal_slopes_some_are_admitted_from_all_over_the_range(n_new: int) -> None:
    work, working_set, _ = drawn(1)
    work.grad[:] = np.where(work.upper > 0.0, -1.0, 1.0)
    work.beta[:] = 0.0
    work.rise[:] = np.where(work.upper > 0.0, 0.0, np.inf)
    work.fall[:] = np.where(work.upper > 0.0, -np.inf, 0.0)
    working_set.counts[N_NEW] = n_new
    measure(work, working_set, None)

    admit(work, working_set, None)

    members = members_of(working_set)
    assert len(members) == n_new
    assert members.max() > 2 * N_ALL / 3
    assert np.count_nonzero(work.upper[members] > 0.0) == n_new // 2


@every_number_of_groups
@pytest.mark.parametrize("seed", range(5))
def test_members_come_and_go_and_the_square_with_them(n_groups: int, seed: int) -> None:
    work, working_set, K = drawn(n_groups, seed)
    singly, rng = None if n_groups else SINGLY, np.random.default_rng(seed)
    is_free = (work.beta > work.lower) & (work.beta < work.upper)
    n_evicted = 0

    for _ in range(8):
        measure(work, working_set, singly)
        before = members_of(working_set)
        left = evict(work, working_set, SIZES, N_ALL)
        assert left.has_room
        n_left = len(left.source)
        close_gaps(working_set.square.rows, left.source, left.gaps, 0, n_left)
        n = int(working_set.counts[N])
        kept = members_of(working_set)
        np.testing.assert_array_equal(
            working_set.square.rows[:n, :n], K[np.ix_(kept, kept)].astype(np.float32)
        )
        n_evicted += len(before) - n
        assert set(before[is_free[before]].tolist()) <= set(kept.tolist())
        admit(work, working_set, singly)
        extend(working_set, K)
        sort_members(work, working_set)
        members = members_of(working_set)
        n = len(members)
        np.testing.assert_array_equal(
            working_set.square.rows[:n, :n],
            K[np.ix_(members, members)].astype(np.float32),
        )
        group = groups_of(work)[members]
        assert np.array_equal(group, np.sort(group))
        work.grad[:] = rng.normal(size=N_ALL)

    assert n_evicted > 0


def test_free_members_stay_and_others_leave_where_memory_is_short() -> None:
    work, working_set, K = drawn(1)
    admit_all(working_set)
    extend(working_set, K)
    measure(work, working_set, None)
    free = np.flatnonzero((work.beta > work.lower) & (work.beta < work.upper))
    n_new = int(working_set.counts[N_NEW])

    assert not evict(work, working_set, SIZES, len(free) + n_new - 1).has_room
    assert evict(work, working_set, SIZES, len(free) + n_new).has_room

    assert set(members_of(working_set).tolist()) == set(free.tolist())


@pytest.mark.parametrize("side", [10, N_ALL])
def test_a_warm_start_admits_free_variables_if_there_is_room(side: int) -> None:
    work, _, _ = drawn(1)
    square = np.zeros((side, side), dtype=np.float32)
    working_set = make_working_set(N_ALL, 1, square, SIZES)
    free = np.flatnonzero((work.beta > work.lower) & (work.beta < work.upper))

    admit_free(work, working_set)

    expected = free if side == N_ALL else []
    assert np.array_equal(members_of(working_set), expected)


@every_number_of_groups
def test_members_by_themselves_and_back(n_groups: int) -> None:
    work, working_set, _ = drawn(n_groups)
    before = work.beta.copy()
    measure(work, working_set, None)
    admit(work, working_set, None)
    sort_members(work, working_set)
    members = members_of(working_set)

    own = part_of(work, members)
    own.beta[:3] = 0.25 * own.upper[:3] + 0.75 * own.lower[:3]
    moved, change = take_changes(work, own, working_set)

    group = groups_of(work)[members]
    ends = [np.count_nonzero(group < g) for g in range(len(work.start))]
    assert np.array_equal(own.start, ends)
    assert np.array_equal(own.lower, work.lower[members])
    assert np.array_equal(moved, members[:3])
    np.testing.assert_array_equal(work.beta[moved], before[moved] + change)


def test_how_many_a_round_admits() -> None:
    square = np.zeros((4, 4), dtype=np.float32)
    sizes = TUNING.compiled_rounds
    for n, n_new in ((10, 32), (1600, 100), (100_000, 256)):
        working_set = make_working_set(n, 1, square, sizes)

        assert working_set.counts[N_NEW] == n_new


@pytest.mark.parametrize("k", [0, 7, 19])
def test_the_kth_smallest_value(k: int) -> None:
    values = np.random.default_rng(0).integers(0, 12, size=20).astype(np.float64)
    expected = np.sort(values)[k]

    assert kth_smallest(values, 20, k) == expected
