"""What does somebody see who waits for a search? A bar at a terminal, lines elsewhere.

The bar is drawn by rich, where that is installed.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from maxmargin.estimators.base import say

LINES = 2  # verbose: lines, at a terminal too


class CellReport(NamedTuple):
    """What a search's callback is told after every point."""

    params: dict[str, Any]
    score: float
    n_done: int
    n_points: int
    best_score: float
    best_params: dict[str, Any]


Show = Callable[[CellReport], None]


@contextmanager
def shown(verbose: bool | int) -> Iterator[Show]:
    """Shows each point as suits the output; a bar ends with the search."""
    if not verbose:
        yield _nothing
        return
    bar = _bar() if verbose < LINES and sys.stdout.isatty() else None
    if bar is None:
        yield _line
        return
    with bar:
        task = bar.add_task("", total=None, said="")

        def show(report: CellReport) -> None:
            said = f"best {report.best_score:.4f} at {in_words(report.best_params)}"
            done, total = report.n_done, report.n_points
            bar.update(task, completed=done, total=total, said=said, refresh=True)

        yield show


def in_words(params: dict[str, Any]) -> str:
    """C=1, gamma=0.5"""
    return ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _nothing(report: CellReport) -> None:
    """Nobody wants to know."""


def _line(report: CellReport) -> None:
    say(
        f"[maxmargin] {report.n_done} of {report.n_points}: "
        f"{in_words(report.params)}, score {report.score:.4f} "
        f"(best {report.best_score:.4f})"
    )


def _bar() -> Any:
    """rich's, or None where it is not installed."""
    try:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        return None
    said = TextColumn("{task.fields[said]}")
    return Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), said)
