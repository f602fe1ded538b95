"""Do fits behave among signals, threads, forks and folders that cannot be written?

Each of these runs in a process of its own, so that a hang or a crash fails one test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import datasets
import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from surface import interrupt

from maxmargin import SVC, SVR, OneClassSVM

Floats = npt.NDArray[np.float64]

SECONDS = 120.0  # for a child that may have to compile
NOWHERE = "/dev/null/nowhere"  # under a file, where not even root can write
NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

HARD = """
import sys, time
import numpy as np
from maxmargin import SVC, SVR, NuSVC, OneClassSVM

def hard(n=20000, n_classes=2, d=12):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.integers(n_classes, size=n)

def compile_first(machine, n_classes):
    import warnings
    from sklearn.base import clone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(machine).set_params(max_iter=3000).fit(*hard(1000 * n_classes, n_classes))
        clone(machine).set_params(max_iter=3000).fit(*hard(500, n_classes))
"""
INTERRUPTED = """
machine, (X, y) = {machine}, hard({size})
compile_first(machine, y.max() + 1)
print("begin", flush=True)
try:
    machine.fit(X, y)
except KeyboardInterrupt:
    from sklearn.utils.validation import check_is_fitted
    from sklearn.exceptions import NotFittedError
    try:
        check_is_fitted(machine)
    except NotFittedError:
        left = [name for name in vars(machine) if name.endswith("_")]
        print("unfitted", left, flush=True)
else:
    print("finished", flush=True)
"""
FITS = {
    "rows on demand": ("SVC(C=100.0, gamma=1.0)", "20000"),
    "two rows at a time": ("SVC(C=100.0, gamma=1.0, cache_size=1e-6)", "20000"),
    "pairs on threads": (
        "SVC(C=1e4, kernel='poly', degree=1, gamma=1.0, n_jobs=2)",
        "6000, 6",
    ),
    "no intercept": ("SVC(C=1e4, gamma=0.3, fit_intercept=False)", "20000"),
    "whole kernel": (
        "SVC(C=1e8, kernel='poly', degree=1, gamma=1.0, tol=1e-9)",
        "1400",
    ),
    "hopeless line": ("SVC(C=1e8, kernel='poly', degree=1, gamma=1.0)", "3000"),
    "regression": ("SVR(C=1e4, epsilon=1e-3, gamma=1.0)", "20000"),
    "function": ("SVC(C=1e4, kernel=lambda a, b: a @ b.T)", "6000"),
}
SOME_FITS = list(FITS)[: max(4, int(4 * datasets.SCALE))]


def child(code: str, **environment: str) -> subprocess.Popen[str]:
    """A new Python that runs some code; its output is unbuffered text."""
    return subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", "-c", HARD + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def output_of(code: str, **environment: str) -> str:
    """What a child printed, once it has ended well."""
    process = child(code, **environment)
    try:
        printed, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"hangs: {process.communicate()}") from None
    assert process.returncode == 0, errors
    return printed


# ------------------------------------------------------------------------------ Ctrl-C
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for children")
@pytest.mark.parametrize("name", SOME_FITS)
def test_interrupt_ends_a_fit_and_leaves_nothing(name: str) -> None:
    machine, size = FITS[name]
    process = child(INTERRUPTED.format(machine=machine, size=size))
    try:
        assert process.stdout.readline().strip() == "begin", process.stderr.read()
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()

    assert printed.splitlines() == ["unfitted []"], (printed, errors)


def test_interrupted_refit_keeps_the_machine_as_it_was() -> None:
    X, y = draw()
    machine = SVC(n_jobs=2).fit(X, y)
    before = machine.decision_function(X)

    with pytest.raises(KeyboardInterrupt):
        machine.set_params(callback=interrupt, C=50.0).fit(X[:100], y[:100])

    assert machine.decision_function(X).tobytes() == before.tobytes()


# ------------------------------------------------------------------------------- limits
@pytest.mark.slow
def test_time_limit_is_kept() -> None:
    X = 100.0 * np.random.default_rng(0).normal(size=(3000, 5))
    y = np.arange(3000) % 2
    SVC(kernel="linear", max_iter=-1).fit(X[:50] / 100.0, y[:50])
    machine = SVC(C=1e6, kernel="linear", time_limit=0.05)

    with pytest.warns(ConvergenceWarning, match="Solver terminated early") as caught:
        machine.fit(X, y)

    assert machine.status_.name == "TIME_LIMIT"
    assert f"{machine.kkt_violation_:.3g}" in str(caught[0].message)
    assert machine.kkt_violation_ > machine.tol


# ------------------------------------------------------------------ threads and forks
def draw(n_classes: int = 3) -> tuple[Floats, npt.NDArray[np.intp]]:
    return make_classification(
        400, 8, n_informative=5, n_classes=n_classes, random_state=0
    )


def test_two_fits_at_once_are_as_one_after_the_other() -> None:
    X, y = draw()
    machines = [SVC(n_jobs=2), SVC(C=9.0), SVR(), OneClassSVM(nu=0.2)]
    alone = [type(m)(**m.get_params()).fit(X, y) for m in machines]

    threads = [threading.Thread(target=m.fit, args=(X, y)) for m in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=SECONDS)

    for one, other in zip(machines, alone, strict=True):
        assert one.dual_coef_.tobytes() == other.dual_coef_.tobytes()
        assert one.intercept_.tobytes() == other.intercept_.tobytes()
        assert one.predict(X).tobytes() == other.predict(X).tobytes()


def test_one_fitted_machine_may_predict_in_many_threads() -> None:
    X, y = draw()
    fitted = SVC().fit(X, y)
    expected = fitted.decision_function(X).tobytes()
    found: list[bytes] = []

    threads = [
        threading.Thread(
            target=lambda: found.append(fitted.decision_function(X).tobytes())
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=SECONDS)

    assert found == [expected] * 4


FORKED = """
import os
X, y = hard(400, 3)
first = SVC(n_jobs=2).fit(X, y)
pid = os.fork()
if pid == 0:
    again = SVC(n_jobs=2).fit(X, y)
    same = again.dual_coef_.tobytes() == first.dual_coef_.tobytes()
    same &= first.predict(X).tobytes() == again.predict(X).tobytes()
    os._exit(0 if same else 3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@NEEDS_FORK
def test_fit_in_a_forked_child_after_a_threaded_fit() -> None:
    assert output_of(FORKED).strip() == "0"


WORKERS = """
from joblib import Parallel, delayed

def fit(C, X, y):
    machine = SVC(C=C).fit(X, y)
    return machine.dual_coef_.tobytes(), machine._n_threads()

X, y = hard(300, 3)
parallel = Parallel(n_jobs=2, backend={backend!r})
found = parallel(delayed(fit)(C, X, y) for C in (1, 2, 3))
here = [SVC(C=C).fit(X, y).dual_coef_.tobytes() for C in (1, 2, 3)]
print([value for value, _ in found] == here, sorted(set(n for _, n in found)))
"""


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fit_inside_joblib_workers_uses_one_thread(backend: str) -> None:
    assert output_of(WORKERS.format(backend=backend)).strip() == "True [1]"


# -------------------------------------------------------------- where nothing is kept
FIRST_FIT = """
began = time.monotonic()
X, y = hard(40)
score = SVC(C=10.0, gamma=1.0).fit(X, y).score(X, y)
from maxmargin import _jit
print(score, _jit.cache_folder() is None, round(time.monotonic() - began, 1))
"""


@pytest.mark.slow
def test_first_fit_without_a_writable_home(tmp_path: Path) -> None:
    elsewhere = {"HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE, "NUMBA_CACHE_DIR": ""}

    printed = output_of(FIRST_FIT, TMPDIR=str(tmp_path), **elsewhere)

    score, has_no_cache, seconds = printed.split()
    print(f"\nfirst fit ever: {seconds} s")
    assert float(score) > 0.9
    assert has_no_cache == "False"
    assert list(tmp_path.rglob("*.nbi"))


@pytest.mark.slow
@pytest.mark.skipif(datasets.SCALE <= 1, reason="compiles everything once more")
def test_first_fit_without_any_writable_folder() -> None:
    nothing = "import tempfile\ntempfile.tempdir = '/dev/null/nowhere'\n"
    elsewhere = {"HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE, "NUMBA_CACHE_DIR": ""}
    process = subprocess.run(
        [sys.executable, "-c", nothing + HARD + FIRST_FIT],
        env=os.environ | elsewhere,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )

    assert process.returncode == 0, process.stderr
    score, has_no_cache, seconds = process.stdout.split()
    print(f"\nfirst fit without a cache: {seconds} s")
    assert float(score) > 0.9
    assert has_no_cache == "True"
