"""How do commands read data, and in whose words do they complain?"""

from typing import TYPE_CHECKING

from maxmargin.cli.console import Context, Failure
from maxmargin.errors import DataFormatError

if TYPE_CHECKING:
    from maxmargin.data.svmlight import TextData
    from maxmargin.typing import FloatVector

CANNOT_OPEN = "can't open input file {}"
NO_SERIAL = "Wrong input format: first column must be 0:sample_serial_number"
INDEX_ZERO = "Wrong input format: feature index 0, but indices start from 1"


def read_indexed(path: str, missing: str, context: Context) -> "TextData":
    """A file in LIBSVM's format, whose index j is column j."""
    from maxmargin.data.svmlight import read_svmlight

    try:
        return read_svmlight(path, index_base=0, n_threads=context.cores)
    except DataFormatError as error:
        raise wrong_format(error) from error
    except OSError as error:
        raise Failure(missing.format(path)) from error


def read_samples(path: str, context: Context) -> "TextData":
    """A file in LIBSVM's format, whose index j is column j - 1."""
    data = read_indexed(path, CANNOT_OPEN, context)
    if (data.X.indices == 0).any():
        raise Failure(INDEX_ZERO)
    return data._replace(X=data.X[:, 1:])


def read_kernel_rows(path: str, context: Context) -> "TextData":
    """Rows of a precomputed kernel: column 0 numbers the sample, column j is K(., j)."""
    data = read_indexed(path, CANNOT_OPEN, context)
    if data.X.shape[1] == 0 or (data.X.indptr[1:] == data.X.indptr[:-1]).any():
        raise Failure(NO_SERIAL)
    if (data.X.indices[data.X.indptr[:-1]] != 0).any():
        raise Failure(NO_SERIAL)
    return data


def read_weights(path: str, n_samples: int) -> "FloatVector":
    """A file with one weight a line, as many as there are samples."""
    import numpy as np

    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            words = lines.read().split()
        weights = np.array(words, dtype=np.float64)
    except OSError as error:
        raise Failure(f"can't open instance weight file {path}") from error
    except ValueError as error:
        raise Failure(f"{path}: weights must be numbers, one a line") from error
    if len(weights) != n_samples:
        raise Failure(f"{path}: {len(weights)} weights for {n_samples} samples")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise Failure(f"{path}: weights must be finite and not negative")
    return weights


def wrong_format(error: DataFormatError) -> Failure:
    """LIBSVM's words, and then ours."""
    reason = " ".join(str(error).split())
    line = getattr(error, "line", None)
    where = "" if line is None else f" at line {line}"
    return Failure(f"Wrong input format{where}: {reason}")
