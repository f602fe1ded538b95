"""How is a kernel machine trained from a file? (LIBSVM's svm-train.)"""

from itertools import pairwise
from typing import TYPE_CHECKING

from maxmargin.cli.console import Context, Failure, check_writable
from maxmargin.cli.progress import progress_line
from maxmargin.cli.training import (
    Task,
    kernel_rows_of,
    pace_of,
    samples_of,
    task_of,
)

if TYPE_CHECKING:
    from maxmargin.interop.libsvm_training import Trained
    from maxmargin.interop.option_strings import SvmOptions
    from maxmargin.interop.samples import DataSet
    from maxmargin.models.kernel_model import KernelModel

USAGE = """\
Usage: svm-train [options] training_set_file [model_file]
options:
-s svm_type : which machine (default 0)
    0 -- C-SVC   (tells classes apart)
    1 -- nu-SVC   (tells classes apart)
    2 -- one-class SVM
    3 -- epsilon-SVR (predicts numbers)
    4 -- nu-SVR   (predicts numbers)
-t kernel_type : which kernel (default 2)
    0 -- linear: u'*v
    1 -- polynomial: (gamma*u'*v + coef0)^degree
    2 -- radial basis function: exp(-gamma*|u-v|^2)
    3 -- sigmoid: tanh(gamma*u'*v + coef0)
    4 -- precomputed: kernel values in training_set_file
-d degree : degree of the polynomial kernel (default 3)
-g gamma : gamma of the kernel (default 1/num_features)
-r coef0 : coef0 of the kernel (default 0)
-c cost : the parameter C of C-SVC, epsilon-SVR and nu-SVR (default 1)
-n nu : the parameter nu of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon : half the width of epsilon-SVR's tube (default 0.1)
-m cachesize : MB for kernel values (default 100, which stands for: as many as fit)
-e epsilon : tolerance, checked in float64 (default 0.001)
-h shrinking : whether variables may be set aside, 0 or 1 (default 1)
-b probability_estimates : whether the model can tell probabilities, 0 or 1 (default 0)
-wi weight : C of class i is weight times C, for C-SVC (default 1)
-W weight_file : one weight for every sample, a line each
-v n: n-fold cross validation mode
-q : quiet mode (no outputs)
"""
WITH_VALUE, SWITCHES = "stdgrcnpmehbwvW", "q"


def run(arguments: list[str], context: Context) -> int:
    """Train and write a model, or cross-validate."""
    task = task_of(arguments, USAGE, WITH_VALUE, SWITCHES, "Unknown option")
    told = options_of(task.options)
    data = training_set(task, told, context)
    if told.cross_validation:
        cross_validate(data, told, context)
        return 0
    check_writable(task.model, f"can't save model to file {task.model}")
    trained = train(data, told, context)
    save(trained.model, task.model)
    _report(trained, task, context)
    return 0


def options_of(words: list[str]) -> "SvmOptions":
    """The options as values; bad folds and types in LIBSVM's words."""
    from maxmargin.errors import InvalidInput
    from maxmargin.interop.option_strings import parse_svm_options

    types = {"-s": "unknown svm type", "-t": "unknown kernel type"}
    for flag, value in pairwise(words):
        if flag in types and value not in tuple("01234"):
            raise Failure(f"ERROR: {types[flag]}")
    try:
        told: SvmOptions = parse_svm_options(words)
    except InvalidInput as error:
        usage = USAGE if "n-fold" in str(error) else ""
        raise Failure(" ".join(str(error).split()), usage=usage) from error
    return told


def training_set(task: Task, told: "SvmOptions", context: Context) -> "DataSet":
    """Samples that LIBSVM has no complaint about, given the options."""
    from maxmargin.interop.libsvm_training import check_svm
    from maxmargin.interop.option_strings import KernelType

    if told.kernel_type == KernelType.PRECOMPUTED:
        data = kernel_rows_of(task, context)
    else:
        data = samples_of(task, context)
    complaint = check_svm(data, told)
    if complaint is not None:
        raise Failure(f"ERROR: {complaint}")
    return data


def train(data: "DataSet", told: "SvmOptions", context: Context) -> "Trained":
    """Train, and print LIBSVM's lines."""
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.libsvm_training import train_svm

    with progress_line(context) as line:
        lines: list[str] = []
        pace = pace_of(context, line)
        trained = train_svm(data, told, lines.append, pace, CRand())
    if not told.is_quiet:
        context.say("".join(lines), end="")
    return trained


def save(model: "KernelModel", path: str) -> None:
    """Write the model in LIBSVM's format."""
    from maxmargin.interop.libsvm_file import write_libsvm

    try:
        write_libsvm(path, model)
    except OSError as error:
        raise Failure(f"can't save model to file {path}") from error


def cross_validate(data: "DataSet", told: "SvmOptions", context: Context) -> float:
    """Print what cross-validation finds: the accuracy, or the mean squared error."""
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.evaluation import cross_validation_lines, score
    from maxmargin.interop.libsvm_training import REGRESSORS, cross_validate_svm

    lines: list[str] = []
    with progress_line(context) as line:
        pace = pace_of(context, line)
        predicted = cross_validate_svm(data, told, lines.append, pace, CRand())
    if not told.is_quiet:
        context.say("".join(lines), end="")
    scores = score(data.y, predicted)
    is_regression = told.svm_type in REGRESSORS
    for text in cross_validation_lines(scores, is_regression=is_regression):
        context.say(text)
    context.report(folds=told.nr_fold, **scores._asdict())
    return scores.squared_error if is_regression else scores.accuracy


def _report(trained: "Trained", task: Task, context: Context) -> None:
    problems = [
        {
            "status": found.machine.solution.status.name,
            "iterations": found.machine.solution.n_iter,
            "objective": found.machine.objective,
            "violation": found.machine.solution.violation,
            "gap": found.machine.solution.gap,
            "rho": found.rho,
            "support_vectors": found.n_support,
            "bounded": found.n_bounded,
        }
        for found in trained.evidence
    ]
    n_vectors = trained.model.n_vectors
    context.report(model=task.model, support_vectors=n_vectors, problems=problems)
