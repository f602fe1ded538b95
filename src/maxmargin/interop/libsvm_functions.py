"""What does `from libsvm.svmutil import *` bring? Training, predicting, model files.

`libsvm` is a facade of the C library's functions, as far as the package's README uses
them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import InvalidInput
from maxmargin.interop.evaluation import judge_folds
from maxmargin.interop.libsvm_cross_validation import cross_validate_svm
from maxmargin.interop.libsvm_file import read_libsvm, write_libsvm
from maxmargin.interop.libsvm_kernels import serial_numbers
from maxmargin.interop.libsvm_objects import svm_model, svm_parameter, svm_problem
from maxmargin.interop.libsvm_training import (
    REGRESSORS,
    check_svm,
    quiet,
    train_svm,
)
from maxmargin.interop.nodes import refuse_pointers, samples_of
from maxmargin.interop.option_strings import KernelType, parse_predict_options
from maxmargin.interop.predicting import Answers, Judged, answers_of_svm
from maxmargin.interop.printing import printer
from maxmargin.interop.samples import DataSet, as_numbers, as_samples
from maxmargin.interop.structures import CLibrary


def svm_train(arg1: Any, arg2: Any = None, arg3: Any = None, arg4: Any = None) -> Any:
    """Train a machine with LIBSVM's options.

    - ``svm_train(y, x [, options])``
    - ``svm_train(prob [, options])``
    - ``svm_train(prob, param)``
    - ``svm_train(W, y, x [, options])``, with a weight per sample

    Parameters
    ----------
    y, x : labels and samples, as for svm_problem
    prob : svm_problem
    param : svm_parameter
    options : str or list of str
        -s svm_type : 0 C-SVC, 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR (0)
        -t kernel_type : 0 linear, 1 polynomial, 2 RBF, 3 sigmoid, 4 precomputed (2)
        -d degree, -g gamma, -r coef0 : of the kernel (3, 1/num_features, 0)
        -c cost : C of C-SVC, epsilon-SVR and nu-SVR (1)
        -n nu : of nu-SVC, one-class and nu-SVR (0.5)
        -p epsilon : of epsilon-SVR (0.1)
        -m cachesize : in MB (100, which here means as much as is useful)
        -e epsilon : tolerance of the termination criterion (0.001)
        -h shrinking : 0 or 1 (1)
        -b probability_estimates : 1 for a model that can tell probabilities (0)
        -wi weight : factor of C for class i, of C-SVC (1)
        -v n : n-fold cross-validation
        -q : quiet

    Returns
    -------
    svm_model; with -v the accuracy in percent, or a regression's mean squared error.
    """
    prob, param = _asked(arg1, arg2, arg3, arg4)
    is_kernel = param.kernel_type == KernelType.PRECOMPUTED
    if is_kernel != prob.is_kernel:
        raise InvalidInput(
            "A precomputed kernel (-t 4) needs svm_problem(y, x, isKernel=True), and "
            "only that does: Wrong input format: first column must be "
            "0:sample_serial_number"
        )
    data = prob.data
    if is_kernel:
        serial_numbers(data.X, data.largest)
    if param.gamma == 0 and prob.n > 0:
        param.gamma = 1.0 / prob.n
    complaint = check_svm(data, param)
    if complaint:
        raise InvalidInput(f"Error: {complaint}")
    say = printer(param.print_func)
    if not param.cross_validation:
        trained = train_svm(data, param.plain(), say)
        return svm_model(trained.model, param, trained.support, prob)
    predicted = cross_validate_svm(data, param.plain(), say)
    is_regression = param.svm_type in REGRESSORS
    scores = judge_folds(data.y, predicted, print, is_regression=is_regression)
    return scores.squared_error if is_regression else scores.accuracy


def _asked(*args: Any) -> tuple[svm_problem, svm_parameter]:
    first, second, third, fourth = args
    if isinstance(first, svm_problem):
        if isinstance(second, svm_parameter):
            return first, second
        return first, svm_parameter(second)
    if not isinstance(first, list | tuple | np.ndarray):
        raise TypeError("Wrong types for the arguments")
    columns: tuple[Any, ...] = (first, second)
    options = third
    if is_data(third):
        columns, options = (first, second, third), fourth
    elif not is_data(second) and second not in ([], ()):
        raise TypeError("Wrong types for the arguments")
    param = svm_parameter(options)
    is_kernel = param.kernel_type == KernelType.PRECOMPUTED
    return svm_problem(*columns, isKernel=is_kernel), param


def is_data(given: Any) -> bool:
    """Whether an argument holds samples, rather than options in words."""
    if isinstance(given, np.ndarray) or sp.issparse(given):
        return True
    if not isinstance(given, list | tuple):
        return False
    return bool(given) and not isinstance(given[0], str)


def svm_predict(y: Any, x: Any, m: svm_model, options: Any = "") -> Judged:
    """Predict samples with a model.

    Parameters
    ----------
    y : list, tuple or ndarray
        True labels, for the accuracy; [] where there are none.
    x : samples, as for svm_train
    m : svm_model
    options : str
        -b 1 for probabilities, of models that carry them; -q for quiet.

    Returns
    -------
    (labels, (accuracy, mean squared error, squared correlation), values)
        Values are decision values of all pairs of classes, or probabilities of the
        classes in the order of ``m.get_labels()``.
    """
    told = parse_predict_options(options)
    core = _core_of(m)
    true = as_numbers(y, "y")
    samples = as_samples(x, is_kernel=core.kernel is None)
    say = quiet if told.is_quiet else print
    if told.probability and not core.has_probabilities:
        raise InvalidInput("Model does not support probabiliy estimates")
    if told.probability and core.is_regressor:
        say(
            "Prob. model for test data: target value = predicted value + z,\n"
            f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={core.sigma:g}"
        )
    elif core.has_probabilities and not told.probability:
        say("Model supports probability estimates, but disabled in predicton.")
    wants = bool(told.probability)
    found = answers_of_svm(core, samples, has_probabilities=wants)
    return found.judged(true, say, is_regression=core.is_regressor)


def _core_of(m: Any) -> Any:
    refuse_pointers(m)
    if not isinstance(m, svm_model):
        raise TypeError(f"m must be an svm_model, got {type(m).__name__}.")
    return m.core


def svm_load_model(model_file_name: Any) -> svm_model | None:
    """A model from a file that LIBSVM wrote; None, and a word, without a file."""
    try:
        return svm_model(read_libsvm(model_file_name))
    except OSError:
        print(f"can't open model file {model_file_name}")
        return None


def svm_save_model(model_file_name: Any, model: svm_model) -> None:
    """Write a model in LIBSVM's format."""
    write_libsvm(model_file_name, _core_of(model))


class LibSvm(CLibrary):
    """LIBSVM's."""

    _library = "libsvm"

    def svm_set_print_string_function(self, print_func: Any) -> None:
        """Who hears the training of `svm_train` and `svm_cross_validation` below."""
        self._print_func = print_func

    def svm_train(self, prob: svm_problem, param: svm_parameter) -> svm_model:
        refuse_pointers(prob, param)
        data, say = self._data(prob, param), self._say(param)
        trained = train_svm(data, param.plain(), say)
        return svm_model(trained.model, param, trained.support, prob)

    def svm_cross_validation(
        self, prob: svm_problem, param: svm_parameter, nr_fold: int, target: Any
    ) -> None:
        refuse_pointers(prob, param, target)
        told = param.plain()
        told.nr_fold = int(nr_fold)
        data, say = self._data(prob, param), self._say(param)
        fill(target, cross_validate_svm(data, told, say))

    def _data(self, prob: svm_problem, param: svm_parameter) -> DataSet:
        """Here gamma 0 is 0, not 1 / number of features: as if there were none."""
        if param.kernel_type == KernelType.PRECOMPUTED:
            return prob.data
        return prob.data._replace(largest=0)

    def svm_check_parameter(
        self, prob: svm_problem, param: svm_parameter
    ) -> bytes | None:
        refuse_pointers(prob, param)
        complaint = check_svm(prob.data, param)
        return None if complaint is None else complaint.encode()

    def svm_predict(self, model: svm_model, x: Any) -> float:
        return float(self._answers(model, x).labels[0])

    def svm_predict_values(self, model: svm_model, x: Any, dec_values: Any) -> float:
        found = self._answers(model, x)
        fill(dec_values, found.values[0])
        return float(found.labels[0])

    def svm_predict_probability(
        self, model: svm_model, x: Any, prob_estimates: Any
    ) -> float:
        core = _core_of(model)
        found = self._answers(model, x, core.has_probabilities)
        if core.has_probabilities:
            fill(prob_estimates, found.values[0])
        return float(found.labels[0])

    def _answers(self, model: svm_model, x: Any, wants: bool = False) -> Answers:
        core = _core_of(model)
        samples = samples_of(x, is_kernel=core.kernel is None)
        return answers_of_svm(core, samples, has_probabilities=wants, n_threads=1)

    def svm_save_model(self, name: Any, model: svm_model) -> int:
        try:
            svm_save_model(as_path(name), model)
        except OSError:
            return -1
        return 0

    def svm_load_model(self, name: Any) -> svm_model | None:
        return svm_load_model(as_path(name))

    def svm_get_svm_type(self, model: svm_model) -> int:
        return model.get_svm_type()

    def svm_get_nr_class(self, model: svm_model) -> int:
        return model.get_nr_class()

    def svm_get_labels(self, model: svm_model, label: Any) -> None:
        fill(label, model.get_labels())

    def svm_get_sv_indices(self, model: svm_model, indices: Any) -> None:
        fill(indices, model.get_sv_indices())

    def svm_get_nr_sv(self, model: svm_model) -> int:
        return model.get_nr_sv()

    def svm_get_svr_probability(self, model: svm_model) -> float:
        return model.get_svr_probability()

    def svm_check_probability_model(self, model: svm_model) -> int:
        return int(model.is_probability_model())

    def svm_free_model_content(self, model: Any) -> None:
        """Python frees models by itself."""

    def svm_free_and_destroy_model(self, model: Any) -> None:
        """Python frees models by itself."""

    def svm_destroy_param(self, param: Any) -> None:
        """Python frees parameters by itself."""


def fill(target: Any, values: Any) -> None:
    """Write into a list or ctypes array that the caller has made large enough."""
    refuse_pointers(target)
    if len(target) < len(values):
        raise InvalidInput(
            f"{len(values)} numbers do not fit into an array of {len(target)}."
        )
    for i, value in enumerate(values):
        target[i] = value.item() if isinstance(value, np.generic) else value


def as_path(name: Any) -> Path:
    """C functions are given bytes."""
    return Path(name.decode() if isinstance(name, bytes) else name)


libsvm = LibSvm()
