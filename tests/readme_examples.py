"""The Python examples of LIBSVM's and LIBLINEAR's READMEs, for any module of that kind.

Each takes the module and a file, and returns what the example computes. Training with
-b 1 is left out, as are downloads and raw ctypes.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_double
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import load

Example = Callable[[Any, Path], Any]
PAIR = ([0, 0, 1, 1], [0, 2, 0, 2])
KERNEL = ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])


def write_heart(path: Path) -> Path:
    """What heart_scale looks like: labels ±1, features in [-1, 1], six digits."""
    X, y = load("heart", 270)
    lines = [
        f"{'+1' if label else '-1'} "
        + " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)
        for row, label in zip(X, y, strict=True)
    ]
    path.write_text("".join(f"{line} \n" for line in lines))
    return path


# LIBSVM.


def svm_quick_start(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    m = M.svm_train(y[:200], x[:200], "-c 4")
    return M.svm_predict(y[200:], x[200:], m)


def svm_quick_start_with_scipy(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path), return_scipy=True)
    m = M.svm_train(y[:200], x[:200, :], "-c 4")
    return M.svm_predict(y[200:], x[200:, :], m)


def svm_problems_in_python(M: Any, path: Path) -> Any:
    found = []
    for y, x in (
        ([1, -1], [[1, 0, 1], [-1, 0, -1]]),
        ([1, -1], [{1: 1, 3: 1}, {1: -1, 3: -1}]),
        (np.asarray([1, -1]), np.asarray([[1, 0, 1], [-1, 0, -1]])),
        (np.asarray([1, -1]), sp.csr_matrix(([1, 1, -1, -1], PAIR))),
    ):
        prob = M.svm_problem(y, x)
        m = M.svm_train(prob, M.svm_parameter("-t 0 -c 4"))
        found.append((prob.l, prob.n, M.svm_predict(y, x, m), m.get_sv_coef()))
    return found


def svm_precomputed_kernels(M: Any, path: Path) -> Any:
    found = []
    for y, x in (
        ([1, -1], [[1, 2, -2], [2, -2, 2]]),
        ([1, -1], [{0: 1, 1: 2, 2: -2}, {0: 2, 1: -2, 2: 2}]),
        (np.asarray([1, -1]), np.asarray([[1, 2, -2], [2, -2, 2]])),
        (np.asarray([1, -1]), sp.csr_matrix(([1, 2, -2, 2, -2, 2], KERNEL))),
    ):
        prob = M.svm_problem(y, x, isKernel=True)
        m = M.svm_train(prob, M.svm_parameter("-t 4 -c 4"))
        found.append((M.svm_predict(y, x, m), m.get_sv_coef(), m.get_SV()))
    return found


def svm_model_files(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    name = str(path.with_suffix(f".{M.__name__}.model"))
    M.svm_save_model(name, M.svm_train(y, x, "-c 4"))
    m = M.svm_load_model(name)
    pred_labels, _, pred_values = M.svm_predict(y, x, m)
    return M.evaluations(y, pred_labels), pred_values, m.get_sv_indices()


def svm_low_level(M: Any, path: Path) -> Any:
    prob = M.svm_problem([1, -1], [{1: 1, 3: 1}, {1: -1, 3: -1}])
    m = M.libsvm.svm_train(prob, M.svm_parameter("-c 4"))
    x0, max_idx = M.gen_svm_nodearray({1: 1, 3: 1})
    first = M.libsvm.svm_predict(m, x0), max_idx, str(x0[0])
    x0, max_idx = M.gen_svm_nodearray((np.asarray([0, 2]), np.asarray([1, 1])))
    model = M.toPyModel(m)
    return first, M.libsvm.svm_predict(m, x0), max_idx, model.get_labels()


def svm_scaling(M: Any, path: Path) -> Any:
    _, x = M.svm_read_problem(str(path), return_scipy=True)
    scale_param = M.csr_find_scale_param(x, lower=0)
    return scale_param["coef"], scale_param["offset"], M.csr_scale(x, scale_param).data


def svm_three_ways_to_train(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    prob = M.svm_problem(y, x)
    param = M.svm_parameter("-s 3 -c 5 -h 0")
    models = [
        M.svm_train(y, x, "-c 5"),
        M.svm_train(prob, "-t 2 -c 5"),
        M.svm_train(prob, param),
    ]
    return [M.svm_predict(y, x, m) for m in models]


def svm_cross_validation(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    return M.svm_train(y, x, "-v 3")


def svm_model_methods(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    model = M.svm_train(y, x)
    return (
        model.get_svm_type(),
        model.get_nr_class(),
        model.get_labels(),
        model.get_sv_indices(),
        model.get_nr_sv(),
        model.is_probability_model(),
        model.get_sv_coef(),
        model.get_SV(),
    )


# LIBLINEAR.


def linear_quick_start(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    m = M.train(y[:200], x[:200], "-c 4")
    return M.predict(y[200:], x[200:], m)


def linear_quick_start_with_scipy(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path), return_scipy=True)
    m = M.train(y[:200], x[:200, :], "-c 4")
    return M.predict(y[200:], x[200:, :], m)


def linear_problems_in_python(M: Any, path: Path) -> Any:
    found = []
    for y, x in (
        ([1, -1], [[1, 0, 1], [-1, 0, -1]]),
        ([1, -1], [{1: 1, 3: 1}, {1: -1, 3: -1}]),
        (np.asarray([1, -1]), np.asarray([[1, 0, 1], [-1, 0, -1]])),
        (np.asarray([1, -1]), sp.csr_matrix(([1, 1, -1, -1], PAIR))),
    ):
        prob = M.problem(y, x)
        m = M.train(prob, M.parameter("-s 0 -c 4 -B 1"))
        found.append((prob.l, prob.n, prob.bias, M.predict(y, x, m, "-b 1")))
    return found


def linear_model_files(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    name = str(path.with_suffix(f".{M.__name__}.model"))
    M.save_model(name, M.train(y, x, "-s 0 -B 1"))
    m = M.load_model(name)
    pred_labels, _, pred_values = M.predict(y, x, m, "-b 1")
    return M.evaluations(y, pred_labels), pred_values


def linear_low_level(M: Any, path: Path) -> Any:
    prob = M.problem([1, -1], [{1: 1, 3: 1}, {1: -1, 3: -1}])
    param = M.parameter()
    param.solver_type = 1
    param.C = 4
    m = M.liblinear.train(prob, param)
    x0, max_idx = M.gen_feature_nodearray({1: 1, 3: 1})
    first = M.liblinear.predict(m, x0), max_idx, str(x0[0])
    x0, max_idx = M.gen_feature_nodearray((np.asarray([0, 2]), np.asarray([1, 1])))
    return first, M.liblinear.predict(m, x0), max_idx, M.toPyModel(m).get_labels()


def linear_bias_and_copies(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    prob = M.problem(y, x)
    sizes = [prob.n]
    prob.set_bias(1)
    sizes.append(prob.n)
    other = prob.copy()
    other.y = (c_double * prob.l)(*(-value for value in y))
    m = M.train(other, "-s 2 -B 1 -q")
    return sizes, M.predict([-value for value in y], x, m), prob.y[:3]


def linear_three_ways_to_train(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    prob = M.problem(y, x)
    models = [
        M.train(y, x, "-c 5"),
        M.train(prob, "-w1 5 -c 5"),
        M.train(prob, M.parameter("-s 3 -c 5 -q")),
    ]
    return [M.predict(y, x, m)[1] for m in models]


def linear_cross_validation(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    return M.train(y, x, "-v 3")


def linear_parameter_search(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    best_C, best_p, best_rate = M.train(y, x, "-C -s 0")
    m = M.train(y, x, f"-c {best_C} -s 0")
    return best_C, best_p, best_rate, M.predict(y, x, m)[1]


def linear_model_methods(M: Any, path: Path) -> Any:
    y, x = M.svm_read_problem(str(path))
    model = M.train(y, x, "-B 1")
    outliers = M.train(y, x, "-s 21 -e 1e-6")
    return (
        model.get_nr_feature(),
        model.get_nr_class(),
        model.get_labels(),
        model.is_probability_model(),
        model.is_regression_model(),
        [model.get_decfun_coef(3, k) for k in range(2)],
        [model.get_decfun_bias(k) for k in range(2)],
        [model.get_decfun(k) for k in range(2)],
        outliers.is_oneclass_model(),
        outliers.get_decfun_rho(),
        outliers.get_decfun(),
    )


def named(prefix: str) -> list[Example]:
    """The examples of one README."""
    found = [f for name, f in sorted(globals().items()) if name.startswith(prefix)]
    return [f for f in found if callable(f)]


SVM_EXAMPLES = named("svm_")
LINEAR_EXAMPLES = named("linear_")
