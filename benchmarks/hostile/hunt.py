"""How is one hostile problem run? Fitted under a limit, judged, compared.

The limit is max(5 s, 20 times scikit-learn's CPU time for the same fit).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.hostile import verdict
from benchmarks.hostile.problems import MOST_ROWS, Problem, make_problem
from benchmarks.hostile.verdict import GOOD, Verdict, judge_answer
from benchmarks.hostile.worker import OURS, PEER, serve
from benchmarks.watch import Watched

LEAST = 5.0  # CPU seconds that any fit may take
FACTOR = 20.0  # of scikit-learn's seconds that a fit may take
PEER_LIMIT = 20.0  # seconds after which scikit-learn is taken not to end
GRACE = 60.0  # seconds, and ten times the limit: a busy machine slows the clock
COMPARED = 1.0  # seconds that scikit-learn gets where only its objective is asked for


class Hunt:
    """The two workers, and what is done with each problem."""

    def __init__(
        self,
        seed: int,
        *,
        most_rows: int = MOST_ROWS,
        peer_limit: float = PEER_LIMIT,
        is_compared: bool = True,
    ) -> None:
        self.seed, self.most_rows = seed, most_rows
        self.peer_limit, self.is_compared = peer_limit, is_compared
        self.ours, self.peer = Watched(serve, OURS), Watched(serve, PEER)

    def __enter__(self) -> Hunt:
        return self

    def __exit__(self, *error: object) -> None:
        self.ours.stop()
        self.peer.stop()

    def run(self, index: int) -> dict[str, Any]:
        """Fit and judge one problem."""
        problem = make_problem(self.seed, index, self.most_rows)
        found, limit = self.fit_in_time(index)
        judged = judge_answer(problem, found)
        if found["kind"] == "fitted" and judged.word in GOOD:
            judged = self.compared(problem, index, found, judged)
        return {
            "index": index,
            "machine": problem.machine,
            "kernel": problem.parameters["kernel"],
            "word": judged.word,
            "status": judged.status,
            "detail": judged.detail,
            "seconds": found.get("seconds"),
            "limit": limit,
            "n_iter": int(np.max(found.get("attributes", {}).get("n_iter_", 0))),
            "problem": line_of(problem),
        }

    def fit_in_time(self, index: int) -> tuple[dict[str, Any], float]:
        """Our answer, and its limit; the peer runs only where 5 s are not enough."""
        found, limit = self.fit(self.ours, index, LEAST), LEAST
        if found["kind"] == "late":
            peer = self.fit(self.peer, index, self.peer_limit)
            limit = max(LEAST, FACTOR * peer.get("seconds", 0.0))
            if limit > LEAST:
                found = self.fit(self.ours, index, limit)
        return found, limit

    def compared(
        self, problem: Problem, index: int, found: dict[str, Any], judged: Verdict
    ) -> Verdict:
        """The verdict, unless scikit-learn's point has a lower objective."""
        if not self.is_compared or not verdict.is_comparable(problem):
            return judged
        peer = self.fit(self.peer, index, COMPARED)
        if peer["kind"] != "fitted":
            return judged
        excess = verdict.excess_over(problem, found, peer)
        is_worse = excess and judged.status == "CONVERGED"
        return Verdict(verdict.WORSE, excess, judged.status) if is_worse else judged

    def fit(self, worker: Watched, index: int, limit: float) -> dict[str, Any]:
        """What a worker finds within so many CPU seconds."""
        question = self.seed, index, self.most_rows, limit
        found = worker.ask(question, 10 * limit + GRACE)
        if found.get("seconds", 0.0) > limit:
            found = {"kind": "late", "seconds": found["seconds"]}
        return {"seconds": limit} | found


def line_of(problem: Problem) -> str:
    """A problem in words."""
    n, d = problem.X.shape
    settings = ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in problem.parameters.items()
        if name != "class_weight"
    )
    weights = "" if problem.sample_weight is None else ", sample weights"
    if problem.parameters.get("class_weight") is not None:
        weights += ", class weights"
    return f"{problem.machine}({settings}), {n} x {d}: {problem.traits}{weights}"
