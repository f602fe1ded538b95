"""Does every kernel do what it should wherever kernels go, or is it refused by name?

A kernel is one NamedTuple and one line of `KERNELS`. The second half adds one that
nothing else knows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import maxmargin
from maxmargin import SVC, SVCCV, SVR
from maxmargin.data.rows import SQUARED, Rows, as_rows
from maxmargin.errors import ModelFormatError, NotAvailable
from maxmargin.estimators.as_model import as_model
from maxmargin.kernels.functions import KERNELS
from maxmargin.kernels.source import make_source

Floats = npt.NDArray[np.float64]

CS, GAMMAS = [0.5, 2.0], [0.02, 0.1]  # a sigmoid that is nearly positive definite
SETTING = {"gamma": 0.2, "coef0": 0.5, "degree": 2}
SAME = 1e-9  # of the largest decision value
TOL = 1e-6
every_kernel = pytest.mark.parametrize("word", KERNELS)
every_layout = pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])


class Cauchy(NamedTuple):
    """1 / (1 + gamma |x - z|²), which no other file has heard of."""

    gamma: float

    def fill(self, a: Rows, b: Rows, out: Any, corner: tuple[int, int]) -> None:
        top, left = corner
        values = 1.0 / (1.0 + self.gamma * a.distances(b, SQUARED))
        out[top : top + len(a), left : left + len(b)] = values

    def of_self(self, rows: Rows) -> Floats:
        return np.ones(len(rows))

    def bound(self, rows: Rows) -> float:
        return 1.0


@pytest.fixture
def cauchy(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(KERNELS, "cauchy", Cauchy)  # type: ignore[arg-type]
    return "cauchy"


def draw() -> tuple[Floats, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    return X, (X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=90) > 0.0).astype(int)


def values(word: str, a: Floats, b: Floats) -> Floats:
    """K between all rows of two sets, by the kernel itself."""
    kind = KERNELS[word]
    kernel = kind(**{name: SETTING[name] for name in kind._fields})
    K = np.empty((len(a), len(b)))
    kernel.fill(as_rows(a), as_rows(b), K, (0, 0))
    return K


def check_fit(word: str) -> None:
    X, y = draw()
    machine = SVC(kernel=word, tol=TOL, **SETTING).fit(X, y)
    given = SVC(kernel="precomputed", tol=TOL).fit(values(word, X, X), y)

    found, expected = machine.decision_function(X), given.decision_function(K(word, X))
    assert np.abs(expected).max() > 0.1
    assert np.abs(found - expected).max() <= 100 * TOL * np.abs(expected).max()


def K(word: str, X: Floats) -> Floats:
    return values(word, X, draw()[0])


def check_search(word: str, layout: Any) -> None:
    X, y = draw()
    X = layout(X)
    words = {"kernel": word, "coef0": 0.5, "degree": 2, "tol": TOL}
    has_gamma = "gamma" in KERNELS[word]._fields
    axes = {"C": CS} | ({"gamma": GAMMAS} if has_gamma else {})

    ours = SVCCV(Cs=CS, gammas=GAMMAS, cv=3, **words).fit(X, y)
    theirs = GridSearchCV(SVC(**words), axes, cv=3).fit(X, y)

    mine, others = ours.cv_results_, theirs.cv_results_
    assert mine["params"] == others["params"]
    assert np.allclose(mine["mean_test_score"], others["mean_test_score"], atol=1e-12)
    assert (mine["kkt_violation"] <= TOL).all()
    assert ours.best_score_ > 0.45
    assert ours.best_estimator_.status_.name == "CONVERGED"


def check_cross_validate(word: str) -> None:
    X, y = draw()
    machine = SVR(kernel=word, tol=TOL, **SETTING)
    cut = [(np.arange(45), np.arange(45, 90)), (np.arange(45, 90), np.arange(45))]

    found = maxmargin.cross_validate(machine, X, y, cv=cut)["test_score"]

    expected = [machine.fit(X[a], y[a]).score(X[b], y[b]) for a, b in cut]
    assert np.allclose(found, expected, atol=1e-4)


def check_saving(word: str, path: Path) -> None:
    X, y = draw()
    machine = SVC(kernel=word, **SETTING).fit(X, y)
    machine.save(path)

    again = maxmargin.load(path)

    assert again.kernel == word and again._kernel == machine._kernel
    expected = machine.decision_function(X)
    assert again.decision_function(X).tobytes() == expected.tobytes()


# --------------------------------------------------------------- those that there are
@every_kernel
def test_fit_finds_what_its_kernel_matrix_does(word: str) -> None:
    check_fit(word)


@every_layout
@every_kernel
def test_search_finds_what_a_grid_search_does(word: str, layout: Any) -> None:
    check_search(word, layout)


@every_kernel
def test_folds_find_what_fits_do(word: str) -> None:
    check_cross_validate(word)


@every_kernel
def test_saved_kernel_comes_back(word: str, tmp_path: Path) -> None:
    check_saving(word, tmp_path / "model.mm")


@every_kernel
def test_text_form_comes_back_or_names_the_kernel(word: str, tmp_path: Path) -> None:
    X, y = draw()
    machine, path = SVC(kernel=word, **SETTING).fit(X, y), tmp_path / "m.model"
    if word == "laplacian":
        with pytest.raises(ModelFormatError, match=word):
            machine.save(path)
        return

    machine.save(path, digits=17)

    expected = machine.decision_function(X)
    found = maxmargin.load(path).decision_function(X)
    assert np.abs(found - expected).max() <= SAME * np.abs(expected).max()


@every_kernel
def test_onnx_runtime_finds_the_same(word: str, tmp_path: Path) -> None:
    reason = "onnx and onnxruntime are optional"
    pytest.importorskip("onnx", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    X, y = draw()
    machine = SVC(kernel=word, **SETTING).fit(X, y)
    machine.save(tmp_path / "m.onnx")

    session = runtime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(["decisions"], {"X": X})

    expected = machine.decision_function(X)
    assert np.abs(found[:, 0] - expected).max() <= SAME * np.abs(expected).max()


@every_layout
@every_kernel
def test_features_that_no_support_vector_has_count(word: str, layout: Any) -> None:
    X, y = draw()
    wide = np.hstack((X, np.random.default_rng(4).normal(size=(90, 2))))
    model = as_model(SVC(kernel=word, **SETTING).fit(X, y))
    support = np.hstack((model.support, np.zeros((model.n_vectors, 2))))

    found = model.decisions(layout(wide))[:, 0]

    expected = values(word, wide, support) @ model.dual_coef[0] + model.intercept[0]
    assert np.abs(found - expected).max() <= SAME * np.abs(expected).max()


# ------------------------------------------------------------------ one that is new
def test_new_kernel_works_in_fits(cauchy: str) -> None:
    check_fit(cauchy)


@every_layout
def test_new_kernel_works_in_searches(cauchy: str, layout: Any) -> None:
    check_search(cauchy, layout)


def test_new_kernel_works_in_folds(cauchy: str) -> None:
    check_cross_validate(cauchy)


def test_new_kernel_can_be_saved(cauchy: str, tmp_path: Path) -> None:
    check_saving(cauchy, tmp_path / "model.mm")


@pytest.mark.parametrize(
    "name, error", [("m.model", ModelFormatError), ("m.onnx", NotAvailable)]
)
def test_forms_without_the_new_kernel_name_it(
    cauchy: str, name: str, error: type, tmp_path: Path
) -> None:
    pytest.importorskip("onnx", reason="onnx is optional")
    X, y = draw()
    machine = SVC(kernel=cauchy, **SETTING).fit(X, y)

    with pytest.raises(error, match=r"[Cc]auchy"):
        machine.save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_new_kernel_refuses_features_that_no_support_vector_has(cauchy: str) -> None:
    X, y = draw()
    model = as_model(SVC(kernel=cauchy, **SETTING).fit(X, y))

    with pytest.raises(NotAvailable, match="Cauchy"):
        model.decisions(np.hstack((X, X)))


def test_kernel_without_a_word_cannot_be_saved_and_is_named(
    cauchy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    X, y = draw()
    machine = SVC(kernel=cauchy, **SETTING).fit(X, y)
    monkeypatch.delitem(KERNELS, cauchy)

    with pytest.raises(ModelFormatError, match="Cauchy"):
        machine.save(tmp_path / "model.mm")


def test_kernel_with_parameters_of_its_own_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wavelet(NamedTuple):
        scale: float

    monkeypatch.setitem(KERNELS, "wavelet", Wavelet)  # type: ignore[arg-type]
    with pytest.raises(NotAvailable, match="Wavelet has the parameters scale"):
        SVC(kernel="wavelet").fit(*draw())


def test_compiled_code_is_not_asked_for_a_kernel_that_it_does_not_know() -> None:
    rows = as_rows(draw()[0])

    assert make_source(Cauchy(1.0), rows) is None  # type: ignore[arg-type]
