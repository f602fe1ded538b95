"""What do LIBSVM and LIBLINEAR answer for samples? Labels and lists of values."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._threads import count_cores
from maxmargin.errors import InvalidInput
from maxmargin.interop.evaluation import classification_line, regression_lines, score
from maxmargin.interop.libsvm_kernels import kernel_columns
from maxmargin.interop.libsvm_training import Say
from maxmargin.interop.samples import Samples, aligned
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import LinearModel
from maxmargin.typing import FloatMatrix, FloatVector

Judged = tuple[list[float], tuple[float, float, float], list[list[float]]]


class Answers(NamedTuple):
    """One label a sample, and one row of decision values or probabilities."""

    labels: FloatVector
    values: FloatMatrix

    def judged(self, true: FloatVector, say: Say, *, is_regression: bool) -> Judged:
        """As svm_predict returns them, with scores, which are told first.

        Without true labels all of them are taken to be 0, as in LIBSVM.
        """
        n = len(self.labels)
        scores = score(true if len(true) else np.zeros(n), self.labels)
        if is_regression:
            for line in regression_lines(scores):
                say(line)
        else:
            say(classification_line(scores, n))
        return self.labels.tolist(), scores.plain(), self.values.tolist()


def answers_of_svm(
    model: KernelModel,
    samples: Samples,
    *,
    has_probabilities: bool = False,
    n_threads: int | None = None,
) -> Answers:
    """As LIBSVM: with probabilities, the most probable class is the answer."""
    threads = count_cores() if n_threads is None else n_threads
    if model.kernel is None:
        X = kernel_columns(samples.X)
    else:
        X = aligned(samples, model.index_base, model.support.shape[1])
    decisions = model.decisions(X, threads)
    labels = np.asarray(model.read(decisions), dtype=np.float64)
    if not has_probabilities:
        if model.n_classes == 1:
            decisions = np.ones((len(labels), 1))
        return Answers(labels, decisions)
    if not model.has_probabilities:
        raise InvalidInput(
            "Model does not support probabiliy estimates: it was trained without -b 1."
        )
    if model.is_regressor:
        return Answers(labels, np.empty((len(labels), 0)))
    chances = model.read_probabilities(decisions)
    if model.is_classifier:
        labels = model.classes[chances.argmax(axis=1)].astype(np.float64)
    return Answers(labels, chances)


def answers_of_linear(
    model: LinearModel,
    samples: Samples,
    *,
    has_probabilities: bool = False,
    n_threads: int | None = None,
) -> Answers:
    """As LIBLINEAR: probabilities are for logistic regression."""
    threads = count_cores() if n_threads is None else n_threads
    X: Any = samples.X if samples.first == 1 else samples.X[:, 1:]
    decisions = model.decisions(X, threads)
    labels = np.asarray(model.read(decisions), dtype=np.float64)
    if not has_probabilities:
        return Answers(labels, decisions)
    if not model.is_logistic:
        raise TypeError("probability output is only supported for logistic regression")
    return Answers(labels, model.read_probabilities(decisions))
