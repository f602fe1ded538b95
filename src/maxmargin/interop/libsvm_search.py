"""How does LIBSVM's cross-validation judge C and gamma? With K computed once.

All folds share it, and every C does; what they predict for samples held out is what
machines trained fold by fold do.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

import numpy as np

from maxmargin.data.labels import Labels
from maxmargin.data.rows import Rows
from maxmargin.data.weights import counted_samples
from maxmargin.interop.folds import Fold
from maxmargin.interop.libsvm_kernels import kernel_of, serial_numbers
from maxmargin.interop.libsvm_training import (
    CLASSIFIERS,
    MACHINES,
    Facts,
    Pace,
    are_equal,
    class_weights,
    lines_about,
    solver_options,
)
from maxmargin.interop.option_strings import KernelType, SvmOptions, SvmType
from maxmargin.interop.samples import DataSet, labels_as_met
from maxmargin.kernels import Kernel
from maxmargin.kernels.gram import check_symmetric
from maxmargin.models.fit_kernel import sample_rows
from maxmargin.models.kernel_model import dense_columns
from maxmargin.models.multiclass import vote
from maxmargin.problems.classification import check_nu
from maxmargin.selection.engine import Engine, worth_sharing
from maxmargin.selection.formulations import (
    CSvc,
    EpsilonSvr,
    Formulation,
    NuSvc,
    NuSvr,
    Setting,
)
from maxmargin.selection.lines import Answer, FoldEvidence
from maxmargin.selection.plan import FoldTask, Task
from maxmargin.solvers.gradient import check_finite
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
    """Cross-validation of one machine at many points, or at one."""

    def __init__(
        self,
        data: DataSet,
        told: SvmOptions,
        gammas: Sequence[float],
        pace: Pace,
        folds: list[Fold],
        n_kept: int = MOST_KEPT,
    ) -> None:
        """`n_kept` kernels stay in memory; 0: there is one point only."""
        self.y, self.told, self.gammas = data.y, told, list(gammas)
        self.folds, self.pace, self.n_kept = folds, pace, n_kept
        weight = np.ones(len(data.y)) if data.weight is None else data.weight
        weight = np.maximum(weight, 0.0)
        self.target: Labels | FloatVector = data.y.astype(np.float64)
        self.per_class = np.ones(1)
        if told.svm_type in CLASSIFIERS:
            self.target = labels_as_met(data.y)
            self.per_class = class_weights(self.target, told)
            if told.svm_type == SvmType.C_SVC:
                weight = weight * self.per_class[self.target.code]
        self.weight = weight
        self.options = solver_options(told, pace)
        closed = [_closed(fold, weight) for fold in folds]
        formulation = FORMULATIONS[SvmType(told.svm_type)]
        self.task = Task(self.target, closed, formulation)
        self.samples, self.kernels = self._kernels(data)

    def _kernels(self, data: DataSet) -> tuple[Rows | FloatMatrix, list[Kernel | None]]:
        """What the engine computes K from, and how; K itself where that is given."""
        if self.told.kernel_type == KernelType.PRECOMPUTED:
            serial = serial_numbers(data.X, data.largest)
            K = dense_columns(data.X, serial + 1)
            check_symmetric(K)
            return K, [None]
        own = [replace(self.told, gamma=gamma) for gamma in self.gammas]
        return sample_rows(data.X), [kernel_of(told, data.largest) for told in own]

    def pays_once(self) -> bool:
        """Whether a single point is cheaper so than by training every fold."""
        return worth_sharing(self.samples, self.task, self.options)

    @cached_property
    def engine(self) -> Engine:
        if self.told.svm_type == SvmType.NU_SVC and isinstance(self.target, Labels):
            _check_folds(self.target, self.task.folds, float(self.told.nu))
        how = self.options, self.pace.threads, self.n_kept
        return Engine(self.samples, self.kernels, self.task, *how)

    def _setting(self, C: float, gamma: float) -> Setting:
        is_given = self.told.kernel_type == KernelType.PRECOMPUTED
        kernel = 0 if is_given else self.gammas.index(gamma)
        return Setting(kernel, float(C), float(self.told.p), float(self.told.nu))

    def predict(self, C: float, gamma: float) -> FloatVector:
        """What each sample is predicted to be by a machine that has not seen it."""
        answers = self.engine.solve([self._setting(C, gamma)])[0]
        out = np.empty(len(self.y))
        for fold, answer in zip(self.folds, answers, strict=True):
            out[fold.outside] = self._read(answer, self._order(fold))
        return out

    def report(self, C: float, gamma: float) -> list[tuple[FloatVector, str]]:
        """What each fold predicts, and LIBSVM's lines about its machines.

        Only where it pays: slopes are read that are known with K in memory.
        """
        setting = self._setting(C, gamma)
        answers = self.engine.solve([setting])[0]
        orders = [self._order(fold) for fold in self.folds]
        evidence = self.engine.evidence(setting, orders)
        return [
            (self._read(answer, order), self._lines(found, order))
            for answer, found, order in zip(answers, evidence, orders, strict=True)
        ]

    def _order(self, fold: Fold) -> IntVector:
        """Classes in the order in which a fold meets them: the first wins a tie."""
        if not isinstance(self.target, Labels):
            return np.empty(0, dtype=np.intp)
        inside = fold.inside[self.weight[fold.inside] > 0.0]
        code = {label: k for k, label in enumerate(self.target.classes.tolist())}
        met = labels_as_met(self.y[inside]).classes.tolist()
        return np.array([code[label] for label in met])

    def _read(self, answer: Answer, order: IntVector) -> FloatVector:
        check_finite(answer.decisions)
        if not isinstance(self.target, Labels):
            return answer.decisions[:, 0]
        won = order[vote(answer.decisions_by(order), len(order))]
        return np.asarray(self.target.classes[won], dtype=np.float64)

    def _lines(self, found: FoldEvidence, order: IntVector) -> str:
        is_even, n_classes = True, None
        if isinstance(self.target, Labels):
            is_even, n_classes = are_equal(self.per_class[order]), len(order)
        facts = Facts(MACHINES[SvmType(self.told.svm_type)], is_even)
        return lines_about(facts, found.machines, found.n_vectors, n_classes)


def _closed(fold: Fold, weight: FloatVector) -> FoldTask:
    counted_samples(weight[fold.inside])  # or there is nothing to learn from
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
