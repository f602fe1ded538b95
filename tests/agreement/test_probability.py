"""Are probabilities those of LIBSVM, given its folds?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from datasets import load, many
from peer_lines import (
    IS_GLIBC,
    assert_lines_alike,
    begin_again,
    flush_c,
    lines_of,
    undisturbed,
)
from scipy import sparse as sp

import maxmargin.svmutil as ours
from maxmargin.models.calibration import density_marks

theirs = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is missing")
pytestmark = [
    pytest.mark.agreement,
    pytest.mark.skipif(not IS_GLIBC, reason="folds are those of GNU's rand()"),
]

CLASSES = {
    "heart": "-c 1",
    "svmguide1": "-c 1 -g 1",
    "splice": "-c 1",
    "vehicle": "-c 10 -g 0.1",
    "glass": "-c 10 -g 0.5",
    "satimage": "-c 10 -g 0.1",
    "a1a": "-c 1",
    "dna": "-c 1",
}
ROWS = many(200)


def samples(name: str) -> tuple[Any, Any]:
    X, y = load(name, ROWS)
    return X.toarray() if sp.issparse(X) else X, y.astype(float)


def both(name: str, options: str) -> tuple[Any, Any, Any, Any]:
    """The same training by both, with the same random numbers."""
    X, y = samples(name)
    begin_again()
    mine = ours.svm_train(y, X, f"{options} -b 1 -e 1e-6 -q")
    yours = undisturbed(lambda: theirs.svm_train(y, X, f"{options} -b 1 -e 1e-6 -q"))
    return mine, yours, X, y


@pytest.mark.parametrize("kind", ["", "-s 1 -n 0.1"], ids=["C-SVC", "nu-SVC"])
@pytest.mark.parametrize("name", CLASSES)
def test_sigmoids_and_probabilities(name: str, kind: str) -> None:
    if kind and name not in ("heart", "vehicle", "dna"):
        pytest.skip("nu-SVC on three sets")
    mine, yours, X, y = both(name, f"{CLASSES[name]} {kind}")

    n_pairs = len(mine.core.intercept)
    slope, offset = np.array(yours.probA[:n_pairs]), np.array(yours.probB[:n_pairs])
    assert np.abs(mine.core.prob_a - slope).max() < 1e-3
    assert np.abs(mine.core.prob_b - offset).max() < 1e-3
    assert mine.core.prob_power == 1.0
    found = ours.svm_predict(y, X, mine, "-b 1 -q")
    expected = theirs.svm_predict(y, X, yours, "-b 1 -q")
    assert np.abs(np.subtract(found[2], expected[2])).max() < 1e-3
    assert found[1][0] == pytest.approx(expected[1][0], abs=100.5 / len(y))


@pytest.mark.parametrize(
    "name, kind", [("mpg", "-s 3"), ("housing", "-s 4"), ("abalone", "-s 3 -t 0")]
)
def test_scales_of_errors(name: str, kind: str) -> None:
    mine, yours, _, _ = both(name, kind)

    assert mine.get_svr_probability() == pytest.approx(yours.probA[0], abs=1e-4)


def test_marks_of_one_class() -> None:
    """From LIBSVM's own decision values: rounding moves samples over the boundary."""
    mine, yours, X, _ = both("ad_pendigits", "-s 2 -n 0.1")

    marks = np.array(yours.prob_density_marks[:10])
    decisions = np.array(theirs.svm_predict([], X, yours, "-q")[2])[:, 0]
    own = density_marks(decisions)
    assert own is not None
    assert np.abs(own - marks).max() < 1e-12
    expected = theirs.svm_predict([], X, yours, "-b 1 -q")[2]
    core = replace(mine.core, density_marks=marks)
    found = core.read_probabilities(decisions[:, None])
    assert np.abs(np.subtract(found, expected)).max() < 1e-12
    assert (np.diff(mine.core.density_marks) >= 0.0).all()


@pytest.mark.parametrize("options", ["-b 1 -v 3", "-b 1 -s 3 -v 3", "-b 1 -s 3"])
def test_what_is_printed(options: str, capfd: pytest.CaptureFixture[str]) -> None:
    X, y = samples("heart")
    begin_again()
    first = ours.svm_train(y, X, f"{options} -e 1e-6")
    said = capfd.readouterr().out

    def peer() -> tuple[Any, str]:
        found = theirs.svm_train(y, X, f"{options} -e 1e-6")
        flush_c()
        return found, capfd.readouterr().out

    second, heard = undisturbed(peer)

    if "-v" in options:
        assert first == pytest.approx(second, rel=1e-4)
    sigma = [line for line in lines_of(said) if "Laplace" in line]
    if "-v" not in options:
        assert_lines_alike(sigma, [ln for ln in lines_of(heard) if "Laplace" in ln])
        assert len(sigma) == 1
