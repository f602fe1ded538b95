"""Which format is a data file in, and what does it hold?

By its name (.csv, .tsv, .txt with commas, .parquet) or by its first line: pairs of
index:value are LIBSVM's text format.
"""

import re
from typing import Any, NamedTuple

from scipy import sparse

from maxmargin.cli.console import Context, Failure
from maxmargin.cli.data_files import CANNOT_OPEN, read_samples, wrong_format
from maxmargin.errors import DataFormatError, NotAvailable

TABLE_NAMES = re.compile(r"\.(csv|tsv|parquet|pq)(\.(gz|bz2|xz))?$", re.IGNORECASE)
HEAD = 4096  # bytes in which a first line is looked for
PAIR = re.compile(rb"\s\d+:")


class AnyData(NamedTuple):
    """Samples, targets if there are any, and where indices start."""

    X: Any  # CSR, or dense from a table
    y: Any  # numbers, text, or None
    index_base: int = 1
    names: tuple[str, ...] = ()  # of the columns, from a table
    target: str | None = None

    def columns_from(self, index_base: int, n_features: int) -> Any:
        """X with the columns of a model whose first column has index `index_base`."""
        if self.names and self.X.shape[1] != n_features:
            raise Failure(
                f"the table has {self.X.shape[1]} features, but the model {n_features}"
            )
        if self.index_base == index_base:
            return self.X
        X = sparse.csr_matrix(self.X)
        if index_base == 1:  # the model knows nothing of index 0
            return X[:, 1:]
        nothing = sparse.csr_matrix((X.shape[0], 1))
        return sparse.csr_matrix(sparse.hstack([nothing, X]))


def read_any(path: str, target: str | None, context: Context) -> AnyData:
    """Read a data file in whatever format it is."""
    if is_table(path):
        return _read_table(path, target)
    if target is not None:
        raise Failure("--target is for CSV and Parquet files; this is neither")
    data, index_base = read_samples(path, context)
    return AnyData(data.X, data.y, index_base)


def is_table(path: str) -> bool:
    """Whether a file has columns, as CSV and Parquet files have."""
    if TABLE_NAMES.search(path):
        return True
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise Failure(CANNOT_OPEN.format(path)) from error
    lines = head.splitlines()
    if head.startswith(b"PAR1"):
        return True
    first = next((line for line in lines if line.strip()), b"")
    has_columns = any(mark in first for mark in (b",", b";", b"\t"))
    return has_columns and not PAIR.search(first)


def _read_table(path: str, target: str | None) -> AnyData:
    from maxmargin.data.tables import read_table

    try:
        table = read_table(path, target=target)
    except DataFormatError as error:
        raise wrong_format(error) from error
    except NotAvailable:
        raise
    except OSError as error:
        raise Failure(CANNOT_OPEN.format(path)) from error
    return AnyData(table.X, table.y, 1, tuple(table.names), table.target)
