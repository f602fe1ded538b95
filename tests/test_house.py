"""Is the house in order: what importing costs, how long files are, what is promised?"""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import maxmargin
from maxmargin.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "maxmargin").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES = 500
IMPORT_RATIO = 1.8  # the promise is 1.4; other work on the machine may disturb it
RUNS = 3
every_source = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a new process holds after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def seconds_of(statement: str) -> float:
    """How long a new process takes for a statement, Python's own start apart."""
    code = (
        "import time\nbegan = time.perf_counter()\n"
        f"{statement}\nprint(time.perf_counter() - began)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


# ----------------------------------------------------------------------------- imports
def test_import_of_the_package_imports_nothing_heavy() -> None:
    found = modules_after("import maxmargin; maxmargin.__version__; dir(maxmargin)")

    assert found.isdisjoint({"numpy", "scipy", "sklearn", "numba", "joblib"})


def test_solver_room_does_not_need_scikit_learn() -> None:
    found = modules_after("import maxmargin.models")

    assert "numba" in found
    assert found.isdisjoint({"sklearn", "pandas", "matplotlib"})


@pytest.mark.parametrize("name", ["svmutil", "liblinearutil", "commonutil"])
def test_borrowed_interfaces_do_not_need_scikit_learn(name: str) -> None:
    found = modules_after(f"import maxmargin.{name}")

    assert "numpy" in found
    assert found.isdisjoint({"sklearn", "pandas", "matplotlib", "pyarrow", "onnx"})


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_of_a_command_needs_no_library(name: str) -> None:
    words = [name, "--help"] if name else ["--help"]

    found = modules_after(
        "import io, sys; from contextlib import redirect_stdout\n"
        f"from maxmargin.cli import main\nwith redirect_stdout(io.StringIO()):"
        f" main({words!r})"
    )

    assert found.isdisjoint({"numpy", "scipy", "numba", "sklearn", "rich", "argparse"})


@pytest.mark.parametrize("words", ["svm-train d m", "train d m", "fit --C 1 d m"])
def test_commands_do_not_need_scikit_learn(words: str, tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:1\n2 1:2\n" * 5)

    found = modules_after(
        f"import os; os.chdir({str(tmp_path)!r})\nfrom maxmargin.cli import main\n"
        f"main({[*words.split(), '--json']!r})"
    )

    assert "numpy" in found
    assert found.isdisjoint({"sklearn", "pandas", "matplotlib", "pyarrow", "rich"})
    assert (tmp_path / "m").exists()


@pytest.mark.slow
def test_help_and_a_small_training_are_quick(tmp_path: Path) -> None:
    rows = (f"{i % 2} 1:{i % 7} 2:{i % 5}\n" for i in range(270))
    (tmp_path / "d").write_text("".join(rows))

    def seconds(*words: str) -> float:
        command = [sys.executable, "-m", "maxmargin", *words]
        began = time.perf_counter()
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        return time.perf_counter() - began

    seconds("svm-train", "d")
    help_, training = seconds("--help"), seconds("svm-train", "d")

    print(f"\n--help {help_:.2f} s, svm-train {training:.2f} s")  # promised: 0.2, 1.5
    assert help_ < 2.0
    assert training < 10.0


@pytest.mark.slow
def test_import_of_an_estimator_costs_little_more_than_scikit_learns() -> None:
    ours, theirs = "from maxmargin import SVC", "from sklearn.svm import SVC"
    seconds_of(ours)
    seconds_of(theirs)
    ratios = [seconds_of(ours) / seconds_of(theirs) for _ in range(RUNS)]

    ratio = statistics.median(ratios)

    print(f"\nimport of SVC: {ratio:.2f} times scikit-learn's")
    assert ratio < IMPORT_RATIO


@pytest.mark.parametrize("name", maxmargin.__all__)
def test_public_names_can_be_imported(name: str) -> None:
    assert getattr(maxmargin, name) is not None
    assert name in dir(maxmargin)


def test_unknown_names_are_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LinearThing'"):
        maxmargin.LinearThing  # noqa: B018  the look itself fails


def test_version_is_one_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", maxmargin.__version__)


FIRST_FIT = """
import numpy as np
from maxmargin import SVC
X, y = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 2
import time
began = time.perf_counter()
SVC().fit(X, y).predict(X)
print(time.perf_counter() - began)
"""


@pytest.mark.slow
def test_first_fit_of_a_process_loads_machine_code_instead_of_compiling() -> None:
    def seconds() -> float:
        command = [sys.executable, "-c", FIRST_FIT]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout)

    seconds()
    found = seconds()

    print(f"\nfirst fit of a process: {found:.2f} s")
    assert found < 5.0


def test_fit_leaves_no_files_behind(tmp_path: Path) -> None:
    code = "from maxmargin import SVC\nSVC().fit([[0.0], [1.0]], [0, 1])"
    began = time.time()

    subprocess.run([sys.executable, "-B", "-c", code], cwd=tmp_path, check=True)

    assert list(tmp_path.iterdir()) == []
    package = Path(maxmargin.__file__).parent
    young = [p for p in package.rglob("*.nb?") if os.path.getmtime(p) > began]
    assert young == []


# ----------------------------------------------------------------------------- budgets
@pytest.mark.parametrize("path", SOURCES + TESTS, ids=lambda path: path.stem)
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


@every_source
def test_every_module_says_what_it_answers(path: Path) -> None:
    tree = ast.parse(path.read_text())

    assert ast.get_docstring(tree), f"{path.name} has no docstring"


def is_compiled_loop(node: ast.FunctionDef) -> bool:
    """Functions of compiled code get many arrays: each call costs time to compile."""
    names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    return bool(names & {"jit", "jit_compact", "jit_fast", "jit_new"})


@every_source
def test_every_function_is_short_and_annotated(path: Path) -> None:
    is_estimator = "estimators" in path.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        if node.name != "__init__":
            length = node.end_lineno - node.lineno + 1
            most = 160 if is_compiled_loop(node) else 60
            assert length <= most, f"{node.name} has {length} lines"
        if not is_estimator and node.name not in ("extremum", "emit"):
            arguments = [a for a in node.args.args if a.arg not in ("self", "cls")]
            assert all(a.annotation is not None for a in arguments), node.name


@every_source
def test_numba_never_has_threads_of_its_own(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"parallel\s*=\s*True|\bprange\b", text)
    assert not re.search(r"\bjitclass\b|\bnnan\b.*fastmath|\bninf\b", text)


# lanes: vectors that Numba won't make; _blas: the address of a routine; _processor: the
# features that Numba compiles for
TALK_TO_THE_COMPILER = (
    "_jit.py",
    "_callees.py",
    "_contexts.py",
    "_processor.py",
    "_blas.py",
    "lanes.py",
    "panels.py",
    "panel_code.py",
    "sparse_meeting.py",
)


@every_source
def test_only_one_file_talks_to_the_compiler(path: Path) -> None:
    imports = re.findall(r"^\s*(?:from|import) numba\b", path.read_text(), re.M)

    assert not imports or path.name in TALK_TO_THE_COMPILER


@every_source
def test_nothing_prints_but_what_was_asked_to(path: Path) -> None:
    calls = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]

    may_print = path.parts[-2] == "interop"  # what LIBSVM's own interface prints
    assert not calls or may_print or path.parts[-2:] == ("estimators", "base.py")
