"""Is little work done where a problem is easy? Work is counted, never timed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.models.machine
from maxmargin import SVC, LinearSVC, NuSVC
from maxmargin.data.rows import SparseRows, as_rows
from maxmargin.kernels import RBF, VectorGram
from maxmargin.problems import c_svc
from maxmargin.solvers import Options, Status, solve
from maxmargin.solvers.tuning import TUNING
from maxmargin.typing import FloatMatrix, FloatVector


def far_apart(n: int) -> tuple[FloatMatrix, FloatVector]:
    """Two classes of which few samples are support vectors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    X[:, 0] += y
    return X, y


@pytest.mark.parametrize(
    "n",
    [
        TUNING.max_samples,
        TUNING.max_samples + 1,
        TUNING.max_kept_samples,
        TUNING.max_kept_samples + 1,
        TUNING.max_compiled_rounds,
        TUNING.max_compiled_rounds + 1,
    ],
)
def test_easy_problems_need_few_rows_on_either_side_of_a_limit(n: int) -> None:
    X, y = far_apart(n)
    gram = VectorGram(RBF(0.1), as_rows(X))

    solution = solve(c_svc(y, np.ones(n)), gram, Options())

    assert solution.status is Status.CONVERGED
    assert solution.cache_misses < 0.8 * n  # rows of K, of the square included
    assert solution.n_iter < n


@pytest.mark.parametrize("machine", [SVC(kernel="poly"), SVC(), NuSVC(nu=0.3)], ids=str)
def test_pairs_of_many_classes_are_not_solved_one_by_one(
    machine: SVC | NuSVC, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pair was solved by itself")

    monkeypatch.setattr(maxmargin.models.machine, "solve", refuse)
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(26), 12)
    X = rng.normal(size=(26, 16))[y] + 0.5 * rng.normal(size=(len(y), 16))

    fitted = machine.fit(X, y)

    assert fitted.status_ is Status.CONVERGED
    assert fitted.score(X, y) > 0.9


def test_wide_sparse_rows_meet_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = []
    dots = SparseRows.dots

    def count(
        rows: SparseRows, other: SparseRows, out: FloatMatrix | None = None
    ) -> FloatMatrix:
        values.append(len(rows) * len(other))
        return dots(rows, other, out)

    monkeypatch.setattr(SparseRows, "dots", count)
    n = 800
    X = sp.random(n, 20_000, density=0.004, random_state=0, format="csr")
    y = np.random.default_rng(2).integers(0, 2, n)

    fitted = SVC(gamma=0.1).fit(X, y)

    assert fitted.status_ is Status.CONVERGED
    assert 0 < sum(values) <= n**2


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_hinge_loss_on_sparse_text_needs_few_sweeps(C: float) -> None:
    X = sp.random(4000, 20_000, density=0.004, random_state=0, format="csr")
    y = X @ np.random.default_rng(3).normal(size=20_000) > 0.0

    fitted = LinearSVC(loss="hinge", C=C).fit(X, y)

    assert fitted.status_ is Status.CONVERGED
    assert fitted.n_iter_ <= 30
