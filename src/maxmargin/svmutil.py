"""LIBSVM's Python interface: `from maxmargin.svmutil import *`.

Functions, classes, options and results are those of package libsvm-official 3.37.
"""

from ctypes import c_double

from maxmargin.interop.common import (
    csr_find_scale_param,
    csr_scale,
    evaluations,
    svm_read_problem,
)
from maxmargin.interop.libsvm_functions import (
    libsvm,
    svm_load_model,
    svm_predict,
    svm_save_model,
    svm_train,
)
from maxmargin.interop.libsvm_objects import (
    gen_svm_nodearray,
    svm_model,
    svm_node,
    svm_parameter,
    svm_problem,
    toPyModel,
)
from maxmargin.interop.option_strings import KernelType as kernel_names
from maxmargin.interop.option_strings import SvmType as svm_forms
from maxmargin.interop.printing import PRINT_STRING_FUN, print_null

__all__ = [
    "PRINT_STRING_FUN",
    "c_double",
    "csr_find_scale_param",
    "csr_scale",
    "evaluations",
    "gen_svm_nodearray",
    "kernel_names",
    "libsvm",
    "print_null",
    "svm_forms",
    "svm_load_model",
    "svm_model",
    "svm_node",
    "svm_parameter",
    "svm_predict",
    "svm_problem",
    "svm_read_problem",
    "svm_save_model",
    "svm_train",
    "toPyModel",
]
