"""Do commands print what LIBSVM's and LIBLINEAR's print, word for word?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_goldens import GOLDENS
from cli_runs import (
    assert_like,
    command,
    form,
    numbers,
    real,
    write_classes,
    write_numbers,
)

FEW = 1.0  # support vectors: one more or less at a tolerance of 0.001
KERNEL = {"nu": 2e-3, "C": 1e-2, "epsilon": 2e-3, "obj": 2e-3, "rho": 5e-3}
FINE = {name: 2e-4 for name in KERNEL}  # where both are told a fine tolerance
EXACT = {"Cross Validation Accuracy": 0.0, "Accuracy": 0.0}
NEAR = {"error": 2e-3, "coefficient": 2e-3}
LINEAR = {"Objective value": 1e-2, "rho": 1e-2}
REAL = {"svm-train": "svm-train", "train": "liblinear-train"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two")
    write_classes(tmp_path / "three", 3)
    write_numbers(tmp_path / "num")
    return tmp_path


@pytest.mark.parametrize("words", [k for k in GOLDENS if "train" in k])
def test_training_prints_the_golden_lines(words: str) -> None:
    is_kernel = words.startswith("svm-")

    done = command(*words.split())

    assert done.code == 0
    assert done.err == ""
    assert_like(done.out, GOLDENS[words], EXACT | (KERNEL if is_kernel else LINEAR))
    assert_like(done.out, GOLDENS[words], NEAR | {"nSV": FEW} if is_kernel else {})


@pytest.mark.parametrize(
    ("training", "predicting"),
    [
        ("svm-train two m", "svm-predict two"),
        ("svm-train -s 3 num m", "svm-predict num"),
        ("train -s 0 three m", "predict three"),
        ("train -s 11 num m", "predict num"),
    ],
)
def test_predicting_prints_the_golden_lines(training: str, predicting: str) -> None:
    command(*training.split())

    done = command(*predicting.split(), "m", "out")

    assert done.code == 0
    assert_like(done.out, GOLDENS[predicting], EXACT | NEAR)


def test_quiet_training_prints_nothing() -> None:
    kernel, linear = command("svm-train", "-q", "two"), command("train", "-q", "two")

    assert (kernel.out, kernel.err, kernel.code) == ("", "", 0)
    assert (linear.out, linear.err, linear.code) == ("", "", 0)


def test_quiet_cross_validation_prints_its_figure_alone() -> None:
    done = command("svm-train", "-q", "-v", "5", "two")

    assert done.out == "Cross Validation Accuracy = 84.4444%\n"


def test_model_file_is_named_after_the_data_and_lies_here(folder: Path) -> None:
    (folder / "sub").mkdir()
    write_classes(folder / "sub" / "deep")

    command("svm-train", "-q", "sub/deep")

    assert (folder / "deep.model").read_text().startswith("svm_type c_svc\n")


# ------------------------------------------------------------------- the real programs
def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.mark.agreement
@pytest.mark.parametrize("kernel", ["0", "1", "2", "3"])
@pytest.mark.parametrize("machine", ["0", "1", "2", "3", "4"])
def test_training_prints_what_svm_train_prints(machine: str, kernel: str) -> None:
    needs("svm-train")
    data = "num" if machine in "34" else "two"
    options = ["-s", machine, "-t", kernel, "-n", "0.4", "-e", "0.00001", data]

    ours, theirs = command("svm-train", *options, "a"), real("svm-train", *options, "b")

    shown = [line for line in theirs.out.splitlines() if "using -h 0" not in line]
    is_loose = kernel == "3" or (machine, kernel) == (
        "2",
        "0",
    )  # many answers, or w = 0
    names = {} if is_loose else FINE | {"nSV": 0.0}
    assert ours.code == theirs.code == 0
    assert_like(ours.out, "\n".join(shown), names)


@pytest.mark.agreement
@pytest.mark.parametrize("data", ["two", "three"])
def test_each_reads_the_other_models(data: str) -> None:
    needs("svm-train")
    command("svm-train", "-q", data, "ours")
    real("svm-train", "-q", data, "theirs")

    answers = [
        run(*words, data, model, f"{model}.{i}").out
        for model in ("ours", "theirs")
        for i, (run, words) in enumerate(
            [(command, ["svm-predict"]), (real, ["svm-predict"])]
        )
    ]

    assert len(set(answers)) == 1
    assert Path("ours.0").read_text() == Path("ours.1").read_text()
    assert Path("theirs.0").read_text() == Path("theirs.1").read_text()


@pytest.mark.agreement
@pytest.mark.parametrize("solver", ["1", "3", "4", "5", "7"])
def test_training_prints_what_train_prints(solver: str) -> None:
    needs("liblinear-train")
    options = ["-s", solver, "-e", "0.00001", "-B", "1", "three"]

    ours, theirs = command("train", *options, "a"), real("liblinear-train", *options)

    assert ours.code == theirs.code == 0
    assert_like(ours.out, theirs.out, {"Objective value": 1e-4})


@pytest.mark.agreement
def test_parameter_search_prints_what_train_prints() -> None:
    needs("liblinear-train")

    ours, theirs = command("train", "-C", "two"), real("liblinear-train", "-C", "two")

    lines = [line for line in theirs.out.splitlines() if "maximum C" not in line]
    mine = [line for line in ours.out.splitlines() if "maximum C" not in line]
    assert form("\n".join(mine)) == form("\n".join(lines))
    assert ours.err == theirs.err == "Solver not specified. Using -s 2\n"
    assert numbers(ours.out, "Best C") == numbers(theirs.out, "Best C")


@pytest.mark.agreement
@pytest.mark.parametrize("options", [["-b", "1"], [], ["-q"]])
def test_probabilities_of_a_model_are_written_alike(options: list[str]) -> None:
    needs("svm-train")
    real("svm-train", "-q", "-b", "1", "three", "m")

    ours = command("svm-predict", *options, "three", "m", "a")
    theirs = real("svm-predict", *options, "three", "m", "b")

    assert ours == theirs
    found, expected = Path("a").read_text().split(), Path("b").read_text().split()
    assert found[:4] == expected[:4]
    if "-b" in options:
        near = [float(word) for word in expected[4:]]
        assert [float(word) for word in found[4:]] == pytest.approx(near, abs=2e-6)


@pytest.mark.agreement
def test_noise_of_a_regression_is_told_alike() -> None:
    needs("svm-train")
    real("svm-train", "-q", "-s", "3", "-b", "1", "num", "m")

    ours = command("svm-predict", "-b", "1", "num", "m", "a")

    assert ours == real("svm-predict", "-b", "1", "num", "m", "b")


@pytest.mark.agreement
@pytest.mark.parametrize("options", [[], ["-v", "3"], ["-s", "3"]])
def test_training_for_probabilities_leads_to_the_same(options: list[str]) -> None:
    needs("svm-train")
    given = ["-b", "1", "-e", "1e-6", *options, "three"]

    ours = command("svm-train", *given, *([] if "-v" in options else ["m"]))
    theirs = real("svm-train", *given, *([] if "-v" in options else ["n"]))

    assert ours.err == theirs.err == ""
    if "-v" in options:
        assert numbers(ours.out, "Accuracy") == numbers(theirs.out, "Accuracy")
        return
    for name in ["probA"] if options else ["probA", "probB"]:
        found, expected = header_of(Path("m"), name), header_of(Path("n"), name)
        assert found == pytest.approx(expected, abs=1e-3)


def header_of(path: Path, name: str) -> list[float]:
    """The numbers in a line of a model file's head."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return next([float(word) for word in line[1:]] for line in lines if line[0] == name)
