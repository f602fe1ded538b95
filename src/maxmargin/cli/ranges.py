"""How are scaling factors kept in a file? (LIBSVM's svm-scale -s and -r.)

y               only where targets are scaled too
lower upper
min max
x
lower upper
index min max   one line for each feature that varies, counted from 1
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.cli.console import Failure, written
from maxmargin.data.scaling import Scaling
from maxmargin.typing import IntVector

MAX_INDEX = 2**31 - 1  # LIBSVM's indices are C's int


class TargetScaling(NamedTuple):
    """From [low, high] to [lower, upper]."""

    lower: float
    upper: float
    low: float
    high: float


class Ranges(NamedTuple):
    """What a file of ranges holds; column j of `features` stands for indices[j]."""

    indices: IntVector  # ascending: only features that occur, however large their index
    features: Scaling
    target: TargetScaling | None


def write_ranges(path: str, ranges: Ranges) -> None:
    """Write in svm-scale's format; features that do not vary are left out."""
    x, y = ranges.features, ranges.target
    with written(path, f"can't open file {path}") as stream:
        if y is not None:
            stream.write(f"y\n{y.lower:.17g} {y.upper:.17g}\n")
            stream.write(f"{y.low:.17g} {y.high:.17g}\n")
        stream.write(f"x\n{x.lower:.17g} {x.upper:.17g}\n")
        for j in np.flatnonzero(x.varies & (ranges.indices > 0)):  # it counts from 1
            stream.write(f"{ranges.indices[j]} {x.low[j]:.17g} {x.high[j]:.17g}\n")


def read_ranges(path: str) -> Ranges:
    """Read svm-scale's format; a feature without a line does not vary."""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise Failure(f"can't open file {path}") from error
    lines = _Lines(path, text)
    target = None
    heading = lines.heading()
    if heading == "y":
        target = TargetScaling(*lines.numbers(2), *lines.numbers(2))
        heading = lines.heading()
    if heading != "x":
        raise lines.wrong("expected a line with x")
    lower, upper = lines.numbers(2)
    rows = dict(lines.features())
    index = np.array(sorted(rows), dtype=np.intp)
    bounds = np.array([rows[j] for j in sorted(rows)]).reshape(-1, 2)
    features = Scaling(lower, upper, bounds[:, 0].copy(), bounds[:, 1].copy())
    return Ranges(index, features, target)


class _Lines:
    """The lines of a file of ranges, one after the other."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.rest = enumerate(text.splitlines(), start=1)
        self.number = 0

    def wrong(self, reason: str) -> Failure:
        return Failure(
            f"Wrong format in scaling factor file {self.path} at line {self.number}: "
            f"{reason}"
        )

    def words(self) -> list[str]:
        self.number, line = next(self.rest, (self.number + 1, ""))
        return line.split()

    def heading(self) -> str:
        return "".join(self.words()[:1])

    def numbers(self, count: int) -> list[float]:
        words = self.words()
        try:
            found = [float(word) for word in words]
        except ValueError:
            raise self.wrong("expected numbers") from None
        if len(found) != count or not np.isfinite(found).all():
            raise self.wrong(f"expected {count} finite numbers")
        return found

    def features(self) -> Iterator[tuple[int, tuple[float, float]]]:
        """Each line's index, with its smallest and largest value."""
        for number, line in self.rest:
            self.number, words = number, line.split()
            if not words:
                continue
            if len(words) != 3 or not words[0].isdigit():
                raise self.wrong("expected an index, a minimum and a maximum")
            try:
                low, high = float(words[1]), float(words[2])
            except ValueError:
                raise self.wrong("expected numbers") from None
            if not 0 < int(words[0]) <= MAX_INDEX or not np.isfinite([low, high]).all():
                raise self.wrong("index out of range, or a number is not finite")
            yield int(words[0]), (low, high)
