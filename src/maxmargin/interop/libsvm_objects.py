"""What are LIBSVM's structures from Python? svm_problem, svm_parameter, svm_model.

Names, fields and methods are those of package libsvm-official's module svm; behind them
are arrays and our models instead of C structures.
"""

import sys
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import InvalidInput
from maxmargin.interop.common import rows_as_dicts
from maxmargin.interop.nodes import Node, NodeArray, node_array
from maxmargin.interop.option_strings import (
    KernelType,
    SvmOptions,
    SvmType,
    parse_svm_options,
)
from maxmargin.interop.printing import print_null
from maxmargin.interop.samples import gather
from maxmargin.interop.structures import LabelledSamples, TrainedModel, as_model
from maxmargin.models.kernel_model import KernelModel

NAMES = [
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "cache_size", "eps", "C"),
    *("nr_weight", "weight_label", "weight", "nu", "p", "shrinking", "probability"),
]
TYPES = {kind.name.lower(): int(kind) for kind in SvmType}
KERNELS = {
    "Linear": KernelType.LINEAR,
    "Polynomial": KernelType.POLY,
    "RBF": KernelType.RBF,
    "ExactRBF": KernelType.RBF,
    "Sigmoid": KernelType.SIGMOID,
}


class svm_node(Node):
    """A feature's index and value."""


def gen_svm_nodearray(
    xi: Any, feature_max: int | None = None, isKernel: bool = False
) -> tuple[NodeArray, int]:
    """The nodes of one sample, ended by index -1, and its largest index."""
    return node_array(xi, feature_max, is_kernel=isKernel, make=svm_node)


class svm_problem(LabelledSamples):
    """Labels and samples: `svm_problem(y, x)`, or with weights `svm_problem(W, y, x)`.

    Parameters
    ----------
    y : list, tuple or ndarray of numbers
    x : list or tuple of samples, ndarray or sparse matrix
        A sample is a list, a tuple, or a dictionary from index (from 1) to value.
    isKernel : bool, default False
        Whether x holds a precomputed kernel, with samples' numbers at index 0.
    """

    def __init__(self, y: Any, x: Any, *more: Any, isKernel: bool = False) -> None:
        weight = None
        if more and not isinstance(more[0], bool | int | np.bool_):
            weight, y, x, more = y, x, more[0], more[1:]
        if len(more) > 1:
            raise TypeError("svm_problem takes (y, x), (W, y, x), and isKernel.")
        is_kernel = bool(more[0]) if more else bool(isKernel)
        data = gather(y, x, is_kernel=is_kernel, weight=weight)
        self.is_kernel = is_kernel
        self._take(data)

    @property
    def x(self) -> list[NodeArray]:
        """The samples as lists of nodes."""
        return [nodes_of(row) for row in sparse_rows(self.X, self.first)]


class svm_parameter(SvmOptions):
    """Options as fields: `svm_parameter('-c 4 -g 0.5')`."""

    def __init__(self, options: Any = None) -> None:
        self.parse_options("" if options is None else options)

    def __str__(self) -> str:
        names = [*NAMES, "cross_validation", "nr_fold", "print_func"]
        return "\n ".join(f"{name}: {getattr(self, name)}" for name in names)

    def set_to_default_values(self) -> None:
        """As if no option had been given."""
        super().__init__()
        self.svm_type, self.kernel_type = int(self.svm_type), int(self.kernel_type)
        self.print_func: Any = None  # None: the standard output

    def parse_options(self, options: Any) -> None:
        """Defaults, and then what a string or list of words says."""
        self.set_to_default_values()
        parse_svm_options(options, into=self)
        self.svm_type, self.kernel_type = int(self.svm_type), int(self.kernel_type)
        self.print_func = print_null if self.is_quiet else None

    def plain(self) -> SvmOptions:
        """The options alone; fields may have been set by hand."""
        return SvmOptions(**{f.name: getattr(self, f.name) for f in fields(SvmOptions)})


class svm_model(TrainedModel):
    """A trained or loaded model, with LIBSVM's methods and fields.

    `core` is the model itself, a `KernelModel`.
    """

    _trainers = "svm_train or svm_load_model"
    core: KernelModel

    def __init__(
        self,
        core: KernelModel | None = None,
        param: svm_parameter | None = None,
        rows: Any = None,
        prob: svm_problem | None = None,
    ) -> None:
        self._core, self._rows, self._prob = core, rows, prob
        if core is not None:
            self.param = _parameter_of(core) if param is None else param

    def get_svm_type(self) -> int:
        """0 to 4, as in svm_forms."""
        return TYPES[self.core.machine]

    def get_svr_probability(self) -> float:
        """The scale of a regression's errors, 0 where it is not known."""
        if self.core.is_regressor and self.core.has_probabilities:
            return self.core.sigma
        print(
            "Model doesn't contain information for SVR probability inference",
            file=sys.stderr,
        )
        return 0.0

    def get_sv_indices(self) -> list[int]:
        """Where the support vectors were in the training set, from 1.

        Zeros for a model from a file, which does not say.
        """
        if self._rows is None:
            return [0] * self.get_nr_sv()
        return [int(row) + 1 for row in self._rows]

    def get_nr_sv(self) -> int:
        """How many support vectors there are."""
        return self.core.n_vectors

    def is_probability_model(self) -> bool:
        """Whether -b 1 can be asked for."""
        return self.core.has_probabilities

    def get_sv_coef(self) -> list[tuple[float, ...]]:
        """One tuple per support vector, of one number per rival class."""
        return [tuple(row) for row in self.core.dual_coef.T.tolist()]

    def get_SV(self) -> list[dict[int, float]]:
        """The support vectors, from index to value."""
        core = self.core
        if core.kernel is None and self._prob is not None:
            return sparse_rows(self._prob.X[self._rows], 0)
        if core.kernel is None:
            assert core.support_index is not None
            return [{0: float(row) + 1.0} for row in core.support_index]
        return sparse_rows(core.support, core.index_base)

    # The fields of the structure.

    @property
    def l(self) -> int:  # noqa: E743  LIBSVM's own name
        return self.get_nr_sv()

    @property
    def SV(self) -> list[NodeArray]:
        return [nodes_of(row) for row in self.get_SV()]

    @property
    def sv_coef(self) -> list[list[float]]:
        coef: list[list[float]] = self.core.dual_coef.tolist()
        return coef

    @property
    def rho(self) -> list[float]:
        return (0.0 - self.core.intercept).tolist()

    @property
    def probA(self) -> list[float] | None:
        return _listed(self.core.prob_a)

    @property
    def probB(self) -> list[float] | None:
        return _listed(self.core.prob_b)

    @property
    def prob_density_marks(self) -> list[float] | None:
        return _listed(self.core.density_marks)

    @property
    def sv_indices(self) -> list[int]:
        return self.get_sv_indices()

    @property
    def nSV(self) -> list[int] | None:
        counts = self.core.n_support
        return None if counts is None else [int(n) for n in counts]


def toPyModel(model_ptr: Any) -> svm_model:
    """What libsvm.svm_train returns is a model already."""
    return as_model(model_ptr, svm_model, "libsvm.svm_train")


def _parameter_of(core: KernelModel) -> svm_parameter:
    """What a file says about how its model was trained."""
    param = svm_parameter()
    param.svm_type = TYPES[core.machine]
    if core.kernel is None:
        param.kernel_type = int(KernelType.PRECOMPUTED)
        return param
    name = type(core.kernel).__name__
    if name not in KERNELS:
        raise InvalidInput(
            f"LIBSVM has no kernel {name}: use maxmargin.load, whose models predict."
        )
    param.kernel_type = int(KERNELS[name])
    for field in ("degree", "gamma", "coef0"):
        if hasattr(core.kernel, field):
            setattr(param, field, getattr(core.kernel, field))
    return param


def sparse_rows(X: Any, first: int) -> list[dict[int, float]]:
    """A dictionary per row, from index to value; column 0 has index `first`."""
    X = sp.csr_matrix(X)
    return rows_as_dicts(sp.csr_matrix((X.data, X.indices + first, X.indptr)))


def nodes_of(row: dict[int, float], make: Any = svm_node) -> NodeArray:
    """The nodes of a dictionary, and the one that ends them."""
    return NodeArray([*(make(*pair) for pair in row.items()), make()])


def _listed(values: Any) -> list[float] | None:
    return None if values is None else values.tolist()
