"""What LIBSVM's and LIBLINEAR's Python interfaces share, by the name it has there."""

from maxmargin.interop.common import (
    csr_find_scale_param,
    csr_scale,
    evaluations,
    evaluations_scipy,
    svm_read_problem,
)

__all__ = [
    "csr_find_scale_param",
    "csr_scale",
    "evaluations",
    "evaluations_scipy",
    "svm_read_problem",
]
