"""Does `from maxmargin.svmutil import *` serve scripts, and refuse what it must?"""

from __future__ import annotations

import bz2
import ctypes
import io
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.svmutil as svm
from maxmargin.errors import InvalidInput, ModelFormatError, NotAvailable
from maxmargin.interop.c_rand import PROCESS

X = np.random.default_rng(0).normal(size=(60, 4)).round(3)
Y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
DICTS = [{j + 1: v for j, v in enumerate(row)} for row in X.tolist()]


def test_every_form_of_samples_gives_the_same_model():
    forms = [
        X,
        X.tolist(),
        tuple(map(tuple, X.tolist())),
        DICTS,
        [(np.arange(4), row) for row in X],
        list(X),
        sp.csr_matrix(X),
        sp.csr_array(X),
        sp.coo_matrix(X),
    ]

    models = [svm.svm_train(Y, form, "-c 2 -q") for form in forms]
    values = [svm.svm_predict(Y, form, models[0], "-q")[2] for form in forms]

    for model, value in zip(models, values, strict=True):
        assert model.get_sv_indices() == models[0].get_sv_indices()
        np.testing.assert_allclose(model.get_sv_coef(), models[0].get_sv_coef())
        np.testing.assert_allclose(value, values[0], atol=1e-12)


def test_the_star_brings_the_names_of_the_package():
    names = set(svm.__all__)

    assert {"svm_train", "svm_predict", "svm_load_model", "svm_save_model"} <= names
    assert {"svm_problem", "svm_parameter", "svm_model", "svm_node"} <= names
    assert {"libsvm", "toPyModel", "gen_svm_nodearray", "print_null"} <= names
    assert {"svm_read_problem", "evaluations", "csr_scale", "c_double"} <= names


def test_scikit_learn_is_not_loaded():
    code = (
        "import sys; import maxmargin.svmutil, maxmargin.liblinearutil, "
        "maxmargin.commonutil; sys.exit('sklearn' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_labels_come_in_the_order_of_their_appearance():
    x = [[float(i)] for i in range(12)]
    y = [5, 5, 2, 2, 9, 9, 5, 5, 2, 2, 9, 9]

    assert svm.svm_train(y, x, "-q").get_labels() == [5, 2, 9]
    assert svm.svm_train([-1, -1, 1, 1] * 3, x, "-q").get_labels() == [1, -1]
    assert svm.svm_train([0, 0, 1, 1] * 3, x, "-q").get_labels() == [0, 1]


def test_gamma_counts_features_that_are_there():
    wide = np.hstack([X, np.zeros((60, 3))])

    assert svm.svm_problem(Y, wide).n == 4
    assert svm.svm_problem(Y, sp.csr_matrix(wide)).n == 7
    param = svm.svm_parameter("-q")
    svm.svm_train(svm.svm_problem(Y, wide), param)
    assert param.gamma == 0.25


def test_training_says_what_libsvm_says(capsys):
    svm.svm_train(Y, X)
    lines = capsys.readouterr().out.splitlines()

    starts = ["*", "optimization finished, #iter = ", "nu = ", "obj = ", "nSV = "]
    assert len(lines) == 6
    for line, start in zip(lines, [*starts, "Total nSV = "], strict=True):
        assert line.startswith(start)
    svm.svm_train(Y, X, "-q")
    assert capsys.readouterr().out == ""


def test_who_prints_can_be_chosen(capsys):
    heard = []
    param = svm.svm_parameter("-c 2")
    param.print_func = svm.PRINT_STRING_FUN(heard.append)

    svm.svm_train(svm.svm_problem(Y, X), param)

    assert b"optimization finished" in b"".join(heard)
    assert capsys.readouterr().out == ""


def test_cross_validation_is_the_same_in_every_new_process():
    PROCESS.srand(1)
    first = svm.svm_train(Y, X, "-v 4 -q")
    second = svm.svm_train(Y, X, "-v 4 -q")

    PROCESS.srand(1)
    assert svm.svm_train(Y, X, "-v 4 -q") == first
    assert svm.svm_train(Y, X, "-v 4 -q") == second


def test_weights_count_as_copies():
    weight = np.tile([1.0, 2.0, 0.0], 20)
    rows = np.repeat(np.arange(60), weight.astype(int))

    weighed = svm.svm_train(weight, Y, X, "-q -e 1e-6")
    copied = svm.svm_train(Y[rows], X[rows], "-q -e 1e-6 -g 0.25")

    values = [svm.svm_predict(Y, X, m, "-q")[2] for m in (weighed, copied)]
    np.testing.assert_allclose(values[0], values[1], atol=1e-5)
    prob = svm.svm_problem(weight.tolist(), Y.tolist(), X.tolist())
    assert (prob.l, prob.W[:3]) == (60, [1.0, 2.0, 0.0])
    assert 3 not in weighed.get_sv_indices()


def test_one_class_of_labels_is_answered_as_libsvm_does(capsys):
    model = svm.svm_train([4] * 60, X)
    labels, (accuracy, _, _), values = svm.svm_predict([4] * 60, X, model, "-q")

    assert "only one class" in capsys.readouterr().out
    assert (model.get_nr_class(), model.get_nr_sv()) == (1, 0)
    assert (set(labels), accuracy, values[0]) == ({4.0}, 100.0, [1.0])


def test_models_survive_files(tmp_path, capsys):
    path = str(tmp_path / "model")
    model = svm.svm_train(Y, X, "-s 0 -t 1 -d 2 -r 1 -q")

    svm.svm_save_model(path, model)
    again = svm.svm_load_model(path)

    assert again.param.kernel_type == svm.kernel_names.POLY
    assert (again.param.degree, again.param.coef0) == (2, 1.0)
    assert again.get_sv_indices() == [0] * model.get_nr_sv()
    np.testing.assert_allclose(again.get_sv_coef(), model.get_sv_coef())
    assert svm.svm_load_model(str(tmp_path / "nothing")) is None
    assert "can't open model file" in capsys.readouterr().out


def test_damaged_models_are_refused(tmp_path):
    path = tmp_path / "model"
    path.write_text("svm_type c_svc\nkernel_type rbf\nnonsense 3\n")

    with pytest.raises(ModelFormatError):
        svm.svm_load_model(str(path))


def test_precomputed_kernels_need_serial_numbers():
    K = X @ X.T
    rows = np.column_stack((np.arange(1, 61), K))

    model = svm.svm_train(Y, rows, "-t 4 -q")
    plain = svm.svm_train(Y, X, "-t 0 -q")

    predicted = svm.svm_predict(Y, rows, model, "-q")[2]
    np.testing.assert_allclose(
        predicted, svm.svm_predict(Y, X, plain, "-q")[2], atol=2e-3
    )
    with pytest.raises(ValueError, match="serial_number out of range"):
        svm.svm_train(Y, K, "-t 4 -q")
    missing = [{j: v for j, v in enumerate(row) if j} for row in rows.tolist()]
    with pytest.raises(ValueError, match="first column must be"):
        svm.svm_train(Y, missing, "-t 4 -q")


def test_cross_validation_of_a_precomputed_kernel():
    rows = np.column_stack((np.arange(1, 61), X @ X.T))

    PROCESS.srand(1)
    given = svm.svm_train(Y, rows, "-t 4 -v 5 -q")
    PROCESS.srand(1)
    assert svm.svm_train(Y, X, "-t 0 -v 5 -q") == given


def test_feature_zero_counts_in_distances():
    from_zero = [{j: v for j, v in enumerate(row)} for row in X.tolist()]

    model = svm.svm_train(Y, from_zero, "-g 0.25 -q")
    usual = svm.svm_train(Y, X, "-g 0.25 -q")

    predicted = svm.svm_predict(Y, from_zero, model, "-q")[2]
    np.testing.assert_allclose(predicted, svm.svm_predict(Y, X, usual, "-q")[2])
    assert min(min(row) for row in model.get_SV()) == 0


def test_more_and_fewer_features_than_the_model_has():
    model = svm.svm_train(Y, X, "-t 0 -q")
    more = [row | {9: 5.0} for row in DICTS]
    fewer = [{1: row[1]} for row in DICTS]

    usual = svm.svm_predict(Y, X, model, "-q")[2]
    np.testing.assert_allclose(svm.svm_predict(Y, more, model, "-q")[2], usual)
    assert len(svm.svm_predict([], fewer, model, "-q")[0]) == 60


WRONG = {
    "labels of another number": ([1, -1], [[1.0]], ValueError),
    "no samples": ([], [], ValueError),
    "labels as words": (["a", "b"], [[1.0], [2.0]], ValueError),
    "labels without end": ([1.0, np.inf], [[1.0], [2.0]], ValueError),
    "values without end": ([1, -1], [[np.nan], [2.0]], ValueError),
    "values as words": ([1, -1], [{1: "a"}, {1: 2.0}], ValueError),
    "indices below zero": ([1, -1], [{-3: 1.0}, {1: 2.0}], ValueError),
    "indices in parts": ([1, -1], [{1.5: 1.0}, {1: 2.0}], ValueError),
    "indices too large": ([1, -1], [{2**40: 1.0}, {1: 2.0}], ValueError),
    "a sample that is none": ([1, -1], [3, 4], TypeError),
    "samples in a set": ([1, -1], {1, 2}, TypeError),
    "a file name": ("heart", "scale", TypeError),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_an_error_and_no_crash(case):
    y, x, error = WRONG[case]

    with pytest.raises(error):
        svm.svm_train(y, x, "-q")


@pytest.mark.parametrize(
    "options",
    [
        *("-c 0", "-c -1", "-e 0", "-g -1", "-n 2 -s 1", "-p -1 -s 3", "-h 2"),
        *("-b 2", "-m 0", "-s 1 -n 1", "-w1 0", "-c nan"),
    ],
)
def test_wrong_numbers_are_refused(options):
    y = [1] * 50 + [-1] * 10

    with pytest.raises(ValueError):
        svm.svm_train(y, X, options)


def test_raw_pointers_are_refused_clearly():
    model = svm.svm_train(Y, X, "-q")
    pointer = ctypes.pointer(ctypes.c_double(1.0))

    with pytest.raises(NotAvailable, match="Raw ctypes pointers"):
        svm.libsvm.svm_predict(model, pointer)
    with pytest.raises(NotAvailable, match="Raw ctypes pointers"):
        svm.toPyModel(pointer)
    with pytest.raises(ValueError, match="Null pointer"):
        svm.toPyModel(None)
    with pytest.raises(AttributeError, match="no shared library behind it"):
        _ = svm.libsvm.svm_something


def test_low_level_functions_fill_arrays():
    prob, param = svm.svm_problem(Y, X), svm.svm_parameter("-c 2 -g 0.25 -q")
    model = svm.libsvm.svm_train(prob, param)
    nodes, largest = svm.gen_svm_nodearray(DICTS[0])
    room, labels = (svm.c_double * 1)(), (ctypes.c_int * 2)()

    label = svm.libsvm.svm_predict_values(model, nodes, room)
    svm.libsvm.svm_get_labels(model, labels)

    expected = svm.svm_predict(Y[:1], X[:1], model, "-q")
    assert (label, largest) == (expected[0][0], 4)
    assert room[0] == pytest.approx(expected[2][0][0])
    assert labels[:] == model.get_labels()
    assert svm.libsvm.svm_check_parameter(prob, param) is None
    param.C = -1.0
    assert svm.libsvm.svm_check_parameter(prob, param) == b"C <= 0"
    with pytest.raises(InvalidInput, match="do not fit"):
        svm.libsvm.svm_predict_values(model, nodes, [])


def test_nodes_look_like_theirs():
    nodes, largest = svm.gen_svm_nodearray({1: 1, 3: 1, 5: -2}, feature_max=4)

    assert [str(node) for node in nodes] == ["1:1", "3:1", "-1:0"]
    assert largest == 3
    assert str(svm.svm_node(2, 0.5)) == "2:0.5"
    kernel, _ = svm.gen_svm_nodearray([1, 0, 2], isKernel=True)
    assert [node.index for node in kernel] == [0, 1, 2, -1]
    assert [node.index for node in svm.svm_problem([1], [[0, 3]]).x[0]] == [2, -1]


def test_parameters_can_be_shown_and_reset():
    param = svm.svm_parameter("-c 4 -w1 3")

    assert " C: 4.0\n" in str(param)
    assert (param.nr_weight, param.weight_label[0], param.weight[0]) == (1, 1, 3.0)
    param.set_to_default_values()
    assert (param.C, param.nr_weight) == (1.0, 0)


TEXT = "+1 1:0.5 3:2\n-1 2:1\n+1\n"


def test_problems_are_read_from_files_and_streams(tmp_path):
    path = tmp_path / "data"
    path.write_text(TEXT)
    packed = tmp_path / "data.bz2"
    packed.write_bytes(bz2.compress(TEXT.encode()))
    expected = ([1.0, -1.0, 1.0], [{1: 0.5, 3: 2.0}, {2: 1.0}, {}])

    assert svm.svm_read_problem(str(path)) == expected
    assert svm.svm_read_problem(path) == expected
    assert svm.svm_read_problem(str(packed)) == expected
    assert svm.svm_read_problem(io.StringIO(TEXT)) == expected
    with bz2.open(packed, "rt") as stream:
        assert svm.svm_read_problem(stream) == expected
    with pytest.raises(FileNotFoundError, match="nofile does not exist"):
        svm.svm_read_problem("nofile")
    y, x = svm.svm_read_problem(path, return_scipy=True)
    assert y.tolist() == expected[0]
    assert x.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, 0]]


def test_rows_of_a_kernel_are_read_with_their_numbers():
    text = io.StringIO("1 0:1 1:2 2:0\n-1 0:2 1:0 2:3\n")

    y, x = svm.svm_read_problem(text)

    assert x == [{0: 1.0, 1: 2.0, 2: 0.0}, {0: 2.0, 1: 0.0, 2: 3.0}]
    assert svm.svm_train(y, x, "-t 4 -q").get_nr_sv() == 2


def test_evaluations_count_as_theirs():
    accuracy, error, correlation = svm.evaluations([1, -1, 1, 1], [1, 1, 1, -1])

    assert (accuracy, error) == (50.0, 2.0)
    assert correlation == pytest.approx(1 / 9)
    assert np.isnan(svm.evaluations([1, 1], [1, 1])[2])
    assert svm.evaluations((1, 2), np.array([1, 3]), useScipy=False)[0] == 50.0
    with pytest.raises(ValueError, match="len"):
        svm.evaluations([1], [1, 2])


def test_scaling_maps_to_the_range_and_minds_other_widths(capsys):
    x = sp.csr_matrix(X)
    param = svm.csr_find_scale_param(x, lower=0, upper=2)

    scaled = svm.csr_scale(x, param).toarray()
    np.testing.assert_allclose(scaled.min(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled.max(axis=0), 2.0)
    narrow = svm.csr_scale(sp.csr_matrix(X[:, :2]), param).toarray()
    np.testing.assert_allclose(narrow, scaled[:, :2], atol=1e-12)
    assert "do not match" in capsys.readouterr().err
    with pytest.raises(TypeError, match="CSR"):
        svm.csr_scale(X, param)


@pytest.mark.parametrize("options", [["-c", 4, "-q"], ("-c", 4.0, "-q")])
def test_options_may_be_a_list_with_numbers_in_it(options):
    told = svm.svm_train(Y, X.tolist(), options)

    assert told.get_nr_sv() == svm.svm_train(Y, X, "-c 4 -q").get_nr_sv()


def test_an_empty_list_of_options_is_no_option(capsys):
    assert svm.svm_train(Y, X.tolist(), []).get_nr_sv() > 0


def test_columns_without_values_take_no_memory():
    samples = [{2_000_000_000: 1}, {1: 1}, {5: 2, 100_000_000: 2}, {1: 3}]
    model = svm.svm_train([1, -1, 1, -1], samples, "-g 1 -q")

    assert svm.svm_predict([1, -1, 1, -1], samples, model, "-q")[1][0] == 100.0
    assert model.get_SV()[0] == {2_000_000_000: 1.0}
