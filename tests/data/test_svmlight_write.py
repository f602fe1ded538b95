"""Is what was written read back as it was, and is a file whole or not there?"""

from __future__ import annotations

import io
import os
import random
import struct
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from maxmargin.data import svmlight_write
from maxmargin.data.svmlight import read_svmlight, write_svmlight
from maxmargin.errors import InvalidInput, UnreadableFile

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]


@pytest.fixture(autouse=True)
def wrap_silently() -> object:
    """Plain Python warns where compiled code wraps."""
    with np.errstate(over="ignore"):
        yield


@pytest.fixture(params=["plain", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "compiled":
        monkeypatch.setattr(svmlight_write, "FEW_PAIRS", -1)
    monkeypatch.setattr(svmlight_write, "PAIRS_AT_ONCE", 64)
    return request.param


def draw_numbers(n: int) -> Any:
    """Numbers of every size and shape that float64 has."""
    rng = random.Random(0)
    edges = [0.0, -0.0, 1.0, -1.0, 0.1, 1e15, 1e16, 1e17, 1e-4, 1e-5, 5e-324, 2.5]
    edges += [1.7976931348623157e308, 9692305940145275.0, 96923059401452750.0, 1e22]
    makers = [
        lambda: struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0],
        lambda: rng.gauss(0.0, 1.0),
        lambda: round(rng.gauss(0.0, 100.0), rng.randint(0, 8)),
        lambda: float(rng.randint(-(10**18), 10**18) // 10 ** rng.randint(0, 17)),
        lambda: 2.0 ** rng.randint(-1074, 1023),
        lambda: rng.choice(edges),
    ]
    found = np.array([rng.choice(makers)() for _ in range(n)])
    return np.where(np.isfinite(found), found, 1.0)


def draw_data(n: int = 40, d: int = 9) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    kept = rng.random((n, d)) < 0.6
    kept[0, d - 1] = True
    start = np.append(0, np.cumsum(kept.sum(axis=1)))
    values = draw_numbers(int(kept.sum()))
    X = sp.csr_matrix((values, np.nonzero(kept)[1], start), shape=(n, d))
    return X, draw_numbers(n), rng.integers(-5, 10**9, n)


def is_same(a: Any, b: Any) -> bool:
    """To the last bit, the sign of zero included."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.array_equal(a.view(np.uint64), b.view(np.uint64))


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_what_is_written_is_read_back(
    way: str, base: Any, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"data.txt{suffix}"
    X, y, qid = draw_data()

    write_svmlight(path, X, y, qid=qid, index_base=base, comment="two\nlines")
    found = read_svmlight(path, index_base=base, with_qid=True)

    assert is_same(found.X.data, X.data) and is_same(found.y, y)
    assert np.array_equal(found.X.indices, X.indices)
    assert np.array_equal(found.X.indptr, X.indptr)
    assert found.qid is not None and np.array_equal(found.qid, qid)
    assert os.listdir(tmp_path) == [path.name]


def test_scikit_learn_reads_the_same(way: str, tmp_path: Path) -> None:
    path = str(tmp_path / "data.txt")
    X, y, _ = draw_data()

    write_svmlight(path, X, y)
    theirs, labels = load_svmlight_file(path)

    assert is_same(theirs.data, X.data) and is_same(labels, y)


@pytest.mark.parametrize("digits", [1, 3, 6, 8, 15, 16, 17])
def test_both_ways_write_the_same_bytes(digits: int) -> None:
    value = draw_numbers(int(2000 * max(1.0, datasets.SCALE)))
    n = len(value) // 10
    piece = svmlight_write.Piece(
        value[:n],
        np.arange(n) - 5,
        np.arange(10, 10 * n + 1, 10),
        np.arange(len(value)) * 10**12 % (10**13 + 1),
        value,
    )

    plain = svmlight_write.spell_plain(piece, digits)
    fast = bytes(svmlight_write.spell_fast(piece, digits))

    assert fast == plain
    words = [word.partition(b":")[2] for word in plain.split() if b"qid" not in word]
    values = np.array([float(word) for word in words if word])
    if digits == 17:
        assert is_same(values, value)
    else:
        assert values.tolist() == [float(f"{x:.{digits}g}") for x in value.tolist()]


def test_layouts_of_X_make_the_same_text(way: str) -> None:
    X = np.array([[0.0, 1.5, -2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 1e-9]])
    unsorted = sp.csr_matrix(
        (np.array([-2.0, 1.5, 3.0, 1e-9]), [2, 1, 0, 2], [0, 2, 2, 4]), shape=(3, 3)
    )
    layouts = [X, sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X), unsorted]
    texts = set()

    for layout in layouts:
        file = io.BytesIO()
        write_svmlight(file, layout, [1, -1, 2])
        texts.add(file.getvalue())

    assert texts == {b"1 2:1.5 3:-2\n-1\n2 1:3 3:1e-09\n"}
    assert not unsorted.has_sorted_indices


def test_digits_are_those_of_percent_g(way: str) -> None:
    file = io.BytesIO()

    write_svmlight(file, np.array([[1 / 3, 1234567.0, 1e-7]]), [1 / 3], digits=6)

    assert file.getvalue() == b"0.3333333333333333 1:0.333333 2:1.23457e+06 3:1e-07\n"


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        ([[1.0]], [1, 2], {}),
        ([[np.nan]], [1], {}),
        ([[1.0]], [np.inf], {}),
        ([1.0], [1], {}),
        ([["a"]], [1], {}),
        ([[1.0]], ["a"], {}),
        ([[1.0]], [[1]], {}),
        ([[1.0]], [1], {"index_base": 2}),
        ([[1.0]], [1], {"digits": 18}),
        ([[1.0]], [1], {"qid": [1.5]}),
        ([[1.0]], [1], {"qid": [1, 2]}),
        ([[1.0]], [1], {"qid": [10**18]}),
        ([[1j]], [1], {}),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(
    X: Any, y: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "data.txt"
    path.write_text("old")

    with pytest.raises(InvalidInput):
        write_svmlight(path, X, y, **options)

    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["data.txt"]


def test_a_failure_midway_leaves_the_old_file(way: str, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("old")
    X = np.ones((200, 5))
    X[150, 3] = np.nan

    with pytest.raises(InvalidInput, match="X contains NaN"):
        write_svmlight(path, X, np.ones(200))

    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["data.txt"]


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "nowhere" / "data.txt"):
        with pytest.raises(UnreadableFile):
            write_svmlight(target, [[1.0]], [1])


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    write_svmlight(path, [[1.0]], [1])

    assert os.read(end, 99) == b"1 1:1\n"
    os.close(end)
    assert path.is_fifo()


def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.txt"
    path.write_text("old")

    def fail(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(UnreadableFile, match="cannot be written: No space left"):
        write_svmlight(path, [[1.0]], [1])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["data.txt"]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)

    write_svmlight(link, [[1.0]], [1])

    assert link.is_symlink() and real.read_bytes() == b"1 1:1\n"
    assert real.stat().st_mode & 0o777 == 0o640
