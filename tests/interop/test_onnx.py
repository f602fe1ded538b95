"""Does an ONNX runtime say what the machine says?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin.errors import ModelFormatError, NotAvailable
from maxmargin.interop.model_files import write_model
from maxmargin.models.linear_model import LinearModel

REASON = "onnx and onnxruntime are optional"
onnx = pytest.importorskip("onnx", reason=REASON)
onnxruntime = pytest.importorskip("onnxruntime", reason=REASON)

Floats = npt.NDArray[np.float64]

SAME = 1e-11  # of the largest decision value
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear kernel": ("SVC", {"kernel": "linear"}),
    "poly": ("SVC", {"kernel": "poly", "degree": 4, "coef0": 1.0}),
    "rbf": ("SVC", {"kernel": "rbf"}),
    "sigmoid": ("SVC", {"kernel": "sigmoid", "gamma": 0.1, "coef0": 0.3}),
    "laplacian": ("SVC", {"kernel": "laplacian", "gamma": 0.2}),
    "NuSVC": ("NuSVC", {"nu": 0.4}),
    "LinearSVC": ("LinearSVC", {}),
    "joint": ("LinearSVC", {"multi_class": "crammer_singer"}),
    "logistic": ("LogisticRegression", {"fit_intercept": False}),
}


def samples(n_classes: int = 2) -> tuple[Floats, Any, Floats, Floats]:
    rng = np.random.default_rng(2)
    code = np.arange(60) % n_classes
    X = 3.0 + rng.normal(size=(60, 5)) + np.eye(5)[code]
    return X, code, X[:, 0] - X[:, 1], 3.0 + rng.normal(size=(40, 5))


def run(path: Path, X: Floats) -> dict[str, Any]:
    """Outputs by name, computed by the runtime."""
    session = onnxruntime.InferenceSession(
        path.read_bytes(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def assert_close(ours: Floats, theirs: Floats) -> None:
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= SAME * max(1.0, np.abs(ours).max())


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("case", CASES)
def test_classifiers(case: str, n_classes: int, labels: str, tmp_path: Path) -> None:
    name, settings = CASES[case]
    X, code, _, test = samples(n_classes)
    words = np.array([f"klass é{k}" for k in range(n_classes)])
    y = words[code] if labels == "text" else code * 3 - 1
    machine = getattr(maxmargin, name)(**settings).fit(X, y)
    machine.save(tmp_path / "machine.onnx")

    found = run(tmp_path / "machine.onnx", test)

    assert (found["label"] == machine.predict(test)).all()
    assert found["decisions"].dtype == np.float64
    if name in ("SVC", "NuSVC"):
        machine.decision_function_shape = "ovo"
    ours = machine.decision_function(test)
    ours = ours[:, None] if ours.ndim == 1 else ours
    if case == "joint" and n_classes == 2:  # a hyperplane each, half the difference
        ours = 0.5 * np.hstack((ours, -ours))
    assert_close(ours, found["decisions"])
    if case == "logistic":
        order = [1, 0] if n_classes == 2 else list(range(n_classes))
        assert_close(machine.predict_proba(test)[:, order], found["probabilities"])


@pytest.mark.parametrize("name", ["SVR", "NuSVR", "LinearSVR"])
def test_regressors(name: str, tmp_path: Path) -> None:
    X, _, numbers, test = samples()
    machine = getattr(maxmargin, name)().fit(X, numbers)
    machine.save(tmp_path / "machine.onnx")

    found = run(tmp_path / "machine.onnx", test)

    assert_close(machine.predict(test), found["value"])


@pytest.mark.parametrize("name", ["OneClassSVM", "LinearOneClassSVM"])
def test_one_class(name: str, tmp_path: Path) -> None:
    X, _, _, test = samples()
    machine = getattr(maxmargin, name)(nu=0.3).fit(X)
    machine.save(tmp_path / "machine.onnx")

    found = run(tmp_path / "machine.onnx", test)

    assert (found["label"] == machine.predict(test)).all()
    assert_close(machine.decision_function(test), found["decisions"][:, 0])


def test_sparse_and_float32_support_and_precomputed(tmp_path: Path) -> None:
    X, code, _, test = samples(3)
    sparse = maxmargin.SVC().fit(sp.csr_matrix(X), code)
    single = maxmargin.SVC().fit(X.astype(np.float32), code)
    given = maxmargin.SVC(kernel="precomputed").fit(X @ X.T, code)
    for machine, rows in ((sparse, test), (single, test), (given, test @ X.T)):
        machine.save(tmp_path / "machine.onnx")

        found = run(tmp_path / "machine.onnx", rows)

        assert (found["label"] == machine.predict(rows)).all()


def test_models_that_know_one_class(tmp_path: Path) -> None:
    model = LinearModel("L2R_LR", np.array([7]), np.ones((1, 2)))
    write_model(tmp_path / "a.onnx", model)

    assert run(tmp_path / "a.onnx", np.zeros((3, 2)))["label"].tolist() == [7] * 3


def test_only_core_operators_of_float64(tmp_path: Path) -> None:
    X, code, _, _ = samples(3)
    maxmargin.SVC().fit(X, code).save(tmp_path / "machine.onnx")

    proto = onnx.load(str(tmp_path / "machine.onnx"))

    assert [entry.domain for entry in proto.opset_import] == [""]
    assert all(node.domain == "" for node in proto.graph.node)
    kinds = {tensor.data_type for tensor in proto.graph.initializer}
    assert kinds <= {onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64}
    assert proto.ir_version <= 10
    assert {p.key: p.value for p in proto.metadata_props} == {"classes": "0\n1\n2"}


def test_ties_by_confidence_are_refused(tmp_path: Path) -> None:
    X, code, _, _ = samples(3)
    machine = maxmargin.SVC(break_ties=True).fit(X, code)

    with pytest.raises(ModelFormatError, match="break_ties"):
        machine.save(tmp_path / "machine.onnx")


def test_files_are_not_read_back(tmp_path: Path) -> None:
    X, code, _, _ = samples()
    maxmargin.SVC().fit(X, code).save(tmp_path / "machine.onnx")

    with pytest.raises(ModelFormatError, match="ONNX files can be written"):
        maxmargin.load(tmp_path / "machine.onnx")


def test_without_the_package_there_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, code, _, _ = samples()
    machine = maxmargin.SVC().fit(X, code)
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(NotAvailable, match=r"pip install 'onnx>=1\.16'"):
        machine.save(tmp_path / "machine.onnx")

    assert list(tmp_path.iterdir()) == []
