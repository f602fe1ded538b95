"""Does a fitted linear machine look like scikit-learn's, and is it right?"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from linear_machines import (
    FREE,
    LAYOUTS,
    MACHINES,
    data_for,
    every_classifier,
    every_kind,
    every_machine,
)
from naive_linear import assert_optimal_linear
from naive_linear import machine as name_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from surface import draw, public_names, values

from maxmargin import (
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    l1_min_c,
)
from maxmargin.estimators import linear_base
from maxmargin.solvers import Status

OURS = {"objective_", "dual_gap_", "kkt_violation_", "status_", "class_weight_"}
THEIRS = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(penalty="l1", dual=False),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(fit_intercept=False),
    LinearSVC(intercept_scaling=10.0),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2, fit_intercept=False),
]


def twin(machine: Any) -> Any:
    """scikit-learn's machine with the same parameters, solved tightly."""
    theirs = getattr(sklearn.svm, name_of(machine))()
    known = theirs.get_params()
    shared = {k: v for k, v in machine.get_params().items() if k in known}
    return theirs.set_params(**shared).set_params(max_iter=1_000_000, tol=1e-9)


# ----------------------------------------------------------- the same as scikit-learn's
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", THEIRS, ids=str)
def test_attributes(machine: Any, n_classes: int) -> None:
    X, y = data_for(machine, n_classes)

    ours, theirs = clone(machine).set_params(tol=1e-8).fit(X, y), twin(machine)
    theirs.fit(X, y)

    assert public_names(ours) - OURS == public_names(theirs)
    for name in ("coef_", "intercept_"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert type(found) is type(expected)
        assert np.shape(found) == np.shape(expected)
        atol = 1e-4 * max(1.0, float(np.abs(theirs.coef_).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=name)
    assert type(ours.n_iter_) is int
    assert ours.coef_.flags.writeable
    np.testing.assert_allclose(values(ours, X), values(theirs, X), atol=1e-3)


@pytest.mark.parametrize("class_weight", [{0: 2.0}, "balanced"])
def test_class_weights_of_two_classes(class_weight: Any) -> None:
    X, y = draw(n_classes=2)
    X, y = X[30:], y[30:]
    machine = LinearSVC(class_weight=class_weight, tol=1e-8)

    ours, theirs = clone(machine).fit(X, y), twin(machine).fit(X, y)

    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_parameters_are_theirs_and_some_more(kind: type) -> None:
    theirs = inspect.signature(getattr(sklearn.svm, kind.__name__)).parameters
    ours = inspect.signature(kind).parameters

    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default, name
        assert ours[name].kind == parameter.kind, name


@every_kind
def test_everything_public_is_documented(kind: type) -> None:
    fitted = kind().fit(*data_for(kind()))
    text = inspect.getdoc(kind)

    for name in kind().get_params():
        assert f"{name} : " in text, f"{kind.__name__} does not say what {name} is"
    for name in public_names(fitted):
        assert f"{name} : " in text, f"{kind.__name__} does not say what {name} is"
    for name, member in inspect.getmembers(kind, callable):
        if not name.startswith("_"):
            assert inspect.getdoc(member), f"{kind.__name__}.{name} says nothing"


# -------------------------------------------------------------------------- it is right
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "machine", [*MACHINES.values(), *FREE.values()], ids=[*MACHINES, *FREE]
)
def test_certified(machine: Any, n_classes: int) -> None:
    X, y = data_for(machine, n_classes)

    for layout in (np.asarray, sp.csr_matrix):
        assert_optimal_linear(clone(machine).fit(layout(X), y), X, y)


@pytest.mark.boundscheck
@pytest.mark.nojit
@every_machine
def test_few_rows_are_certified(machine: Any) -> None:
    X, y = data_for(machine)
    X, y = X[:20], y[:20]

    for layout in (np.asarray, sp.csr_matrix):
        fitted = clone(machine).fit(layout(X), y)

        assert_optimal_linear(fitted, X, y)
        found = X @ fitted.coef_.T + fitted.intercept_
        said = values(fitted, layout(X))
        np.testing.assert_allclose(said, np.squeeze(found), atol=1e-10)


@every_machine
def test_without_intercept(machine: Any) -> None:
    if name_of(machine) == "LinearOneClassSVM":
        pytest.skip("its offset is no option")
    X, y = data_for(machine)
    plain = clone(machine).set_params(fit_intercept=False)

    fitted = clone(plain).fit(X, y)
    other = plain.set_params(penalize_intercept=False, intercept_scaling=0).fit(X, y)

    assert fitted.intercept_ == other.intercept_ == 0.0
    assert fitted.coef_.tobytes() == other.coef_.tobytes()
    assert_optimal_linear(fitted, X, y)


def test_evidence_is_one_number_or_one_per_class() -> None:
    X, y = draw(n_classes=4)

    many, two = LinearSVC().fit(X, y), LinearSVC().fit(X, y > 1)
    joint = LinearSVC(multi_class="crammer_singer").fit(X, y)

    for name in ("objective_", "dual_gap_", "kkt_violation_"):
        assert getattr(many, name).shape == (4,)
        assert type(getattr(two, name)) is type(getattr(joint, name)) is float
    assert many.status_ is two.status_ is joint.status_ is Status.CONVERGED
    assert many.coef_.shape == joint.coef_.shape == (4, 6)
    assert two.coef_.shape == (1, 6)


@every_classifier
def test_labels_of_any_kind(machine: Any) -> None:
    X, codes = draw()
    names = np.array(["cat", "dog", "eel"])

    fitted, plain = (clone(machine).fit(X, y) for y in (names[codes], codes))

    assert fitted.classes_.tolist() == names.tolist()
    assert np.array_equal(fitted.predict(X), names[plain.predict(X)])
    assert fitted.coef_.tobytes() == plain.coef_.tobytes()
    assert np.array_equal(plain.predict(X), values(plain, X).argmax(axis=1))


# ------------------------------------------------------------------------ layouts of X
@pytest.mark.parametrize("layout", LAYOUTS)
@every_machine
def test_layouts_agree(machine: Any, layout: str) -> None:
    X, y = data_for(machine)
    X = np.where(np.abs(X) > 0.7, X, 0.0).astype(np.float32).astype(np.float64)
    X_in = LAYOUTS[layout](X)
    machine = clone(machine).set_params(tol=1e-8)

    fitted, plain = clone(machine).fit(X_in, y), clone(machine).fit(X, y)

    expected = values(plain, X)
    size = np.abs(expected).max()
    for rows in (X, X_in, sp.csr_matrix(X)):
        found = values(fitted, rows)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("layout", ["dense", "float32", "csr_matrix", "int64"])
def test_samples_are_not_copied(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw()
    X = LAYOUTS[layout](X)
    seen = []

    class Spy(linear_base.Design):
        def __init__(self, X: Any, *more: Any) -> None:
            seen.append(X)
            super().__init__(X, *more)

    monkeypatch.setattr(linear_base, "Design", Spy)
    LinearSVC().fit(X, y)

    kept = (lambda X: X.data) if sp.issparse(X) else np.asarray
    assert np.shares_memory(kept(seen[0]), kept(X))
    assert kept(seen[0]).dtype == kept(X).dtype


@pytest.mark.parametrize("layout", ["dense", "float32", "csr_matrix", "int64"])
@every_machine
def test_row_alone_and_in_a_batch_are_worth_the_same(machine: Any, layout: str) -> None:
    X, y = data_for(machine)
    X = LAYOUTS[layout](X)
    fitted = clone(machine).fit(X, y)

    alone = np.concatenate([values(fitted, X[k : k + 1]) for k in range(20)])

    assert alone.tobytes() == values(fitted, X)[:20].tobytes()
    fitted.set_params(n_jobs=2)
    assert alone.tobytes() == values(fitted, X)[:20].tobytes()


# ------------------------------------------------------------------------- the protocol
@every_machine
def test_pickle_and_clone(machine: Any) -> None:
    X, y = data_for(machine)
    fitted = clone(machine).fit(X, y)

    again, fresh = pickle.loads(pickle.dumps(fitted)), clone(fitted)

    assert values(again, X).tobytes() == values(fitted, X).tobytes()
    assert again.get_params() == fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@every_classifier
def test_predictions_read_coef_and_intercept(machine: Any) -> None:
    X, y = draw()
    fitted = clone(machine).fit(X, y)

    fitted.coef_ = -2.0 * fitted.coef_
    fitted.intercept_[:] = [1.0, 2.0, 3.0]

    np.testing.assert_allclose(
        fitted.decision_function(X), X @ fitted.coef_.T + [1.0, 2.0, 3.0]
    )
    fitted.coef_ = fitted.coef_[:, :4]
    with pytest.raises(ValueError, match="was altered: it holds 4 weights for 6"):
        fitted.predict(X)


@every_classifier
def test_sparsify_and_densify(machine: Any) -> None:
    X, y = draw()
    fitted = clone(machine).fit(X, y)
    expected = values(fitted, X)

    sparse = values(fitted.sparsify(), X)
    is_sparse = sp.issparse(fitted.coef_)

    assert is_sparse and not sp.issparse(fitted.densify().coef_)
    assert sparse.tobytes() == values(fitted, X).tobytes() == expected.tobytes()


# ----------------------------------------------------------------------- one of a kind
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(n_classes: int, penalty: str) -> None:
    X, y = draw(n_classes=n_classes)
    theirs = sklearn.linear_model.LogisticRegression(
        l1_ratio=1.0 * (penalty == "l1"), solver="liblinear", tol=1e-9, max_iter=10_000
    )

    ours = LogisticRegression(penalty, tol=1e-9).fit(X, y)
    found = ours.predict_proba(X)

    theirs = OneVsRestClassifier(theirs).fit(X, y)
    np.testing.assert_allclose(found, theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), found)
    assert np.array_equal(found.argmax(axis=1), ours.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_far_away_probabilities_are_still_probabilities(n_classes: int) -> None:
    X, y = draw(n_classes=n_classes)
    machine = LogisticRegression().fit(X, y)

    far = 1e5 * X

    assert np.isfinite(machine.predict_log_proba(far)).all()
    np.testing.assert_allclose(machine.predict_proba(far).sum(axis=1), 1.0)


@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_one_class_leaves_a_share_of_nu_outside(nu: float) -> None:
    X, _ = data_for(LinearOneClassSVM())

    machine = LinearOneClassSVM(nu=nu, tol=1e-8).fit(X)
    decisions = machine.decision_function(X)

    near = 1e-6 * np.abs(machine.offset_[0])
    assert np.mean(decisions < -near) <= nu <= np.mean(decisions <= near)
    np.testing.assert_allclose(machine.score_samples(X), X @ machine.coef_[0])
    np.testing.assert_allclose(decisions, machine.score_samples(X) - machine.offset_)
    assert np.array_equal(machine.predict(X), np.where(decisions >= 0, 1, -1))
    assert machine.coef_.shape == (1, 6)
    assert machine.offset_.shape == machine.intercept_.shape == (1,)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
def test_smallest_useful_C(loss: str, n_classes: int, layout: Any) -> None:
    X, y = draw(n_classes=n_classes)
    kinds = {"squared_hinge": LinearSVC("l1"), "log": LogisticRegression("l1")}
    machine = kinds[loss].set_params(intercept_scaling=3.0)
    given = {"loss": loss, "intercept_scaling": 3.0}

    C = l1_min_c(layout(X), y, **given)

    np.testing.assert_allclose(C, sklearn.svm.l1_min_c(X, y, **given))
    assert not machine.set_params(C=0.999 * C).fit(X, y).coef_.any()
    assert not machine.intercept_.any()
    machine.set_params(C=1.05 * C).fit(X, y)
    assert machine.coef_.any() or machine.intercept_.any()


def test_l1_min_c_refuses() -> None:
    with pytest.raises(ValueError, match="Ill-posed l1_min_c calculation"):
        l1_min_c(np.zeros((2, 2)), [0, 1])
    with pytest.raises(ValueError, match="'loss' parameter of l1_min_c"):
        l1_min_c(np.eye(2), [0, 1], loss="hinge")
    with pytest.raises(ValueError, match="'intercept_scaling' parameter of l1_min_c"):
        l1_min_c(np.eye(2), [0, 1], intercept_scaling=0)
