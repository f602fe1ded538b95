"""Is a linear kernel solved through w the same machine?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from problems_zoo import Case
from solved import assert_solved

from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Linear, VectorGram
from maxmargin.problems import DualProblem, c_svc, epsilon_svr, nu_svc, one_class
from maxmargin.solvers import Options, solve
from maxmargin.solvers.by_weights import solve_by_weights

N = 1200


def posed(machine: str) -> tuple[DualProblem, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6)) + 1.0
    score = X @ rng.normal(size=6) + rng.normal(size=N)
    y = np.where(score > np.median(score), 1.0, -1.0)
    C = rng.uniform(0.1, 2.0, size=N)
    problems = {
        "svc": c_svc(y, C),
        "svc without intercept": c_svc(y, C, has_intercept=False),
        "svr": epsilon_svr(score, C, 0.3),
        "one-class": one_class(np.ones(N), 0.2),
    }
    return problems[machine], X


MACHINES = ["svc", "svc without intercept", "svr", "one-class"]


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_same_optimum(machine: str, is_sparse: bool) -> None:
    problem, X = posed(machine)
    gram = VectorGram(Linear(), as_rows(sp.csr_matrix(X) if is_sparse else X))

    found = solve_by_weights(problem, gram, Options(tol=1e-5))

    assert found is not None
    assert_solved(Case(machine, problem, gram), found, 1e-5, precision=1e-8)
    other = solve(problem, gram, Options(tol=1e-5))
    slack = 1e-5 * float(np.abs(other.beta).sum())
    assert abs(found.objective - other.objective) <= slack


def test_a_former_answer_is_a_start() -> None:
    problem, X = posed("svc")
    gram = VectorGram(Linear(), as_rows(X))
    cold = solve_by_weights(problem, gram, Options(tol=1e-5))
    assert cold is not None

    warm = solve_by_weights(problem._replace(start=cold.beta), gram, Options(tol=1e-5))

    assert warm is not None
    assert warm.n_iter < cold.n_iter
    assert warm.objective == pytest.approx(cold.objective, rel=1e-7)


def others() -> list[tuple[str, DualProblem, Any]]:
    problem, X = posed("svc")
    y = -problem.linear
    few = c_svc(y[:50], np.ones(50))
    hard = c_svc(y, np.full(N, np.inf))
    wide = np.random.default_rng(0).normal(size=(N, N))
    return [
        ("kernel", problem, VectorGram(RBF(0.1), as_rows(X))),
        ("few rows", few, VectorGram(Linear(), as_rows(X[:50]))),
        ("no bounds", hard, VectorGram(Linear(), as_rows(X))),
        ("two groups", nu_svc(y, np.ones(N), 0.2), VectorGram(Linear(), as_rows(X))),
        ("wide", problem, VectorGram(Linear(), as_rows(wide))),
    ]


@pytest.mark.parametrize(
    ("why", "problem", "gram"), others(), ids=lambda v: str(v)[:10]
)
def test_not_every_problem_goes_this_way(
    why: str, problem: DualProblem, gram: Any
) -> None:
    assert solve_by_weights(problem, gram, Options()) is None, why
