"""scikit-learn's words: the only room that knows its protocol."""

from maxmargin.estimators.one_class import OneClassSVM
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.estimators.svr import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
