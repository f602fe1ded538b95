"""How is the joint machine for all classes trained? Sample by sample, where it hurts.

Sequential dual descent (Keerthi, Sundararajan, Chang, Hsieh & Lin, KDD 2008): sweeps in
random order, each visit an exact step for all classes of one sample. Near the end a few
samples, mostly near duplicates that pass their shares to and fro, are far behind all
others; so after each sweep those whose violation is above the average are visited
again and again, until none is. Samples that firmly rest on one class take naps.
"""

import time
from typing import NamedTuple

import numpy as np

from maxmargin.data.lanes import LANES, lane_zeros
from maxmargin.problems.crammer_singer import (
    CrammerSingerProblem,
    alpha_of,
    dual_objective,
    lane_offsets,
    prove,
    shares_of,
    weigh,
    weights_by_class,
)
from maxmargin.problems.linear import TINY
from maxmargin.solvers.crammer_singer_moves import Moves, Pace, pursue, sweep
from maxmargin.solvers.crammer_singer_newton import Outlook, finish
from maxmargin.solvers.dcd_sweep import shuffle
from maxmargin.solvers.newton import Iterate
from maxmargin.solvers.result import Options, Solution, Status, proven_solution
from maxmargin.solvers.watch import Watch
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

HOT = 1.0  # root mean squares of all violations: samples above are pursued
PURSUIT = 1.0  # visits of a pursuit, in those of a sweep, before all are looked at
WIDE_EVERY = 4  # rounds: in the others samples meet the classes that matter to them
FIRST_WIDE = 2  # rounds, before that is known
EAGER = 1.2  # of tol: what the visits of a sweep may see when a proof is tried after it
CLOSER = 0.8  # of that, after a proof that failed
NOISE = 1e-13  # of the largest slope: violations that rounding may cause
STALLED = 3  # proofs that fail although sweeps see nothing but noise


def solve_crammer_singer(
    problem: CrammerSingerProblem, options: Options, start: FloatVector | None = None
) -> Solution:
    """Solve to `options.tol`: violation, and gap relative to the primal objective.

    `weight` has the classes one after the other, `beta` the samples. A sweep costs the
    stored values of X times the number of classes.

    Parameters
    ----------
    problem : CrammerSingerProblem
        Samples, classes and costs.
    options : Options
        Tolerance, limits, seed, callback.
    start : array of shape (n * n_classes,), optional
        `beta` of a former fit.
    """
    descent = _Descent(problem, options, start)
    found, watch = descent.run(), descent.watch
    if found.status is Status.MAX_ITER and watch.limit() is None:
        found = finish(problem, found.dual, options.tol, watch)
    proof, alpha = found.certificate, alpha_of(problem, found.dual)
    watch.report(proof.violation, proof.primal, problem.design.n, is_last=True)
    weight = weights_by_class(proof.weight, problem.n_classes)
    proof = proof._replace(weight=weight)
    return proven_solution(alpha, proof, found.status, watch.n_iter)


class _Seen(NamedTuple):
    """What the visits of one sweep saw: about what a proof would."""

    violation: float
    gap: float
    noise: float  # violations that may be rounding
    is_all: bool  # whether every sample met every class


class _Descent:
    """Shares, the weights they stand for, and the rounds that improve them."""

    def __init__(
        self, problem: CrammerSingerProblem, options: Options, start: FloatVector | None
    ) -> None:
        self.problem, self.tol = problem, options.tol
        self.watch = Watch(options)
        self.moves, self.is_warm = _first_moves(problem, start), start is not None
        self.movable = np.flatnonzero((self.moves.norm > 0.0) & (problem.cost > 0.0))
        self.random = np.array([2 * options.seed + 1], dtype=np.uint64)
        self.calm = np.inf  # violations that are nothing special
        self.n_rounds = 0
        self.n_wide = FIRST_WIDE  # wide rounds to come at once
        self.eager, self.n_stalled = EAGER, 0
        self.outlook = Outlook(problem)

    def run(self) -> Iterate:
        """Round after round until a proof holds; MAX_ITER if others would be faster."""
        status = self.watch.limit()
        if self.is_warm and (here := self._look()).certificate.meets(self.tol):
            return here
        while status is None:
            seen = self._round()
            status = self.watch.limit()
            if self._is_slow(seen):
                break
            if not self._is_near(seen):
                continue
            here = self._look()
            self.n_stalled += seen.is_all and seen.violation <= seen.noise
            if here.certificate.meets(self.tol):
                return here
            if self.n_stalled >= STALLED:
                return here._replace(status=Status.PRECISION_LIMIT)
            self._go_on_from(here.weight, seen.is_all)
        here = self._look()
        if here.certificate.meets(self.tol):
            return here
        return here._replace(status=status or Status.MAX_ITER)

    def _look(self) -> Iterate:
        """The shares, and what they prove."""
        share = self._shares()
        proof = prove(self.problem, share)
        return Iterate(share, proof.weight, proof)

    def _round(self) -> _Seen:
        """A sweep over all that are awake, and a pursuit of those that stand out."""
        order = self._wake()
        is_wide = self.n_wide > 0 or self.n_rounds % WIDE_EVERY == 0
        tally = np.zeros(4)
        self._sweep(order, self._pace(is_wide, np.inf), tally)
        square, gap, violation, scale = tally.tolist()
        self.calm = float(np.sqrt(square / max(len(order), 1)))
        self._pursue(self._pace(False, HOT * self.calm), int(PURSUIT * len(order)))
        self.n_wide -= is_wide
        self.n_rounds += 1
        self.watch.n_iter = self.outlook.n_visits // max(len(self.movable), 1)
        if self.watch.options.callback is not None:
            self.watch.report(violation, gap + self._dual(), len(order))
        is_all = is_wide and len(order) == len(self.movable)
        return _Seen(violation, gap, NOISE * scale, is_all)

    def _wake(self) -> IntVector:
        """Those whose nap is over, in random order."""
        nap = self.moves.nap
        order = self.movable[nap[self.movable] == 0]
        np.maximum(nap - 1, 0, out=nap)
        shuffle(order, len(order), self.random)
        return order

    def _sweep(self, order: IntVector, pace: Pace, tally: FloatVector) -> None:
        rows, first = self.problem.design.rows, 0
        while first < len(order) and not self.watch.is_stopped():
            part = order[first : first + self.watch.per_slice]
            began = time.monotonic()
            sweep(rows, self.moves, pace, part, tally)
            self.outlook.n_visits += len(part)
            self.watch.note_speed(len(part), time.monotonic() - began)
            first += len(part)

    def _pursue(self, pace: Pace, budget: int) -> None:
        rows, memory = self.problem.design.rows, self.moves.memory
        hot = self.movable[memory[self.movable] > pace.threshold]
        allowed = self.watch.max_iter * len(self.movable)
        budget = min(budget, allowed - self.outlook.n_visits)
        while len(hot) and budget > 0 and not self.watch.is_stopped():
            share = min(budget, self.watch.per_slice)
            n_left, n_visits = pursue(rows, self.moves, pace, hot, self.random, share)
            hot = hot[:n_left]
            budget -= n_visits
            self.outlook.n_visits += n_visits

    def _pace(self, is_wide: bool, threshold: float) -> Pace:
        return Pace(self.problem.design.bias, is_wide, self.calm, threshold)

    def _dual(self) -> float:
        own = self.moves.share[
            np.arange(self.problem.design.n), self.moves.code % LANES
        ]
        return dual_objective(own, self.moves.W)

    def _is_near(self, seen: _Seen) -> bool:
        if seen.violation <= seen.noise:
            return True
        tol = self.eager * self.tol
        is_near = seen.violation <= tol
        return is_near and seen.gap <= tol * (seen.gap + self._dual())

    def _is_slow(self, seen: _Seen) -> bool:
        """Whether Newton's method would arrive before."""
        if not self.outlook.is_time(self.n_rounds):
            return False
        gap = seen.gap / max(seen.gap + self._dual(), TINY)
        distance = max(gap, seen.violation) / max(self.tol, TINY)
        return self.outlook.is_dim(self.calm, distance)

    def _go_on_from(self, W: FloatMatrix, is_warned: bool) -> None:
        """Everybody wakes up, and the weights are free of rounding errors again."""
        self.moves = self.moves._replace(W=W)
        self.moves.nap[:] = 0
        self.n_wide = 1
        if is_warned:
            self.eager *= CLOSER

    def _shares(self) -> FloatMatrix:
        """Shares in the order of the classes."""
        listed, packed = self.moves.listed, self.moves.share
        share = lane_zeros(len(packed), self.problem.n_classes)
        at = listed[:, :, None]
        np.put_along_axis(_in_blocks(share), at, _in_blocks(packed), axis=1)
        return share


def _first_moves(problem: CrammerSingerProblem, start: FloatVector | None) -> Moves:
    design = problem.design
    share = shares_of(problem, start)
    packed = lane_zeros(*share.shape)
    listed = _own_first(problem.code // LANES, share.shape[1] // LANES)
    _in_blocks(packed)[:] = np.take_along_axis(
        _in_blocks(share), listed[:, :, None], axis=1
    )
    return Moves(
        W=weigh(problem, share),
        share=packed,
        listed=listed,
        n_live=np.full(design.n, listed.shape[1]),
        code=problem.code.astype(np.intp),
        cost=problem.cost,
        norm=design.squared_norms,
        offset=lane_offsets(problem.n_classes),
        memory=np.zeros(design.n),
        nap=np.zeros(design.n, dtype=np.intp),
        length=np.zeros(design.n, dtype=np.intp),
    )


def _own_first(own: IntVector, n_blocks: int) -> IntVector:
    """All blocks for every sample, that of its own class in front."""
    listed = np.tile(np.arange(n_blocks), (len(own), 1))
    listed[np.arange(len(own)), own] = 0
    listed[:, 0] = own
    return listed


def _in_blocks(share: FloatMatrix) -> FloatMatrix:
    return share.reshape(len(share), -1, LANES)
