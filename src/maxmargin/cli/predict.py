"""What does a LIBLINEAR model predict? (LIBLINEAR's predict.)"""

from typing import TYPE_CHECKING

from maxmargin.cli.console import Context, Failure
from maxmargin.cli.predicting import (
    Answer,
    open_model,
    report_scores,
    task_of,
    write_answer,
)

if TYPE_CHECKING:
    from maxmargin.cli.model_files import ModelFile
    from maxmargin.data.svmlight import TextData

USAGE = """\
Usage: predict [options] test_file model_file output_file
options:
-b probability_estimates: write probabilities too, 0 or 1 (default 0); \
logistic regression only
-q : quiet mode (no outputs)
"""


def run(arguments: list[str], context: Context) -> int:
    """Write predictions, and print how many are right."""
    task = task_of(arguments, USAGE)
    from maxmargin.models.linear_model import LinearModel

    file = open_model(task.model, LinearModel, "svm-predict")
    model = file.model
    assert isinstance(model, LinearModel)
    data = _samples(file, task.data, context)
    if task.has_probability and not model.is_logistic:
        raise Failure("probability output is only supported for logistic regression")
    decisions = model.decisions(data.X, context.cores)
    answer = Answer(model.read(decisions))
    if task.has_probability:
        shares = model.read_probabilities(decisions)
        names = " ".join(f"{label:g}" for label in model.classes)
        answer = Answer(answer.labels, shares, f"labels {names}")
    write_answer(task.output, answer)
    if not task.is_quiet or context.is_json:
        report_scores(data, answer, context, is_regression=model.is_regressor)
    return 0


def _samples(file: "ModelFile", path: str, context: Context) -> "TextData":
    """Samples whose columns mean what the model's columns mean."""
    from maxmargin.cli.data_files import read_from_one, read_indexed

    if file.index_base == 0:
        data = read_indexed(path, context)
    else:
        data = read_from_one(path, context)
    return data._replace(X=file.prepare(data.X))
