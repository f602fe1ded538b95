"""What do svm-train and train have in common? Arguments, samples, progress."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.console import Context, Failure
from maxmargin.cli.progress import Line, progress_line

if TYPE_CHECKING:
    from maxmargin.interop.libsvm_training import Pace, Say
    from maxmargin.interop.option_strings import LinearOptions, SvmOptions
    from maxmargin.interop.samples import DataSet
    from maxmargin.solvers import Progress
    from maxmargin.typing import FloatVector


class Task(NamedTuple):
    """Options as their programs' parsers take them, and files."""

    options: list[str]
    data: str
    model: str
    weights: str | None = None


def task_of(
    arguments: list[str], usage: str, known: str, switches: str, complaint: str
) -> Task:
    """Options first, then the data file, then perhaps the model file.

    Only an option's first letter counts, but for -wi, whose label follows it. `known`
    and `switches` are the letters with and without a value.
    """
    options: list[str] = []
    weights, i = None, 0
    while i < len(arguments) and arguments[i].startswith("-"):
        letter = arguments[i][1:2]
        if letter in switches and letter:
            options.append(f"-{letter}")
            i += 1
            continue
        if letter not in known or not letter:
            raise Failure(f"{complaint}: -{letter}", usage=usage)
        if i + 1 >= len(arguments):
            raise Failure(usage=usage)
        if letter == "W":
            weights = arguments[i + 1]
        else:
            flag = arguments[i] if letter == "w" else f"-{letter}"
            options += [flag, arguments[i + 1]]
        i += 2
    files = arguments[i : i + 2]
    if not files:
        raise Failure(usage=usage)
    model = files[1] if len(files) > 1 else f"{os.path.basename(files[0])}.model"
    return Task(options, files[0], model, weights)


def kernel_rows_of(task: Task, context: Context) -> "DataSet":
    """Rows of a precomputed kernel, and weights."""
    from maxmargin.cli.data_files import read_kernel_rows
    from maxmargin.interop.samples import DataSet

    data = read_kernel_rows(task.data, context)
    weight = _weight_of(task, len(data.y))
    return DataSet(data.X, data.y, data.X.shape[1] - 1, weight)


def samples_of(task: Task, context: Context) -> "DataSet":
    """What is in the data file, and in the file of weights."""
    from maxmargin.cli.data_files import read_samples
    from maxmargin.interop.samples import DataSet

    data, index_base = read_samples(task.data, context)
    weight = _weight_of(task, len(data.y))
    largest = data.X.shape[1] - 1 + index_base
    return DataSet(data.X, data.y, largest, weight, index_base)


def _weight_of(task: Task, n_samples: int) -> "FloatVector | None":
    from maxmargin.cli.data_files import read_sample_weights

    if task.weights is None:
        return None
    return read_sample_weights(task.weights, n_samples)


def train_aloud(
    train: "Callable[[Say, Pace], Any]", context: Context, *, is_quiet: bool
) -> Any:
    """Train behind a progress line, and print afterwards what was said meanwhile."""
    lines: list[str] = []
    with progress_line(context) as line:
        found = train(lines.append, pace_of(context, line))
    if not is_quiet:
        context.say("".join(lines), end="")
    return found


def cross_validate_aloud(
    work: "Callable[[Say, Pace], Any]",
    data: "DataSet",
    told: "SvmOptions | LinearOptions",
    context: Context,
    *,
    is_regression: bool,
) -> None:
    """Print what cross-validation finds: the accuracy, or the mean squared error."""
    from maxmargin.interop.evaluation import judge_folds, score_facts

    predicted = train_aloud(work, context, is_quiet=told.is_quiet)
    judge_folds(data.y, predicted, context.say, is_regression=is_regression)
    facts = score_facts(data.y, predicted, is_regression=is_regression)
    context.report(folds=told.nr_fold, **facts)


def save_model(write: Callable[[str, Any], None], path: str, model: Any) -> None:
    """Write a model, or complain in LIBSVM's words."""
    try:
        write(path, model)
    except OSError as error:
        raise Failure(f"can't save model to file {path}") from error


def pace_of(context: Context, line: Line) -> "Pace":
    """Threads, limit, and a line that shows how far training is."""
    from maxmargin.interop.libsvm_training import Pace

    def show(progress: "Progress") -> None:
        line.show(
            f"iteration {progress.n_iter:,}   objective {progress.objective:.6g}   "
            f"violation {progress.violation:.2g}"
        )

    return Pace(context.cores, context.time_limit, show, context.started)
