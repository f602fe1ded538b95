"""How do commands read data, and in whose words do they complain?"""

from typing import TYPE_CHECKING, NamedTuple

from maxmargin.cli.console import Context, Failure
from maxmargin.errors import DataFormatError

if TYPE_CHECKING:
    from maxmargin.data.svmlight import TextData
    from maxmargin.data.svmlight_files import Source
    from maxmargin.typing import FloatVector

CANNOT_OPEN = "can't open input file {}"
NO_SERIAL = "Wrong input format: first column must be 0:sample_serial_number"


class IndexedData(NamedTuple):
    """A file in LIBSVM's format, and which index its first column has: 0 or 1."""

    data: "TextData"
    index_base: int


def read_indexed(
    source: "Source", context: Context, missing: str = CANNOT_OPEN
) -> "TextData":
    """A file in LIBSVM's format, whose index j is column j."""
    from maxmargin.data.svmlight import read_svmlight
    from maxmargin.data.svmlight_files import name_of

    try:
        return read_svmlight(source, index_base=0, n_threads=context.cores)
    except DataFormatError as error:
        raise wrong_format(error) from error
    except OSError as error:
        raise Failure(missing.format(name_of(source))) from error


def read_samples(source: "Source", context: Context) -> IndexedData:
    """A file in LIBSVM's format; the first column is index 1, or 0 if that occurs."""
    data = read_indexed(source, context)
    if (data.X.indices == 0).any():
        return IndexedData(data, 0)
    return IndexedData(data._replace(X=data.X[:, 1:]), 1)


def read_from_one(path: str, context: Context) -> "TextData":
    """A file whose indices start from 1, as LIBLINEAR insists."""
    data, index_base = read_samples(path, context)
    if index_base == 0:
        raise Failure("Wrong input format: feature index 0, but indices start from 1")
    return data


def read_kernel_rows(path: str, context: Context) -> "TextData":
    """Rows of a precomputed kernel; column 0 holds the number of the sample."""
    data = read_indexed(path, context)
    starts, ends = data.X.indptr[:-1], data.X.indptr[1:]
    if (starts == ends).any() or (data.X.indices[starts] != 0).any():
        raise Failure(NO_SERIAL)
    return data


def read_sample_weights(path: str, n_samples: int) -> "FloatVector":
    """A file with one weight a line, as many as there are samples."""
    from maxmargin.data.svmlight import read_weights

    try:
        return read_weights(path, n_samples)
    except DataFormatError as error:
        raise wrong_format(error) from error
    except OSError as error:
        raise Failure(f"can't open instance weight file {path}") from error


def wrong_format(error: DataFormatError) -> Failure:
    """LIBSVM's words, and then ours."""
    text = " ".join(str(error).split())
    if error.line is None:
        return Failure(f"Wrong input format: {text}")
    reason = " ".join(error.reason.split())  # the place is said already
    return Failure(f"Wrong input format at line {error.line}: {reason}")
