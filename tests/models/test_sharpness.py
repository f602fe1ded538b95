"""Is the power of coupled probabilities the likeliest, and from samples held out?"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize_scalar

from maxmargin.data.labels import Labels
from maxmargin.data.rows import as_rows
from maxmargin.kernels.classes import PairGrams
from maxmargin.kernels.functions import RBF
from maxmargin.kernels.gram import Gram, MatrixGram, VectorGram, gram_block
from maxmargin.models import sharpness
from maxmargin.models.calibration import CalibratedPair, calibrate_pair
from maxmargin.models.held_out import Solved, stratified_folds
from maxmargin.models.machine import fit_decision
from maxmargin.models.multiclass import PairFit, PairMachines, fit_pairs
from maxmargin.models.probability import sharpen
from maxmargin.models.sharpness import calibrate_power, fit_power, held_out_of_all
from maxmargin.problems.classification import c_svc
from maxmargin.solvers import Options

Floats = npt.NDArray[np.float64]


def likelihood(power: float, shares: Floats, code: Any, weight: Floats) -> float:
    """What the power minimises, sample by sample."""
    total = power - 1.0 - math.log(power)
    for p, k, w in zip(shares, code, weight, strict=True):
        total -= w * math.log(p[k] ** power / sum(q**power for q in p))
    return total


def draw(seed: int, n: int = 80, n_classes: int = 4) -> tuple[Floats, Any, Floats]:
    """Labels that follow probabilities of which the square roots are told."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(n_classes, 0.7), n) + 1e-9
    code = np.array([random.choice(n_classes, p=p / p.sum()) for p in shares])
    return sharpen(shares, 0.5), code, random.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("seed", range(5))
def test_a_power_is_the_likeliest(seed: int) -> None:
    shares, code, weight = draw(seed)

    found = fit_power(shares, code, weight)

    best = minimize_scalar(
        likelihood, args=(shares, code, weight), bounds=(0.01, 20), method="bounded"
    )
    assert found == pytest.approx(best.x, abs=1e-4)


def test_what_was_blunted_is_sharpened() -> None:
    shares, code, _ = draw(0, n=4000)

    assert fit_power(shares, code, np.ones(4000)) == pytest.approx(2.0, abs=0.15)
    squared = sharpen(shares, 4.0)
    assert fit_power(squared, code, np.ones(4000)) == pytest.approx(0.5, abs=0.05)


def test_weights_count_as_copies() -> None:
    shares, code, _ = draw(3)
    copies = np.random.default_rng(0).integers(1, 4, len(code))

    weighted = fit_power(shares, code, copies.astype(float))

    many = np.repeat(shares, copies, axis=0), np.repeat(code, copies)
    repeated = fit_power(*many, np.ones(int(copies.sum())))
    assert weighted == pytest.approx(repeated, rel=1e-9)


def test_nothing_makes_a_power_vanish_or_run_away() -> None:
    right = np.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]] * 50)
    code = np.array([0, 1, 2] * 50)
    even = np.full((150, 3), 1 / 3)

    surer = fit_power(right, code, np.ones(150))
    unsure = fit_power(right, (code + 1) % 3, np.ones(150))

    assert 1.5 < surer < 100.0
    assert 0.0 < unsure < 0.1
    assert fit_power(even, code, np.ones(150)) == pytest.approx(1.0)


@pytest.mark.parametrize("power", [0.3, 1.0, 2.5])
def test_sharpened_probabilities_keep_their_order(power: float) -> None:
    shares = np.random.default_rng(1).dirichlet(np.full(5, 0.3), 200)
    shares[0] = [0, 1, 0, 0, 0]

    found = sharpen(shares, power)

    naive = [[q**power / sum(r**power for r in p) for q in p] for p in shares]
    assert np.allclose(found, naive, rtol=0, atol=1e-12)
    assert (found.argmax(axis=1) == shares.argmax(axis=1)).all()


def test_rows_are_spread_over_classes() -> None:
    code = np.array([0] * 60 + [1] * 30 + [2] * 10)[
        np.random.default_rng(0).permutation(100)
    ]

    some = sharpness.spread(code, 50)

    assert len(np.unique(some)) == 50
    assert np.bincount(code[some]).tolist() == [30, 15, 5]
    assert sorted(sharpness.spread(code, 100)) == list(range(100))


# Decision values.


def machines_of(gram: Gram, code: Any) -> tuple[Labels, PairMachines, Any, Any]:
    """All pairs of classes, with their folds and sigmoids."""
    labels = Labels(np.unique(code), code)
    random = np.random.RandomState(0)
    told: dict[int, CalibratedPair] = {}
    folds: dict[int, Any] = {}

    def calibrate(solved: Solved, y: Floats, rows: Any, number: int) -> None:
        folds[number] = stratified_folds(code[rows], random)
        told[number] = calibrate_pair(solved, y, folds[number])

    def state_pairs(y: Floats, end: Any) -> tuple[Any, Any]:
        return partial(stated, y), fit_decision

    members = [np.flatnonzero(code == c) for c in labels.classes]
    fit = PairFit(np.ones(len(code)), state_pairs, Options(tol=1e-9), calibrate)
    pairs = fit_pairs(PairGrams(gram, members), labels, fit, 1)
    return labels, pairs, [told[k] for k in sorted(told)], folds


def stated(y: Floats, weight: Floats) -> Any:
    return c_svc(y, 3.0 * weight)


def blobs(n: int) -> tuple[Floats, Any]:
    random = np.random.default_rng(n)
    code = np.arange(n) % 4
    return random.normal(size=(n, 3)) + np.eye(4, 3)[code] * 2.0, code


def test_no_decision_is_by_a_machine_that_has_seen_the_sample() -> None:
    X, code = blobs(60)
    gram = VectorGram(RBF(0.4), as_rows(X))
    labels, pairs, told, folds = machines_of(gram, code)
    rows = np.arange(60)[::-1]

    found = held_out_of_all(gram, labels, pairs, told, rows)

    K = gram_block(gram, np.arange(60), np.arange(60))
    for number, (i, j) in enumerate(labels.pairs()):
        own = [np.flatnonzero(code == c) for c in (i, j)]
        of_pair = np.concatenate(own)
        others = np.setdiff1d(np.arange(60), of_pair)
        parts = [(of_pair, others)]
        parts += [(np.delete(of_pair, fold), of_pair[fold]) for fold in folds[number]]
        for seen, unseen in parts:
            y = np.where(code[seen] == i, 1.0, -1.0)
            inside = MatrixGram(np.ascontiguousarray(K[np.ix_(seen, seen)]))
            machine = fit_decision(
                stated(y, np.ones(len(y))), inside, Options(tol=1e-9)
            )
            values = K[np.ix_(unseen, seen)] @ machine.coef + machine.intercept
            assert np.abs(found[59 - unseen, number] - values).max() < 1e-6


def test_few_rows_at_a_time_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, code = blobs(60)
    gram = VectorGram(RBF(0.4), as_rows(X))
    labels, pairs, told, _ = machines_of(gram, code)
    whole = calibrate_power(gram, labels, pairs, told, np.ones(60))

    monkeypatch.setattr(sharpness, "BLOCK_ENTRIES", 100)
    in_parts = calibrate_power(gram, labels, pairs, told, np.ones(60))

    assert in_parts == pytest.approx(whole, rel=1e-9)
    assert whole != 1.0
