"""How does LIBSVM's cross-validation judge many C and gamma? On one set of folds.

What `svm-train -v` predicts for every sample held out, but with kernel values computed
once for all folds, and for every C.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from maxmargin.data.labels import Labels, pairs_of
from maxmargin.data.rows import Rows, as_rows
from maxmargin.interop.c_rand import CRand
from maxmargin.interop.folds import Fold
from maxmargin.interop.libsvm_kernels import kernel_of, serial_numbers
from maxmargin.interop.libsvm_training import (
    CLASSIFIERS,
    DEFAULT_CACHE,
    Pace,
    class_weights,
    svm_folds,
    warn_of_unknown,
)
from maxmargin.interop.option_strings import KernelType, SvmOptions, SvmType
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.kernels import Kernel
from maxmargin.kernels.cache import default_cache_bytes
from maxmargin.kernels.gram import check_symmetric
from maxmargin.models.kernel_model import dense_columns
from maxmargin.problems.classification import check_nu
from maxmargin.selection.engine import Engine
from maxmargin.selection.formulations import (
    CSvc,
    EpsilonSvr,
    Formulation,
    NuSvc,
    NuSvr,
    Setting,
)
from maxmargin.selection.lines import Answer, FoldTask, Task
from maxmargin.solvers import Options
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

MOST_KEPT = 16  # kernels: LIBSVM's plan comes back to each of them
FORMULATIONS: dict[SvmType, Formulation] = {
    SvmType.C_SVC: CSvc(),
    SvmType.NU_SVC: NuSvc(),
    SvmType.EPSILON_SVR: EpsilonSvr(),
    SvmType.NU_SVR: NuSvr(),
}


def can_share(told: SvmOptions) -> bool:
    """Whether folds can share a kernel; for sigmoids each is cut into folds again."""
    return told.svm_type != SvmType.ONE_CLASS and not told.probability


class SvmGrid:
    """Cross-validation of one machine at many points."""

    def __init__(
        self, data: DataSet, told: SvmOptions, gammas: Sequence[float], pace: Pace
    ) -> None:
        self.y, self.told, self.gammas = data.y, told, list(gammas)
        self.folds = svm_folds(data, told, CRand())
        weight = np.ones(len(data.y)) if data.weight is None else data.weight
        weight = np.maximum(weight, 0.0)
        self.target: Labels | FloatVector = data.y.astype(np.float64)
        if told.svm_type in CLASSIFIERS:
            self.target = labels_as_met(data.y)
            if told.nr_weight:
                warn_of_unknown(self.target, told)
            if told.svm_type == SvmType.C_SVC:
                factors = class_weights(self.target, told)
                weight = weight * factors[self.target.code]
        self.weight = weight
        n_bytes = default_cache_bytes()
        if told.cache_size != DEFAULT_CACHE:
            n_bytes = int(told.cache_size * (1 << 20))
        options = Options(
            tol=float(told.eps),
            cache_bytes=n_bytes,
            time_limit=pace.time_limit,
            started=pace.started,
        )
        folds = [_closed(fold, weight) for fold in self.folds]
        if told.svm_type == SvmType.NU_SVC and isinstance(self.target, Labels):
            _check_folds(self.target, folds, float(told.nu))
        task = Task(self.target, folds, FORMULATIONS[SvmType(told.svm_type)])
        samples, kernels = self._kernels(data)
        self.engine = Engine(samples, kernels, task, options, pace.threads, MOST_KEPT)

    def _kernels(self, data: DataSet) -> tuple[Rows | FloatMatrix, list[Kernel | None]]:
        """What the engine computes K from, and how; K itself where that is given."""
        if self.told.kernel_type == KernelType.PRECOMPUTED:
            serial = serial_numbers(data.X, data.largest)
            K = dense_columns(data.X, serial + 1)
            check_symmetric(K)
            return K, [None]
        own = [replace(self.told, gamma=gamma) for gamma in self.gammas]
        return as_rows(data.X), [kernel_of(told, data.largest) for told in own]

    def predict(self, C: float, gamma: float) -> FloatVector:
        """What each sample is predicted to be by a machine that has not seen it."""
        is_given = self.told.kernel_type == KernelType.PRECOMPUTED
        kernel = 0 if is_given else self.gammas.index(gamma)
        setting = Setting(kernel, C, float(self.told.p), float(self.told.nu))
        answers = self.engine.solve([setting])[0]
        out = np.empty(len(self.y))
        for fold, answer in zip(self.folds, answers, strict=True):
            out[fold.outside] = self._read(answer, fold)
        return out

    def _read(self, answer: Answer, fold: Fold) -> FloatVector:
        if not isinstance(self.target, Labels):
            return answer.decisions[:, 0]
        inside = fold.inside[self.weight[fold.inside] > 0.0]
        order = _as_met(self.target.code[inside])
        won = _winners(answer, order)
        labels: FloatVector = self.target.classes[won]
        return labels


def _closed(fold: Fold, weight: FloatVector) -> FoldTask:
    own = np.zeros(len(weight))
    own[fold.inside] = weight[fold.inside]
    return FoldTask(own, fold.outside)


def _check_folds(labels: Labels, folds: list[FoldTask], nu: float) -> None:
    """Refuse a nu that some fold has no solution for, before anything is solved."""
    for fold in folds:
        present = np.unique(labels.code[fold.weight > 0.0]).tolist()
        for i, j in combinations(present, 2):
            rows = (labels.code == i) | (labels.code == j)
            sign = np.where(labels.code[rows] == i, 1.0, -1.0)
            names = f"classes {labels.classes[i]:g} and {labels.classes[j]:g} in a fold"
            check_nu(sign, fold.weight[rows], nu, names)


def _as_met(code: IntVector) -> IntVector:
    """Classes in the order in which a fold meets them: the first wins a tie."""
    found, first = np.unique(code, return_index=True)
    order: IntVector = found[np.argsort(first)]
    return order


def _winners(answer: Answer, order: IntVector) -> IntVector:
    n_classes = len(answer.present)
    votes = np.zeros((len(answer.decisions), int(answer.present.max()) + 1))
    for p, (a, b) in enumerate(pairs_of(n_classes)):
        i, j = answer.present[a], answer.present[b]
        votes[:, i] += answer.decisions[:, p] > 0.0
        votes[:, j] += answer.decisions[:, p] <= 0.0
    won: IntVector = order[votes[:, order].argmax(axis=1)]
    return won
