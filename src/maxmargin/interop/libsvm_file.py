"""How does LIBSVM write a model down? Its text form, read and written.

A header, then a line per support vector: its coefficients, then `index:value` where it
is not zero. LIBSVM writes values with 8 significant digits and everything else with 17;
`digits=17` keeps values too.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import ModelFormatError
from maxmargin.interop.checks import (
    LARGEST_DEGREE,
    N_MARKS,
    check_kernel_model,
    whole_labels,
)
from maxmargin.interop.files import (
    Content,
    PathLike,
    Source,
    read_content,
    write_atomically,
)
from maxmargin.interop.support_lines import SupportLines, read_support_lines
from maxmargin.interop.text import Header, read_header
from maxmargin.kernels.functions import (
    RBF,
    ExactRBF,
    Kernel,
    Linear,
    Polynomial,
    Sigmoid,
)
from maxmargin.models.kernel_model import MACHINES, KernelModel
from maxmargin.typing import FloatVector, IntVector

KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
KEYS = (
    "svm_type",
    "kernel_type",
    "degree",
    "gamma",
    "coef0",
    "nr_class",
    "total_sv",
    "rho",
    "label",
    "probA",
    "probB",
    "prob_density_marks",
    "nr_sv",
)
END = b"SV"
LIBSVM_DIGITS = 8
ALL_DIGITS = 17
BLOCK = 4096  # support vectors formatted at a time


def read_libsvm(source: Source, *, n_features: int | None = None) -> KernelModel:
    """Read a model that LIBSVM wrote, or `write_libsvm`.

    Parameters
    ----------
    source : path, bytes or binary file
    n_features : int, default None
        How many features the model was trained on; the file does not say. None: as
        many as the support vectors show.

    Raises
    ------
    ModelFormatError
        The file is damaged or not a LIBSVM model; `line` says where.
    """
    content = read_content(source)
    header = read_header(content, END, KEYS)
    machine = header.word("svm_type", MACHINES)
    kernel_type = header.word("kernel_type", KERNELS)
    is_classifier = machine in ("c_svc", "nu_svc")
    n_classes = header.integer("nr_class", 1)
    if not is_classifier and n_classes != 2:
        header.fail("nr_class", f"must be 2 for {machine}, got {n_classes}.")
    n_pairs = n_classes * (n_classes - 1) // 2
    rho = header.numbers("rho", n_pairs)
    classes, n_support = _read_classes(header, n_classes, is_classifier)
    lines = _read_lines(header, max(1, n_classes - 1), n_support)
    parts = _place(lines, kernel_type, content, n_features)
    model = KernelModel(
        machine=machine,
        kernel=_read_kernel(header, kernel_type),
        dual_coef=lines.coef,
        intercept=0.0 - rho,
        classes=classes,
        n_support=n_support,
        **parts,
        **_read_probabilities(header, machine, n_pairs),
    )
    check_kernel_model(model, content.path)
    return model


def _read_classes(
    header: Header, n_classes: int, is_classifier: bool
) -> tuple[Any, IntVector | None]:
    if is_classifier:
        largest = 2**63 - 1
        labels = header.integers("label", n_classes, -largest, largest)
        return labels, header.integers("nr_sv", n_classes, 0)
    for key in ("label", "nr_sv"):
        if key in header:
            header.fail(key, "only classifiers have classes.")
    return None, None


def _read_lines(
    header: Header, n_coef: int, n_support: IntVector | None
) -> SupportLines:
    n_vectors = header.integer("total_sv", 0)
    if n_support is not None and int(n_support.sum()) != n_vectors:
        header.fail("nr_sv", f"must sum to total_sv, which is {n_vectors}.")
    return read_support_lines(header.content, header.body, n_vectors, n_coef)


def _place(
    lines: SupportLines, kernel_type: str, content: Content, n_features: int | None
) -> dict[str, Any]:
    """The support vectors as a matrix; for a precomputed kernel, their numbers."""
    if kernel_type == "precomputed":
        return _place_numbers(lines, content)
    base = 0 if lines.place.min(initial=1) == 0 else 1
    seen = int(lines.place.max(initial=base - 1)) + 1 - base
    width = seen if n_features is None else n_features
    if width < seen:
        raise ModelFormatError(
            f"the support vectors have {seen} features, but n_features={n_features}.",
            path=content.path,
        )
    column = lines.place - base
    parts = (lines.value, column.astype(np.int32), lines.indptr)
    support = sp.csr_matrix(parts, shape=(len(lines.indptr) - 1, width))
    return {
        "support": support,
        "support_index": None,
        "n_features": width,
        "index_base": base,
    }


def _place_numbers(lines: SupportLines, content: Content) -> dict[str, Any]:
    n = len(lines.indptr) - 1
    serial = lines.value
    is_one_each = len(serial) == n and (np.diff(lines.indptr) == 1).all()
    is_whole = (serial == np.floor(serial)).all() and (serial >= 1.0).all()
    if not (is_one_each and not lines.place.any() and is_whole) or (
        serial.max(initial=0.0) > 2**31
    ):
        raise ModelFormatError(
            "with a precomputed kernel, a support vector is written as 0:number, the "
            "number of its training sample from 1 on.",
            path=content.path,
        )
    numbers = serial.astype(np.intp) - 1
    return {
        "support": None,
        "support_index": numbers,
        "n_features": int(numbers.max(initial=-1)) + 1,
    }


def _read_kernel(header: Header, kernel_type: str) -> Kernel | None:
    if kernel_type == "precomputed":
        return None
    if kernel_type == "linear":
        return Linear()
    gamma = header.number("gamma")
    if gamma < 0.0:
        header.fail("gamma", f"must be 0 or above, got {gamma:g}.")
    if kernel_type == "rbf":
        return RBF(gamma)
    coef0 = header.number("coef0")
    if kernel_type == "sigmoid":
        return Sigmoid(gamma, coef0)
    if kernel_type == "polynomial":
        return Polynomial(gamma, coef0, header.integer("degree", 0, LARGEST_DEGREE))
    header.fail("kernel_type", f"{kernel_type!r} is not known.")


def _read_probabilities(header: Header, machine: str, n_pairs: int) -> dict[str, Any]:
    """Sigmoids of a classifier, sigma of a regressor, marks of a one-class machine."""
    sizes = {"probA": 1}
    if machine in ("c_svc", "nu_svc"):
        sizes = {"probA": n_pairs, "probB": n_pairs}
    if machine == "one_class":
        sizes = {"prob_density_marks": N_MARKS}
    fields = {
        "probA": "prob_a",
        "probB": "prob_b",
        "prob_density_marks": "density_marks",
    }
    found = {}
    for key, field in fields.items():
        if key not in header:
            continue
        if key not in sizes:
            header.fail(key, f"does not belong to {machine}.")
        found[field] = header.numbers(key, sizes[key])
    return found


# Writing.


def write_libsvm(
    path: PathLike, model: KernelModel, *, digits: int = LIBSVM_DIGITS
) -> None:
    """Write a model so that LIBSVM can read it.

    Parameters
    ----------
    path : str or path-like
        Replaced at once, when all is written.
    model : KernelModel
    digits : int, default 8
        Significant digits of the support vectors' values: 8 as LIBSVM writes them, 17
        to keep float64 whole.

    Raises
    ------
    ModelFormatError
        LIBSVM has no such kernel, or labels are not whole numbers.
    """
    if not (isinstance(digits, int) and 1 <= digits <= ALL_DIGITS):
        raise ModelFormatError(
            f"digits must be a whole number from 1 to {ALL_DIGITS}, got {digits!r}."
        )
    write_atomically(path, libsvm_text(model, digits=digits))


def libsvm_text(model: KernelModel, *, digits: int = LIBSVM_DIGITS) -> Iterator[bytes]:
    """The parts of the file."""
    check_kernel_model(model)
    header = "".join(f"{line}\n" for line in _header_lines(model))
    yield header.encode("ascii")
    for first in range(0, model.n_vectors, BLOCK):
        near = slice(first, min(first + BLOCK, model.n_vectors))
        yield _vector_lines(model, near, f".{digits}g").encode("ascii")


def _header_lines(model: KernelModel) -> Iterator[str]:
    yield f"svm_type {model.machine}"
    yield from _kernel_lines(model.kernel)
    yield f"nr_class {model.n_classes}"
    yield f"total_sv {model.n_vectors}"
    yield _line("rho", 0.0 - model.intercept)  # no -0
    if model.classes is not None:
        labels = whole_labels(model.classes, "LIBSVM")
        yield "label " + " ".join(str(label) for label in labels)
    if model.prob_a is not None:
        yield _line("probA", model.prob_a)
    if model.prob_b is not None:
        yield _line("probB", model.prob_b)
    if model.density_marks is not None:
        yield _line("prob_density_marks", model.density_marks)
    if model.n_support is not None:
        yield "nr_sv " + " ".join(str(n) for n in model.n_support.tolist())
    yield END.decode()


def _kernel_lines(kernel: Kernel | None) -> Iterator[str]:
    if kernel is None:
        yield "kernel_type precomputed"
    elif isinstance(kernel, Linear):
        yield "kernel_type linear"
    elif isinstance(kernel, Polynomial):
        yield "kernel_type polynomial"
        yield f"degree {kernel.degree}"
    elif isinstance(kernel, RBF | ExactRBF):
        yield "kernel_type rbf"
    elif isinstance(kernel, Sigmoid):
        yield "kernel_type sigmoid"
    else:
        name = type(kernel).__name__.lower()
        raise ModelFormatError(
            f"LIBSVM's file has no {name} kernel: save in the native form, or use a "
            "linear, polynomial, rbf, sigmoid or precomputed kernel."
        )
    if kernel is not None and not isinstance(kernel, Linear):
        yield f"gamma {kernel.gamma:.17g}"
    if isinstance(kernel, Polynomial | Sigmoid):
        yield f"coef0 {kernel.coef0:.17g}"


def _line(key: str, values: FloatVector) -> str:
    return " ".join([key, *(f"{value:.17g}" for value in values.tolist())])


def _vector_lines(model: KernelModel, near: slice, form: str) -> str:
    coef = model.dual_coef[:, near].T.tolist()
    if model.kernel is None:
        assert model.support_index is not None
        tails = [f"0:{i + 1} " for i in model.support_index[near].tolist()]
    else:
        tails = _row_texts(model.support[near], model.index_base, form)
    return "".join(
        "".join(f"{value:.17g} " for value in row) + tail + "\n"
        for row, tail in zip(coef, tails, strict=True)
    )


def _row_texts(support: Any, base: int, form: str) -> list[str]:
    rows = sp.csr_matrix(support).astype(np.float64)
    rows.eliminate_zeros()
    texts = [
        f"{column}:{value:{form}} "
        for column, value in zip(
            (rows.indices.astype(np.int64) + base).tolist(),
            rows.data.tolist(),
            strict=True,
        )
    ]
    ends = rows.indptr.tolist()
    return ["".join(texts[a:b]) for a, b in pairwise(ends)]
