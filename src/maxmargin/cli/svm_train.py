"""How is a kernel machine trained from a file? (LIBSVM's svm-train.)"""

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from maxmargin import _clock
from maxmargin.cli.console import Context, Failure, check_writable
from maxmargin.cli.training import (
    Task,
    cross_validate_aloud,
    kernel_rows_of,
    samples_of,
    save_model,
    task_of,
    train_aloud,
)

if TYPE_CHECKING:
    from maxmargin.interop.libsvm_training import Trained
    from maxmargin.interop.option_strings import SvmOptions
    from maxmargin.interop.samples import DataSet

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
    from maxmargin.interop.libsvm_file import write_libsvm

    failure = f"can't save model to file {task.model}"
    check_writable(task.model, failure, task.data)
    trained = train(data, told, context)
    save_model(write_libsvm, task.model, trained.model)
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


@_clock.paused()
def training_set(task: Task, told: "SvmOptions", context: Context) -> "DataSet":
    """Samples that LIBSVM has no complaint about; limits count what follows."""
    from maxmargin.interop.option_strings import KernelType

    if told.kernel_type == KernelType.PRECOMPUTED:
        data = kernel_rows_of(task, context)
    else:
        data = samples_of(task, context)
    from maxmargin.interop.libsvm_training import check_svm  # now it is worth while

    complaint = check_svm(data, told)
    if complaint is not None:
        raise Failure(f"ERROR: {complaint}")
    return data


def train(data: "DataSet", told: "SvmOptions", context: Context) -> "Trained":
    """Train, and print LIBSVM's lines."""
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.libsvm_training import train_svm

    work = partial(train_svm, data, told, random=CRand())
    trained: Trained = train_aloud(work, context, is_quiet=told.is_quiet)
    return trained


def cross_validate(data: "DataSet", told: "SvmOptions", context: Context) -> None:
    """Print what cross-validation finds: the accuracy, or the mean squared error."""
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.libsvm_cross_validation import cross_validate_svm
    from maxmargin.interop.libsvm_training import REGRESSORS

    work = partial(cross_validate_svm, data, told, random=CRand())
    is_regression = told.svm_type in REGRESSORS
    cross_validate_aloud(work, data, told, context, is_regression=is_regression)


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
