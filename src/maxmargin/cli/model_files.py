"""Which model is in a file, and which scaling belongs to it?

Our own format keeps the scaling of the features with the model; the text formats of
LIBSVM and LIBLINEAR cannot, and people keep a file of ranges beside them.
"""

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.cli.console import Failure, about
from maxmargin.data.scaling import Scaling
from maxmargin.errors import ModelFormatError
from maxmargin.interop.files import Content, read_content
from maxmargin.interop.liblinear_file import read_liblinear
from maxmargin.interop.libsvm_file import read_libsvm
from maxmargin.interop.model_files import Form, form_of
from maxmargin.interop.native import COLUMNS, Saved, load_with_notes, save_with_notes
from maxmargin.interop.native_models import Model
from maxmargin.models.kernel_model import KernelModel, pick_columns
from maxmargin.typing import IntVector


@dataclass(frozen=True)
class ModelFile:
    """A model with what belongs to it."""

    model: Model
    scaling: Scaling | None = None
    index_base: int = 1  # of the first column in text files
    notes: dict[str, Any] = field(default_factory=dict)  # what else `fit` wrote down
    columns: IntVector | None = None  # of the data that the model takes; None: all
    form: Form = Form.NATIVE
    n_bytes: int = 0

    @property
    def n_features(self) -> int:
        """Of the data, whether the model takes all of them or not."""
        if self.columns is None:
            return self.model.n_features
        return int(self.columns[-1]) + 1

    def prepare(self, X: Any) -> Any:
        """Samples as the model saw them in training: its columns alone, scaled."""
        if self.columns is not None:
            X, _ = pick_columns(sparse.csr_matrix(X), self.columns)
        return X if self.scaling is None else self.scaling.apply(X)


def read_model(path: str) -> ModelFile:
    """Read a model of any form."""
    try:
        content = read_content(path)
        file = _of_content(content)
        return replace(file, form=form_of(content), n_bytes=len(content.data))
    except ModelFormatError as error:
        reason = about(error, path)
        raise Failure(f"can't open model file {path}: {reason}") from error
    except OSError as error:
        raise Failure(f"can't open model file {path}: {error.strerror}") from error


def _of_content(content: Content) -> ModelFile:
    form = form_of(content)
    if form is Form.LIBSVM:
        model = read_libsvm(content)
        return ModelFile(model, index_base=model.index_base)
    if form is Form.LIBLINEAR:
        return ModelFile(read_liblinear(content))
    return _of_saved(load_with_notes(content))


def write_model(path: str, file: ModelFile) -> None:
    """Write our own format, scaling and notes included."""
    notes: dict[str, Any] = {"fit": file.notes, "index_base": file.index_base}
    arrays: dict[str, Any] = {}
    if file.scaling is not None:
        notes["scaling"] = {"lower": file.scaling.lower, "upper": file.scaling.upper}
        arrays = {"scaling.low": file.scaling.low, "scaling.high": file.scaling.high}
    if file.columns is not None:
        arrays[COLUMNS] = file.columns.astype(np.int64)
    try:
        save_with_notes(path, Saved(file.model, notes, arrays))
    except OSError as error:
        raise Failure(f"can't save model to file {path}: {error.strerror}") from error


def _of_saved(saved: Saved) -> ModelFile:
    base = saved.notes.get("index_base", 1)
    if isinstance(saved.model, KernelModel):
        base = saved.model.index_base
    limits, notes = saved.notes.get("scaling"), saved.notes.get("fit")
    scaling = None if limits is None else _scaling(limits, saved)
    if base not in (0, 1):
        raise ModelFormatError(f"index_base must be 0 or 1, got {base!r}.")
    notes = notes if isinstance(notes, dict) else {}
    return ModelFile(saved.model, scaling, base, notes, _columns(saved))


def _columns(saved: Saved) -> IntVector | None:
    """The columns of the data that the model takes, once they fit it."""
    columns = saved.arrays.get(COLUMNS)
    if columns is None:
        return None
    is_usable = columns.dtype == np.int64 and columns.shape == (saved.model.n_features,)
    if (
        not is_usable
        or not len(columns)
        or columns[0] < 0
        or (np.diff(columns) < 1).any()
    ):
        raise ModelFormatError("the columns do not fit the features of the model.")
    return columns


def _scaling(limits: Any, saved: Saved) -> Scaling:
    """What the notes say, once it fits the model."""
    try:
        lower, upper = float(limits["lower"]), float(limits["upper"])
        low, high = saved.arrays["scaling.low"], saved.arrays["scaling.high"]
    except (KeyError, TypeError, ValueError):
        raise ModelFormatError("the scaling of the features is incomplete.") from None
    n = saved.model.n_features
    is_whole = low.dtype == high.dtype == np.float64 and low.shape == high.shape == (n,)
    if not is_whole or not np.isfinite([lower, upper, *low, *high]).all():
        raise ModelFormatError("the scaling does not fit the features of the model.")
    return Scaling(lower, upper, low, high)


def size_text(path: str) -> str:
    """How large a file is, for people."""
    n_bytes = os.stat(path).st_size
    return f"{n_bytes / 1024:.1f} KiB" if n_bytes < 1 << 20 else f"{n_bytes >> 20} MiB"
