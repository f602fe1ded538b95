"""How is a linear machine trained from a file? (LIBLINEAR's train.)"""

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from maxmargin import _clock
from maxmargin.cli.console import Context, Failure, check_writable, warn
from maxmargin.cli.progress import progress_line
from maxmargin.cli.training import (
    Task,
    cross_validate_aloud,
    pace_of,
    samples_of,
    save_model,
    task_of,
    train_aloud,
)

if TYPE_CHECKING:
    from maxmargin.interop.liblinear_training import TrainedLinear
    from maxmargin.interop.option_strings import LinearOptions
    from maxmargin.interop.samples import DataSet

USAGE = """\
Usage: train [options] training_set_file [model_file]
options:
-s type : the solver, which stands for a loss and a penalty (default 1)
  to tell classes apart
     0 -- L2-regularized logistic regression (primal)
     1 -- L2-regularized L2-loss support vector classification (dual)
     2 -- L2-regularized L2-loss support vector classification (primal)
     3 -- L2-regularized L1-loss support vector classification (dual)
     4 -- support vector classification by Crammer and Singer
     5 -- L1-regularized L2-loss support vector classification
     6 -- L1-regularized logistic regression
     7 -- L2-regularized logistic regression (dual)
  to predict numbers
    11 -- L2-regularized L2-loss support vector regression (primal)
    12 -- L2-regularized L2-loss support vector regression (dual)
    13 -- L2-regularized L1-loss support vector regression (dual)
  to tell ordinary samples from others
    21 -- one-class support vector machine (dual)
-c cost : the parameter C (default 1)
-p epsilon : half the width of the tube of regressions (default 0.1)
-n nu : the parameter nu of -s 21 (default 0.5)
-e epsilon : tolerance of the solver's own stopping rule
    (default 0.01 for -s 0, 2, 5, 6, 21; 0.0001 for -s 11; 0.1 for the others)
-B bias : append a feature of this value to every sample; below 0: none (default -1)
-R : leave the weight of that feature out of the penalty; needs -B 1
    (for -s 0, 2, 5, 6, 11)
-wi weight : C of class i is weight times C
-W weight_file : one weight for every sample, a line each
-v n: n-fold cross validation mode
-C : find parameters (C for -s 0, 2 and C, p for -s 11)
-q : quiet mode (no outputs)
"""
WITH_VALUE, SWITCHES = "scpneBwvW", "qCR"
SOLVERS = ("0", "1", "2", "3", "4", "5", "6", "7", "11", "12", "13", "21")


def run(arguments: list[str], context: Context) -> int:
    """Train and write a model, cross-validate, or search parameters."""
    task = task_of(arguments, USAGE, WITH_VALUE, SWITCHES, "unknown option")
    told = options_of(task.options)
    data = _training_set(task, told, context)
    if told.flag_find_parameters:
        _search(data, told, task, context)
    elif told.flag_cross_validation:
        _cross_validate(data, told, context)
    else:
        from maxmargin.interop.liblinear_file import write_liblinear

        failure = f"can't save model to file {task.model}"
        check_writable(task.model, failure, task.data)
        trained = _train(data, told, context)
        save_model(write_liblinear, task.model, trained.model)
        _report(trained, task, context)
    return 0


@_clock.paused()
def _training_set(task: Task, told: "LinearOptions", context: Context) -> "DataSet":
    """Samples that LIBLINEAR has no complaint about; limits count what follows."""
    data = samples_of(task, context)
    if data.first == 0:
        raise Failure("Wrong input format: feature index 0, but indices start from 1")
    from maxmargin.interop.liblinear_training import check_linear

    complaint = check_linear(data, told)
    if complaint is not None:
        raise Failure(f"ERROR: {complaint}")
    return data


def options_of(words: list[str]) -> "LinearOptions":
    """The options as values; bad folds and solvers in LIBLINEAR's words."""
    from maxmargin.errors import InvalidInput
    from maxmargin.interop.option_strings import parse_linear_options

    for flag, value in pairwise(words):
        if flag == "-s" and value not in SOLVERS:
            raise Failure("ERROR: unknown solver type")
    try:
        told: LinearOptions = parse_linear_options(words)
    except InvalidInput as error:
        text = " ".join(str(error).split())
        has_usage = text.startswith(("n-fold", "Warm-start"))
        raise Failure(text, usage=USAGE if has_usage else "") from error
    return told


def _train(data: "DataSet", told: "LinearOptions", context: Context) -> "TrainedLinear":
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.liblinear_training import train_linear

    work = partial(train_linear, data, told, random=CRand())
    trained: TrainedLinear = train_aloud(work, context, is_quiet=told.is_quiet)
    return trained


def _cross_validate(data: "DataSet", told: "LinearOptions", context: Context) -> None:
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.liblinear_training import REGRESSORS, cross_validate_linear

    work = partial(cross_validate_linear, data, told, random=CRand())
    is_regression = told.solver_type in REGRESSORS
    cross_validate_aloud(work, data, told, context, is_regression=is_regression)


def _search(
    data: "DataSet", told: "LinearOptions", task: Task, context: Context
) -> None:
    """-C: which C, and which p, cross-validation prefers."""
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.liblinear_search import find_parameters
    from maxmargin.interop.liblinear_training import REGRESSORS
    from maxmargin.interop.libsvm_training import quiet

    if "-s" not in task.options:
        warn("Solver not specified. Using -s 2")
    context.say(f"Doing parameter search with {told.nr_fold}-fold cross validation.")
    with progress_line(context) as line:
        say = quiet if told.is_quiet else partial(context.say, end="")
        best = find_parameters(data, told, say, pace_of(context, line), CRand())
    context.say(best.line)
    if told.solver_type in REGRESSORS:
        found = {"C": best.C, "p": best.p, "mean_squared_error": best.score}
    else:
        found = {"C": best.C, "accuracy": best.score}
    tried = {"settings_tried": best.n_tried, "is_complete": best.is_complete}
    context.report(**found, folds=told.nr_fold, **tried)


def _report(trained: "TrainedLinear", task: Task, context: Context) -> None:
    planes = [
        {
            "status": found.solution.status.name,
            "iterations": found.solution.n_iter,
            "objective": found.solution.objective,
            "gap": found.solution.gap,
        }
        for found in trained.evidence
    ]
    context.report(model=task.model, features=trained.model.n_features, problems=planes)
