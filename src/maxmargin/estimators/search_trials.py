"""Which point next, off the grid? Optuna says: a tree of Parzen estimators.

(Akiba, Sano, Yanase, Ohta & Koyama, KDD 2019.) Points are asked for one after the
other, so that the same seed leads to the same points on any number of threads.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import InvalidInput, NotAvailable
from maxmargin.estimators.search_plans import Tried

EVEN = ("nu",)  # a share: differences count; of the others, ratios


class Range(NamedTuple):
    """The ends of an axis."""

    low: float
    high: float
    is_log: bool


def check_optuna() -> Any:
    """The library, or how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise NotAvailable(
            "search='optuna' needs the library optuna, which is not installed: "
            "pip install 'optuna>=4', or use search='grid'."
        ) from error
    return optuna


def check_ranges(axes: dict[str, list[Any]]) -> dict[str, Range]:
    """Everything between the smallest and the largest value of each axis."""
    ranges = {}
    for name, values in axes.items():
        low, high = float(min(values)), float(max(values))
        if not np.isfinite(high):
            raise InvalidInput(
                f"search='optuna' needs finite values of {name} to search between, got "
                f"{values}."
            )
        ranges[name] = Range(low, high, low > 0.0 and name not in EVEN)
    return ranges


def suggested(
    ranges: dict[str, Range],
    judge: Callable[[dict[str, float]], Tried | None],
    n_trials: int,
    seed: int,
) -> list[Tried]:
    """Points and their scores; those without a score count as failed trials."""
    optuna, every = check_optuna(), []
    with _silence(optuna):
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for _ in range(n_trials):
            trial = study.ask()
            params = {name: _suggest(trial, name, ranges[name]) for name in ranges}
            tried = judge(params)
            if tried is None:
                break
            every.append(tried)
            if np.isnan(tried.score.mean):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, tried.score.mean)
    return every


def _suggest(trial: Any, name: str, ends: Range) -> float:
    if ends.low == ends.high:
        return ends.low
    return float(trial.suggest_float(name, ends.low, ends.high, log=ends.is_log))


@contextmanager
def _silence(optuna: Any) -> Iterator[None]:
    """A search tells of its points in its own words."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
