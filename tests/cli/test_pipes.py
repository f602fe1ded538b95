"""Do commands read all of what comes through a pipe, which can be read only once?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_runs import Outcome, command, without_notice, write_classes

QUICK = ["--C", "4", "--gamma", "0.5", "--json"]
N = 600  # more text than is looked at to find the format
PATIENCE = 300  # seconds: a command that hangs must not hang the tests

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two", n=N)
    rows = "".join(f"{i % 7},{i % 3},{('ash', 'oak')[i % 2]}\n" for i in range(3 * N))
    Path("trees.csv").write_text(f"width,height,kind\n{rows}")
    return tmp_path


def piped(content: bytes, *words: str) -> Outcome:
    """Run a command in its own process, with something on its standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", *words],
        input=content,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    err = without_notice(done.stderr.decode())
    return Outcome(done.returncode, done.stdout.decode(), err)


@pytest.mark.parametrize("name", ["/dev/stdin", "-"])
def test_fit_reads_standard_input_as_it_reads_the_file(name: str) -> None:
    expected = json.loads(command("fit", *QUICK, "two", "of_file").out)

    done = piped(Path("two").read_bytes(), "fit", *QUICK, name, "of_pipe")

    facts = json.loads(done.out)
    for key in ("task", "samples", "classes", "cross_validated", "support_vectors"):
        assert facts[key] == expected[key]
    assert Path("of_pipe").read_bytes() == Path("of_file").read_bytes()


def test_fit_reads_a_named_pipe() -> None:
    os.mkfifo("pipe")
    write = threading.Thread(
        target=Path("pipe").write_bytes, args=[Path("two").read_bytes()], daemon=True
    )
    write.start()

    done = piped(b"", "fit", *QUICK, "pipe", "m")

    assert json.loads(done.out)["samples"] == N


def test_apply_predicts_every_row_of_a_pipe() -> None:
    command("fit", *QUICK, "two", "m")
    expected = command("apply", "--decisions", "m", "two").out

    done = piped(Path("two").read_bytes(), "apply", "--decisions", "m", "/dev/stdin")

    assert done.out == expected
    assert done.out.count("\n") == N


def test_apply_reads_a_table_from_a_pipe_with_and_without_its_target() -> None:
    command("fit", *QUICK, "trees.csv", "m")
    expected = command("apply", "m", "trees.csv").out
    rows = Path("trees.csv").read_text().splitlines()
    without = "".join(row.rpartition(",")[0] + "\n" for row in rows)

    for text in ("\n".join(rows), without):
        done = piped(text.encode(), "apply", "m", "-")

        assert done.out == expected


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("grid -log2c 1,1,1 -log2g -3,-3,1 -out null /dev/stdin", "2.0 0.125 "),
        ("checkdata /dev/stdin", "No error."),
        ("subset --seed 1 /dev/stdin 3", ""),
    ],
)
def test_tools_read_standard_input(words: str, end: str) -> None:
    done = piped(Path("two").read_bytes(), *words.split())
    expected = command(*words.replace("/dev/stdin", "two").split())

    assert done == expected
    assert done.out.splitlines()[-1].startswith(end)


def test_inspect_counts_the_bytes_of_a_piped_model() -> None:
    command("fit", *QUICK, "two", "m")
    content = Path("m").read_bytes()

    done = piped(content, "inspect", "--json", "/dev/stdin")

    assert json.loads(done.out)["bytes"] == len(content)


def test_a_model_on_standard_output_is_not_mixed_with_the_report() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "fit", *QUICK[:4], "two", "/dev/stdout"],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    Path("m").write_bytes(done.stdout)

    assert command("apply", "m", "two").code == 0
    assert done.stderr.startswith(b"data ")


def test_a_closed_standard_input_is_named() -> None:
    code = (
        "import sys; sys.stdin = None; from maxmargin.cli import main; "
        "sys.exit(main(['fit', '-']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=PATIENCE
    )

    assert done.returncode == 1
    assert done.stderr == b"can't read standard input: it is closed\n"
