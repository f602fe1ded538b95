"""What do svm-predict and predict have in common? Options, output lines, scores."""

from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.console import Context, Failure, about, check_writable, written
from maxmargin.errors import ModelFormatError

if TYPE_CHECKING:
    from maxmargin.data.svmlight import TextData
    from maxmargin.typing import FloatMatrix


class Task(NamedTuple):
    """What the arguments ask for."""

    data: str
    model: str
    output: str
    has_probability: bool = False
    is_quiet: bool = False


class Answer(NamedTuple):
    """What a model says about samples."""

    labels: Any  # one per sample
    probabilities: "FloatMatrix | None" = None
    heading: str = ""  # names the columns of probabilities


def task_of(arguments: list[str], usage: str) -> Task:
    """Options first, then three files; only an option's first letter counts."""
    has_probability = is_quiet = False
    i = 0
    while i < len(arguments) and arguments[i].startswith("-"):
        letter = arguments[i][1:2]
        if letter == "q":
            is_quiet = True
        elif letter == "b" and i + 1 < len(arguments):
            has_probability = _switch(arguments[i + 1])
            i += 1
        elif letter == "b":
            raise Failure(usage=usage)
        else:
            raise Failure(f"Unknown option: -{letter}", usage=usage)
        i += 1
    if len(arguments) - i < 3:
        raise Failure(usage=usage)
    data, model, output = arguments[i : i + 3]
    check_writable(output, f"can't open output file {output}", data, model)
    return Task(data, model, output, has_probability, is_quiet)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise Failure(f"-b needs 0 or 1, got {text!r}")
    return text == "1"


def open_model(path: str, read: Callable[[str], Any], other: str) -> Any:
    """A model, or LIBSVM's words about why there is none.

    `other` is the command for models of the other kind.
    """
    try:
        return read(path)
    except ModelFormatError as error:
        reason = about(error, path)
        if "_type' is not known" in reason:
            reason += f" A model of another kind: try `maxmargin {other}`."
        raise Failure(f"can't open model file {path}: {reason}") from error
    except OSError as error:
        raise Failure(f"can't open model file {path}") from error


def write_answer(path: str, answer: Answer) -> None:
    """One line a sample, below a heading where there are probabilities."""
    with written(path, f"can't open output file {path}") as stream:
        if answer.probabilities is None:
            _write_labels(stream, answer.labels.tolist())
            return
        stream.write(answer.heading + "\n")
        rows = zip(answer.labels.tolist(), answer.probabilities.tolist(), strict=True)
        for label, row in rows:
            shares = " ".join(f"{share:g}" for share in row)
            stream.write(f"{label:g} {shares}\n")


def _write_labels(stream: IO[str], labels: Iterable[float]) -> None:
    stream.writelines(f"{label:.17g}\n" for label in labels)


def report_scores(
    data: "TextData",
    answer: Answer,
    context: Context,
    *,
    is_regression: bool,
    suffix: str = "",
) -> None:
    """Accuracy, or the two numbers of a regression."""
    from maxmargin.interop.evaluation import regression_lines, score

    n = len(data.y)
    scores = score(data.y, answer.labels)
    if is_regression:
        for line in regression_lines(scores):
            context.say(line)
        context.report(
            samples=n,
            mean_squared_error=scores.squared_error,
            squared_correlation=scores.squared_correlation,
        )
        return
    n_right = int((answer.labels == data.y).sum())
    context.say(f"Accuracy = {scores.accuracy:g}% ({n_right}/{n}){suffix}")
    context.report(samples=n, correct=n_right, accuracy=n_right / n)
