"""Is our own file complete, checked, and never written by halves?"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin.errors import InvalidInput, ModelFormatError
from maxmargin.interop import native
from maxmargin.interop.model_files import read_model
from maxmargin.kernels import RBF, Laplacian
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import LinearModel


def kernel_model(**changes: Any) -> KernelModel:
    rng = np.random.default_rng(0)
    fields = {
        "machine": "c_svc",
        "kernel": RBF(0.3),
        "support": rng.normal(size=(5, 3)),
        "support_index": np.arange(5),
        "dual_coef": rng.normal(size=(2, 5)),
        "intercept": np.array([0.1, -0.2, 0.3]),
        "classes": np.array(["a", "b", "c"]),
        "n_support": np.array([2, 2, 1]),
        "n_features": 3,
    }
    return KernelModel(**(fields | changes))


def linear_model(**changes: Any) -> LinearModel:
    fields = {
        "solver": "L2R_LR",
        "classes": np.array([3, 1]),
        "coef": np.array([[0.5, -1.0]]),
        "bias": 1.0,
        "bias_weight": np.array([0.25]),
    }
    return LinearModel(**(fields | changes))


def saved_bytes(model: Any) -> bytes:
    return b"".join(native.native_bytes(native.Saved(model)))


def sealed(data: bytes) -> bytes:
    """The file with a digest that matches again."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def with_header(data: bytes, **changes: Any) -> bytes:
    """The file with other words in its header."""
    length = native.START.unpack_from(data)[2]
    start = native.START.size
    header = json.loads(data[start : start + length]) | changes
    text = json.dumps(header).encode()
    begun = native.START.pack(native.MAGIC, 1, len(text)) + text
    return sealed(begun + data[start + length :])


def header_of(data: bytes) -> Any:
    length = native.START.unpack_from(data)[2]
    return json.loads(data[native.START.size : native.START.size + length])


# ------------------------------------------------------------------------- round trips
SPARSE = sp.csr_matrix(
    np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 0], [0, 0, 5]])
)
MODELS = {
    "dense": kernel_model(),
    "float32": kernel_model(support=np.ones((5, 3), dtype=np.float32)),
    "sparse": kernel_model(support=SPARSE),
    "sparse array": kernel_model(support=sp.csr_array(SPARSE)),
    "laplacian": kernel_model(kernel=Laplacian(0.1), support_index=None),
    "precomputed": kernel_model(kernel=None, support=None, n_features=9),
    "sigmoids": kernel_model(prob_a=np.ones(3), prob_b=np.zeros(3)),
    "sharpened": kernel_model(prob_a=np.ones(3), prob_b=np.zeros(3), prob_power=1.5),
    "regression": kernel_model(
        machine="nu_svr",
        classes=None,
        n_support=None,
        dual_coef=np.ones((1, 5)),
        intercept=np.zeros(1),
        prob_a=np.array([0.7]),
    ),
    "one class": kernel_model(
        machine="one_class",
        classes=None,
        n_support=None,
        dual_coef=np.ones((1, 5)),
        intercept=np.zeros(1),
        density_marks=np.arange(10.0),
    ),
    "linear": linear_model(),
    "linear, no bias": linear_model(bias=-1.0, bias_weight=None),
    "linear one class": linear_model(
        solver="ONECLASS_SVM", classes=None, bias=-1.0, bias_weight=None, rho=0.5
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_models_come_back_with_every_field(case: str, tmp_path: Path) -> None:
    model = MODELS[case]
    native.save(tmp_path / "model.mm", model)

    back = native.load(tmp_path / "model.mm")

    assert type(back) is type(model)
    for name, ours in vars(model).items():
        if name.startswith("_"):
            continue
        theirs = getattr(back, name)
        assert type(theirs) is type(ours), name
        if sp.issparse(ours):
            assert theirs.dtype == ours.dtype
            assert (theirs != ours).nnz == 0
        elif isinstance(ours, np.ndarray):
            assert theirs.dtype == ours.dtype
            assert theirs.tobytes() == ours.tobytes()
        else:
            assert theirs == ours
    assert type(read_model(tmp_path / "model.mm")) is type(model)


def test_bare_models_load_as_estimators(tmp_path: Path) -> None:
    native.save(tmp_path / "a.mm", kernel_model())
    native.save(tmp_path / "b.mm", linear_model())
    X = np.random.default_rng(1).normal(size=(7, 3))

    kernel, linear = (maxmargin.load(tmp_path / f"{n}.mm") for n in "ab")

    assert (kernel.predict(X) == kernel_model().predict(X)).all()
    assert (linear.predict(X[:, :2]) == linear_model().predict(X[:, :2])).all()


def test_an_estimators_file_is_a_model_without_scikit_learn(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    machine = maxmargin.SVR().fit(X, X[:, 0])
    machine.save(tmp_path / "a.mm")

    model = native.load(tmp_path / "a.mm")

    assert model.predict(X).tobytes() == machine.predict(X).tobytes()


def test_models_of_scaled_features_do_not_meet_others(tmp_path: Path) -> None:
    """`maxmargin fit` keeps the scaling in its notes; who does not look is told."""
    plain = native.Saved(linear_model(), {"fit": {"C": 1}})
    scaled = native.Saved(linear_model(), {"scaling": {"lower": 0, "upper": 1}})
    native.save_with_notes(tmp_path / "plain.mm", plain)
    native.save_with_notes(tmp_path / "scaled.mm", scaled)

    assert maxmargin.load(tmp_path / "plain.mm").coef_.shape == (1, 2)
    for read in (maxmargin.load, native.load, read_model):
        with pytest.raises(ModelFormatError, match="maxmargin apply"):
            read(tmp_path / "scaled.mm")


# --------------------------------------------------------------------- damaged, hostile
DATA = saved_bytes(kernel_model())


def test_every_cut_is_noticed() -> None:
    for length in range(0, len(DATA), 7):
        with pytest.raises(ModelFormatError):
            native.load(DATA[:length])


def test_every_flipped_byte_is_noticed() -> None:
    for place in range(0, len(DATA), 3):
        wrong = bytearray(DATA)
        wrong[place] ^= 0x40
        with pytest.raises(ModelFormatError):
            native.load(bytes(wrong))


def test_future_versions_are_named() -> None:
    later = bytearray(DATA)
    later[8:12] = struct.pack("<I", 7)

    with pytest.raises(ModelFormatError, match=r"version 7 of the format.*newer"):
        native.load(bytes(later))


def arrays_with(**changes: Any) -> list[Any]:
    """The list of arrays, the first of them changed."""
    arrays = header_of(DATA)["arrays"]
    return [arrays[0] | changes, *arrays[1:]]


HOSTILE = {
    "huge shape": {"arrays": arrays_with(shape=[2**62, 2**62])},
    "huge empty shape": {"arrays": arrays_with(shape=[2**62, 0])},
    "negative shape": {"arrays": arrays_with(shape=[-1, 5])},
    "shape of text": {"arrays": arrays_with(shape=["2", 5])},
    "shape of booleans": {"arrays": arrays_with(shape=[True, 5])},
    "many dimensions": {"arrays": arrays_with(shape=[1] * 64)},
    "objects": {"arrays": arrays_with(dtype="|O")},
    "records": {"arrays": arrays_with(dtype="f8,f8")},
    "wide text": {"arrays": arrays_with(dtype="<U99999999")},
    "no text": {"arrays": arrays_with(dtype="<U0", shape=[2**40])},
    "out of place": {"arrays": arrays_with(offset=64)},
    "twice": {"arrays": header_of(DATA)["arrays"][:1] * 2},
    "too few": {"arrays": header_of(DATA)["arrays"][:-1]},
    "no arrays": {"arrays": {}},
    "array without a name": {"arrays": [{}]},
    "unknown kind": {"kind": "forest"},
    "kind of number": {"kind": 3},
    "no model": {"model": None},
    "unknown kernel": {"model": header_of(DATA)["model"] | {"kernel": {"name": "os"}}},
    "negative gamma": {
        "model": header_of(DATA)["model"] | {"kernel": {"name": "rbf", "gamma": -1.0}}
    },
    "whole gamma": {
        "model": header_of(DATA)["model"] | {"kernel": {"name": "rbf", "gamma": 1}}
    },
    "unknown machine": {"model": header_of(DATA)["model"] | {"machine": "svc"}},
    "huge width": {"model": header_of(DATA)["model"] | {"n_features": 2**80}},
    "other width": {"model": header_of(DATA)["model"] | {"n_features": 4}},
    "unknown layout": {"model": header_of(DATA)["model"] | {"layout": "coo_matrix"}},
    "no power": {"model": header_of(DATA)["model"] | {"prob_power": 0.0}},
    "power of text": {"model": header_of(DATA)["model"] | {"prob_power": "2"}},
    "missing layout": {"model": header_of(DATA)["model"] | {"layout": "csr_matrix"}},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers_are_refused(case: str) -> None:
    with pytest.raises(ModelFormatError):
        native.load(with_header(DATA, **HOSTILE[case]))


def test_trailing_bytes_are_refused() -> None:
    with pytest.raises(ModelFormatError, match="left over"):
        native.load(sealed(DATA[:-32] + b"\0" * 64 + DATA[-32:]))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b"[]",
        b"1" * 10_000,
        b"\xff\xff",
        b"",
    ],
    ids=lambda text: repr(text[:10]),
)
def test_headers_that_are_no_json_are_refused(text: bytes) -> None:
    begun = native.START.pack(native.MAGIC, 1, len(text)) + text

    with pytest.raises(ModelFormatError):
        native.load(sealed(begun + b"\0" * 32))


BROKEN = {
    "coefficients": {"dual_coef": np.full((2, 5), np.nan)},
    "intercepts": {"intercept": np.zeros(2)},
    "equal classes": {"classes": np.array(["a", "b", "a"])},
    "counts": {"n_support": np.array([2, 2, 2])},
    "negative counts": {"n_support": np.array([-1, 5, 1])},
    "support": {"support": np.full((5, 3), np.inf)},
    "width": {"n_features": 2},
    "index": {"support_index": np.arange(5) - 1},
    "gamma": {"kernel": RBF(float("nan"))},
    "marks": {"density_marks": np.zeros(9)},
    "power": {"prob_power": float("nan")},
}


@pytest.mark.parametrize("case", BROKEN)
def test_models_that_contradict_themselves_are_not_written(case: str) -> None:
    with pytest.raises(ModelFormatError):
        saved_bytes(kernel_model(**BROKEN[case]))


@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("value", [-1, 3, 2**31 - 1])
def test_sparse_rows_cannot_lead_out_of_their_arrays(part: str, value: int) -> None:
    data = bytearray(saved_bytes(kernel_model(support=SPARSE)))
    for place in header_of(bytes(data))["arrays"]:
        if place["name"] == f"model.support.{part}":
            length = native.START.unpack_from(data)[2]
            first = native.START.size + length + place["offset"] + 4
            data[first : first + 4] = struct.pack("<i", value)

    with pytest.raises(ModelFormatError, match="support"):
        native.load(sealed(bytes(data)))


def estimators_file(tmp_path: Path) -> bytes:
    X = np.random.default_rng(0).normal(size=(20, 2))
    machine = maxmargin.LinearSVC().fit(X, np.arange(20) % 2)
    machine.save(tmp_path / "a.mm")
    return (tmp_path / "a.mm").read_bytes()


NOTES: dict[str, dict[str, Any]] = {
    "a class of others": {"estimator": "Pipeline"},
    "another machine": {"estimator": "LinearSVR"},
    "a kernel machine": {"estimator": "SVC"},
    "a module": {"estimator": "os.system"},
    "no name": {"estimator": None},
    "a number for a name": {"estimator": 3},
    "unknown parameters": {"parameters": {"self": 1}},
    "parameters of lists": {"parameters": {"C": [1]}},
    "strange keys": {"parameters": {"class_weight": {"dict": [[[], 1]]}}},
    "nested keys": {"parameters": {"class_weight": {"dict": [[{"dict": []}, 1]]}}},
    "no pairs": {"parameters": {"class_weight": {"dict": [1, 2]}}},
    "unknown numbers": {"numbers": {"predict": 1}},
    "text as number": {"numbers": {"objective_": "x"}},
    "a list of numbers": {"numbers": []},
    "no power": {"numbers": {"prob_power_": 0.0}},
    "an endless power": {"numbers": {"prob_power_": {"float": "inf"}}},
    "unknown status": {"status": "GOOD"},
    "a shape of text": {"shape_fit": ["a"]},
}


@pytest.mark.parametrize("case", NOTES)
def test_hostile_notes_are_refused(case: str, tmp_path: Path) -> None:
    data = estimators_file(tmp_path)
    notes = header_of(data)["notes"] | NOTES[case]

    with pytest.raises(ModelFormatError):
        maxmargin.load(with_header(data, notes=notes))


def test_errors_are_of_our_kinds_and_can_be_pickled(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "a").write_bytes(native.MAGIC)
    with pytest.raises(ModelFormatError) as caught:
        native.load(tmp_path / "a")

    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, InvalidInput)
    assert again.path == str(tmp_path / "a")
    assert str(again) == str(caught.value)


# ---------------------------------------------------------------- files of old versions
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["svc_1.mm", "linear_svc_1.mm"])
def test_files_of_version_1_are_read_for_ever(name: str) -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 2.0], [2.0, 3.0], [5.0, 0.0]])

    machine = maxmargin.load(GOLDEN / name)

    assert machine.predict(X).tolist() == ["a", "a", "b", "b", "c"]
    assert machine.status_.name == "CONVERGED"
    if name.startswith("svc"):
        assert machine.class_weight == {"a": 1, "b": 2, "c": 1.5}
    else:
        assert machine.intercept_scaling == 2.0
