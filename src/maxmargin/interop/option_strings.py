"""What does a string such as "-s 3 -c 10 -v 5" ask for?

Names and defaults are those of the structures svm_parameter and parameter in LIBSVM
3.37 and LIBLINEAR 2.50. Numbers are not judged here: `check_svm` and `check_linear` do.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from maxmargin.errors import InvalidInput


class SvmType(IntEnum):
    """LIBSVM's machines."""

    C_SVC = 0
    NU_SVC = 1
    ONE_CLASS = 2
    EPSILON_SVR = 3
    NU_SVR = 4


class KernelType(IntEnum):
    """LIBSVM's kernels."""

    LINEAR = 0
    POLY = 1
    RBF = 2
    SIGMOID = 3
    PRECOMPUTED = 4


class SolverType(IntEnum):
    """LIBLINEAR's solvers."""

    L2R_LR = 0
    L2R_L2LOSS_SVC_DUAL = 1
    L2R_L2LOSS_SVC = 2
    L2R_L1LOSS_SVC_DUAL = 3
    MCSVM_CS = 4
    L1R_L2LOSS_SVC = 5
    L1R_LR = 6
    L2R_LR_DUAL = 7
    L2R_L2LOSS_SVR = 11
    L2R_L2LOSS_SVR_DUAL = 12
    L2R_L1LOSS_SVR_DUAL = 13
    ONECLASS_SVM = 21


PRIMAL = (SolverType.L2R_LR, SolverType.L2R_L2LOSS_SVC, SolverType.L2R_L2LOSS_SVR)
DEFAULT_EPS = {  # of LIBLINEAR's solvers, where it is not 0.1
    SolverType.L2R_LR: 0.01,
    SolverType.L2R_L2LOSS_SVC: 0.01,
    SolverType.L1R_L2LOSS_SVC: 0.01,
    SolverType.L1R_LR: 0.01,
    SolverType.L2R_L2LOSS_SVR: 0.0001,
    SolverType.ONECLASS_SVM: 0.01,
}
N_FOLDS = 5  # of a search without -v


@dataclass
class SvmOptions:
    """What LIBSVM is told; lists hold the weights of classes."""

    svm_type: int = SvmType.C_SVC
    kernel_type: int = KernelType.RBF
    degree: int = 3
    gamma: float = 0.0  # 0: 1 / number of features
    coef0: float = 0.0
    cache_size: float = 100.0
    eps: float = 0.001
    C: float = 1.0
    nr_weight: int = 0
    weight_label: Any = field(default_factory=list)
    weight: Any = field(default_factory=list)
    nu: float = 0.5
    p: float = 0.1
    shrinking: int = 1
    probability: int = 0
    cross_validation: bool = False
    nr_fold: int = 0
    is_quiet: bool = False


@dataclass
class LinearOptions:
    """What LIBLINEAR is told."""

    solver_type: int = SolverType.L2R_L2LOSS_SVC_DUAL
    eps: float = math.inf  # infinite: the solver's own
    C: float = 1.0
    nr_weight: int = 0
    weight_label: Any = field(default_factory=list)
    weight: Any = field(default_factory=list)
    p: float = 0.1
    nu: float = 0.5
    init_sol: Any = None
    regularize_bias: int = 1
    w_recalc: bool = False
    bias: float = -1.0
    flag_cross_validation: bool = False
    flag_C_specified: bool = False
    flag_p_specified: bool = False
    flag_solver_specified: bool = False
    flag_find_parameters: bool = False
    nr_fold: int = 0
    is_quiet: bool = False


@dataclass
class PredictOptions:
    """What a prediction is told."""

    probability: int = 0
    is_quiet: bool = False


Told = dict[str, tuple[str, Callable[[str], Any]]]  # flag: field and kind

SVM_FLAGS: Told = {
    "-s": ("svm_type", lambda word: SvmType(int(word))),
    "-t": ("kernel_type", lambda word: KernelType(int(word))),
    "-d": ("degree", int),
    "-g": ("gamma", float),
    "-r": ("coef0", float),
    "-n": ("nu", float),
    "-m": ("cache_size", float),
    "-c": ("C", float),
    "-e": ("eps", float),
    "-p": ("p", float),
    "-h": ("shrinking", int),
    "-b": ("probability", int),
    "-v": ("nr_fold", int),
}
LINEAR_FLAGS: Told = {
    "-s": ("solver_type", lambda word: SolverType(int(word))),
    "-c": ("C", float),
    "-p": ("p", float),
    "-n": ("nu", float),
    "-e": ("eps", float),
    "-B": ("bias", float),
    "-v": ("nr_fold", int),
}
PREDICT_FLAGS: Told = {"-b": ("probability", int)}
UNKNOWN = {
    "svm_type": "-s is one of 0 to 4",
    "kernel_type": "-t is one of 0 to 4",
    "solver_type": "-s is one of 0 to 7, 11, 12, 13 and 21",
}


def parse_svm_options(options: Any, into: Any = None) -> Any:
    """LIBSVM's training options, from a string or a list of words."""
    told = SvmOptions() if into is None else into
    _read(told, words_of(options), SVM_FLAGS, {"-q": "is_quiet"})
    told.cross_validation = _has_folds(told)
    return told


def parse_linear_options(options: Any, into: Any = None) -> Any:
    """LIBLINEAR's training options, from a string or a list of words."""
    told = LinearOptions() if into is None else into
    words = words_of(options)
    switches = {"-q": "is_quiet", "-C": "flag_find_parameters", "-R": "regularize_bias"}
    seen = _read(told, words, LINEAR_FLAGS, switches)
    told.regularize_bias = int("-R" not in seen)
    told.flag_C_specified = "-c" in seen
    told.flag_p_specified = "-p" in seen
    told.flag_solver_specified = "-s" in seen
    told.flag_cross_validation = _has_folds(told)
    if told.flag_find_parameters:
        _prepare_search(told)
    if told.eps == math.inf:
        told.eps = DEFAULT_EPS.get(SolverType(told.solver_type), 0.1)
    return told


def parse_predict_options(options: Any) -> PredictOptions:
    """Of svm-predict and predict."""
    told = PredictOptions()
    _read(told, words_of(options), PREDICT_FLAGS, {"-q": "is_quiet"})
    return told


def words_of(options: Any) -> list[str]:
    """A string is split at blanks, a list is taken as it is; None is nothing."""
    if options is None:
        return []
    if isinstance(options, str):
        return options.split()
    if isinstance(options, list | tuple):
        return [str(word) for word in options]
    raise TypeError(
        f"arg 1 should be a list or a str, got {type(options).__name__}: options are "
        "written as for the command line, such as '-c 4 -g 0.5'."
    )


def _read(
    told: Any, words: list[str], flags: Told, switches: dict[str, str]
) -> set[str]:
    """Fill in what the words say; the flags that were met are returned."""
    labels: list[int] = []
    weights: list[float] = []
    seen: set[str] = set()
    rest = iter(words)
    for word in rest:
        seen.add(word)
        if word in switches:
            setattr(told, switches[word], True)
        elif word in flags:
            name, kind = flags[word]
            setattr(told, name, _value(word, next(rest, None), kind, name))
        elif word.startswith("-w") and hasattr(told, "weight"):
            labels.append(_value(word, word[2:], int, "label"))
            weights.append(_value(word, next(rest, None), float, "weight"))
        else:
            known = " ".join([*flags, *switches])
            raise InvalidInput(f"Wrong options: {word!r} is not one of {known}.")
    if labels:
        told.nr_weight, told.weight_label, told.weight = len(labels), labels, weights
    return seen


def _value(flag: str, word: str | None, kind: Callable[[str], Any], name: str) -> Any:
    if word is None:
        raise InvalidInput(f"Wrong options: {flag} must be followed by a value.")
    try:
        return kind(word)
    except ValueError as error:
        a_number = "a whole number" if kind is int else "a number"
        hint = UNKNOWN.get(name, f"{flag} takes {a_number}")
        raise InvalidInput(f"Wrong options: {hint}, got {word!r}.") from error


def _has_folds(told: Any) -> bool:
    if told.nr_fold == 0:
        return False
    if told.nr_fold < 2:
        raise InvalidInput(f"n-fold cross validation: n must >= 2, got {told.nr_fold}.")
    return True


def _prepare_search(told: Any) -> None:
    """-C: five folds where none are given, and solver 2 where none is."""
    if not told.flag_cross_validation:
        told.nr_fold = N_FOLDS
    if not told.flag_solver_specified:
        told.solver_type, told.flag_solver_specified = SolverType.L2R_L2LOSS_SVC, True
    elif told.solver_type not in PRIMAL:
        raise InvalidInput(
            "Warm-start parameter search only available for -s 0, -s 2 and -s 11, got "
            f"-s {int(told.solver_type)}."
        )
