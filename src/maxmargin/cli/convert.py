"""How does a model get from one format into another?"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import Context, Failure, check_writable
from maxmargin.cli.flags import Flag, one_of, parse, whole

if TYPE_CHECKING:
    from maxmargin.cli.model_files import ModelFile
    from maxmargin.interop.model_files import Form

USAGE = """\
Usage: maxmargin convert [options] MODEL OUT

Writes a model of maxmargin, LIBSVM or LIBLINEAR in another format.

options:
  --to auto|native|libsvm|liblinear|onnx
                 (default: by OUT's name: .onnx is ONNX, .model the text format of the
                 machine, LIBSVM's or LIBLINEAR's, any other name maxmargin's own)
  --digits n     of support vectors in LIBSVM's format (default 8, as LIBSVM; 17 keeps
                 everything)
  --json, --help

A scaling that belongs to the model becomes part of it where it can (ONNX, linear
machines); beside a LIBSVM file it is written as OUT.range, for svm-scale -r.
"""
FLAGS: dict[str, Flag] = {
    "--to": one_of("auto", "native", "libsvm", "liblinear", "onnx"),
    "--digits": whole(1),
}
MOST_DIGITS = 17


def run(arguments: list[str], context: Context) -> int:
    """Read, and write again."""
    told = parse(arguments, FLAGS, USAGE, range(2, 3))
    path, out = told.names
    digits = told["--digits"]
    if digits is not None and digits > MOST_DIGITS:
        raise Failure(f"--digits needs at most {MOST_DIGITS}, got {digits}")
    check_writable(out, f"can't save model to file {out}", path)
    from maxmargin.cli.model_files import read_model, size_text
    from maxmargin.interop.model_files import Form, form_for

    file = read_model(path)
    word = None if told["--to"] == "auto" else told["--to"]
    file = _as_machine_of(file, word)
    form = form_for(out, file.model, word)
    if digits is not None and form is not Form.LIBSVM:
        raise Failure(f"--digits is for LIBSVM's format only, and {out} is not in that")
    written = _write(file, form, out, digits)
    for name in written:
        context.say(f"{name} ({size_text(name)})")
    context.report(format=form.value, written=written)
    return 0


def _as_machine_of(file: "ModelFile", word: str | None) -> "ModelFile":
    """A linear machine becomes LIBSVM's or LIBLINEAR's, if that is asked for."""
    from maxmargin.cli.linear_twins import as_kernel_model, as_linear_model
    from maxmargin.models.kernel_model import KernelModel

    is_kernel = isinstance(file.model, KernelModel)
    if word == "liblinear" and isinstance(file.model, KernelModel):
        return replace(file, model=as_linear_model(file.model))
    if word == "libsvm" and not is_kernel:
        return _with_scaling_inside(file, turn=as_kernel_model)
    return file


def _write(file: "ModelFile", form: "Form", out: str, digits: int | None) -> list[str]:
    """Write the files, whose names are returned."""
    from maxmargin.cli.all_features import with_all_features
    from maxmargin.cli.model_files import write_model
    from maxmargin.interop.model_files import Form
    from maxmargin.interop.model_files import write_model as write_any
    from maxmargin.models.linear_model import LinearModel

    if form is Form.NATIVE:
        write_model(out, file)
        return [out]
    if form is Form.ONNX:
        _write_onnx(file, out)
        return [out]
    if isinstance(file.model, LinearModel):
        file = _with_scaling_inside(file)
    file = with_all_features(file)
    write_any(out, file.model, format=form.value, digits=digits)
    if file.scaling is None:
        return [out]
    return [out, _write_ranges(file, f"{out}.range")]


def _with_scaling_inside(file: "ModelFile", turn: Any = None) -> "ModelFile":
    """A linear machine that takes features as they are."""
    from maxmargin.cli.linear_twins import unscaled
    from maxmargin.models.linear_model import LinearModel

    assert isinstance(file.model, LinearModel)
    model = file.model
    if file.scaling is not None:
        model = unscaled(model, file.scaling)
    return replace(file, model=model if turn is None else turn(model), scaling=None)


def _write_ranges(file: "ModelFile", path: str) -> str:
    import numpy as np

    from maxmargin.cli.ranges import Ranges, write_ranges

    assert file.scaling is not None
    columns = file.columns
    if columns is None:
        columns = np.arange(file.scaling.n_features)
    indices = columns + file.index_base
    write_ranges(path, Ranges(indices, file.scaling, None))
    return path


def _write_onnx(file: "ModelFile", out: str) -> None:
    from maxmargin.cli.all_features import check_cells, with_all_features
    from maxmargin.interop.files import write_atomically
    from maxmargin.interop.onnx import to_onnx
    from maxmargin.models.kernel_model import KernelModel

    if isinstance(file.model, KernelModel):
        check_cells(file.model.n_vectors, file.n_features)
    file = with_all_features(file)
    proto = to_onnx(file.model)
    if file.scaling is not None:
        _scale_input(proto, file)
    write_atomically(out, [proto.SerializeToString()])


def _scale_input(proto: Any, file: "ModelFile") -> None:
    """Put two nodes before all others: X times a factor, plus an offset."""
    from onnx import checker, helper, numpy_helper

    from maxmargin.cli.all_features import scaling_of_all_features
    from maxmargin.cli.linear_twins import factor_and_offset

    factor, offset = factor_and_offset(scaling_of_all_features(file))
    for node in proto.graph.node:
        for i, name in enumerate(node.input):
            if name == "X":
                node.input[i] = "scaled_X"
    nodes = [
        helper.make_node("Mul", ["X", "scaling_factor"], ["stretched_X"]),
        helper.make_node("Add", ["stretched_X", "scaling_offset"], ["scaled_X"]),
        *proto.graph.node,
    ]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    for name, values in (("scaling_factor", factor), ("scaling_offset", offset)):
        proto.graph.initializer.append(numpy_helper.from_array(values, name))
    checker.check_model(proto)
