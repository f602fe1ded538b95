"""How does a model run where there is no Python? As an ONNX graph in float64.

Only operators of ONNX itself are used, none of its machine learning extension, whose
support vector machines compute in float32.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.labels import pairs_of
from maxmargin.errors import ModelFormatError, NotAvailable, refuse
from maxmargin.interop.checks import check_kernel_model, check_linear_model
from maxmargin.interop.files import PathLike, write_atomically
from maxmargin.interop.native_models import Model
from maxmargin.kernels.functions import (
    RBF,
    ExactRBF,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import LinearModel
from maxmargin.models.multiclass import class_parts
from maxmargin.typing import FloatMatrix

OPSET = 17
IR_VERSION = 10  # newer ones are not understood by every runtime
DOUBLE, INT64, STRING = "DOUBLE", "INT64", "STRING"


def write_onnx(path: PathLike, model: Model) -> None:
    """Write a model as an ONNX file; it cannot be read back."""
    write_atomically(path, [to_onnx(model).SerializeToString()])


def to_onnx(model: Model) -> Any:
    """A model as an `onnx.ModelProto`.

    Input `X` is float64 of shape (N, n_features). Outputs are `decisions`, as the
    model's own; `label` of classifiers and one-class machines, whole numbers or text;
    `value` of regressors; `probabilities` of logistic regression, a column per class
    in the order of `classes`, which the file's metadata list.
    """
    graph = _Graph()
    if isinstance(model, LinearModel):
        check_linear_model(model)
        decisions = graph.add(
            "Add",
            graph.add("MatMul", "X", graph.constant(model.coef.T)),
            graph.constant(model.intercept),
        )
    else:
        check_kernel_model(model)
        decisions = _kernel_decisions(graph, model)
    graph.output(decisions, "decisions", DOUBLE, (None, _n_decisions(model)))
    if model.is_regressor:
        value = graph.add("Squeeze", decisions, graph.constant(np.array([1])))
        graph.output(value, "value", DOUBLE, (None,))
    else:
        _add_labels(graph, model, decisions)
    if isinstance(model, LinearModel) and model.is_logistic:
        _add_probabilities(graph, decisions, len(model.coef))
    return graph.proto(model)


def _n_decisions(model: Model) -> int:
    if isinstance(model, LinearModel):
        return len(model.coef)
    return len(model.intercept)


class _Graph:
    """Nodes and constants in the order in which they were added."""

    def __init__(self) -> None:
        self.onnx = _import_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node; returns the name of its output."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        make = self.onnx.helper.make_node
        self.nodes.append(make(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """An array in the file; returns its name."""
        name = f"constant_{len(self.constants)}"
        array = np.array(values, order="C")  # a number stays one
        if array.dtype.kind == "U":
            array = array.astype(object)
        make = self.onnx.numpy_helper.from_array
        self.constants.append(make(array, name))
        return name

    def output(
        self, source: str, name: str, kind: str, shape: tuple[int | None, ...]
    ) -> None:
        """Give a result its public name."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        self.nodes.append(helper.make_node("Identity", [source], [name]))
        dimensions = ["N" if size is None else size for size in shape]
        kind_number = getattr(types, kind)
        self.outputs.append(
            helper.make_tensor_value_info(name, kind_number, dimensions)
        )

    def proto(self, model: Model) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        shape = ["N", model.n_features]
        X = helper.make_tensor_value_info("X", types.DOUBLE, shape)
        graph = helper.make_graph(
            self.nodes, "maxmargin", [X], self.outputs, self.constants
        )
        proto = helper.make_model(
            graph,
            producer_name="maxmargin",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        if model.classes is not None:
            words = "\n".join(str(label) for label in model.classes.tolist())
            helper.set_model_props(proto, {"classes": words})
        self.onnx.checker.check_model(proto)
        return proto


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError as missing:
        raise NotAvailable(
            "Writing ONNX files needs the package onnx: pip install 'onnx>=1.16'."
        ) from missing
    return onnx


# Kernels.


def _kernel_decisions(graph: _Graph, model: KernelModel) -> str:
    """K times the coefficients of each pair, plus its intercept."""
    if model.kernel is None:
        assert model.support_index is not None
        where = graph.constant(model.support_index.astype(np.int64))
        K = graph.add("Gather", "X", where, axis=1)
    else:
        K = _kernel_values(graph, model)
    sums = graph.add("MatMul", K, graph.constant(_by_pair(model)))
    return graph.add("Add", sums, graph.constant(model.intercept))


def _by_pair(model: KernelModel) -> FloatMatrix:
    """A column of coefficients per pair, zero for vectors of other classes."""
    if not model.is_classifier:
        return model.dual_coef.T
    assert model.n_support is not None
    pairs = pairs_of(model.n_classes)
    columns = np.zeros((model.n_vectors, len(pairs)))
    parts = class_parts(model.dual_coef, model.n_support)
    for number, (i, j) in enumerate(pairs):
        columns[parts[i][0], number] = parts[i][1][:, j - 1]
        columns[parts[j][0], number] = parts[j][1][:, i]
    return columns


def _kernel_values(graph: _Graph, model: KernelModel) -> str:
    support = model.support
    if sp.issparse(support):
        support = support.toarray()
    support = np.asarray(support, dtype=np.float64)
    kernel = model.kernel
    if isinstance(kernel, RBF | ExactRBF):
        return _rbf_values(graph, support, kernel.gamma)
    if isinstance(kernel, Laplacian):
        rows = graph.add("Unsqueeze", "X", graph.constant(np.array([1])))
        apart = graph.add("Abs", graph.add("Sub", rows, graph.constant(support)))
        far = graph.add("ReduceSum", apart, graph.constant(np.array([2])), keepdims=0)
        return _decay(graph, far, kernel.gamma)
    if kernel is None or isinstance(kernel, Linear):
        return graph.add("MatMul", "X", graph.constant(support.T))
    if not isinstance(kernel, Polynomial | Sigmoid):
        refuse(kernel, "An ONNX graph of the kernel")
    # gamma goes into the constant: runtimes fuse MatMul and Mul, in float32
    scaled = graph.add("MatMul", "X", graph.constant(kernel.gamma * support.T))
    moved = graph.add("Add", scaled, graph.constant(np.float64(kernel.coef0)))
    if isinstance(kernel, Polynomial):
        return graph.add("Pow", moved, graph.constant(np.float64(kernel.degree)))
    return graph.add("Tanh", moved)


def _rbf_values(graph: _Graph, support: FloatMatrix, gamma: float) -> str:
    """From dot products of rows moved to their middle, where norms are smallest."""
    middle = support.mean(axis=0) if len(support) else np.zeros(support.shape[1])
    near = support - middle
    moved = graph.add("Sub", "X", graph.constant(middle))
    squares = graph.add("Mul", moved, moved)
    axis = graph.constant(np.array([1]))
    norms = graph.add("ReduceSum", squares, axis, keepdims=1)
    dots = graph.add("MatMul", moved, graph.constant(-2.0 * near.T))
    own = graph.constant(np.einsum("ij,ij->i", near, near))
    squared = graph.add("Add", graph.add("Add", dots, norms), own)
    far = graph.add("Max", squared, graph.constant(np.float64(0.0)))
    return _decay(graph, far, gamma)


def _decay(graph: _Graph, far: str, gamma: float) -> str:
    exponent = graph.add("Mul", far, graph.constant(np.float64(-gamma)))
    return graph.add("Exp", exponent)


# Labels and probabilities.


def _add_labels(graph: _Graph, model: Model, decisions: str) -> None:
    labels = np.array([1, -1]) if model.classes is None else model.classes
    if labels.dtype.kind in "biu":
        labels = labels.astype(np.int64)
        kind = INT64
    elif labels.dtype.kind in "UO":
        kind = STRING
    elif labels.dtype.kind == "f":
        labels = labels.astype(np.float64)
        kind = DOUBLE
    else:
        raise ModelFormatError(f"ONNX has no labels of type {labels.dtype}.")
    place = _winner(graph, model, decisions, len(labels))
    found = graph.add("Gather", graph.constant(labels), place, axis=0)
    graph.output(found, "label", kind, (None,))


def _winner(graph: _Graph, model: Model, decisions: str, n_classes: int) -> str:
    """The place of the class that is predicted, for every row."""
    zero = graph.constant(np.float64(0.0))
    if isinstance(model, KernelModel) and n_classes > 2:
        types = graph.onnx.TensorProto
        is_first = graph.add("Greater", decisions, zero)
        wins = graph.add("Cast", is_first, to=types.DOUBLE)
        ballots = np.zeros((len(model.intercept), n_classes))
        for number, (i, j) in enumerate(pairs_of(n_classes)):
            ballots[number, [i, j]] = 1.0, -1.0
        base = graph.constant((ballots < 0.0).sum(axis=0).astype(np.float64))
        cast = graph.add("MatMul", wins, graph.constant(ballots))
        votes = graph.add("Add", cast, base)
        return graph.add("ArgMax", votes, axis=1, keepdims=0)
    if n_classes > 2:
        return graph.add("ArgMax", decisions, axis=1, keepdims=0)
    if n_classes == 1:
        rows = graph.add("Shape", "X", start=0, end=1)
        return _zeros(graph, rows)
    first = graph.add("Gather", decisions, graph.constant(np.array(0)), axis=1)
    is_second = graph.add("Not", graph.add("Greater", first, zero))
    return graph.add("Cast", is_second, to=graph.onnx.TensorProto.INT64)


def _zeros(graph: _Graph, shape: str) -> str:
    value = graph.onnx.helper.make_tensor(
        "value", graph.onnx.TensorProto.INT64, [1], [0]
    )
    return graph.add("ConstantOfShape", shape, value=value)


def _add_probabilities(graph: _Graph, decisions: str, n_planes: int) -> None:
    """Logistic functions; of more than two classes, divided by their sum."""
    likely = graph.add("Sigmoid", decisions)
    if n_planes == 1:
        others = graph.add("Sigmoid", graph.add("Neg", decisions))
        shares = graph.add("Concat", likely, others, axis=1)
    else:
        axis = graph.constant(np.array([1]))
        total = graph.add("ReduceSum", likely, axis, keepdims=1)
        shares = graph.add("Div", likely, total)
    graph.output(shares, "probabilities", DOUBLE, (None, max(2, n_planes)))
