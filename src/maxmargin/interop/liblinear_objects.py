"""What are LIBLINEAR's structures from Python? problem, parameter, model.

Names, fields and methods are those of package liblinear-official's module liblinear;
behind them are arrays and our models instead of C structures.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.interop.libsvm_objects import nodes_of, sparse_rows
from maxmargin.interop.nodes import Node, NodeArray, node_array
from maxmargin.interop.option_strings import (
    LinearOptions,
    SolverType,
    parse_linear_options,
)
from maxmargin.interop.printing import print_null
from maxmargin.interop.samples import DataSet, gather
from maxmargin.interop.structures import LabelledSamples, TrainedModel, as_model
from maxmargin.models.linear_model import ONE_CLASS, LinearModel
from maxmargin.typing import FloatMatrix

NAMES = [
    *("solver_type", "eps", "C", "nr_weight", "weight_label", "weight", "p", "nu"),
    *("init_sol", "regularize_bias", "w_recalc", "bias"),
    *("flag_cross_validation", "flag_C_specified", "flag_p_specified"),
    *("flag_solver_specified", "flag_find_parameters", "nr_fold", "print_func"),
]


class feature_node(Node):
    """A feature's index and value."""


def gen_feature_nodearray(
    xi: Any, feature_max: int | None = None
) -> tuple[NodeArray, int]:
    """The nodes of one sample, room for a bias, the end, and its largest index."""
    return node_array(xi, feature_max, make=feature_node, n_ends=2)


class problem(LabelledSamples):
    """Labels and samples: `problem(y, x, bias=-1)`, or with weights `problem(W, y, x)`.

    Parameters
    ----------
    y : list, tuple or ndarray of numbers
    x : list or tuple of samples, ndarray or sparse matrix
        A sample is a list, a tuple, or a dictionary from index (from 1) to value.
    bias : float, default -1
        Value of a constant feature; below 0 there is none.
    """

    def __init__(self, y: Any, x: Any, *more: Any, bias: float = -1) -> None:
        weight = None
        if more and not isinstance(more[0], int | float | np.number):
            weight, y, x, more = y, x, more[0], more[1:]
        if len(more) > 1:
            raise TypeError("problem takes (y, x), (W, y, x), and bias.")
        data = gather(y, x, weight=weight)
        if data.first == 0:
            raise InvalidInput("Features are counted from 1, and one has index 0.")
        self._take(data)
        self.bias: float = -1
        self.set_bias(more[0] if more else bias)

    def set_bias(self, bias: float) -> None:
        """Give the constant feature another value; below 0, take it away."""
        self.n += int(bias >= 0) - int(self.bias >= 0)
        self.bias = bias

    def copy(self) -> "problem":
        """Another problem on the same samples."""
        other = problem.__new__(problem)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def x(self) -> list[NodeArray]:
        """The samples as lists of nodes, the constant feature at the end."""
        rows = [nodes_of(row, feature_node) for row in sparse_rows(self.X, 1)]
        for nodes in rows:
            index = self.n if self.bias >= 0 else -1
            nodes.insert(len(nodes) - 1, feature_node(index, self.bias))
        return rows

    @property
    def data(self) -> DataSet:
        """What training needs, without the constant feature."""
        return super().data._replace(largest=self.n - int(self.bias >= 0))


class parameter(LinearOptions):
    """Options as fields: `parameter('-s 0 -c 4')`."""

    def __init__(self, options: Any = None) -> None:
        self.parse_options("" if options is None else options)

    def __str__(self) -> str:
        return "\n ".join(f"{name}: {getattr(self, name)}" for name in NAMES)

    def set_to_default_values(self) -> None:
        """As if no option had been given; eps is then infinite, as in LIBLINEAR."""
        super().__init__()
        self.solver_type = int(self.solver_type)
        self.print_func: Any = None  # None: the standard output

    def parse_options(self, options: Any) -> None:
        """Defaults, and then what a string or list of words says."""
        self.set_to_default_values()
        parse_linear_options(options, into=self)
        self.solver_type = int(self.solver_type)
        self.print_func = print_null if self.is_quiet else None

    def plain(self, bias: float) -> LinearOptions:
        """The options alone, with the problem's bias; fields may be set by hand."""
        names = [f.name for f in fields(LinearOptions)]
        told = LinearOptions(**{name: getattr(self, name) for name in names})
        told.bias = float(bias)
        return told


class model(TrainedModel):
    """A trained or loaded model, with LIBLINEAR's methods and fields.

    `core` is the model itself, a `LinearModel`.
    """

    _trainers = "train or load_model"
    core: LinearModel

    def __init__(
        self, core: LinearModel | None = None, param: parameter | None = None
    ) -> None:
        self._core = core
        if core is not None:
            self.param = _parameter_of(core) if param is None else param

    def get_nr_feature(self) -> int:
        """Without the constant one."""
        return self.core.n_features

    def get_decfun_coef(self, feat_idx: int, label_idx: int = 0) -> float:
        """The weight of a feature (from 1) for a class; 0 where there is none."""
        if not 1 <= feat_idx <= self.core.n_features:
            return 0.0
        return self._of_class(self.core.coef[:, feat_idx - 1], label_idx)

    def get_decfun_bias(self, label_idx: int = 0) -> float:
        """The bias times its weight; 0 where there is none."""
        if self.is_oneclass_model():
            raise InvalidInput("A one-class model has no bias, but rho.")
        if self.core.bias < 0:
            return 0.0
        return self._of_class(self.core.intercept, label_idx)

    def get_decfun_rho(self) -> float:
        """What a one-class model subtracts."""
        if not self.is_oneclass_model():
            raise InvalidInput("Only one-class models have rho.")
        return self.core.rho

    def get_decfun(self, label_idx: int = 0) -> tuple[list[float], float]:
        """All weights, and what is added."""
        weights = [
            self.get_decfun_coef(j + 1, label_idx) for j in range(self.core.n_features)
        ]
        if self.is_oneclass_model():
            return weights, -self.get_decfun_rho()
        return weights, self.get_decfun_bias(label_idx)

    def _of_class(self, values: Any, label_idx: int) -> float:
        """Of two classes, the second has what the first has, turned round."""
        core = self.core
        if not core.is_classifier:
            return float(values[0])
        if not 0 <= label_idx < core.n_classes:
            return 0.0
        if len(core.coef) == 1 and core.n_classes == 2:
            return float(values[0]) if label_idx == 0 else -float(values[0])
        return float(values[label_idx])

    def is_probability_model(self) -> bool:
        """Whether -b 1 can be asked for."""
        return self.core.is_logistic

    def is_regression_model(self) -> bool:
        """Whether it predicts numbers."""
        return self.core.is_regressor

    def is_oneclass_model(self) -> bool:
        """Whether it detects outliers."""
        return self.core.solver == ONE_CLASS

    # The fields of the structure.

    @property
    def nr_feature(self) -> int:
        return self.get_nr_feature()

    @property
    def bias(self) -> float:
        return self.core.bias

    @property
    def rho(self) -> float:
        return self.core.rho

    @property
    def w(self) -> list[float]:
        """Weights, all classes' of a feature together, the constant one's last."""
        return _table(self.core).T.ravel().tolist()


def toPyModel(model_ptr: Any) -> model:
    """What liblinear.train returns is a model already."""
    return as_model(model_ptr, model, "liblinear.train")


def _table(core: LinearModel) -> FloatMatrix:
    if core.bias < 0 or core.bias_weight is None:
        return core.coef
    return np.column_stack((core.coef, core.bias_weight))


def _parameter_of(core: LinearModel) -> parameter:
    param = parameter()
    param.solver_type = int(SolverType[core.solver])
    param.bias = core.bias
    return param
