"""How many moves may compiled code make before Python looks up?"""

from maxmargin.solvers.result import Options
from maxmargin.solvers.watch import Watch

SLICE_SECONDS = 0.03  # how long compiled code may keep Ctrl-C waiting
FIRST_SLICE = 256  # moves, before their speed is known
MIN_MAX_ITER = 10_000_000  # moves


class Pace(Watch):
    """A watch that counts moves, and knows how fast they are."""

    def __init__(self, options: Options, n: int) -> None:
        super().__init__(options, max(MIN_MAX_ITER, 100 * n))
        self.per_slice = FIRST_SLICE

    def moves(self, most: int | None = None) -> int:
        """How many the next slice may make."""
        left = self.max_iter - self.n_iter
        if most is not None:
            left = min(left, most)
        return max(min(self.per_slice, left), 0)

    def note(self, made: int, seconds: float) -> None:
        """A slice has been made."""
        self.n_iter += made
        if made >= FIRST_SLICE // 2 and seconds > 0.0:
            self.per_slice = max(1, int(made * SLICE_SECONDS / seconds))
