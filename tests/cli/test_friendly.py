"""Do fit, apply, inspect and convert keep what they promise?"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from cli_runs import command, write_classes, write_numbers

QUICK = ["--C", "4", "--gamma", "0.5"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two")
    write_classes(tmp_path / "three", 3)
    write_numbers(tmp_path / "num")
    write_wild(tmp_path / "wild")
    return tmp_path


def write_wild(path: Path) -> None:
    """Two features whose ranges differ by a million, and one that does not vary."""
    draw = random.Random(3).random
    lines = []
    for i in range(60):
        shift = 0.5 if i % 2 else -0.5
        a, b = draw() + shift, 1e6 * (draw() - shift)
        lines.append(f"{1 if i % 2 else 2} 1:{a:.4f} 2:{b:.1f} 4:7\n")
    path.write_text("".join(lines))


def write_table(path: Path, *, has_target: bool = True) -> None:
    draw = random.Random(5).random
    lines = ["height,kind,width\n" if has_target else "width,height\n"]
    for i in range(60):
        kind = ("oak", "ash")[i % 2]
        width, height = draw() + (i % 2), 3.0 * draw() - (i % 2)
        row = f"{height:.4f},{kind},{width:.4f}\n"
        lines.append(row if has_target else f"{width:.4f},{height:.4f}\n")
    path.write_text("".join(lines))


# --------------------------------------------------------------------------------- fit
def test_fit_reports_and_apply_predicts_what_it_says() -> None:
    done = command("fit", "three", "m")

    names = [line.split()[0] for line in done.out.splitlines()]
    assert done.code == 0
    assert done.err == ""
    assert names == [
        "data",
        "scaling",
        "machine",
        "search",
        "training",
        "solved",
        "model",
        "took",
    ]
    applied = command("apply", "m", "three", "answers")
    training = done.out.split("accuracy ")[2].split()[0]
    assert applied.out.startswith(f"accuracy {training} (")
    assert len(Path("answers").read_text().splitlines()) == 90


def test_fit_names_its_model_after_the_data() -> None:
    done = command("fit", "--quiet", *QUICK, "two")

    assert (done.out, done.code) == ("", 0)
    assert Path("two.maxmargin").exists()


def test_fit_keeps_the_scaling_with_the_model() -> None:
    scaled = command("fit", "--json", *QUICK, "wild", "scaled")
    raw = command("fit", "--json", "--no-scale", *QUICK, "wild", "raw")

    assert json.loads(scaled.out)["cross_validated"] > 0.9
    assert json.loads(raw.out)["cross_validated"] < 0.6
    applied = command("apply", "--json", "scaled", "wild")
    assert json.loads(applied.out)["accuracy"] == json.loads(scaled.out)["training"]


def test_fit_sees_numbers_and_searches_their_scale() -> None:
    report = json.loads(command("fit", "--json", "num", "m").out)
    lines = Path("num").read_text().splitlines()
    Path("big").write_text("".join(_times_thousand(line) for line in lines))

    large = json.loads(command("fit", "--json", "big", "m").out)

    assert report["task"] == "regress"
    assert report["status"] == "CONVERGED"
    assert report["settings_tried"] == 24
    assert large["C"] == pytest.approx(1000.0 * report["C"])
    assert large["training"] == pytest.approx(1e6 * report["training"], rel=1e-3)


def _times_thousand(line: str) -> str:
    target, rest = line.split(" ", 1)
    return f"{1000.0 * float(target):.17g} {rest}\n"


def test_fit_takes_whole_numbers_as_classes_only_if_they_look_so() -> None:
    Path("ages").write_text("".join(f"{i} 1:{i % 7}\n" for i in range(40)))

    auto = command("fit", "--json", *QUICK, "ages", "m")
    told = command("fit", "--json", "--task", "regress", *QUICK, "two", "m")

    assert json.loads(auto.out)["task"] == "regress"
    assert json.loads(told.out)["task"] == "regress"


def test_fit_chooses_a_linear_machine_for_many_features() -> None:
    rows = [f"{i % 2} {1 + i % 2}:1 {6000 + i}:{1 + i % 3}\n" for i in range(40)]
    Path("wide").write_text("".join(rows))

    report = json.loads(command("fit", "--json", "wide", "m").out)

    assert report["kernel"] == "linear"
    assert report["scaling"] == "each feature divided by its largest magnitude"
    assert report["support_vectors"] is None
    assert json.loads(command("apply", "--json", "m", "wide").out)["accuracy"] == 1.0


def test_fit_without_time_uses_defaults_and_says_so() -> None:
    done = command("fit", "--time-limit", "0.000001", "two", "m")

    assert done.code == 0
    assert done.err.startswith(
        "WARNING: the time limit ended the search after 0 of 24 settings of C and gamma"
    )
    assert "WARNING: defaults are used for C and gamma\n" in done.err
    assert "search" not in done.out


def test_fit_of_indices_from_zero() -> None:
    lines = Path("two").read_text().splitlines()
    shifted = [_shifted(line) for line in lines]
    Path("zero").write_text("\n".join(shifted) + "\n")

    for name in ("two", "zero"):
        command("fit", "--quiet", *QUICK, name, f"{name}.m")
    answers = [command("apply", f"{n}.m", n).out for n in ("two", "zero")]

    assert answers[0] == answers[1]
    command("convert", "zero.m", "zero.model")
    assert " 0:" in Path("zero.model").read_text()


def _shifted(line: str) -> str:
    label, *pairs = line.split()
    parts = (pair.split(":") for pair in pairs)
    return " ".join([label, *(f"{int(index) - 1}:{value}" for index, value in parts)])


def test_tables_are_learned_by_name() -> None:
    write_table(Path("trees.csv"))
    write_table(Path("unknown.csv"), has_target=False)

    report = json.loads(command("fit", "--json", *QUICK, "trees.csv", "m").out)
    known = command("apply", "m", "trees.csv")
    unknown = command("apply", "m", "unknown.csv")

    assert report["classes"] == ["ash", "oak"]
    assert set(known.out.split()) == {"ash", "oak"}
    assert known.out == unknown.out  # columns are found by name, in any order
    assert unknown.err == "60 samples\n"
    assert known.err.startswith("accuracy ")


def test_tables_without_a_column_are_refused() -> None:
    write_table(Path("trees.csv"))
    command("fit", "--quiet", *QUICK, "trees.csv", "m")
    Path("less.csv").write_text("width,depth\n1,2\n3,4\n")

    done = command("apply", "m", "less.csv")

    assert done.code == 1
    assert done.err == "the table lacks the column 'height' of the model\n"


# ----------------------------------------------------------------------- apply, inspect
@pytest.mark.parametrize("make", ["svm-train -q", "train -q", "fit --quiet"])
def test_apply_reads_every_format(make: str) -> None:
    command(*make.split(), "two", "m")

    done = command("apply", "--decisions", "m", "two")

    values = [float(line) for line in done.out.splitlines()]
    first = json.loads(command("inspect", "--json", "m").out)["classes"][0]
    labels = command("apply", "m", "two").out.split()
    assert [
        (value > 0) == (label == str(first))
        for value, label in zip(values, labels, strict=True)
    ] == 90 * [True]


def test_probabilities_of_logistic_regression() -> None:
    command("train", "-q", "-s", "0", "three", "m")

    done = command("apply", "--probabilities", "m", "three", "shares")

    heading, *rows = Path("shares").read_text().splitlines()
    assert heading == "1 2 3"
    assert done.out.startswith("accuracy ")
    assert all(
        math.isclose(sum(map(float, row.split())), 1.0, abs_tol=1e-12) for row in rows
    )


def test_inspect_says_what_is_there() -> None:
    command("fit", "--quiet", *QUICK, "two", "m")

    done = command("inspect", "m")

    facts = {line[:18].strip(): line[18:].strip() for line in done.out.splitlines()}
    assert facts["machine"] == "c_svc"
    assert facts["kernel"] == "rbf"
    assert facts["gamma"] == "0.5"
    assert facts["fitted C"] == "4"
    assert facts["scaling"] == "to [-1, 1], 5 features that vary"
    assert facts["classes"] == "-1, 1"


# ----------------------------------------------------------------------------- convert
def test_only_a_regression_has_an_epsilon() -> None:
    for data in ("two", "num"):
        command("fit", *QUICK, data, f"m_{data}")

    facts = [
        json.loads(command("inspect", "--json", f"m_{d}").out) for d in ("two", "num")
    ]

    assert "fitted_epsilon" not in facts[0]
    assert facts[1]["fitted_epsilon"] > 0.0


@pytest.mark.parametrize(
    ("data", "options", "program"),
    [
        ("wild", ["--gamma", "0.5"], "svm-predict"),
        ("num", ["--gamma", "0.5"], "svm-predict"),
        ("wild", ["--kernel", "linear"], "predict"),
        ("num", ["--kernel", "linear"], "predict"),
    ],
)
def test_own_models_predict_in_libsvms_commands_too(
    data: str, options: list[str], program: str
) -> None:
    command("fit", "--C", "4", *options, data, "m")
    command("apply", "m", data, "expected")

    done = command(program, data, "m", "out")

    assert done.code == 0
    assert Path("out").read_text() == Path("expected").read_text()


def test_converted_for_libsvm_the_scaling_lies_beside() -> None:
    command("fit", "--quiet", *QUICK, "wild", "m")

    done = command("convert", "--digits", "17", "m", "wild.model")
    scaled = command("svm-scale", "-r", "wild.model.range", "wild")
    Path("scaled").write_text(scaled.out)
    command("svm-predict", "scaled", "wild.model", "answers")

    assert [line.split()[0] for line in done.out.splitlines()] == [
        "wild.model",
        "wild.model.range",
    ]
    assert Path("answers").read_text() == command("apply", "m", "wild").out


def test_linear_machine_takes_its_scaling_along() -> None:
    command("fit", "--quiet", "--kernel", "linear", "wild", "m")
    expected = _decisions("m", "wild")

    command("convert", "m", "a.model")
    command("convert", "--to", "libsvm", "--digits", "17", "m", "b.model")

    assert Path("a.model").read_text().startswith("solver_type L2R_L2LOSS_SVC\n")
    assert Path("b.model").read_text().startswith("svm_type c_svc\n")
    assert _decisions("a.model", "wild") == pytest.approx(expected, abs=1e-9)
    assert _decisions("b.model", "wild") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("machine", ["0", "1", "2", "3", "4"])
def test_linear_kernel_fits_liblinears_format_and_returns(machine: str) -> None:
    data = "num" if machine in "34" else "two"
    command("svm-train", "-q", "-s", machine, "-t", "0", "-n", "0.4", data, "a")
    expected = _decisions("a", data)

    there = command("convert", "--to", "liblinear", "a", "b")
    back = command("convert", "--to", "libsvm", "--digits", "17", "b", "c")

    assert (there.code, back.code) == (0, 0)
    assert _decisions("b", data) == pytest.approx(expected, abs=1e-6)
    assert _decisions("c", data) == pytest.approx(expected, abs=1e-6)


def _decisions(model: str, data: str) -> list[float]:
    done = command("apply", "--decisions", model, data)
    return [float(word) for word in done.out.split()]


def test_many_classes_do_not_fit_the_other_format() -> None:
    command("svm-train", "-q", "-t", "0", "three", "a")
    command("train", "-q", "three", "b")

    there = command("convert", "--to", "liblinear", "a", "c")
    back = command("convert", "--to", "libsvm", "b", "c")

    assert there.code == back.code == 1
    assert "of 3 classes cannot be converted" in there.err
    assert "of 3 classes cannot be converted" in back.err


def test_own_format_keeps_everything() -> None:
    command("svm-train", "-q", "two", "a")

    command("convert", "a", "b")
    command("convert", "--to", "libsvm", "b", "c")

    assert Path("a").read_text() == Path("c").read_text()


@pytest.mark.parametrize("options", [[], ["--kernel", "linear"]])
@pytest.mark.parametrize("data", ["wild", "three", "num"])
def test_onnx_scales_by_itself(data: str, options: list[str]) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from maxmargin.data.svmlight import read_svmlight

    command("fit", "--quiet", *options, data, "m")
    command("convert", "m", "m.onnx")

    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    X = read_svmlight(data, index_base=1).X.toarray()
    found = session.run(["decisions"], {"X": X})[0]
    expected = np.array(_decisions("m", data)).reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_an_index_that_the_model_lacks_counts_as_in_svm_predict() -> None:
    from maxmargin import svmutil

    command("svm-train", "-q", "two", "m")
    Path("zeroth").write_text("1 0:1 1:2\n-1 0:2 1:3 7:1\n")
    command("apply", "--decisions", "m", "zeroth", "out")

    samples = [{0: 1, 1: 2}, {0: 2, 1: 3, 7: 1}]
    *_, values = svmutil.svm_predict([], samples, svmutil.svm_load_model("m"), "-q")
    np.testing.assert_allclose(np.loadtxt("out"), np.ravel(values), rtol=1e-12)


def test_columns_of_one_name_are_not_mixed_up() -> None:
    Path("a.csv").write_text("p,p,y\n" + "0,1,a\n1,0,b\n" * 10)
    Path("b.csv").write_text("y,p,p\n" + "a,0,1\nb,1,0\n" * 10)
    Path("c.csv").write_text("p,q,p\n0,1,2\n")
    command("fit", *QUICK, "a.csv", "m")

    said = [command("apply", "m", name, "out") for name in ("a.csv", "b.csv", "c.csv")]

    assert [done.out[:16] for done in said] == ["accuracy 100.00%"] * 2 + [""]
    assert "two columns have the same name" in said[2].err
