"""Which C, and which epsilon? LIBLINEAR's -C: cross-validation along a path of C.

C doubles, and each fold keeps its weights from one C to the next; the path ends when no
fold has moved for five values of C. (Chu, Ho, Tsai, Lin & Lin, KDD 2015.)
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._threads import run_all
from maxmargin.interop.c_rand import PROCESS, CRand
from maxmargin.interop.folds import Fold
from maxmargin.interop.liblinear_steps import Steps
from maxmargin.interop.liblinear_training import linear_folds, spec_of, training_of
from maxmargin.interop.libsvm_training import Pace, Say, complain, quiet
from maxmargin.interop.option_strings import LinearOptions, SolverType
from maxmargin.interop.samples import DataSet
from maxmargin.models.fit_linear import fit_linear_model
from maxmargin.models.linear import weights_of
from maxmargin.solvers import Options
from maxmargin.typing import FloatMatrix, FloatVector

Start = FloatMatrix | None  # a row per hyperplane

RATIO = 2.0
LAST_C = 1024.0
LAST_C_SVR = 2.0**20
SETTLED = 5  # values of C without a move
UNMOVED = 1e-15
N_TUBES = 20  # from (nearly) the largest target down to zero
STOPPED = (
    "WARNING: Stopped at time_limit: the search had tried {} settings, and later ones "
    "may be better."
)
FIRST_SHARE = 0.1  # of the way that a first regression may go


class Best(NamedTuple):
    """What was found; p is -1 where none was looked for."""

    C: float
    p: float
    score: float  # share of correct ones, or mean squared error
    n_tried: int = 0  # settings that were cross-validated to the end
    is_complete: bool = True  # False: the time limit ended the search

    def plain(self) -> tuple[float, float, float]:
        """C, p and the score, as the package returns them."""
        return self.C, self.p, self.score

    @property
    def line(self) -> str:
        """What LIBLINEAR prints."""
        if self.p < 0.0:
            return f"Best C = {self.C:g}  CV accuracy = {100.0 * self.score:g}%"
        return f"Best C = {self.C:g} Best p = {self.p:g}  CV MSE = {self.score:g}"


def find_parameters(
    data: DataSet,
    told: LinearOptions,
    say: Say = quiet,
    pace: Pace | None = None,
    random: CRand = PROCESS,
) -> Best:
    """The best C (and p) of the path, the smallest C among equals."""
    pace = pace or Pace()
    folds = linear_folds(data, told, random)
    first = float(told.C) if told.flag_C_specified else -1.0
    if told.solver_type == SolverType.L2R_L2LOSS_SVR:
        best = _search_tubes(_Path(data, told, folds, pace, LAST_C_SVR), first, say)
    else:
        best = _walk(_Path(data, told, folds, pace, LAST_C), first, say)
    if not best.is_complete:
        complain(STOPPED.format(best.n_tried))
    return best


class _Path(NamedTuple):
    data: DataSet
    told: LinearOptions
    folds: list[Fold]
    pace: Pace
    last: float

    @property
    def is_regression(self) -> bool:
        return self.told.solver_type == SolverType.L2R_L2LOSS_SVR


def _search_tubes(path: "_Path", first: float, say: Say) -> Best:
    """The best C for every p, and the best of these."""
    best = Best(-1.0, -1.0, math.inf)
    n_tried = 0
    for p in _tubes(path.data.y, path.told):
        found = _walk(path._replace(told=replace(path.told, p=p)), first, say)
        n_tried += found.n_tried
        if found.score < best.score:
            best = found._replace(p=p)
        if not found.is_complete or path.pace.is_over():
            return best._replace(n_tried=n_tried, is_complete=False)
    return best._replace(n_tried=n_tried)


def _tubes(y: FloatVector, told: LinearOptions) -> Iterator[float]:
    largest = float(np.abs(y).max())
    step = N_TUBES - 1
    if told.flag_p_specified and told.p > 0.0 and largest > 0.0:
        step = min(int(told.p / (largest / N_TUBES)), step)
    for i in range(step, -1, -1):
        yield i * largest / N_TUBES


def _walk(path: _Path, first: float, say: Say) -> Best:
    C = min(first if first > 0.0 else first_C(path.data, path.told), path.last)
    best = Best(C, -1.0, math.inf if path.is_regression else 0.0)
    starts: list[Start] = [None] * len(path.folds)
    n_settled = n_tried = 0
    while path.last >= C:
        tasks = [
            partial(_step, path, C, fold, start)
            for fold, start in zip(path.folds, starts, strict=True)
        ]
        steps = run_all(tasks, path.pace.threads)
        rate = _rate(path, steps)
        if path.pace.is_over():
            best = best if n_tried else best._replace(score=rate)
            return best._replace(n_tried=n_tried, is_complete=False)
        n_tried += 1
        is_better = rate < best.score if path.is_regression else rate > best.score
        best = Best(C, -1.0, rate) if is_better else best
        say(_line(path, C, rate))
        if n_settled >= 0 and any(map(_has_moved, starts, [s.weights for s in steps])):
            n_settled = -1
        starts = [step.weights for step in steps]
        n_settled += 1
        if n_settled == SETTLED:
            return best._replace(n_tried=n_tried)
        C *= RATIO
    say("WARNING: maximum C reached.\n")
    return best._replace(n_tried=n_tried)


class _Step(NamedTuple):
    weights: Start
    predicted: FloatVector


def _step(path: _Path, C: float, fold: Fold, start: Start) -> _Step:
    told = replace(path.told, C=C)
    training = training_of(path.data.take(fold.inside), told)
    options = Options(time_limit=path.pace.time_limit, started=path.pace.started)
    steps = Steps(told, options, CRand(), start)
    model, found = fit_linear_model(spec_of(told), training, options, 1, steps.solve)
    predicted = model.predict(path.data.X[fold.outside])
    weights = np.stack([weights_of(each.solution) for each in found])
    return _Step(weights, np.asarray(predicted, dtype=np.float64))


def _has_moved(before: Start, after: Start) -> bool:
    if before is None or after is None:
        return False
    return float(np.linalg.norm(after - before)) > UNMOVED


def _rate(path: _Path, steps: list[_Step]) -> float:
    predicted, y = np.empty(len(path.data.y)), path.data.y
    for fold, step in zip(path.folds, steps, strict=True):
        predicted[fold.outside] = step.predicted
    if path.is_regression:
        return float(np.mean((predicted - y) ** 2))
    return float(np.mean(predicted == y))


def _line(path: _Path, C: float, rate: float) -> str:
    log2c = math.log2(C)
    if path.is_regression:
        return (
            f"log2c={log2c:7.2f}\tp={path.told.p:7.2f}\tMean squared error={rate:g}\n"
        )
    return f"log2c={log2c:7.2f}\trate={100.0 * rate:g}\n"


def first_C(data: DataSet, told: LinearOptions) -> float:
    """A power of two at which the weights are still nearly zero."""
    X, n = data.X, len(data.y)
    squares = X.multiply(X) if sp.issparse(X) else X * X
    longest = float(squares.sum(axis=1).max()) + max(float(told.bias), 0.0) ** 2
    if longest == 0.0:
        return 1.0
    if told.solver_type == SolverType.L2R_L2LOSS_SVR:
        sizes = np.abs(data.y)
        loss = float(np.square(np.maximum(sizes - told.p, 0.0)).sum())
        if loss == 0.0:
            return math.inf
        lowest = FIRST_SHARE**2 * loss / (8.0 * float(sizes.sum()) ** 2 * longest)
    else:
        curvature = 1.0 if told.solver_type == SolverType.L2R_LR else 2.0
        lowest = 1.0 / (curvature * n * longest)
    return float(2.0 ** math.floor(math.log(lowest) / math.log(2.0)))
