"""Do two packages say the same? What they return, and what they print."""

from __future__ import annotations

import ctypes
import platform
import re

import numpy as np
import pytest
from datasets import load

from maxmargin.interop.c_rand import PROCESS

IS_GLIBC = platform.libc_ver()[0] == "glibc"
TRIES = 5
NUMBER = r"-?\d+\.?\d*(?:e[+-]?\d+)?|-?nan"


def begin_again():
    """Both random generators as in a new process."""
    PROCESS.srand(1)
    if IS_GLIBC:
        ctypes.CDLL(None).srand(1)


def undisturbed(run):
    """What a peer returns that draws the numbers ours have drawn since `begin_again`.

    Other libraries draw from C's generator too, on threads of their own. Where its next
    number is not ours, one of them did, and the peer is run again.
    """
    ahead = PROCESS.rand()
    for _ in range(TRIES):
        begin_again()
        found = run()
        if not IS_GLIBC or ctypes.CDLL(None).rand() == ahead:
            break
    return found


def flush_c():
    ctypes.CDLL(None).fflush(None)


def assert_alike(a, b, tolerance=1e-2):
    """Same structure; numbers to tolerance."""
    if isinstance(a, dict):
        assert_alike(sorted(a.items()), sorted(b.items()), tolerance)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_alike(one, other, tolerance)
    elif isinstance(a, str):
        assert a == b
    else:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def lines_of(text):
    """What was printed, without progress marks."""
    return [line for line in text.splitlines() if line.strip(".*# ")]


def assert_lines_alike(a, b, tolerance=1e-6):
    """Same words in the same order; objectives nearly, accuracies to all digits."""
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert re.sub(NUMBER, "0", one) == re.sub(NUMBER, "0", other)
        if "Accuracy" in one:
            assert one == other
        if one.startswith(("obj = ", "Objective value")):
            values = [float(re.findall(NUMBER, line)[0]) for line in (one, other)]
            assert values[0] == pytest.approx(values[1], rel=tolerance, abs=2e-6)


def three_classes():
    """Labels 3, 1, 2 in the order in which they come, and some zeros."""
    X, y = load("vehicle", 160)
    X = np.where(np.abs(X) < 0.05, 0.0, X)
    labels = np.array([3.0, 1.0, 2.0])[y % 3]
    return X, labels
