"""How do searches over kernel machines begin? With samples, kernels and folds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from maxmargin.data.labels import Labels, encode_labels
from maxmargin.errors import InvalidInput
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.kernel_inputs import (
    check_kernel_set,
    resolve_gamma,
    resolve_kernel,
)
from maxmargin.estimators.search_run import Axes, Prepared
from maxmargin.estimators.selection_base import BaseSelection, spread, spread_evenly
from maxmargin.estimators.study import (
    How,
    KernelStudy,
    Score,
    Scoring,
    Sheet,
    check_scorer,
)
from maxmargin.kernels import Kernel
from maxmargin.kernels.functions import KERNELS
from maxmargin.kernels.gram import (
    check_symmetric,
    count_samples,
    gram_block,
    gram_of_function,
)
from maxmargin.problems.classification import largest_nu
from maxmargin.selection.engine import VALUE_BYTES
from maxmargin.selection.folds import Fold
from maxmargin.selection.formulations import Formulation, Setting
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

C_ENDS = -5.0, 15.0  # exponents of two, LIBSVM's
GAMMA_ENDS = -6.0, 6.0  # likewise, around gamma="scale"
NU_ENDS = 0.1, 0.9  # of the largest nu that has a solution


class KernelSelection(BaseSelection):
    """Searches over kernel machines; subclasses say what a fold minimises."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _formulation(self) -> Formulation:
        raise NotImplementedError

    @property
    def _has_gamma(self) -> bool:
        if callable(self.kernel) or self.kernel == "precomputed":
            return False
        return "gamma" in KERNELS[self.kernel]._fields

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        scorer = check_scorer(self, self.scoring)
        training = check_kernel_set(self, X, y, sample_weight)
        most_nu = self._most_nu(self._check_targets(y, training))
        y = column_or_1d(y)
        is_classifier = isinstance(self, ClassifierMixin)
        target = encode_labels(y) if is_classifier else y.astype(np.float64)
        weight = np.zeros(len(y))
        weight[training.kept] = training.weight
        axes, folds = self._axes(training, y, most_nu), self._folds(y)
        options = self._machine({})._options(training)
        K = self._matrix(training, options.cache_bytes)
        gammas = axes.get("gamma", [None])
        is_single = all(len(values) == 1 for values in axes.values())
        how = How(self._formulation(), self._n_threads(), is_single)

        def kernel_of(gamma: Any) -> Kernel | None:
            words = {} if gamma is None else {"gamma": gamma}
            return resolve_kernel(self._machine(words), training)

        def study(rows: IntVector, folds: list[Fold]) -> _Study:
            sheet = Sheet(
                training.X if K is None else K,
                target,
                y,
                weight,
                getattr(self, "class_weight", None),
                is_matrix=K is not None,
            ).take(rows)
            heeded = None if sample_weight is None else sheet.weight
            seen = _safe_indexing(training.X, rows)
            scoring = Scoring(self, scorer, seen, sheet.y, heeded)
            kernels = [kernel_of(gamma) for gamma in gammas]
            made = _Study(sheet, folds, kernels, options, scoring, how)
            made.gammas, made.kernel_of, made.most_nu = [*gammas], kernel_of, most_nu
            return made

        n_classes = target.n_classes if isinstance(target, Labels) else 1
        return Prepared(X, len(y), axes, folds, n_classes, study)

    def _matrix(self, training: TrainingSet, n_bytes: int) -> FloatMatrix | None:
        """K where it is given, as a matrix or by a function that is asked once."""
        if self.kernel == "precomputed":
            check_symmetric(training.X)
            return training.X
        if not callable(self.kernel):
            return None
        n = count_samples(training.X)
        if VALUE_BYTES * n * n > n_bytes:
            raise InvalidInput(
                "A search keeps all values of a kernel given as a function: "
                f"{VALUE_BYTES * n * n / 2**20:.0f} MB for {n} samples, but cache_size "
                f"allows {n_bytes / 2**20:.0f} MB. Raise cache_size, or use fewer "
                "samples."
            )
        everybody = np.arange(n)
        K = gram_block(
            gram_of_function(self.kernel, training.X, everybody), everybody, everybody
        )
        check_symmetric(K)
        return K

    def _axes(self, training: TrainingSet, y: np.ndarray, most_nu: float) -> Axes:
        """Values to try, in the order of the parameters' names."""
        axes = self._axes_of_cost(y, C_ENDS)
        if self._has_gamma:
            unit = 1.0
            if isinstance(self.gammas, int | np.integer):
                unit = resolve_gamma(self._machine({"gamma": "scale"}), training)
            axes["gamma"] = spread(self.gammas, GAMMA_ENDS, unit)
            if self.search == "optuna":  # a word has no place between others
                machines = [self._machine({"gamma": g}) for g in axes["gamma"]]
                axes["gamma"] = [resolve_gamma(each, training) for each in machines]
        if hasattr(self, "nus"):
            low, high = NU_ENDS
            axes["nu"] = spread_evenly(self.nus, (low * most_nu, high * most_nu))
        return axes

    def _most_nu(self, targets: Any) -> float:
        """The largest nu with a solution for all samples; 1 where any has one."""
        return 1.0


def most_nu_of_pairs(labels: Labels, weight: FloatVector) -> float:
    """The largest nu that every pair of classes has a solution for."""
    limits = []
    for i, j in labels.pairs():
        rows = (labels.code == i) | (labels.code == j)
        sign = np.where(labels.code[rows] == i, 1.0, -1.0)
        limits.append(largest_nu(sign, weight[rows]))
    return min(limits)


class _Study(KernelStudy):
    """Cells in the words of an estimator."""

    gammas: list[Any]
    kernel_of: Callable[[Any], Kernel | None]
    most_nu: float

    def cell(self, params: dict[str, Any]) -> Setting:
        """Where the engine finds a point."""
        gamma = params.get("gamma")
        if gamma not in self.gammas:
            self.gammas.append(gamma)
            self.engine.kernels.append(self.kernel_of(gamma))
        known = {name: params[name] for name in params if name != "gamma"}
        return Setting(self.gammas.index(gamma), **known)

    def solve(self, batch: Sequence[Setting]) -> list[Score]:
        """What could not be fitted to all samples has no score either."""
        possible = [cell for cell in batch if cell.nu <= self.most_nu]
        found = super().solve(possible) if possible else []
        scores = dict(zip(possible, found, strict=True))
        refused = Score(np.full(len(self.folds), np.nan), 0.0, 0.0, True)
        return [scores.get(cell, refused) for cell in batch]
