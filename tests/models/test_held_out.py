"""Are decision values of held-out samples those of a fit without them?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from maxmargin.data.rows import as_rows
from maxmargin.kernels.functions import RBF, Kernel, Laplacian, Linear
from maxmargin.kernels.gram import Gram, MatrixGram, VectorGram, gram_block
from maxmargin.models.held_out import (
    Solved,
    held_out_decisions,
    held_out_margins,
    shuffled_folds,
    stratified_folds,
)
from maxmargin.models.leave_one_out import leave_one_out_decisions
from maxmargin.models.machine import Fit, fit_decision, fit_margin, fit_tube
from maxmargin.problems import DualProblem, epsilon_svr, nu_svr, one_class
from maxmargin.problems.classification import c_svc, feasible_nu_svc
from maxmargin.solvers import Options, Status
from maxmargin.solvers.refits import WarmRefitter

Floats = npt.NDArray[np.float64]
TOL = 1e-8


def draw(n: int, n_columns: int = 5) -> tuple[Floats, Floats]:
    random = np.random.default_rng(n)
    X = random.normal(size=(n, n_columns))
    y = np.where(X[:, 0] + 0.8 * random.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def stated(name: str, y: Floats, weight: Floats) -> DualProblem:
    """A problem of these weights, by its name."""
    z = y * np.linspace(0.5, 2.0, len(y))
    problems: dict[str, Any] = {
        "c_svc": lambda: c_svc(y, 2.0 * weight),
        "c_svc without intercept": lambda: c_svc(y, 2.0 * weight, has_intercept=False),
        "nu_svc": lambda: feasible_nu_svc(y, 0.3, weight),
        "epsilon_svr": lambda: epsilon_svr(z, 2.0 * weight, 0.1),
        "nu_svr": lambda: nu_svr(z, 2.0 * weight, 0.4),
        "one_class": lambda: one_class(weight, 0.2),
    }
    problem: DualProblem = problems[name]()
    return problem


FITS: dict[str, Fit] = {
    "c_svc": fit_decision,
    "c_svc without intercept": fit_decision,
    "nu_svc": fit_margin,
    "epsilon_svr": fit_decision,
    "nu_svr": fit_tube,
    "one_class": fit_decision,
}


def solve(name: str, gram: Gram, y: Floats, weight: Floats) -> Solved:
    options = Options(tol=TOL)
    state, fit = partial(stated, name, y), FITS[name]
    machine = fit(state(weight), gram, options, None, None)
    return Solved(state, fit, gram, weight, machine, options)


def refitted(name: str, gram: Gram, y: Floats, weight: Floats, fold: Any) -> Floats:
    """Decision values of a fold by a fit that is given the other samples only."""
    inside = np.setdiff1d(np.arange(gram.n), fold)
    part = gram.take(inside)
    if name in ("epsilon_svr", "nu_svr"):
        whole = stated(name, y, weight)
        problem = stated(name, y[inside], weight[inside])
        linear = whole.linear[: gram.n][inside]
        problem = problem._replace(linear=np.resize(linear, len(problem.linear)))
    else:
        problem = stated(name, y[inside], weight[inside])
    machine = FITS[name](problem, part, Options(tol=TOL), None, None)
    K = gram_block(gram, np.asarray(fold), inside)
    values: Floats = K @ machine.coef + machine.intercept
    return values


@pytest.mark.parametrize("n", [80, 420])
@pytest.mark.parametrize("name", FITS)
def test_held_out_is_as_if_never_seen(name: str, n: int) -> None:
    X, y = draw(n)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    gram = VectorGram(RBF(0.3), as_rows(X))
    folds = stratified_folds((y > 0).astype(np.intp), np.random.RandomState(0))

    found = held_out_decisions(solve(name, gram, y, weight), folds).decisions

    for fold in folds:
        expected = refitted(name, gram, y, weight, fold)
        size = max(1.0, float(np.abs(expected).max()))
        assert np.abs(found[fold] - expected).max() < 2e-5 * size


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(0.2)], ids=repr)
@pytest.mark.parametrize("n", [150, 1100])
def test_other_kernels_too(kernel: Kernel, n: int) -> None:
    X, y = draw(n, 3)
    weight = np.ones(n)
    gram = VectorGram(kernel, as_rows(X))
    folds = shuffled_folds(n, np.random.RandomState(0))[:2]
    name = "c_svc" if n < 1000 else "epsilon_svr"

    found = held_out_decisions(solve(name, gram, y, weight), folds).decisions

    for fold in folds:
        expected = refitted(name, gram, y, weight, fold)
        assert np.abs(found[fold] - expected).max() < 2e-5


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.2)], ids=repr)
@pytest.mark.parametrize("n", [150, 420])
@pytest.mark.parametrize("name", FITS)
def test_a_coarse_tolerance_is_kept(name: str, n: int, kernel: Kernel) -> None:
    """Then small folds are solved on float32 rows that they share."""
    X, y = draw(n)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    gram = VectorGram(kernel, as_rows(X))
    folds = stratified_folds((y > 0).astype(np.intp), np.random.RandomState(0))
    solved = replace(solve(name, gram, y, weight), options=Options(tol=1e-3))

    found = held_out_decisions(solved, folds)

    assert found.status is Status.CONVERGED
    for fold in folds:
        expected = refitted(name, gram, y, weight, fold)
        size = max(1.0, float(np.abs(expected).max()))
        assert np.abs(found.decisions[fold] - expected).max() < 6e-3 * size


def test_a_sample_in_no_fold_keeps_its_value() -> None:
    X, y = draw(420)
    gram = VectorGram(RBF(0.3), as_rows(X))
    solved = solve("c_svc", gram, y, np.ones(420))
    solved = replace(solved, options=Options(tol=1e-3))
    fold = np.arange(0, 420, 7)

    found = held_out_decisions(solved, [fold, np.empty(0, dtype=np.intp)]).decisions

    others = np.setdiff1d(np.arange(420), fold)
    assert np.array_equal(found[others], solved.machine.decisions[others])
    assert (found[fold] != solved.machine.decisions[fold]).all()


def test_what_the_few_cannot_do_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(420)
    gram = VectorGram(RBF(0.3), as_rows(X))
    solved = solve("c_svc", gram, y, np.ones(420))
    solved = replace(solved, options=Options(tol=1e-3))
    folds = shuffled_folds(420, np.random.RandomState(0))
    expected = held_out_decisions(solved, folds)

    monkeypatch.setattr(WarmRefitter, "_enter_box", lambda *_: False)
    found = held_out_decisions(solved, folds)

    assert found.status is Status.CONVERGED
    assert np.abs(found.decisions - expected.decisions).max() < 1e-2


def test_little_memory_changes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(420)
    gram = VectorGram(RBF(0.3), as_rows(X))
    solved = solve("c_svc", gram, y, np.ones(420))
    folds = shuffled_folds(420, np.random.RandomState(0))
    much, little = Options(tol=1e-3), Options(tol=1e-3, cache_bytes=1 << 20)
    expected = held_out_decisions(replace(solved, options=much), folds).decisions

    monkeypatch.setattr(WarmRefitter, "__init__", None)  # whose rows would not fit
    found = held_out_decisions(replace(solved, options=little), folds).decisions

    assert np.abs(found - expected).max() < 1e-2


def test_threads_change_nothing() -> None:
    X, y = draw(500)
    gram = VectorGram(RBF(0.3), as_rows(X))
    folds = stratified_folds((y > 0).astype(np.intp), np.random.RandomState(3))
    solved = solve("c_svc", gram, y, np.ones(500))

    one, two = (held_out_decisions(solved, folds, k).decisions for k in (1, 2))

    assert np.array_equal(one, two)


def test_folds_deal_every_class_to_all() -> None:
    code = np.repeat([0, 1, 2], [50, 11, 23])

    folds = stratified_folds(code, np.random.RandomState(0))

    assert np.array_equal(np.sort(np.concatenate(folds)), np.arange(len(code)))
    counts = np.array([np.bincount(code[fold], minlength=3) for fold in folds])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp([len(fold) for fold in folds]) <= 1
    again = stratified_folds(code, np.random.RandomState(0))
    other = stratified_folds(code, np.random.RandomState(1))
    assert all(np.array_equal(a, b) for a, b in zip(folds, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(folds, other, strict=True))


def test_a_fold_may_take_a_whole_class() -> None:
    X, _ = draw(12)
    y = np.where(np.arange(12) < 2, 1.0, -1.0)
    gram = VectorGram(RBF(0.3), as_rows(X))
    folds = [np.array([0, 1]), np.arange(2, 12)]

    for name in ("c_svc", "nu_svc"):
        solved = solve(name, gram, y, np.ones(12))
        found = held_out_margins(solved, y, folds).decisions
        assert found.tolist() == [-1.0] * 2 + [1.0] * 10


@pytest.mark.parametrize("name", ["c_svc", "c_svc without intercept", "epsilon_svr"])
def test_leaving_one_out_is_a_refit_while_the_free_stay_free(name: str) -> None:
    X, y = draw(60)
    weight = np.ones(60)
    gram = VectorGram(RBF(0.3), as_rows(X))
    solved = solve(name, gram, y, weight)

    estimated = leave_one_out_decisions(solved)

    exact = np.array([refitted(name, gram, y, weight, [i])[0] for i in range(60)])
    at_rest = solved.machine.solution.beta == 0.0
    assert at_rest.any()
    assert np.abs(estimated - exact)[at_rest].max() < 1e-6
    off = np.abs(estimated - exact)
    assert np.median(off) < 0.05
    assert np.corrcoef(estimated, exact)[0, 1] > 0.95


def test_leaving_one_out_is_exact_where_nothing_is_at_a_bound() -> None:
    """Least squares in disguise: every variable is free, and stays so."""
    X, y = draw(30)
    K = gram_block(VectorGram(RBF(0.3), as_rows(X)), np.arange(30), np.arange(30))
    gram = MatrixGram(K + np.eye(30))

    def state(weight: Floats) -> DualProblem:
        wide = c_svc(y, 1e6 * weight)
        lower = np.where(weight > 0, -1e6, 0.0)
        return wide._replace(lower=lower, upper=-lower)

    options = Options(tol=1e-10)
    machine = fit_decision(state(np.ones(30)), gram, options)
    solved = Solved(state, fit_decision, gram, np.ones(30), machine, options)

    found = leave_one_out_decisions(solved)

    for i in range(30):
        left = np.ones(30)
        left[i] = 0.0
        without = fit_decision(state(left), gram, options)
        assert found[i] == pytest.approx(without.decisions[i], abs=1e-6)
