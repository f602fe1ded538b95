"""Is machine code of the wheel loaded where it fits, and nowhere else?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine_code
import pytest
from tiny_package import NOWHERE, TinyPackage

from maxmargin import _jit, _processor
from maxmargin._processor import LEVEL, LEVELS, highest_level, numba_settings

has_level = pytest.mark.skipif(LEVEL is None, reason="wheels have no code for it")


def settings(level: str) -> dict[str, str]:
    name, features = numba_settings(level)
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}


class Installed(TinyPackage):
    """The tiny package as a wheel installs it, with machine code for one level."""

    def __init__(self, folder: Path, compiled: Path) -> None:
        super().__init__(folder)
        self.carried = self.root / "machine_code" / compiled.name / str(LEVEL)
        shutil.copytree(compiled, self.carried)

    def kept(self) -> list[str]:
        """Functions in the user's folder."""
        return sorted(path.name.split("-")[0] for path in self.home.rglob("*.nbc"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Machine code for the level of this processor, in a folder named by its digest."""
    tiny = TinyPackage(tmp_path_factory.mktemp("built"))
    return Path(tiny.run(**settings(str(LEVEL)))[2])


@pytest.fixture
def installed(tmp_path: Path, compiled: Path) -> Installed:
    return Installed(tmp_path, compiled)


# ------------------------------------------------------------------------------ loaded
@has_level
def test_carried_code_is_loaded_and_nothing_is_kept(installed: Installed) -> None:
    before = {path: path.stat().st_mtime_ns for path in installed.carried.rglob("*")}

    assert installed.run()[:2] == (20.0, 1)

    assert installed.kept() == []
    after = {path: path.stat().st_mtime_ns for path in installed.carried.rglob("*")}
    assert after == before


@has_level
def test_carried_code_does_not_depend_on_the_folder(installed: Installed) -> None:
    moved = installed.root.parent / "elsewhere"
    moved.mkdir()
    installed.root = installed.root.rename(moved / "tiny")

    assert installed.run()[:2] == (20.0, 1)


@has_level
def test_carried_code_needs_no_writable_folder(installed: Installed) -> None:
    no_temporary = f"import tempfile\ntempfile.tempdir = {NOWHERE!r}\n"

    found = installed.run(no_temporary, HOME=NOWHERE, XDG_CACHE_HOME=NOWHERE)

    assert found == (20.0, 1, "None")


@has_level
def test_what_is_not_carried_is_compiled_and_kept(installed: Installed) -> None:
    integer = "from tiny.caller import scaled\nscaled(1)\n"

    assert installed.run(integer)[:2] == (20.0, 1)
    assert installed.kept() == ["callee.twice", "caller.scaled"]
    assert installed.run(integer)[:2] == (20.0, 2)


# -------------------------------------------------------------------------- not loaded
@has_level
def test_code_of_other_sources_is_not_loaded(installed: Installed) -> None:
    installed.edit("facts.py", "10.0", "100.0")

    assert installed.run()[:2] == (200.0, 0)


@has_level
def test_code_of_another_level_is_not_loaded(installed: Installed) -> None:
    installed.carried.rename(installed.carried.with_name("x86-64-v9"))

    assert installed.run()[:2] == (20.0, 0)


@has_level
@pytest.mark.parametrize(
    "setting",
    [
        {"NUMBA_OPT": "1"},
        {"NUMBA_CPU_NAME": "generic"},
        {"NUMBA_CPU_NAME": "x86-64-v3"},
        {"NUMBA_CPU_FEATURES": "+avx2"},
        {"NUMBA_ENABLE_AVX": "0"},
        {"NUMBA_BOUNDSCHECK": "1"},
    ],
    ids=lambda setting: "=".join(*setting.items()),
)
def test_code_of_other_settings_is_not_loaded(
    installed: Installed, setting: dict[str, str]
) -> None:
    assert installed.run(**setting)[:2] == (20.0, 0)


@has_level
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_code_is_only_missing(installed: Installed, suffix: str) -> None:
    for path in installed.carried.rglob(f"*{suffix}"):
        path.write_bytes(b"torn")

    assert installed.run()[:2] == (20.0, 0)
    assert installed.kept() == ["callee.twice", "caller.scaled"]
    assert installed.run()[:2] == (20.0, 1)


# ------------------------------------------------------------------------- the package
FIT = """
import gc
from numba.core.dispatcher import Dispatcher
from sklearn.datasets import load_digits
from maxmargin import SVC
X, y = load_digits(return_X_y=True)
model = SVC(tol=1e-5).fit(X[y < 2], y[y < 2])
used = [f.stats for f in gc.get_objects() if isinstance(f, Dispatcher)]
print(sum(sum(stats.cache_misses.values()) for stats in used), float(model.objective_))
"""


def misses_and_objective(package: Path, cache: Path, **settings: str) -> list[float]:
    """How many functions a fit in a new process compiles, and its objective."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    folders = {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", FIT],
        env=environment | folders | settings,
        capture_output=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_first_fit_with_carried_code_compiles_nothing(
    level: str, tmp_path: Path
) -> None:
    if not LEVELS[level] <= _processor.target_features():
        pytest.skip("this processor does not have the level")
    package = tmp_path / "site" / "maxmargin"
    shutil.copytree(_jit.PACKAGE, package)

    built = misses_and_objective(package, tmp_path / "built", **settings(level))
    (compiled,) = (tmp_path / "built" / "maxmargin").iterdir()
    shutil.copytree(compiled, package / "machine_code" / compiled.name / level)
    found = misses_and_objective(package, tmp_path / "empty")

    assert built[0] > 0
    assert (found[0] == 0) == (level == LEVEL)
    assert found[1] == pytest.approx(built[1], rel=1e-6)


# ------------------------------------------------------------------------------ levels
def test_highest_level_has_all_its_features() -> None:
    v4, v3 = LEVELS.values()

    assert v3 < v4
    assert highest_level(v4 | {"gfni"}) == "x86-64-v4"
    assert highest_level(v4 - {"avx512dq"}) == "x86-64-v3"
    assert highest_level(v3 - {"fma"}) is None


def test_features_follow_numbas_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processor.config, "CPU_FEATURES", "+avx2,-avx512f,+fma")
    assert _processor.target_features() == {"avx2", "fma"}

    monkeypatch.setattr(_processor.config, "CPU_FEATURES", None)
    monkeypatch.setattr(_processor.config, "ENABLE_AVX", 0)
    assert not [f for f in _processor.target_features() if f.startswith("avx")]


# ---------------------------------------------------------------------------- building
def test_levels_that_the_builder_lacks_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compile_something(command: Any, env: dict[str, str], **_: Any) -> None:
        folder = Path(env["NUMBA_CACHE_DIR"], "maxmargin", "digest", "solvers")
        folder.mkdir(parents=True)
        for suffix in (".nbi", ".nbc", ".lock"):
            (folder / f"f{suffix}").write_text(env["NUMBA_CPU_NAME"])

    monkeypatch.setattr(subprocess, "run", compile_something)
    monkeypatch.setattr(machine_code, "target_features", lambda: LEVELS["x86-64-v3"])

    machine_code.main(tmp_path)

    assert (
        "x86-64-v4: left out, this processor lacks avx512bw" in capsys.readouterr().out
    )
    solvers = tmp_path / "digest" / "x86-64-v3" / "solvers"
    assert {path.name for path in tmp_path.rglob("f.*")} == {"f.nbi", "f.nbc"}
    assert (solvers / "f.nbc").read_text() == "x86-64-v3"
