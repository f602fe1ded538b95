"""What do all machines share at the surface? A fit that succeeds or leaves no trace."""

import warnings
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from maxmargin._interrupts import interrupts_deferred
from maxmargin._threads import count_cores
from maxmargin.estimators.inputs import TrainingSet
from maxmargin.estimators.parameters import RULES, check_parameters
from maxmargin.solvers import Options, Progress, Solution, Status
from maxmargin.typing import FloatVector


class BaseMachine(BaseEstimator):
    """Fit, status and threads; subclasses say what is fitted."""

    _rules = RULES
    _told_on_demand = frozenset(  # attributes that a new fit may have to take away
        (
            "probA_",
            "probB_",
            "prob_power_",
            "prob_density_marks_",
            "conformal_residuals_",
        )
    )
    _steps = "moves"  # what n_iter_ counts

    @classmethod
    @cache
    def _get_param_names(cls):
        """What scikit-learn asks for five times in a fit, read once."""
        return super()._get_param_names()

    def fit(self, X, y, sample_weight=None):
        """Fit the machine; the class docstring states its problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; where there is a `kernel`, the kernel between all of them for
            "precomputed", and whatever the function understands for a callable.
        y : array-like of shape (n_samples,)
            Class labels of any one kind; for a regressor, numbers.
        sample_weight : array-like of shape (n_samples,), default None
            Weight k counts as k copies of a sample; zero or less leaves it out.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def save(self, path, *, format=None, digits=None):
        """Write the fitted machine to a file, which :func:`maxmargin.load` reads.

        Parameters
        ----------
        path : str or path-like
            Replaced in one step, once everything is written.
        format : {"native", "libsvm", "liblinear", "onnx"}, default None
            None goes by the name: `.model` is the text form of LIBSVM, for linear
            machines of LIBLINEAR; `.onnx` is ONNX; anything else our own form, the
            only one that keeps all parameters, labels of any kind, and the evidence.
        digits : int, default None
            For LIBSVM's form: significant digits of the support vectors. None means 8,
            as LIBSVM writes them; 17 keep them whole.
        """
        from maxmargin.estimators.saving import save_estimator

        save_estimator(self, path, format=format, digits=digits)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Check everything, solve, and only then set what makes a fitted estimator."""
        check_parameters(self, self._rules)
        self._check_calibration()
        known = dict(vars(self))
        try:
            with interrupts_deferred():
                fitted = self._fit_checked(X, y, sample_weight)
        except BaseException:
            for name in set(vars(self)) - set(known):
                delattr(self, name)
            self.__dict__.update(known)
            raise
        notes = fitted.pop("_notes", [])
        for name in self._told_on_demand - set(fitted):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        self._warn_unless_converged()
        return self

    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        """The attributes of a fit, and under `_notes` what to warn of."""
        raise NotImplementedError

    def _check_targets(self, y: Any, training: TrainingSet) -> Any:
        raise NotImplementedError

    def _check_calibration(self) -> None:
        """Refuse words about probabilities that contradict one another."""

    def _limits(self, training: TrainingSet) -> Options:
        """How far and how long any solver goes, and whom it tells."""
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            started=training.started,
            callback=self._callback(),
        )

    def _callback(self) -> Callable[[Progress], object] | None:
        if not self.verbose:
            return self.callback
        given, steps = self.callback, self._steps

        def show(progress: Progress) -> None:
            print(
                f"[maxmargin] {progress.n_iter} {steps}, violation "
                f"{progress.violation:.3g}, objective {progress.objective:.6g}, "
                f"{progress.n_active} active"
            )
            if given is not None:
                given(progress)

        return show

    @property
    def _wants_probability(self) -> bool:
        """`probability`; its default in scikit-learn, 'deprecated', means no."""
        return not isinstance(self.probability, str) and bool(self.probability)

    def _n_threads(self) -> int:
        """n_jobs in words: None is all cores, but one inside a joblib worker."""
        cores = count_cores()
        if self.n_jobs is None:
            backend, _ = get_active_backend()
            return 1 if (backend.nesting_level or 0) > 0 else cores
        n_jobs = self.n_jobs if self.n_jobs > 0 else cores + 1 + self.n_jobs
        return max(1, min(n_jobs, cores))

    def _start(self, shape: tuple[Any, ...]) -> tuple[Any, list[str]]:
        """Where the last fit ended, if warm_start is set and this one resembles it.

        The second part holds a note for the user where it does not.
        """
        if not self.warm_start or not hasattr(self, "_warm"):
            return None, []
        last_shape, start = self._warm
        if last_shape == shape:
            return start, []
        note = (
            "warm_start=True, but the samples, features, classes or formulation are "
            "not those of the last fit: starting from zero."
        )
        return None, [note]

    def _warn_unless_converged(self) -> None:
        if self.status_ is Status.CONVERGED:
            return
        worst = float(np.max(self.kkt_violation_))
        warnings.warn(
            f"{self._reason()}  Consider pre-processing your data with StandardScaler "
            f"or MinMaxScaler. The KKT violation is {worst:.3g} where "
            f"tol={self.tol:g} was asked for. {self.status_.value}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _reason(self) -> str:
        """Why a fit ended before tol was reached."""
        if self.status_ is Status.PRECISION_LIMIT:
            return "Solver stopped where float64 ends."
        if self.status_ is Status.STALLED:
            reached = int(np.max(self.n_iter_))
            return f"Solver made no more headway ({reached} {self._steps})."
        if self.status_ is Status.TIME_LIMIT:
            return f"Solver terminated early (time_limit={self.time_limit})."
        return f"Solver terminated early ({self._most_iterations()})."

    def _most_iterations(self) -> str:
        """max_iter, with the number that -1 stood for."""
        if self.max_iter != -1:
            return f"max_iter={self.max_iter}"
        reached = int(np.max(self.n_iter_))
        return f"max_iter=-1, which stands for {reached} {self._steps} here"


def say(line: str) -> None:
    """A line of progress, for those who asked for it."""
    print(line)


def worst_status(solutions: list[Solution]) -> Status:
    """That of the solution that ended worst."""
    return max((solution.status for solution in solutions), key=attrgetter("rank"))


def evidence(
    status: Status, objective: FloatVector, gap: FloatVector, violation: FloatVector
) -> dict[str, Any]:
    """What all problems together say: numbers for one, arrays for several."""
    values: dict[str, Any] = {
        "objective_": objective,
        "dual_gap_": gap,
        "kkt_violation_": violation,
    }
    if len(objective) == 1:
        values = {name: float(value[0]) for name, value in values.items()}
    return values | {"status_": status}
