"""What happens when a command is used wrongly? One line, exit code 1, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import command, without_notice, write_classes, write_numbers

from maxmargin.cli import COMMANDS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two")
    write_numbers(tmp_path / "num")
    Path("empty").write_text("")
    Path("broken").write_text("1 1:1 2:x\n")
    Path("unsorted").write_text("1 1:1\n2 2:1 1:3\n")
    Path("nan").write_text("1 1:nan\n2 1:1\n")
    Path("zero").write_text("1 0:1 1:2\n-1 0:2 1:1\n")
    Path("ones").write_text("1 1:1\n1 1:2\n")
    Path("three").write_text("1 1:1\n1 1:2\n-1 1:3\n")
    Path("few").write_text("1\n2")
    Path("labels").write_text("1\n2\n1\n2\n")
    Path("table.csv").write_text("a,kind\n" + "1,oak\n2,ash\n" * 5)
    Path("once").write_text("1 1:1\n")
    command("svm-train", "-q", "two", "kernel")
    command("train", "-q", "two", "linear")
    command("fit", "--quiet", "--C", "1", "--gamma", "1", "two", "own")
    command("fit", "--quiet", "--C", "1", "--gamma", "1", "table.csv", "words")
    return tmp_path


MISTAKES = {
    "svm-train nowhere": "can't open input file nowhere",
    "svm-train .": "can't open input file .",
    "svm-train broken": "Wrong input format at line 1",
    "svm-train unsorted": "Wrong input format at line 2",
    "svm-train nan": "Wrong input format at line 1",
    "svm-train empty": "Wrong input format",
    "svm-train -t 4 two": "Wrong input format: first column must be 0:sample_serial",
    "svm-train -z 1 two": "Unknown option: -z",
    "svm-train -g -1 two": "ERROR: gamma < 0",
    "svm-train -c 0 two": "ERROR: C <= 0",
    "svm-train -c -nan two": "ERROR: C <= 0",
    "svm-train -s 9 two": "ERROR: unknown svm type",
    "svm-train -t x two": "ERROR: unknown kernel type",
    "svm-train -n 0.99 -s 1 three": "ERROR: specified nu is infeasible",
    "svm-train -s 2 -n 0 two": "ERROR: nu <= 0 or nu > 1",
    "svm-train -v 1 two": "n-fold cross validation: n must >= 2",
    "svm-train -v x two": "Wrong options",
    "svm-train -v 2.5 two": "Wrong options: -v takes a whole number, got '2.5'",
    "svm-train -g inf two": "ERROR: gamma, coef0, p and eps must be finite",
    "svm-train -t 3 -r nan two": "ERROR: gamma, coef0, p and eps must be finite",
    "svm-train -s 3 -p inf num": "ERROR: gamma, coef0, p and eps must be finite",
    "svm-train -m inf two": "ERROR: cache_size > 1.09951e+12 MB",
    "svm-train -c abc two": "Wrong options: -c takes a number, got 'abc'",
    "svm-train -d -1 -t 1 two": "ERROR: degree of polynomial kernel < 0",
    "svm-train -m 0 two": "ERROR: cache_size <= 0",
    "svm-train -e 0 two": "ERROR: eps <= 0",
    "svm-train -s 3 -p -1 num": "ERROR: p < 0",
    "svm-train -h 2 two": "ERROR: shrinking != 0 and shrinking != 1",
    "svm-train -b 2 two": "ERROR: probability != 0 and probability != 1",
    "svm-train -w1 x two": "Wrong options",
    "svm-train -w1 -2 two": "Weights of classes (-wi) must be",
    "svm-train -W nowhere two": "can't open instance weight file nowhere",
    "svm-train -W few two": "Wrong input format: few: 2 weights for 90 samples",
    "svm-train two no/where": "can't save model to file no/where",
    "svm-train two two": "can't save model to file two: it is also read from",
    "train two ./two": "can't save model to file ./two: it is also read from",
    "svm-predict two kernel two": "can't open output file two: it is also read from",
    "predict two linear linear": "can't open output file linear: it is also read",
    "fit two two": "can't save model to file two: it is also read from",
    "fit once": "there is one sample only",
    "apply own two two": "can't open output file two: it is also read from",
    "svm-train --threads 0 two": "--threads needs a whole number from 1 on, got '0'",
    "svm-train --time-limit -1 two": "--time-limit needs a number of seconds above 0",
    "train nowhere": "can't open input file nowhere",
    "train broken": "Wrong input format at line 1",
    "train empty": "Wrong input format",
    "train zero": "Wrong input format: feature index 0",
    "train -z 1 two": "unknown option: -z",
    "train -s 9 two": "ERROR: unknown solver type",
    "train -c 0 two": "ERROR: C <= 0",
    "train -e 0 two": "ERROR: eps <= 0",
    "train -s 11 -p -1 num": "ERROR: p < 0",
    "train -R two": "ERROR: To not regularize bias, must specify -B 1 along with -R",
    "train -C -s 1 two": "Warm-start parameter search only available for -s 0",
    "train two no/where": "can't save model to file no/where",
    "svm-predict nowhere kernel out": "can't open input file nowhere",
    "svm-predict two nowhere out": "can't open model file nowhere",
    "svm-predict two two out": "can't open model file two",
    "svm-predict two linear out": "can't open model file linear: it holds another kind",
    "predict two own out": "can't open model file own: it holds another kind",
    "svm-predict two empty out": "can't open model file empty",
    "svm-predict empty kernel out": "Wrong input format",
    "svm-predict two kernel no/where": "can't open output file no/where",
    "svm-predict -z 1 two kernel out": "Unknown option: -z",
    "svm-predict -b x two kernel out": "-b needs 0 or 1, got 'x'",
    "svm-predict -b 1 two kernel out": "Model does not support probability estimates",
    "predict nowhere linear out": "can't open input file nowhere",
    "predict two nowhere out": "can't open model file nowhere",
    "predict two kernel out": "can't open model file kernel: it holds another kind",
    "svm-predict two words out": "can't open model file words: its classes are words",
    "predict two linear no/where": "can't open output file no/where",
    "predict -b 1 two linear out": "probability output is only supported for logistic",
    "grid nowhere": "dataset not found: nowhere",
    "grid -c 1 two": "Use -log2c and -log2g.",
    "grid -log2c 1,2 two": "-log2c needs begin,end,step",
    "grid -log2c 1,2,-1 two": "-log2c needs begin,end,step",
    "grid -log2g 1,9,1e-9 two": "-log2g needs begin,end,step",
    "grid -log2c 2000,2000,1 two": "-log2c needs begin,end,step",
    "grid -log2g -2000,1,2 two": "-log2g needs begin,end,step",
    "grid -resume few two": "few is no file of results of grid: '2'",
    "grid -log2c null -log2g null two": "-log2c and -log2g should not be null",
    "grid -resume nowhere two": "file for resumption not found",
    "grid -out no/where two": "can't open output file no/where",
    "grid -v 1 two": "n-fold cross validation: n must >= 2",
    "grid -z 1 two": "Unknown option: -z",
    "easy nowhere": "training file not found: nowhere",
    "easy two nowhere": "testing file not found: nowhere",
    "subset nowhere 3": "can't open input file nowhere",
    "subset two 1000": "subset_size is 1000, but there are 90 lines",
    "subset two 3 two": "can't open output file two: it is also read from",
    "subset two 3 out out": "output1 and output2 are the same file: out",
    "subset two x": "subset_size needs a whole number",
    "subset -s 2 two 3": "Unknown selection method 2",
    "subset -z 2 two 3": "unknown option: -z",
    "subset two 3 no/where": "can't open output file no/where",
    "fit nowhere": "can't open input file nowhere",
    "fit broken": "Wrong input format at line 1",
    "fit empty": "Wrong input format",
    "fit labels": "no sample has a feature",
    "svm-train table.csv": "Wrong input format at line 1: several labels ('a,kind')",
    "fit ones": "all samples are of one class",
    "fit two no/where": "can't save model to file no/where",
    "fit --kernel cubic two": "--kernel is one of auto, rbf, linear; got 'cubic'",
    "fit --folds 1 two": "--folds needs a whole number from 2 on",
    "fit --C 0 two": "--C needs a finite number above 0, got '0'",
    "fit --kernel linear --gamma 1 two": "a linear kernel has no gamma",
    "fit --bogus two": "unknown option: --bogus",
    "fit --quiet=yes two": "--quiet takes no value",
    "fit --target z two": "--target is for CSV and Parquet files",
    "apply nowhere two": "can't open model file nowhere",
    "apply two two": "can't open model file two: this is no model file",
    "apply empty two": "can't open model file empty: the file is empty.",
    "apply own nowhere": "can't open input file nowhere",
    "apply own empty": "Wrong input format",
    "apply own two no/where": "can't open output file no/where",
    "apply --decisions --probabilities own two": "choose one of",
    "apply --probabilities own two": "This model cannot tell probabilities",
    "inspect nowhere": "can't open model file nowhere",
    "inspect two": "can't open model file two: this is no model file",
    "convert nowhere out": "can't open model file nowhere",
    "convert kernel no/where": "can't save model to file no/where",
    "convert kernel kernel": "can't save model to file kernel: it is also read from",
    "convert --to word kernel out": "--to is one of",
    "convert --to liblinear kernel out": "only a machine with a linear kernel fits",
    "convert --digits 99 kernel out.model": "--digits needs at most 17",
    "convert --digits 9 kernel out": "--digits is for LIBSVM's format only",
    "nonsense": "unknown command: nonsense",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistake_is_one_line_on_stderr(words: str) -> None:
    before = sorted(os.listdir())

    done = command(*words.split())

    assert done.code == 1
    assert done.err.startswith(MISTAKES[words])
    assert done.err.count("\n") == 1
    assert done.out == "" or done.out.startswith("Usage: ")
    assert sorted(os.listdir()) == before  # nothing half-written is left


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "compile"])
def test_help_and_missing_arguments_show_the_usage(name: str) -> None:
    asked, forced = command(name, "--help"), command(name)

    assert (asked.code, forced.code) == (0, 1)
    assert asked.out.startswith("Usage: ")
    assert forced.out == asked.out
    assert asked.err == forced.err == ""


def test_what_needs_no_arguments_refuses_any() -> None:
    asked, wrong = command("compile", "--help"), command("compile", "everything")

    assert (asked.code, wrong.code) == (0, 1)
    assert asked.out.startswith("Usage: ")


def test_overview_names_every_command() -> None:
    asked, forced = command("--help"), command()

    assert (asked.code, forced.code) == (0, 1)
    assert forced.out == asked.out
    assert all(f"  {name} " in asked.out for name in COMMANDS)
    assert command("--version").out.startswith("maxmargin ")


def test_damaged_own_model_is_refused() -> None:
    data = bytearray(Path("own").read_bytes())
    data[len(data) // 2] ^= 1
    Path("own").write_bytes(bytes(data))

    done = command("apply", "own", "two")

    assert done.code == 1
    assert "the digest does not match" in done.err


# ---------------------------------------------------------------- in their own process
def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, "-m", "maxmargin", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_reader_that_leaves_is_no_error() -> None:
    write_classes(Path("many"), n=20_000)

    with start("svm-scale", "many") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()

    assert process.returncode == 1
    assert without_notice(err) == ""


def test_interrupt_ends_with_130_and_no_traceback() -> None:
    write_classes(Path("many"), n=3_000)

    with start("grid", "-out", "null", "many") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        err = process.stderr.read()

    assert process.returncode == 130
    assert without_notice(err) == "interrupted\n"
