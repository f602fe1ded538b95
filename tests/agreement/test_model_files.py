"""Do LIBSVM and LIBLINEAR read our model files, and do we read theirs?

Every type, kernel and section of both formats, in both directions: labels equal,
decision values equal to rounding once both have read the same file.
"""

from __future__ import annotations

import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin.interop.liblinear_file import read_liblinear, write_liblinear
from maxmargin.interop.libsvm_file import read_libsvm, write_libsvm

REASON = "the real packages could not be built or installed: nothing to agree with"
pytest.importorskip("libsvm.svmutil", reason=REASON, exc_type=Exception)
pytest.importorskip("liblinear.liblinear", reason=REASON, exc_type=Exception)

from peer_models import (  # noqa: E402  needs both peers
    ask_liblinear,
    ask_libsvm,
    train_liblinear,
    train_libsvm,
)

pytestmark = pytest.mark.agreement

Floats = npt.NDArray[np.float64]

SAME = 1e-11  # of the largest decision value: sums in another order
EIGHT_DIGITS = 1e-5  # what rounding support vectors to 8 digits may change
TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
WORDS = {"polynomial": "poly"}  # ours, where they differ
SOLVERS = (0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 21)
LOGISTIC = (0, 6, 7)
LABELS = {2: (1, -1), 3: (5, -2, 9), 5: (3, 1, 4, 10, 5)}


def samples(seed: int, n_classes: int = 2) -> tuple[Floats, Floats, Floats, Floats]:
    """Training rows with a third of zeros, their labels, their numbers, test rows."""
    rng = np.random.default_rng(seed)
    code = np.arange(60) % n_classes
    X = rng.normal(size=(60, 6)) + np.eye(6)[code] * 1.5
    X[rng.random(X.shape) < 0.3] = 0.0
    labels = np.array(LABELS[n_classes], dtype=float)[code]
    numbers = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=60)
    return X, labels, numbers, rng.normal(size=(25, 6))


def assert_close(ours: Floats, theirs: Floats, tolerance: float = SAME) -> None:
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(theirs).max())


def classes_of(machine: str) -> tuple[int, ...]:
    return (2, 3, 5) if machine in TYPES[:2] else (2,)


THEIRS = [
    (machine, kernel, b, k, seed)
    for machine, kernel, b, seed in product(TYPES, KERNELS, (0, 1), (0, 1))
    for k in classes_of(machine)
]


@pytest.mark.parametrize("machine, kernel, b, k, seed", THEIRS)
def test_we_read_what_libsvm_writes_and_it_reads_ours(
    machine: str, kernel: str, b: int, k: int, seed: int, tmp_path: Path
) -> None:
    from libsvm import svmutil

    X, labels, numbers, test = samples(seed, k)
    y = labels if machine in TYPES[:2] else numbers
    is_kernel = kernel == "precomputed"
    if is_kernel:
        X, test = X @ X.T, test @ X.T
    options = f"-s {TYPES.index(machine)} -t {KERNELS.index(kernel)} -b {b}"
    theirs = train_libsvm(X, y, f"{options} -g 0.2 -r 0.5 -n 0.3", is_kernel=is_kernel)
    svmutil.svm_save_model(str(tmp_path / "theirs"), theirs)
    model = read_libsvm(tmp_path / "theirs")
    n_probabilities = k if b and machine in TYPES[:3] else 0
    answers = ask_libsvm(
        tmp_path / "theirs", test, is_kernel=is_kernel, n_probabilities=n_probabilities
    )

    decisions = model.decisions(test)

    assert_close(decisions, answers.values)
    if model.is_regressor:
        assert_close(model.predict(test), answers.labels)
    else:
        assert (model.predict(test) == answers.labels).all()
    if model.has_probabilities and not model.is_regressor:
        assert answers.probabilities is not None
        assert np.abs(model.probabilities(test) - answers.probabilities).max() < 1e-9
    if b and machine in TYPES[3:]:
        assert model.sigma == theirs.get_svr_probability()
    write_libsvm(tmp_path / "ours", model)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


ESTIMATORS = {
    "SVC": (2, 3, 5),
    "NuSVC": (2, 3, 5),
    "SVR": (2,),
    "NuSVR": (2,),
    "OneClassSVM": (2,),
}
OURS = [
    (name, kernel, k, layout)
    for name, kernel, layout in product(ESTIMATORS, KERNELS, ("dense", "sparse"))
    for k in ESTIMATORS[name]
    if not (kernel == "precomputed" and layout == "sparse")
]


@pytest.mark.parametrize("name, kernel, k, layout", OURS)
def test_libsvm_reads_our_estimators(
    name: str, kernel: str, k: int, layout: str, tmp_path: Path
) -> None:
    X, labels, numbers, test = samples(7, k)
    is_kernel = kernel == "precomputed"
    if is_kernel:
        X, test = X @ X.T, test @ X.T
    settings: dict[str, Any] = {} if name in ("SVC", "SVR") else {"nu": 0.7}
    word = WORDS.get(kernel, kernel)
    machine = getattr(maxmargin, name)(kernel=word, gamma=0.2, coef0=0.5, **settings)
    rows = sp.csr_matrix(X) if layout == "sparse" else X
    machine.fit(rows, labels if name.endswith("SVC") else numbers)
    machine.save(tmp_path / "whole", format="libsvm", digits=17)
    machine.save(tmp_path / "short.model")

    whole = ask_libsvm(tmp_path / "whole", test, is_kernel=is_kernel)
    short = ask_libsvm(tmp_path / "short.model", test, is_kernel=is_kernel)

    ours = values_of(machine, test)
    assert_close(ours, whole.values)
    assert_close(ours, short.values, EIGHT_DIGITS)
    assert_close(read_libsvm(tmp_path / "short.model").decisions(test), short.values)
    if name.endswith("SVC"):
        assert (machine.predict(test) == whole.labels).all()
    back = maxmargin.load(tmp_path / "whole")
    assert type(back) is type(machine)
    assert_close(values_of(back, test[:, : back.n_features_in_]), whole.values)


def values_of(machine: Any, test: Floats) -> Floats:
    """Decision values as LIBSVM orders them: pairs, positive for the first."""
    if hasattr(machine, "classes_"):
        machine.decision_function_shape = "ovo"
        found = machine.decision_function(test)
        return -found[:, None] if found.ndim == 1 else found
    if hasattr(machine, "offset_"):
        return machine.decision_function(test)[:, None]
    return machine.predict(test)[:, None]


LINEAR = [
    (solver, bias, k, seed)
    for solver, bias, seed in product(SOLVERS, (-1, 1, 2.5), (0, 1))
    for k in ((2, 3) if solver < 11 else (2,))
    if not (solver == 21 and bias > 0)
]


@pytest.mark.parametrize("solver, bias, k, seed", LINEAR)
def test_we_read_what_liblinear_writes_and_it_reads_ours(
    solver: int, bias: float, k: int, seed: int, tmp_path: Path
) -> None:
    from liblinear import liblinearutil

    X, labels, numbers, test = samples(seed, k)
    options = f"-s {solver} -B {bias} -e 0.01 -n 0.3"
    theirs = train_liblinear(X, labels if solver < 11 else numbers, options)
    liblinearutil.save_model(str(tmp_path / "theirs"), theirs)
    model = read_liblinear(tmp_path / "theirs")
    n_probabilities = k if solver in LOGISTIC else 0
    answers = ask_liblinear(tmp_path / "theirs", test, n_probabilities=n_probabilities)

    assert_close(model.decisions(test), answers.values)
    if model.is_regressor:
        assert_close(model.predict(test), answers.labels)
    else:
        assert (model.predict(test) == answers.labels).all()
    if n_probabilities:
        assert answers.probabilities is not None
        assert np.abs(model.probabilities(test) - answers.probabilities).max() < 1e-12
    write_liblinear(tmp_path / "ours", model)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


LINEAR_ESTIMATORS: dict[str, tuple[str, dict[str, Any], int]] = {
    "squared hinge": ("LinearSVC", {}, 2),
    "squared hinge, three": ("LinearSVC", {"dual": False}, 3),
    "hinge": ("LinearSVC", {"loss": "hinge"}, 2),
    "l1": ("LinearSVC", {"penalty": "l1", "dual": False}, 3),
    "crammer singer, two": ("LinearSVC", {"multi_class": "crammer_singer"}, 2),
    "crammer singer": ("LinearSVC", {"multi_class": "crammer_singer"}, 5),
    "no intercept": ("LinearSVC", {"fit_intercept": False}, 2),
    "scaled intercept": ("LinearSVC", {"intercept_scaling": 3.0}, 3),
    "logistic": ("LogisticRegression", {}, 2),
    "logistic, l1": ("LogisticRegression", {"penalty": "l1"}, 3),
    "logistic, dual": ("LogisticRegression", {"dual": True}, 5),
    "regression": ("LinearSVR", {}, 2),
    "regression, squared": ("LinearSVR", {"loss": "squared_epsilon_insensitive"}, 2),
    "one class": ("LinearOneClassSVM", {"nu": 0.3}, 2),
}


@pytest.mark.parametrize("case", LINEAR_ESTIMATORS)
def test_liblinear_reads_our_estimators(case: str, tmp_path: Path) -> None:
    name, settings, k = LINEAR_ESTIMATORS[case]
    X, labels, numbers, test = samples(3, k)
    machine = getattr(maxmargin, name)(**settings)
    is_classifier = name in ("LinearSVC", "LogisticRegression")
    machine.fit(X, labels if is_classifier else numbers)
    machine.save(tmp_path / "ours.model")

    answers = ask_liblinear(tmp_path / "ours.model", test)

    back = maxmargin.load(tmp_path / "ours.model")
    assert type(back) is type(machine)
    if is_classifier:
        assert (machine.predict(test) == answers.labels).all()
        assert (back.predict(test) == answers.labels).all()
        ours = machine.decision_function(test)
        if k > 2:
            order = [list(machine.classes_).index(c) for c in machine.classes_]
            assert_close(ours[:, order], answers.values)
        else:
            scale = 2.0 if "crammer" in case else 1.0  # two planes, half each
            assert_close(ours, scale * answers.values[:, 0])
        assert_close(back.decision_function(test), ours)
    elif name == "LinearSVR":
        assert_close(machine.predict(test), answers.labels)
        assert_close(back.predict(test), answers.labels)
    else:
        assert_close(machine.decision_function(test), answers.values[:, 0])
        assert_close(back.decision_function(test), answers.values[:, 0])


# ------------------------------------------------- the commands of older versions
def data_lines(X: Floats, y: Floats, *, is_kernel: bool = False) -> str:
    lines = []
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        pairs = [f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v or is_kernel]
        first = [f"0:{i + 1}"] if is_kernel else []
        lines.append(" ".join([repr(float(label)), *first, *pairs]))
    return "\n".join(lines) + "\n"


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("svm-train") is None, reason="no svm-train here")
@pytest.mark.parametrize("machine, kernel", list(product(TYPES, KERNELS)))
def test_installed_svm_commands_and_we_read_one_another(
    machine: str, kernel: str, tmp_path: Path
) -> None:
    X, labels, numbers, test = samples(5, 3)
    y = labels if machine in TYPES[:2] else numbers
    is_kernel = kernel == "precomputed"
    if is_kernel:
        X, test = X @ X.T, test @ X.T
    (tmp_path / "train").write_text(data_lines(X, y, is_kernel=is_kernel))
    (tmp_path / "test").write_text(data_lines(test, y[:25], is_kernel=is_kernel))
    options = ["-q", "-s", TYPES.index(machine), "-t", KERNELS.index(kernel)]
    tuned = [*options, "-g", 0.2, "-r", 0.5, "-n", 0.3]
    run("svm-train", *tuned, tmp_path / "train", tmp_path / "model")
    model = read_libsvm(tmp_path / "model")
    write_libsvm(tmp_path / "ours", model, digits=17)
    for name in ("model", "ours"):
        run("svm-predict", tmp_path / "test", tmp_path / name, tmp_path / "out")
        theirs = np.loadtxt(tmp_path / "out")

        ours = model.predict(test)

        np.testing.assert_allclose(ours, theirs, rtol=2e-5)  # old ones print %g


@pytest.mark.skipif(
    shutil.which("liblinear-train") is None, reason="no liblinear-train here"
)
@pytest.mark.parametrize("solver", SOLVERS[:-1])  # old versions know no one-class
def test_installed_liblinear_commands_and_we_read_one_another(
    solver: int, tmp_path: Path
) -> None:
    X, labels, numbers, test = samples(5, 3)
    y = labels if solver < 11 else numbers
    (tmp_path / "train").write_text(data_lines(X, y))
    (tmp_path / "test").write_text(data_lines(test, y[:25]))
    options = ["-q", "-s", solver, "-B", 1]
    run("liblinear-train", *options, tmp_path / "train", tmp_path / "model")
    model = read_liblinear(tmp_path / "model")
    write_liblinear(tmp_path / "ours", model)
    for name in ("model", "ours"):
        run("liblinear-predict", tmp_path / "test", tmp_path / name, tmp_path / "out")
        theirs = np.loadtxt(tmp_path / "out")

        np.testing.assert_allclose(model.predict(test), theirs, rtol=2e-5)


def test_there_are_at_least_three_hundred_files() -> None:
    n = len(THEIRS) + len(OURS) + len(LINEAR) + len(LINEAR_ESTIMATORS)

    assert n >= 300
