"""Do estimators tell probabilities that agree with their labels, seed and files?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss

import maxmargin
from maxmargin import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from maxmargin.errors import InvalidInput

Data = tuple[Any, npt.NDArray[Any]]
CLASSIFIERS = [
    SVC(probability=True),
    SVC(probability=True, calibration="leave_one_out"),
    NuSVC(nu=0.2, probability=True),
    LinearSVC(probability=True),
    LinearSVC(probability=True, multi_class="crammer_singer"),
]
every_classifier = pytest.mark.parametrize("machine", CLASSIFIERS, ids=repr)


def classes(n_classes: int) -> Data:
    X, y = datasets.load("vehicle", 240)
    return X, np.array(["d", "a", "c", "b"])[y % n_classes]


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_likeliest_class_is_the_predicted_one(machine: Any, n_classes: int) -> None:
    X, y = classes(n_classes)
    machine = clone(machine).fit(X[::2], y[::2])

    shares = machine.predict_proba(X)

    assert shares.shape == (len(X), n_classes)
    assert (shares >= 0).all() and np.abs(shares.sum(axis=1) - 1).max() < 1e-12
    best = machine.classes_[shares.argmax(axis=1)]
    assert (best == machine.predict(X)).all()
    assert np.array_equal(machine.predict_log_proba(X), np.log(shares))
    frequencies = [np.mean(y == label) for label in machine.classes_]
    ignorance = -sum(f * np.log(f) for f in frequencies)
    assert log_loss(y[1::2], shares[1::2]) < ignorance


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.2), LinearSVC()], ids=repr)
def test_labels_may_follow_decisions_instead(machine: Any) -> None:
    X, y = classes(3)
    plain = clone(machine).fit(X, y)
    probable = clone(machine).set_params(probability=True, predict_by="decision")
    probable.fit(X, y)

    assert (probable.predict(X) == plain.predict(X)).all()
    assert np.array_equal(probable.decision_function(X), plain.decision_function(X))
    assert not hasattr(plain, "predict_proba")
    assert not hasattr(plain, "probA_")


@every_classifier
def test_a_seed_decides_and_threads_do_not(machine: Any) -> None:
    X, y = classes(3)

    def sigmoids(**more: Any) -> Any:
        fitted = clone(machine).set_params(**more).fit(X, y)
        return np.concatenate((fitted.probA_, fitted.probB_, [fitted.prob_power_]))

    first = sigmoids(n_jobs=1)
    assert np.array_equal(first, sigmoids(n_jobs=2))
    assert np.array_equal(sigmoids(random_state=7), sigmoids(random_state=7))
    is_alone = getattr(machine, "calibration", "folds") == "leave_one_out"
    assert np.array_equal(first, sigmoids(random_state=1)) == is_alone


@pytest.mark.slow
def test_threads_change_nothing_on_larger_sets() -> None:
    X, y = datasets.load("a9a", datasets.many(1500))
    one, two = (SVC(probability=True, n_jobs=k).fit(X, y) for k in (1, 2))

    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_sparse_and_dense_agree() -> None:
    X, y = classes(3)
    dense = SVC(probability=True).fit(X, y)
    sparse = SVC(probability=True).fit(sp.csr_matrix(X), y)

    difference = dense.predict_proba(X) - sparse.predict_proba(sp.csr_matrix(X))
    assert np.abs(difference).max() < 1e-4


def test_a_given_kernel_and_a_function_do_too() -> None:
    X, y = classes(2)
    plain = SVC(kernel="linear", probability=True).fit(X, y)
    given = SVC(kernel="precomputed", probability=True).fit(X @ X.T, y)
    function = SVC(kernel=lambda a, b: a @ b.T, probability=True).fit(X, y)

    expected = plain.predict_proba(X)
    assert np.abs(given.predict_proba(X @ X.T) - expected).max() < 1e-3
    assert np.abs(function.predict_proba(X) - expected).max() < 1e-3


@pytest.mark.parametrize(
    "machine",
    [
        SVC(probability=True),
        NuSVC(nu=0.2, probability=True),
        LinearSVC(probability=True),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_files_keep_probabilities(machine: Any, n_classes: int, tmp_path: Path) -> None:
    X, y = classes(n_classes)
    y = np.unique(y, return_inverse=True)[1]
    machine = clone(machine).fit(X, y)
    machine.save(tmp_path / "a.mm")
    forms = ["a.mm"]
    if not isinstance(machine, LinearSVC):
        machine.save(tmp_path / "a.model", digits=17)
        forms.append("a.model")

    for form in forms:
        back = maxmargin.load(tmp_path / form)
        assert (back.predict(X) == machine.predict(X)).all()
        if form == "a.model":
            machine.prob_power_ = 1.0  # LIBSVM's form has no place for it
        difference = back.predict_proba(X) - machine.predict_proba(X)
        assert np.abs(difference).max() < 1e-12
        assert back.prob_power_ == machine.prob_power_


def test_a_new_fit_forgets_sigmoids() -> None:
    X, y = classes(2)
    machine = SVC(probability=True).fit(X, y)
    machine.set_params(probability=False).fit(X, y)
    machine.set_params(probability=True)

    assert not hasattr(machine, "probA_")
    assert not hasattr(machine, "prob_power_")
    with pytest.raises(NotFittedError, match="probability=False"):
        machine.predict_proba(X)
    assert (machine.predict(X) == SVC().fit(X, y).predict(X)).all()


@pytest.mark.parametrize(
    "machine", [*CLASSIFIERS[:2], NuSVC(nu=0.1, probability=True), CLASSIFIERS[3]]
)
def test_many_classes_are_as_sure_as_they_are_right(machine: Any) -> None:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    fitted, test = order[:400], order[400:]
    unseen = X[test] / 16
    machine = clone(machine).fit(X[fitted] / 16, y[fitted])

    shares, labels = machine.predict_proba(unseen), machine.predict(unseen)
    power, machine.prob_power_ = machine.prob_power_, 1.0
    blunt = machine.predict_proba(unseen)

    right = np.mean(labels == y[test])
    assert power > 1.1
    assert log_loss(y[test], shares) < log_loss(y[test], blunt)
    assert abs(shares.max(axis=1).mean() - right) < 0.02
    assert blunt.max(axis=1).mean() < right - 0.03
    assert (machine.predict(unseen) == labels).all()


def test_two_classes_need_no_power() -> None:
    X, y = classes(2)
    for machine in (SVC(probability=True), LinearSVC(probability=True)):
        assert machine.fit(X, y).prob_power_ == 1.0


def test_nothing_is_promised_without_folds() -> None:
    X, y = classes(2)
    with pytest.raises(InvalidInput, match="'folds'"):
        NuSVC(nu=0.2, probability=True, calibration="leave_one_out").fit(X, y)


def test_few_samples_of_a_class_do() -> None:
    X, y = classes(2)
    rare = np.append(np.flatnonzero(y == "a")[:1], np.flatnonzero(y == "d")[:30])

    for machine in (SVC(probability=True), LinearSVC(probability=True)):
        shares = machine.fit(X[rare], y[rare]).predict_proba(X)
        assert np.isfinite(shares).all()


def test_folds_that_end_early_are_told() -> None:
    X, y = classes(2)
    with (
        pytest.warns(UserWarning, match="folds of probability=True"),
        pytest.warns(ConvergenceWarning),
    ):
        SVC(C=1e3, probability=True, max_iter=3).fit(X, y)


def test_no_miss_at_any_price() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.5 * y

    machine = SVC(C=np.inf, kernel="linear", probability=True).fit(X, y)

    assert log_loss(y, machine.predict_proba(X)) < 0.2


# Regression.


def numbers(rows: int = 300) -> Data:
    return datasets.load("mpg", rows)


@pytest.mark.parametrize("method", ["laplace", "conformal"])
@pytest.mark.parametrize("machine", [SVR(), NuSVR(), SVR(C=5)], ids=repr)
def test_intervals_cover_about_what_they_should(machine: Any, method: str) -> None:
    X, y = numbers()
    machine = clone(machine).set_params(probability=True).fit(X[::2], y[::2])

    ends = machine.predict_interval(X[1::2], 0.8, method=method)

    inside = (ends[:, 0] <= y[1::2]) & (y[1::2] <= ends[:, 1])
    assert 0.68 < inside.mean() < 0.95
    wider = machine.predict_interval(X[1::2], 0.95, method=method)
    assert (np.ptp(wider, axis=1) > np.ptp(ends, axis=1)).all()
    assert np.allclose(ends.mean(axis=1), machine.predict(X[1::2]))


def test_a_density_has_mass_one_and_the_intervals_quantiles() -> None:
    X, y = numbers()
    machine = SVR(probability=True).fit(X, y)
    at = np.linspace(-30, 30, 40001)
    sample = np.repeat(X[:1], len(at), axis=0)

    density = machine.predict_density(sample, at)

    step = at[1] - at[0]
    assert density.sum() * step == pytest.approx(1.0, abs=1e-3)
    low, high = machine.predict_interval(X[:1], 0.9)[0]
    inside = density[(at >= low) & (at <= high)].sum() * step
    assert inside == pytest.approx(0.9, abs=5e-3)
    assert machine.laplace_scale_ == machine.probA_[0]


def test_calibrated_intervals_come_from_samples_set_apart() -> None:
    X, y = numbers()
    machine = SVR().fit(X[:150], y[:150])
    with pytest.raises(NotFittedError, match="calibrate"):
        machine.predict_interval(X, method="conformal")
    with pytest.raises(NotFittedError, match="probability=True"):
        machine.predict_interval(X)

    machine.calibrate(X[150:249], y[150:249])

    errors = np.sort(np.abs(y[150:249] - machine.predict(X[150:249])))
    ends = machine.predict_interval(X[249:], 0.9, method="conformal")
    assert np.allclose(np.ptp(ends, axis=1), 2 * errors[89])
    assert np.isinf(machine.predict_interval(X, 0.995, method="conformal")).all()


@pytest.mark.parametrize(
    "more, words",
    [
        ({"coverage": 1.0}, "in \\(0, 1\\)"),
        ({"method": "normal"}, "laplace, conformal"),
    ],
)
def test_wrong_intervals_are_refused(more: dict[str, Any], words: str) -> None:
    X, y = numbers(60)
    machine = SVR(probability=True).fit(X, y)
    with pytest.raises(ValueError, match=words):
        machine.predict_interval(X, **more)
    with pytest.raises(ValueError, match="one number per sample"):
        machine.predict_density(X, y[:-1])
    with pytest.raises(ValueError, match="one finite number"):
        machine.calibrate(X, y[:-1])


def test_scales_are_kept_in_files_and_alike_without_refits(tmp_path: Path) -> None:
    X, y = numbers()
    machine = SVR(probability=True).fit(X, y)
    alone = SVR(probability=True, calibration="leave_one_out").fit(X, y)
    machine.save(tmp_path / "a.mm")
    machine.save(tmp_path / "a.model", digits=17)

    assert alone.laplace_scale_ == pytest.approx(machine.laplace_scale_, rel=0.1)
    native, text = (maxmargin.load(tmp_path / f"a.{end}") for end in ("mm", "model"))
    expected = machine.predict_interval(X)
    assert np.allclose(text.predict_interval(X), expected, rtol=0, atol=1e-12)
    assert np.array_equal(native.predict_interval(X), expected)
    of_errors = machine.predict_interval(X, method="conformal")
    assert np.array_equal(native.predict_interval(X, method="conformal"), of_errors)
    with pytest.raises(InvalidInput, match="'folds'"):
        NuSVR(probability=True, calibration="leave_one_out").fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mpg", "housing", "abalone", "cadata"])
def test_conformal_coverage_is_what_was_asked_for(name: str) -> None:
    """Averaged over splits: within a percentage point, and the error of the mean."""
    X, y = datasets.load(name, 500)
    random, n_splits = np.random.default_rng(0), 20
    coverages = np.array([0.8, 0.9, 0.95])
    found = np.zeros((n_splits, 3))
    for split in range(n_splits):
        order = random.permutation(len(y))
        fitted, apart, test = np.split(order, [len(y) // 2, 3 * len(y) // 4])
        machine = SVR(tol=0.01).fit(X[fitted], y[fitted]).calibrate(X[apart], y[apart])
        for k, coverage in enumerate(coverages):
            ends = machine.predict_interval(X[test], coverage, method="conformal")
            inside = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
            found[split, k] = inside.mean()
    n_apart = len(y) - 3 * len(y) // 4
    spread = 1.0 / (n_apart + 1) + 3 * found.std(axis=0) / np.sqrt(n_splits)
    assert (np.abs(found.mean(axis=0) - coverages) < 0.01 + spread).all()


# Novelty.


def test_normality_grows_with_the_decision(tmp_path: Path) -> None:
    X, _ = datasets.load("ad_pendigits", 300)
    machine = OneClassSVM(nu=0.2, probability=True).fit(X)

    likely = machine.inlier_probability(X)

    order = np.argsort(machine.decision_function(X))
    assert (np.diff(likely[order]) >= 0).all()
    assert likely.min() == 0.001 and likely.max() == 0.999
    assert ((likely > 0.5) <= (machine.predict(X) == 1)).all()
    for form in ("a.mm", "a.model"):
        machine.save(tmp_path / form, digits=17 if form == "a.model" else None)
        back = maxmargin.load(tmp_path / form)
        assert (
            np.abs(back.prob_density_marks_ - machine.prob_density_marks_).max() < 1e-12
        )
        assert np.mean(back.inlier_probability(X) == likely) > 0.99
    with pytest.raises(NotFittedError, match="probability=True"):
        OneClassSVM().fit(X).inlier_probability(X)


def test_too_few_outside_is_said() -> None:
    X, _ = datasets.load("ad_pendigits", 40)
    with pytest.warns(UserWarning, match="too few"):
        machine = OneClassSVM(nu=0.02, probability=True).fit(X)
    assert not hasattr(machine, "prob_density_marks_")
