"""How many moves may compiled code make before Python looks up, and when is it over?

Without `max_iter`, a fit ends when it makes no headway: after as many moves as brought
the violation down to a hundred times its present best, times five, unless the violation
was halved in the last third of all moves. What converges at any steady rate never meets
this limit, whatever its rate is; what has come to a standstill does, soon after it has.
And no problem makes more than ten million moves, after which LIBSVM gives up, too.
"""

import math

from maxmargin.solvers.result import Options, Status
from maxmargin.solvers.watch import Watch

MOVES_OF_A_FIT = 1_000_000  # that all its problems may make, before any rule holds
SLOPES_OF_A_FIT = 3_000_000_000  # that these moves may change: some seconds
FEWEST_MOVES = 50_000  # that each of them may make
MOVES_PER_VARIABLE = 200  # or so many, if that is more
MOST_MOVES = 10_000_000  # of one problem, or 100 per variable (LIBSVM's limit)
MOST_PER_VARIABLE = 100
PATIENCE = 5  # times the moves made until the violation was DECADES larger
DECADES = 2
RECENTLY = 1.5  # times the moves made until the violation was last halved
NO_LIMIT = 1 << 60


class Pace(Watch):
    """A watch that counts moves, and knows when they lead nowhere."""

    def __init__(self, options: Options, n: int) -> None:
        super().__init__(options, NO_LIMIT)
        share = min(MOVES_OF_A_FIT, SLOPES_OF_A_FIT // max(n, 1)) // options.n_problems
        self.fewest = max(share, FEWEST_MOVES, MOVES_PER_VARIABLE * n)
        self.most = max(MOST_MOVES, MOST_PER_VARIABLE * n)
        self.reached: dict[int, int] = {}  # decade of the violation: moves until then
        self.least, self.halved_at = math.inf, 0  # violation last halved, and when

    def moves(self, most: int) -> int:
        """How many the next slice may make."""
        return max(min(self.per_slice, self.max_iter - self.n_iter, most), 0)

    def note(self, made: int, seconds: float) -> None:
        """A slice has been made."""
        self.n_iter += made
        self.note_speed(made, seconds)

    def limit(self) -> Status | None:
        """The limit that has been met, if any."""
        return super().limit() or (Status.STALLED if self._is_stalled() else None)

    def note_violation(self, violation: float) -> None:
        """Remember when a violation was first as small as this."""
        if 0.0 < violation < math.inf:
            self.reached.setdefault(math.floor(math.log10(violation)), self.n_iter)
            if violation <= 0.5 * self.least:
                self.least, self.halved_at = violation, self.n_iter

    def _is_stalled(self) -> bool:
        if self.n_iter <= self.fewest or self.max_iter < NO_LIMIT:
            return False
        least = min(self.reached, default=0)
        earlier = [n for decade, n in self.reached.items() if decade <= least + DECADES]
        patience = self.fewest + PATIENCE * min(earlier, default=0)
        patience = max(patience, int(RECENTLY * self.halved_at))
        return self.n_iter > min(patience, self.most)
