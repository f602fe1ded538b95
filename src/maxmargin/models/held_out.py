"""What does a machine say about samples it has not seen? Fits without a fold each.

A fold is left out by closing the boxes of its variables, so that all folds share the
rows of K with the full problem and begin at its solution; and the gradient at the end
holds the decision values of those left out: nothing is predicted. Small folds are
solved one after the other on rows in memory (`solvers.refits`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from maxmargin._threads import count_cores, run_all
from maxmargin.kernels.arena import ITEM_BYTES, Arena
from maxmargin.kernels.gram import (
    Gram,
    MatrixGram,
    VectorGram,
    gram_block,
    is_linear,
)
from maxmargin.models.expansion import KernelSum
from maxmargin.models.machine import Fit, Machine, fit_decision
from maxmargin.problems import DualProblem
from maxmargin.problems.dual import fill_in_order, slopes
from maxmargin.solvers import Options, Status
from maxmargin.solvers.gradient import weight_of
from maxmargin.solvers.pace import Pace
from maxmargin.solvers.refits import WarmRefitter
from maxmargin.typing import BoolVector, FloatVector, IntVector

N_FOLDS = 5  # as in LIBSVM
COARSER, COARSEST = 3.0, 1e-2  # tol of folds: a distribution of many is read off them

# From the weights of all samples. A problem that starts at zero only has its boxes from
# them: those of samples without weight are closed.
State = Callable[[FloatVector], DualProblem]


class HeldOut(NamedTuple):
    """What fits say about samples they have not seen, and how the worst one ended."""

    decisions: FloatVector
    status: Status


@dataclass(frozen=True)
class Solved:
    """A problem with its solution, and how to state and fit it with other weights."""

    state: State
    fit: Fit
    gram: Gram
    weight: FloatVector  # one per row of the Gram matrix
    machine: Machine
    options: Options


def shuffled_folds(n: int, random: np.random.RandomState) -> list[IntVector]:
    """Rows to hold out: a shuffled list, cut into parts that differ by one at most."""
    return [np.sort(part) for part in np.array_split(random.permutation(n), N_FOLDS)]


def stratified_folds(code: IntVector, random: np.random.RandomState) -> list[IntVector]:
    """Rows to hold out: those of each class are shuffled and dealt to all folds.

    The classes are dealt one after the other, so that folds differ by one at most.
    """
    order = random.permutation(len(code))
    dealt = order[np.argsort(code[order], kind="stable")]
    return [np.sort(dealt[k::N_FOLDS]) for k in range(N_FOLDS)]


def held_out_decisions(
    solved: Solved, folds: list[IntVector], n_threads: int = 1
) -> HeldOut:
    """The decision value of every sample, by the machine fitted without its fold.

    A sample in no fold keeps the value of the full machine.
    """
    folds = [fold for fold in folds if len(fold)]
    if not folds:
        return HeldOut(solved.machine.decisions, Status.CONVERGED)
    share = solved.options.cache_bytes // min(len(folds), count_cores())
    tol = solved.options.tol
    options = replace(
        solved.options,
        cache_bytes=share,
        callback=None,
        confirm=False,
        tol=max(tol, min(COARSER * tol, COARSEST)),
    )
    solved = replace(solved, options=options)
    problem, rows = solved.state(solved.weight), _quick_rows(solved)
    if rows is not None:
        parts = _decisions_of_small(solved, problem, rows, folds)
    else:
        solved = replace(solved, gram=_computed_once(solved))
        tasks = [partial(_decisions_of_fold, solved, fold) for fold in folds]
        parts = run_all(tasks, n_threads)
    decisions = solved.machine.decisions.copy()
    for fold, part in zip(folds, parts, strict=True):
        decisions[fold] = part.decisions
    return HeldOut(decisions, max((part.status for part in parts), key=_rank))


def _rank(status: Status) -> int:
    return status.rank


def held_out_margins(
    solved: Solved, y: FloatVector, folds: list[IntVector], n_threads: int = 1
) -> HeldOut:
    """The same for two classes, y = ±1, of which a fold may take all samples of one.

    Whoever has seen one class only says that class, with decision value ±1; whoever
    has seen nothing says 0.
    """
    side = np.where(solved.weight > 0.0, np.sign(y), 0.0).astype(np.intp)
    n_all, blind, seeing = np.bincount(side + 1, minlength=3), [], []
    for fold in folds:
        n_left = n_all - np.bincount(side[fold] + 1, minlength=3)
        if n_left[0] and n_left[2]:
            seeing.append(fold)
        else:
            blind.append((fold, float(n_left[2] > 0) - float(n_left[0] > 0)))
    found = held_out_decisions(solved, seeing, n_threads)
    for fold, value in blind:
        found.decisions[fold] = value
    return found


def _quick_rows(solved: Solved) -> Arena | None:
    """Rows of small folds, if there is memory to keep them, and float32 is enough."""
    gram = solved.gram
    if (
        solved.fit is not fit_decision
        or is_linear(gram)
        or gram.n > solved.options.tuning.max_compiled_rounds
    ):
        return None
    if 2 * ITEM_BYTES * gram.n**2 > solved.options.cache_bytes:
        return None
    rows = Arena(gram, 0, 1, solved.options.tuning.rows)
    beta = solved.machine.solution.beta
    is_small = gram.n < solved.options.tuning.min_decomposed
    if is_small and rows.costs.short_rows(rows.provider) is None:
        return None  # all of K costs less
    typical = float(np.median(rows.provider.errors)) * float(np.linalg.norm(beta))
    return rows if typical * gram.bound() <= solved.options.tol else None


def _computed_once(solved: Solved) -> Gram:
    """All of K, if every fold would compute it."""
    gram, most = solved.gram, solved.options.tuning.min_decomposed
    if gram.n >= most or is_linear(gram) or isinstance(gram, MatrixGram):
        return gram
    everything = np.arange(gram.n)
    return MatrixGram(gram_block(gram, everything, everything), gram.bound())


def _decisions_of_small(
    solved: Solved, problem: DualProblem, rows: Arena, folds: list[IntVector]
) -> list[HeldOut]:
    """Fold after fold on the same rows, which are much the same anyway."""
    beta, tuning = solved.machine.solution.beta, solved.options.tuning
    grad = solved.machine.image + problem.linear
    refits = WarmRefitter(problem, beta, grad, rows, tuning)
    try:
        return [_decisions_of_next(refits, solved, problem, fold) for fold in folds]
    finally:
        refits.release()


def _decisions_of_next(
    refits: WarmRefitter, solved: Solved, problem: DualProblem, fold: IntVector
) -> HeldOut:
    problem = _without(solved, problem, fold)
    found = refits.solve(problem, Pace(solved.options, len(problem.linear)))
    if found.status is None:
        return _decisions_of_fold(solved, fold)
    decisions = (found.grad - problem.linear)[fold]
    if len(found.levels):
        decisions -= found.levels[0]
    return HeldOut(decisions, found.status)


def _without(solved: Solved, problem: DualProblem, fold: IntVector) -> DualProblem:
    """The problem without a fold, variable by variable."""
    if problem.start.any():
        return _stated_without(solved, fold)
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[fold] = upper[fold] = 0.0
    return problem._replace(lower=lower, upper=upper)


def _stated_without(solved: Solved, fold: IntVector) -> DualProblem:
    weight = solved.weight.copy()
    weight[fold] = 0.0
    return solved.state(weight)


def _decisions_of_fold(solved: Solved, fold: IntVector) -> HeldOut:
    problem = _stated_without(solved, fold)
    if is_linear(solved.gram):
        return _decisions_by_weights(solved, problem, fold, solved.gram)
    start, image = _start(solved, problem, Arena(solved.gram, 0, 1))
    machine = solved.fit(problem, solved.gram, solved.options, start, image)
    return HeldOut(machine.decisions[fold], machine.solution.status)


def _start(
    solved: Solved, problem: DualProblem, rows: Arena
) -> tuple[FloatVector, FloatVector]:
    """The full solution without the fold, made feasible, and K times that."""
    before = solved.machine.solution.beta
    image = solved.machine.image.copy()
    beta = np.clip(before, problem.lower, problem.upper)
    _add_change(problem, rows, beta - before, image)
    repaired = _repaired(problem, beta, image[problem.row] + problem.linear)
    _add_change(problem, rows, repaired - beta, image)
    return repaired, image


def _add_change(
    problem: DualProblem, rows: Arena, change: FloatVector, image: FloatVector
) -> None:
    weight = weight_of(problem, change, len(image))
    changed = np.flatnonzero(weight)
    if len(changed):
        rows.add_rows(changed, weight[changed], image)


def _repaired(
    problem: DualProblem, beta: FloatVector, grad: FloatVector
) -> FloatVector:
    """Sums of groups restored by the variables that gain most, or lose least, by it."""
    beta = beta.copy()
    right, left = slopes(problem, beta, grad)
    for g in range(problem.n_groups):
        inside = np.flatnonzero(problem.group == g)
        missing = float(problem.start[inside].sum() - beta[inside].sum())
        if missing > 0.0:
            order = inside[np.argsort(right[inside], kind="stable")]
            beta[order] += fill_in_order(problem.upper[order] - beta[order], missing)
        else:
            order = inside[np.argsort(-left[inside], kind="stable")]
            beta[order] -= fill_in_order(beta[order] - problem.lower[order], -missing)
    return np.clip(beta, problem.lower, problem.upper)


def _decisions_by_weights(
    solved: Solved, problem: DualProblem, fold: IntVector, gram: VectorGram
) -> HeldOut:
    """With the linear kernel the samples left out are left out: w is short."""
    is_in = np.ones(gram.n, dtype=bool)
    is_in[fold] = False
    inside = np.flatnonzero(is_in)
    start = solved.machine.solution.beta[is_in[problem.row]]
    machine = solved.fit(
        _restricted(problem, is_in), gram.take(inside), solved.options, start, None
    )
    support = np.flatnonzero(machine.coef)
    part = (slice(0, len(support)), machine.coef[support][:, None])
    sums = KernelSum(gram.kernel, gram.rows.take(inside[support]))
    values: FloatVector = sums.of(gram.rows.take(fold), [part], 1)[0][:, 0]
    return HeldOut(values + machine.gram_intercept, machine.solution.status)


def _restricted(problem: DualProblem, is_in: BoolVector) -> DualProblem:
    """The same problem without the variables of rows that are left out."""
    kept = is_in[problem.row]
    place = np.cumsum(is_in) - 1
    parts: list[Any] = [part[kept] for part in problem]
    return DualProblem(*parts)._replace(row=place[problem.row[kept]])
