"""How does LIBSVM's cross-validation judge many C and gamma? On one set of folds.

What `svm-train -v` predicts for every sample held out, but with kernel values computed
once for all folds, and for every C.
"""

from collections.abc import Sequence

import numpy as np

from maxmargin.data.labels import Labels, pairs_of
from maxmargin.data.rows import as_rows
from maxmargin.interop.c_rand import CRand
from maxmargin.interop.folds import Fold
from maxmargin.interop.libsvm_kernels import kernel_of
from maxmargin.interop.libsvm_training import (
    DEFAULT_CACHE,
    Pace,
    class_weights,
    svm_folds,
    warn_of_unknown,
)
from maxmargin.interop.option_strings import KernelType, SvmOptions, SvmType
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.kernels.cache import default_cache_bytes
from maxmargin.selection.engine import Engine
from maxmargin.selection.formulations import Setting
from maxmargin.selection.lines import Answer, FoldTask, plain_task
from maxmargin.solvers import Options
from maxmargin.typing import FloatVector, IntVector

MOST_KEPT = 16  # kernels: LIBSVM's plan comes back to each of them


def can_share(told: SvmOptions) -> bool:
    """Whether folds can share a kernel; for sigmoids each is cut into folds again."""
    is_known = told.svm_type in (SvmType.C_SVC, SvmType.EPSILON_SVR)
    is_plain = is_known and not told.probability
    return is_plain and told.kernel_type != KernelType.PRECOMPUTED


class SvmGrid:
    """Cross-validation of one machine at many points."""

    def __init__(
        self, data: DataSet, told: SvmOptions, gammas: Sequence[float], pace: Pace
    ) -> None:
        self.y, self.told, self.gammas = data.y, told, list(gammas)
        self.folds = svm_folds(data, told, CRand())
        kernels = []
        for gamma in self.gammas:
            told.gamma = gamma
            kernels.append(kernel_of(told, data.largest))
        weight = np.ones(len(data.y)) if data.weight is None else data.weight
        weight = np.maximum(weight, 0.0)
        self.target: Labels | FloatVector = data.y.astype(np.float64)
        if told.svm_type == SvmType.C_SVC:
            self.target = labels_as_met(data.y)
            if told.nr_weight:
                warn_of_unknown(self.target, told)
            weight = weight * class_weights(self.target, told)[self.target.code]
        self.weight = weight
        folds = [_closed(fold, weight) for fold in self.folds]
        n_bytes = default_cache_bytes()
        if told.cache_size != DEFAULT_CACHE:
            n_bytes = int(told.cache_size * (1 << 20))
        options = Options(
            tol=float(told.eps),
            cache_bytes=n_bytes,
            time_limit=pace.time_limit,
            started=pace.started,
        )
        task = plain_task(self.target, folds)
        self.engine = Engine(
            as_rows(data.X), kernels, task, options, pace.threads, MOST_KEPT
        )

    def predict(self, C: float, gamma: float) -> FloatVector:
        """What each sample is predicted to be by a machine that has not seen it."""
        kernel = self.gammas.index(gamma)
        answers = self.engine.solve([Setting(kernel, C, float(self.told.p))])[0]
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
