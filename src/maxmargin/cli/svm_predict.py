"""What does a LIBSVM model predict? (LIBSVM's svm-predict.)"""

from typing import TYPE_CHECKING, Any

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
    from maxmargin.models.kernel_model import KernelModel

USAGE = """\
Usage: svm-predict [options] test_file model_file output_file
options:
-b probability_estimates: write probabilities too, 0 or 1 (default 0)
-q : quiet mode (no outputs)
"""
LAPLACE = (
    "Prob. model for test data: target value = predicted value + z,\n"
    "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={:g}"
)


def run(arguments: list[str], context: Context) -> int:
    """Write predictions, and print how many are right."""
    task = task_of(arguments, USAGE)
    from maxmargin.models.kernel_model import KernelModel

    file = open_model(task.model, KernelModel, "predict")
    model = file.model
    assert isinstance(model, KernelModel)
    data = _samples(model, file, task.data, context)
    if task.has_probability and not model.has_probabilities:
        raise Failure("Model does not support probability estimates")
    if not task.has_probability and model.has_probabilities and not task.is_quiet:
        context.say("Model supports probability estimates, but disabled in prediction.")
    if task.has_probability and model.is_regressor and not task.is_quiet:
        context.say(LAPLACE.format(model.sigma))
    answer = _answer(model, data.X, context, has_probability=task.has_probability)
    write_answer(task.output, answer)
    if not task.is_quiet or context.is_json:
        suffix = " (classification)"
        is_regression = model.is_regressor
        report_scores(data, answer, context, is_regression=is_regression, suffix=suffix)
    return 0


def _samples(
    model: "KernelModel", file: "ModelFile", path: str, context: Context
) -> "TextData":
    """Samples whose columns mean what the model's columns mean."""
    from maxmargin.cli.data_files import read_indexed, read_kernel_rows
    from maxmargin.interop.samples import Samples, aligned

    if model.kernel is None:
        data = read_kernel_rows(path, context)
        return data._replace(X=data.X[:, 1:])
    data = read_indexed(path, context)
    samples = Samples(data.X, data.X.shape[1] - 1, first=0)
    X = aligned(samples, file.index_base, file.n_features)
    return data._replace(X=file.prepare(X))


def _answer(
    model: "KernelModel", X: Any, context: Context, *, has_probability: bool
) -> Answer:
    decisions = model.decisions(X, context.cores)
    if not has_probability or model.is_regressor:
        return Answer(model.read(decisions))
    shares = model.read_probabilities(decisions)
    if not model.is_classifier:
        return Answer(model.read(decisions), shares, "label normal outlier")
    names = " ".join(f"{label:g}" for label in model.classes)
    return Answer(model.classes[shares.argmax(axis=1)], shares, f"labels {names}")
