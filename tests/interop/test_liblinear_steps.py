"""Do the solvers that follow LIBLINEAR's steps arrive, when told to go far enough?"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data.design import Design
from maxmargin.interop.c_rand import CRand
from maxmargin.interop.liblinear_newton import minimise_in_steps
from maxmargin.interop.liblinear_sweeps import Terms, Walk, draw, sweep
from maxmargin.problems.linear import LinearProblem, Loss, certify

pytestmark = pytest.mark.boundscheck


def make_problem(loss, *, is_sparse=False, bias=1.0, is_free=False):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.6)
    y = np.where(X @ np.arange(6) + rng.normal(size=50) > 0, 1.0, -1.0)
    design = Design(sp.csr_matrix(X) if is_sparse else X, bias)
    cost = rng.uniform(0.5, 2.0, size=50)
    target = y * 2.5 if loss.is_regression else y
    return LinearProblem(design, target, cost, loss, 0.2, is_free)


SMOOTH = [Loss.SQUARED_HINGE, Loss.LOGISTIC, Loss.SQUARED_EPSILON]


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_newton_steps_arrive(loss, is_free, is_sparse):
    problem = make_problem(loss, is_sparse=is_sparse, is_free=is_free)

    found = minimise_in_steps(problem, np.zeros(7), 1e-7, lambda: False)

    assert found.is_reached
    values = [step.objective for step in found.steps]
    assert values == sorted(values, reverse=True)
    assert found.steps[-1].slope <= 1e-7 * found.steps[0].slope


def test_newton_stops_when_told():
    problem = make_problem(Loss.LOGISTIC)

    found = minimise_in_steps(problem, np.zeros(7), 1e-9, lambda: True)

    assert not found.is_reached
    assert len(found.steps) == 1


@pytest.mark.parametrize("loss", [Loss.HINGE, Loss.SQUARED_HINGE])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_sweeps_arrive(loss, is_sparse, bias):
    problem = make_problem(loss, is_sparse=is_sparse, bias=bias)
    design, n = problem.design, problem.design.n
    is_squared = loss is Loss.SQUARED_HINGE
    ridge = 0.5 / problem.cost if is_squared else np.zeros(n)
    upper = np.full(n, np.inf) if is_squared else problem.cost
    terms = Terms(problem.target, upper, ridge, design.squared_norms + ridge)
    walk = Walk(
        np.zeros(n),
        np.zeros(design.n_columns),
        np.arange(n),
        np.array([np.inf, -np.inf]),
    )
    state = CRand().state()

    for _ in range(3000):
        n_active = sweep(design.rows, design.bias, terms, walk, n, state)
        walk.slopes[:] = np.inf, -np.inf

    proof = certify(problem, problem.target * walk.alpha)
    assert n_active == n
    assert proof.meets(1e-6)
    np.testing.assert_allclose(proof.weight, walk.weight, atol=1e-9)
    assert sorted(walk.order.tolist()) == list(range(n))


def test_settled_samples_are_left_out():
    problem = make_problem(Loss.HINGE)
    design, n = problem.design, problem.design.n
    zeros = np.zeros(n)
    terms = Terms(problem.target, problem.cost, zeros, design.squared_norms)
    walk = Walk(
        np.zeros(n),
        np.zeros(design.n_columns),
        np.arange(n),
        np.array([np.inf, -np.inf]),
    )
    state = CRand().state()

    left = [sweep(design.rows, 1.0, terms, walk, n, state) for _ in range(200)]

    assert left[0] == n
    assert min(left) < n


@pytest.mark.nojit
def test_drawing_is_its_slow_twin():
    state, random = CRand(9).state(), CRand(9)

    assert [draw(state) for _ in range(100)] == [random.rand() for _ in range(100)]
