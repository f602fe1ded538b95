"""Do CSV and Parquet files become the samples that they hold?"""

from __future__ import annotations

import gzip
import random
import time
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from maxmargin.data import tables
from maxmargin.data.tables import guess_format, read_table
from maxmargin.errors import (
    DataFormatError,
    InvalidInput,
    MaxMarginError,
    NotAvailable,
)

IRIS = "length,width,species\n5.1,3.5,setosa\n7,3.2,virginica\n"


@pytest.mark.parametrize(
    ("text", "names", "label", "y"),
    [
        (IRIS, ["length", "width"], "species", ["setosa", "virginica"]),
        ("5.1,3.5,setosa\n7,3.2,virginica\n", None, None, ["setosa", "virginica"]),
        ("a;b;y\n5.1;3.5;1\n7;3.2;-1", ["a", "b"], "y", [1.0, -1.0]),
        ("Target\ta\tb\r\n1\t5.1\t3.5\r\n2\t7\t3.2\r\n", ["a", "b"], "Target", [1, 2]),
        ("setosa,5.1,3.5\n virginica ,7,3.2\n", None, None, ["setosa", "virginica"]),
        ("5.1|3.5|1\n\n7|3.2|0\n\n", None, None, [1.0, 0.0]),
        ('"a","b, c","y"\n"5.1","3.5","x"\n"7","3.2","z"\n', ["a", "b, c"], "y", "xz"),
        ("\ufeff" + IRIS, ["length", "width"], "species", ["setosa", "virginica"]),
    ],
)
def test_fields_names_and_labels_are_found(
    text: str, names: list[str] | None, label: str | None, y: Any
) -> None:
    found = read_table(text.encode())

    assert found.X.tolist() == [[5.1, 3.5], [7.0, 3.2]]
    assert found.y is not None and found.y.tolist() == list(y)
    if names is not None:
        assert (found.names, found.label) == (names, label)


def test_label_can_be_chosen() -> None:
    text = b"a,b,c\n1,2,3\n4,5,6\n"

    by_name, by_number = read_table(text, label="a"), read_table(text, label=-2)
    none = read_table(text, label=None)

    assert by_name.y is not None and by_name.y.tolist() == [1.0, 4.0]
    assert by_name.names == ["b", "c"]
    assert by_number.label == "b"
    assert none.y is None and none.X.shape == (2, 3)
    for label in ("d", 3, -4, True, 1.5):
        with pytest.raises(InvalidInput, match="label"):
            read_table(text, label=label)  # type: ignore[arg-type]


def test_header_can_be_said_to_be_there() -> None:
    text = b"0,1,2\n1,2,3\n4,5,6\n"

    assert read_table(text).X.shape == (3, 2)
    assert read_table(text, header=True).names == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (b"a,y\n1,1\n,2\n", 3, 1, "the value of column 'a' is missing"),
        (b"a,y\n1,1\nNA,2\n", 3, 1, "is missing ('NA')"),
        (b"a,y\n1,1\n2,\n", 3, 2, "the value of column 'y' is missing"),
        (b"a,b,y\n1,x,1\n2,2,2\n", 2, 2, "a finite number was expected in column 'b'"),
        (b"a,y\n1,1\n1e999,2\n", 3, 1, "a finite number was expected"),
        (b"a,y\n1,1\n1_0,2\n", 3, 1, "a finite number was expected"),
        (b"a,y\n1,1\n2\n", 3, None, "2 fields were expected, found 1"),
        (b"a,y\n1,1\n2,3,4\n", 3, None, "2 fields were expected, found 3"),
        (b'a,y\n1,1\n"2,3\n', 3, None, "not a CSV file"),
        (b'a,y\n1,1\n"' + b"2" * 10**6 + b'",3\n', 3, None, "not a CSV file"),
        (b"a,y\n1,\xff\n", None, None, "not UTF-8 (byte 0xff)"),
        (b"", None, None, "no samples"),
        (b"\n\n", None, None, "no samples"),
        (b"a,b\n", None, None, "but no samples"),
        (b"a\n1\n2\n", None, None, "there are no features"),
        (b"1," + b"2" * tables.MAX_LINE, 1, None, "a line of more than"),
        (
            gzip.compress(b"a,y\n1,1\n", mtime=0)[:-9],
            None,
            None,
            "gzip file ends too early",
        ),
    ],
)
def test_a_mistake_is_said_with_its_line(
    text: bytes, line: int | None, column: int | None, words: str
) -> None:
    with pytest.raises(DataFormatError) as caught:
        read_table(text)

    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)
    assert str(caught.value).startswith("<bytes>")


def test_packed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "iris.csv.gz"
    path.write_bytes(gzip.compress(IRIS.encode()))

    assert read_table(path).X.shape == (2, 2)
    assert guess_format(path) == "csv"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a", b"1 1:2 3:4\n", "svmlight"),
        ("a.csv", b"1 1:2\n", "csv"),
        ("a", b"1,2,3\n", "csv"),
        ("a.txt", b"# a, b\n+1 1:2\n", "svmlight"),
        ("a.tsv", b"1\t2\n", "csv"),
        ("a", b"1\n-1\n", "svmlight"),
        ("a", b"PAR1....", "parquet"),
    ],
)
def test_the_format_is_guessed(
    name: str, text: bytes, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text)

    assert guess_format(path) == expected


@pytest.mark.slow
def test_mutants_are_read_or_refused() -> None:
    rng = random.Random(0)
    words = [b",", b"\n", b'"', b"\0", b"nan", b"1e999", b"\xff", b";", b"\r", b"x"]
    n_refused = 0

    for _ in range(max(100, int(300 * datasets.SCALE))):
        text = bytearray(IRIS.encode() * 3)
        for _ in range(rng.randint(1, 5)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 4)] = rng.choice(words)
        began = time.process_time()
        try:
            found = read_table(bytes(text))
        except MaxMarginError:
            n_refused += 1
        else:
            assert np.isfinite(found.X).all()
        assert time.process_time() - began < 1.0

    assert n_refused > 0


# ------------------------------------------------------------------------------ Parquet
def parquet_bytes(columns: dict[str, Any]) -> bytes:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


def test_parquet_is_read() -> None:
    content = parquet_bytes({"a": [1, 2], "species": ["x", "z"], "b": [0.5, 1.5]})

    found = read_table(content)

    assert found.X.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert found.y is not None and found.y.tolist() == ["x", "z"]
    assert (found.names, found.label) == (["a", "b"], "species")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1.0, None], "y": [1, 2]}, "'a' is missing in row 2"),
        ({"a": [1.0, 2.0], "y": [None, 2]}, "'y' is missing in row 1"),
        ({"a": ["u", "v"], "b": [1, 2], "y": [1, 2]}, "'a' holds string"),
        ({"a": [1.0, np.nan], "y": [1, 2]}, "finite numbers"),
        ({"y": [1, 2]}, "must be there"),
        ({"a": np.empty(0), "y": np.empty(0)}, "no samples"),
    ],
)
def test_parquet_that_cannot_be_used_is_refused(
    columns: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataFormatError, match=words):
        read_table(parquet_bytes(columns))


def test_damaged_parquet_is_refused() -> None:
    content = parquet_bytes({"a": np.arange(1000.0), "y": np.zeros(1000)})
    rng = random.Random(0)

    with pytest.raises(DataFormatError, match="not a Parquet file"):
        read_table(content[:-20])
    for _ in range(50):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[rng.randrange(4, len(damaged))] = rng.randrange(256)
        try:
            read_table(bytes(damaged))
        except MaxMarginError as error:
            assert str(error)


def test_a_parquet_file_cannot_claim_everything() -> None:
    content = parquet_bytes({"a": np.zeros(9_000_000), "y": np.zeros(9_000_000)})
    assert len(content) < 500_000

    with pytest.raises(DataFormatError, match="claims"):
        read_table(content)


def test_parquet_without_pyarrow_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(tables, "import_module", refuse)

    with pytest.raises(NotAvailable, match="pyarrow"):
        read_table(b"PAR1....PAR1")
