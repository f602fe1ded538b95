"""What does a search of a grid leave behind? A line for every point, and a picture."""

import re
from contextlib import suppress
from pathlib import Path

from maxmargin.cli.console import Failure, warn
from maxmargin.cli.grid_plan import Point

N_CONTOURS = 10


def log_line(point: Point, rate: float) -> str:
    """A point and its rate, in grid.py's words."""
    C, gamma = point
    parts = [] if C is None else [f"log2c={C}"]
    parts += [] if gamma is None else [f"log2g={gamma}"]
    return " ".join([*parts, f"rate={rate}\n"])


def known_rates(path: str | None) -> dict[Point, float]:
    """Points and rates of an earlier search.

    A last line without its end was being written when that search was stopped: it may
    say anything, so it is cut off, and its point is searched again.
    """
    known: dict[Point, float] = {}
    if path is None:
        return known
    text = Path(path).read_text(encoding="ascii", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    last = text[len(whole) :]
    for line in (last, *whole.splitlines()[:1]):
        if line and not _begins_a_result(line):
            raise Failure(f"{path} is no file of results of grid: {line[:40]!r}")
    if last:
        Path(path).write_text(whole, encoding="ascii", errors="replace")
    for line in whole.splitlines():
        found = dict(re.findall(r"(log2c|log2g|rate)=([-+.\deE]+)", line))
        try:
            numbers = {name: float(text) for name, text in found.items()}
        except ValueError:
            warn(f"WARNING: {path}: not understood: {line!r}")
            continue
        if "rate" in numbers:
            point = numbers.get("log2c"), numbers.get("log2g")
            known[point] = numbers["rate"]
    return known


def _begins_a_result(text: str) -> bool:
    """Whether a line of results may begin so."""
    names = ("log2c=", "log2g=")
    return text.startswith(names) or any(name.startswith(text) for name in names)


def draw_rates(rates: dict[Point, float], path: str, title: str) -> None:
    """Contours of the rates over log2 C and log2 gamma, where matplotlib is there."""
    with suppress(ImportError):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        places = sorted((C, g) for C, g in rates if C is not None and g is not None)
        Cs, gammas = sorted({C for C, _ in places}), sorted({g for _, g in places})
        if len(Cs) < 2 or len(gammas) < 2 or len(places) < len(Cs) * len(gammas):
            return  # no surface to draw contours on
        heights = [[rates[C, g] for C in Cs] for g in gammas]
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(title=title, xlabel="log2(C)", ylabel="log2(gamma)")
        figure.colorbar(axes.contourf(Cs, gammas, heights, N_CONTOURS), label="rate")
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            warn(f"WARNING: no picture: {error}")
