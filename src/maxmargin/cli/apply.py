"""What does any model say about a data file?"""

import sys
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import Context, Failure, check_writable, warn, written
from maxmargin.cli.flags import parse, switch, word

if TYPE_CHECKING:
    from maxmargin.cli.any_data import AnyData
    from maxmargin.cli.model_files import ModelFile
    from maxmargin.typing import FloatMatrix

USAGE = """\
Usage: maxmargin apply [options] MODEL DATA [OUTPUT]

Predicts every sample of DATA (LIBSVM's text format, CSV, Parquet; packed or not; - is
standard input) with a model of maxmargin, LIBSVM or LIBLINEAR. Predictions go to
OUTPUT, one a line, and the score to standard output; without OUTPUT, predictions go to
standard output.

options:
  --decisions       write decision values instead of predictions
  --probabilities   write probabilities instead of predictions, classes in a first line
  --target name     column with the truth in CSV and Parquet files
  --quiet           no score
  --threads N, --json, --help
"""
FLAGS = {
    "--decisions": switch(),
    "--probabilities": switch(),
    "--target": word(),
    "--quiet": switch(),
}


def run(arguments: list[str], context: Context) -> int:
    """Predict, write, and score where the truth is known."""
    told = parse(arguments, FLAGS, USAGE, range(2, 4))
    if told["--decisions"] and told["--probabilities"]:
        raise Failure("choose one of --decisions and --probabilities")
    model_path, data_path, *output = told.names
    for path in output:
        check_writable(path, f"can't open output file {path}", model_path, data_path)
    from maxmargin.cli.any_data import read_to_predict
    from maxmargin.cli.model_files import read_model

    file = read_model(model_path)
    known = file.notes.get("target")
    data = read_to_predict(data_path, told["--target"], known, context)
    decisions = decisions_of(file, data, context)
    predicted = file.model.read(decisions)
    lines = _lines(file, decisions, predicted, told.values)
    if output:
        with written(output[0], f"can't open output file {output[0]}") as stream:
            stream.writelines(f"{line}\n" for line in lines)
    elif not context.is_json:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    facts = score_facts(file, predicted, data.y)
    if not told["--quiet"]:
        say = context.say if output else warn
        say(score_line(facts)) if not context.is_json else None
    extra = {} if output else {"predictions": predicted}
    context.report(**facts, **extra)
    return 0


def decisions_of(file: "ModelFile", data: "AnyData", context: Context) -> "FloatMatrix":
    """Decision values of samples that are brought to the model's columns."""
    from maxmargin.models.kernel_model import KernelModel

    model, names = file.model, file.notes.get("features", ())
    is_precomputed = isinstance(model, KernelModel) and model.kernel is None
    if is_precomputed and data.index_base == 0:
        X = data.X[:, 1:]  # index 0 is the number of the sample
    else:
        X = data.columns_from(file.index_base, file.n_features, names)
    return model.decisions(file.prepare(X), context.cores)


def _lines(
    file: "ModelFile", decisions: "FloatMatrix", predicted: Any, told: dict[str, Any]
) -> list[str]:
    if told["--decisions"]:
        return [" ".join(f"{v:.17g}" for v in row) for row in decisions.tolist()]
    if not told["--probabilities"]:
        return [label_text(label) for label in predicted.tolist()]
    shares = file.model.read_probabilities(decisions)
    classes = file.model.classes
    names = ["normal", "outlier"] if classes is None else classes.tolist()
    heading = " ".join(label_text(name) for name in names)
    return [heading, *(" ".join(f"{v:.17g}" for v in row) for row in shares.tolist())]


def label_text(label: Any) -> str:
    """A number with all of its digits, or a word."""
    return f"{label:.17g}" if isinstance(label, int | float) else str(label)


def score_facts(file: "ModelFile", predicted: Any, truth: Any) -> dict[str, Any]:
    """How good predictions are; without truth, only how many there are."""
    from maxmargin.interop import evaluation

    if truth is None:
        return {"samples": len(predicted)}
    is_regression = file.model.is_regressor
    return evaluation.score_facts(truth, predicted, is_regression=is_regression)


def score_line(facts: dict[str, Any]) -> str:
    """One line about all samples."""
    n = facts["samples"]
    if "accuracy" in facts:
        return f"accuracy {facts['accuracy']:.2%} ({facts['correct']} of {n} samples)"
    if "mean_squared_error" in facts:
        return (
            f"mean squared error {facts['mean_squared_error']:.6g}, squared "
            f"correlation {facts['squared_correlation']:.4f} ({n} samples)"
        )
    return f"{n} samples"
