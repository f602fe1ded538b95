"""What is a model made of? Facts for a header, arrays for the rest, and back."""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import ModelFormatError
from maxmargin.interop.checks import check_kernel_model, check_linear_model
from maxmargin.kernels.functions import KERNELS, ExactRBF, Kernel
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import LinearModel

Model: TypeAlias = KernelModel | LinearModel
Parts: TypeAlias = tuple[str, dict[str, Any], dict[str, Any]]

OF_KERNEL_MODEL = ("dual_coef", "intercept")  # always there
OPTIONAL = (
    "support_index",
    "classes",
    "n_support",
    "prob_a",
    "prob_b",
    "density_marks",
)
FLOATS = (np.float32, np.float64)


def kernel_word(kernel: Kernel | None) -> str:
    """What the kernel is called in a constructor, and in our file."""
    if kernel is None:
        return "precomputed"
    if isinstance(kernel, ExactRBF):
        return "rbf"
    for word, kind in KERNELS.items():
        if isinstance(kernel, kind):
            return word
    raise ModelFormatError(
        f"the kernel {type(kernel).__name__} has no word in `KERNELS`, and cannot be "
        "saved."
    )


def parts_of_model(model: Model) -> Parts:
    """Its kind, facts that JSON can hold, and arrays."""
    if isinstance(model, LinearModel):
        return _parts_of_linear(model)
    check_kernel_model(model)
    kernel: dict[str, Any] = {"name": kernel_word(model.kernel)}
    if model.kernel is not None:
        kernel |= {
            name: _number_kind(type(model.kernel), name)(value)
            for name, value in model.kernel._asdict().items()
        }
    facts = {
        "machine": model.machine,
        "kernel": kernel,
        "n_features": int(model.n_features),
        "index_base": int(model.index_base),
        "layout": _layout(model.support),
    }
    if model.prob_power != 1.0:
        facts["prob_power"] = float(model.prob_power)
    arrays = {name: getattr(model, name) for name in OF_KERNEL_MODEL}
    for name in OPTIONAL:
        if getattr(model, name) is not None:
            arrays[name] = getattr(model, name)
    return "kernel", facts, arrays | _support_arrays(model.support)


def _layout(support: Any) -> str:
    if support is None:
        return "none"
    if not sp.issparse(support):
        return "dense"
    return "csr_array" if isinstance(support, sp.sparray) else "csr_matrix"


def _support_arrays(support: Any) -> dict[str, Any]:
    if support is None:
        return {}
    if not sp.issparse(support):
        return {"support": support}
    return {
        "support.data": support.data,
        "support.indices": support.indices,
        "support.indptr": support.indptr,
    }


def _parts_of_linear(model: LinearModel) -> Parts:
    check_linear_model(model)
    facts = {
        "solver": model.solver,
        "bias": float(model.bias),
        "rho": float(model.rho),
    }
    arrays = {"coef": model.coef}
    for name in ("classes", "bias_weight"):
        if getattr(model, name) is not None:
            arrays[name] = getattr(model, name)
    return "linear", facts, arrays


# Back again. Here nothing is taken for granted.


def model_of_parts(
    kind: str, facts: dict[str, Any], arrays: dict[str, Any], path: str | None
) -> Model:
    """A model from the parts that a file held, once they fit together."""
    try:
        if kind == "kernel":
            return _kernel_model(facts, arrays, path)
        if kind == "linear":
            return _linear_model(facts, arrays, path)
    except (KeyError, TypeError) as error:
        raise ModelFormatError(
            f"a part of the model is missing, or not of its kind ({error}).", path=path
        ) from error
    raise ModelFormatError(f"models of kind {kind[:80]!r} are not known.", path=path)


def _fact(facts: dict[str, Any], key: str, kind: type) -> Any:
    value = facts[key]
    if type(value) is not kind:
        raise TypeError(f"{key} must be {kind.__name__}")
    return value


def _float_array(arrays: dict[str, Any], name: str) -> Any:
    found = arrays[name]
    if found.dtype != np.float64:
        raise TypeError(f"{name} must be float64")
    return found


def _kernel_model(
    facts: dict[str, Any], arrays: dict[str, Any], path: str | None
) -> KernelModel:
    n_features = _fact(facts, "n_features", int)
    base = _fact(facts, "index_base", int)
    if not 0 <= n_features < 2**63 or base not in (0, 1):
        raise TypeError("n_features or index_base")
    probabilities = {
        name: _float_array(arrays, name)
        for name in ("prob_a", "prob_b", "density_marks")
        if name in arrays
    }
    dual_coef = _float_array(arrays, "dual_coef")
    if dual_coef.ndim != 2:
        raise TypeError("dual_coef must have two dimensions")
    model = KernelModel(
        machine=_fact(facts, "machine", str),
        kernel=_kernel(_fact(facts, "kernel", dict)),
        support=_support(facts, arrays, dual_coef.shape[1], n_features),
        support_index=arrays.get("support_index"),
        dual_coef=dual_coef,
        intercept=_float_array(arrays, "intercept"),
        classes=arrays.get("classes"),
        n_support=arrays.get("n_support"),
        n_features=n_features,
        index_base=base,
        prob_power=_fact({"prob_power": 1.0} | facts, "prob_power", float),
        **probabilities,
    )
    check_kernel_model(model, path)
    return model


def _kernel(facts: dict[str, Any]) -> Kernel | None:
    name = _fact(facts, "name", str)
    if name == "precomputed":
        return None
    kind = KERNELS[name]
    values = {key: _fact(facts, key, _number_kind(kind, key)) for key in kind._fields}
    return kind(**values)


def _number_kind(kind: type[Kernel], field: str) -> type:
    """Whether a kernel's number is whole, as its class says."""
    return int if kind.__annotations__[field] is int else float


def _support(
    facts: dict[str, Any], arrays: dict[str, Any], n: int, n_features: int
) -> Any:
    layout = _fact(facts, "layout", str)
    if layout == "none":
        return None
    if layout == "dense":
        support = arrays["support"]
        if support.dtype not in FLOATS or support.ndim != 2:
            raise TypeError("support must be a matrix of floats")
        return support
    kind = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}[layout]
    data = arrays["support.data"]
    indices, indptr = arrays["support.indices"], arrays["support.indptr"]
    is_usable = (
        data.dtype in FLOATS
        and indices.dtype in (np.int32, np.int64)
        and indptr.dtype == indices.dtype
        and data.ndim == indices.ndim == indptr.ndim == 1
        and len(indptr) == n + 1
        and len(data) == len(indices) == indptr[-1]
    )
    if not is_usable:
        raise TypeError("support must be a CSR matrix of floats")
    support = kind((n, n_features), dtype=data.dtype)
    support.data, support.indices, support.indptr = data, indices, indptr
    return support  # looked at by check_kernel_model


def _linear_model(
    facts: dict[str, Any], arrays: dict[str, Any], path: str | None
) -> LinearModel:
    weight = _float_array(arrays, "bias_weight") if "bias_weight" in arrays else None
    model = LinearModel(
        solver=_fact(facts, "solver", str),
        classes=arrays.get("classes"),
        coef=_float_array(arrays, "coef"),
        bias=_fact(facts, "bias", float),
        bias_weight=weight,
        rho=_fact(facts, "rho", float),
    )
    check_linear_model(model, path)
    return model
