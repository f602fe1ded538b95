"""Who is compared? Each library as a function from data to something that predicts."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.certificate import Fit

FORMS = {"SVC": 0, "NuSVC": 1, "OneClassSVM": 2, "SVR": 3, "NuSVR": 4}
FLAGS = {"C": "-c", "nu": "-n", "epsilon": "-p", "gamma": "-g", "tol": "-e"}
FLAGS |= {"cache_size": "-m"}  # megabytes
CACHE_SIZE = 200


class Library(NamedTuple):
    """How to prepare a fit outside the clock, and which package it needs."""

    package: str
    prepare: Callable[..., Callable[[], Any]]
    lacks: tuple[str, ...] = ()  # machines that it leaves to others


def prepare_maxmargin(
    X: Any, y: np.ndarray, machine: str = "SVC", **settings: Any
) -> Callable[[], Any]:
    import maxmargin

    return lambda: getattr(maxmargin, machine)(**settings).fit(X, y)


def prepare_one_thread(
    X: Any, y: np.ndarray, machine: str = "SVC", **settings: Any
) -> Callable[[], Any]:
    return prepare_maxmargin(X, y, machine, n_jobs=1, **settings)


def prepare_sklearn(
    X: Any, y: np.ndarray, machine: str = "SVC", **settings: Any
) -> Callable[[], Any]:
    from sklearn import svm

    return lambda: getattr(svm, machine)(**settings).fit(X, y)


def prepare_intelex(
    X: Any, y: np.ndarray, machine: str = "SVC", **settings: Any
) -> Callable[[], Any]:
    from sklearnex import svm

    return lambda: getattr(svm, machine)(**settings).fit(X, y)


def prepare_libsvm(
    X: Any, y: np.ndarray, machine: str = "SVC", **settings: Any
) -> Callable[[], Any]:
    """The data are in LIBSVM's own form before the clock starts."""
    if settings["gamma"] == "scale":
        settings["gamma"] = float(1.0 / (X.shape[1] * X.var()))
    train = libsvm_trainer(machine, X, y, settings)
    return lambda: LibsvmModel(train())


LIBRARIES = {
    "maxmargin": Library("maxmargin", prepare_maxmargin),
    "maxmargin, 1 thread": Library("maxmargin", prepare_one_thread),
    "scikit-learn": Library("sklearn", prepare_sklearn),
    "scikit-learn-intelex": Library("sklearnex", prepare_intelex, ("OneClassSVM",)),
    "libsvm-official": Library("libsvm", prepare_libsvm),
}


def installed() -> list[str]:
    """The libraries measured unless told otherwise; LIBSVM itself takes very long."""
    return [
        name
        for name, known in LIBRARIES.items()
        if name != "libsvm-official" and find_spec(known.package)
    ]


def read_fit(model: Any) -> Fit:
    """Coefficients of a fitted model, in scikit-learn's layout."""
    if isinstance(model, LibsvmModel):
        return model.fit
    coef = model.dual_coef_
    return Fit(
        np.asarray(model.support_),
        np.asarray(model.n_support_),
        coef.toarray() if sp.issparse(coef) else np.asarray(coef),
        np.ravel(model.intercept_),
    )


# LIBSVM's own Python module.


def libsvm_trainer(
    machine: str, X: Any, y: np.ndarray, settings: dict[str, Any]
) -> Callable[[], Any]:
    """A function that trains; the problem is stated before, with the RBF kernel."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else a busy core stalls all
    from libsvm import svmutil

    settings = {"cache_size": CACHE_SIZE} | settings
    words = [f"{FLAGS[name]} {value!r}" for name, value in settings.items()]
    words = [f"-s {FORMS[machine]}", "-t 2", "-q", *words]
    parameter = svmutil.svm_parameter(" ".join(words))
    problem = svmutil.svm_problem(y.astype(np.float64), sp.csr_matrix(X))
    return lambda: svmutil.svm_train(problem, parameter)


class LibsvmModel:
    """LIBSVM's model with the few words of scikit-learn's that are needed here."""

    def __init__(self, model: Any) -> None:
        self.model = model
        k = model.nr_class
        n_pairs = max(k * (k - 1) // 2, 1)
        is_classifier = model.get_svm_type() in (FORMS["SVC"], FORMS["NuSVC"])
        self.fit = Fit(
            np.array(model.get_sv_indices()) - 1,
            np.array(model.nSV[:k] if is_classifier else [model.l]),
            np.array(model.get_sv_coef()).T,
            -np.array(model.rho[:n_pairs]),
        )

    @property
    def classes_(self) -> np.ndarray:
        """Labels in the order in which LIBSVM met them."""
        return np.array(self.model.get_labels())

    def predict(self, X: Any) -> np.ndarray:
        """Labels, values, or 1 for normal rows and -1 for others."""
        from libsvm import svmutil

        found, _, _ = svmutil.svm_predict([], sp.csr_matrix(X), self.model, "-q")
        return np.asarray(found)

    def score(self, X: Any, y: np.ndarray) -> float:
        """Accuracy."""
        return float(np.mean(self.predict(X) == y))
