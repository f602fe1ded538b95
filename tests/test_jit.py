"""Does compiled code follow its sources, in every place where Python may live?"""

import ast
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from tiny_package import NOWHERE, TinyPackage

from maxmargin import _jit
from maxmargin._jit import jit, jit_fast, larger, smaller


@pytest.fixture
def tiny(tmp_path):
    return TinyPackage(tmp_path)


def test_cache_is_hit_until_a_source_changes(tiny):
    assert tiny.run()[:2] == (20.0, 0)
    assert tiny.run()[:2] == (20.0, 1)

    tiny.edit("callee.py", "2.0 *", "3.0 *")
    assert tiny.run()[:2] == (30.0, 0)

    tiny.edit("facts.py", "10.0", "100.0")  # not jitted, yet frozen into machine code
    assert tiny.run()[:2] == (300.0, 0)


def test_damaged_cache_is_only_a_missing_one(tiny):
    tiny.run()
    for path in tiny.home.rglob("*.nb?"):
        path.write_bytes(b"torn")

    assert tiny.run()[:2] == (20.0, 0)
    assert tiny.run()[:2] == (20.0, 1)


COUNTED = """
from tiny.callee import twice
from tiny.caller import scaled
value = scaled(1.0)
assert all(each.entry_point is not None for each in scaled.overloads.values())
(own,) = twice.overloads.values()
assert not own.codegen._engine.is_symbol_defined(own.fndesc.llvm_func_name)
assert twice(4.0) == 8.0, "Python may call it all the same"
(own,) = twice.overloads.values()
assert own.codegen._engine.is_symbol_defined(own.fndesc.llvm_func_name)
"""


def test_what_only_compiled_code_calls_has_no_machine_code_of_its_own(tiny):
    assert tiny.run(COUNTED)[0] == 20.0
    for path in tiny.home.rglob("caller.scaled*"):
        path.unlink()

    assert tiny.run(COUNTED)[:2] == (20.0, 0), "callees are loaded"


def test_an_error_of_a_callee_comes_through_its_caller(tiny):
    tiny.edit(
        "callee.py",
        "    return",
        "    if x < 0.0:\n        raise ValueError('below')\n    return",
    )
    caught = """
from tiny.caller import scaled
try:
    scaled(-1.0)
except ValueError as error:
    assert error.args == ("below",)
else:
    raise AssertionError
"""
    assert tiny.run(caught)[:2] == (20.0, 0)
    assert tiny.run(caught)[:2] == (20.0, 1)


def test_machine_code_of_another_signature_is_not_run(tiny):
    tiny.run("from tiny.caller import scaled\nscaled(1)\n")
    integer, real = sorted(tiny.home.rglob("caller.scaled*.nbc"))
    shutil.copy(integer, real)

    assert tiny.run()[:2] == (20.0, 0)


def test_works_without_any_writable_folder(tiny):
    no_temporary = f"import tempfile\ntempfile.tempdir = {NOWHERE!r}\n"

    found = tiny.run(no_temporary, HOME=NOWHERE, XDG_CACHE_HOME=NOWHERE)

    assert found == (20.0, 0, "None")


def test_works_and_caches_without_numbas_private_classes(tiny):
    renamed = "import numba.core.caching\ndel numba.core.caching.UserWideCacheLocator\n"

    assert tiny.run(renamed)[:2] == (20.0, 0)
    assert tiny.run(renamed)[:2] == (20.0, 1)


def test_is_plain_python_without_jit(tiny):
    assert tiny.run(NUMBA_DISABLE_JIT="1")[:2] == (20.0, None)
    assert not list(tiny.home.rglob("*.nb?"))


@pytest.fixture
def no_folder_yet(monkeypatch):
    """Forget the folder that this process uses, and where it was looked for."""
    monkeypatch.setattr(_jit, "cache_folder", _jit.cache_folder.__wrapped__)
    monkeypatch.setattr(_jit.config, "CACHE_DIR", "")
    monkeypatch.setattr(_jit.sys, "platform", "linux")


@pytest.mark.usefixtures("no_folder_yet")
def test_folders_are_tried_in_order(tmp_path, monkeypatch):
    numbas, users, temporary = (tmp_path / name for name in ("numba", "user", "tmp"))
    temporary.mkdir()
    monkeypatch.setattr(_jit.config, "CACHE_DIR", str(numbas))
    monkeypatch.setenv("XDG_CACHE_HOME", str(users))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    assert _jit.cache_folder().parent == numbas / "maxmargin"
    monkeypatch.setattr(_jit.config, "CACHE_DIR", NOWHERE)
    assert _jit.cache_folder().parent == users / "maxmargin"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _jit.cache_folder().is_relative_to(temporary)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no modes")
@pytest.mark.usefixtures("no_folder_yet")
def test_temporary_folder_that_others_may_write_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", NOWHERE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    folder = _jit.cache_folder().parent
    assert folder.stat().st_mode & 0o777 == 0o700

    folder.chmod(0o770)
    assert _jit.cache_folder() is None


@pytest.mark.usefixtures("no_folder_yet")
def test_new_folder_removes_those_unused_for_a_month(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recent, old = (tmp_path / "maxmargin" / (letter * 20) for letter in "ab")
    recent.mkdir(parents=True)
    old.mkdir()
    two_months_ago = time.time() - 60 * 86_400
    os.utime(old, (two_months_ago, two_months_ago))

    assert _jit.cache_folder().exists()

    assert recent.exists()
    assert not old.exists()


def test_digest_follows_settings_that_change_machine_code(monkeypatch):
    digest = _jit._digest_of_sources.__wrapped__
    before = digest()

    monkeypatch.setattr(_jit.config, "BOUNDSCHECK", 1 - bool(_jit.config.BOUNDSCHECK))

    assert digest() != before


def imported_sources(path):
    """The files of the package that a file imports at its top."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("maxmargin."):
            place = _jit.PACKAGE.parent.joinpath(*node.module.split("."))
            module, package = place.with_suffix(".py"), place / "__init__.py"
            yield module if module.exists() else package


def test_digest_holds_all_that_compiled_code_depends_on():
    decorated = re.compile(r"^@(jit|jit_compact|jit_fast|jit_new|compiled_as)\b", re.M)
    sources = list(_jit.PACKAGE.rglob("*.py"))
    waiting = {path for path in sources if decorated.search(path.read_text())}
    found = set()
    while waiting:
        path = waiting.pop()
        found.add(path.relative_to(_jit.PACKAGE))
        new = set(imported_sources(path))
        waiting |= {each for each in new if each.relative_to(_jit.PACKAGE) not in found}

    assert len(found) > 30
    assert all(_jit.is_in_digest(place) for place in found)
    for place in _jit.COMPILED_FILES:
        assert Path(place) in found, "moved, or no longer compiled"


@jit
def extremes(values):
    low, high = np.inf, -np.inf
    for value in values:
        low = smaller(low, value)
        high = larger(high, value)
    return low, high


@jit_fast
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


@pytest.mark.nojit
@pytest.mark.boundscheck
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_extremes_agree_with_numpy(n, dtype):
    values = np.random.default_rng(n).standard_normal(n).astype(dtype)

    assert extremes(values) == (values.min(), values.max())


@pytest.mark.nojit
def test_extremes_know_infinity():
    assert extremes(np.array([-np.inf, 0.0, np.inf])) == (-np.inf, np.inf)


@pytest.mark.nojit
@pytest.mark.boundscheck
def test_fast_sum_agrees_with_numpy_and_keeps_nan():
    values = np.random.default_rng(0).standard_normal(1000)

    assert total(values) == pytest.approx(values.sum())
    assert np.isnan(total(np.array([1.0, np.nan])))
