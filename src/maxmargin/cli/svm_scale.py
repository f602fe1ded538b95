"""Which range do the features of a data file get? (LIBSVM's svm-scale.)"""

import sys
from typing import TYPE_CHECKING, NamedTuple

from maxmargin.cli.console import Context, Failure, warn

if TYPE_CHECKING:
    from scipy import sparse

    from maxmargin.cli.ranges import Ranges, TargetScaling
    from maxmargin.data.scaling import Scaling
    from maxmargin.typing import FloatVector, IntVector

USAGE = """\
Usage: svm-scale [options] data_filename
options:
-l lower : smallest value of every feature (default -1)
-u upper : largest value of every feature (default +1)
-y y_lower y_upper : smallest and largest target (default: targets stay)
-s save_filename : keep the ranges that were found in save_filename
-r restore_filename : use the ranges that are kept in restore_filename
"""
BLOCK = 1 << 20  # values that are formatted at once
UNSEEN = (
    "WARNING: feature index {} appeared in file {} was not seen in the scaling factor "
    "file {}. The feature is scaled to 0."
)
GREW = (
    "WARNING: original #nonzeros {}\n       > new      #nonzeros {}\n"
    "If feature values are non-negative and sparse, use -l 0 rather than the default "
    "-l -1"
)


class Task(NamedTuple):
    """What the arguments ask for."""

    path: str
    lower: float = -1.0
    upper: float = 1.0
    target: tuple[float, float] | None = None
    save: str | None = None
    restore: str | None = None


def run(arguments: list[str], context: Context) -> int:
    """Write the scaled file to standard output."""
    task = _task(arguments)
    from maxmargin.cli.data_files import read_indexed
    from maxmargin.cli.ranges import write_ranges

    data = read_indexed(task.path, context, "can't open file {}")
    index, X = _compact(data.X)
    if len(index) and index[0] == 0:
        warn("WARNING: minimal feature index is 0, but indices should start from 1")
    ranges = _ranges(task, index, X, data.y)
    if task.save is not None:
        if len(index) and index[0] == 0:
            warn(
                "WARNING: scaling factors with indices smaller than 1 are not stored "
                f"to the file {task.save}."
            )
        write_ranges(task.save, ranges)
    X = _columns(index, X, ranges.indices)
    n_values = _write(X, data.y, ranges)
    if n_values > data.X.nnz:
        warn(GREW.format(data.X.nnz, n_values))
    context.report_beside_data(
        samples=X.shape[0], features=len(index), nonzeros=[data.X.nnz, n_values]
    )
    return 0


def _task(arguments: list[str]) -> Task:
    found: dict[str, list[str]] = {}
    i = 0
    while i < len(arguments) and arguments[i].startswith("-"):
        flag = arguments[i]
        count = {"-l": 1, "-u": 1, "-y": 2, "-s": 1, "-r": 1}.get(flag)
        if count is None:
            raise Failure(f"unknown option: {flag}", usage=USAGE)
        found[flag] = arguments[i + 1 : i + 1 + count]
        if len(found[flag]) < count:
            raise Failure(usage=USAGE)
        i += 1 + count
    if len(arguments) != i + 1:
        raise Failure(usage=USAGE)
    numbers = {
        flag: [_number(flag, text) for text in found.get(flag, default)]
        for flag, default in (("-l", ["-1"]), ("-u", ["1"]), ("-y", []))
    }
    (lower,), (upper,), target = numbers["-l"], numbers["-u"], numbers["-y"]
    if upper <= lower or (target and target[1] <= target[0]):
        raise Failure("inconsistent lower/upper specification")
    if "-r" in found and "-s" in found:
        raise Failure("cannot use -r and -s simultaneously")
    save, restore = found.get("-s", [None])[0], found.get("-r", [None])[0]
    y_limits = (target[0], target[1]) if target else None
    return Task(arguments[i], lower, upper, y_limits, save, restore)


def _number(flag: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0.0:
        raise Failure(f"{flag} needs a finite number, got {text!r}")
    return value


def _compact(X: "sparse.csr_matrix") -> "tuple[IntVector, sparse.csr_matrix]":
    """The indices that occur, and X with a column for each of them only."""
    import numpy as np
    from scipy import sparse

    index, place = np.unique(X.indices, return_inverse=True)
    shape = (X.shape[0], len(index))
    return index.astype(np.intp), sparse.csr_matrix((X.data, place, X.indptr), shape)


def _columns(
    index: "IntVector", X: "sparse.csr_matrix", wanted: "IntVector"
) -> "sparse.csr_matrix":
    """X with columns for the wanted indices, zero where X has none of that index."""
    import numpy as np
    from scipy import sparse

    place = np.searchsorted(wanted, index)
    is_kept = np.isin(index, wanted)[X.indices]
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[is_kept]
    where = (row, place[X.indices[is_kept]])
    shape = (X.shape[0], len(wanted))
    return sparse.csr_matrix((X.data[is_kept], where), shape)


def _ranges(
    task: Task, index: "IntVector", X: "sparse.csr_matrix", y: "FloatVector"
) -> "Ranges":
    """Ranges of the data themselves, or those of the file named by -r."""
    from maxmargin.cli.ranges import Ranges, TargetScaling, read_ranges
    from maxmargin.data.scaling import find_scaling

    own = find_scaling(X, task.lower, task.upper)
    if task.restore is not None:
        ranges = read_ranges(task.restore)
        for unseen in _unseen(index, own, ranges):
            warn(UNSEEN.format(unseen, task.path, task.restore))
        return ranges
    target = None
    if task.target is not None and len(y):
        target = TargetScaling(*task.target, float(y.min()), float(y.max()))
    return Ranges(index, own, target)


def _unseen(index: "IntVector", own: "Scaling", ranges: "Ranges") -> "IntVector":
    """Indices that vary here, and for which the file has no range."""
    import numpy as np

    return np.setdiff1d(index[own.varies], ranges.indices)


def _write(X: "sparse.csr_matrix", y: "FloatVector", ranges: "Ranges") -> int:
    """Write scaled rows, as many at once as fit a block; return how many values."""
    from scipy import sparse

    labels = y if ranges.target is None else _scaled_target(y, ranges.target)
    step = max(1, BLOCK // max(1, X.shape[1]))
    n_values = 0
    for start in range(0, X.shape[0], step):
        block = sparse.csr_matrix(ranges.features.apply(X[start : start + step]))
        n_values += block.nnz
        sys.stdout.write(_lines(block, ranges.indices, labels[start : start + step]))
    return n_values


def _lines(block: "sparse.csr_matrix", index: "IntVector", y: "FloatVector") -> str:
    """Rows as text: six digits a value, as svm-scale prints them."""
    names, values = index[block.indices].tolist(), block.data.tolist()
    pairs = [f"{name}:{value:g} " for name, value in zip(names, values, strict=True)]
    ends = block.indptr.tolist()
    return "".join(
        f"{label:.17g} {''.join(pairs[ends[i] : ends[i + 1]])}\n"
        for i, label in enumerate(y.tolist())
    )


def _scaled_target(y: "FloatVector", target: "TargetScaling") -> "FloatVector":
    import numpy as np

    lower, upper, low, high = target
    with np.errstate(divide="ignore", invalid="ignore"):
        between = lower + (upper - lower) * (y - low) / (high - low)
    return np.where(y == low, lower, np.where(y == high, upper, between))
