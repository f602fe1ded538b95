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

NO_LIMIT = 1 << 60


class Pace(Watch):
    """A watch that counts moves, and knows when they lead nowhere."""

    def __init__(self, options: Options, n: int) -> None:
        super().__init__(options, NO_LIMIT)
        self.rule = rule = options.tuning.patience
        of_fit = min(rule.moves_of_fit, rule.slopes_of_fit // max(n, 1))
        least = max(rule.min_moves, rule.min_moves_per_variable * n)
        self.fewest = max(of_fit // options.n_problems, least)
        self.most = max(rule.max_moves, rule.max_moves_per_variable * n)
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
        last = min(self.reached, default=0) + self.rule.decades
        earlier = [n for decade, n in self.reached.items() if decade <= last]
        patience = self.fewest + self.rule.patience * min(earlier, default=0)
        patience = max(patience, int(self.rule.recently * self.halved_at))
        return self.n_iter > min(patience, self.most)
