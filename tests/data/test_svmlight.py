"""Is svmlight text read as it is meant, whichever way it is read?"""

from __future__ import annotations

import io
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from maxmargin.data import svmlight, svmlight_chunks
from maxmargin.data.svmlight import (
    TextData,
    read_svmlight,
    read_weights,
    split_kernel_rows,
)
from maxmargin.errors import DataFormatError, InvalidInput

pytestmark = [pytest.mark.nojit, pytest.mark.boundscheck]

N_THREADS = 1 if os.environ.get("NUMBA_DISABLE_JIT") else 2  # others warn on their own
SMALL_TEXT = b"""# a comment, then a blank line

+1 1:0.5 3:-2e-3  # another
-1 qid:7\t2:1. 4:.25\r
3.5
0 1:0 10:12345678901234567890123 # zeros are kept
"""


def as_arrays(text: bytes, rules: Any, name: str) -> Any:
    """What reads large files, given a small one."""
    with np.errstate(over="ignore"):  # plain Python warns where compiled code wraps
        return svmlight_chunks.parse_stream(io.BytesIO(), text, rules, name, N_THREADS)


@pytest.fixture(params=["plain", "compiled", "many chunks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a small text is read: each way must say the same."""
    if request.param != "plain":
        monkeypatch.setattr(svmlight, "parse_plain", as_arrays)
    if request.param == "many chunks":
        monkeypatch.setattr(svmlight_chunks, "BLOCK", 40)
        monkeypatch.setattr(svmlight_chunks, "CHUNK", 16)
    return request.param


def write_random(path: Path, n: int, form: str, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(n):
            size = rng.integers(0, 30)
            columns = np.sort(rng.choice(300, size, replace=False)) + 1
            values = rng.standard_normal(size) * 10.0 ** rng.integers(-30, 30, size)
            pairs = [f" {j}:{x:{form}}" for j, x in zip(columns, values, strict=True)]
            query = rng.integers(-3, 9)
            file.write(f"{rng.integers(-2, 3)} qid:{query}{''.join(pairs)}\n")


def is_same(a: TextData, b: Any) -> bool:
    X, y, qid = b
    pairs = ((a.X.data, X.data), (a.X.indices, X.indices), (a.X.indptr, X.indptr))
    is_all_equal = all(np.array_equal(p, q) for p, q in (*pairs, (a.y, y)))
    return is_all_equal and a.X.shape == X.shape and np.array_equal(a.qid, qid)


# ------------------------------------------------------------------------------ meaning
def test_a_small_text_means_what_it_says(way: str) -> None:
    found = read_svmlight(SMALL_TEXT)

    expected = np.zeros((4, 10))
    expected[0, [0, 2]] = 0.5, -2e-3
    expected[1, [1, 3]] = 1.0, 0.25
    expected[3, 9] = 12345678901234567890123.0
    assert np.array_equal(found.X.toarray(), expected)
    assert found.X.nnz == 6
    assert found.y.tolist() == [1.0, -1.0, 3.5, 0.0]
    assert found.qid is None
    assert found.X.indices.dtype == np.int32


@pytest.mark.parametrize("form", ["g", ".17g", ".3f", ".25e", "+.1e"])
def test_arrays_are_those_of_scikit_learn(way: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "random.txt"
    write_random(path, 60, form)

    found = read_svmlight(path, with_qid=True)

    assert is_same(found, load_svmlight_file(str(path), query_id=True))


def test_large_file_is_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    write_random(path, 700, ".12g")
    assert path.stat().st_size > svmlight.SMALL

    with np.errstate(over="ignore"):
        found = [read_svmlight(path, with_qid=True, n_threads=k) for k in (1, 2, 5)]

    theirs = load_svmlight_file(str(path), query_id=True)
    assert all(is_same(each, theirs) for each in found)


@pytest.mark.agreement
def test_arrays_are_those_of_libsvms_own_reader(way: str, tmp_path: Path) -> None:
    libsvm = pytest.importorskip("libsvm.commonutil")
    path = tmp_path / "random.txt"
    write_random(path, 40, ".9g")
    text = re.sub(rb" qid:-?\d+", b"", path.read_bytes())
    path.write_bytes(text)

    y, X = libsvm.svm_read_problem(str(path), return_scipy=True)
    found = read_svmlight(path)

    assert np.array_equal(found.y, y)
    assert (found.X != X).nnz == 0


@pytest.mark.parametrize(
    ("text", "base", "columns"),
    [
        (b"1 1:5 3:6\n", "auto", [0, 2]),
        (b"1 1:5 3:6\n-1 0:2\n", "auto", [1, 3, 0]),
        (b"1 1:5 3:6\n", 0, [1, 3]),
        (b"1 1:5 3:6\n", 1, [0, 2]),
    ],
)
def test_first_column_is_called_zero_or_one(
    way: str, text: bytes, base: Any, columns: list[int]
) -> None:
    found = read_svmlight(text, index_base=base)

    assert found.X.indices.tolist() == columns
    assert found.X.shape[1] == max(columns) + 1


@pytest.mark.parametrize(
    "text",
    [
        b"1 1:2",
        b"1 1:2\n",
        b"1 1:2\r\n",
        b"\xef\xbb\xbf1 1:2\n",
        b"  1 \t 1:2 \x0b\x0c \n",
        b"\n\n1 1:2\n\n  \n#\n",
        b"1 01:2.0#x",
        b"+1e0 1:200e-2",
    ],
)
def test_blanks_line_ends_and_comments_do_not_matter(way: str, text: bytes) -> None:
    found = read_svmlight(text)

    assert found.y.tolist() == [1.0]
    assert found.X.toarray().tolist() == [[2.0]]


def test_numbers_of_any_form_are_rounded_as_python_rounds(way: str) -> None:
    words = ["0", "-0", "-0.0", "1", "9007199254740993", "9007199254740992.5", ".5"]
    words += ["5.", "1e22", "1e23", "123456789012345678e-5", "2.2250738585072011e-308"]
    words += ["5e-324", "2e-324", "1.7976931348623157e308", "0.1e-400", "1E+05"]
    words += ["0." + "0" * 25 + "12345678901234567", "1" * 400, "1." + "0" * 60 + "1"]
    words += ["17976931348623157" + "0" * 292, "0" * 90 + "7"]
    words = [word for word in words if np.isfinite(float(word))]
    text = "\n".join(f"{word} 1:{word}" for word in words).encode()

    found = read_svmlight(text)

    exact = np.array([float(word) for word in words])
    assert np.array_equal(found.y.view(np.uint64), exact.view(np.uint64))
    assert np.array_equal(found.X.data.view(np.uint64), exact.view(np.uint64))


def test_infinite_values_are_refused_unless_asked_for(way: str) -> None:
    text = b"1 1:inf 2:-Infinity 3:nan 4:1e999\n"

    found = read_svmlight(text, finite=False)

    assert found.X.data.tolist()[:2] == [np.inf, -np.inf]
    assert np.isnan(found.X.data[2]) and found.X.data[3] == np.inf
    with pytest.raises(DataFormatError, match="line 1, column 5: a value must be fin"):
        read_svmlight(text)


def test_labels_alone_make_one_empty_column(way: str) -> None:
    found = read_svmlight(b"1\n2\n")

    assert found.X.shape == (2, 1)
    assert found.X.nnz == 0


def test_number_of_features_can_be_given(way: str) -> None:
    assert read_svmlight(b"1 2:1\n", n_features=7).X.shape == (1, 7)
    assert read_svmlight(b"1 0:1 6:1\n", n_features=7).X.shape == (1, 7)
    with pytest.raises(DataFormatError, match="column 3: index 8 is above 7"):
        read_svmlight(b"1 8:1\n", n_features=7)
    with pytest.raises(DataFormatError, match="index 7, counted from 0"):
        read_svmlight(b"1 0:1 7:1\n", n_features=7)


def test_indices_beyond_32_bits_are_read_when_allowed(way: str) -> None:
    text = b"1 1:1 5000000000:2\n"

    found = read_svmlight(text, max_index=10**10)

    assert found.X.indices.tolist() == [0, 4_999_999_999]
    assert found.X.shape == (1, 5_000_000_000)
    with pytest.raises(DataFormatError, match="5000000000 is above 2147483647"):
        read_svmlight(text)


# ------------------------------------------------------------------------------- errors
MISTAKES = [
    (b"1 1:2\nx 1:3\n", 2, 1, "a label must be a number, found 'x'"),
    (b"1,2 1:3\n", 1, 1, "several labels"),
    (b"\n1:2 2:3\n", 2, 1, "a label was expected, found '1:2'"),
    (b"1 1:2 1:3\n", 1, 7, "index 1 follows 1"),
    (b"1 5:2 3:3\n", 1, 7, "index 3 follows 5"),
    (b"1 -1:2\n", 1, 3, "an index is a whole number from 0 on, found '-1'"),
    (b"1 1.5:2\n", 1, 3, "an index is a whole number"),
    (b"1  :2\n", 1, 4, "an index is a whole number"),
    (b"1 1:2 3\n", 1, 7, "index:value was expected, found '3'"),
    (b"1 1: 2:3\n", 1, 5, "a value must be a number, found ''"),
    (b"1 1:2:3\n", 1, 5, "a value must be a number, found '2:3'"),
    (b"1 1:1_000\n", 1, 5, "a value must be a number"),
    (b"1 1:0x10\n", 1, 5, "a value must be a number"),
    (b"1 1:1e\n", 1, 5, "a value must be a number"),
    (b"1 1:--1\n", 1, 5, "a value must be a number"),
    (b"1 1:.\n", 1, 5, "a value must be a number"),
    (b"1 1:2\x00\n", 1, 5, "a value must be a number, found '2\\x00'"),
    (b"1 99999999999999999999999:2\n", 1, 3, "is above 2147483647"),
    (b"1 4294967297:2\n", 1, 3, "index 4294967297 is above"),
    (b"1 qid:x 1:2\n", 1, 3, "'qid:' and a whole number"),
    (b"1 qid: 1:2\n", 1, 3, "'qid:' and a whole number"),
    (b"1 1:2 qid:3\n", 1, 7, "an index is a whole number"),
    (b"1 1:" + b"1" * 3000 + b"\n", 1, 5, "more than 2000 characters"),
    (b"nan 1:2\n", 1, 1, "a label must be finite"),
    (b"\xff\xd8 1:2\n", 1, 1, "found '\\xff\\xd8'"),
    (b"1 1:nan 0:1\n", 1, 5, "must be finite"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), MISTAKES)
def test_a_mistake_is_said_with_its_line_and_column(
    way: str, text: bytes, line: int, column: int, words: str
) -> None:
    before = b"1 1:1\n" * 20

    for skipped, given in ((0, text), (20, before + text), (0, text + before)):
        with pytest.raises(DataFormatError) as caught:
            read_svmlight(given)

        assert (caught.value.line, caught.value.column) == (line + skipped, column)
        assert words in str(caught.value)
        assert str(caught.value).startswith(f"<bytes>, line {line + skipped}, column")


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n", b" \t\r\n", b"#"])
def test_a_file_without_samples_is_refused(way: str, text: bytes) -> None:
    with pytest.raises(DataFormatError, match="no samples"):
        read_svmlight(text)


def test_index_zero_is_refused_where_one_is_first(way: str) -> None:
    with pytest.raises(DataFormatError, match="column 3: index 0 in a file read as"):
        read_svmlight(b"1 0:1\n", index_base=1)


def test_every_line_needs_a_query_if_queries_are_asked_for(way: str) -> None:
    found = read_svmlight(b"1 qid:-3 1:1\n2 qid:+4\n", with_qid=True)

    assert found.qid is not None and found.qid.tolist() == [-3, 4]
    for text, column in ((b"1 1:1\n", 3), (b"1\n", 2), (b"1 #\n", 3), (b"1#\n", 2)):
        with pytest.raises(DataFormatError, match="expected after the label") as caught:
            read_svmlight(b"0 qid:1\n" + text, with_qid=True)
        assert (caught.value.line, caught.value.column) == (2, column)


def test_lines_have_a_limit(way: str) -> None:
    text = b"1 1:1\n1 " + b" ".join(b"%d:1" % j for j in range(1, 50)) + b"\n"

    with pytest.raises(DataFormatError, match="line 2, column 1: a line of more"):
        read_svmlight(text, max_line_bytes=99)

    assert read_svmlight(text, max_line_bytes=len(text)).X.shape == (2, 49)


def test_errors_survive_pickling() -> None:
    error = DataFormatError("wrong.", path="a.txt", line=3, column=4)

    again = pickle.loads(pickle.dumps(error))

    assert str(again) == str(error) == "a.txt, line 3, column 4: wrong."
    assert (again.path, again.line, again.column) == ("a.txt", 3, 4)


@pytest.mark.parametrize(
    "options",
    [{"index_base": 2}, {"n_features": 0}, {"max_index": 0}, {"max_line_bytes": 0}],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        read_svmlight(b"1 1:1\n", **options)


# ------------------------------------------------------------- weights, kernel matrices
def test_weights_are_one_number_a_line(way: str) -> None:
    assert read_weights(b"1\n0.5 # half\n\n0\n").tolist() == [1.0, 0.5, 0.0]
    with pytest.raises(DataFormatError, match="line 2, column 1: numbers must be"):
        read_weights(b"1\n-0.5\n")
    with pytest.raises(DataFormatError, match="line 1, column 3: one number a line"):
        read_weights(b"1 1:2\n")
    with pytest.raises(DataFormatError, match="2 weights for 3 samples"):
        read_weights(b"1\n2\n", 3)


def test_rows_of_a_kernel_matrix_are_taken_apart(way: str) -> None:
    read = read_svmlight(b"1 0:1 1:4 2:6\n-1 0:2 1:6 2:0\n")

    serial, K = split_kernel_rows(read.X)

    assert serial.tolist() == [1, 2]
    assert K.tolist() == [[4.0, 6.0], [6.0, 0.0]]


@pytest.mark.parametrize(
    "text",
    [
        b"1 0:0 1:4 2:6\n",
        b"1 0:1.5 1:4 2:6\n",
        b"1 0:1\n",
        b"1 0:1 100000000:4\n" * 9,
        b"1 0:1e300 1:1\n",
    ],
)
def test_rows_without_serials_are_no_kernel_matrix(text: bytes) -> None:
    with pytest.raises(DataFormatError):
        split_kernel_rows(read_svmlight(text).X)
