"""Do scikit-learn's own SVM tests pass with our classes in place of theirs?"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
import sklearn

import maxmargin

pytestmark = pytest.mark.agreement

HERE = Path(__file__).parent
ROOT = Path(sklearn.__file__).parents[1]
FOLDER = "sklearn/svm/tests"
FILES = ("test_svm.py", "test_sparse.py", "test_bounds.py")
DESELECTED = "deselected here: "

BINDING = "tests a private binding of scikit-learn to its own copy of LIBSVM"
RANDOM = "tests scikit-learn's private random number generator"
DEPRECATION = "tests that scikit-learn is about to remove `probability`"
ARRIVED = "wants two iterations to be too few for six points: ours are exact by then"
EARLIER = "wants a kernel of the wrong shape to fail at predict: ours fails at fit"

LEFT_OUT = {  # how its name begins, as pytest deselects: why it does not apply to us
    "test_svm.py::test_libsvm_iris": BINDING,
    "test_svm.py::test_svr_errors": EARLIER,
    "test_svm.py::test_linear_svm_convergence_warnings": ARRIVED,
    "test_svm.py::test_probability_raises_futurewarning": DEPRECATION,
    "test_svm.py::test_svc_nusvc_probA_probB_deprecated": DEPRECATION,
    "test_bounds.py::test_newrand_default": RANDOM,
    "test_bounds.py::test_newrand_set_seed": RANDOM,
    "test_bounds.py::test_newrand_set_seed_overflow": RANDOM,
    "test_bounds.py::test_newrand_bounded_rand_int": RANDOM,
    "test_bounds.py::test_newrand_bounded_rand_int_limits": RANDOM,
}
AT_LEAST = 220  # passed, with scikit-learn 1.9


class Outcome(NamedTuple):
    """How the run in the subprocess went."""

    counts: Counter[str]
    bad: list[str]
    left_out: set[str]
    output: str


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Run scikit-learn's tests once, with our classes patched in."""
    folder = tmp_path_factory.mktemp("suite")
    report = folder / "report.xml"
    run = subprocess.run(
        command(report),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert report.exists(), run.stdout + run.stderr
    return read(report, run.stdout)


def command(report: Path) -> list[str]:
    """The pytest command: no configuration of ours, deselections by name."""
    return [
        sys.executable,
        *("-m", "pytest", "-q", "-p", "patch_sklearn_svm", "-p", "no:cacheprovider"),
        *("-c", os.devnull, "--rootdir", str(ROOT), f"--junitxml={report}"),
        *(f"--deselect={FOLDER}/{name}" for name in LEFT_OUT),
        *(str(ROOT / FOLDER / name) for name in FILES),
    ]


def environment() -> dict[str, str]:
    """This process's environment, with the plugin and the package importable."""
    package = Path(maxmargin.__file__).parents[1]
    known = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([str(HERE), str(package), known])
    return {**os.environ, "PYTHONPATH": path}


def read(report: Path, output: str) -> Outcome:
    """The JUnit report, and the plugin's lines."""
    counts: Counter[str] = Counter()
    bad = []
    for case in ET.parse(report).iter("testcase"):
        kind = next(
            (child.tag for child in case if child.tag != "properties"), "passed"
        )
        counts[kind] += 1
        if kind in ("failure", "error"):
            bad.append(f"{case.get('classname')}::{case.get('name')}")
    lines = (line.strip() for line in output.splitlines())
    left = {line.removeprefix(DESELECTED) for line in lines if DESELECTED in line}
    return Outcome(counts, bad, left, output)


def test_nothing_fails(outcome: Outcome) -> None:
    assert outcome.bad == [], outcome.output[-20_000:]
    assert outcome.counts["failure"] == outcome.counts["error"] == 0


def test_most_of_the_suite_ran(outcome: Outcome) -> None:
    assert outcome.counts["passed"] >= AT_LEAST, outcome.counts


def test_exactly_the_named_tests_are_left_out(outcome: Outcome) -> None:
    functions = {nodeid.split("[")[0] for nodeid in outcome.left_out}
    assert functions == {f"{FOLDER}/{name.rstrip('[')}" for name in LEFT_OUT}
