"""Does `maxmargin.liblinearutil` serve scripts, and refuse what it must?"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.liblinearutil as linear
from maxmargin.errors import NotAvailable
from maxmargin.interop.c_rand import PROCESS

X = np.random.default_rng(0).normal(size=(60, 4)).round(3)
Y = np.where(X[:, 0] + X[:, 1] > 0.3, 1.0, -1.0)
THREE = X[:, :3].argmax(axis=1) + 1.0
SOLVERS = [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 21]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_every_solver_trains_predicts_and_survives_files(solver, y, tmp_path):
    path = str(tmp_path / "model")
    model = linear.train(y, X, f"-s {solver} -q")
    labels, metrics, values = linear.predict(y, X, model, "-q")

    linear.save_model(path, model)
    again = linear.load_model(path)

    assert linear.predict(y, X, again, "-q")[0] == labels
    np.testing.assert_allclose(linear.predict(y, X, again, "-q")[2], values)
    if model.is_regression_model():
        assert metrics[1] < 1.5 * np.mean(y**2)
    elif not model.is_oneclass_model():
        assert metrics[0] > 80.0
        assert set(model.get_labels()) == set(y)


def test_two_classes_of_crammer_and_singer_have_two_values():
    model = linear.train(Y, X, "-s 4 -q")

    values = linear.predict(Y, X, model, "-q")[2]

    assert {len(row) for row in values} == {2}
    assert len(model.w) == 8


def test_sparse_and_dense_samples_give_the_same_model():
    for options in ("-s 1 -B 1 -q", "-s 2 -q", "-s 5 -q"):
        models = []
        for form in (X, sp.csr_matrix(X), sp.csr_array(X), X.tolist()):
            PROCESS.srand(1)
            models.append(linear.train(Y, form, options))

        for model in models:
            np.testing.assert_allclose(model.w, models[0].w, atol=1e-9)


def test_bias_is_a_feature():
    by_bias = linear.train(Y, X, "-s 2 -B 2 -q -e 1e-8")
    by_hand = linear.train(Y, np.hstack([X, np.full((60, 1), 2.0)]), "-s 2 -q -e 1e-8")

    np.testing.assert_allclose(by_bias.w, by_hand.w, atol=1e-7)
    assert by_bias.get_nr_feature() == 4
    assert by_bias.get_decfun_bias() == pytest.approx(2.0 * by_hand.w[-1])
    zero = linear.train(Y, X, "-s 2 -B 0 -q")
    assert (zero.bias, zero.get_decfun_bias()) == (0.0, 0.0)


def test_free_bias_makes_errors_balance():
    y = 3.0 + X @ np.ones(4)
    model = linear.train(y, X, "-s 11 -B 1 -R -q -p 0 -e 1e-9")

    rest = y - np.ravel(linear.predict(y, X, model, "-q")[2])

    assert rest.sum() == pytest.approx(0.0, abs=1e-5)


def test_weights_count_as_copies():
    weight = np.tile([1.0, 2.0, 0.0], 20)
    rows = np.repeat(np.arange(60), weight.astype(int))

    weighed = linear.train(weight, Y, X, "-s 2 -q -e 1e-9")
    copied = linear.train(Y[rows], X[rows], "-s 2 -q -e 1e-9")

    np.testing.assert_allclose(weighed.w, copied.w, atol=1e-6)


def test_warm_start_of_a_solution_takes_no_step(capsys):
    model = linear.train(Y, X, "-s 0 -e 1e-6 -q")
    param = linear.parameter("-s 0 -e 1e-4")
    param.init_sol = model.w

    linear.train(linear.problem(Y, X), param)

    assert "iter" not in capsys.readouterr().out
    param.init_sol = [1.0]
    with pytest.raises(ValueError, match="init_sol must hold"):
        linear.train(linear.problem(Y, X), param)


def test_search_returns_a_triple_and_says_its_path(capsys):
    best_C, best_p, rate = linear.train(Y, X, "-C -s 2 -v 3")
    out = capsys.readouterr().out

    assert best_p == -1.0
    assert 0.0 < rate <= 1.0
    assert f"Best C = {best_C:g}  CV accuracy = {100 * rate:g}%" in out
    assert "log2c=" in out and "rate=" in out


def test_probabilities_are_for_logistic_regression():
    model = linear.train(THREE, X, "-s 0 -q")

    labels, _, chances = linear.predict(THREE, X, model, "-b 1 -q")

    np.testing.assert_allclose(np.sum(chances, axis=1), 1.0)
    order = model.get_labels()
    assert [order[k] for k in np.argmax(chances, axis=1)] == labels
    with pytest.raises(TypeError, match="only supported for logistic"):
        linear.predict(Y, X, linear.train(Y, X, "-q"), "-b 1")


def test_problem_copies_share_samples():
    prob = linear.problem(Y, X)
    other = prob.copy()
    other.y = (ctypes.c_double * prob.l)(*(-Y))

    mine, turned = linear.train(prob, "-s 2 -q"), linear.train(other, "-s 2 -q")

    assert other.X is prob.X
    np.testing.assert_allclose(mine.w, [-w for w in turned.w])
    assert prob.y[0] == Y[0]


def test_weights_of_a_decision_function():
    model = linear.train(Y, X, "-s 2 -B 1 -q")

    weights, bias = model.get_decfun()

    assert model.get_decfun(1) == ([-w for w in weights], -bias)
    assert model.get_decfun_coef(0) == 0.0
    assert model.get_decfun_coef(9) == 0.0
    assert [str(node) for node in linear.problem([1], [[3, 0]], 1).x[0]] == [
        "1:3",
        "2:1",
        "-1:0",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-c 0", "C <= 0"),
        ("-e 0", "eps <= 0"),
        ("-s 13 -p -1", "p < 0"),
        ("-s 21 -n 0", "nu <= 0 or nu > 1"),
        ("-R", "must specify -B 1 along with -R"),
        ("-s 4 -B 1 -R", "supported only for solver"),
        ("-s 21 -B 1", "ignored in ONECLASS_SVM"),
        ("-C -s 3", "only available"),
    ],
)
def test_wrong_parameters_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        linear.train(Y, X, options)


def test_wrong_input_is_an_error_and_no_crash():
    for y, x in (([1, -1], [[1.0]]), ([1], [{0: 1.0}]), ([], []), ([1], [[np.nan]])):
        with pytest.raises(ValueError):
            linear.train(y, x, "-q")
    with pytest.raises(TypeError):
        linear.train("y", "x")
    with pytest.raises(ValueError, match="at least two classes"):
        linear.train([1, 1], [[1.0], [2.0]], "-s 4 -q")


def test_raw_pointers_are_refused_clearly():
    model = linear.train(Y, X, "-q")

    with pytest.raises(NotAvailable, match="Raw ctypes pointers"):
        linear.liblinear.predict(model, ctypes.pointer(ctypes.c_int(1)))
    with pytest.raises(AttributeError, match="no shared library behind it"):
        _ = linear.liblinear.something


def test_low_level_search_fills_numbers():
    prob, param = linear.problem(Y, X), linear.parameter("-s 2 -q")
    found = [ctypes.c_double() for _ in range(3)]

    linear.liblinear.find_parameters(prob, param, 3, -1.0, -1.0, *found)

    assert found[0].value > 0.0
    assert found[1].value == -1.0
    assert 0.0 < found[2].value <= 1.0


def test_the_only_class_is_certain():
    model = linear.train([1, 1], [[1], [2]], "-s 0 -q")

    assert linear.predict([], [[1], [3]], model, "-b 1 -q")[2] == [[1.0], [1.0]]
