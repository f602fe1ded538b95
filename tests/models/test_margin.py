"""Is nu-SVC solved again where its margin needs that, and only there?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maxmargin.kernels import MatrixGram
from maxmargin.models.machine import refine_margin
from maxmargin.solvers import Options, Solution, Status

N = 20


def solution(margin: float, violation: float) -> Solution:
    beta = np.where(np.arange(N) < N // 2, 1.0, -1.0)
    return Solution(
        beta=beta,
        level=np.array([margin, -margin]),
        status=Status.CONVERGED,
        n_iter=10,
        violation=violation,
        objective=0.0,
        gap=0.0,
    )


def asked(margin: float, violation: float, options: Options) -> list[Options]:
    """How it is solved again: the margin stays, and the violation is what was asked."""
    seen: list[Options] = []

    def again(found: Solution, finer: Options) -> Solution:
        seen.append(finer)
        return replace(found, violation=finer.tol)

    refine_margin(solution(margin, violation), again, MatrixGram(np.eye(N)), options)
    return seen


@pytest.mark.parametrize("margin", [0.1, 1e-6])
def test_a_clear_margin_is_enough(margin: float) -> None:
    assert asked(margin, 0.01 * margin, Options()) == []


def test_a_margin_below_a_much_finer_violation_than_asked_for_is_none() -> None:
    assert asked(6e-11, 1.2e-9, Options()) == []
    assert len(asked(6e-11, 1e-3, Options())) == 1


def test_an_unresolved_margin_is_approached_by_tenths_of_the_violation() -> None:
    first, *others = asked(0.9e-4, 1e-4, Options())

    assert first.tol == pytest.approx(1e-5)
    assert others[-1].tol == pytest.approx(0.9e-6)


def test_refinements_keep_to_their_moves() -> None:
    (unlimited,) = asked(1e-4, 9e-5, Options())
    (limited,) = asked(1e-4, 9e-5, Options(max_iter=50))

    assert unlimited.max_iter == -1  # so that small problems are solved in memory
    assert unlimited.tuning.patience.max_moves < 1000
    assert limited.max_iter == 50
