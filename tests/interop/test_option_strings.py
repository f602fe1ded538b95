"""Do strings of options mean what they mean to LIBSVM and LIBLINEAR?"""

from __future__ import annotations

import pytest

from maxmargin.errors import InvalidInput
from maxmargin.interop.option_strings import (
    parse_linear_options,
    parse_predict_options,
    parse_svm_options,
)


def test_defaults_of_libsvm():
    told = parse_svm_options("")

    found = (told.svm_type, told.kernel_type, told.degree, told.gamma, told.coef0)
    assert found == (0, 2, 3, 0.0, 0.0)
    assert (told.C, told.nu, told.p, told.eps) == (1.0, 0.5, 0.1, 0.001)
    assert (told.cache_size, told.shrinking, told.probability) == (100.0, 1, 0)
    assert (told.cross_validation, told.nr_fold, told.nr_weight) == (False, 0, 0)


def test_all_flags_of_libsvm():
    told = parse_svm_options(
        "-s 4 -t 1 -d 5 -g 0.25 -r 2 -c 8 -n 0.3 -p 0.7 -m 50 -e 1e-4 -h 0 -b 1 "
        "-w1 2 -w-1 0.5 -v 7 -q"
    )

    assert (told.svm_type, told.kernel_type, told.degree) == (4, 1, 5)
    assert (told.gamma, told.coef0, told.C, told.nu) == (0.25, 2.0, 8.0, 0.3)
    assert (told.p, told.cache_size, told.eps) == (0.7, 50.0, 1e-4)
    assert (told.shrinking, told.probability, told.nr_fold) == (0, 1, 7)
    assert (told.weight_label, told.weight) == ([1, -1], [2.0, 0.5])
    assert told.cross_validation and told.is_quiet


@pytest.mark.parametrize(
    ("solver", "eps"),
    [
        *((0, 0.01), (1, 0.1), (2, 0.01), (3, 0.1), (4, 0.1), (5, 0.01), (6, 0.01)),
        *((7, 0.1), (11, 0.0001), (12, 0.1), (13, 0.1), (21, 0.01)),
    ],
)
def test_every_solver_of_liblinear_has_its_tolerance(solver, eps):
    assert parse_linear_options(f"-s {solver}").eps == eps
    assert parse_linear_options(f"-s {solver} -e 0.5").eps == 0.5


def test_search_of_liblinear_chooses_solver_and_folds():
    told = parse_linear_options("-C")

    assert (told.solver_type, told.nr_fold) == (2, 5)
    assert told.flag_find_parameters and not told.flag_cross_validation
    assert parse_linear_options("-C -s 0 -v 3").nr_fold == 3


def test_bias_of_liblinear():
    told = parse_linear_options("-s 2 -B 1 -R")

    assert (told.bias, told.regularize_bias) == (1.0, 0)
    assert parse_linear_options("").regularize_bias == 1


def test_lists_are_read_like_strings():
    assert parse_svm_options(["-c", "4"]) == parse_svm_options("-c 4")
    assert parse_svm_options(None) == parse_svm_options("")


@pytest.mark.parametrize(
    "wrong",
    ["-x 1", "c 4", "-c", "-c four", "-v 1", "-s 9", "-t 7", "-wx 1", "-w1", "-c 4 5"],
)
def test_wrong_options_of_libsvm_are_refused(wrong):
    with pytest.raises(InvalidInput, match=r"Wrong options|must >= 2"):
        parse_svm_options(wrong)


@pytest.mark.parametrize("wrong", ["-s 8", "-C -s 1", "-B", "-t 2", "-v 0.5"])
def test_wrong_options_of_liblinear_are_refused(wrong):
    with pytest.raises(InvalidInput, match=r"Wrong options|only available"):
        parse_linear_options(wrong)


def test_options_that_are_no_words_are_refused():
    with pytest.raises(TypeError, match="list or a str"):
        parse_svm_options(4)


def test_options_of_predictions():
    assert parse_predict_options("-b 1 -q").probability == 1
    assert parse_predict_options("").is_quiet is False
    with pytest.raises(InvalidInput, match="Wrong options"):
        parse_predict_options("-w1 3")
