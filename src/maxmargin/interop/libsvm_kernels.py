"""Which kernel do LIBSVM's options name, and what do rows of a given one hold?"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import InvalidInput
from maxmargin.interop.option_strings import KernelType, SvmOptions
from maxmargin.kernels.functions import RBF, Kernel, Linear, Polynomial, Sigmoid
from maxmargin.typing import IntVector

WITH_GAMMA = (KernelType.POLY, KernelType.RBF, KernelType.SIGMOID)


def kernel_of(told: SvmOptions, n_features: int) -> Kernel | None:
    """The kernel that the options name; gamma 0 is 1 / number of features."""
    gamma = float(told.gamma)
    if gamma == 0.0 and n_features > 0:
        gamma = 1.0 / n_features
    kernels: dict[int, Kernel | None] = {
        KernelType.LINEAR: Linear(),
        KernelType.POLY: Polynomial(gamma, float(told.coef0), int(told.degree)),
        KernelType.RBF: RBF(gamma),
        KernelType.SIGMOID: Sigmoid(gamma, float(told.coef0)),
        KernelType.PRECOMPUTED: None,
    }
    return kernels[told.kernel_type]


def serial_numbers(X: Any, largest: int) -> IntVector:
    """From 0: which sample each row of a precomputed kernel stands for."""
    first = X[:, :1]
    numbers = (first.toarray() if sp.issparse(first) else first)[:, 0]
    if sp.issparse(X) and (np.diff(X[:, :1].tocsr().indptr) == 0).any():
        raise InvalidInput(
            "Wrong input format: first column must be 0:sample_serial_number"
        )
    if not ((numbers >= 1) & (numbers <= largest) & (numbers % 1 == 0)).all():
        raise InvalidInput(
            "Wrong input format: sample_serial_number out of range: whole numbers "
            f"from 1 to {largest} belong in the first column."
        )
    return numbers.astype(np.intp) - 1


def kernel_columns(X: Any) -> Any:
    """Rows of a precomputed kernel without the numbers of their samples."""
    return X[:, 1:]
