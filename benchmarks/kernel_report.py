"""What do the timed fits add up to? Lines of tables, ratios, means and a slope."""

import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kernel_cases import CASES
from benchmarks.kernel_worker import OURS

REFERENCE = "scikit-learn"
OBJECTIVE_TARGET = 1e-5  # relative, from the best of the peers
HEADS = ["case", "library", "seconds", "/ maxmargin", "growth, MB", "peak, MB"]
HEADS += ["objective", "violation", "SVs", "test score"]
SUMMARY_HEADS = ["case", "fastest peer", "fastest peer / maxmargin"]
SUMMARY_HEADS += [f"{REFERENCE} / maxmargin", "objective", "within 1e-5"]


class Result(NamedTuple):
    """What is known of one library on one case; `found` is empty if it is not done."""

    case: str
    library: str
    ending: str  # done, cut or failed
    limit: float
    found: dict[str, Any]

    @property
    def is_done(self) -> bool:
        return "seconds" in self.found


class Ratio(NamedTuple):
    """A peer's seconds over ours, or the least they can be."""

    value: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.is_bound else ''}{self.value:.2f}"


# The table of all fits.


def cells_of(result: Result, ours: Result | None) -> list[str]:
    """A line of the table."""
    peer = None if result.library == OURS else ratio_of(result, ours)
    found = result.found
    return [
        result.case,
        result.library,
        show_seconds(result),
        "" if peer is None else str(peer),
        show(found.get("growth_mb"), ".0f"),
        show(found.get("peak_mb"), ".0f"),
        show(found.get("objective"), ".8g"),
        show(found.get("violation"), ".1e"),
        show(found.get("n_support"), "d"),
        show(found.get("score"), ".4f"),
    ]


def show(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def show_seconds(result: Result) -> str:
    if not result.is_done:
        return f"> {result.limit:g}" if result.ending == "cut" else result.ending
    seconds = result.found["seconds"]
    if CASES[result.case].group == "small":
        return f"{1000.0 * seconds:.3f} ms"
    return f"{seconds:.3f}" if seconds < 10.0 else f"{seconds:.1f}"


# Ratios.


def ratio_of(peer: Result | None, ours: Result | None) -> Ratio | None:
    """None where one of the two failed, or we were not done."""
    if peer is None or ours is None or not ours.is_done:
        return None
    if peer.is_done:
        return Ratio(peer.found["seconds"] / ours.found["seconds"])
    if peer.ending == "cut":
        return Ratio(peer.limit / ours.found["seconds"], is_bound=True)
    return None


def find(results: list[Result], case: str, library: str) -> Result | None:
    known = [r for r in results if (r.case, r.library) == (case, library)]
    return known[0] if known else None


def summarise(results: list[Result]) -> list[dict[str, Any]]:
    """What our fit of each case is beside its peers."""
    return [
        summary_of(case, results) for case in dict.fromkeys(r.case for r in results)
    ]


def summary_of(case: str, results: list[Result]) -> dict[str, Any]:
    ours = find(results, case, OURS)
    peers = [r for r in results if r.case == case and not r.library.startswith(OURS)]
    ratios = {peer.library: ratio_of(peer, ours) for peer in peers}
    known = {library: ratio for library, ratio in ratios.items() if ratio}
    fastest = min(known, key=lambda library: known[library].value, default=None)
    return {
        "case": case,
        "fastest_peer": fastest,
        "fastest": known[fastest] if fastest else None,
        "reference": ratios.get(REFERENCE),
        "objective": distance_of(ours, peers),
    }


def distance_of(ours: Result | None, peers: list[Result]) -> float | None:
    """(Ours - the best of the peers) / |the best|: negative if ours is better."""
    values = [p.found["objective"] for p in peers if "objective" in p.found]
    if ours is None or "objective" not in ours.found or not values:
        return None
    return (ours.found["objective"] - min(values)) / abs(min(values))


def summary_cells(summary: dict[str, Any]) -> list[str]:
    distance = summary["objective"]
    is_near = distance is not None and abs(distance) <= OBJECTIVE_TARGET
    verdict = "yes" if is_near else "no, better" if (distance or 0) < 0 else "NO"
    return [
        summary["case"],
        summary["fastest_peer"] or "",
        str(summary["fastest"] or ""),
        str(summary["reference"] or ""),
        show(distance, "+.1e"),
        "" if distance is None else verdict,
    ]


def mean_of(ratios: list[Ratio | None]) -> Ratio | None:
    """The geometric mean of those there are; a bound if one of them is."""
    known = [ratio for ratio in ratios if ratio]
    if not known:
        return None
    mean = math.exp(sum(math.log(ratio.value) for ratio in known) / len(known))
    return Ratio(mean, any(ratio.is_bound for ratio in known))


# Growth with the rows.


def slope_of(results: list[Result], library: str) -> float | None:
    """d log(seconds) / d log(rows) over the large cases of covtype."""
    points = [
        (r.found["rows"], r.found["seconds"])
        for r in results
        if r.library == library and r.is_done and is_of_growth(r.case)
    ]
    if len(points) < 2:
        return None
    rows, seconds = np.log(points).T
    return float(np.polyfit(rows, seconds, 1)[0])


def is_of_growth(name: str) -> bool:
    case = CASES[name]
    return case.group == "large" and case.set == "covtype"
