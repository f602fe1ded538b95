"""Are the numbers those of C's rand(), and the folds those that they lead to?"""

from __future__ import annotations

import ctypes
import platform

import numpy as np
import pytest

from maxmargin.interop.c_rand import CRand
from maxmargin.interop.folds import plain_folds, stratified_folds
from maxmargin.interop.liblinear_sweeps import draw

FIRST = [1804289383, 846930886, 1681692777, 1714636915, 1957747793]


def test_numbers_are_those_of_a_new_process():
    random = CRand()

    assert [random.rand() for _ in FIRST] == FIRST


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.parametrize("seed", [0, 1, 2, 12345, 2**31 + 5, 2**32 - 1])
def test_numbers_are_those_of_the_gnu_library(seed):
    library = ctypes.CDLL(None)
    library.srand(ctypes.c_uint(seed))
    random = CRand(seed)

    numbers = [random.rand() for _ in range(1000)]

    assert numbers == [library.rand() for _ in range(1000)]


def test_seed_begins_again():
    random = CRand(7)
    before = [random.rand() for _ in range(50)]

    random.srand(7)

    assert [random.rand() for _ in range(50)] == before


def test_compiled_code_goes_on_where_python_was_and_back():
    random, other = CRand(3), CRand(3)
    for _ in range(17):
        random.rand(), other.rand()

    state = random.state()
    drawn = [draw(state) for _ in range(40)]
    random.resume(state)

    assert drawn == [other.rand() for _ in range(40)]
    assert random.rand() == other.rand()


def test_plain_folds_hold_out_everybody_once():
    folds = plain_folds(23, 4, CRand())

    held_out = np.concatenate([fold.outside for fold in folds])
    assert sorted(held_out.tolist()) == list(range(23))
    assert [len(fold.outside) for fold in folds] == [5, 6, 6, 6]
    for fold in folds:
        assert set(fold.inside).isdisjoint(fold.outside)
        assert len(fold.inside) + len(fold.outside) == 23


def test_stratified_folds_share_every_class():
    code = np.repeat([0, 1, 2], [30, 12, 6])

    folds = stratified_folds(code, 3, CRand())

    for fold in folds:
        assert np.bincount(code[fold.outside]).tolist() == [10, 4, 2]
    held_out = np.concatenate([fold.outside for fold in folds])
    assert sorted(held_out.tolist()) == list(range(48))
