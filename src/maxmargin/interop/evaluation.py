"""How good are predictions? As LIBSVM and LIBLINEAR count."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput
from maxmargin.typing import FloatVector


class Scores(NamedTuple):
    """Percent correct, mean squared error, squared correlation (may be nan)."""

    accuracy: float
    squared_error: float
    squared_correlation: float

    def plain(self) -> tuple[float, float, float]:
        """Without names, as the packages return them."""
        return self.accuracy, self.squared_error, self.squared_correlation


def score(true: FloatVector, predicted: FloatVector) -> Scores:
    """All three, whatever the numbers stand for."""
    if len(true) != len(predicted):
        raise InvalidInput(
            f"len(ty) must be equal to len(pv): got {len(true)} and {len(predicted)}."
        )
    if not len(true):
        return Scores(np.nan, np.nan, np.nan)
    n, t, p = len(true), true.astype(np.float64), predicted.astype(np.float64)
    shared = n * float(t @ p) - float(t.sum()) * float(p.sum())
    spread_t = n * float(t @ t) - float(t.sum()) ** 2
    spread_p = n * float(p @ p) - float(p.sum()) ** 2
    spread = spread_t * spread_p
    return Scores(
        100.0 * float(np.mean(true == predicted)),
        float(np.mean((t - p) ** 2)),
        shared * shared / spread if spread != 0.0 else np.nan,
    )


def score_facts(true: Any, predicted: Any, *, is_regression: bool) -> dict[str, Any]:
    """Scores by name for JSON: the accuracy is a fraction, and only of classes."""
    n = len(predicted)
    if is_regression:
        scores = score(true, predicted)
        return {
            "samples": n,
            "mean_squared_error": scores.squared_error,
            "squared_correlation": scores.squared_correlation,
        }
    n_right = int(np.count_nonzero(predicted == true))
    return {"samples": n, "correct": n_right, "accuracy": n_right / n}


def classification_line(scores: Scores, n: int) -> str:
    """How many are right."""
    right = round(n * scores.accuracy / 100.0) if n else 0
    return f"Accuracy = {scores.accuracy:g}% ({right}/{n}) (classification)"


def regression_lines(scores: Scores) -> list[str]:
    """How far predictions are off."""
    return [
        f"Mean squared error = {scores.squared_error:g} (regression)",
        "Squared correlation coefficient = "
        f"{scores.squared_correlation:g} (regression)",
    ]


def judge_folds(
    true: FloatVector,
    predicted: FloatVector,
    say: Callable[[str], object],
    *,
    is_regression: bool,
) -> Scores:
    """Score what cross-validation predicted, and say what LIBSVM says then."""
    scores = score(true, predicted)
    if is_regression:
        say(f"Cross Validation Mean squared error = {scores.squared_error:g}")
        say(
            "Cross Validation Squared correlation coefficient = "
            f"{scores.squared_correlation:g}"
        )
    else:
        say(f"Cross Validation Accuracy = {scores.accuracy:g}%")
    return scores


def laplace_lines(sigma: float) -> str:
    """How errors of regression are distributed, in LIBSVM's words."""
    return (
        "Prob. model for test data: target value = predicted value + z,\n"
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= {sigma:g}\n"
    )
