"""What does a data file hold, whatever its format?"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

from maxmargin.cli.console import STANDARD_INPUT, Context, Failure
from maxmargin.cli.data_files import CANNOT_OPEN, read_samples, wrong_format
from maxmargin.data.svmlight_files import rewindable
from maxmargin.data.tables import guess_format, read_table
from maxmargin.errors import DataFormatError, InvalidInput
from maxmargin.interop.samples import Samples, aligned


class AnyData(NamedTuple):
    """Samples, targets if there are any, and where indices start."""

    X: Any  # CSR, or dense from a table
    y: Any  # numbers, text, or None
    index_base: int = 1
    names: tuple[str, ...] = ()  # of the columns, from a table
    target: str | None = None

    def columns_from(
        self, index_base: int, n_features: int, names: Sequence[str] = ()
    ) -> Any:
        """X with the columns of a model: by name, if both have names, or by place."""
        if self.names and names:
            return self._by_name(names)
        if self.names and self.X.shape[1] != n_features:
            raise Failure(
                f"the table has {self.X.shape[1]} features, but the model {n_features}"
            )
        largest = self.X.shape[1] - 1 + self.index_base
        samples = Samples(self.X, largest, self.index_base)
        return aligned(samples, index_base, n_features)

    def _by_name(self, names: Sequence[str]) -> Any:
        if tuple(names) == self.names:
            return self.X
        if len({*names}) < len(names) or len({*self.names}) < len(self.names):
            raise Failure("two columns have the same name, and cannot be told apart")
        place = {name: k for k, name in enumerate(self.names)}
        missing = [name for name in names if name not in place]
        if missing:
            raise Failure(f"the table lacks the column {missing[0]!r} of the model")
        return self.X[:, [place[name] for name in names]]


def read_any(path: str, target: str | None, context: Context) -> AnyData:
    """Read a data file to learn from; "-" is standard input."""
    with _opened(path) as file:
        return _read(file, target, context)


def read_to_predict(
    path: str, target: str | None, known: str | None, context: Context
) -> AnyData:
    """Read a data file to predict: `known` is the target that a model learned.

    A table may have that column or not.
    """
    with _opened(path) as file:
        if target is not None or known is None or not _is_table(file):
            return _read(file, target, context)
        try:
            return _read_table(file, known)
        except DataFormatError:
            raise
        except InvalidInput:
            file.seek(0)
            return _read_table(file, None)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """A file that can be read twice: to find its format, and for its data."""
    try:
        if path == STANDARD_INPUT:
            yield BytesIO(_standard_input())
        else:
            with rewindable(path) as file:
                yield file
    except DataFormatError as error:
        raise wrong_format(error) from error
    except OSError as error:
        raise Failure(CANNOT_OPEN.format(path)) from error


def _standard_input() -> bytes:
    if sys.stdin is None:  # closed by whoever started the command
        raise Failure("can't read standard input: it is closed")
    return sys.stdin.buffer.read()


def _read(file: BinaryIO, target: str | None, context: Context) -> AnyData:
    if _is_table(file):
        return _read_table(file, "auto" if target is None else target)
    if target is not None:
        raise Failure("--target is for CSV and Parquet files; this is neither")
    data, index_base = read_samples(file, context)
    return AnyData(data.X, data.y, index_base)


def _is_table(file: BinaryIO) -> bool:
    return guess_format(file) != "svmlight"


def _read_table(file: BinaryIO, label: str | None) -> AnyData:
    table = read_table(file, label=label)
    return AnyData(table.X, table.y, 1, tuple(table.names), table.label)
