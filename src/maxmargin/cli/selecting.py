"""Which C and gamma, where nobody wants to choose? A modest search.

A coarse grid by cross-validation, on at most 2,000 samples, then a finer one around its
best point. Of equals, the point nearest the usual first guess is taken: an edge of the
plateau would be a worse bet. For regressions C and epsilon are in units of the targets'
deviation.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from maxmargin import _clock
from maxmargin._threads import run_all
from maxmargin.data.labels import Labels
from maxmargin.interop.c_rand import CRand
from maxmargin.interop.folds import Fold, plain_folds, stratified_folds
from maxmargin.kernels.functions import RBF
from maxmargin.models.fit_kernel import KernelSet, KernelSpec, fit_kernel_model
from maxmargin.models.fit_linear import LinearSet, LinearSpec, fit_linear_model
from maxmargin.models.kernel_model import KernelModel, MachineWord
from maxmargin.models.linear_model import LinearModel
from maxmargin.solvers import Options, Solution
from maxmargin.typing import FloatVector, IntVector

MOST_SEARCHED = 2000  # samples; more hardly change which point is best
RBF_C = (-1.0, 2.0, 5.0, 8.0)  # exponents of two
RBF_GAMMA = (-4.0, -2.0, 0.0, 2.0)  # likewise, from the default gamma on
LINEAR_C = (-8.0, -5.0, -2.0, 1.0, 4.0)
FIRST_C = 4.0  # the first guess, in units of the targets' deviation
FINER = 1.5  # half a step of the coarse grid
TUBE = 0.1  # epsilon, in deviations of the targets
LINEAR_TOL = 1e-4


class Samples(NamedTuple):
    """Scaled samples, and classes or numbers."""

    X: Any  # dense or canonical CSR
    target: Labels | FloatVector

    def take(self, rows: IntVector) -> "Samples":
        """These rows alone; classes that none of them has are still known."""
        if isinstance(self.target, Labels):
            labels = Labels(self.target.classes, self.target.code[rows])
            return Samples(self.X[rows], labels)
        return Samples(self.X[rows], self.target[rows])

    @property
    def n(self) -> int:
        return int(self.X.shape[0])


class Setting(NamedTuple):
    """One machine to try."""

    kernel: str  # "rbf" or "linear"
    C: float
    gamma: float | None
    epsilon: float


class Tried(NamedTuple):
    """A setting, and its share of errors or mean squared error."""

    setting: Setting
    loss: float


class Fitted(NamedTuple):
    """A model, and what its problems' solutions say about themselves."""

    model: KernelModel | LinearModel
    solutions: list[Solution]


def fit(samples: Samples, setting: Setting, options: Options, cores: int) -> Fitted:
    """Train one machine; classes without samples are left out."""
    target, weight = _present(samples.target), np.ones(samples.n)
    is_classifier = isinstance(target, Labels)
    if setting.kernel == "linear":
        solver = "L2R_L2LOSS_SVC" if is_classifier else "L2R_L2LOSS_SVR"
        spec = LinearSpec(solver, setting.C, setting.epsilon, 0.5, 1.0, True)
        training = LinearSet(samples.X, target, weight)
        linear, evidence = fit_linear_model(spec, training, options, cores)
        return Fitted(linear, [found.solution for found in evidence])
    assert setting.gamma is not None, "an RBF kernel has a gamma"
    machine: MachineWord = "c_svc" if is_classifier else "epsilon_svr"
    kernel_spec = KernelSpec(
        machine, RBF(setting.gamma), setting.C, 0.5, setting.epsilon
    )
    kernel_set = KernelSet(samples.X, target, weight)
    model, found = fit_kernel_model(kernel_spec, kernel_set, options, cores)
    return Fitted(model, [each.machine.solution for each in found])


def _present(target: Labels | FloatVector) -> Labels | FloatVector:
    if not isinstance(target, Labels):
        return target
    found, code = np.unique(target.code, return_inverse=True)
    return Labels(target.classes[found], code.reshape(-1).astype(np.intp))


class Search:
    """Cross-validation of settings on fixed folds, until time is up."""

    def __init__(self, samples: Samples, kernel: str, n_folds: int) -> None:
        self.samples = _fewer(samples)
        self.kernel = kernel
        self.folds = _folds(self.samples, n_folds)
        self.unit, self.epsilon = scale_of(self.samples.target)
        self.gamma = default_gamma(self.samples.X)
        self.tried: dict[Setting, Tried] = {}
        self.n_planned = 0

    def run(
        self,
        fixed: tuple[float | None, float | None],
        cores: int,
        until: float,
        show: Callable[[str], None],
    ) -> Tried | None:
        """The best setting; a given C or gamma is kept. None: no time for any.

        The first guess comes first, so that a search cut short ends near it.
        """
        coarse = sorted(self._coarse(*fixed), key=self._steps)
        for setting in coarse:
            self._try(setting, cores, until, show)
        best = self._best()
        finer = list(self._finer(coarse[0] if best is None else best.setting, *fixed))
        for setting in finer:
            self._try(setting, cores, until, show)
        self.n_planned = len({*coarse, *finer})
        return self._best()

    def _best(self) -> Tried | None:
        return min(self.tried.values(), key=self._order, default=None)

    def _order(self, tried: Tried) -> tuple[float, float]:
        """Smaller is better: the loss, then the distance from the first guess."""
        return tried.loss, self._steps(tried.setting)

    def _steps(self, setting: Setting) -> float:
        """The distance from the first guess, in powers of two."""
        steps = abs(math.log2(setting.C / (self.unit * FIRST_C)))
        if setting.gamma is not None:
            steps += abs(math.log2(setting.gamma / self.gamma))
        return steps

    def _try(
        self, setting: Setting, cores: int, until: float, show: Callable[[str], None]
    ) -> None:
        if setting in self.tried or _clock.now() > until:
            return
        show(f"search: {describe(setting)}, {len(self.tried)} settings so far")
        tasks = [
            partial(_loss, self.samples, fold, setting, until) for fold in self.folds
        ]
        total = sum(run_all(tasks, cores))
        if _clock.now() > until and self.tried:
            return  # it may have been cut short
        self.tried[setting] = Tried(setting, total / self.samples.n)

    def _coarse(self, C: float | None, gamma: float | None) -> Iterator[Setting]:
        exponents = LINEAR_C if self.kernel == "linear" else RBF_C
        costs = [C] if C is not None else [self.unit * 2.0**e for e in exponents]
        gammas: list[float | None] = [None]
        if self.kernel == "rbf":
            grid = [self.gamma * 2.0**e for e in RBF_GAMMA]
            gammas = [*grid] if gamma is None else [gamma]
        for each in costs:
            for one in gammas:
                yield Setting(self.kernel, each, one, self.epsilon)

    def _finer(
        self, best: Setting, C: float | None, gamma: float | None
    ) -> Iterator[Setting]:
        costs = [best.C] if C is not None else _around(best.C, FINER)
        gammas: list[float | None] = [best.gamma]
        if best.gamma is not None and gamma is None:
            gammas = [*_around(best.gamma, 1.0)]
        for each in costs:
            for one in gammas:
                yield best._replace(C=each, gamma=one)


def _around(value: float, step: float) -> list[float]:
    return [value * 2.0**-step, value, value * 2.0**step]


def describe(setting: Setting) -> str:
    """C, and gamma where there is one."""
    gamma = "" if setting.gamma is None else f", gamma = {setting.gamma:.4g}"
    return f"C = {setting.C:.4g}{gamma}"


def default_gamma(X: Any) -> float:
    """1 / (features x variance of all values), the usual first guess."""
    if sparse.issparse(X):
        n = X.shape[0] * X.shape[1]
        mean = X.sum() / n
        variance = float(X.multiply(X).sum() / n - mean * mean)
    else:
        variance = float(X.var())
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def scale_of(target: Labels | FloatVector) -> tuple[float, float]:
    """The unit of C, and epsilon."""
    if isinstance(target, Labels):
        return 1.0, TUBE
    deviation = float(target.std()) or 1.0
    return deviation, TUBE * deviation


def _fewer(samples: Samples) -> Samples:
    """At most 2,000 samples, classes in proportion."""
    if samples.n <= MOST_SEARCHED:
        return samples
    n_parts = -(-samples.n // MOST_SEARCHED)
    rows = _folds(samples, n_parts)[0].outside
    return samples.take(np.sort(rows))


def _folds(samples: Samples, n_folds: int) -> list[Fold]:
    n_folds = min(n_folds, samples.n)
    if isinstance(samples.target, Labels):
        return stratified_folds(samples.target.code, n_folds, CRand())
    return plain_folds(samples.n, n_folds, CRand())


def _loss(samples: Samples, fold: Fold, setting: Setting, until: float) -> float:
    """Errors, or squared errors, on the samples held out, summed."""
    left = max(until - _clock.now(), 0.01)
    limit = left if np.isfinite(left) else None
    tol = LINEAR_TOL if setting.kernel == "linear" else 1e-3
    options = Options(tol=tol, time_limit=limit)
    model = fit(samples.take(fold.inside), setting, options, 1).model
    held_out = samples.take(fold.outside)
    predicted = model.predict(held_out.X)
    if isinstance(held_out.target, Labels):
        truth = held_out.target.classes[held_out.target.code]
        return float(np.count_nonzero(predicted != truth))
    return float(np.sum((predicted - held_out.target) ** 2))
