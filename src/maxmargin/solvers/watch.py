"""When must a solver pause? At a limit, at Ctrl-C, and when a callback is due."""

import time

from maxmargin import _clock
from maxmargin._threads import raise_if_stopped
from maxmargin.solvers.result import Options, Progress, Status

REPORT_SECONDS = 0.1  # between two calls of the callback
SLICE_SECONDS = 0.03  # how long compiled code may keep Ctrl-C waiting
FIRST_SLICE = 256  # moves or visits, before their speed is known
DEFAULT_MAX_ITER = 100_000  # for max_iter=-1, in sweeps or Newton steps


class Watch:
    """Counts iterations, keeps the limits, and calls the callback."""

    def __init__(
        self, options: Options, default_max_iter: int = DEFAULT_MAX_ITER
    ) -> None:
        self.options = options
        self.started = _clock.now() if options.started is None else options.started
        self.max_iter = options.max_iter
        if self.max_iter < 0:
            self.max_iter = default_max_iter
        self.n_iter = 0
        self.next_report = 0.0
        self.per_slice = FIRST_SLICE

    def note_speed(self, made: int, seconds: float) -> None:
        """How much the next slice may do, after one whose length tells the speed."""
        if made >= min(self.per_slice, FIRST_SLICE // 2) and seconds > 0.0:
            self.per_slice = max(1, int(made * SLICE_SECONDS / seconds))

    def limit(self) -> Status | None:
        """The limit that has been met, if any. Leaves by an exception after Ctrl-C."""
        raise_if_stopped()
        if self.n_iter >= self.max_iter:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.is_late() else None

    def is_stopped(self) -> bool:
        """Between two slices: whether time is up; leaves after Ctrl-C."""
        raise_if_stopped()
        return self.is_late()

    def is_late(self) -> bool:
        """Whether time_limit has passed, compilation left out."""
        limit = self.options.time_limit
        return limit is not None and _clock.now() - self.started > limit

    def is_due(self) -> bool:
        """Whether the callback wants to hear something now."""
        is_heard = self.options.callback is not None
        return is_heard and time.monotonic() >= self.next_report

    def report(
        self,
        violation: float,
        objective: float,
        n_active: int,
        is_last: bool = False,
        cache_hits: int = 0,
        cache_misses: int = 0,
    ) -> None:
        """Call the callback if it is time to."""
        if self.options.callback is None or not (is_last or self.is_due()):
            return
        self.next_report = time.monotonic() + REPORT_SECONDS
        self.options.callback(
            Progress(
                n_iter=self.n_iter,
                violation=violation,
                objective=objective,
                n_active=n_active,
                cache_hits=cache_hits,
                cache_misses=cache_misses,
            )
        )
