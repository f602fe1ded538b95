"""Do sparse and dense fits agree, by scikit-learn's own comparison?

scikit-learn compares them on machines with probabilities only; here the same helper,
on the same data, is given machines without.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm.tests import test_sparse as theirs
from sklearn.utils.fixes import CSR_CONTAINERS, LIL_CONTAINERS

from maxmargin import SVC, NuSVC

pytestmark = pytest.mark.agreement

SETS = {
    "six points": (theirs.X, theirs.Y, theirs.T),
    "three classes": (theirs.X2, theirs.Y2, theirs.T2),
    "blobs": (theirs.X_blobs[:80], theirs.y_blobs[:80], theirs.X_blobs[80:]),
    "iris": (theirs.iris.data, theirs.iris.target, theirs.iris.data),
}


@pytest.mark.parametrize("container", CSR_CONTAINERS + LIL_CONTAINERS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("name", SETS)
def test_svc(name: str, kernel: str, container: Any) -> None:
    X, y, T = SETS[name]
    machine = SVC(gamma=1, kernel=kernel, decision_function_shape="ovo")

    theirs.check_svm_model_equal(machine, container(X), y, T)


@pytest.mark.parametrize("container", CSR_CONTAINERS)
def test_nu_svc_on_iris(container: Any) -> None:
    X, y, _ = SETS["iris"]

    sparse, dense = (
        NuSVC(nu=0.3).fit(layout(X), y) for layout in (container, np.asarray)
    )

    assert (sparse.dual_coef_.toarray() == dense.dual_coef_).all()
