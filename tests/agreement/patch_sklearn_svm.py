"""A pytest plugin: scikit-learn's own SVM tests meet our classes.

Loaded with ``-p patch_sklearn_svm`` in a process of its own, before any test module of
scikit-learn is imported. At the end it names every test that was deselected.
"""

from __future__ import annotations

from typing import Any

import pytest
import sklearn.svm
import sklearn.svm._bounds
import sklearn.svm._classes

import maxmargin

CLASSES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")
DESELECTED = "deselected here: "

for name in CLASSES:
    setattr(sklearn.svm, name, getattr(maxmargin, name))
    setattr(sklearn.svm._classes, name, getattr(maxmargin, name))
for module in (sklearn.svm, sklearn.svm._bounds):
    module.l1_min_c = maxmargin.l1_min_c

deselected: list[str] = []


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember what the command line left out."""
    deselected.extend(item.nodeid for item in items)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for each test left out, for the test that started this run to read."""
    for nodeid in deselected:
        terminalreporter.write_line(DESELECTED + nodeid)
