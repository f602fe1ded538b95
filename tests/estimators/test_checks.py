"""Do our machines keep every promise that scikit-learn asks of an estimator?"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

INFEASIBLE = {
    "check_class_weight_classifiers": (
        "weighs one class a thousand times the others, and nu = 0.3 is then infeasible:"
        " half of nu times all weight is more than the light class has"
    )
}


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    """Nothing, but for what has no solution."""
    return INFEASIBLE if isinstance(estimator, NuSVC) else {}


@parametrize_with_checks(
    [
        SVC(),
        SVC(kernel="linear"),
        SVC(kernel="poly", degree=2, coef0=1.0),
        SVC(kernel="laplacian"),
        SVC(kernel="precomputed"),
        SVC(working_set="first_order"),
        SVC(fit_intercept=False),
        NuSVC(nu=0.3),
        SVR(),
        SVR(kernel="linear"),
        SVR(fit_intercept=False),
        NuSVR(),
        NuSVR(kernel="precomputed"),
        OneClassSVM(),
        OneClassSVM(kernel="linear"),
    ],
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
# Some checks fit random labels, which no margin of nu-SVC can separate: it says so.
@pytest.mark.filterwarnings("default:The margin between classes:UserWarning")
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
