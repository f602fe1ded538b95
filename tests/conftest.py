"""What do all tests share: which of them load a data set, and is Ctrl-C heeded?

Those that can reach `datasets.load` by their names are marked ``data``, so that
``pytest -m data`` runs the share of the suite that MAXMARGIN_DATA changes.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import datasets
import pytest

TESTS = Path(__file__).parent


@pytest.fixture(autouse=True, scope="session")
def sigint_is_heeded() -> Iterator[None]:
    """Background jobs of a shell ignore SIGINT, and so would commands started here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that load a data set, themselves or through a fixture."""
    for item in items:
        fixtures = getattr(item, "_fixtureinfo", None)
        named = fixtures.name2fixturedefs.values() if fixtures else ()
        functions = [
            getattr(item, "obj", None),
            *(d.func for own in named for d in own),
        ]
        if any(loads_data(_plain(function)) for function in functions):
            item.add_marker(pytest.mark.data)


@cache
def loads_data(function: FunctionType | None) -> bool:
    """Whether `datasets.load` is among all the functions that this one may call."""
    seen: set[FunctionType] = set()
    ahead = [function] if function else []
    while ahead:
        current = ahead.pop()
        if current is datasets.load:
            return True
        if current in seen or not _is_ours(current):
            continue
        seen.add(current)
        ahead += _named_in(current)
    return False


def _named_in(function: FunctionType) -> Iterator[FunctionType]:
    """The functions whose names, of this module or an imported one, occur in a body."""
    names = set(_names(function.__code__))
    known = [function.__globals__.get(name) for name in names]
    for value in known:
        if isinstance(value, ModuleType) and _is_test_file(value.__dict__):
            known += [getattr(value, name, None) for name in names]
        if (plain := _plain(value)) is not None:
            yield plain


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):  # a function or comprehension inside
            yield from _names(part)


def _plain(value: Any) -> FunctionType | None:
    """The function below decorators such as `cache` and Hypothesis's `given`."""
    value = getattr(value, "__func__", value)
    given = getattr(value, "hypothesis", None)
    value = getattr(given, "inner_test", value)
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value if isinstance(value, FunctionType) else None


def _is_ours(function: FunctionType) -> bool:
    return _is_test_file(function.__globals__)


def _is_test_file(names: dict[str, Any]) -> bool:
    return TESTS in Path(names.get("__file__") or "/").resolve().parents
