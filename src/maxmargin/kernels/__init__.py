"""Where do rows of K come from?"""

from maxmargin.kernels.functions import (
    RBF,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from maxmargin.kernels.gram import Gram, MatrixGram, RowsGram, VectorGram

__all__ = [
    "RBF",
    "Gram",
    "Kernel",
    "Laplacian",
    "Linear",
    "MatrixGram",
    "Polynomial",
    "RowsGram",
    "Sigmoid",
    "VectorGram",
]
