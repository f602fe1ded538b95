"""How does LIBLINEAR write a model down? Its text form, read and written.

A header, then a line per feature (and one for the constant feature, if there is one)
with the weight in each hyperplane, all with 17 significant digits.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin.interop.checks import check_linear_model, whole_labels
from maxmargin.interop.files import (
    Content,
    PathLike,
    Source,
    read_content,
    write_atomically,
)
from maxmargin.interop.text import Header, Piece, as_numbers, pieces, read_header
from maxmargin.models.linear_model import CLASSIFIERS, ONE_CLASS, SOLVERS, LinearModel
from maxmargin.typing import FloatMatrix

KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
END = b"w"
BLOCK = 4096  # features formatted at a time


def read_liblinear(source: Source) -> LinearModel:
    """Read a model that LIBLINEAR wrote, or `write_liblinear`.

    Parameters
    ----------
    source : path, bytes or binary file

    Raises
    ------
    ModelFormatError
        The file is damaged or not a LIBLINEAR model; `line` says where.
    """
    content = read_content(source)
    header = read_header(content, END, KEYS)
    solver = header.word("solver_type", SOLVERS)
    n_classes = header.integer("nr_class", 1)
    classes = _read_classes(header, solver, n_classes)
    n_features = header.integer("nr_feature", 0)
    bias = header.number("bias")
    is_one = n_classes == 2 and solver != "MCSVM_CS"
    n_planes = 1 if is_one else n_classes
    weights = _read_weights(header, n_features + (bias >= 0.0), n_planes)
    model = LinearModel(
        solver=solver,
        classes=classes,
        coef=weights[:, :n_features],
        bias=bias,
        bias_weight=weights[:, n_features].copy() if bias >= 0.0 else None,
        rho=_read_rho(header, solver),
    )
    check_linear_model(model, content.path)
    return model


def _read_classes(header: Header, solver: str, n_classes: int) -> Any:
    if solver in CLASSIFIERS:
        largest = 2**63 - 1
        return header.integers("label", n_classes, -largest, largest)
    if "label" in header:
        header.fail("label", "only classifiers have classes.")
    if n_classes != 2:
        header.fail("nr_class", f"must be 2 for {solver}, got {n_classes}.")
    return None


def _read_rho(header: Header, solver: str) -> float:
    if solver == ONE_CLASS:
        return header.number("rho")
    if "rho" in header:
        header.fail("rho", "only a one-class machine has one.")
    return 0.0


def _read_weights(header: Header, n_rows: int, n_planes: int) -> FloatMatrix:
    """Planes by features."""
    content, begin = header.content, header.body
    n_values = n_rows * n_planes
    if 2 * n_values > len(content.data) - begin + 1:  # a digit and a space each
        content.fail(
            f"{n_rows} lines of {n_planes} weights expected, but the file ends before.",
            len(content.data),
        )
    values = np.empty(n_values)
    filled = 0
    for piece in pieces(content, begin):
        found = _read_piece(content, piece)
        if filled + len(found) > n_values:
            content.fail(f"more than {n_rows} x {n_planes} weights.", piece.offset)
        values[filled : filled + len(found)] = found
        filled += len(found)
    if filled != n_values:
        content.fail(
            f"{n_rows} x {n_planes} weights expected, got {filled}.", len(content.data)
        )
    return np.ascontiguousarray(values.reshape(n_rows, n_planes).T)


def _read_piece(content: Content, piece: Piece) -> Any:
    try:
        return as_numbers(b" ".join(piece.lines).split())
    except ValueError as error:
        offset = piece.offset
        for line in piece.lines:
            if not _is_readable(line):
                content.fail(f"weights expected: {error}.", offset)
            offset += len(line) + 1
        raise


def _is_readable(line: bytes) -> bool:
    try:
        as_numbers(line.split())
    except ValueError:
        return False
    return True


# Writing.


def write_liblinear(path: PathLike, model: LinearModel) -> None:
    """Write a model so that LIBLINEAR can read it.

    Parameters
    ----------
    path : str or path-like
        Replaced at once, when all is written.
    model : LinearModel

    Raises
    ------
    ModelFormatError
        Labels are not whole numbers.
    """
    write_atomically(path, liblinear_text(model))


def liblinear_text(model: LinearModel) -> Iterator[bytes]:
    """The parts of the file."""
    check_linear_model(model)
    header = "".join(f"{line}\n" for line in _header_lines(model))
    yield header.encode("ascii")
    weights = model.coef
    if model.bias >= 0.0 and model.bias_weight is not None:
        weights = np.hstack((weights, model.bias_weight[:, None]))
    zeros = b"0 " * len(weights) + b"\n"
    for first in range(0, weights.shape[1], BLOCK):
        block = weights[:, first : first + BLOCK]
        if not block.any():  # most blocks of very wide data
            yield zeros * block.shape[1]
            continue
        lines = [
            "".join(f"{value:.17g} " for value in row) + "\n"
            for row in block.T.tolist()
        ]
        yield "".join(lines).encode("ascii")


def _header_lines(model: LinearModel) -> Iterator[str]:
    yield f"solver_type {model.solver}"
    yield f"nr_class {model.n_classes}"
    if model.classes is not None:
        labels = whole_labels(model.classes, "LIBLINEAR")
        yield "label " + " ".join(str(label) for label in labels)
    yield f"nr_feature {model.n_features}"
    yield f"bias {model.bias:.17g}"
    if model.solver == ONE_CLASS:
        yield f"rho {model.rho:.17g}"
    yield END.decode()
