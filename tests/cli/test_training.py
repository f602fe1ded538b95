"""Do the options of svm-train and train do what they say?"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import command, numbers, real, write_classes, write_numbers


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two")
    write_numbers(tmp_path / "num")
    return tmp_path


def write_kernel(data: Path, path: Path) -> None:
    """The linear kernel between all samples, in LIBSVM's form."""
    rows = [line.split() for line in data.read_text().splitlines()]
    samples = [dict(pair.split(":") for pair in row[1:]) for row in rows]
    lines = []
    for i, (row, a) in enumerate(zip(rows, samples, strict=True), start=1):
        products = (
            sum(float(v) * float(b.get(j, 0)) for j, v in a.items()) for b in samples
        )
        values = "".join(f" {j}:{k:.17g}" for j, k in enumerate(products, start=1))
        lines.append(f"{row[0]} 0:{i}{values}\n")
    path.write_text("".join(lines))


@pytest.mark.parametrize(("machine", "data"), [("0", "two"), ("3", "num")])
def test_precomputed_kernel_is_the_kernel(machine: str, data: str) -> None:
    write_kernel(Path(data), Path("kernel"))
    options = ["-s", machine, "-e", "1e-6"]

    vectors = command("svm-train", *options, "-t", "0", data, "a")
    matrix = command("svm-train", *options, "-t", "4", "kernel", "b")
    said = [
        command("svm-predict", *files).out
        for files in ((data, "a", "out.a"), ("kernel", "b", "out.b"))
    ]

    found, expected = numbers(matrix.out, "obj"), numbers(vectors.out, "obj")
    assert found == pytest.approx(expected, rel=1e-6)
    assert said[0] == said[1]
    assert " 0:" in Path("b").read_text()


@pytest.mark.agreement
def test_precomputed_models_go_both_ways() -> None:
    if shutil.which("svm-train") is None:
        pytest.skip("svm-train is not installed")
    write_kernel(Path("two"), Path("kernel"))
    command("svm-train", "-q", "-t", "4", "kernel", "ours")
    real("svm-train", "-q", "-t", "4", "kernel", "theirs")

    for model in ("ours", "theirs"):
        ours = command("svm-predict", "kernel", model, "a")
        theirs = real("svm-predict", "kernel", model, "b")

        assert ours == theirs
        assert Path("a").read_text() == Path("b").read_text()


@pytest.mark.parametrize("program", ["svm-train", "train"])
def test_weight_two_is_a_sample_twice(program: str) -> None:
    lines = Path("two").read_text().splitlines(keepends=True)
    Path("twice").write_text("".join(lines[:30]) * 2 + "".join(lines[30:]))
    Path("weights").write_text("2\n" * 30 + "1\n" * 60)
    name = "obj" if program == "svm-train" else "Objective value"

    weighted = command(program, "-e", "1e-6", "-W", "weights", "two", "a")
    repeated = command(program, "-e", "1e-6", "twice", "b")

    found, expected = numbers(weighted.out, name), numbers(repeated.out, name)
    assert found == pytest.approx(expected, rel=1e-4)


def test_packed_data_are_read() -> None:
    Path("two.gz").write_bytes(gzip.compress(Path("two").read_bytes()))

    plain, packed = command("svm-train", "two"), command("svm-train", "two.gz")

    assert plain.out == packed.out
    assert Path("two.model").read_bytes() == Path("two.gz.model").read_bytes()


def test_only_the_first_letter_of_an_option_counts() -> None:
    short = command("svm-train", "-c", "4", "-g", "0.5", "two", "a")
    long = command("svm-train", "-cost", "4", "-gamma", "0.5", "two", "b")

    assert short == long
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_negative_labels_take_weights() -> None:
    done = command("svm-train", "-w-1", "2", "-w1", "1", "two", "a")
    plain = command("svm-train", "two", "b")

    assert done.code == 0
    assert numbers(done.out, "obj") != numbers(plain.out, "obj")
    assert "nu =" not in done.out


def test_weights_of_absent_labels_are_warned_of() -> None:
    done = command("svm-train", "-q", "-w7", "2", "two", "a")

    assert done.code == 0
    assert done.err == "WARNING: class label 7 specified in weight is not found\n"


def test_one_class_alone_is_a_model_too() -> None:
    Path("ones").write_text("3 1:1\n3 1:2\n")

    trained = command("svm-train", "ones")
    done = command("svm-predict", "ones", "ones.model", "out")

    assert trained.out == (
        "WARNING: training data in only one class. See README for details.\n"
        "Total nSV = 0\n"
    )
    assert done.out == "Accuracy = 100% (2/2) (classification)\n"
    assert Path("out").read_text() == "3\n3\n"


@pytest.mark.parametrize("options", [["-s", "0"], ["-s", "1", "-e", "1e-9"], ["-C"]])
def test_a_limit_that_was_met_is_spoken_of(options: list[str]) -> None:
    done = command("train", *options, "--time-limit", "1e-6", "--json", "two", "m")

    facts = json.loads(done.out)
    assert "WARNING: Stopped at time_limit" in done.err
    if options == ["-C"]:
        assert "the search had tried 0 settings" in done.err
        assert (facts["settings_tried"], facts["is_complete"]) == (0, False)
    assert [each["status"] for each in facts.get("problems", [])] in (
        [],
        ["TIME_LIMIT"],
    )


def test_json_has_null_where_a_number_is_not_known() -> None:
    done = command("train", "-s", "0", "--json", "two", "m")

    assert (
        json.loads(done.out, parse_constant=pytest.fail)["problems"][0]["gap"] is None
    )


def test_models_and_predictions_can_go_to_a_stream() -> None:
    def run(*words: str, **ends: object) -> bytes:
        command = [sys.executable, "-m", "maxmargin", *words]
        return subprocess.run(command, check=True, **ends).stdout  # type: ignore[call-overload,no-any-return]

    model = run("svm-train", "-q", "two", "/dev/stdout", stdout=subprocess.PIPE)
    Path("m").write_bytes(model)
    said = run("svm-predict", "two", "m", "/dev/stdout", stdout=subprocess.PIPE)
    with open("out", "wb") as out:
        run("svm-predict", "two", "m", "/dev/stdout", stdout=out)

    assert said == Path("out").read_bytes()
    assert len(said.splitlines()) == 91
    assert said.splitlines()[-1].startswith(b"Accuracy = ")


@pytest.mark.parametrize("name", ["svm-train", "train"])
def test_one_sample_cannot_be_held_out(name: str) -> None:
    Path("once").write_text("1 1:1\n")

    done = command(name, "-v", "2", "once")

    assert done.code == 1
    assert done.err.endswith("Cross-validation needs two samples at least.\n")


def test_a_kernel_that_is_mostly_left_out_takes_no_memory() -> None:
    lines = [f"{1 if i % 2 else -1} 0:{i} {i}:1 2000000000:1\n" for i in range(1, 200)]
    Path("kernel").write_text("".join(lines))

    trained = command("svm-train", "-q", "-t", "4", "kernel", "m")
    done = command("svm-predict", "kernel", "m", "out")

    assert (trained.code, trained.err) == (0, "")
    assert done.out == "Accuracy = 100% (199/199) (classification)\n"
