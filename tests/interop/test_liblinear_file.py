"""Is LIBLINEAR's text read and written as LIBLINEAR does it, and are mistakes named?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.errors import InvalidInput, ModelFormatError
from maxmargin.interop.liblinear_file import (
    liblinear_text,
    read_liblinear,
    write_liblinear,
)
from maxmargin.models.linear_model import SOLVERS, LinearModel

TEXT = """solver_type L1R_LR
nr_class 3
label 3 -1 7
nr_feature 2
bias 2.5
w
0.5 0.25 -1
1 0 3
-0.125 2 4
"""
ONE = """solver_type ONECLASS_SVM
nr_class 2
nr_feature 2
bias -1
rho 0.5
w
1\x20
2\x20
"""


def text_of(model: LinearModel) -> str:
    return b"".join(liblinear_text(model)).decode()


def changed(old: str, new: str) -> bytes:
    assert old in TEXT
    return TEXT.replace(old, new, 1).encode()


def test_every_field_is_read() -> None:
    model = read_liblinear(TEXT.encode())

    assert model.solver == "L1R_LR"
    assert model.classes.tolist() == [3, -1, 7]
    assert model.coef.tolist() == [[0.5, 1.0], [0.25, 0.0], [-1.0, 3.0]]
    assert model.bias == 2.5
    assert model.bias_weight is not None
    assert model.bias_weight.tolist() == [-0.125, 2.0, 4.0]
    assert model.intercept.tolist() == [-0.3125, 5.0, 10.0]


def test_one_class_machines_have_a_rho() -> None:
    model = read_liblinear(ONE.encode())

    assert model.decisions(np.array([[1.0, 1.0], [0.0, 0.0]])).tolist() == [
        [2.5],
        [-0.5],
    ]
    assert model.predict(np.array([[1.0, 1.0], [0.0, 0.0]])).tolist() == [1, -1]
    assert text_of(model) == ONE


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0, 2.5])
@pytest.mark.parametrize("solver", SOLVERS)
def test_all_types_come_back(
    solver: str, bias: float, n_classes: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    is_classifier = "SVR" not in solver and solver != "ONECLASS_SVM"
    n_planes = n_classes if is_classifier else 1
    if n_planes == 2 and solver != "MCSVM_CS":
        n_planes = 1
    model = LinearModel(
        solver=solver,
        classes=np.arange(n_classes) - 1 if is_classifier else None,
        coef=rng.normal(size=(n_planes, 4)),
        bias=bias,
        bias_weight=rng.normal(size=n_planes) if bias >= 0 else None,
        rho=0.3 if solver == "ONECLASS_SVM" else 0.0,
    )
    write_liblinear(tmp_path / "a", model)

    back = read_liblinear(tmp_path / "a")

    assert (back.coef == model.coef).all()
    assert (back.intercept == model.intercept).all()
    X = rng.normal(size=(5, 4))
    assert (back.predict(X) == model.predict(X)).all()


MISTAKES: dict[str, tuple[str, str, int, str]] = {
    "solver": ("L1R_LR", "L1R_LX", 1, "must be one of L2R_LR"),
    "classes": ("nr_class 3", "nr_class 0", 2, "between 1"),
    "labels": ("label 3 -1 7", "label 3 -1", 3, "3 numbers expected"),
    "features": ("nr_feature 2", "nr_feature two", 4, "finite numbers"),
    "bias": ("bias 2.5", "bias nan", 5, "finite numbers"),
    "unknown key": ("bias 2.5", "bios 2.5", 5, "'bios' is not known"),
    "weights": ("1 0 3", "1 0 3:1", 8, "weights expected"),
    "letters": ("1 0 3", "1 0 x", 8, "got 'x'"),
    "too large": ("1 0 3", "1 0 1e999", 8, "too large"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named_with_their_line(case: str) -> None:
    old, new, line, words = MISTAKES[case]

    with pytest.raises(ModelFormatError) as caught:
        read_liblinear(changed(old, new))

    assert caught.value.line == line
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("-0.125 2 4\n", "", "weights expected, got 6"),
        ("-0.125 2 4\n", "-0.125 2 4 5\n", "more than 3 x 3 weights"),
        ("nr_feature 2", "nr_feature 99", "ends before"),
        ("nr_class 3\n", "", "'nr_class' is missing"),
        ("bias 2.5", "bias 2.5\nrho 1", "only a one-class machine"),
        ("L1R_LR", "L2R_L2LOSS_SVR", "only classifiers"),
        ("label 3 -1 7", "label 3 3 7", "differ"),
        ("w\n", "", "not known"),
    ],
)
def test_contradictions_are_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(ModelFormatError, match=words):
        read_liblinear(changed(old, new))


def test_weights_that_are_zero_in_long_stretches_come_back(tmp_path: Path) -> None:
    coef = np.zeros((3, 20_001))
    coef[:, [5, 9_000, 20_000]] = [
        [1.5, -2.0, 1e-300],
        [0.0, 3.0, 0.0],
        [1.0, 1.0, 1.0],
    ]
    model = LinearModel("L2R_L2LOSS_SVC", np.array([1, 2, 3]), coef)

    write_liblinear(tmp_path / "m", model)

    lines = (tmp_path / "m").read_text().partition("\nw\n")[2].splitlines()
    assert len(lines) == 20_001
    assert lines[4_999] == lines[0] == "0 0 0 "
    np.testing.assert_array_equal(read_liblinear(tmp_path / "m").coef, coef)


def test_labels_must_be_whole_numbers() -> None:
    model = LinearModel("L2R_LR", np.array(["a", "b"]), np.ones((1, 2)))

    with pytest.raises(ModelFormatError, match=r"LIBLINEAR's file .* whole numbers"):
        text_of(model)


def test_models_meet_narrow_and_wide_samples() -> None:
    """LIBLINEAR's rule: further features are ignored."""
    model = read_liblinear(TEXT.encode())
    wide = np.array([[1.0, 2.0, 9.0, 9.0]])
    layouts: list[Any] = [wide, sp.csr_matrix(wide), sp.csr_array(wide), wide.tolist()]

    for X in layouts:
        assert model.decisions(X).tolist() == [[2.1875, 5.25, 15.0]]
    assert model.decisions(wide[:, :1]).tolist() == [[0.1875, 5.25, 9.0]]
    with pytest.raises(InvalidInput, match="two dimensions"):
        model.decisions(wide[0])
    with pytest.raises(InvalidInput, match="not finite"):
        model.decisions(np.array([[np.inf, 0.0]]))


def test_only_logistic_regression_tells_probabilities() -> None:
    model = read_liblinear(TEXT.encode())
    X = np.array([[0.1, -1.0]])

    found = model.probabilities(X)

    heights = 1.0 / (1.0 + np.exp(-model.decisions(X)))
    assert np.abs(found - heights / heights.sum()).max() < 1e-15
    with pytest.raises(InvalidInput, match="only logistic regression"):
        read_liblinear(ONE.encode()).probabilities(X)
