"""Is every Gram matrix the kernel between its rows, however it is asked?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import naive
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from maxmargin._threads import one_blas_thread
from maxmargin.data import rows as layouts
from maxmargin.data.rows import SparseRows, as_rows
from maxmargin.errors import InvalidInput
from maxmargin.kernels import (
    RBF,
    Gram,
    Laplacian,
    Linear,
    MatrixGram,
    Polynomial,
    RowsGram,
    Sigmoid,
    VectorGram,
)
from maxmargin.kernels import gram as gram_room
from maxmargin.kernels.gram import call_kernel, gram_block, gram_of_function
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.source import compute_row, keep_samples

Floats = npt.NDArray[np.float64]

N = 70  # more than one tile of rows
KERNELS: dict[str, tuple[Any, Callable[..., Floats]]] = {
    "linear": (Linear(), naive.linear),
    "rbf": (RBF(0.7), partial(naive.rbf, gamma=0.7)),
    "sharp rbf": (RBF(1e4), partial(naive.rbf, gamma=1e4)),
    "laplacian": (Laplacian(0.3), partial(naive.laplacian, gamma=0.3)),
    "sigmoid": (Sigmoid(0.5, -0.2), partial(naive.sigmoid, gamma=0.5, coef0=-0.2)),
    "cubic": (
        Polynomial(0.5, 1.0, 3),
        partial(naive.polynomial, gamma=0.5, coef0=1.0, degree=3),
    ),
    "constant": (
        Polynomial(0.5, 1.0, 0),
        partial(naive.polynomial, gamma=0.5, coef0=1.0, degree=0),
    ),
}


def single(X: Floats) -> Any:
    return X.astype(np.float32)


def long_indices(X: Floats) -> Any:
    sparse = sp.csr_matrix(X)
    sparse.indices = sparse.indices.astype(np.int64)
    sparse.indptr = sparse.indptr.astype(np.int64)
    return sparse


LAYOUTS: dict[str, Callable[[Floats], Any]] = {
    "dense": np.asarray,
    "float32": single,
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "int64": long_indices,
}
KINDS = ["vectors", "sparse vectors", "matrix", "function"]


def draw(n: int = N, d: int = 5) -> Floats:
    """Half of the values are zero, one row is nothing else, two rows are equal."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, d)) < 0.5, rng.normal(size=(n, d)), 0.0)
    X[3], X[5] = 0.0, X[6]
    return X


@pytest.fixture
def stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not write small sparse sets out."""
    monkeypatch.setattr(layouts, "SMALL_CELLS", 0)
    monkeypatch.setattr(layouts, "DENSE_SHARE", 2.0)


def make(kind: str, X: Floats, kernel: str = "cubic") -> tuple[Gram, Floats]:
    """A Gram matrix of some kind, and all its values."""
    chosen, twin = KERNELS[kernel]
    K = twin(X, X)
    if kind == "matrix":
        return MatrixGram(K), K
    if kind == "function":
        return RowsGram(twin, X, np.arange(len(X))), K
    return VectorGram(chosen, as_rows(X if kind == "vectors" else sp.csr_matrix(X))), K


@pytest.mark.parametrize("kind", [*KINDS, "held"])
def test_all_columns_may_come_in_any_order(kind: str) -> None:
    X = draw()
    gram, K = make("matrix" if kind == "held" else kind, X)
    gram = HeldGram(K) if kind == "held" else gram
    everything, order = np.arange(N), np.random.default_rng(1).permutation(N)
    order[order == 0], order[0] = order[0], 0  # the first is where it was
    weight = np.linspace(-1.0, 1.0, N)

    assert_close(gram_block(gram, order, order), K[np.ix_(order, order)])
    assert_close(gram.sums(everything, weight, order), weight @ K[:, order])


@pytest.mark.boundscheck
@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_vectors_agree_with_their_twin(kernel: str, layout: str) -> None:
    chosen, twin = KERNELS[kernel]
    X = LAYOUTS[layout](draw())
    gram = VectorGram(chosen, as_rows(X))
    everything = np.arange(N)

    K = twin(naive.dense(X), naive.dense(X))

    is_sparse = layout not in ("dense", "float32")
    assert isinstance(gram.rows, SparseRows) == is_sparse
    assert gram.n == N
    assert_close(gram_block(gram, everything, everything), K)
    assert_close(gram.diagonal(), K.diagonal())
    assert np.abs(K).max() <= gram.bound() * (1 + 1e-12)


def assert_close(found: Floats, expected: Floats) -> None:
    assert found.dtype == np.float64
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * scale)


@pytest.mark.nojit
@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("layout", ["dense", "int64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_vectors_agree_with_their_twin_on_few_rows(kernel: str, layout: str) -> None:
    chosen, twin = KERNELS[kernel]
    X = draw(12)
    gram = VectorGram(chosen, as_rows(LAYOUTS[layout](X)))

    assert_close(
        gram_block(gram, np.arange(12), np.array([0, 3, 7])), twin(X, X[[0, 3, 7]])
    )


@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["cubic", "rbf"])
def test_sums_are_those_of_the_rows(kernel: str, kind: str) -> None:
    gram, K = make(kind, draw(), kernel)
    rows, columns = np.array([2, 40, 69]), np.array([0, 1, 33, 68])
    weight = np.array([0.5, -2.0, 3.0])

    assert_close(gram.sums(rows, weight, columns), weight @ K[np.ix_(rows, columns)])
    assert_close(gram.sums(rows, weight, np.arange(N)), weight @ K[rows])
    assert_close(gram.sums(rows[:0], weight[:0], columns), np.zeros(4))


@pytest.mark.parametrize("d", [1, 5, 300])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_sums_of_many_rows_are_exact(d: int, n_threads: int) -> None:
    X = np.random.default_rng(1).normal(size=(700, d)) / np.sqrt(d)
    K, weight = naive.rbf(X, X, gamma=0.7), np.linspace(-1.0, 1.0, 700)
    gram = VectorGram(RBF(0.7), as_rows(X), n_threads)

    assert_close(gram.sums(np.arange(700), weight, np.arange(700)), weight @ K)


@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("kind", KINDS)
def test_block_is_a_part_of_the_whole(kind: str) -> None:
    gram, K = make(kind, draw())
    rows, columns = np.array([40, 2, 2, 69]), np.array([0, 1, 33, 68])

    assert_close(gram_block(gram, rows, columns), K[np.ix_(rows, columns)])
    assert_close(gram_block(gram, rows, np.arange(N)), K[rows])
    assert_close(gram_block(gram, np.arange(N), np.arange(1, N)), K[:, 1:])


@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("kind", KINDS)
def test_take_is_a_gram_of_its_own(kind: str) -> None:
    gram, K = make(kind, draw())
    index = np.array([60, 3, 3, 17])

    part = gram.take(index)

    assert part.n == 4
    expected = K[np.ix_(index, index)]
    assert_close(gram_block(part, np.arange(4), np.arange(4)), expected)
    assert_close(part.diagonal(), expected.diagonal())
    assert np.abs(expected).max() <= part.bound() * (1 + 1e-12)
    again = part.take(np.array([1, 3]))
    assert_close(gram_block(again, np.arange(2), np.arange(2)), expected[1::2, 1::2])


@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_double_rounded_once(kind: str) -> None:
    gram, K = make(kind, draw())

    found = gram_block(gram, np.arange(N), np.arange(N), np.float32)

    assert found.dtype == np.float32
    np.testing.assert_allclose(found, K, rtol=6.1e-8, atol=1e-10)


@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gram_is_symmetric(kind: str, kernel: str) -> None:
    gram, _ = make(kind, draw(), kernel)

    K = gram_block(gram, np.arange(N), np.arange(N))

    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("stay_sparse")
@pytest.mark.parametrize("layout", ["dense", "csr_matrix"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_bytes_do_not_depend_on_the_number_of_threads(kernel: str, layout: str) -> None:
    X = as_rows(LAYOUTS[layout](draw(1500, 20)))
    chosen = KERNELS[kernel][0]
    rows, columns = np.arange(0, 1500, 7), np.arange(1500)

    with one_blas_thread():
        one = gram_block(VectorGram(chosen, X, n_threads=1), rows, columns)
        two = gram_block(VectorGram(chosen, X, n_threads=2), rows, columns)

    assert one.tobytes() == two.tobytes()


@pytest.mark.nojit
@pytest.mark.boundscheck
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS)
def test_compiled_rows_agree_with_their_twin(kernel: str, dtype: type) -> None:
    chosen, twin = KERNELS[kernel]
    X = draw(20)
    columns = np.array([3, 7, 7, 19])  # two variables may share a row
    source = VectorGram(chosen, as_rows(X)).source(columns)
    if source is None:
        assert kernel in ("sharp rbf", "laplacian")
        return

    row, less = np.empty(4, dtype=dtype), np.empty(2, dtype=dtype)
    compute_row(source, 1, row)
    compute_row(keep_samples(source, np.array([1, 3])), 1, less)

    rtol = 1e-10 if dtype is np.float64 else 1e-6
    expected = twin(X[[7]], X[columns])[0]
    np.testing.assert_allclose(row, expected, rtol=rtol, atol=1e-12)
    expected = twin(X[[19]], X[[7, 19]])[0]
    np.testing.assert_allclose(less, expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("kind", ["sparse vectors", "matrix", "function"])
@pytest.mark.usefixtures("stay_sparse")
def test_only_dense_vectors_have_compiled_rows(kind: str) -> None:
    gram, _ = make(kind, draw())

    assert gram.source(np.arange(N)) is None


def test_small_sparse_sets_give_the_bytes_of_their_dense_twins() -> None:
    X = draw()
    rows, columns = np.arange(30), np.arange(N)

    dense = gram_block(VectorGram(RBF(0.7), as_rows(X)), rows, columns)
    written_out = VectorGram(RBF(0.7), as_rows(sp.csr_matrix(X)))
    sparse = gram_block(written_out, rows, columns)

    assert dense.tobytes() == sparse.tobytes()


def test_equal_rows_far_from_the_origin_have_kernel_one() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(8, 3)) + 1e6, 2, axis=0)

    gram = VectorGram(RBF(1.0), as_rows(X))
    K = gram_block(gram, np.arange(16), np.arange(16))

    assert np.all(K[np.arange(0, 16, 2), np.arange(1, 16, 2)] == 1.0)
    np.testing.assert_allclose(K, naive.rbf(X, X, 1.0), atol=1e-8)


# -------------------------------------------------------------------------- functions
def test_function_is_given_blocks_against_the_whole_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int]] = []

    def dots(a: Floats, b: Floats) -> Floats:
        asked.append((len(a), len(b)))
        return a @ b.T

    X = draw()
    monkeypatch.setattr(gram_room, "CALL_ENTRIES", 20 * N)
    gram = gram_of_function(dots, X, np.arange(N))

    assert_close(gram_block(gram, np.arange(N), np.arange(N)), X @ X.T)
    assert asked == [(20, N), (20, N), (20, N), (10, N)]
    assert_close(gram.diagonal(), (X @ X.T).diagonal())


def test_small_sets_are_asked_for_at_once() -> None:
    asked: list[int] = []

    def dots(a: Floats, b: Floats) -> Floats:
        asked.append(len(a))
        return a @ b.T

    X = draw()
    gram = gram_of_function(dots, X, np.arange(5, N))

    assert asked == [N]
    assert gram.n == N - 5
    assert_close(gram_block(gram, np.arange(2), np.arange(3)), (X @ X.T)[5:7, 5:8])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.ones((3, 2)), r"expected shape \(2, 3\) .* got \(3, 2\)"),
        (np.ones(6), r"got \(6,\)"),
        (np.full((2, 3), np.nan), "NaN or infinity"),
        (np.full((2, 3), np.inf), "NaN or infinity"),
    ],
)
def test_answer_of_a_function_is_checked(answer: Floats, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call_kernel(lambda a, b: answer, ["a", "b"], ["a", "b", "c"])


def test_answer_of_a_function_may_be_sparse_or_whole_numbers() -> None:
    K = call_kernel(lambda a, b: sp.csr_matrix(np.eye(2, dtype=int)), "ab", "ab")

    assert K.dtype == np.float64
    assert np.array_equal(K, np.eye(2))
