"""In which order does a grid of C and gamma become finer? (LIBSVM's grid.py.)

The middle of every range comes first, then the middles of its halves, so that a search
stopped early has seen the whole grid coarsely. Values are exponents of two; None stands
for a parameter that is not searched.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

Exponent: TypeAlias = float | None
Point: TypeAlias = tuple[Exponent, Exponent]
MAX_POINTS = 100_000  # more are a slip in a range, such as a step of 1e-9


class Steps(NamedTuple):
    """begin, begin + step, ... up to end."""

    begin: float
    end: float
    step: float

    def values(self) -> list[float]:
        """All of them; none where the step leads away from the end."""
        n_steps = (self.end - self.begin) / self.step
        if n_steps >= MAX_POINTS:
            raise ValueError(f"a range of more than {MAX_POINTS} values")
        found, value = [], self.begin
        while (self.end - value) * self.step >= 0:
            found.append(value)
            value += self.step
        return found


def middle_first(values: list[float]) -> list[float]:
    """The middle, then the halves in turn, each in this same order."""
    if len(values) < 2:
        return values
    middle = len(values) // 2
    halves = middle_first(values[:middle]), middle_first(values[middle + 1 :])
    mixed = [v for pair in zip_longest(*halves) for v in pair if v is not None]
    return [values[middle], *mixed]


def plan(C: Steps | None, gamma: Steps | None) -> Iterator[Point]:
    """Points of a rectangle that grows a column or a row at a time."""
    columns: list[Exponent] = [None] if C is None else [*middle_first(C.values())]
    rows: list[Exponent] = [None] if gamma is None else [*middle_first(gamma.values())]
    if not columns or not rows:
        return
    width = height = 0
    while width < len(columns) or height < len(rows):
        if width * len(rows) < height * len(columns):
            yield from ((columns[width], row) for row in rows[:height])
            width += 1
        else:
            yield from ((column, rows[height]) for column in columns[:width])
            height += 1
