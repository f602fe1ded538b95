"""Which form is a model file in? Looked up in its first bytes, or in its name."""

import os
import re
from enum import Enum

from maxmargin.errors import ModelFormatError
from maxmargin.interop.files import Content, PathLike, Source, read_content
from maxmargin.interop.liblinear_file import read_liblinear, write_liblinear
from maxmargin.interop.libsvm_file import LIBSVM_DIGITS, read_libsvm, write_libsvm
from maxmargin.interop.native import is_native, load, save
from maxmargin.interop.native_models import Model
from maxmargin.models.kernel_model import KernelModel

FIRST_KEYS = 4096  # bytes in which the first key of a text file must stand
LIBSVM_KEY = re.compile(rb"^[ \t]*(svm_type|kernel_type|total_sv|nr_sv)\b", re.M)
LIBLINEAR_KEY = re.compile(rb"^[ \t]*(solver_type|nr_feature|bias)\b", re.M)


class Form(Enum):
    """The forms that a model can be written in."""

    NATIVE = "native"
    LIBSVM = "libsvm"
    LIBLINEAR = "liblinear"
    ONNX = "onnx"


def form_of(content: Content) -> Form:
    """The form of a file that can be read, or a ModelFormatError."""
    data = content.data
    if is_native(data):
        return Form.NATIVE
    start = data[:FIRST_KEYS]
    if LIBLINEAR_KEY.search(start):
        return Form.LIBLINEAR
    if LIBSVM_KEY.search(start):
        return Form.LIBSVM
    if not data:
        content.fail("the file is empty.")
    if start[:1] == b"\x80" or start[:2] == b"PK":
        content.fail(
            "this looks like a pickle or an archive, which may run code when opened: "
            "write the model with its save method instead."
        )
    content.fail(
        "this is no model file of maxmargin, LIBSVM or LIBLINEAR. (ONNX files can be "
        "written, but not read.)"
    )


def form_for(path: PathLike, model: Model, word: str | None) -> Form:
    """The form asked for, else the one that the name suggests."""
    text = Form.LIBSVM if isinstance(model, KernelModel) else Form.LIBLINEAR
    if word is None:
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        return {".model": text, ".onnx": Form.ONNX}.get(suffix, Form.NATIVE)
    try:
        form = Form(word)
    except ValueError:
        words = ", ".join(repr(each.value) for each in Form)
        raise ModelFormatError(
            f"format must be one of {words}, or None to go by the name, got {word!r}."
        ) from None
    if form in (Form.LIBSVM, Form.LIBLINEAR) and form is not text:
        other = "LIBLINEAR" if text is Form.LIBLINEAR else "LIBSVM"
        raise ModelFormatError(
            f"a file of {form.value} cannot hold this machine: it is one of {other}'s; "
            f"pass format={text.value!r}."
        )
    return form


def read_model(source: Source, *, n_features: int | None = None) -> Model:
    """A model in any form that can be read.

    `n_features` is for LIBSVM's files, which do not say it.
    """
    content = read_content(source)
    form = form_of(content)
    if form is Form.LIBSVM:
        return read_libsvm(content, n_features=n_features)
    model = load(content) if form is Form.NATIVE else read_liblinear(content)
    check_width(model, n_features, content)
    return model


def check_width(model: Model, n_features: int | None, content: Content) -> None:
    """Refuse a number of features that is not the file's own."""
    if n_features is not None and n_features != model.n_features:
        content.fail(
            f"the model has {model.n_features} features, but n_features={n_features}: "
            "leave it out."
        )


def write_model(
    path: PathLike,
    model: Model,
    *,
    format: str | None = None,
    digits: int | None = None,
) -> None:
    """Write a model in the form asked for; None: `.model` is LIBSVM's or LIBLINEAR's,
    `.onnx` ONNX, and any other name our own.

    `digits` is for LIBSVM's files: 8 as it writes itself, 17 to keep everything.
    """
    form = form_for(path, model, format)
    if digits is not None and form is not Form.LIBSVM:
        raise ModelFormatError(f"digits is not for {form.value} files: leave it out.")
    if form is Form.NATIVE:
        save(path, model)
    elif form is Form.ONNX:
        from maxmargin.interop.onnx import write_onnx

        write_onnx(path, model)
    elif isinstance(model, KernelModel):
        write_libsvm(path, model, digits=LIBSVM_DIGITS if digits is None else digits)
    else:
        write_liblinear(path, model)
