"""Are the parameters usable? Asked once, at the start of fit."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.kernels.functions import KERNELS

MAX_DEGREE = 10_000
LARGEST_SEED = 2**32 - 1


class Rule(NamedTuple):
    """What a parameter must be, in code and in words."""

    holds: Callable[[Any], bool]
    words: str


def _is_real(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return not np.isnan(float(value))
    except OverflowError:
        return False


def _is_int(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _one_of(*choices: str) -> Rule:
    words = " or ".join(f"{choice!r}" for choice in choices)
    return Rule(lambda v: isinstance(v, str) and v in choices, words)


YES_OR_NO = Rule(_is_bool, "True or False")
RULES = {
    "C": Rule(lambda v: _is_real(v) and v > 0, "a number above 0 (inf is allowed)"),
    "nu": Rule(lambda v: _is_real(v) and 0 < v <= 1, "a number in (0, 1]"),
    "epsilon": Rule(
        lambda v: _is_real(v) and 0 <= v < np.inf, "a finite number, 0 or above"
    ),
    "tol": Rule(lambda v: _is_real(v) and 0 < v < np.inf, "a finite number above 0"),
    "degree": Rule(
        lambda v: _is_int(v) and 0 <= v <= MAX_DEGREE,
        f"a whole number from 0 to {MAX_DEGREE}",
    ),
    "gamma": Rule(
        lambda v: v in ("scale", "auto") if isinstance(v, str) else _is_gamma(v),
        "'scale', 'auto' or a finite number, 0 or above",
    ),
    "coef0": Rule(lambda v: _is_real(v) and np.isfinite(v), "a finite number"),
    "kernel": Rule(
        lambda v: (
            callable(v) or (isinstance(v, str) and (v in KERNELS or v == "precomputed"))
        ),
        f"one of {', '.join(KERNELS)}, precomputed, or a function of two sets of "
        "samples",
    ),
    "cache_size": Rule(
        lambda v: v == "auto" if isinstance(v, str) else _is_real(v) and 0 < v < np.inf,
        "'auto' or a finite number of MB above 0",
    ),
    "max_iter": Rule(
        lambda v: _is_int(v) and v >= -1, "a whole number, or -1 for the default limit"
    ),
    "time_limit": Rule(
        lambda v: v is None or (_is_real(v) and v > 0), "None or seconds above 0"
    ),
    "n_jobs": Rule(
        lambda v: v is None or (_is_int(v) and v != 0),
        "None, a number of threads, or -1 for all cores",
    ),
    "callback": Rule(lambda v: v is None or callable(v), "None or a function"),
    "solver": _one_of("auto", "grow", "smo"),
    "working_set": _one_of("second_order", "first_order"),
    "decision_function_shape": _one_of("ovr", "ovo"),
    "shrinking": YES_OR_NO,
    "probability": Rule(
        lambda v: _is_bool(v) or (isinstance(v, str) and v == "deprecated"),
        "True or False ('deprecated', scikit-learn's default, is False)",
    ),
    "verbose": Rule(
        lambda v: _is_bool(v) or (_is_int(v) and v >= 0), "True, False or a number"
    ),
    "calibration": _one_of("folds", "leave_one_out"),
    "predict_by": _one_of("auto", "decision", "probability"),
    "random_state": Rule(
        lambda v: (
            v is None
            or (_is_int(v) and 0 <= v <= LARGEST_SEED)
            or isinstance(v, np.random.RandomState)
        ),
        f"None, a whole number from 0 to {LARGEST_SEED}, or a RandomState",
    ),
    "break_ties": YES_OR_NO,
    "fit_intercept": YES_OR_NO,
    "warm_start": YES_OR_NO,
    "class_weight": Rule(
        lambda v: (
            v is None or isinstance(v, dict) or (isinstance(v, str) and v == "balanced")
        ),
        "None, 'balanced' or a dict of label: weight",
    ),
}


LINEAR_SOLVERS = ("auto", "dcd", "newton", "newton-cg", "interior", "proximal", "cd")
LINEAR_RULES = RULES | {
    "C": Rule(lambda v: _is_real(v) and 0 < v < np.inf, "a finite number above 0"),
    "penalty": _one_of("l1", "l2"),
    "dual": Rule(
        lambda v: v == "auto" if isinstance(v, str) else _is_bool(v),
        "'auto', True or False",
    ),
    "multi_class": _one_of("ovr", "crammer_singer"),
    "intercept_scaling": Rule(
        lambda v: _is_real(v) and np.isfinite(v), "a finite number"
    ),
    "penalize_intercept": YES_OR_NO,
    "solver": _one_of(*LINEAR_SOLVERS),
}
LOGISTIC_SOLVERS = ("lbfgs", "liblinear", "newton-cholesky", "sag", "saga")
LOGISTIC_RULES = LINEAR_RULES | {  # scikit-learn's words are taken too
    "penalty": _one_of("l1", "l2", "deprecated"),
    "l1_ratio": Rule(
        lambda v: _is_real(v) and v in (0, 1),
        "0 (the L2 penalty) or 1 (the L1 penalty); there are no mixtures of both",
    ),
    "solver": _one_of(*LINEAR_SOLVERS, *LOGISTIC_SOLVERS),
}
LINEAR_SVC_RULES = LINEAR_RULES | {"loss": _one_of("hinge", "squared_hinge")}
LINEAR_SVR_RULES = LINEAR_RULES | {
    "loss": _one_of("epsilon_insensitive", "squared_epsilon_insensitive")
}
L1_MIN_C_RULES = {
    "loss": _one_of("squared_hinge", "log"),
    "fit_intercept": YES_OR_NO,
    "intercept_scaling": Rule(
        lambda v: _is_real(v) and 0 < v < np.inf, "a finite number above 0"
    ),
}


def _is_gamma(value: Any) -> bool:
    return _is_real(value) and 0 <= value < np.inf


def check_parameter(owner: str, name: str, value: Any, rule: Rule) -> None:
    """Raise InvalidInput if a parameter breaks its rule."""
    if not rule.holds(value):
        raise InvalidInput(
            f"The {name!r} parameter of {owner} must be {rule.words}, got {value!r}."
        )


def check_parameters(estimator: Any, rules: dict[str, Rule]) -> None:
    """Raise InvalidInput for the first parameter that breaks its rule."""
    name = type(estimator).__name__
    for parameter, value in estimator.get_params(deep=False).items():
        rule = rules.get(parameter)
        if rule is not None:
            check_parameter(name, parameter, value, rule)
