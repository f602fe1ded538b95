"""What do svm-predict and predict have in common? Options, output lines, scores."""

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.console import Context, Failure, check_writable, written

if TYPE_CHECKING:
    from maxmargin.cli.model_files import ModelFile
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


def open_model(path: str, kind: type[Any], other: str) -> "ModelFile":
    """A model of this kind in any format, or why there is none.

    `other` is the command for models of the other kind.
    """
    from maxmargin.cli.model_files import read_model

    file = read_model(path)
    if not isinstance(file.model, kind):
        raise Failure(
            f"can't open model file {path}: it holds another kind of machine; use "
            f"`maxmargin {other}` or `maxmargin apply`"
        )
    classes = file.model.classes
    if classes is not None and classes.dtype.kind not in "biuf":
        raise Failure(
            f"can't open model file {path}: its classes are words, and data in this "
            "format have numbers; use `maxmargin apply`"
        )
    return file


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
    from maxmargin.interop.evaluation import regression_lines, score, score_facts

    n, scores = len(data.y), score(data.y, answer.labels)
    facts = score_facts(data.y, answer.labels, is_regression=is_regression)
    if is_regression:
        for line in regression_lines(scores):
            context.say(line)
    else:
        n_right = facts["correct"]
        context.say(f"Accuracy = {scores.accuracy:g}% ({n_right}/{n}){suffix}")
    context.report(**facts)
