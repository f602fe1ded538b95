"""Do pairs of classes that share kernel values get the values they would compute?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from maxmargin import SVC, NuSVC
from maxmargin._threads import one_blas_thread
from maxmargin.data.labels import encode_labels
from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial, VectorGram
from maxmargin.kernels.arena import ROW_COSTS
from maxmargin.kernels.classes import (
    BlockGram,
    BlockGrams,
    PairGram,
    PanelGrams,
    Sizes,
    share_classes,
)
from maxmargin.kernels.gram import Gram, gram_block
from maxmargin.kernels.pair_panels import PairPanels
from maxmargin.kernels.panel_rows import PanelRows
from maxmargin.models.multiclass import in_pair, share_between_pairs
from maxmargin.solvers import Options
from maxmargin.solvers.tuning import TUNING

Floats = npt.NDArray[np.float64]

COUNTS = (90, 130, 101)  # no whole panels, nor whole strips
ENOUGH = Sizes(10, 1000, 1 << 30, ROW_COSTS.short)
KINDS = ["narrow", "wide", "wider", "sparse", "cubic"]


def draw(kind: str) -> tuple[VectorGram, list[npt.NDArray[np.intp]], Any]:
    """K of three classes in any order, who is in which, and their rows."""
    rng = np.random.default_rng(0)
    d = {"narrow": 7, "wide": 400, "wider": 1100}.get(kind, 9)
    X: Any = rng.normal(size=(sum(COUNTS), d)) / np.sqrt(d)
    if kind == "sparse":
        X = sp.random(sum(COUNTS), 50_000, 0.002, format="csr", rng=rng)
    code = rng.permutation(np.repeat(np.arange(3), COUNTS))
    kernel = Polynomial(0.5, 1.0, 3) if kind == "cubic" else RBF(0.7)
    members = [np.flatnonzero(code == c) for c in range(3)]
    return VectorGram(kernel, as_rows(X)), members, X


def pair_of(kind: str, sizes: Sizes = ENOUGH) -> tuple[Gram, Gram]:
    """Two classes, sharing what they can; and the same by themselves."""
    gram, members, _ = draw(kind)
    shared = share_classes(gram, members, sizes)
    return shared.of(0, 2), gram.take(shared.index(0, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_to_ask_give_the_kernel(kind: str) -> None:
    pair, alone = pair_of(kind)
    everything, some = np.arange(pair.n), np.array([180, 3, 95, 0, 89, 90])
    columns, weight = np.array([2, 50, 89, 90, 133, 190]), np.linspace(-1, 1, pair.n)
    K = gram_block(alone, everything, everything)

    before = gram_block(pair, some, columns)
    whole = gram_block(pair, everything, everything)

    assert isinstance(pair, BlockGram if kind not in ("narrow", "wide") else PairGram)
    np.testing.assert_allclose(before, K[np.ix_(some, columns)], atol=1e-12)
    np.testing.assert_allclose(whole, K, atol=1e-12)
    np.testing.assert_allclose(gram_block(pair, some, columns), before, atol=1e-12)
    np.testing.assert_allclose(gram_block(pair, some, everything), K[some], atol=1e-12)
    np.testing.assert_allclose(pair.diagonal(), K.diagonal(), atol=1e-12)
    assert pair.bound() >= K.max() - 1e-12
    for rows in (everything, np.sort(some)):
        for there in (everything, columns):
            found, sums = pair.sums(rows, weight[rows], there), weight[rows] @ K[rows]
            np.testing.assert_allclose(found, sums[there], atol=1e-10)


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_shared_float32_values_are_those_computed_alone(kind: str) -> None:
    pair, _ = pair_of(kind)
    single = pair.provider()
    assert isinstance(single, PairPanels if kind == "wide" else PanelRows)
    joined = single.joined() if isinstance(single, PairPanels) else single
    everything = np.arange(pair.n)
    out, again, turned = np.empty((3, pair.n, pair.n), dtype=np.float32)

    single.fill_square(out)
    joined.fill(everything, everything, again)
    joined.fill(everything[::-1], everything[::-1], turned)

    np.testing.assert_array_equal(out, again)
    np.testing.assert_array_equal(out, turned[::-1, ::-1])
    np.testing.assert_array_equal(out, out.T)
    K = gram_block(pair, everything, everything)
    assert np.all(np.abs(out - K) <= single.errors[:, None])


@pytest.mark.parametrize("kind", ["wide", "sparse"])
def test_a_square_does_not_depend_on_which_pair_came_first(kind: str) -> None:
    gram, members, _ = draw(kind)
    one, other = (share_classes(gram, members, ENOUGH) for _ in range(2))
    n = len(members[0]) + len(members[2])
    found = np.empty((2, n, n), dtype=np.float32)

    for out, grams, first in zip(found, (one, other), ((0, 1), (1, 2)), strict=True):
        room = np.empty((grams.of(*first).n,) * 2, dtype=np.float32)
        _fill_square(grams.of(*first), room)
        _fill_square(grams.of(0, 2), out)

    np.testing.assert_array_equal(*found)


def _fill_square(gram: Gram, out: npt.NDArray[np.float32]) -> None:
    single, everything = gram.provider(), np.arange(gram.n)
    if single is None:
        gram.fill(everything, everything, out)
    else:
        single.fill_square(out)


@pytest.mark.parametrize("kind", ["wide", "sparse"])
def test_classes_share_as_far_as_memory_goes(kind: str) -> None:
    gram, members, _ = draw(kind)
    price = share_classes(gram, members, ENOUGH).n_bytes

    less = share_classes(gram, members, ENOUGH._replace(n_bytes=price - 1))
    none = share_classes(gram, members, ENOUGH._replace(n_bytes=-5))

    assert isinstance(less, PanelGrams if kind == "wide" else BlockGrams)
    assert 0 < less.n_bytes < price
    assert isinstance(less.of(0, 2), PairGram)  # the two smaller classes
    assert isinstance(less.of(0, 1), VectorGram)
    assert none.n_bytes == 0
    assert isinstance(none.of(0, 2), VectorGram)


def test_small_pairs_and_linear_kernels_share_nothing() -> None:
    gram, members, X = draw("wide")
    linear = share_classes(VectorGram(Linear(), as_rows(X)), members, ENOUGH)
    small = share_classes(gram, members, ENOUGH._replace(fewest=1000))

    assert linear.n_bytes == small.n_bytes == 0
    assert isinstance(linear.of(0, 1), VectorGram)
    assert isinstance(small.of(0, 1), VectorGram)


def test_memory_for_sharing_is_taken_from_the_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("maxmargin.models.multiclass.count_cores", lambda: 2)
    gram, members, _ = draw("wide")
    code = np.empty(gram.n, dtype=np.intp)
    for c, own in enumerate(members):
        code[own] = c
    labels = encode_labels(code)
    pairs = TUNING.pairs._replace(max_shared_samples=0)
    tuning = TUNING._replace(pairs=pairs, min_decomposed=10)
    options = Options(cache_bytes=64 << 20, tuning=tuning)

    grams, given = share_between_pairs(gram, labels, options)
    tight, as_before = share_between_pairs(
        gram, labels, replace(options, cache_bytes=1 << 18)
    )

    assert grams.n_bytes > 0
    assert given.cache_bytes == options.cache_bytes - grams.n_bytes // 2
    assert (tight.n_bytes, as_before.cache_bytes) == (0, 1 << 18)


def test_folds_hold_out_the_same_rows_in_another_order() -> None:
    rows = np.array([2, 5, 9, 1, 4, 7])

    (fold,) = in_pair([np.array([0, 3, 5])], rows)

    assert set(rows[fold]) == {1, 5, 9}
    assert np.all(np.diff(fold) > 0)


def digits(kind: str) -> tuple[Any, npt.NDArray[np.intp], Any]:
    """Three classes that overlap, some hundred samples each, and a kernel."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, size=1000)
    d = {"wide": 500, "sparse": 40}.get(kind, 12)
    X = rng.normal(size=(1000, d)) + 2.0 * np.eye(3, d)[y]
    if kind == "sparse":
        X = sp.csr_matrix(np.where(np.abs(X) > 1.2, X, 0.0))
    return X, y, "poly" if kind == "cubic" else "rbf"


@pytest.mark.parametrize("machine", [SVC(C=5.0), NuSVC(nu=0.2)])
@pytest.mark.parametrize("kind", ["narrow", "wide", "sparse", "cubic"])
def test_machines_are_optimal_and_threads_change_no_byte(
    kind: str, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, kernel = digits(kind)
    monkeypatch.setattr("maxmargin.data.rows.SMALL_CELLS", 0)
    machine.set_params(kernel=kernel, gamma="scale", tol=1e-4)

    one = machine.set_params(n_jobs=1).fit(X, y)
    coef, intercept = one._dual_coef_, one.intercept_
    two = machine.set_params(n_jobs=2).fit(X, y)

    naive.assert_optimal(two, X, y)
    np.testing.assert_array_equal(naive.dense(coef), naive.dense(two._dual_coef_))
    np.testing.assert_array_equal(intercept, two.intercept_)


@pytest.mark.parametrize("kernel", [RBF(0.7), Laplacian(0.3)])
def test_blocks_serve_every_kernel_of_vectors(kernel: Any) -> None:
    _, members, X = draw("wider" if kernel == RBF(0.7) else "narrow")
    gram = VectorGram(kernel, as_rows(X))
    everything = np.arange(len(members[0]) + len(members[1]))

    with one_blas_thread():
        grams = share_classes(gram, members, ENOUGH)
        found = gram_block(grams.of(0, 1), everything, everything)
        alone = gram_block(gram.take(grams.index(0, 1)), everything, everything)

    assert isinstance(grams, BlockGrams)
    np.testing.assert_allclose(found, alone, atol=1e-12)
