"""How long does compiled code run before Python looks up, and when is it enough?"""

import time

from maxmargin.solvers.result import Options, Progress, Status

SLICE_SECONDS = 0.03  # how long compiled code may keep Ctrl-C waiting
REPORT_SECONDS = 0.1  # between two calls of the callback
FIRST_SLICE = 256  # moves, before their speed is known
MIN_MAX_ITER = 10_000_000


class Pace:
    """Moves made, the time they took, and the limits of both."""

    def __init__(self, options: Options, n: int) -> None:
        self.options = options
        self.started = time.monotonic() if options.started is None else options.started
        self.max_iter = options.max_iter
        if self.max_iter < 0:
            self.max_iter = max(MIN_MAX_ITER, 100 * n)
        self.n_iter = 0
        self.per_slice = FIRST_SLICE
        self.next_report = 0.0

    def moves(self) -> int:
        """How many the next slice may make."""
        return max(min(self.per_slice, self.max_iter - self.n_iter), 0)

    def note(self, made: int, seconds: float) -> None:
        """A slice has been made."""
        self.n_iter += made
        if made >= FIRST_SLICE // 2 and seconds > 0.0:
            self.per_slice = max(1, int(made * SLICE_SECONDS / seconds))

    def limit(self) -> Status | None:
        """The limit that has been met, if one has."""
        if self.n_iter >= self.max_iter:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.is_late() else None

    def is_late(self) -> bool:
        """Whether the time is up."""
        limit = self.options.time_limit
        return limit is not None and time.monotonic() - self.started > limit

    def wants_report(self, *, is_last: bool = False) -> bool:
        """Whether the callback is due."""
        if self.options.callback is None:
            return False
        now = time.monotonic()
        if now < self.next_report and not is_last:
            return False
        self.next_report = now + REPORT_SECONDS
        return True

    def report(self, progress: Progress) -> None:
        """Tell the callback."""
        if self.options.callback is not None:
            self.options.callback(progress)
