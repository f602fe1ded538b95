"""Does compiled code that counts no references get new arrays? It would leak them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "maxmargin"
BORROWING, CREATING = {"jit", "jit_compact", "jit_fast"}, {"jit_new"}
ARRAYS = re.compile(
    r"\w*(?:Vector|Matrix|Work|FreeSet|RowCache|RowSource|Side|Problem)\b"
)


def functions_with(decorators: set[str]) -> list[tuple[Path, ast.FunctionDef]]:
    return [
        (path, node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(d, ast.Name) and d.id in decorators for d in node.decorator_list
        )
    ]


VIEWING = {"open_problem"}  # returns parts of arrays that its caller holds


def returns_arrays(node: ast.FunctionDef) -> bool:
    if node.returns is None or node.name in VIEWING:
        return False
    return bool(ARRAYS.search(ast.unparse(node.returns)))


GIVING_ARRAYS = {
    node.name
    for _, node in functions_with(BORROWING | CREATING)
    if returns_arrays(node)
}


def names_that_give_arrays(path: Path) -> set[str]:
    """Functions that a module calls so: its own come before those of others."""
    own = {
        node.name: returns_arrays(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    return {name for name in GIVING_ARRAYS if own.get(name, True)}


cases = pytest.mark.parametrize(
    ("path", "node"),
    functions_with(BORROWING),
    ids=lambda case: getattr(case, "name", ""),
)


def test_functions_that_return_arrays_create_them() -> None:
    assert {"part_of", "empty_work", "take_changes"} <= GIVING_ARRAYS
    for path, node in functions_with(BORROWING):
        assert not returns_arrays(node), f"{path.name}: {node.name} has to be jit_new"


@cases
def test_borrowing_functions_get_no_new_arrays(
    path: Path, node: ast.FunctionDef
) -> None:
    called = {
        call.func.id
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }

    assert not called & names_that_give_arrays(path), (
        f"{path.name}: {node.name} has to be jit_new"
    )
