"""How does a table in a CSV or Parquet file become samples and labels?"""

import csv
import io
import math
import os
from array import array
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.svmlight_files import (
    FREE_GROWTH,
    GROWTH,
    Chained,
    Source,
    name_of,
    opened,
    read_head,
)
from maxmargin.errors import DataFormatError, InvalidInput, NotAvailable
from maxmargin.typing import FloatMatrix

MAX_LINE = 2**24  # characters
LABEL_NAMES = ("label", "target", "class", "y")
MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}
DELIMITERS = ",;\t|"
PARQUET = b"PAR1"
PACKED = (".gz", ".bz2", ".xz")
SNIFFED = 2**14  # bytes at the start that say which format a file has


class Table(NamedTuple):
    """Samples (dense), their labels if there are any, and what columns are called."""

    X: FloatMatrix
    y: NDArray[Any] | None  # numbers if all are, else text
    names: list[str]  # of the columns of X
    label: str | None


def read_table(
    source: Source,
    *,
    label: str | int | None = "auto",
    header: bool | Literal["auto"] = "auto",
    max_bytes: int | None = None,
) -> Table:
    """Read a CSV file (packed or not), or a Parquet file if pyarrow is installed.

    Fields are parted by commas, semicolons, tabs or bars, whichever the first line has
    most of. All columns but the label must hold finite numbers.

    Parameters
    ----------
    source : path, bytes or binary file
    label : str, int or None
        The label's column, by name or number (from 0, negative from the end). "auto"
        takes the one called label, target, class or y, else the only one that holds
        text, else the last one. None: every column is a feature.
    header : bool or "auto"
        Whether the first line has names; "auto" says yes if a column starts with text
        and goes on with numbers.
    """
    if isinstance(label, bool) or not (label is None or isinstance(label, str | int)):
        raise InvalidInput(
            "label must be 'auto', the name or the number of a column, or None, got "
            f"{label!r}."
        )
    name = name_of(source)
    try:
        with opened(source, max_bytes) as stream:
            head = read_head(stream, len(PARQUET))
            whole = Chained(head, stream)
            if head == PARQUET:
                return _read_parquet(whole.read(), label)
            return _read_csv(io.BufferedReader(whole), label, header)
    except DataFormatError as error:
        raise error.in_file(name) from error


def guess_format(source: str | os.PathLike[str] | BinaryIO) -> str:
    """What a file is likely to hold: "svmlight", "csv" or "parquet".

    An open file must be seekable, and is left at its start.
    """
    with opened(source) as stream:
        head = read_head(stream, SNIFFED)
    if not isinstance(source, str | os.PathLike):
        source.seek(0)
    if head.startswith(PARQUET):
        return "parquet"
    suffixes = [suffix.lower() for suffix in Path(name_of(source)).suffixes]
    suffixes = [suffix for suffix in suffixes if suffix not in PACKED]
    if suffixes and suffixes[-1] in (".csv", ".tsv"):
        return "csv"
    lines = [line.partition(b"#")[0].split() for line in head.splitlines()]
    rows = [line for line in lines if line][:5]
    has_pairs = any(b":" in token for row in rows for token in row[1:])
    has_fields = any(mark.encode() in head for mark in DELIMITERS)
    return "csv" if has_fields and not has_pairs else "svmlight"


# CSV.


class Row(NamedTuple):
    """The fields of a row, and the line it ends on."""

    fields: list[str]
    line: int


def _read_csv(
    stream: io.BufferedReader, label: str | int | None, header: bool | Literal["auto"]
) -> Table:
    rows = _rows(stream)
    first = [row for _, row in zip(range(2), rows, strict=False)]
    if not first:
        raise DataFormatError("the file holds no samples.")
    if header == "auto":
        header = _has_header(first)
    names = [field.strip() for field in first[0].fields]
    if header:
        first = first[1:]
    else:
        names = [f"column {k}" for k in range(len(names))]
    if not first:
        raise DataFormatError("the file holds names of columns, but no samples.")
    at = _label_column(label, names, [_is_text(field) for field in first[0].fields])
    return _collect(first, rows, names, at)


def _rows(stream: io.BufferedReader) -> Iterator[Row]:
    """All rows but blank ones."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        lines = _lines(text)
        start = next(lines, "")
        delimiter = max(DELIMITERS, key=start.count)
        reader = csv.reader(_put_back(start, lines), delimiter=delimiter, strict=True)
        for fields in reader:
            if any(field.strip() for field in fields):
                yield Row(fields, reader.line_num)
    except UnicodeDecodeError as error:
        raise DataFormatError(
            f"the text is not UTF-8 (byte {error.object[error.start]:#04x})."
        ) from error
    except csv.Error as error:
        raise DataFormatError(
            f"not a CSV file ({error}).", line=reader.line_num
        ) from error


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise DataFormatError(
                f"a line of more than {MAX_LINE:,} characters.", line=number
            )
        yield line


def _put_back(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


def _is_text(field: str) -> bool:
    """Whether a field is neither a number nor missing."""
    if field.strip().lower() in MISSING:
        return False
    try:
        float(field)
    except ValueError:
        return True
    return False


def _has_header(first: list[Row]) -> bool:
    if len(first) < 2:
        return all(_is_text(field) for field in first[0].fields)
    pairs = list(zip(first[0].fields, first[1].fields, strict=False))
    begins_with_text = any(_is_text(a) and not _is_text(b) for a, b in pairs)
    return begins_with_text or all(_is_text(a) for a, _ in pairs)


def _label_column(
    label: str | int | None, names: list[str], is_text: list[bool]
) -> int | None:
    """The number of the label's column."""
    if label is None:
        return None
    if isinstance(label, int):
        if not -len(names) <= label < len(names):
            raise InvalidInput(
                f"label is column {label}, but there are only {len(names)} columns."
            )
        return label % len(names)
    if label in names:
        return names.index(label)
    if label != "auto":
        raise InvalidInput(
            f"label is {label!r}, but the columns are {', '.join(names[:20])}."
        )
    called = [k for k, name in enumerate(names) if name.lower() in LABEL_NAMES]
    texts = [k for k, is_it in enumerate(is_text) if is_it]
    for found in (called, texts):
        if len(found) == 1:
            return found[0]
    return len(names) - 1


def _collect(
    first: list[Row], rest: Iterator[Row], names: list[str], at: int | None
) -> Table:
    values, labels, n = array("d"), [], 0
    for rows in (first, rest):
        for row in rows:
            if len(row.fields) != len(names):
                raise DataFormatError(
                    f"{len(names)} fields were expected, found {len(row.fields)}.",
                    line=row.line,
                )
            fields = row.fields
            if at is not None:
                labels.append(_label(row, at, names))
                fields = fields[:at] + fields[at + 1 :]
            _add_numbers(values, fields, row, names, at)
            n += 1
    width = len(names) - (at is not None)
    if not width:
        raise DataFormatError("the only column is the label: there are no features.")
    X = np.frombuffer(values, dtype=np.float64).reshape(n, width)
    kept = [name for k, name in enumerate(names) if k != at]
    y = None if at is None else _targets(labels)
    return Table(X, y, kept, None if at is None else names[at])


def _label(row: Row, at: int, names: list[str]) -> str:
    field = row.fields[at].strip()
    if field.lower() in MISSING:
        raise _missing(row, at, names)
    return field


def _add_numbers(
    values: Any, fields: list[str], row: Row, names: list[str], at: int | None
) -> None:
    before = len(values)
    try:
        values.extend(map(float, fields))
    except ValueError:
        raise _bad_field(row, names, at) from None
    is_finite = math.isfinite(sum(values[before:])) or all(
        map(math.isfinite, values[before:])
    )
    if not is_finite or any("_" in field for field in fields):
        raise _bad_field(row, names, at)


def _bad_field(row: Row, names: list[str], at: int | None) -> DataFormatError:
    """What is wrong with the first field that is not a finite number."""
    for k, field in enumerate(row.fields):
        if k == at:
            continue
        if field.strip().lower() in MISSING:
            return _missing(row, k, names)
        if _is_text(field) or "_" in field or not math.isfinite(float(field)):
            return DataFormatError(
                f"a finite number was expected in column {names[k][:40]!r}, found "
                f"{field[:30]!r}; give the label's column by name or number if this "
                "is it, and turn other words into numbers.",
                line=row.line,
                column=k + 1,
            )
    raise AssertionError("a row without a bad field was refused")


def _missing(row: Row, k: int, names: list[str]) -> DataFormatError:
    return DataFormatError(
        f"the value of column {names[k][:40]!r} is missing ({row.fields[k][:30]!r}); "
        "fill it in, or leave the row out.",
        line=row.line,
        column=k + 1,
    )


def _targets(labels: list[str]) -> NDArray[Any]:
    """Numbers if all of them are, else text."""
    if any(_is_text(label) or "_" in label for label in labels):
        return np.array(labels)
    y = np.array(labels, dtype=np.float64)
    return y if np.isfinite(y).all() else np.array(labels)


# Parquet.


def _read_parquet(content: bytes, label: str | int | None) -> Table:
    try:
        pa: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as missing:
        raise NotAvailable(
            "Parquet files need the package pyarrow: pip install 'pyarrow>=17', or "
            "convert the file to CSV."
        ) from missing
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        n_bytes = 8 * file.metadata.num_rows * file.metadata.num_columns
        if n_bytes > max(FREE_GROWTH, GROWTH * len(content)):
            raise DataFormatError(f"the Parquet file claims {n_bytes:,} bytes of data.")
        table = file.read()
    except DataFormatError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataFormatError(f"not a Parquet file ({error}).") from error
    names = list(table.column_names)
    if not table.num_rows or not names:
        raise DataFormatError("the file holds no samples.")
    is_text = [not _is_numeric(field.type, pa) for field in table.schema]
    at = _label_column(label, names, is_text)
    _check_columns(table, is_text, at)
    kept = [k for k in range(len(names)) if k != at]
    X = np.column_stack(
        [table.column(k).to_numpy().astype(np.float64) for k in kept]
        or [np.empty((table.num_rows, 0))]
    )
    if not kept or not np.isfinite(X).all():
        raise DataFormatError("features must be there, and finite numbers.")
    y = None if at is None else np.array(table.column(at).to_pylist())
    if y is not None and y.dtype.kind in "biuf":
        y = y.astype(np.float64)
    label_name = None if at is None else names[at]
    return Table(X, y, [names[k] for k in kept], label_name)


def _check_columns(table: Any, is_text: list[bool], at: int | None) -> None:
    for k, name in enumerate(table.column_names):
        if table.column(k).null_count:
            row = int(np.argmax(table.column(k).is_null().to_numpy()))
            raise DataFormatError(
                f"the value of column {name[:40]!r} is missing in row {row + 1}; fill "
                "it in, or leave the row out."
            )
        if is_text[k] and k != at:
            raise DataFormatError(
                f"column {name[:40]!r} holds {table.column(k).type}, not numbers; give "
                "the label's column by name if this is it."
            )


def _is_numeric(kind: Any, pa: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    )
