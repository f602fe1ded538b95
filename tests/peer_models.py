"""What do LIBSVM and LIBLINEAR themselves say? Their C functions, called with care.

Their Python helpers give nu-SVC with more than two classes, and Crammer-Singer with
two, a buffer that is too small; here every buffer is large enough.
"""

from __future__ import annotations

from ctypes import c_double
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CRAMMER_SINGER = 4  # LIBLINEAR's -s


class Answers(NamedTuple):
    """Of every test row."""

    values: Floats  # a column per decision function
    labels: Floats
    probabilities: Floats | None = None


def nodes_of(X: Floats) -> list[Any]:
    """Rows as LIBSVM wants them, zeros left out."""
    return [{j + 1: float(v) for j, v in enumerate(row) if v} for row in X]


def kernel_nodes(K: Floats) -> list[Any]:
    """Rows of a precomputed kernel: each begins with its number."""
    return [
        {0: i + 1} | {j + 1: float(v) for j, v in enumerate(row)}
        for i, row in enumerate(K)
    ]


def train_libsvm(X: Floats, y: Floats, options: str, *, is_kernel: bool) -> Any:
    from libsvm import svm, svmutil

    rows = kernel_nodes(X) if is_kernel else nodes_of(X)
    problem = svm.svm_problem([float(v) for v in y], rows, isKernel=is_kernel)
    return svmutil.svm_train(problem, svm.svm_parameter(f"-q {options}"))


def ask_libsvm(
    path: Path, X: Floats, *, is_kernel: bool, n_probabilities: int = 0
) -> Answers:
    """What LIBSVM predicts with a model file."""
    from libsvm import svm, svmutil

    model = svmutil.svm_load_model(str(path))
    assert model is not None, "LIBSVM refused the file"
    n_classes = model.get_nr_class()
    is_classifier = model.get_svm_type() in (0, 1)
    n_values = n_classes * (n_classes - 1) // 2 if is_classifier else 1
    values, labels, probabilities = [], [], []
    for row in kernel_nodes(X) if is_kernel else nodes_of(X):
        node, _ = svm.gen_svm_nodearray(row, isKernel=is_kernel)
        buffer = (c_double * max(n_values, 1))()
        labels.append(svm.libsvm.svm_predict_values(model, node, buffer))
        values.append(buffer[:n_values])
        if n_probabilities:
            found = (c_double * n_probabilities)()
            svm.libsvm.svm_predict_probability(model, node, found)
            probabilities.append(found[:])
    return Answers(
        np.array(values),
        np.array(labels),
        np.array(probabilities) if n_probabilities else None,
    )


def train_liblinear(X: Floats, y: Floats, options: str) -> Any:
    from liblinear import liblinearutil

    return liblinearutil.train([float(v) for v in y], nodes_of(X), f"-q {options}")


def ask_liblinear(path: Path, X: Floats, *, n_probabilities: int = 0) -> Answers:
    """What LIBLINEAR predicts with a model file."""
    from liblinear import liblinear, liblinearutil

    model = liblinearutil.load_model(str(path))
    assert model is not None, "LIBLINEAR refused the file"
    n_classes = model.get_nr_class()
    is_single = n_classes == 2 and model.param.solver_type != CRAMMER_SINGER
    n_values = 1 if is_single else n_classes
    values, labels, probabilities = [], [], []
    width, bias = model.get_nr_feature(), model.bias
    for row in nodes_of(X):
        known = {j: v for j, v in row.items() if j <= width}
        if bias >= 0:
            known[width + 1] = bias
        node, _ = liblinear.gen_feature_nodearray(known)
        buffer = (c_double * n_classes)()
        labels.append(liblinear.liblinear.predict_values(model, node, buffer))
        values.append(buffer[:n_values])
        if n_probabilities:
            found = (c_double * n_probabilities)()
            liblinear.liblinear.predict_probability(model, node, found)
            probabilities.append(found[:])
    return Answers(
        np.array(values),
        np.array(labels),
        np.array(probabilities) if n_probabilities else None,
    )
