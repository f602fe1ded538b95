"""Where should a descent over very many samples begin? Where a sample of them ends.

A sixteenth of the samples, each counting sixteen times, has nearly the same optimum and
costs a sixteenth. Its machine, met with all samples, says of almost every one of them
at which bound its variable will be.
"""

import numpy as np

from maxmargin.problems.linear import LinearProblem
from maxmargin.solvers.smooth import Smooth
from maxmargin.typing import FloatVector

MANY = 40_000  # samples
SHARE = 16
WIDE = 100  # samples per column that the sample must have


def is_worth_sampling(problem: LinearProblem) -> bool:
    """Whether there are so many samples that a few say nearly as much."""
    n, d = problem.design.n, problem.design.n_columns
    return n >= max(MANY, SHARE * WIDE * d)


def sampled(problem: LinearProblem, seed: int) -> LinearProblem:
    """A random sixteenth of the samples at sixteen times their cost."""
    n = problem.design.n
    chosen = np.random.default_rng(seed).choice(n, n // SHARE, replace=False)
    chosen.sort()
    return problem._replace(
        design=problem.design.take(chosen),
        target=problem.target[chosen],
        cost=problem.cost[chosen] * (n / len(chosen)),
    )


def dual_guess(problem: LinearProblem, z: FloatVector, stiffness: float) -> FloatVector:
    """Variables at the bounds that z calls for, and between them near a corner."""
    middle = 0.5 * problem.target * problem.cost
    if problem.loss.is_regression:
        middle = np.zeros(len(z))  # its box has two sides
    guess, _ = Smooth(problem, middle, stiffness).dual_point(z)
    return guess
