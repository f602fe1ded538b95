"""Do commands work on few values in very many columns, in proportion to the values?"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from cli_runs import Outcome, command

FAR = 1_000_000_000  # dense vectors of this width would take 8 GB each
QUICK = ["--C", "4", "--json"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_wide(Path("wide"), FAR)
    write_wide(Path("less"), 40_000)
    return tmp_path


def write_wide(path: Path, last: int) -> None:
    """Two classes that the features 3 and `last` tell apart."""
    draw = random.Random(0).random
    lines = []
    for i in range(40):
        a, b = draw() + i % 2, draw() - i % 2
        lines.append(f"{1 + i % 2} 3:{a:.4f} 17:5 {last}:{b:.4f}\n")
    path.write_text("".join(lines))


@pytest.mark.parametrize("options", ["", "--kernel linear", "--no-scale"])
def test_fit_and_apply_keep_the_columns_that_occur(options: str) -> None:
    done = command("fit", *QUICK, *options.split(), "wide", "m")

    facts = json.loads(done.out)
    assert (facts["features"], facts["features_used"]) == (FAR, 3)
    assert Path("m").stat().st_size < 20_000
    applied = json.loads(command("apply", "--json", "m", "wide", "out").out)
    assert applied["accuracy"] == facts["training"] > 0.9


def test_a_model_of_few_columns_ignores_others_and_indices_in_between() -> None:
    command("fit", *QUICK, "wide", "m")
    lines = Path("wide").read_text().replace(" 17:5", " 16:9 17:5")
    Path("more").write_text(lines)

    decisions = [decide("m", name) for name in ("wide", "more")]

    np.testing.assert_array_equal(*decisions)


def decide(model: str, data: str) -> np.ndarray:
    command("apply", "--decisions", model, data, "out")
    return np.loadtxt("out")


@pytest.mark.parametrize(
    ("options", "form"),
    [("--gamma 0.5", "libsvm"), ("--kernel linear", "liblinear")],
)
def test_a_converted_model_has_all_columns(options: str, form: str) -> None:
    command("fit", *QUICK, *options.split(), "less", "m")
    expected = decide("m", "less")

    done = command("convert", "--to", form, "m", "x")

    assert done.code == 0
    data = "less"
    if form == "libsvm":
        command("convert", "--to", form, "--digits", "17", "m", "x")
        Path("scaled").write_text(command("svm-scale", "-r", "x.range", "less").out)
        data = "scaled"  # svm-scale writes six digits
    np.testing.assert_allclose(decide("x", data), expected, atol=1e-4)
    assert json.loads(command("inspect", "--json", "x").out)["features"] == 40_000


@pytest.mark.parametrize("options", ["--gamma 0.5", "--kernel linear"])
def test_onnx_has_all_columns(options: str) -> None:
    pytest.importorskip("onnxruntime")
    from onnxruntime import InferenceSession

    from maxmargin.data.svmlight import read_svmlight

    command("fit", *QUICK, *options.split(), "less", "m")
    expected = decide("m", "less")

    assert command("convert", "m", "x.onnx").code == 0

    X = read_svmlight("less").X.toarray()
    found = InferenceSession("x.onnx").run(None, {"X": X})[0]
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-9)


@pytest.mark.parametrize("form", ["liblinear", "onnx"])
def test_formats_with_a_place_for_every_feature_refuse_too_many(form: str) -> None:
    command("fit", *QUICK, "--kernel", "linear", "wide", "m")

    done = command("convert", "--to", form, "m", "x")

    assert_refused(done, "the format has a place for each of 1,000,000,000 features")


def test_train_refuses_more_weights_than_memory_holds() -> None:
    done = command("train", "wide", "m")

    assert_refused(done, "A linear machine keeps a weight for each of 1,000,000,000")


def assert_refused(done: Outcome, message: str) -> None:
    assert done.code == 1
    assert done.err.startswith(message)
    assert done.err.count("\n") == 1


def test_svm_train_takes_any_width() -> None:
    assert command("svm-train", "-q", "wide", "m").code == 0

    done = command("svm-predict", "wide", "m", "out")

    assert done.out.startswith("Accuracy = ")


@pytest.mark.parametrize("kernel", ["0", "1", "2", "3"])
def test_kernels_of_many_rows_take_any_width(kernel: str) -> None:
    draw = random.Random(1)
    rows = [
        f"{1 + i % 2} {1 + draw.randrange(9)}:1 {draw.randrange(10, FAR)}:1\n"
        for i in range(1_500)
    ]
    Path("many").write_text("".join(rows))

    trained = command("svm-train", "-q", "-t", kernel, "-g", "0.5", "many", "m")
    predicted = command("svm-predict", "many", "m", "out")

    assert (trained.code, trained.err) == (0, "")
    assert predicted.out.startswith("Accuracy = ")


def test_a_model_of_few_columns_is_refused_where_they_are_not_chosen() -> None:
    from maxmargin.errors import ModelFormatError
    from maxmargin.interop.native import load

    command("fit", *QUICK, "--no-scale", "wide", "m")

    with pytest.raises(ModelFormatError, match="does not choose them itself"):
        load("m")
