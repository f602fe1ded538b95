"""What happens beside a compilation: who waits, who is told, what is left out?"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maxmargin import _compiling
from maxmargin._compiling import compiling, lock, release, tell_once
from maxmargin.cli.compile import Kind, all_kinds
from maxmargin.cli.compile import fit as fit_kind

has_locks = pytest.mark.skipif(
    not _compiling.HAS_LOCKS, reason="no locks on files here"
)
HOLD = """
import sys
from pathlib import Path
from maxmargin._compiling import lock
lock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""
CALLS = """
import json, os, sys
os.environ["NUMBA_CACHE_DIR"] = sys.argv[1]
from maxmargin._jit import jit

@jit
def inner(x):
    return 2.0 * x

@jit
def outer(x):
    return inner(x) + 1.0

found = [outer(1.0), inner(3.0), outer(2.0)]
hits = [sum(f.stats.cache_hits.values()) for f in (outer, inner)]
print(json.dumps([found, hits]))
"""


# ----------------------------------------------------------------------------- locks
@has_locks
def test_who_comes_second_waits_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "function.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None and holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"

    with path.open("ab") as file:
        assert not _compiling._is_locked(file)
        holder.stdin.close()  # and it ends
        holder.wait()
        assert _compiling._is_locked(file)
    holder.stdout.close()


@has_locks
def test_a_process_that_is_stopped_holds_nobody_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiling, "LONGEST_WAIT", 0.1)
    monkeypatch.setattr(_compiling, "_is_locked", lambda file: False)
    began = time.monotonic()

    lock(tmp_path / "function.lock")

    assert time.monotonic() - began >= 0.1
    release(tmp_path / "function.lock")


@has_locks
def test_functions_that_fail_are_released_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), compiling():
        lock(tmp_path / "function.lock")
        assert tmp_path / "function.lock" in _compiling._compilation.locks
        raise RuntimeError

    assert tmp_path / "function.lock" not in _compiling._compilation.locks


# ---------------------------------------------------------------------------- notices
def test_who_waits_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _compiling._Compilation()
    monkeypatch.setattr(_compiling, "_compilation", state)
    caplog.set_level(logging.WARNING, logger="maxmargin")

    tell_once(Path("somewhere"))
    assert not caplog.messages
    state.seconds = 2.5
    tell_once(Path("somewhere"))
    tell_once(Path("somewhere"))

    assert len(caplog.messages) == 1
    assert "somewhere" in caplog.messages[0]


# --------------------------------------------------------------------------- wrappers
def test_a_callee_can_be_called_from_python_too(tmp_path: Path) -> None:
    script = tmp_path / "calls.py"
    script.write_text(CALLS)
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}

    def run() -> Any:
        words = [sys.executable, str(script), str(tmp_path / "cache")]
        done = subprocess.run(
            words, env=environment, check=True, capture_output=True, text=True
        )
        return json.loads(done.stdout)

    assert run() == [[3.0, 6.0, 5.0], [0, 0]]
    assert run() == [[3.0, 6.0, 5.0], [1, 1]]


# ----------------------------------------------------------------------- ahead of time
def test_every_estimator_is_compiled_ahead() -> None:
    import maxmargin

    kinds = list(all_kinds())

    public = {name for name in maxmargin.__all__ if isinstance(_of(name), type)}
    assert {kind.estimator for kind in kinds} == public
    assert {kind.layout for kind in kinds} == {"dense", "sparse", "wide", "matrix"}


def _of(name: str) -> Any:
    import maxmargin

    return getattr(maxmargin, name)


@pytest.mark.parametrize("layout", ["dense", "sparse", "wide"])
def test_a_kind_of_fit_is_fitted(layout: str) -> None:
    fit_kind(Kind("NuSVC", {"kernel": "poly"}, 60, layout))


# -------------------------------------------------------- how much a first fit compiles
COUNT = """
import os, sys
os.environ["NUMBA_CACHE_DIR"] = sys.argv[1]
import numpy as np
from numba.core import event
from maxmargin import *

class Count(event.Listener):
    n = 0
    def on_start(self, event): self.n += 1
    def on_end(self, event): pass

counted = Count()
event.register("numba:compile", counted)
X = np.random.default_rng(0).normal(size=(int(sys.argv[2]), 4))
y = (X[:, 0] + X[:, 1] > 0.0) + 0.0
eval(sys.argv[3]).fit(X, y)
print(counted.n)
"""
# Functions, those of Numba included, that a first fit may compile; written down a few
# above what was counted: 55, 75 and 24.
FIRST_FITS = {
    "few samples": (100, "SVC(C=0.1)", 60),
    "decomposition": (4000, "SVC(C=0.1)", 80),
    "linear": (100, "LinearSVC()", 28),
}


@pytest.mark.parametrize("kind", FIRST_FITS)
def test_a_first_fit_compiles_few_functions(kind: str, tmp_path: Path) -> None:
    n, machine, most = FIRST_FITS[kind]

    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(tmp_path), str(n), machine],
        capture_output=True,
        text=True,
        check=True,
    )

    assert 0 < int(done.stdout) <= most
