"""How is a fitted estimator kept, and brought back?

In our own form it returns whole: parameters, labels of any kind, support, certificate.
The forms of LIBSVM and LIBLINEAR keep what those programs know.
"""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import ModelFormatError
from maxmargin.estimators.as_model import (
    LINEAR_WORDS,
    MACHINES,
    NAMES,
    as_estimator,
    as_model,
    class_named,
    fill_kernel,
    fill_linear,
    name_of,
    reordered,
)
from maxmargin.interop.files import Content, PathLike, Source, read_content
from maxmargin.interop.model_files import (
    Form,
    check_width,
    form_for,
    form_of,
    read_model,
    write_model,
)
from maxmargin.interop.native import (
    Saved,
    load_with_notes,
    refuse_scaling,
    save_with_notes,
)
from maxmargin.interop.native_models import Model
from maxmargin.models.kernel_model import KernelModel
from maxmargin.solvers import Status

NUMBERS = (  # attributes of a fit: a number, or an array of one per problem
    "objective_",
    "dual_gap_",
    "kkt_violation_",
    "n_iter_",
    "fit_status_",
    "class_weight_",
    "intercept_",
    "_largest",
    "conformal_residuals_",
)
SIGMOIDS = ("probA_", "probB_")  # of linear machines, whose models have none
POWER = "prob_power_"  # theirs too
LARGEST_SIZE = 2**62


def save_estimator(
    estimator: Any, path: PathLike, *, format: str | None, digits: int | None
) -> None:
    """Write a fitted estimator; see `BaseMachine.save`."""
    model = as_model(estimator)
    form = form_for(path, model, format)
    if form is Form.NATIVE and digits is None:
        save_with_notes(path, _saved(estimator, model))
        return
    if form is Form.ONNX:
        model = _for_onnx(estimator, model)
    write_model(path, model, format=form.value, digits=digits)


def load(path: Source, *, n_features: int | None = None) -> Any:
    """Read a fitted estimator from a model file.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        A file written by an estimator's `save`, by LIBSVM or by LIBLINEAR; which of
        them is seen from its content. No file can make Python run anything.
    n_features : int, default None
        For LIBSVM's files, which do not hold it: the number of features. None means as
        many as the support vectors show.

    Returns
    -------
    estimator
        From our own form the estimator as it was. From the others one that predicts the
        same; C, nu and epsilon are not in those files and take their defaults.

    Raises
    ------
    ModelFormatError
        The file is damaged, or not a model file.
    """
    content = read_content(path)
    if form_of(content) is not Form.NATIVE:
        return as_estimator(read_model(content, n_features=n_features))
    saved = load_with_notes(content)
    check_width(saved.model, n_features, content)
    if "estimator" not in saved.notes:
        refuse_scaling(saved, content)
        return as_estimator(saved.model)
    return _restored(saved, content)


def _for_onnx(estimator: Any, model: Model) -> Model:
    """Two classes: decision values positive for classes_[1], as scikit-learn has it."""
    if model.classes is None or not isinstance(model, KernelModel):
        return model
    if estimator.break_ties and len(model.classes) > 2:
        raise ModelFormatError(
            "break_ties=True has no ONNX form: set_params(break_ties=False) first."
        )
    if len(model.classes) > 2:
        return model
    return reordered(model, np.array([1, 0]))


# Our own form: what a model does not know goes to its notes.


def _saved(estimator: Any, model: Model) -> Saved:
    name = name_of(estimator)
    if type(estimator).__name__ != name:
        raise ModelFormatError(
            f"{type(estimator).__name__} is derived from {name}, and a file holds only "
            "maxmargin's own estimators: save with format='libsvm' or 'liblinear'."
        )
    notes: dict[str, Any] = {"estimator": name, "parameters": {}, "numbers": {}}
    arrays: dict[str, Any] = {}
    for key, value in estimator.get_params(deep=False).items():
        notes["parameters"][key] = _as_note(name, key, value)
    for key in NUMBERS if name in MACHINES else (*NUMBERS, *SIGMOIDS, POWER):
        if hasattr(estimator, key):
            _put_number(notes, arrays, key, getattr(estimator, key))
    if hasattr(estimator, "status_"):
        notes["status"] = estimator.status_.name
    if hasattr(estimator, "shape_fit_"):
        notes["shape_fit"] = [int(n) for n in estimator.shape_fit_]
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names_in_"] = estimator.feature_names_in_
    if hasattr(estimator, "coef_") and name not in MACHINES:
        notes["is_sparse"] = bool(sp.issparse(estimator.coef_))
    return Saved(model, notes, arrays)


def _put_number(
    notes: dict[str, Any], arrays: dict[str, Any], key: str, value: Any
) -> None:
    if isinstance(value, np.ndarray):
        arrays[key] = value
    else:
        notes["numbers"][key] = _as_note("a fit", key, value)


def _as_note(owner: str, key: str, value: Any) -> Any:
    """A parameter as JSON; what JSON lacks is an object with one key."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, dict):
        pairs = [
            [_as_note(owner, key, label), _as_note(owner, key, weight)]
            for label, weight in value.items()
        ]
        return {"dict": pairs}
    what = "a function" if callable(value) else f"a {type(value).__name__}"
    raise ModelFormatError(
        f"the parameter {key!r} of {owner} is {what}, which cannot be saved: "
        f"set_params({key}=None) first, and set it again after loading."
    )


# And back. Here nothing is taken for granted.


def _restored(saved: Saved, content: Content) -> Any:
    notes = saved.notes
    name = notes.get("estimator")
    if not isinstance(name, str) or name not in NAMES:
        content.fail("the file names no estimator of maxmargin.")
    is_kernel = isinstance(saved.model, KernelModel)
    if is_kernel != (name in MACHINES) or (
        is_kernel and saved.model.machine != MACHINES[name]  # type: ignore[union-attr]
    ):
        content.fail(f"the file says {name}, but holds the model of another.")
    kind = class_named(name)
    parameters = _parameters(notes.get("parameters"), kind, content)
    if not is_kernel:
        _check_solver(saved.model, name, content)
    estimator = kind(**parameters)
    extra = _extra(saved, content)
    if isinstance(saved.model, KernelModel):
        fill_kernel(estimator, saved.model)
    else:
        fill_linear(estimator, saved.model)
        if notes.get("is_sparse") is True:
            estimator.coef_ = sp.csr_matrix(estimator.coef_)
    estimator.__dict__.update(extra)
    return estimator


def _check_solver(model: Any, name: str, content: Content) -> None:
    if LINEAR_WORDS[model.solver][0] != name:
        content.fail(f"the file says {name}, but holds the model of another.")


def _parameters(notes: Any, kind: Any, content: Content) -> dict[str, Any]:
    if not isinstance(notes, dict) or not set(notes) <= set(kind._get_param_names()):
        content.fail(f"the file holds parameters that {kind.__name__} does not have.")
    return {key: _of_note(value, content) for key, value in notes.items()}


def _of_note(note: Any, content: Content) -> Any:
    if note is None or isinstance(note, bool | str | int | float):
        return note
    if isinstance(note, dict) and len(note) == 1:
        if note.get("float") in ("inf", "-inf", "nan"):
            return float(note["float"])
        pairs = note.get("dict")
        if isinstance(pairs, list) and all(_is_pair(pair) for pair in pairs):
            return {
                _of_note(key, content): _of_note(value, content) for key, value in pairs
            }
    content.fail("the file holds a parameter of unknown kind.")


def _is_pair(pair: Any) -> bool:
    """Two plain values."""
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and not isinstance(pair[0], list)
        and not (isinstance(pair[0], dict) and "dict" in pair[0])
    )


def _extra(saved: Saved, content: Content) -> dict[str, Any]:
    """Attributes that only a fit knows."""
    notes = saved.notes
    found: dict[str, Any] = {}
    numbers = notes.get("numbers", {})
    if not isinstance(numbers, dict):
        content.fail("the numbers of a fit must be a JSON object.")
    is_kernel = isinstance(saved.model, KernelModel)
    for key, note in numbers.items():
        value = _of_note(note, content)
        is_known = key in NUMBERS or (key == POWER and not is_kernel)
        if not is_known or not isinstance(value, int | float):
            content.fail("the file holds an attribute of unknown kind.")
        if key == POWER and not 0.0 < value < math.inf:
            content.fail(f"{POWER} must be finite and above 0.")
        found[key] = value
    found |= _extra_arrays(saved, content)
    if "status" in notes:
        if notes["status"] not in Status.__members__:
            content.fail("the file holds an unknown status.")
        found["status_"] = Status[notes["status"]]
    if "shape_fit" in notes:
        found["shape_fit_"] = _shape(notes["shape_fit"], content)
    return found


def _extra_arrays(saved: Saved, content: Content) -> dict[str, Any]:
    found = {}
    model = saved.model
    for key, array in saved.arrays.items():
        if key == "feature_names_in_":
            is_fine = array.dtype == object and array.shape == (model.n_features,)
        else:
            is_known = key in NUMBERS or (
                key in SIGMOIDS and not isinstance(model, KernelModel)
            )
            is_fine = is_known and array.dtype.kind in "fi" and array.ndim == 1
        if key in ("intercept_", *SIGMOIDS):
            is_fine = is_fine and len(array) == _n_planes(model)
        if not is_fine:
            content.fail(f"the array {key[:80]!r} is not what an estimator keeps.")
        found[key] = array
    return found


def _n_planes(model: Model) -> int:
    if isinstance(model, KernelModel):
        return len(model.intercept)
    is_joint_pair = model.solver == "MCSVM_CS" and len(model.coef) == 2
    return 1 if is_joint_pair else len(model.coef)


def _shape(note: Any, content: Content) -> tuple[int, ...]:
    is_shape = isinstance(note, list) and len(note) <= 2
    if not is_shape or not all(type(n) is int and 0 <= n < LARGEST_SIZE for n in note):
        content.fail("shape_fit must be one or two whole numbers.")
    return tuple(note)
