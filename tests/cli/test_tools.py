"""Do grid, easy, subset and checkdata what LIBSVM's scripts do?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from cli_runs import command, real, write_classes, write_numbers

from maxmargin.cli.grid_plan import Steps, plan
from maxmargin.data.svmlight import read_svmlight

SMALL_GRID = ["-log2c", "-1,3,2", "-log2g", "-1,-5,-2", "-v", "3"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two")
    write_numbers(tmp_path / "num")
    return tmp_path


# -------------------------------------------------------------------------------- grid
def test_grid_prints_each_point_and_the_best() -> None:
    done = command("grid", *SMALL_GRID, "two")

    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) == 10
    assert lines[0].startswith("[local] 1.0 -3.0 ")
    assert lines[0].endswith(f"(best c=2.0, g=0.125, rate={lines[0].split()[3]})")
    best_c, best_g, rate = lines[-1].split()
    assert lines[-2].endswith(f"(best c={best_c}, g={best_g}, rate={rate})")
    logged = Path("two.out").read_text().splitlines()
    assert logged[0] == f"log2c=1.0 log2g=-3.0 rate={lines[0].split()[3]}"
    assert len(logged) == 9


def test_grid_resumes_from_its_file() -> None:
    whole = command("grid", *SMALL_GRID, "two")
    kept = Path("two.out").read_text().splitlines(keepends=True)
    Path("two.out").write_text("".join(kept[:4]))

    resumed = command("grid", *SMALL_GRID, "-resume", "two")

    assert resumed.out.splitlines()[-1] == whole.out.splitlines()[-1]
    assert [line[:9] for line in resumed.out.splitlines()[:5]] == 4 * ["[resumed]"] + [
        "[local] 1"
    ]
    assert Path("two.out").read_text().splitlines(keepends=True) == kept


def test_grid_leaves_results_of_another_search_aside() -> None:
    command("grid", "-log2c", "-1,3,2", "-log2g", "null", "two")
    text = Path("two.out").read_text().replace("rate=", "rate=1")  # beyond all others
    Path("two.out").write_text(text)

    done = command("grid", *SMALL_GRID, "-resume", "--json", "two")

    facts = json.loads(done.out)
    assert {"C", "gamma"} <= facts.keys()
    assert facts["points"] == facts["points_tried"] == 9
    assert done.err == (
        "WARNING: two.out: 3 results of a search of other parameters (-log2c or -log2g "
        "null) are left aside\n"
    )


def test_grid_takes_options_after_the_name_of_the_results() -> None:
    first = command("grid", *SMALL_GRID, "-out", "kept", "two")

    done = command("grid", "-resume", "kept", *SMALL_GRID, "two")

    assert done.out.count("[resumed]") == len(done.out.splitlines()) - 1 == 9
    assert done.out.splitlines()[-1] == first.out.splitlines()[-1]


def test_grid_leaves_a_file_that_holds_no_results_as_it_is() -> None:
    Path("other").write_text("a diary,\nits last line without an end")

    done = command("grid", "-resume", "other", *SMALL_GRID, "two")

    assert done.code == 1
    assert done.err.startswith("other is no file of results of grid")
    assert Path("other").read_text() == "a diary,\nits last line without an end"


def test_grid_does_not_resume_from_data() -> None:
    done = command("grid", *SMALL_GRID, "-resume", "two", "two")

    assert done.code == 1
    assert done.err.startswith("two is no file of results of grid")


@pytest.mark.skipif(os.name == "nt", reason="there is no signal 9")
@pytest.mark.parametrize("n_before", [1, 4])
def test_a_killed_grid_loses_one_point_at_most(n_before: int) -> None:
    words = ["grid", *SMALL_GRID, "-gnuplot", "null", "two"]
    started = [sys.executable, "-m", "maxmargin", *words]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(n_before)]
        process.kill()
        said += process.stdout.readlines()
    n_kept = Path("two.out").read_text().count("\n")
    with Path("two.out").open("a") as stream:
        stream.write("log2c=3.0 log2g=-1.0 rate=9")  # as if torn while written

    resumed = command(*words[:-1], "-resume", "two")
    whole = command(*words)

    n_said = sum(line.startswith("[local]") for line in said)
    assert n_before <= n_said <= n_kept + 1
    assert resumed.out.count("[resumed]") == n_kept
    assert resumed.out.count("[local]") == 9 - n_kept
    assert resumed.out.splitlines()[-1] == whole.out.splitlines()[-1]


def test_grid_draws_a_picture_where_it_can() -> None:
    pytest.importorskip("matplotlib")

    command("grid", *SMALL_GRID, "two")
    command("grid", *SMALL_GRID, "-png", "other.png", "two")

    for name in ("two.png", "other.png"):
        assert Path(name).read_bytes().startswith(b"\x89PNG")


def write_linear_kernel(name: str) -> str:
    """The same samples as rows of a precomputed kernel."""
    data = read_svmlight(name)
    X, y = data.X.toarray(), data.y
    K = X @ X.T + 1.0
    rows = [
        f"{y[i]:g} 0:{i + 1} " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(k))
        for i, k in enumerate(K)
    ]
    Path(f"{name}.kernel").write_text("\n".join(rows) + "\n")
    return f"{name}.kernel"


@pytest.mark.parametrize(
    "options",
    ["", "-s 1 -n 0.3", "-s 3", "-s 4 -n 0.3", "-t 1 -d 2", "-t 4 -s 1"],
)
def test_grid_finds_the_rates_of_svm_train(options: str) -> None:
    name = "num" if "-s 3" in options or "-s 4" in options else "two"
    if "-t 4" in options:
        name = write_linear_kernel("two")
    fine = [*options.split(), "-e", "1e-6"]

    command("grid", "-log2c", "0,4,4", "-log2g", "-2,-4,-2", *fine, "-v", "3", name)

    lines = Path(f"{name}.out").read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        C, gamma, rate = (float(part.split("=")[1]) for part in line.split())
        point = ["-c", str(2.0**C), "-g", str(2.0**gamma), "-v", "3"]
        said = command("svm-train", "-q", *fine, *point, name).out
        figure = next(line for line in said.splitlines() if "Cross" in line)
        expected = float(figure.split("=")[1].strip(" %"))
        assert rate == pytest.approx(expected, rel=1e-4)


def test_grid_of_one_parameter() -> None:
    done = command("grid", "-log2g", "null", "-log2c", "1,2,1", "-out", "null", "two")

    assert done.out.splitlines()[0].startswith("[local] 2.0 ")
    assert "g=" not in done.out
    assert not Path("two.out").exists()


def test_grid_of_a_regression_looks_for_the_smallest_error() -> None:
    done = command("grid", *SMALL_GRID, "-s", "3", "--json", "num")

    logged = Path("num.out").read_text().splitlines()
    rates = [float(line.split("=")[-1]) for line in logged]
    assert json.loads(done.out)["mean_squared_error"] == min(rates)


def test_plan_covers_the_grid_middle_first() -> None:
    points = list(plan(Steps(-5, 15, 2), Steps(3, -15, -2)))

    assert points[:4] == [(5, -7), (-1, -7), (5, -1), (-1, -1)]
    assert len(points) == len(set(points)) == 110


@pytest.mark.agreement
def test_grid_prints_what_the_script_prints() -> None:
    if shutil.which("svm-grid") is None:
        pytest.skip("svm-grid is not installed")
    where = ["-svmtrain", shutil.which("svm-train"), "-gnuplot", "null", "-out", "null"]

    ours = command("grid", *where, *SMALL_GRID, "-e", "1e-5", "two")
    theirs = real("svm-grid", *where, *SMALL_GRID, "-e", "1e-5", "two")

    assert ours.out == theirs.out


# -------------------------------------------------------------------------------- easy
def test_easy_does_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Steps(-1, 3, 2), Steps(-1, -5, -2)
    monkeypatch.setattr("maxmargin.cli.grid.DEFAULT_STEPS", small)

    done = command("easy", "two", "two")

    lines = done.out.splitlines()
    assert done.code == 0
    assert [line.split(" ")[0] for line in lines] == [
        *("Scaling", "Cross", "Best", "Training...", "Output"),
        *("Scaling", "Testing...", "Accuracy", "Output"),
    ]
    assert lines[4] == "Output model: two.model"
    assert lines[-1] == "Output prediction: two.predict"
    names = ("two.scale", "two.range", "two.scale.out", "two.model", "two.predict")
    assert all(Path(name).stat().st_size > 0 for name in names)


def test_easy_is_one_object_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Steps(-1, 3, 2), Steps(-1, -5, -2)
    monkeypatch.setattr("maxmargin.cli.grid.DEFAULT_STEPS", small)

    facts = json.loads(command("easy", "--json", "two", "two").out)

    assert 0.5 < facts["accuracy"] <= 1.0
    assert 0.5 < facts["test"]["accuracy"] <= 1.0
    assert facts["prediction"] == "two.predict"


# ------------------------------------------------------------------------------ subset
def test_subset_keeps_proportions_and_order() -> None:
    done = command("subset", "two", "30", "part", "rest")

    whole = Path("two").read_text().splitlines()
    part, rest = (Path(n).read_text().splitlines() for n in ("part", "rest"))
    assert done == (0, "", "")
    assert Counter(line.split()[0] for line in part) == {"1": 15, "-1": 15}
    assert [line for line in whole if line in set(part)] == part
    assert sorted(part + rest) == sorted(whole)


def test_subset_goes_to_the_screen_and_can_be_repeated() -> None:
    draws = [command("subset", "-s", "1", "--seed", "7", "two", "9") for _ in range(2)]
    other = command("subset", "-s", "1", "--seed", "8", "two", "9")

    assert draws[0] == draws[1]
    assert draws[0].out.count("\n") == 9
    assert other.out != draws[0].out


def test_subset_with_more_classes_than_lines_is_refused() -> None:
    done = command("subset", "num", "3")

    assert done.code == 255
    assert done.err.startswith("Error: failed to have at least one instance per class")


def test_subset_keeps_bytes_that_are_no_text() -> None:
    Path("odd").write_bytes(b"1 1:1 # \xff\xfe\n2 1:2\n")

    command("subset", "-s", "1", "odd", "2", "part")

    assert Path("part").read_bytes() == Path("odd").read_bytes()


# --------------------------------------------------------------------------- checkdata
CHECKED = {
    "1 1:1\n": [],
    "1,3 1:1\n": [],
    "1 0:1 5:-2e3\n": [],
    "1 1:1": ["line 1: missing a newline character in the end"],
    "\n": ["line 1: missing label, perhaps an empty line?"],
    "x 1:1\n": ["line 1: label x is not a number"],
    "nan 1:1\n": ["line 1: label nan is not a number"],
    "1,x 1:1\n": ["line 1: label 1,x is not a valid multi-label form"],
    "1 -1:1\n": ["line 1: feature index must be positive; wrong feature -1:1"],
    "1 2:1 1:1\n": [
        "line 1: feature indices must be in an ascending order, previous/current "
        "features 2:1 1:1"
    ],
    "1 1:inf 2\n": [
        f"line 1: feature '{word}' not an <index>:<value> pair, <index> integer, "
        "<value> real number "
        for word in ("1:inf", "2")
    ],
}


@pytest.mark.parametrize("text", CHECKED)
def test_checkdata_names_each_mistake(text: str) -> None:
    Path("data").write_text("1 1:1\n" + text)
    expected = [line.replace("line 1", "line 2") for line in CHECKED[text]]

    done = command("checkdata", "data")

    end = "Found 1 lines with error." if expected else "No error."
    assert done.out.splitlines() == [*expected, end]
    assert done.code == (1 if expected else 0)


@pytest.mark.agreement
def test_checkdata_prints_what_the_script_prints() -> None:
    if shutil.which("svm-checkdata") is None:
        pytest.skip("svm-checkdata is not installed")
    Path("data").write_text("".join(sorted(CHECKED, key=lambda t: t.endswith("1"))))

    ours, theirs = command("checkdata", "data"), real("svm-checkdata", "data")

    assert (ours.code, ours.out) == (theirs.code, theirs.out)


def test_checkdata_misses_a_file() -> None:
    done = command("checkdata", "nowhere")

    assert (done.code, done.out) == (1, "dataset nowhere not found\n")
