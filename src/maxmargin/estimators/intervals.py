"""How far off may a regressor be? Intervals and densities, from errors held out."""

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import InvalidInput
from maxmargin.estimators.base import BaseMachine
from maxmargin.estimators.probable import fold_notes
from maxmargin.models.calibration import laplace_scale
from maxmargin.models.held_out import (
    HeldOut,
    Solved,
    held_out_decisions,
    shuffled_folds,
)
from maxmargin.models.leave_one_out import leave_one_out_decisions
from maxmargin.models.probability import conformal_width, laplace_width
from maxmargin.solvers import Status
from maxmargin.typing import FloatVector

METHODS = ("laplace", "conformal")


class Intervals(BaseMachine):
    """A regressor that was fitted with probability=True, or calibrated afterwards."""

    def predict_interval(self, X, coverage=0.9, *, method="laplace"):
        """Where y lies with this probability, shape (n_samples, 2): lower, upper.

        Parameters
        ----------
        X : as for predict
        coverage : float in (0, 1), default 0.9
            The share of new samples that shall lie inside.
        method : {"laplace", "conformal"}, default "laplace"
            Quantiles of the Laplace distribution fitted to the errors of held-out
            folds; or of these errors themselves. After `calibrate`, "conformal" covers
            at least that share whatever the distribution is (split conformal).

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        half = self._half_width(coverage, method)
        middle = self.predict(X)
        return np.column_stack((middle - half, middle + half))

    def predict_density(self, X, y):
        """The Laplace density of y at each sample, shape (n_samples,)."""
        scale, middle = self._scale(), self.predict(X)
        y = np.asarray(y, dtype=np.float64)
        if y.shape != middle.shape:
            raise InvalidInput(
                f"y must hold one number per sample: expected shape {middle.shape}, "
                f"got {y.shape}."
            )
        return np.exp(-np.abs(y - middle) / scale) / (2.0 * scale)

    def calibrate(self, X, y):
        """Take the errors of "conformal" intervals from samples that fit has not seen.

        Parameters
        ----------
        X, y : as for fit
            Samples apart from those of fit, drawn as the ones to come will be.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        middle = self.predict(X)
        y = np.asarray(y, dtype=np.float64)
        if y.shape != middle.shape or not np.isfinite(y).all():
            raise InvalidInput(
                f"y must hold one finite number per sample: expected shape "
                f"{middle.shape}, got {y.shape}."
            )
        self.conformal_residuals_ = np.sort(np.abs(y - middle))
        return self

    @property
    def laplace_scale_(self):
        """Scale of the Laplace distribution of the errors, LIBSVM's sigma."""
        if "probA_" not in vars(self):
            raise AttributeError("laplace_scale_ is known after probability=True only")
        return float(self.probA_[0])

    def _half_width(self, coverage: Any, method: str) -> float:
        if not 0.0 < coverage < 1.0:
            raise InvalidInput(f"coverage must be in (0, 1), got {coverage!r}.")
        if method not in METHODS:
            raise InvalidInput(
                f"method must be one of {', '.join(METHODS)}, got {method!r}."
            )
        if method == "laplace":
            return laplace_width(self._scale(), float(coverage))
        check_is_fitted(self)
        if not hasattr(self, "conformal_residuals_"):
            raise NotFittedError(
                "Conformal intervals need errors on samples held out: fit with "
                "probability=True, or call calibrate(X, y) with samples set apart."
            )
        return conformal_width(self.conformal_residuals_, float(coverage))

    def _scale(self) -> float:
        check_is_fitted(self)
        if not hasattr(self, "probA_"):
            raise NotFittedError(
                "The distribution of errors is known when fitted with probability=True "
                "only."
            )
        return float(self.probA_[0])

    def _calibrated(
        self, solved: Solved, target: FloatVector, weight: FloatVector
    ) -> dict[str, Any]:
        """What the errors on held-out samples say."""
        if not self._wants_probability:
            return {}
        if self.calibration == "leave_one_out":
            said = HeldOut(leave_one_out_decisions(solved), Status.CONVERGED)
        else:
            seed = 0 if self.random_state is None else self.random_state
            folds = shuffled_folds(len(target), check_random_state(seed))
            said = held_out_decisions(solved, folds, self._n_threads())
        residuals = target - said.decisions
        return {
            "_notes": fold_notes([said.status]),
            "probA_": np.array([laplace_scale(residuals, weight)]),
            "conformal_residuals_": np.sort(np.abs(residuals)),
        }
