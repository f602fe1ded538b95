"""Does a fitted machine look like scikit-learn's, name for name and sign for sign?"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import naive
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import sklearn.svm
import surface
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel
from surface import values

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.solvers import Status

Floats = npt.NDArray[np.float64]

KINDS = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
CLASSIFIERS = KINDS[:2]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_classifier = pytest.mark.parametrize("kind", CLASSIFIERS)
SETTING = {"nu": 0.3, "C": 2.0, "gamma": 0.4, "tol": 1e-6}
OURS = {"objective_", "dual_gap_", "kkt_violation_", "status_"}
TIGHT = 1e-5  # of the largest value: what LIBSVM leaves at its tol


def make(kind: type, **more: Any) -> Any:
    """A machine with the settings it knows."""
    known = kind().get_params()
    chosen = {k: v for k, v in SETTING.items() if k in known} | more
    return kind(**chosen)


def twin(machine: Any) -> Any:
    """scikit-learn's machine with the same parameters."""
    theirs = getattr(sklearn.svm, type(machine).__name__)()
    shared = {k: v for k, v in machine.get_params().items() if k in theirs.get_params()}
    shared.pop("cache_size")
    shared.pop("probability", None)
    return theirs.set_params(**shared)


def draw(n_classes: int = 2, n: int = 60) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Classes that overlap."""
    X, y = make_classification(
        n,
        4,
        n_informative=3,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=0,
    )
    return X, y


def draw_for(kind: type, n_classes: int) -> tuple[Floats, npt.NDArray[Any]]:
    """Classes for a classifier, a noisy function for the others."""
    X, y = draw(n_classes)
    noise = np.random.default_rng(0).normal(size=len(y))
    return X, y if kind in CLASSIFIERS else X[:, 0] + 0.5 * noise


def assert_alike(ours: Any, theirs: Any, name: str) -> None:
    """One attribute: kind, type, shape, and value where there is one."""
    found, expected = getattr(ours, name), getattr(theirs, name)
    assert sp.issparse(found) == sp.issparse(expected), name
    if sp.issparse(expected):
        found, expected = found.toarray(), expected.toarray()
    assert type(found) is type(expected) or np.isscalar(expected), name
    if not isinstance(expected, np.ndarray):
        assert np.isscalar(found) or isinstance(found, tuple), name
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
    if name == "n_iter_":
        return
    if expected.dtype.kind in "iub":
        assert np.array_equal(found, expected), name
        return
    atol = TIGHT * max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=name)


def public_names(fitted: Any) -> set[str]:
    computed = {"coef_", "n_support_"}
    return surface.public_names(fitted) | {n for n in computed if hasattr(fitted, n)}


def assert_same_machine(ours: Any, theirs: Any, X: Any) -> None:
    """Decisions and weights; coefficients of a singular kernel are anybody's guess."""
    found, expected = values(ours, X), values(theirs, X)
    assert found.shape == expected.shape
    atol = 1e-3 * max(0.1, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    for name in ("coef_", "intercept_"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert type(found) is type(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        found, expected = naive.dense(found), naive.dense(expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2.0 * atol)


def assert_same_attributes(ours: Any, theirs: Any) -> None:
    assert public_names(ours) >= public_names(theirs)
    assert public_names(ours) - public_names(theirs) == OURS
    for name in sorted(public_names(theirs)):
        assert_alike(ours, theirs, name)


# ----------------------------------------------------------- the same as scikit-learn's
LAYOUTS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_classes", [2, 3])
@every_kind
def test_attributes(kind: type, n_classes: int, layout: str) -> None:
    X, y = draw_for(kind, n_classes)
    X = LAYOUTS[layout](X)
    machine = make(kind)

    ours, theirs = machine.fit(X, y), twin(machine).fit(X, y)

    found, expected = values(ours, X), values(theirs, X)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
    if layout == "float32":  # theirs become float64
        assert ours.support_vectors_.dtype == np.float32
        theirs.support_vectors_ = theirs.support_vectors_.astype(np.float32)
    assert_same_attributes(ours, theirs)


@pytest.mark.parametrize("layout", ["dense", "csr_matrix"])
@pytest.mark.parametrize("n_classes", [2, 3])
@every_kind
def test_linear_weights(kind: type, n_classes: int, layout: str) -> None:
    X, y = draw_for(kind, n_classes)
    X = LAYOUTS[layout](X)
    machine = make(kind, kernel="linear")
    if "nu" in machine.get_params():  # large enough for a margin, and some are free
        machine.set_params(nu=0.73)

    ours, theirs = machine.fit(X, y), twin(machine).fit(X, y)

    assert_same_machine(ours, theirs, X)
    with pytest.raises(ValueError, match="read-only"):
        (ours.coef_.data if layout == "csr_matrix" else ours.coef_)[0] = 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
@every_kind
def test_attributes_for_a_given_kernel(kind: type, n_classes: int) -> None:
    X, y = draw_for(kind, n_classes)
    K = naive.rbf(X, X, 0.4)
    machine = make(kind, kernel="precomputed")

    ours, theirs = machine.fit(K, y), twin(machine).fit(K, y)

    assert_same_attributes(ours, theirs)
    np.testing.assert_allclose(values(ours, K), values(theirs, K), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@every_kind
def test_attributes_for_a_function(kind: type, n_classes: int) -> None:
    X, y = draw_for(kind, n_classes)
    machine = make(kind, kernel=lambda a, b: naive.rbf(a, b, 0.4))

    ours, theirs = machine.fit(X, y), twin(machine).fit(X, y)

    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "shape_fit_"):
        assert_alike(ours, theirs, name)
    np.testing.assert_allclose(values(ours, X), values(theirs, X), atol=1e-4)


@pytest.mark.boundscheck
@pytest.mark.nojit
@every_kind
def test_few_rows_are_certified(kind: type) -> None:
    X, y = draw(n=20)
    for X_in in (X, sp.csr_matrix(X)):
        fitted = make(kind).fit(X_in, y)

        naive.assert_optimal(fitted, X_in, y)
        found = naive.decisions(fitted, X_in, X_in)[:, 0]
        np.testing.assert_allclose(values(fitted, X_in), found, atol=1e-9)


@pytest.mark.boundscheck
@pytest.mark.nojit
@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian"])
def test_few_rows_are_certified_for_every_kernel(kernel: str) -> None:
    X, y = draw(3, n=20)

    fitted = SVC(kernel=kernel, gamma=0.3, decision_function_shape="ovo").fit(X, y)

    naive.assert_optimal(fitted, X, y)
    expected = naive.decisions(fitted, X, X)
    np.testing.assert_allclose(fitted.decision_function(X), expected, atol=1e-9)


# ------------------------------------------------------------------------ the protocol
@every_kind
def test_parameters_are_theirs_and_some_more(kind: type) -> None:
    theirs = getattr(sklearn.svm, kind.__name__)().get_params()
    ours = kind().get_params()

    assert set(ours) >= set(theirs)
    for name in set(theirs) - {"cache_size", "probability"}:
        assert ours[name] == theirs[name], name
    assert ours.get("probability", False) is False


@every_kind
def test_every_parameter_is_documented(kind: type) -> None:
    text = inspect.getdoc(kind)

    assert text and text != inspect.getdoc(sklearn.base.BaseEstimator)
    for name in kind().get_params():
        assert f"{name} : " in text, f"{kind.__name__} does not say what {name} is"


@every_kind
def test_public_methods_and_attributes_are_documented(kind: type) -> None:
    fitted = make(kind).fit(*draw())
    text = inspect.getdoc(kind)

    for name, member in inspect.getmembers(kind, callable):
        if not name.startswith("_"):
            assert inspect.getdoc(member), f"{kind.__name__}.{name} says nothing"
    for name in OURS | {"support_", "dual_coef_", "intercept_"}:
        assert hasattr(fitted, name)
        assert name in text, f"{kind.__name__} does not say what {name} is"


@every_kind
def test_pickle_and_clone(kind: type) -> None:
    X, y = draw()
    fitted = make(kind).fit(X, y)

    again, fresh = pickle.loads(pickle.dumps(fitted)), clone(fitted)

    assert values(again, X).tobytes() == values(fitted, X).tobytes()
    assert again.get_params() == fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@every_kind
def test_fit_returns_itself_and_keeps_its_parameters(kind: type) -> None:
    X, y = draw()
    machine = make(kind)
    before, X_before = machine.get_params(), X.copy()

    assert machine.fit(X, y) is machine
    assert machine.get_params() == before
    assert np.array_equal(X, X_before)


def test_evidence_is_one_number_or_one_per_pair() -> None:
    X, y = draw(4, n=120)

    many, two = SVC().fit(X, y), SVC().fit(X, y > 1)

    for name in ("objective_", "dual_gap_", "kkt_violation_"):
        assert getattr(many, name).shape == (6,)
        assert isinstance(getattr(two, name), float)
    assert many.status_ is two.status_ is Status.CONVERGED
    assert many.fit_status_ == 0


# ----------------------------------------------------------------- decisions and labels
@every_classifier
def test_decision_shapes(kind: type) -> None:
    X, y = draw(4, n=120)
    one = make(kind)

    ovr = one.fit(X, y)
    ovo = clone(one).set_params(decision_function_shape="ovo").fit(X, y)
    theirs = twin(ovr).fit(X, y)

    assert ovr.decision_function(X).shape == (120, 4)
    assert ovo.decision_function(X).shape == (120, 6)
    assert ovr.decision_function(X[:1]).shape == (1, 4)
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(ovr.decision_function(X), expected, atol=1e-4)
    assert np.array_equal(ovr.predict(X), theirs.predict(X))


@every_classifier
def test_break_ties(kind: type) -> None:
    X, y = draw(4, n=120)

    fitted = make(kind, break_ties=True).fit(X, y)

    assert np.array_equal(fitted.predict(X), fitted.decision_function(X).argmax(axis=1))
    with pytest.raises(ValueError, match="break_ties must be False"):
        fitted.set_params(decision_function_shape="ovo").predict(X)


@pytest.mark.parametrize(
    "names",
    [["cat", "dog", "eel"], [-7, 0, 12], [False, True], [0.0, 1.0]],
    ids=str,
)
@every_classifier
def test_labels_of_any_kind(kind: type, names: list[Any]) -> None:
    X, codes = draw(len(names))
    y = np.array(names)[codes]

    fitted, plain = make(kind).fit(X, y), make(kind).fit(X, codes)

    assert fitted.classes_.tolist() == names
    assert fitted.classes_.dtype == y.dtype
    assert np.array_equal(fitted.predict(X), np.array(names)[plain.predict(X)])
    assert values(fitted, X).tobytes() == values(plain, X).tobytes()


# ----------------------------------------------------------------------------- kernels
@every_kind
def test_laplacian_is_scikit_learns(kind: type) -> None:
    X, y = draw()
    K = laplacian_kernel(X, gamma=0.4)

    named = make(kind, kernel="laplacian", gamma=0.4).fit(X, y)
    given = make(kind, kernel="precomputed").fit(K, y)

    np.testing.assert_allclose(values(named, X), values(given, K), atol=1e-7)
    assert np.array_equal(named.support_, given.support_)


@every_kind
def test_function_of_strings(kind: type) -> None:
    words = ["ape", "apes", "bee", "beet", "cat", "cats", "dog", "dogs"]
    y = np.arange(8) % 2

    def shared_letters(a: list[str], b: list[str]) -> Floats:
        return np.array([[len(set(s) & set(t)) for t in b] for s in a], dtype=float)

    fitted = make(kind, kernel=shared_letters).fit(words, y)
    K = shared_letters(words, words)
    given = make(kind, kernel="precomputed").fit(K, y)

    np.testing.assert_allclose(values(fitted, words), values(given, K), atol=1e-9)
    assert values(fitted, ["cow"]).shape == (1,)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.25])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_gamma_in_words(gamma: Any, layout: Any) -> None:
    X, y = draw()
    X = layout(X)

    ours = SVC(gamma=gamma).fit(X, y)

    assert ours._gamma == pytest.approx(sklearn.svm.SVC(gamma=gamma).fit(X, y)._gamma)


@pytest.mark.boundscheck
@pytest.mark.nojit
@pytest.mark.parametrize(
    "machine", [SVC(fit_intercept=False), SVR(fit_intercept=False)]
)
def test_without_intercept(machine: Any) -> None:
    X, y = draw(n=20)

    fitted = clone(machine).fit(X, y)

    assert np.all(fitted.intercept_ == 0.0)
    assert abs(fitted.dual_coef_.sum()) > 1e-3  # nothing ties the coefficients
    found = naive.assert_optimal(fitted, X, y)
    assert found.violation <= fitted.tol
