"""Does a script for LIBLINEAR's Python package get the same answers from ours?

Solvers whose steps are followed are compared at LIBLINEAR's own tolerances, digit by
digit. The others are compared where it is told a tight one.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from datasets import load
from peer_lines import (
    IS_GLIBC,
    NUMBER,
    assert_alike,
    assert_lines_alike,
    begin_again,
    flush_c,
    lines_of,
    three_classes,
    undisturbed,
)
from readme_examples import LINEAR_EXAMPLES, write_heart

import maxmargin.liblinearutil as ours

pytestmark = pytest.mark.agreement
theirs = pytest.importorskip(
    "liblinear.liblinearutil", reason="liblinear-official is missing"
)

SOLVERS = {  # with a tolerance at which LIBLINEAR is near the solution
    0: "1e-8",
    1: "1e-7",
    2: "1e-8",
    3: "1e-7",
    4: "1e-7",
    5: "1e-8",
    6: "1e-8",
    7: "1e-8",
    11: "1e-8",
    12: "1e-8",
    13: "1e-8",
    21: "1e-8",
}
glibc = pytest.mark.skipif(
    not IS_GLIBC, reason="numbers are those of the GNU library's rand()"
)
REGRESSIONS = (11, 12, 13)
SWITCHING = "reaching max number of iterations"


@glibc
@pytest.mark.parametrize("example", LINEAR_EXAMPLES, ids=lambda e: e.__name__)
def test_readme_example_gives_the_same(example, tmp_path, capfd):
    path = write_heart(tmp_path / "heart_scale")

    begin_again()
    mine = example(ours, path)
    said = lines_of(capfd.readouterr().out)

    def peer():
        found = example(theirs, path)
        flush_c()
        return found, lines_of(capfd.readouterr().out)

    yours, heard = undisturbed(peer)

    assert_alike(mine, yours, 1e-4)
    if "methods" not in example.__name__:  # which trains a one-class machine
        assert said == heard


@glibc
def test_all_readme_examples_in_one_process_draw_the_same_numbers(tmp_path, capfd):
    path = write_heart(tmp_path / "heart_scale")
    drawing = [e for e in LINEAR_EXAMPLES if "methods" not in e.__name__]

    begin_again()
    mine = [example(ours, path) for example in drawing]
    yours = undisturbed(lambda: [example(theirs, path) for example in drawing])

    assert_alike(mine, yours, 1e-6)


@glibc
@pytest.mark.parametrize("options", ["", "-s 3", "-s 1 -B 1 -w3 4", "-s 2", "-s 0"])
def test_followed_steps_end_at_the_same_place(options, capfd):
    X, y = three_classes()

    begin_again()
    mine = [ours.train(y, X, options), ours.train(y, X, f"{options} -v 4")]
    said = lines_of(capfd.readouterr().out)
    begin_again()
    yours = [theirs.train(y, X, options), theirs.train(y, X, f"{options} -v 4")]
    flush_c()

    assert said == lines_of(capfd.readouterr().out)
    np.testing.assert_allclose(mine[0].w, yours[0].w[: len(mine[0].w)], atol=1e-8)
    assert mine[1] == yours[1]


def targets(solver, y):
    """Regressions get numbers that are not labels."""
    return y + np.sin(np.arange(len(y))) if solver in REGRESSIONS else y


@glibc
@pytest.mark.parametrize("bias", ["", "-B 1"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_agrees(solver, bias, capfd):
    if solver == 21 and bias:
        pytest.skip("a one-class machine has no bias")
    X, y = three_classes()
    y = targets(solver, y)
    options = f"-s {solver} -c 0.1 -e {SOLVERS[solver]} {bias}"

    begin_again()
    mine = ours.train(y, X, options)
    answers = ours.predict(y, X, mine, "-q")
    said = lines_of(capfd.readouterr().out)
    begin_again()
    yours = theirs.train(y, X, options)
    flush_c()
    heard = lines_of(capfd.readouterr().out)
    expected = theirs.predict(y, X, yours, "-q")

    is_limited = any(SWITCHING in line for line in heard)
    has_given_up = is_limited and not any("Switching to use" in ln for ln in heard)
    if not is_limited:
        assert_lines_alike(of_solution(said), of_solution(heard))
    if solver == 21:  # inside or outside has nothing to do with classes: no correlation
        assert answers[1][0] == pytest.approx(expected[1][0], abs=2.5)  # 4 of 160
    else:
        assert answers[1] == pytest.approx(expected[1], rel=0.1)  # labels may be close
    atol = 0.02 * np.abs(expected[2]).max() if has_given_up else 2e-3
    np.testing.assert_allclose(answers[2], expected[2], atol=atol)
    assert mine.get_labels() == yours.get_labels()
    n = len(mine.w)
    np.testing.assert_allclose(mine.w, yours.w[:n], atol=atol)


def of_solution(lines):
    """Without the steps that lead to it, which are each package's own."""
    return [
        line
        for line in lines
        if not line.startswith(("iter ", "init ", "nSV", "#nonzeros", "WARNING"))
    ]


@pytest.mark.parametrize("solver", [0, 2, 5, 6, 11])
def test_bias_that_is_not_regularised_agrees(solver):
    X, y = three_classes()
    y = targets(solver, y)
    options = f"-s {solver} -c 0.1 -e {SOLVERS[solver]} -B 1 -R -q"

    mine = ours.train(y, X, options)
    yours = theirs.train(y, X, options)

    np.testing.assert_allclose(mine.w, yours.w[: len(mine.w)], atol=5e-3)


@pytest.mark.parametrize("solver", [1, 4])
def test_weights_of_classes_are_read_alike(solver, capfd):
    X, y = three_classes()
    two = y != 2.0
    for rows in (slice(None), two):
        options = f"-s {solver} -w3 4 -w1 0.5 -w8 2 -e 1e-7 -c 0.1 -q"
        mine = ours.train(y[rows], X[rows], options)
        said = capfd.readouterr().err
        yours = theirs.train(y[rows], X[rows], options)
        flush_c()

        np.testing.assert_allclose(mine.w, yours.w[: len(mine.w)], atol=2e-3)
        assert said.strip() == capfd.readouterr().err.strip()


@glibc
@pytest.mark.parametrize("solver", SOLVERS)
def test_cross_validation_gives_their_figure(solver):
    X, y = three_classes()
    y = targets(solver, y)
    options = f"-s {solver} -v 5 -q -c 0.1 -e {SOLVERS[solver]}"

    begin_again()
    mine = ours.train(y, X, options)
    yours = undisturbed(lambda: theirs.train(y, X, options))

    assert mine == pytest.approx(yours, rel=1e-3 if solver in REGRESSIONS else 1e-12)


@glibc
@pytest.mark.parametrize(
    "options", ["-C -s 0", "-C", "-C -s 2 -v 3 -c 0.01", "-C -s 11"]
)
def test_search_walks_the_same_path(options, capfd):
    name = "mpg" if "11" in options else "heart"
    X, y = load(name, 100)

    begin_again()
    mine = ours.train(y, X, options)
    said = lines_of(capfd.readouterr().out)

    def peer():
        found = theirs.train(y, X, options)
        flush_c()
        return found, lines_of(capfd.readouterr().out)

    yours, heard = undisturbed(peer)

    assert mine == pytest.approx(yours, rel=1e-4)
    if name == "heart":
        assert said == heard
    assert words_of(said) == words_of(heard)


def words_of(lines):
    """Which lines there are, whatever their numbers."""
    return {re.sub(rf"{NUMBER}|\s+", " ", line) for line in lines}


@pytest.mark.parametrize("classes", [2, 3])
def test_given_start_is_laid_out_as_theirs(classes):
    X, y = three_classes()
    if classes == 2:
        X, y = X[y != 2.0], y[y != 2.0]
    trained = theirs.train(y, X, "-s 0 -B 1 -e 1e-8 -q")
    n = (X.shape[1] + 1) * (1 if classes == 2 else 3)
    start = (ctypes.c_double * n)(*trained.w[:n])

    prob, param = ours.problem(y, X), ours.parameter("-s 0 -B 1 -e 1e-3 -q")
    param.init_sol = start
    again = ours.train(prob, param)

    np.testing.assert_allclose(again.w, trained.w[:n], atol=1e-3)


@pytest.mark.parametrize(
    "wrong",
    ["-e 0", "-c 0", "-s 11 -p -1", "-s 21 -B 1", "-R", "-s 1 -B 1 -R"],
)
def test_wrong_parameters_are_refused_in_their_words(wrong):
    with pytest.raises(ValueError) as mine:
        ours.train([1, -1], [[1.0], [-1.0]], wrong)
    with pytest.raises(ValueError) as yours:
        theirs.train([1, -1], [[1.0], [-1.0]], wrong)

    assert str(mine.value) == str(yours.value).replace("b'", "").replace("'", "")
