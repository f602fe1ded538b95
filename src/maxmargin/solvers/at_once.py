"""How is a problem on K in memory solved without Python? In one call, if it is short.

A search solves thousands of these, each from where its neighbour ended. Most are done
after a few rounds; then what is around them would cost as much.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit_new
from maxmargin.kernels.held import Part
from maxmargin.problems.dual import DualProblem, group_levels, kkt_violation
from maxmargin.solvers.rounds import Limits, hold, make_crew, rounds_until
from maxmargin.solvers.work import gather_work
from maxmargin.typing import FloatVector, KernelMatrix


class Begun(NamedTuple):
    """Where the first rounds ended, and what float64 says about it."""

    is_finite: bool  # else nothing was done
    beta: FloatVector
    image: FloatVector  # K times it
    level: FloatVector
    violation: float
    n_moves: int
    n_members: int  # at the end


@jit_new
def begin(
    problem: DualProblem,
    image: FloatVector,
    diagonal: FloatVector,
    square: KernelMatrix,
    part: Part,
    singly: int | None,
    limits: Limits,
) -> Begun:
    """The first rounds of a problem of one group or none, with nothing around them.

    `image` is K times the start; `singly` and `limits` as in `rounds_until`.
    """
    n = len(problem.linear)
    grad, everybody = np.empty(n), np.empty(n, dtype=np.intp)
    for k in range(n):
        grad[k], everybody[k] = image[problem.row[k]] + problem.linear[k], k
    work = gather_work(problem, everybody, problem.start, grad, diagonal)
    crew, n_moves = make_crew(len(diagonal), square), 0
    is_finite = True
    for k in range(n):
        is_finite = is_finite and np.isfinite(grad[k])
    if is_finite:
        n_moves, _ = rounds_until(work, crew, hold(part), None, singly, limits)
    beta, grad = work.beta, work.grad
    after = np.zeros(len(diagonal))
    for k in range(n):
        after[problem.row[k]] = grad[k] - problem.linear[k]
    level = group_levels(problem, beta, grad)
    violation = kkt_violation(problem, beta, grad)
    return Begun(is_finite, beta, after, level, violation, n_moves, crew.n[0])
