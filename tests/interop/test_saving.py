"""Does an estimator come back from its file as it was?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin.errors import ModelFormatError
from maxmargin.interop.libsvm_file import read_libsvm
from maxmargin.models.kernel_model import KernelModel

Floats = npt.NDArray[np.float64]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "SVC": ("SVC", {"C": 2.0, "class_weight": {0: 1.0, 1: 2}}),
    "SVC, linear": ("SVC", {"kernel": "linear", "C": np.float64(3.0)}),
    "SVC, poly": ("SVC", {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    "SVC, sigmoid": ("SVC", {"kernel": "sigmoid", "gamma": 0.1}),
    "SVC, laplacian": ("SVC", {"kernel": "laplacian", "C": np.inf}),
    "NuSVC": ("NuSVC", {"nu": 0.4, "gamma": "auto"}),
    "SVR": ("SVR", {"epsilon": 0.2}),
    "NuSVR": ("NuSVR", {"nu": 0.6}),
    "OneClassSVM": ("OneClassSVM", {"nu": 0.3}),
    "LinearSVC": ("LinearSVC", {"class_weight": "balanced"}),
    "LinearSVC, l1": ("LinearSVC", {"penalty": "l1", "intercept_scaling": 3.0}),
    "LinearSVC, joint": ("LinearSVC", {"multi_class": "crammer_singer"}),
    "LinearSVC, through zero": ("LinearSVC", {"fit_intercept": False}),
    "LinearSVR": ("LinearSVR", {"epsilon": 0.1, "random_state": 3}),
    "LinearOneClassSVM": ("LinearOneClassSVM", {"nu": 0.3}),
    "LogisticRegression": ("LogisticRegression", {"C": 0.5}),
}
CLASSIFIERS = ("SVC", "NuSVC", "LinearSVC", "LogisticRegression")


def samples(n_classes: int = 2) -> tuple[Floats, Any, Floats, Floats]:
    rng = np.random.default_rng(0)
    code = np.arange(40) % n_classes
    X = rng.normal(size=(40, 4)) + np.eye(4)[code]
    return X, code, X[:, 0] - X[:, 1], rng.normal(size=(12, 4))


def fitted(case: str, *, n_classes: int = 2, layout: str = "dense") -> Any:
    name, settings = CASES[case]
    X, code, numbers, _ = samples(n_classes)
    rows: Any = X
    if layout == "float32":
        rows = X.astype(np.float32)
    if layout == "sparse":
        rows = sp.csr_matrix(X * (np.abs(X) > 0.5))
    if layout == "sparse array":
        rows = sp.csr_array(X * (np.abs(X) > 0.5))
    y = code if name in CLASSIFIERS else numbers
    return getattr(maxmargin, name)(**settings).fit(rows, y)


def same(a: Any, b: Any) -> bool:
    """Equal values of equal types, bytes for arrays."""
    if type(a) is not type(b):
        return False
    if sp.issparse(a):
        parts = [(a.data, b.data), (a.indices, b.indices), (a.indptr, b.indptr)]
        return a.shape == b.shape and all(same(*pair) for pair in parts)
    if isinstance(a, np.ndarray):
        is_alike = a.dtype == b.dtype and a.shape == b.shape
        return bool(is_alike and (a == b).all())
    return bool(a == b)


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse", "sparse array"])
@pytest.mark.parametrize("case", CASES)
def test_native_files_bring_back_every_attribute(
    case: str, layout: str, tmp_path: Path
) -> None:
    machine = fitted(case, layout=layout)
    machine.save(tmp_path / "machine.mm")

    back = maxmargin.load(tmp_path / "machine.mm")

    assert type(back) is type(machine)
    assert back.get_params() == machine.get_params()
    ours, theirs = vars(machine), vars(back)
    missing = set(ours) - set(theirs) - {"_warm"}
    assert not missing
    learnt = set(theirs) - set(machine.get_params())
    assert [k for k in learnt if not same(ours[k], theirs[k])] == []


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("case", CASES)
def test_native_files_predict_the_same_bytes(
    case: str, n_classes: int, tmp_path: Path
) -> None:
    machine = fitted(case, n_classes=n_classes)
    test = samples()[3]
    machine.save(tmp_path / "machine.mm")

    back = maxmargin.load(tmp_path / "machine.mm")

    for method in ("predict", "decision_function", "score_samples", "predict_proba"):
        if hasattr(machine, method):
            ours = getattr(machine, method)(test)
            assert getattr(back, method)(test).tobytes() == ours.tobytes()
    X, code, numbers, _ = samples(n_classes)
    again = clone(back).fit(X, code if CASES[case][0] in CLASSIFIERS else numbers)
    assert again.predict(test).tobytes() == machine.predict(test).tobytes()


LABELS: dict[str, Any] = {
    "text": np.array(["no", "yes", "perhaps, näh"]),
    "objects": np.array(["no", "yes", "maybe"], dtype=object),
    "booleans": np.array([False, True, True]),
    "floats": np.array([0.0, 1.0, 2.0]),
    "bytes": np.array([3, 200, 7], dtype=np.uint8),
    "negative": np.array([-5, 2**40, 0]),
}


@pytest.mark.parametrize("name", ["SVC", "LinearSVC"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_come_back(kind: str, name: str, tmp_path: Path) -> None:
    X, code, _, test = samples(3)
    y = LABELS[kind][code]
    machine = getattr(maxmargin, name)().fit(X, y)
    machine.save(tmp_path / "machine.mm")

    back = maxmargin.load(tmp_path / "machine.mm")

    assert back.classes_.dtype == machine.classes_.dtype
    assert (back.predict(test) == machine.predict(test)).all()


@pytest.mark.parametrize("kind", ["text", "objects", "booleans", "negative"])
@pytest.mark.parametrize("name", ["SVC", "LinearSVC"])
def test_text_files_refuse_labels_that_they_cannot_hold(
    kind: str, name: str, tmp_path: Path
) -> None:
    X, code, _, _ = samples(3)
    machine = getattr(maxmargin, name)().fit(X, LABELS[kind][code])

    with pytest.raises(ModelFormatError, match="whole numbers"):
        machine.save(tmp_path / "machine.model")

    assert list(tmp_path.iterdir()) == []


def test_class_weights_by_text_come_back(tmp_path: Path) -> None:
    X, code, _, _ = samples()
    weights = {"a": 1, "b": np.float64(2.5)}
    machine = maxmargin.SVC(class_weight=weights).fit(X, np.array(["a", "b"])[code])
    machine.save(tmp_path / "machine.mm")

    back = maxmargin.load(tmp_path / "machine.mm")

    assert back.get_params()["class_weight"] == weights
    assert back.class_weight_.tolist() == [1.0, 2.5]


def test_feature_names_come_back(tmp_path: Path) -> None:
    X, code, _, test = samples()
    names = ["height", "width", "depth", "größe"]
    frame = pd.DataFrame(X, columns=names)
    machine = maxmargin.LinearSVC().fit(frame, code)
    machine.save(tmp_path / "machine.mm")

    back = maxmargin.load(tmp_path / "machine.mm")

    assert back.feature_names_in_.tolist() == names
    assert back.feature_names_in_.dtype == object
    assert (back.predict(pd.DataFrame(test, columns=names)) >= 0).all()
    with pytest.raises(ValueError, match="feature names"):
        back.predict(pd.DataFrame(test, columns=["a", "b", "c", "d"]))


def test_sparse_weights_stay_sparse(tmp_path: Path) -> None:
    machine = fitted("LinearSVC").sparsify()
    machine.save(tmp_path / "machine.mm")

    back = maxmargin.load(tmp_path / "machine.mm")

    assert sp.issparse(back.coef_)
    assert (back.predict(samples()[3]) == machine.predict(samples()[3])).all()


def test_precomputed_kernels_are_kept(tmp_path: Path) -> None:
    X, code, _, test = samples(3)
    machine = maxmargin.SVC(kernel="precomputed").fit(X @ X.T, code)
    for name in ("machine.mm", "machine.model"):
        machine.save(tmp_path / name)

        back = maxmargin.load(tmp_path / name, n_features=40)

        K = test @ X.T
        assert back.predict(K[:, : back.n_features_in_]).tolist() == (
            machine.predict(K).tolist()
        )


def test_functions_are_refused(tmp_path: Path) -> None:
    X, code, _, _ = samples()
    by_function = maxmargin.SVC(kernel=lambda a, b: a @ b.T).fit(X, code)
    watched = maxmargin.SVC(callback=lambda progress: None).fit(X, code)
    seeded = maxmargin.LinearSVC(random_state=np.random.RandomState(0)).fit(X, code)

    with pytest.raises(ModelFormatError, match="kernel is a Python function"):
        by_function.save(tmp_path / "a.mm")
    with pytest.raises(ModelFormatError, match=r"set_params\(callback=None\)"):
        watched.save(tmp_path / "a.mm")
    with pytest.raises(ModelFormatError, match="random_state"):
        seeded.save(tmp_path / "a.mm")
    watched.save(tmp_path / "a.model")

    assert [path.name for path in tmp_path.iterdir()] == ["a.model"]


def test_what_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        maxmargin.SVC().save(tmp_path / "a.mm")


def test_formats_go_by_name_or_word(tmp_path: Path) -> None:
    kernel, linear = fitted("SVC"), fitted("LinearSVC")
    kernel.save(tmp_path / "a.model")
    linear.save(tmp_path / "b.MODEL")
    kernel.save(tmp_path / "c")
    kernel.save(tmp_path / "d.txt", format="libsvm")

    starts = [path.read_bytes()[:5] for path in sorted(tmp_path.iterdir())]

    assert starts == [b"svm_t", b"solve", b"\x89MAXM", b"svm_t"]
    with pytest.raises(ModelFormatError, match="one of 'native', 'libsvm'"):
        kernel.save(tmp_path / "e", format="pickle")
    with pytest.raises(ModelFormatError, match="format='liblinear'"):
        linear.save(tmp_path / "e", format="libsvm")
    with pytest.raises(ModelFormatError, match="digits is not for native"):
        kernel.save(tmp_path / "e", digits=17)
    with pytest.raises(ModelFormatError, match="no laplacian kernel"):
        fitted("SVC, laplacian").save(tmp_path / "e", format="libsvm")


def test_derived_estimators_keep_to_text(tmp_path: Path) -> None:
    class Mine(maxmargin.SVC):
        pass

    X, code, _, _ = samples()
    machine = Mine().fit(X, code)
    machine.save(tmp_path / "a.model")

    assert type(maxmargin.load(tmp_path / "a.model")) is maxmargin.SVC
    with pytest.raises(ModelFormatError, match="derived from SVC"):
        machine.save(tmp_path / "a.mm")


def test_loading_refuses_pickles_and_others(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "a").write_bytes(pickle.dumps(fitted("SVC")))
    (tmp_path / "b").write_bytes(b"hello\n")
    (tmp_path / "c").write_bytes(b"")

    with pytest.raises(ModelFormatError, match="pickle"):
        maxmargin.load(tmp_path / "a")
    with pytest.raises(ModelFormatError, match="no model file"):
        maxmargin.load(tmp_path / "b")
    with pytest.raises(ModelFormatError, match="empty"):
        maxmargin.load(tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        maxmargin.load(tmp_path / "d")


def test_classes_of_a_libsvm_file_are_sorted(tmp_path: Path) -> None:
    """A file may name them in any order; pairs that turn round change their sign."""
    X, code, _, test = samples(4)
    order = np.array([2, 0, 3, 1])
    machine = maxmargin.SVC(decision_function_shape="ovo").fit(X, order[code])
    from maxmargin.estimators.as_model import as_model, reordered

    model = as_model(machine)
    assert isinstance(model, KernelModel)
    turned = reordered(model, np.array([3, 1, 0, 2]))
    from maxmargin.interop.libsvm_file import write_libsvm

    write_libsvm(tmp_path / "turned.model", turned, digits=17)

    back = maxmargin.load(tmp_path / "turned.model")

    assert back.classes_.tolist() == [0, 1, 2, 3]
    back.decision_function_shape = "ovo"
    ours, theirs = machine.decision_function(test), back.decision_function(test)
    assert np.abs(ours - theirs).max() < 1e-12
    assert (back.predict(test) == machine.predict(test)).all()


def test_probabilities_of_a_libsvm_file_stay_with_the_estimator(tmp_path: Path) -> None:
    machine = fitted("SVC", n_classes=2)
    machine.save(tmp_path / "a.model", digits=17)
    text = (tmp_path / "a.model").read_text()
    text = text.replace("nr_sv", "probA -1.5\nprobB 0.25\nnr_sv")
    (tmp_path / "b.model").write_text(text.replace("label 0 1", "label 1 0"))
    test = samples()[3]

    back = maxmargin.load(tmp_path / "b.model")
    back.save(tmp_path / "c.model", digits=17)

    before, after = (read_libsvm(tmp_path / f"{n}.model") for n in "bc")
    assert back.probB_.tolist() == [-0.25]  # the pair has turned round
    expected = before.probabilities(test)[:, ::-1]
    assert np.abs(after.probabilities(test) - expected).max() < 1e-12
    assert np.abs(back.predict_proba(test) - expected).max() < 1e-12


def test_the_number_of_features_can_be_told(tmp_path: Path) -> None:
    X, code, _, test = samples()
    X[:, 3] = 0.0
    machine = maxmargin.SVC(kernel="linear").fit(X, code)
    machine.save(tmp_path / "a.model", digits=17)

    short = maxmargin.load(tmp_path / "a.model")
    whole = maxmargin.load(tmp_path / "a.model", n_features=4)

    assert short.n_features_in_ == 3
    assert (whole.predict(test) == machine.predict(test)).all()
    with pytest.raises(ModelFormatError, match="n_features=2"):
        maxmargin.load(tmp_path / "a.model", n_features=2)


def test_a_number_of_features_that_the_file_contradicts(tmp_path: Path) -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    for machine in (maxmargin.SVC(), maxmargin.LinearSVC()):
        machine.fit(X, y).save(tmp_path / "m")

        assert maxmargin.load(tmp_path / "m", n_features=2).n_features_in_ == 2
        with pytest.raises(ModelFormatError, match="has 2 features, but n_features=9"):
            maxmargin.load(tmp_path / "m", n_features=9)


@pytest.mark.parametrize("digits", [0, -1, 18, 2.5])
def test_digits_that_no_number_has(digits: Any, tmp_path: Path) -> None:
    machine = maxmargin.SVC().fit([[0.0], [1.0]], [0, 1])

    with pytest.raises(ModelFormatError, match="digits must be a whole number from 1"):
        machine.save(tmp_path / "m.model", digits=digits)


def test_what_is_no_file_cannot_be_loaded() -> None:
    with pytest.raises(TypeError, match="given as a path, as bytes or as a file"):
        maxmargin.load(5)  # type: ignore[arg-type]
