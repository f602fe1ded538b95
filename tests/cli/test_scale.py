"""Does svm-scale give the bytes that LIBSVM's gives?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_runs import command, real, write_classes, write_numbers

ROWS = "1 1:2 2:5 3:1\n-1 1:4 3:1\n1 2:10 3:1 5:0.123456789\n"
CASES = {  # options: what LIBSVM 3.24 printed
    "": "1 5:-1 \n-1 1:1 2:-1 5:-1 \n1 1:-1 2:1 5:1 \n",
    "-l 0 -u 1": "1 1:0.5 2:0.5 \n-1 1:1 \n1 2:1 5:1 \n",
    "-y 0 1": "1 5:-1 \n0 1:1 2:-1 5:-1 \n1 1:-1 2:1 5:1 \n",
}
RANGES = "y\n-1 1\n-1 1\nx\n0 1\n1 0 4\n2 0 10\n5 0 0.123456789\n"
GREW = (
    "WARNING: original #nonzeros 3\n       > new      #nonzeros 6\n"
    "If feature values are non-negative and sparse, use -l 0 rather than the default "
    "-l -1\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rows").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize("options", CASES)
def test_scaled_rows_are_the_golden_ones(options: str) -> None:
    done = command("svm-scale", *options.split(), "rows")

    assert (done.out, done.code) == (CASES[options], 0)


def test_ranges_are_saved_and_restored() -> None:
    saved = command("svm-scale", "-s", "r", "-y", "-1", "1", "-l", "0", "rows")
    restored = command("svm-scale", "-r", "r", "rows")

    assert Path("r").read_text() == RANGES
    assert saved.out == restored.out
    assert restored.code == 0


def test_features_without_a_range_are_named_and_left_out() -> None:
    Path("r").write_text("x\n-1 1\n1 0 2\n3 -4 0\n")
    Path("new").write_text("1 1:1\n2 4:2\n")

    done = command("svm-scale", "-r", "r", "new")

    assert done.out == "1 3:1 \n2 1:-1 3:1 \n"
    assert done.err.startswith(
        "WARNING: feature index 4 appeared in file new was not seen in the scaling "
        "factor file r. The feature is scaled to 0.\n"
    )


def test_growth_is_warned_of() -> None:
    Path("thin").write_text("1 1:2 3:-4\n3 2:1 # c\n")

    done = command("svm-scale", "thin")

    assert done.out == "1 1:1 2:-1 3:-1 \n3 1:-1 2:1 3:1 \n"
    assert done.err == GREW


def test_large_indices_cost_nothing() -> None:
    Path("far").write_text("1 7:1 2000000000:3\n2 7:2 2000000000:1\n")

    done = command("svm-scale", "-s", "r", "far")

    assert done.out == "1 7:-1 2000000000:1 \n2 7:1 2000000000:-1 \n"
    assert Path("r").read_text() == "x\n-1 1\n7 1 2\n2000000000 1 3\n"


def test_json_tells_sizes_beside_the_data() -> None:
    done = command("svm-scale", "--json", "rows")

    assert done.out == command("svm-scale", "rows").out
    assert done.err == '{"samples": 3, "features": 4, "nonzeros": [8, 7]}\n'


@pytest.mark.agreement
@pytest.mark.parametrize(
    "options", ["", "-l 0", "-l -3 -u 5", "-y 2 3", "-l 0 -u 1 -y -1 1"]
)
@pytest.mark.parametrize("write", [write_classes, write_numbers])
def test_bytes_are_those_of_svm_scale(options: str, write: object) -> None:
    if shutil.which("svm-scale") is None:
        pytest.skip("svm-scale is not installed")
    write(Path("data"))  # type: ignore[operator]
    words = ["svm-scale", *options.split()]

    ours, theirs = command(*words, "-s", "a", "data"), real(*words, "-s", "b", "data")

    assert ours == theirs
    assert Path("a").read_bytes() == Path("b").read_bytes()
    again = "svm-scale", "-r"
    assert command(*again, "b", "rows") == real(*again, "b", "rows")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere", "can't open file nowhere"),
        ("-s a -r b rows", "cannot use -r and -s simultaneously"),
        ("-l 2 -u 1 rows", "inconsistent lower/upper specification"),
        ("-y 1 0 rows", "inconsistent lower/upper specification"),
        ("-r nowhere rows", "can't open file nowhere"),
        ("-s no/where rows", "can't open file no/where"),
        ("-l abc rows", "-l needs a finite number, got 'abc'"),
        ("-z 1 rows", "unknown option: -z"),
    ],
)
def test_mistakes_are_one_line_on_stderr(words: str, message: str) -> None:
    done = command("svm-scale", *words.split())

    assert done.code == 1
    assert done.err == message + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "q\n1 2\n",
        "x\n1\n",
        "x\n-1 1\n0 1 2\n",
        "x\n-1 1\n1 nan 2\n",
        "x\n-1 1\n1 a b",
    ],
)
def test_broken_ranges_are_refused(text: str) -> None:
    Path("r").write_text(text)

    done = command("svm-scale", "-r", "r", "rows")

    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith("Wrong format in scaling factor file r at line ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("words", ["", "-l", "-y 1", "rows rows"])
def test_too_few_or_too_many_arguments_show_the_usage(words: str) -> None:
    done = command("svm-scale", *words.split())

    assert done.code == 1
    assert done.out.startswith("Usage: svm-scale [options] data_filename\n")
