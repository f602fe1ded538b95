"""What does `import maxmargin` offer? Estimators, each loaded at first use.

Importing the package is cheap: scikit-learn and Numba are imported only once an
estimator is asked for (PEP 562).
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from maxmargin.estimators.bounds import l1_min_c
    from maxmargin.estimators.c_search import search_C
    from maxmargin.estimators.cross_validation import cross_validate
    from maxmargin.estimators.linear import LinearSVC, LinearSVR
    from maxmargin.estimators.linear_one_class import LinearOneClassSVM
    from maxmargin.estimators.logistic import LogisticRegression
    from maxmargin.estimators.one_class import OneClassSVM
    from maxmargin.estimators.saving import load
    from maxmargin.estimators.selection import SVCCV, SVRCV
    from maxmargin.estimators.selection_linear import LinearSVCCV, LinearSVRCV
    from maxmargin.estimators.selection_nu import NuSVCCV, NuSVRCV
    from maxmargin.estimators.svc import SVC, NuSVC
    from maxmargin.estimators.svr import SVR, NuSVR

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "LogisticRegression",
    "NuSVC",
    "NuSVCCV",
    "NuSVR",
    "NuSVRCV",
    "OneClassSVM",
    "__version__",
    "cross_validate",
    "l1_min_c",
    "load",
    "search_C",
]

_HOME = {
    "SVC": "maxmargin.estimators.svc",
    "NuSVC": "maxmargin.estimators.svc",
    "SVR": "maxmargin.estimators.svr",
    "NuSVR": "maxmargin.estimators.svr",
    "SVCCV": "maxmargin.estimators.selection",
    "SVRCV": "maxmargin.estimators.selection",
    "NuSVCCV": "maxmargin.estimators.selection_nu",
    "NuSVRCV": "maxmargin.estimators.selection_nu",
    "LinearSVCCV": "maxmargin.estimators.selection_linear",
    "LinearSVRCV": "maxmargin.estimators.selection_linear",
    "cross_validate": "maxmargin.estimators.cross_validation",
    "OneClassSVM": "maxmargin.estimators.one_class",
    "LinearSVC": "maxmargin.estimators.linear",
    "LinearSVR": "maxmargin.estimators.linear",
    "LinearOneClassSVM": "maxmargin.estimators.linear_one_class",
    "LogisticRegression": "maxmargin.estimators.logistic",
    "l1_min_c": "maxmargin.estimators.bounds",
    "load": "maxmargin.estimators.saving",
    "search_C": "maxmargin.estimators.c_search",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found  # the next access is an ordinary one
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
