"""How do the times of the libraries compare at a glance? Bars on a logarithmic axis."""

from pathlib import Path
from typing import Any

from benchmarks.kernel_report import Result

BAR = 0.8  # of the room of a case is filled with bars
COLOURS = {
    "maxmargin": "#c44e52",
    "maxmargin, 1 thread": "#e2a1a3",
    "scikit-learn": "#4c72b0",
    "scikit-learn-intelex": "#55a868",
    "libsvm-official": "#8c8c8c",
}


def draw_chart(results: list[Result], machine: str, path: Path) -> None:
    """Seconds of every library on every case, as a PNG; unfinished fits are hatched."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    shown = [result for result in results if seconds_of(result) is not None]
    if not shown:
        return
    cases = list(dict.fromkeys(result.case for result in shown))
    libraries = [name for name in COLOURS if any(r.library == name for r in shown)]
    inches = 1.6 + len(cases) * (0.12 + 0.17 * len(libraries))
    figure = Figure(figsize=(9.0, inches), layout="constrained")
    axes = figure.add_subplot()
    height = BAR / len(libraries)
    for result in shown:
        place = (libraries.index(result.library) + 0.5) * height - 0.5 * BAR
        draw_bar(axes, result, cases.index(result.case) + place, height)
    label_axes(axes, cases, [seconds_of(result) for result in shown])
    axes.set_title(f"Kernel machines: time to fit\n{machine}", fontsize=10)
    colours = [Patch(color=COLOURS[name], label=name) for name in libraries]
    figure.legend(
        handles=colours,
        loc="outside lower center",
        ncols=len(libraries),
        frameon=False,
    )
    figure.savefig(path, dpi=130)


def seconds_of(result: Result) -> float | None:
    """How long the bar is: up to the limit where a fit was cut off."""
    return result.found.get("seconds", result.limit if result.ending == "cut" else None)


def label_axes(axes: Any, cases: list[str], seconds: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(seconds) / 2.0, max(seconds) * 2.0)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(range(len(cases)), cases)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.set_xlabel("seconds to fit (logarithmic)")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def draw_bar(axes: Any, result: Result, middle: float, height: float) -> None:
    """One bar and its number."""
    seconds = seconds_of(result)
    axes.barh(
        middle,
        seconds,
        height=0.92 * height,
        color=COLOURS[result.library],
        alpha=1.0 if result.is_done else 0.45,
        hatch=None if result.is_done else "///",
    )
    text = f"{seconds:.3g}" if result.is_done else f"> {result.limit:g}"
    axes.annotate(
        text,
        (seconds, middle),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
    )
