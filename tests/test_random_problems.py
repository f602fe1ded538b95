"""Are random problems the same everywhere, and is what they say of us true?"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.random_problems.judged import kernel_matrix, worth_of
from benchmarks.random_problems.problems import KERNELS, MACHINES, make_problem
from benchmarks.random_problems.report import add_ratio, summary
from benchmarks.random_problems.worker import OURS, attributes_of, fit


def test_random_problems_are_the_same_everywhere_and_differ() -> None:
    problems = [make_problem(5, index, None) for index in range(150)]

    for index in (0, 7):
        again = make_problem(5, index, None)
        assert str(again) == str(problems[index])
        assert np.array_equal(again.X, problems[index].X)
    assert {problem.machine for problem in problems} == set(MACHINES)
    assert {problem.parameters["kernel"] for problem in problems} == set(KERNELS)
    assert max(problem.n_classes for problem in problems) > 10


def test_answers_to_random_problems_are_judged() -> None:
    problem = next(p for p in (make_problem(6, i, None) for i in range(50)) if small(p))
    attributes = attributes_of(fit(problem, OURS))

    worth = worth_of(problem, kernel_matrix(problem), attributes)
    attributes["dual_coef_"] = 1.01 * attributes["dual_coef_"]
    spoilt = worth_of(problem, kernel_matrix(problem), attributes)

    assert worth.is_feasible and worth.violation <= 1e-3
    assert not (spoilt.is_feasible and spoilt.violation <= 1e-3)


def small(problem: Any) -> bool:
    return problem.machine == "SVC" and problem.X.shape[0] < 700


def test_ratios_are_of_the_fastest_peer() -> None:
    times = ({OURS: 0.1, "a": 0.4, "b": 0.2}, {OURS: None, "a": 1.0, "b": None})
    records = [{"seconds": seconds, "limit": 20.0} for seconds in times]

    for record in records:
        add_ratio(record)

    assert [record["ratio"] for record in records] == [2.0, 0.05]
    assert [record["is_late"] for record in records] == [False, True]
    assert summary(records) == ["0.32", "2.00", "50 %", "1"]
