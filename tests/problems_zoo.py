"""Which small problems does every solver meet? All five machines, and their corners.

A new problem joins this list, not a file of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import naive
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.data.rows import as_rows
from maxmargin.kernels import (
    RBF,
    Gram,
    Laplacian,
    Linear,
    MatrixGram,
    Polynomial,
    RowsGram,
    Sigmoid,
    VectorGram,
)
from maxmargin.kernels.gram import gram_block
from maxmargin.problems import (
    DualProblem,
    c_svc,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
)

Floats = npt.NDArray[np.float64]

N = 24


class Case(NamedTuple):
    """A problem with its name and its Gram matrix."""

    name: str
    problem: DualProblem
    gram: Gram


def draw(n: int = N, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Rows, labels of two overlapping classes, and noisy targets."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, -1.0, 1.0)
    X = rng.normal(size=(n, 3)) + 0.5 * y[:, None]
    return X, y, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def gram_of(kernel: Any, X: Any) -> Gram:
    """The Gram matrix of vectors, dense or sparse."""
    return VectorGram(kernel, as_rows(X))


def some_weights(n: int = N) -> Floats:
    """Positive weights that differ by a factor of 30."""
    return np.random.default_rng(1).uniform(0.1, 3.0, size=n)


def ones(n: int = N, times: float = 1.0) -> Floats:
    """The same number n times."""
    return np.full(n, times)


X, Y, Z = draw()
RADIAL = gram_of(RBF(0.7), X)
STRAIGHT = gram_of(Linear(), X)
TWICE = gram_of(RBF(0.7), np.repeat(X[: N // 2], 2, axis=0))
TANH = gram_of(Sigmoid(0.8, -0.5), X)
APART = X + 6.0 * Y[:, None]
PAIR = gram_of(RBF(0.7), X[:2])
SPARSE = gram_of(Laplacian(0.4), sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)))
CALLED = RowsGram(lambda a, b: (1.0 + a @ b.T) ** 2, X, np.arange(N))


def three_groups() -> DualProblem:
    """What no machine has: three groups, kinks of all sizes, some variables fixed."""
    rng = np.random.default_rng(2)
    upper = rng.uniform(0.0, 2.0, size=N)
    upper[::7] = 0.0
    lower = -rng.uniform(0.0, 2.0, size=N)
    lower[::7] = 0.0
    return DualProblem(
        linear=rng.normal(size=N),
        kink=rng.choice([0.0, 0.1, 0.5], size=N),
        lower=lower,
        upper=upper,
        group=rng.permutation(np.arange(N) % 3),
        row=rng.permutation(N),
        start=0.3 * lower + 0.3 * upper,
    )


def classification() -> list[Case]:
    """C-SVC and nu-SVC."""
    rare = np.where(np.arange(N) < 6, 1.0, -1.0)
    return [
        Case("c_svc", c_svc(Y, ones()), RADIAL),
        Case("c_svc linear", c_svc(Y, ones(times=10.0)), STRAIGHT),
        Case("c_svc callable", c_svc(Y, ones()), CALLED),
        Case("c_svc sparse", c_svc(Y, ones()), SPARSE),
        Case("c_svc large C", c_svc(Y, ones(times=1e5)), RADIAL),
        Case("c_svc weights", c_svc(Y, some_weights()), RADIAL),
        Case("c_svc contradictions", c_svc(Y, ones(times=3.0)), TWICE),
        Case("c_svc nothing free", c_svc(Y, ones(times=1e-3)), RADIAL),
        Case("c_svc hard", c_svc(Y, ones(times=np.inf)), gram_of(RBF(0.1), APART)),
        Case("c_svc hard line", c_svc(Y, ones(times=np.inf)), gram_of(Linear(), APART)),
        Case("c_svc flat", c_svc(Y, some_weights()), MatrixGram(np.ones((N, N)))),
        Case("c_svc zero", c_svc(Y, some_weights()), MatrixGram(np.zeros((N, N)))),
        Case("c_svc two", c_svc(Y[:2], ones(2)), PAIR),
        Case("c_svc sigmoid", c_svc(Y, ones()), TANH),
        Case("c_svc free", c_svc(Y, ones(), has_intercept=False), RADIAL),
        Case("c_svc free line", c_svc(Y, ones(), has_intercept=False), STRAIGHT),
        Case("c_svc free twice", c_svc(Y, ones(), has_intercept=False), TWICE),
        Case("c_svc free sigmoid", c_svc(Y, ones(), has_intercept=False), TANH),
        Case("nu_svc", nu_svc(Y, ones(), 0.4), RADIAL),
        Case("nu_svc linear", nu_svc(Y, ones(), 0.7), STRAIGHT),
        Case("nu_svc largest", nu_svc(Y, ones(), 1.0), RADIAL),
        Case("nu_svc rare", nu_svc(rare, ones(), 0.45), RADIAL),
        Case("nu_svc weights", nu_svc(Y, some_weights(), 0.3), RADIAL),
        Case("nu_svc twice", nu_svc(Y, ones(), 0.6), TWICE),
        Case("nu_svc all free", nu_svc(Y, ones(), 0.5), mostly_diagonal()),
        Case("nu_svc two", nu_svc(Y[:2], ones(2), 0.5), PAIR),
        Case("nu_svc sigmoid", nu_svc(Y, ones(), 0.4), TANH),
    ]


def mostly_diagonal() -> MatrixGram:
    """Unlike rows, no two diagonal values equal: no variable has a reason to rest."""
    return MatrixGram(np.diag(np.linspace(1.0, 2.0, N)) + 0.01 * (X @ X.T))


def regression() -> list[Case]:
    """epsilon-SVR and nu-SVR."""
    bent = gram_of(Polynomial(0.5, 1.0, 3), X)
    return [
        Case("svr", epsilon_svr(Z, ones(), 0.1), RADIAL),
        Case("svr linear", epsilon_svr(Z, ones(times=10.0), 0.2), STRAIGHT),
        Case("svr polynomial", epsilon_svr(Z, ones(), 0.05), bent),
        Case("svr sparse", epsilon_svr(Z, ones(), 0.1), SPARSE),
        Case("svr no tube", epsilon_svr(Z, ones(), 0.0), RADIAL),
        Case("svr wide tube", epsilon_svr(Z, ones(), 10.0), RADIAL),
        Case("svr weights", epsilon_svr(Z, some_weights(), 0.1), RADIAL),
        Case("svr twice", epsilon_svr(Z, ones(), 0.1), TWICE),
        Case("svr hard", epsilon_svr(Z, ones(times=np.inf), 0.1), RADIAL),
        Case("svr flat", epsilon_svr(Z, ones(), 0.1), MatrixGram(np.ones((N, N)))),
        Case("svr two", epsilon_svr(Z[:2], ones(2), 0.1), PAIR),
        Case("svr sigmoid", epsilon_svr(Z, ones(), 0.1), TANH),
        Case("svr free", epsilon_svr(Z, ones(), 0.1, has_intercept=False), RADIAL),
        Case("svr free line", epsilon_svr(Z, ones(), 0.1, has_intercept=False), bent),
        Case("svr free twice", epsilon_svr(Z, ones(), 0.1, has_intercept=False), TWICE),
        Case("nu_svr", nu_svr(Z, ones(), 0.5), RADIAL),
        Case("nu_svr linear", nu_svr(Z, ones(times=10.0), 0.3), STRAIGHT),
        Case("nu_svr no tube", nu_svr(Z, ones(), 1.0), RADIAL),
        Case("nu_svr weights", nu_svr(Z, some_weights(), 0.4), RADIAL),
        Case("nu_svr twice", nu_svr(Z, ones(), 0.4), TWICE),
        Case("nu_svr two", nu_svr(Z[:2], ones(2), 0.5), PAIR),
        Case("nu_svr sigmoid", nu_svr(Z, ones(), 0.4), TANH),
    ]


def novelty() -> list[Case]:
    """One-class machines, and the problem that is nobody's."""
    return [
        Case("one_class", one_class(ones(), 0.3), RADIAL),
        Case("one_class linear", one_class(ones(), 0.3), STRAIGHT),
        Case("one_class everything", one_class(ones(), 1.0), RADIAL),
        Case("one_class little", one_class(ones(), 0.01), RADIAL),
        Case("one_class weights", one_class(some_weights(), 0.35), RADIAL),
        Case("one_class twice", one_class(ones(), 0.3), TWICE),
        Case("one_class two", one_class(ones(2), 0.5), PAIR),
        Case("one_class sigmoid", one_class(ones(), 0.3), TANH),
        Case("three groups", three_groups(), RADIAL),
    ]


CASES = classification() + regression() + novelty()
NAMES = [case.name for case in CASES]


def is_convex(case: Case) -> bool:
    """Whether every optimum has the same objective: not so for the sigmoid kernel."""
    return case.gram is not TANH


def matrix_of(gram: Gram) -> Floats:
    """All of K."""
    everything = np.arange(gram.n)
    return gram_block(gram, everything, everything)


def stated(problem: DualProblem, gram: Gram, beta: Floats, level: Any) -> naive.Solved:
    """Problem and answer in the words of the independent checker."""
    groups = range(problem.n_groups)
    K = matrix_of(gram)[np.ix_(problem.row, problem.row)]
    return naive.Solved(
        image=K @ beta,
        size=np.abs(K) @ np.abs(beta),
        linear=problem.linear,
        kink=problem.kink,
        lower=problem.lower,
        upper=problem.upper,
        group=problem.group,
        sums=tuple(float(problem.start[problem.group == g].sum()) for g in groups),
        beta=beta,
        levels=tuple(float(value) for value in level),
    )
