"""Is a cross-validation that shares K the one whose folds are trained by themselves?"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.errors import InfeasibleProblem, InvalidInput
from maxmargin.interop import libsvm_cross_validation, libsvm_training
from maxmargin.interop.c_rand import CRand
from maxmargin.interop.libsvm_cross_validation import cross_validate_svm
from maxmargin.interop.libsvm_training import Pace
from maxmargin.interop.option_strings import parse_svm_options
from maxmargin.interop.samples import DataSet, gather
from maxmargin.kernels.shared import SharedPairs
from maxmargin.solvers import Progress

FINE = "-e 1e-7 -v 4"
NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)"
Found = tuple[np.ndarray, str]


def wide(n: int = 300, width: int = 600, n_classes: int = 3) -> DataSet:
    random = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = random.normal(size=(n, width)) + 0.15 * random.normal(size=(3, width))[y % 3]
    return gather(np.array([3.0, 1.0, 2.0, 7.0, 5.0])[y], X / np.sqrt(width))


def narrow(n: int) -> DataSet:
    X = np.random.default_rng(1).normal(size=(n, 4))
    return gather(np.where(X[:, 0] + X[:, 1] > 0.3, 1.0, -1.0), X)


def numbers_for(data: DataSet) -> DataSet:
    slope = np.random.default_rng(2).normal(size=data.X.shape[1])
    return data._replace(y=data.X @ slope)


def tell(data: DataSet, words: str, pace: Pace | None = None) -> Found:
    """What is predicted, and what is said."""
    lines: list[str] = []
    told = parse_svm_options(words)
    found = cross_validate_svm(data, told, lines.append, pace, CRand())
    return found, "".join(lines)


@pytest.fixture
def each(monkeypatch: pytest.MonkeyPatch) -> Callable[[DataSet, str], Found]:
    """The same, every fold by itself."""

    def train(data: DataSet, words: str) -> Found:
        with monkeypatch.context() as patch:
            patch.setattr(libsvm_cross_validation, "can_share", lambda told: False)
            return tell(data, words)

    return train


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many samples each machine that is trained by itself has seen."""
    sizes: list[int] = []
    fit = libsvm_training.fit_kernel_model

    def watch(spec: Any, training: Any, *more: Any) -> Any:
        sizes.append(len(training.weight))
        return fit(spec, training, *more)

    monkeypatch.setattr(libsvm_training, "fit_kernel_model", watch)
    return sizes


def assert_same(shared: Found, alone: Found, near: float = 1e-5) -> None:
    """The same lines, but for #iter; the same classes, or nearly the same numbers."""
    np.testing.assert_allclose(shared[0], alone[0], atol=near)
    lines, others = shared[1].splitlines(), alone[1].splitlines()
    assert len(lines) == len(others)
    for line, other in zip(lines, others, strict=True):
        assert re.sub(NUMBER, "N", line) == re.sub(NUMBER, "N", other)
        if "#iter" not in line:
            figures = [np.array(re.findall(NUMBER, s), float) for s in (line, other)]
            np.testing.assert_allclose(*figures, rtol=near, atol=2e-6 + near)


MACHINES = {
    "C-SVC": "-s 0 -c 5",
    "C-SVC, weights": "-s 0 -c 5 -w3 2 -w1 0.5",
    "nu-SVC": "-s 1 -n 0.4",
    "epsilon-SVR": "-s 3 -c 5 -p 0.2",
    "nu-SVR": "-s 4 -c 5 -n 0.4",
}
KERNELS = {"RBF": "-t 2 -g 0.5", "linear": "-t 0", "polynomial": "-t 1 -d 2 -r 1"}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_sharing_changes_neither_predictions_nor_lines(
    machine: str, kernel: str, each: Any, trained: list[int]
) -> None:
    data = numbers_for(wide()) if "SVR" in machine else wide()
    words = f"{MACHINES[machine]} {KERNELS[kernel]} {FINE}"

    shared = tell(data, words)
    assert trained == []
    alone = each(data, words)

    assert len(trained) == 4
    assert_same(shared, alone)


def test_kernel_values_of_all_folds_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    fill = SharedPairs.fill

    def watch(self: SharedPairs, *more: Any) -> Any:
        sizes.append(len(self.pairs))
        return fill(self, *more)

    monkeypatch.setattr(SharedPairs, "fill", watch)

    tell(wide(), FINE)

    assert sizes == [300]


@pytest.mark.parametrize(
    "case",
    ["long and narrow", "no memory", "no memory for folds", "probabilities", "novelty"],
)
def test_folds_are_trained_alone_where_sharing_does_not_pay(
    case: str, trained: list[int]
) -> None:
    data, words, n = {
        "long and narrow": (narrow(2100), "-v 3", 3),
        "no memory": (wide(), "-m 0.7 -v 4", 4),  # K alone needs 0.69 MB
        "no memory for folds": (narrow(160), "-m 0.6 -v 160", 160),
        "probabilities": (wide(60), "-b 1 -v 3", 3),
        "novelty": (wide(60), "-s 2 -v 3", 3),
    }[case]

    tell(data, words)

    assert len(trained) == n


RARE = np.array([1.0] * 40 + [2.0] * 40 + [5.0] * 2 + [4.0] * 3 + [3.0])
FOLDS = {
    "classes that some folds lack": (RARE, 4),
    "classes met in another order": (RARE, 7),
    "folds without anybody": (np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 4), 11),
    "one held out, many classes": (np.tile([4.0, 2.0, 9.0, 1.0], 8), 32),
    "one held out, two classes": (np.tile([-1.0, 1.0], 20), 99),
    "one of a kind": (np.array([1.0] * 20 + [2.0]), 21),
    "-1 comes first": (np.array([-1.0, 1.0, 1.0, -1.0] * 20), 4),
}


@pytest.mark.parametrize("case", FOLDS)
@pytest.mark.parametrize("has_weights", [False, True])
def test_odd_folds_are_told_alike(
    case: str, has_weights: bool, each: Any, trained: list[int], capfd: Any
) -> None:
    y, n_folds = FOLDS[case]
    random = np.random.default_rng(3)
    weight = random.choice([0.0, 1.0, 2.0], size=len(y)) if has_weights else None
    data = gather(y, random.normal(size=(len(y), 30)) + y[:, None], weight=weight)
    words = f"-g 0.02 -c 3 -e 1e-6 -w2 3 -v {n_folds}"

    shared, heard = tell(data, words), capfd.readouterr().err
    assert trained == []
    alone = each(data, words)

    assert_same(shared, alone)
    assert heard == capfd.readouterr().err


def test_a_kernel_that_is_given_is_shared(each: Any, trained: list[int]) -> None:
    plain = wide()
    order = np.random.default_rng(0).permutation(300)
    K = (plain.X @ plain.X.T)[:, :]
    rows = np.column_stack((np.arange(1.0, 301.0), K))[order]
    data = gather(plain.y[order], rows, is_kernel=True)

    shared = tell(data, f"-t 4 -c 5 {FINE}")
    assert trained == []

    assert_same(shared, each(data, f"-t 4 -c 5 {FINE}"))
    assert_same(shared, tell(plain.take(order), f"-t 0 -c 5 {FINE}"))


def test_columns_without_values_take_no_memory(each: Any) -> None:
    plain = wide(60)
    far = sp.csr_matrix(plain.X)
    far = sp.csr_matrix(
        (far.data, far.indices * 3_000_000, far.indptr), shape=(60, 2_000_000_000)
    )

    shared = tell(plain._replace(X=far), f"-g 1 {FINE}")

    assert_same(shared, tell(plain, f"-g 1 {FINE}"))


def test_threads_change_no_byte() -> None:
    one, two = (tell(wide(), "-c 5 -v 4", Pace(n_threads=n)) for n in (1, 2))

    assert one[1] == two[1]
    assert one[0].tobytes() == two[0].tobytes()


def test_a_time_limit_ends_every_fold_with_a_warning(capfd: Any) -> None:
    found, lines = tell(wide(2400, 60), "-c 1e4 -e 1e-9 -v 3", Pace(time_limit=1e-9))

    assert np.isin(found, [1.0, 2.0, 3.0]).all()
    assert lines.count("Total nSV") == 3
    assert "WARNING: Stopped at time_limit" in capfd.readouterr().err


def test_who_listens_hears_of_every_machine_and_can_stop_it() -> None:
    heard: list[Progress] = []

    tell(wide(), FINE, Pace(n_threads=1, callback=heard.append))

    assert len([p for p in heard if p.violation <= 1e-6]) >= 12

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tell(wide(), FINE, Pace(callback=stop))


def test_what_no_fold_can_learn_is_refused() -> None:
    data = wide(90)
    alone = np.zeros(90)
    alone[5] = 1.0
    uneven = data._replace(y=np.where(np.arange(90) < 40, 1.0, 2.0))
    huge = data._replace(X=1e200 * data.X)

    with pytest.raises(InvalidInput, match="zero or negative weights"):
        tell(data._replace(weight=alone), "-v 3")
    with pytest.raises(InfeasibleProblem, match="nu is infeasible"):
        tell(uneven, "-s 1 -n 0.95 -v 3")
    for kernel in ("-t 0", "-t 1 -d 4 -g 1", "-t 3 -g 1"):
        with pytest.raises(InvalidInput, match="overflow"):
            tell(huge, f"{kernel} -v 3")
