"""What are the shapes that travel between rooms called?"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatVector: TypeAlias = NDArray[np.float64]
FloatMatrix: TypeAlias = NDArray[np.float64]
IntMatrix: TypeAlias = NDArray[np.intp]
KernelMatrix: TypeAlias = NDArray[Any]  # rows of K, in float32 or float64
IntVector: TypeAlias = NDArray[np.intp]
BoolVector: TypeAlias = NDArray[np.bool_]
