"""Does a script for LIBSVM's Python package get the same answers from ours?"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from peer_lines import (
    IS_GLIBC,
    assert_alike,
    assert_lines_alike,
    begin_again,
    flush_c,
    lines_of,
    three_classes,
    undisturbed,
)
from readme_examples import SVM_EXAMPLES, write_heart

import maxmargin.svmutil as ours

pytestmark = pytest.mark.agreement
theirs = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is missing")


@pytest.mark.parametrize("example", SVM_EXAMPLES, ids=lambda e: e.__name__)
def test_readme_example_gives_the_same(example, tmp_path, capfd):
    if "cross" in example.__name__ and not IS_GLIBC:
        pytest.skip("folds are those of the GNU library's rand()")
    path = write_heart(tmp_path / "heart_scale")

    begin_again()
    mine = example(ours, path)
    said = capfd.readouterr().out

    def peer():
        found = example(theirs, path)
        flush_c()
        return found, capfd.readouterr().out

    yours, heard = undisturbed(peer)

    assert_alike(mine, yours)
    assert_lines_alike(lines_of(said), lines_of(heard))


TYPES = {
    "C-SVC": "-s 0 -c 2",
    "nu-SVC": "-s 1 -n 0.6",
    "one-class": "-s 2 -n 0.3",
    "epsilon-SVR": "-s 3 -c 2 -p 0.2",
    "nu-SVR": "-s 4 -c 2 -n 0.4",
}
KERNELS = {
    "linear": "-t 0",
    "polynomial": "-t 1 -d 2 -r 1 -g 0.2",
    "RBF": "-t 2",
    "sigmoid": "-t 3 -g 0.01 -r -0.1",
}


@pytest.mark.parametrize("machine", TYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_machine_and_kernel_agrees(machine, kernel, capfd):
    X, y = three_classes()
    options = f"{TYPES[machine]} {KERNELS[kernel]} -e 1e-5"
    is_nu = machine == "nu-SVC"  # where errors are divided by the margin, twice

    mine = ours.svm_train(y, X, options)
    answers = ours.svm_predict(y, X, mine, "-q")
    said = capfd.readouterr().out
    theirs_model = theirs.svm_train(y, X, options)
    flush_c()
    heard = capfd.readouterr().out

    assert_lines_alike(lines_of(said), lines_of(heard), 0.02 if is_nu else 1e-6)
    assert mine.get_labels() == theirs_model.get_labels()
    assert mine.get_nr_class() == theirs_model.get_nr_class()
    rho = theirs_model.rho[: len(mine.rho)]
    np.testing.assert_allclose(mine.rho, rho, rtol=2e-2, atol=2e-2)
    expected = list(_decisions(theirs_model, X))
    near = 0.05 if is_nu else 5e-3
    np.testing.assert_allclose(answers[2], expected, atol=near)


def _decisions(model, X):
    """The package's own function has too little room for nu-SVC's values."""
    n = max(1, model.nr_class * (model.nr_class - 1) // 2)
    room = (ctypes.c_double * n)()
    for row in X:
        nodes, _ = theirs.gen_svm_nodearray(row)
        theirs.libsvm.svm_predict_values(model, nodes, room)
        yield room[: n if model.get_svm_type() < 2 else 1]


@pytest.mark.skipif(not IS_GLIBC, reason="folds are those of the GNU library's rand()")
@pytest.mark.parametrize("machine", TYPES)
def test_cross_validation_gives_their_figure(machine):
    X, y = three_classes()
    options = f"{TYPES[machine]} -v 5 -q -e 1e-4"

    begin_again()
    mine = [ours.svm_train(y, X, options) for _ in range(2)]
    yours = undisturbed(lambda: [theirs.svm_train(y, X, options) for _ in range(2)])

    is_regression = "SVR" in machine
    assert mine == pytest.approx(yours, rel=1e-3 if is_regression else 1e-12)


@pytest.mark.skipif(not IS_GLIBC, reason="folds are those of the GNU library's rand()")
@pytest.mark.parametrize("n_folds", [2, 7, 160, 200])
def test_folds_of_any_number_are_theirs(n_folds, capfd):
    X, y = three_classes()
    options = f"-v {n_folds} -q -t 0 -c 0.1"

    begin_again()
    mine = ours.svm_train(y, X, options)
    begin_again()
    yours = theirs.svm_train(y, X, options)

    assert mine == yours
    assert ("Will use # folds = # data" in capfd.readouterr().err) == (n_folds > 160)


def test_weights_of_classes_and_unknown_labels_are_read_alike(capfd):
    X, y = three_classes()
    options = "-w3 5 -w1 0.5 -w9 2 -e 1e-5"

    mine = ours.svm_train(y, X, options)
    said = capfd.readouterr()
    yours = theirs.svm_train(y, X, options)
    flush_c()
    heard = capfd.readouterr()

    assert_lines_alike(lines_of(said.out), lines_of(heard.out))
    assert said.err.strip() == heard.err.strip()
    assert mine.get_sv_indices() == yours.get_sv_indices()
    assert mine.nSV == yours.nSV[: mine.nr_class]


@pytest.mark.parametrize("machine", ["C-SVC", "nu-SVC", "one-class", "epsilon-SVR"])
def test_models_with_probabilities_are_used_alike(machine, tmp_path):
    X, y = three_classes()
    name = str(tmp_path / "model")
    trained = theirs.svm_train(y, X, f"{TYPES[machine]} -b 1 -q")
    theirs.svm_save_model(name, trained)

    mine = ours.svm_predict(y, X, ours.svm_load_model(name), "-b 1 -q")
    yours = theirs.svm_predict(y, X, theirs.svm_load_model(name), "-b 1 -q")

    assert mine[0] == pytest.approx(yours[0], abs=1e-9)
    assert mine[1] == pytest.approx(yours[1])
    np.testing.assert_allclose(mine[2], yours[2], atol=1e-9)


@pytest.mark.parametrize("wrong", ["-g -1", "-t 1 -d -1", "-m 0", "-e 0", "-c 0"])
def test_wrong_parameters_are_refused_in_their_words(wrong):
    with pytest.raises(ValueError) as mine:
        ours.svm_train([1, -1], [[1.0], [-1.0]], wrong)
    with pytest.raises(ValueError) as yours:
        theirs.svm_train([1, -1], [[1.0], [-1.0]], wrong)

    assert str(mine.value) == str(yours.value).replace("b'", "").replace("'", "")
