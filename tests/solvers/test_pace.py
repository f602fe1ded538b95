"""Does a fit end that makes no headway, and go on where it does?"""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.solvers.pace import Pace
from maxmargin.solvers.result import Options, Status
from maxmargin.solvers.tuning import TUNING

FEWEST_MOVES, MOST_MOVES = TUNING.patience.min_moves, TUNING.patience.max_moves
MOVES_PER_VARIABLE = TUNING.patience.min_moves_per_variable
MANY = TUNING.patience.moves_of_fit


def run(pace: Pace, violation: float, n_moves: int) -> Status | None:
    pace.n_iter += n_moves
    pace.note_violation(violation)
    return pace.limit()


@pytest.mark.parametrize("moves_per_decade", [10, 1000, 20_000])
def test_steady_convergence_is_never_cut_off(moves_per_decade: int) -> None:
    pace = Pace(Options(n_problems=MANY), 100)

    limits = [
        run(pace, violation, moves_per_decade // 10)
        for violation in np.logspace(3, -9, 121)
    ]

    assert limits == [None] * 121


def test_a_violation_that_stays_ends_the_fit() -> None:
    pace = Pace(Options(n_problems=MANY), 100)
    assert run(pace, 1.0, 100) is None
    assert run(pace, 1e-2, 1000) is None

    n_slices = 0
    while (limit := run(pace, 1e-2, 10_000)) is None:
        n_slices += 1

    assert limit is Status.STALLED
    assert pace.n_iter <= FEWEST_MOVES + 20 * 100 + 20_000


def test_patience_grows_with_the_way_that_was_made() -> None:
    quick, slow = (
        Pace(Options(n_problems=MANY), 100),
        Pace(Options(n_problems=MANY), 100),
    )
    run(quick, 1e-3, 100)
    run(slow, 1.0, 10)
    run(slow, 1e-3, 40_000)

    assert run(quick, 1e-3, 2 * FEWEST_MOVES) is Status.STALLED
    assert run(slow, 1e-3, 2 * FEWEST_MOVES) is None


def test_a_fit_that_began_near_its_end_goes_on_while_it_gains() -> None:
    pace = Pace(Options(n_problems=MANY), 100)
    run(pace, 3.0, FEWEST_MOVES // 2)

    limits = [run(pace, 3.0 * 0.5**k, int(0.4 * pace.n_iter)) for k in range(1, 7)]

    assert pace.n_iter > 3 * FEWEST_MOVES
    assert limits == [None] * 6
    assert run(pace, 3.0 * 0.5**6, int(0.6 * pace.n_iter)) is Status.STALLED


def test_large_problems_may_make_more_moves() -> None:
    n = 10 * FEWEST_MOVES // MOVES_PER_VARIABLE

    assert run(Pace(Options(n_problems=MANY), n), 1.0, 5 * FEWEST_MOVES) is None


def test_a_limit_of_ones_own_is_the_only_one() -> None:
    pace = Pace(Options(max_iter=10 * FEWEST_MOVES), 100)

    assert run(pace, 1.0, 10 * FEWEST_MOVES - 1) is None
    assert run(pace, 1.0, 1) is Status.MAX_ITER


def test_pairs_of_many_classes_share_the_patience_of_a_fit() -> None:
    alone, one_of_ten = Pace(Options(), 100), Pace(Options(n_problems=10), 100)

    assert run(alone, 1.0, 10) is run(one_of_ten, 1.0, 10) is None
    assert run(alone, 1.0, MANY // 2) is None
    assert run(one_of_ten, 1.0, MANY // 2) is Status.STALLED


def test_nobody_waits_longer_than_with_libsvm() -> None:
    pace = Pace(Options(), 100)

    assert run(pace, 1.0, MOST_MOVES - 1) is None
    assert run(pace, 0.9, 1) is None
    assert run(pace, 0.8, 1) is Status.STALLED


def test_a_slice_that_compilation_made_short_grows_again() -> None:
    pace = Pace(Options(), 100)

    pace.note(256, 10.0)
    assert pace.moves(10**9) == 1
    pace.note(1, 1e-5)

    assert pace.moves(10**9) > 1000


def test_a_slice_that_ended_early_does_not_tell_the_speed() -> None:
    pace = Pace(Options(), 100)
    pace.note(256, 1e-3)
    before = pace.moves(10**9)

    pace.note(3, 1.0)

    assert pace.moves(10**9) == before
