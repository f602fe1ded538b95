"""What do svm_node and feature_node look like from Python? Facades, without pointers.

The packages hand arrays of such nodes to C. Here they are plain lists, which end with a
node of index -1 all the same.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import NotAvailable
from maxmargin.interop.samples import Samples, as_samples

END = -1  # the index of a node that ends a list


class Node:
    """A feature's index and value."""

    def __init__(self, index: int = END, value: float = 0.0) -> None:
        self.index, self.value = int(index), float(value)

    def __str__(self) -> str:
        return f"{self.index}:{self.value:g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.index}, {self.value:g})"


class NodeArray(list[Node]):
    """The nodes of one sample, in ascending order, and the one that ends them."""


def node_array(
    xi: Any,
    feature_max: int | None = None,
    *,
    is_kernel: bool = False,
    make: Callable[[int, float], Node] = Node,
    n_ends: int = 1,
) -> tuple[NodeArray, int]:
    """The nodes of a dictionary, list, tuple, array or pair of arrays."""
    if feature_max is not None and not isinstance(feature_max, int | np.integer):
        raise TypeError(f"feature_max must be a whole number, got {feature_max!r}.")
    if sp.issparse(xi) or (isinstance(xi, np.ndarray) and xi.ndim != 1):
        raise TypeError(
            "xi should be a dictionary, list, tuple, 1-d numpy array, or tuple of "
            "(index, data)"
        )
    samples = as_samples([xi], is_kernel=is_kernel)
    row = sp.csr_matrix(samples.X)
    if is_kernel and not sp.issparse(samples.X):
        row = _whole_row(samples.X)
    pairs = [
        (int(column) + samples.first, float(value))
        for column, value in zip(row.indices, row.data, strict=True)
    ]
    if feature_max:
        pairs = [pair for pair in pairs if pair[0] <= feature_max]
    largest = pairs[-1][0] if pairs else 0
    nodes = NodeArray([make(*pair) for pair in pairs])
    nodes += [make(END, 0.0) for _ in range(n_ends)]
    return nodes, largest


def _whole_row(X: Any) -> Any:
    """Zeros are kernel values too."""
    n = X.shape[1]
    return sp.csr_matrix((X[0], np.arange(n), [0, n]), shape=X.shape)


def samples_of(nodes: Iterable[Any], *, is_kernel: bool = False) -> Samples:
    """The matrix of one sample, from its nodes up to the one that ends them."""
    refuse_pointers(nodes)
    found: dict[int, float] = {}
    for node in nodes:
        if node.index == END:
            break
        found[node.index] = node.value
    return as_samples([found], is_kernel=is_kernel)


def refuse_pointers(*arguments: Any) -> None:
    """Nothing here lives at an address that C code could follow."""
    for argument in arguments:
        kind = type(argument)
        is_pointer = kind.__name__ in ("CArgObject", "c_void_p", "c_char_p")
        if is_pointer or hasattr(argument, "contents"):
            raise NotAvailable(
                "Raw ctypes pointers cannot be used here: maxmargin has no C "
                "structures behind them. Pass the objects themselves, such as "
                "svm_problem, svm_model and what gen_svm_nodearray returns."
            )
