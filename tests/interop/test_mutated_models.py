"""Can a model file do harm? Damaged by accident or on purpose, it is read or refused.

No crash, no hang, little memory, and no errors but ours.
"""

from __future__ import annotations

import time
import tracemalloc
from itertools import product
from typing import Any

import datasets
import numpy as np
import pytest
import scipy.sparse as sp
from mutations import flipped, mutated, resealed

import maxmargin
from maxmargin.errors import InvalidInput, ModelFormatError
from maxmargin.interop.liblinear_file import liblinear_text
from maxmargin.interop.libsvm_file import libsvm_text
from maxmargin.interop.model_files import read_model
from maxmargin.interop.native import MAGIC, START, Saved, native_bytes
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import SOLVERS, LinearModel

N_FILES = int(1000 * datasets.SCALE)
SECONDS = 1.0
FACTOR, ROOM = 10, 100 << 20  # memory: times the file, and bytes besides


def kernel_models() -> list[KernelModel]:
    """A small model of every machine and kernel."""
    rng = np.random.default_rng(0)
    kernels = [Linear(), Polynomial(0.5, 1.0, 3), RBF(0.5), Sigmoid(0.1, 0.2), None]
    models = []
    machines = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
    for machine, kernel in product(machines, kernels):
        is_classifier = machine in ("c_svc", "nu_svc")
        k = 3 if is_classifier else 2
        n_pairs = 3 if is_classifier else 1
        support = sp.random(6, 8, 0.5, format="csr", random_state=rng)
        models.append(
            KernelModel(
                machine=machine,
                kernel=kernel,
                support=None if kernel is None else support,
                support_index=np.arange(6),
                dual_coef=rng.normal(size=(k - 1, 6)),
                intercept=rng.normal(size=n_pairs),
                classes=np.array([3, -1, 2]) if is_classifier else None,
                n_support=np.array([2, 3, 1]) if is_classifier else None,
                prob_a=None if machine == "one_class" else rng.normal(size=n_pairs),
                prob_b=rng.normal(size=n_pairs) if is_classifier else None,
                density_marks=np.arange(10.0) if machine == "one_class" else None,
                n_features=8,
            )
        )
    return models


def linear_models() -> list[LinearModel]:
    rng = np.random.default_rng(1)
    models = []
    for solver in SOLVERS:
        is_one_class = solver == "ONECLASS_SVM"
        is_classifier = "SVR" not in solver and not is_one_class
        n = 3 if is_classifier else 1
        models.append(
            LinearModel(
                solver=solver,
                classes=np.array([1, 2, 3]) if is_classifier else None,
                coef=rng.normal(size=(n, 7)),
                bias=-1.0 if is_one_class else 1.0,
                bias_weight=None if is_one_class else rng.normal(size=n),
                rho=0.5 if is_one_class else 0.0,
            )
        )
    return models


def files(form: str) -> list[bytes]:
    if form == "libsvm":
        return [b"".join(libsvm_text(model)) for model in kernel_models()]
    if form == "liblinear":
        return [b"".join(liblinear_text(model)) for model in linear_models()]
    models: list[Any] = [*kernel_models(), *linear_models()]
    return [b"".join(native_bytes(Saved(model))) for model in models]


def read_or_refuse(data: bytes) -> Any:
    try:
        return read_model(data)
    except ModelFormatError as error:
        assert str(error)
        return None


def peak_of(data: bytes) -> int:
    """Bytes that reading takes at its worst moment."""
    tracemalloc.start()
    try:
        read_or_refuse(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def survives(data: bytes) -> bool:
    """Read a file within all limits; True where it could be read."""
    began = time.process_time()
    model = read_or_refuse(data)
    assert time.process_time() - began < SECONDS
    assert peak_of(data) <= FACTOR * len(data) + ROOM
    if model is None:
        return False
    try:
        model.predict(np.ones((2, 8)))
    except InvalidInput as error:
        assert str(error)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("form", ["libsvm", "liblinear", "native", "native, resealed"])
def test_mutated_files_are_read_or_refused(form: str) -> None:
    rng = np.random.default_rng(len(form))
    good = files(form.partition(",")[0])
    assert all(survives(data) for data in good)
    share = {"libsvm": 0.4, "liblinear": 0.3}.get(form, 0.15)
    n_read = 0

    for _ in range(int(N_FILES * share)):
        data = mutated(rng, good)
        if "resealed" in form:  # half of them with all sizes as they were
            whole = good[rng.integers(len(good))]
            data = resealed(data if rng.random() < 0.5 else flipped(rng, whole))
        n_read += survives(data)

    print(f"\n{form}: {n_read} of {int(N_FILES * share)} mutated files could be read")
    assert n_read < N_FILES * share  # the mutations do harm


@pytest.mark.slow
def test_mutated_estimators_load_or_are_refused(tmp_path: Any) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.arange(20) % 2
    good = []
    for machine in (maxmargin.SVC(), maxmargin.LinearSVC(class_weight={0: 2, 1: 1})):
        machine.fit(X, y).save(tmp_path / "a.mm")
        good.append((tmp_path / "a.mm").read_bytes())
    rng = np.random.default_rng(5)

    for _ in range(N_FILES // 10):
        data = resealed(mutated(rng, good))
        try:
            machine = maxmargin.load(data)
        except ModelFormatError:
            continue
        try:
            machine.predict(np.zeros((1, machine.n_features_in_)))
        except InvalidInput as error:
            assert str(error)


# ------------------------------------------------------------------- written by hand
HEAD = b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\n"
TAIL = b"rho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n"
GOOD = HEAD + b"total_sv 2\n" + TAIL + b"1 1:1 \n-1 2:1 \n"
LINEAR = (
    b"solver_type L2R_LR\nnr_class 2\nlabel 1 2\nnr_feature 2\nbias -1\nw\n1 \n2 \n"
)


def sealed_header(text: bytes) -> bytes:
    return resealed(START.pack(MAGIC, 1, len(text)) + text + b"\0" * 32)


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "nul bytes": b"\0" * 100_000,
    "a promise of vectors": GOOD.replace(b"total_sv 2", b"total_sv 2147483647"),
    "vectors that agree": GOOD.replace(b"total_sv 2", b"total_sv 2147483647").replace(
        b"nr_sv 1 1", b"nr_sv 2147483646 1"
    ),
    "a promise of classes": GOOD.replace(b"nr_class 2", b"nr_class 2147483647"),
    "negative counts": GOOD.replace(b"nr_sv 1 1", b"nr_sv -1 3"),
    "no classes": GOOD.replace(b"nr_class 2", b"nr_class 0"),
    "classes before they are known": b"label 1 -1\nrho 0\n" + GOOD,
    "a huge index": GOOD.replace(b"2:1", b"2147483648:1"),
    "a negative index": GOOD.replace(b"2:1", b"-2:1"),
    "an index of 64 bits": GOOD.replace(b"2:1", b"18446744073709551617:1"),
    "descending indices": GOOD.replace(b"-1 2:1", b"-1 3:1 2:1"),
    "a number without end": GOOD.replace(b"2:1", b"2:" + b"1" * 3_000_000),
    "a line without end": GOOD + b"1 " * 2_000_000,
    "a key without end": b"k" * 4_000_000,
    "lines without end": b"\n" * 4_000_000,
    "no number": GOOD.replace(b"1:1", b"1:nan"),
    "too large a number": GOOD.replace(b"1:1", b"1:1e999"),
    "coefficients only": GOOD.replace(b"-1 2:1", b"-1 -1 -1"),
    "a colon alone": GOOD.replace(b"2:1", b":"),
    "unequal pairs": GOOD.replace(b"-1 2:1", b"-1 1:2:3 5"),
    "a format string": GOOD.replace(b"rbf", b"%n%n%n%n"),
    "a long word": GOOD.replace(b"rbf", b"r" * 1_000_000),
    "no end of the header": HEAD,
    "other alphabets": GOOD.replace(b"1:1", "١:١".encode()),
    "underlines": GOOD.replace(b"1:1", b"1_0:1_0"),
    "a precomputed vector": GOOD.replace(b"rbf", b"precomputed"),
    "a precomputed number": GOOD.replace(b"rbf", b"precomputed")
    .replace(b"1:1", b"0:1e300")
    .replace(b"2:1", b"0:2"),
    "a promise of features": LINEAR.replace(b"nr_feature 2", b"nr_feature 2147483647"),
    "negative features": LINEAR.replace(b"nr_feature 2", b"nr_feature -1"),
    "features and classes": LINEAR.replace(b"nr_class 2", b"nr_class 99999"),
    "no weights": LINEAR[: LINEAR.index(b"1 \n2")],
    "more weights": LINEAR + b"3 \n" * 100_000,
    "weights of nan": LINEAR.replace(b"\n2 \n", b"\nnan \n"),
    "a bias of inf": LINEAR.replace(b"bias -1", b"bias inf"),
    "a header beyond the file": resealed(START.pack(MAGIC, 1, 2**63) + b"\0" * 100),
    "nested brackets": sealed_header(b"[" * 200_000),
    "many objects": sealed_header(b"[" + b"{}," * 300_000 + b"{}]"),
    "a long header": sealed_header(b"[" + b"{}," * 1_000_000 + b"{}]"),
    "many digits": sealed_header(b'{"kind": ' + b"9" * 100_000 + b"}"),
    "a pickle": b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(case: str) -> None:
    assert not survives(HOSTILE[case])


def test_what_the_hostile_files_were_made_of_is_fine() -> None:
    assert survives(GOOD)
    assert survives(LINEAR)


def test_a_far_column_costs_nothing() -> None:
    """A model may name feature 2147483647; nobody writes out what lies between."""
    far = GOOD.replace(b"2:1", b"2147483647:1")
    model = read_model(far)

    tracemalloc.start()
    found = model.decisions(np.ones((2, 8)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert np.isfinite(found).all()
    assert peak < ROOM


def test_long_rows_and_many_rows_are_read_in_pieces() -> None:
    """Memory stays within its bounds where tokens are as small as they can be."""
    width = 400_000
    row = b"".join(b"%d:1 " % i for i in range(1, width + 1))
    wide = GOOD.replace(b"2:1 ", row)
    n = 300_000
    tall = (HEAD + b"total_sv %d\n" % n + TAIL).replace(
        b"nr_sv 1 1", b"nr_sv 1 %d" % (n - 1)
    ) + b"0\n" * n

    for data in (wide, tall):
        assert peak_of(data) <= FACTOR * len(data) + ROOM
    assert read_model(tall).dual_coef.shape == (1, n)
    assert read_model(wide).support.shape == (2, width)


def test_laplacian_models_survive_too() -> None:
    model = KernelModel(
        machine="one_class",
        kernel=Laplacian(0.5),
        support=np.ones((2, 8)),
        support_index=None,
        dual_coef=np.ones((1, 2)),
        intercept=np.zeros(1),
        n_features=8,
    )

    assert survives(b"".join(native_bytes(Saved(model))))
