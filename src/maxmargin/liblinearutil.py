"""LIBLINEAR's Python interface: `from maxmargin.liblinearutil import *`.

Functions, classes, options and results are those of package liblinear-official 2.50.
"""

from maxmargin.interop.common import (
    csr_find_scale_param,
    csr_scale,
    evaluations,
    svm_read_problem,
)
from maxmargin.interop.liblinear_functions import (
    liblinear,
    load_model,
    predict,
    save_model,
    train,
)
from maxmargin.interop.liblinear_objects import (
    feature_node,
    gen_feature_nodearray,
    model,
    parameter,
    problem,
    toPyModel,
)
from maxmargin.interop.option_strings import SolverType as solver_names
from maxmargin.interop.printing import print_null

__all__ = [
    "csr_find_scale_param",
    "csr_scale",
    "evaluations",
    "feature_node",
    "gen_feature_nodearray",
    "liblinear",
    "load_model",
    "model",
    "parameter",
    "predict",
    "print_null",
    "problem",
    "save_model",
    "solver_names",
    "svm_read_problem",
    "toPyModel",
    "train",
]
