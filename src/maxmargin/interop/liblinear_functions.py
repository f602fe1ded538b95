"""What does `from liblinear.liblinearutil import *` bring?

Training, predicting, model files, and `liblinear`, a facade of the C library's
functions, as far as the package's README uses them.
"""

from typing import Any

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.interop.evaluation import judge_folds
from maxmargin.interop.liblinear_file import read_liblinear, write_liblinear
from maxmargin.interop.liblinear_objects import model, parameter, problem
from maxmargin.interop.liblinear_search import find_parameters
from maxmargin.interop.liblinear_training import (
    REGRESSORS,
    check_linear,
    cross_validate_linear,
    train_linear,
)
from maxmargin.interop.libsvm_functions import as_path, fill, is_data
from maxmargin.interop.libsvm_training import quiet
from maxmargin.interop.nodes import refuse_pointers, samples_of
from maxmargin.interop.option_strings import LinearOptions, parse_predict_options
from maxmargin.interop.predicting import Answers, Judged, answers_of_linear
from maxmargin.interop.printing import printer
from maxmargin.interop.samples import as_numbers, as_samples
from maxmargin.interop.structures import CLibrary


def train(arg1: Any, arg2: Any = None, arg3: Any = None, arg4: Any = None) -> Any:
    """Train a linear machine with LIBLINEAR's options.

    - ``train(y, x [, options])``
    - ``train(prob [, options])``
    - ``train(prob, param)``
    - ``train(W, y, x [, options])``, with a weight per sample

    Parameters
    ----------
    y, x : labels and samples, as for problem
    prob : problem
    param : parameter
    options : str or list of str
        -s type : solver (1)
            classes: 0 L2R_LR, 1 L2R_L2LOSS_SVC_DUAL, 2 L2R_L2LOSS_SVC,
            3 L2R_L1LOSS_SVC_DUAL, 4 MCSVM_CS, 5 L1R_L2LOSS_SVC, 6 L1R_LR,
            7 L2R_LR_DUAL; numbers: 11 L2R_L2LOSS_SVR, 12 L2R_L2LOSS_SVR_DUAL,
            13 L2R_L1LOSS_SVR_DUAL; outliers: 21 ONECLASS_SVM
        -c cost : C (1)
        -p epsilon : of regressions (0.1)
        -n nu : of the one-class machine (0.5)
        -e epsilon : tolerance; solutions are never less exact than 1e-4
        -B bias : value of a constant feature; below 0 there is none (-1)
        -R : do not regularise the bias; needs -B 1, and -s 0, 2, 5, 6 or 11
        -wi weight : factor of C for class i (1)
        -v n : n-fold cross-validation
        -C : find C (-s 0, 2), or C and p (-s 11)
        -q : quiet

    Returns
    -------
    model; with -v the accuracy in percent, or a regression's mean squared error; with
    -C the triple (best C, best p, best rate).
    """
    prob, param = _asked(arg1, arg2, arg3, arg4)
    prob.set_bias(param.bias)
    told, data = param.plain(prob.bias), prob.data
    complaint = check_linear(data, told)
    if complaint:
        raise InvalidInput(f"Error: {complaint}")
    say = printer(param.print_func)
    if param.flag_find_parameters:
        best = find_parameters(data, told, say)
        print(f"{best.line}\n")
        return best.plain()
    if not param.flag_cross_validation:
        return model(train_linear(data, told, say).model, param)
    predicted = cross_validate_linear(data, told, say)
    is_regression = param.solver_type in REGRESSORS
    scores = judge_folds(data.y, predicted, print, is_regression=is_regression)
    return scores.squared_error if is_regression else scores.accuracy


def _asked(*args: Any) -> tuple[problem, parameter]:
    first, second, third, fourth = args
    if isinstance(first, problem):
        if isinstance(second, parameter):
            return first, second
        return first, parameter(second)
    if not isinstance(first, list | tuple | np.ndarray):
        raise TypeError("Wrong types for the arguments")
    if is_data(third):
        return problem(first, second, third), parameter(fourth)
    if not is_data(second) and second not in ([], ()):
        raise TypeError("Wrong types for the arguments")
    return problem(first, second), parameter(third)


def predict(y: Any, x: Any, m: model, options: Any = "") -> Judged:
    """Predict samples with a model.

    Parameters
    ----------
    y : list, tuple or ndarray
        True labels, for the accuracy; [] where there are none.
    x : samples, as for train
    m : model
    options : str
        -b 1 for probabilities, of logistic regression; -q for quiet.

    Returns
    -------
    (labels, (accuracy, mean squared error, squared correlation), values)
        Values are decision values, one per class and of two classes one in all; or
        probabilities of the classes in the order of ``m.get_labels()``.
    """
    told = parse_predict_options(options)
    core = _core_of(m)
    true = as_numbers(y, "y")
    wants = bool(told.probability)
    found = answers_of_linear(core, as_samples(x), has_probabilities=wants)
    say = quiet if told.is_quiet else print
    return found.judged(true, say, is_regression=core.is_regressor)


def _core_of(m: Any) -> Any:
    refuse_pointers(m)
    if not isinstance(m, model):
        raise TypeError(f"m must be a model, got {type(m).__name__}.")
    return m.core


def load_model(model_file_name: Any) -> model | None:
    """A model from a file that LIBLINEAR wrote; None, and a word, without a file."""
    try:
        return model(read_liblinear(model_file_name))
    except OSError:
        print(f"can't open model file {model_file_name}")
        return None


def save_model(model_file_name: Any, model: Any) -> None:
    """Write a model in LIBLINEAR's format."""
    write_liblinear(model_file_name, _core_of(model))


class LibLinear(CLibrary):
    """LIBLINEAR's."""

    _library = "liblinear"

    def set_print_string_function(self, print_func: Any) -> None:
        """Who hears the training of the functions below."""
        self._print_func = print_func

    def train(self, prob: problem, param: parameter) -> model:
        told = self._told(prob, param)
        return model(train_linear(prob.data, told, self._say(param)).model, param)

    def cross_validation(
        self, prob: problem, param: parameter, nr_fold: int, target: Any
    ) -> None:
        told = self._told(prob, param)
        told.nr_fold = int(nr_fold)
        fill(target, cross_validate_linear(prob.data, told, self._say(param)))

    def find_parameters(self, prob: problem, param: parameter, *rest: Any) -> None:
        """(..., nr_fold, start_C, start_p, best_C, best_p, best_score)."""
        told = self._told(prob, param)
        told.nr_fold = int(rest[0])
        first_C, first_p = (float(getattr(v, "value", v)) for v in rest[1:3])
        told.flag_C_specified, told.flag_p_specified = first_C > 0, first_p > 0
        told.C = first_C if first_C > 0 else told.C
        told.p = first_p if first_p > 0 else told.p
        best = find_parameters(prob.data, told, self._say(param))
        for target, value in zip(rest[3:], best.plain(), strict=True):
            refuse_pointers(target)
            target.value = value

    def check_parameter(self, prob: problem, param: parameter) -> bytes | None:
        complaint = check_linear(prob.data, self._told(prob, param))
        return None if complaint is None else complaint.encode()

    def _told(self, prob: problem, param: parameter) -> LinearOptions:
        refuse_pointers(prob, param)
        return param.plain(prob.bias)

    def predict(self, m: model, x: Any) -> float:
        return float(self._answers(m, x).labels[0])

    def predict_values(self, m: model, x: Any, dec_values: Any) -> float:
        found = self._answers(m, x)
        fill(dec_values, found.values[0])
        return float(found.labels[0])

    def predict_probability(self, m: model, x: Any, prob_estimates: Any) -> float:
        if not _core_of(m).is_logistic:
            return 0.0
        found = self._answers(m, x, True)
        fill(prob_estimates, found.values[0])
        return float(found.labels[0])

    def _answers(self, m: model, x: Any, wants: bool = False) -> Answers:
        core = _core_of(m)
        samples = samples_of(x)
        return answers_of_linear(core, samples, has_probabilities=wants, n_threads=1)

    def save_model(self, name: Any, m: model) -> int:
        try:
            save_model(as_path(name), m)
        except OSError:
            return -1
        return 0

    def load_model(self, name: Any) -> model | None:
        return load_model(as_path(name))

    def get_nr_feature(self, m: model) -> int:
        return m.get_nr_feature()

    def get_nr_class(self, m: model) -> int:
        return m.get_nr_class()

    def get_labels(self, m: model, label: Any) -> None:
        fill(label, m.get_labels())

    def get_decfun_coef(self, m: model, feat_idx: int, label_idx: int) -> float:
        return m.get_decfun_coef(feat_idx, label_idx)

    def get_decfun_bias(self, m: model, label_idx: int) -> float:
        return m.get_decfun_bias(label_idx)

    def get_decfun_rho(self, m: model) -> float:
        return m.get_decfun_rho()

    def check_probability_model(self, m: model) -> int:
        return int(m.is_probability_model())

    def check_regression_model(self, m: model) -> int:
        return int(m.is_regression_model())

    def check_oneclass_model(self, m: model) -> int:
        return int(m.is_oneclass_model())

    def free_model_content(self, m: Any) -> None:
        """Python frees models by itself."""

    def free_and_destroy_model(self, m: Any) -> None:
        """Python frees models by itself."""

    def destroy_param(self, param: Any) -> None:
        """Python frees parameters by itself."""


liblinear = LibLinear()
