"""How does somebody get a good machine from a data file, without any options?"""

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin import _clock
from maxmargin.cli.console import (
    STANDARD_INPUT,
    Context,
    Failure,
    check_writable,
    warn,
)
from maxmargin.cli.flags import Parsed, one_of, parse, positive, switch, whole, word
from maxmargin.cli.progress import Line, progress_line

if TYPE_CHECKING:
    from maxmargin.cli.any_data import AnyData
    from maxmargin.cli.selecting import Fitted, Samples, Setting, Tried
    from maxmargin.data.scaling import Scaling
    from maxmargin.typing import IntVector

USAGE = """\
Usage: maxmargin fit [options] DATA [MODEL]

Reads DATA (LIBSVM's text format, CSV, Parquet; packed or not; - is standard input),
scales the features, chooses C and gamma by cross-validation, trains, and writes MODEL
in maxmargin's own format, with the scaling (default: DATA's name with .maxmargin added,
in this folder).

options:
  --task auto|classify|regress   classes or numbers? (default: as targets look)
  --kernel auto|rbf|linear       (default: linear for very many features or samples)
  --C number, --gamma number     given values are not searched
  --folds n                      parts of the cross-validation (default 5)
  --target name                  column to predict in CSV and Parquet files
  --no-scale                     leave the features as they are
  --quiet                        no report
  --threads N, --time-limit S, --json, --help
"""
FLAGS = {
    "--task": one_of("auto", "classify", "regress"),
    "--kernel": one_of("auto", "rbf", "linear"),
    "--C": positive(),
    "--gamma": positive(),
    "--folds": whole(2, 5),
    "--target": word(),
    "--no-scale": switch(),
    "--quiet": switch(),
}
MANY_FEATURES, MANY_SAMPLES = 5_000, 100_000  # a linear machine does well, and is quick
FEW_CLASSES, FEW_MEMBERS = 20, 10
SPARSE = 0.25  # share of nonzero values below which zeros stay zeros
SEARCH_SHARE = 0.6  # of a time limit
CUT_SHORT = (
    "WARNING: the time limit ended the search after {} of {} settings of C and gamma; "
    "a longer --time-limit may find a better one"
)


class Prepared(NamedTuple):
    """Samples as machines see them, and how they came to be so."""

    samples: "Samples"
    scaling: "Scaling | None"
    kernel: str
    n_features: int  # of the data
    columns: "IntVector | None" = None  # of the data that are kept; None: all


class Outcome(NamedTuple):
    """What a search chose, and how much of it there was time for."""

    tried: "Tried"
    n_folds: int
    n_tried: int
    n_planned: int


def run(arguments: list[str], context: Context) -> int:
    """Read, scale, search, train, report, write."""
    told = parse(arguments, FLAGS, USAGE, range(1, 3))
    path = told.names[0]
    model_path = (told.names[1:] or [_default_name(path)])[0]
    check_writable(model_path, f"can't save model to file {model_path}", path)
    from maxmargin.data.whole_files import is_device

    with progress_line(context) as line:
        data, prepared = _read(path, told, context, line)
        outcome = _search(prepared, told, context, line)
        fitted = _train(prepared.samples, outcome.tried.setting, context, line)
    _write(model_path, fitted, prepared, data, outcome.tried)
    from maxmargin.cli.fit_report import facts_of, report_lines

    facts = facts_of(prepared, outcome.tried, fitted) | {
        "data": path,
        "folds": outcome.n_folds,
        "settings_tried": outcome.n_tried,
        "settings_planned": outcome.n_planned,
        "model": model_path,
        "seconds": time.monotonic() - context.began,
    }
    is_stream = is_device(model_path)
    if not told["--quiet"] and not context.is_json:
        say = warn if is_stream else context.say  # a model is not mixed with lines
        for text in report_lines(facts):
            say(text)
    report = context.report_beside_data if is_stream else context.report
    report(**facts)
    return 0


def _default_name(path: str) -> str:
    name = "stdin" if path == STANDARD_INPUT else os.path.basename(path)
    return f"{name}.maxmargin"


@_clock.paused()
def _read(
    path: str, told: Parsed, context: Context, line: Line
) -> "tuple[AnyData, Prepared]":
    """The data, as they are and as machines see them; limits count what follows."""
    from maxmargin.cli.any_data import read_any

    data = read_any(path, told["--target"], context)
    line.show("scaling")
    return data, _prepare(data, told)


def _prepare(data: "AnyData", told: Parsed) -> Prepared:
    from scipy import sparse

    from maxmargin.cli.selecting import Samples
    from maxmargin.data.scaling import find_scaling, symmetric_scaling

    target = _target(data.y, told["--task"])
    X, columns = _occurring(data.X)
    n, n_features = X.shape
    if n < 2:
        raise Failure("there is one sample only: nothing can be learned from it")
    if not n_features:
        raise Failure("no sample has a feature: nothing can be learned from labels")
    is_sparse = X.nnz < SPARSE * n * n_features
    scaling = None
    if not told["--no-scale"]:
        scaling = symmetric_scaling(X) if is_sparse else find_scaling(X)
        X = scaling.apply(X)
    if sparse.issparse(X) and not is_sparse:
        X = X.toarray()
    kernel = told["--kernel"]
    if kernel == "auto":
        is_large = n_features > MANY_FEATURES or n > MANY_SAMPLES
        kernel = "linear" if is_large else "rbf"
    if kernel == "linear" and told["--gamma"] is not None:
        raise Failure("a linear kernel has no gamma: leave --gamma out")
    return Prepared(Samples(X, target), scaling, kernel, data.X.shape[1], columns)


def _occurring(X: Any) -> "tuple[Any, IntVector | None]":
    """CSR without the columns that hold nothing, where these are most of very many.

    Work and memory are then in proportion to the values that there are.
    """
    import numpy as np
    from scipy import sparse

    from maxmargin.models.kernel_model import MANY_COLUMNS, pick_columns

    is_wide = sparse.issparse(X) and X.shape[1] > MANY_COLUMNS
    X = sparse.csr_matrix(X)
    if not is_wide:
        return X, None
    columns = np.unique(X.indices)
    if 2 * len(columns) > X.shape[1]:
        return X, None
    return pick_columns(X, columns)[0], columns


def _target(y: Any, task: str) -> Any:
    """Classes or numbers, as told or as the targets look."""
    import numpy as np

    from maxmargin.data.labels import encode_labels

    is_number = y.dtype.kind in "fiu"
    if task == "regress" and not is_number:
        raise Failure("--task regress needs targets that are numbers")
    if is_number and (task == "regress" or (task == "auto" and not _looks_like(y))):
        return y.astype(np.float64)
    is_whole = y.dtype.kind == "f" and (y == np.floor(y)).all()
    labels = encode_labels(y.astype(np.int64) if is_whole else y)
    if labels.n_classes < 2:
        raise Failure("all samples are of one class: there is nothing to tell apart")
    return labels


def _looks_like(y: Any) -> bool:
    """Whether numbers look like classes: whole, few, and each often enough."""
    import numpy as np

    values, count = np.unique(y, return_counts=True)
    is_whole = bool((values == np.floor(values)).all())
    is_few = len(values) <= FEW_CLASSES or int(count.min()) >= FEW_MEMBERS
    return is_whole and is_few and 2 * len(values) <= len(y)


def _search(prepared: Prepared, told: Parsed, context: Context, line: Line) -> Outcome:
    """The best setting; a search that was cut short is warned of."""
    from maxmargin.cli.selecting import Search, Setting, Tried, scale_of

    fixed = told["--C"], told["--gamma"]
    limit = context.time_limit
    until = float("inf") if limit is None else context.started + SEARCH_SHARE * limit
    search = Search(prepared.samples, prepared.kernel, told["--folds"])
    best = search.run(fixed, context.cores, until, line.show)
    n_tried, n_planned = len(search.tried), search.n_planned
    if n_tried < n_planned:
        warn(CUT_SHORT.format(n_tried, n_planned))
    if best is not None:
        return Outcome(best, len(search.folds), n_tried, n_planned)
    from maxmargin.cli.selecting import default_gamma

    warn("WARNING: defaults are used for C and gamma")
    unit, epsilon = scale_of(prepared.samples.target)
    gamma = None
    if prepared.kernel == "rbf":
        gamma = told["--gamma"] or default_gamma(prepared.samples.X)
    setting = Setting(prepared.kernel, told["--C"] or unit, gamma, epsilon)
    return Outcome(Tried(setting, float("nan")), len(search.folds), 0, n_planned)


def _train(
    samples: "Samples", setting: "Setting", context: Context, line: Line
) -> "Fitted":
    from maxmargin.cli.selecting import describe, fit
    from maxmargin.solvers import Options, Progress, Status

    def show(progress: Progress) -> None:
        line.show(f"training: {describe(setting)}, iteration {progress.n_iter:,}")

    limit = context.time_limit
    left = None if limit is None else max(context.seconds_left(), 0.05)
    tol = 1e-5 if setting.kernel == "linear" else 1e-3
    options = Options(tol=tol, time_limit=left, started=_clock.now(), callback=show)
    fitted = fit(samples, setting, options, context.cores)
    worst = max((s.status for s in fitted.solutions), key=lambda s: s.rank)
    if worst is not Status.CONVERGED:
        warn(f"WARNING: {worst.value}")
    return fitted


def _write(
    path: str, fitted: "Fitted", prepared: Prepared, data: "AnyData", tried: "Tried"
) -> None:
    from dataclasses import replace

    from maxmargin.cli.model_files import ModelFile, write_model
    from maxmargin.models.kernel_model import KernelModel

    model = fitted.model
    if isinstance(model, KernelModel):
        model = replace(model, index_base=data.index_base)
    setting = tried.setting
    notes: dict[str, Any] = {"C": setting.C, "kernel": setting.kernel}
    if model.is_regressor:
        notes["epsilon"] = setting.epsilon
    if tried.loss == tried.loss:
        notes["loss"] = tried.loss
    if data.names:
        notes["features"] = list(data.names)
        notes["target"] = data.target
    scaling, columns = prepared.scaling, prepared.columns
    write_model(path, ModelFile(model, scaling, data.index_base, notes, columns))
