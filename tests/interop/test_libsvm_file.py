"""Is LIBSVM's text read and written as LIBSVM does it, and are mistakes named?"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.errors import InvalidInput, ModelFormatError
from maxmargin.interop.libsvm_file import libsvm_text, read_libsvm, write_libsvm
from maxmargin.interop.text import PIECE
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.models.kernel_model import KernelModel

TEXT = """svm_type c_svc
kernel_type polynomial
degree 3
gamma 0.25
coef0 1.5
nr_class 3
total_sv 4
rho 0.5 -0.25 0.125
label 3 -1 7
probA -1 -2 -3
probB 0.5 0.25 0.125
nr_sv 2 1 1
SV
0.5 0.25 1:1.5 3:-2
1 -0.5 2:0.5
-1.5 0.75 1:1 2:2 4:4
-0.125 1
"""


def text_of(model: KernelModel, digits: int = 8) -> str:
    return b"".join(libsvm_text(model, digits=digits)).decode()


def changed(old: str, new: str) -> bytes:
    assert old in TEXT
    return TEXT.replace(old, new, 1).encode()


def test_every_field_is_read() -> None:
    model = read_libsvm(TEXT.encode())

    assert model.machine == "c_svc"
    assert model.kernel == Polynomial(0.25, 1.5, 3)
    assert model.classes.tolist() == [3, -1, 7]
    assert model.intercept.tolist() == [-0.5, 0.25, -0.125]
    assert model.prob_a is not None and model.prob_a.tolist() == [-1, -2, -3]
    assert model.prob_b is not None and model.prob_b.tolist() == [0.5, 0.25, 0.125]
    assert model.n_support is not None and model.n_support.tolist() == [2, 1, 1]
    assert model.dual_coef.tolist() == [[0.5, 1, -1.5, -0.125], [0.25, -0.5, 0.75, 1]]
    assert model.support.toarray().tolist() == [
        [1.5, 0, -2, 0],
        [0, 0.5, 0, 0],
        [1, 2, 0, 4],
        [0, 0, 0, 0],
    ]
    assert model.n_features == 4
    assert model.support_index is None


def test_reading_does_not_mind_order_spaces_or_line_ends() -> None:
    lines = TEXT.splitlines()
    header, vectors = lines[:12], lines[12:]
    text = "\r\n".join([*reversed(header), "", *vectors]).replace(" ", "  ") + "\t\r\n"

    assert text_of(read_libsvm(text.encode())) == text_of(read_libsvm(TEXT.encode()))


def test_paths_bytes_and_open_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    path.write_text(TEXT)
    expected = text_of(read_libsvm(TEXT.encode()))

    for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes())):
        assert text_of(read_libsvm(source)) == expected
    with pytest.raises(TypeError, match="binary mode"):
        read_libsvm(io.StringIO(TEXT))  # type: ignore[arg-type]


def test_writing_follows_libsvms_form() -> None:
    model = KernelModel(
        machine="epsilon_svr",
        kernel=Sigmoid(0.1, -0.5),
        support=np.array([[1 / 3, 0.0], [0.0, 2e-9]]),
        support_index=None,
        dual_coef=np.array([[1 / 3, -1.0]]),
        intercept=np.array([0.0]),
        prob_a=np.array([0.5]),
        n_features=2,
    )
    head = (
        "svm_type epsilon_svr\nkernel_type sigmoid\ngamma 0.10000000000000001\n"
        "coef0 -0.5\nnr_class 2\ntotal_sv 2\nrho 0\nprobA 0.5\nSV\n"
    )

    assert text_of(model) == (head + "0.33333333333333331 1:0.33333333 \n-1 2:2e-09 \n")
    assert text_of(model, digits=17) == (
        head
        + "0.33333333333333331 1:0.33333333333333331 \n-1 2:2.0000000000000001e-09 \n"
    )


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.1), Polynomial(0.5, 1, 2), None])
@pytest.mark.parametrize("layout", ["dense", "float32", "sparse"])
def test_seventeen_digits_lose_nothing(
    kernel: Any, layout: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    support: Any = rng.normal(size=(6, 3)) * 10.0 ** rng.integers(-9, 9, (6, 3))
    if layout == "float32":
        support = support.astype(np.float32)
    if layout == "sparse":
        support = sp.csr_matrix(support)
    model = KernelModel(
        machine="nu_svc",
        kernel=kernel,
        support=None if kernel is None else support,
        support_index=np.arange(6)[::-1],
        dual_coef=rng.normal(size=(1, 6)),
        intercept=rng.normal(size=1),
        classes=np.array([2.0, -5.0]),
        n_support=np.array([2, 4]),
        n_features=6 if kernel is None else 3,
    )
    write_libsvm(tmp_path / "a", model, digits=17)

    back = read_libsvm(tmp_path / "a")

    assert back.kernel == kernel
    assert (back.dual_coef == model.dual_coef).all()
    assert (back.intercept == model.intercept).all()
    if kernel is None:
        assert back.support_index is not None
        assert back.support_index.tolist() == [5, 4, 3, 2, 1, 0]
    else:
        whole = support.toarray() if sp.issparse(support) else support
        assert (back.support.toarray() == whole).all()


def test_indices_from_zero_are_understood() -> None:
    """LIBSVM itself asks for no particular first index."""
    model = read_libsvm(changed("1:1.5 3:-2", "0:1.5 3:-2"))

    assert model.index_base == 0
    assert model.n_features == 5
    assert "0:1.5 3:-2 \n" in text_of(model)


def test_files_of_one_class_are_read() -> None:
    text = (
        "svm_type c_svc\nkernel_type linear\nnr_class 1\ntotal_sv 0\nrho\nlabel 4\n"
        "nr_sv 0\nSV\n"
    )

    model = read_libsvm(text.encode())

    assert model.predict(np.zeros((3, 2))).tolist() == [4, 4, 4]
    assert text_of(model) == text


def test_marks_of_a_one_class_machine() -> None:
    marks = " ".join(str(k / 10) for k in range(10))
    text = (
        "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\n"
        f"prob_density_marks {marks}\nSV\n1 1:1 \n"
    )

    model = read_libsvm(text.encode())

    X = np.array([[-1.0], [0.05], [0.25], [0.9], [0.95]])
    expected = [0.001, 0.1, 0.3, 1.0, 0.999]
    assert model.probabilities(X)[:, 0].tolist() == pytest.approx(expected)
    assert model.predict(X).tolist() == [-1, 1, 1, 1, 1]


MISTAKES: dict[str, tuple[str, str, int, str]] = {
    "unknown machine": ("c_svc", "c_svm", 1, "svm_type: must be one of c_svc"),
    "unknown kernel": ("polynomial", "laplacian", 2, "kernel_type"),
    "degree": ("degree 3", "degree 3.5", 3, "whole number"),
    "negative degree": ("degree 3", "degree -1", 3, "between 0 and 10000"),
    "gamma": ("gamma 0.25", "gamma -1", 4, "0 or above"),
    "two gammas": ("gamma 0.25", "gamma 0.25 1", 4, "1 numbers expected"),
    "no gamma": ("gamma 0.25", "gamma", 4, "1 numbers expected"),
    "unknown key": ("coef0 1.5", "color 1.5", 5, "'color' is not known"),
    "a key twice": ("coef0 1.5", "gamma 1.5", 5, "'gamma' is there twice"),
    "rho": ("rho 0.5 -0.25 0.125", "rho 0.5 -0.25", 8, "3 numbers expected"),
    "label": ("label 3 -1 7", "label 3 -1 x", 9, "finite numbers"),
    "label of a number": ("label 3 -1 7", "label 3 -1 7.5", 9, "whole numbers"),
    "sum": ("nr_sv 2 1 1", "nr_sv 2 1 2", 12, "sum to total_sv"),
    "no coefficients": ("1 -0.5 2:0.5", "1", 15, "2 coefficients"),
    "a pair too early": ("1 -0.5 2:0.5", "1 2:0.5", 15, ""),
    "no colon": ("1 -0.5 2:0.5", "1 -0.5 2", 15, "index:value"),
    "two colons": ("2:0.5", "2:0.5:1", 15, "index:value"),
    "index": ("2:0.5", "2.0:0.5", 15, ""),
    "no value": ("2:0.5", "2:", 15, ""),
    "descending": ("1:1 2:2 4:4", "1:1 4:4 2:2", 16, "ascend"),
    "repeated": ("1:1 2:2 4:4", "1:1 2:2 2:4", 16, "ascend"),
    "letters": ("4:4", "4:four", 16, "got 'f'"),
    "infinity": ("4:4", "4:1e400", 16, "too large"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named_with_their_line(case: str) -> None:
    old, new, line, words = MISTAKES[case]

    with pytest.raises(ModelFormatError) as caught:
        read_libsvm(changed(old, new))

    assert caught.value.line == line
    assert words in str(caught.value)
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("-0.125 1\n", "", "total_sv says 4 support vectors, but 3 follow"),
        ("-0.125 1\n", "-0.125 1\n0 0\n", "more lines than total_sv"),
        ("nr_class 3\n", "", "'nr_class' is missing"),
        ("SV\n", "", "not known"),
        ("label 3 -1 7", "label 3 -1 3", "differ"),
        ("svm_type c_svc", "svm_type one_class", "must be 2 for one_class"),
    ],
)
def test_contradictions_are_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(ModelFormatError, match=words):
        read_libsvm(changed(old, new))


def test_what_libsvm_cannot_hold_is_refused() -> None:
    model = read_libsvm(TEXT.encode())
    fields = {name: value for name, value in vars(model).items() if name[0] != "_"}

    with pytest.raises(ModelFormatError, match="no laplacian kernel"):
        text_of(KernelModel(**(fields | {"kernel": Laplacian(0.1)})))
    for classes in (np.array(["a", "b", "c"]), np.array([0.5, 1.0, 2.0])):
        with pytest.raises(ModelFormatError, match="whole numbers"):
            text_of(KernelModel(**(fields | {"classes": classes})))


def test_rows_longer_than_a_piece_are_whole() -> None:
    """Read across the places where the text is cut."""
    rng = np.random.default_rng(0)
    width = 100_000
    support = sp.csr_matrix(rng.integers(1, 9, (3, width)).astype(float))
    model = KernelModel(
        machine="nu_svr",
        kernel=Linear(),
        support=support,
        support_index=None,
        dual_coef=np.array([[1.0, -2.0, 3.0]]),
        intercept=np.zeros(1),
        n_features=width,
    )
    data = text_of(model).encode()
    assert len(data) > 2 * PIECE

    back = read_libsvm(data)

    assert (back.support != support).nnz == 0
    wrong = data.replace(b" 99000:", b" 98999:", 1)
    with pytest.raises(ModelFormatError, match="ascend"):
        read_libsvm(wrong)


def test_models_meet_narrow_and_wide_samples() -> None:
    """LIBSVM's rule: what is not there is zero, on either side."""
    text = (
        b"svm_type epsilon_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 1\n"
        b"rho 0\nSV\n1 1:1 2:1 \n"
    )
    model = read_libsvm(text)
    wide = np.array([[1.0, 0.0, 2.0]])

    assert model.predict(wide)[0] == pytest.approx(np.exp(-0.5 * 5.0))
    assert model.predict(sp.csr_array(wide))[0] == pytest.approx(np.exp(-0.5 * 5.0))
    assert model.predict(wide[:, :1])[0] == pytest.approx(np.exp(-0.5))
    with pytest.raises(InvalidInput, match="two dimensions"):
        model.predict(wide[0])
    for X in (np.array([[np.nan]]), sp.csr_matrix([[np.inf]])):
        with pytest.raises(InvalidInput, match="not finite"):
            model.predict(X)
