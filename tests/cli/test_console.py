"""What do people and machines see while a command runs?"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from cli_runs import command, write_classes, write_numbers

from maxmargin.cli import progress
from maxmargin.cli.console import Context, Failure, context_of, written


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


@pytest.fixture
def without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)  # as if not installed


def drawn(stream: io.StringIO, *texts: str, is_json: bool = False) -> str:
    """What a line of progress leaves on a stream."""
    context = Context(is_json=is_json)
    with redirect_stderr(stream), progress.progress_line(context) as line:
        for text in texts:
            line.show(text)
    return stream.getvalue()


def test_nobody_looks_at_a_pipe() -> None:
    assert drawn(io.StringIO(), "working") == ""


@pytest.mark.usefixtures("without_rich")
def test_plain_line_is_written_over_and_vanishes() -> None:
    text = drawn(Terminal(), "one", "two" * 100)

    assert "\rone" in text
    assert "\n" not in text
    assert text.endswith(progress.ERASE)
    assert max(map(len, text.split("\r"))) <= progress.WIDTH


def test_rich_line_is_drawn_where_rich_is() -> None:
    pytest.importorskip("rich")

    assert "working" in drawn(Terminal(), "working")


def test_machines_see_no_line() -> None:
    assert drawn(Terminal(), "working", is_json=True) == ""


@pytest.mark.usefixtures("without_rich")
def test_quick_work_shows_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)

    assert drawn(Terminal(), "working") == ""


def test_common_options_are_taken_from_anywhere() -> None:
    words = ["-c", "1", "--json", "--threads=2", "x", "--time-limit", "1.5", "-q"]

    context, rest = context_of(words)

    assert context == Context(True, 2, 1.5)
    assert rest == ["-c", "1", "x", "-q"]


def test_threads_do_not_change_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(Path("three"), 3)

    for n in (1, 2):
        command("svm-train", "--threads", n, "three", f"m{n}")

    assert Path("m1").read_bytes() == Path("m2").read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        "svm-train two m",
        "svm-train -v 3 two",
        "train two m",
        "train -v 3 two",
        "train -C two",
        "train -v 3 -s 11 two",
        "grid -log2c 1,2,1 -log2g -3,-3,-1 two",
        "subset two 5 out",
        "checkdata two",
        "fit --C 1 --gamma 1 two m",
    ],
)
def test_json_is_one_object(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(Path("two"))

    done = command(*words.split(), "--json")

    assert done.code == 0
    assert done.out.count("\n") == 1
    assert json.loads(done.out)


@pytest.mark.parametrize("words", ["svm-scale two", "subset --seed 1 two 5"])
def test_json_goes_beside_data_on_standard_output(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(Path("two"))

    plain, done = command(*words.split()), command(*words.split(), "--json")

    assert done.out == plain.out != ""
    assert json.loads(done.err.splitlines()[-1])


@pytest.mark.parametrize(
    ("words", "is_regression"),
    [
        ("svm-train -v 3 two", False),
        ("svm-train -v 3 -s 3 num", True),
        ("train -v 3 two", False),
        ("train -v 3 -s 11 num", True),
        ("train -C two", False),
        ("train -C -s 11 num", True),
        ("grid -log2c 1,1,1 -log2g -3,-3,1 two", False),
        ("grid -log2c 1,1,1 -log2g -3,-3,1 -s 3 num", True),
        ("svm-predict two c out", False),
        ("svm-predict num r out", True),
        ("apply c two out", False),
        ("apply r num out", True),
    ],
)
def test_accuracy_in_json_is_a_fraction_of_classes_alone(
    words: str, is_regression: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(Path("two"))
    write_numbers(Path("num"))
    command("svm-train", "-q", "two", "c")
    command("svm-train", "-q", "-s", "3", "num", "r")

    facts = json.loads(command(*words.split(), "--json").out)

    if is_regression:
        assert "accuracy" not in facts
        assert facts["mean_squared_error"] > 0.0
    else:
        assert 0.5 < facts["accuracy"] <= 1.0
        assert "mean_squared_error" not in facts


def test_time_limit_ends_training_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(Path("many"), 3, n=2000)

    done = command("svm-train", "--time-limit", "0.000001", "-q", "many", "m")

    assert done.code == 0
    assert "WARNING: Stopped at time_limit" in done.err
    assert Path("m").read_text().startswith("svm_type c_svc\n")


def test_time_limit_ends_a_grid_with_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_classes(Path("two"))

    done = command("grid", "--time-limit", "0.000001", "-out", "null", "two")

    first, last = done.out.splitlines()
    assert done.code == 0
    assert first.startswith("[local] 5 -7 ")
    assert last.split()[:2] == ["32.0", "0.0078125"]
    assert done.err.endswith(
        "WARNING: stopped at the time limit after 1 of 110 points of the grid\n"
    )


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    with pytest.raises(RuntimeError), written(str(target), "no") as stream:
        stream.write("half")
        raise RuntimeError

    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_file_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    path = str(tmp_path / "no" / "where")

    with pytest.raises(Failure, match="cannot"), written(path, "cannot") as stream:
        stream.write("text")
