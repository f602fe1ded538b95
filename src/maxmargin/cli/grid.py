"""Which C and gamma predict best samples that were held out? (LIBSVM's grid.py.)"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.console import Context, Failure, is_readable, warn
from maxmargin.cli.grid_files import draw_rates, known_rates, log_line
from maxmargin.cli.grid_plan import Exponent, Point, Steps, plan

if TYPE_CHECKING:
    from maxmargin.interop.libsvm_training import Pace
    from maxmargin.interop.option_strings import SvmOptions
    from maxmargin.interop.samples import DataSet
    from maxmargin.typing import FloatVector

USAGE = """\
Usage: grid [grid_options] [svm_options] dataset

grid_options :
-log2c {begin,end,step | "null"} : the range of c (default -5,15,2)
    begin,end,step -- c is 2^begin, 2^(begin+step), ..., 2^end
    "null"         -- c stays as it is
-log2g {begin,end,step | "null"} : the range of g (default 3,-15,-2)
    begin,end,step -- g is 2^begin, 2^(begin+step), ..., 2^end
    "null"         -- g stays as it is
-v n : n-fold cross validation (default 5)
-out {pathname | "null"} : (default dataset.out)
    pathname -- where results are kept
    "null"   -- nowhere
-resume [pathname] : go on with the results kept in a file (default dataset.out)
-png pathname : a picture of the rates (default dataset.png where matplotlib is
    installed and C and gamma are both searched)
-gnuplot {pathname | "null"} : taken; "null" means no picture
-svmtrain pathname : taken and left aside; no program is called

svm_options : further options, as of svm-train; for -s 3 and 4 the rate is the mean
    squared error, and the smallest is best
"""
DEFAULT_STEPS = Steps(-5, 15, 2), Steps(3, -15, -2)  # of C and of gamma
LARGEST_EXPONENT = 1000  # 2**e and its inverse are normal numbers
STOPPED = "WARNING: stopped at the time limit after {} of {} points of the grid"
OTHER_SEARCH = (
    "WARNING: {}: {} results of a search of other parameters (-log2c or -log2g null) "
    "are left aside"
)
HINT = 'Try "maxmargin grid --help" for more information.'


class Task(NamedTuple):
    """What the arguments ask for."""

    data: str
    C: Steps | None
    gamma: Steps | None
    n_folds: str = "5"
    out: str | None = None
    resume: str | None = None
    picture: str | None = None
    options: tuple[str, ...] = ()


class Best(NamedTuple):
    """The best point so far."""

    C: Exponent
    gamma: Exponent
    rate: float

    def values(self) -> list[float]:
        """C and gamma themselves, where they are searched."""
        return [2.0**e for e in (self.C, self.gamma) if e is not None]


class Found(NamedTuple):
    """What a search found, and how much of the grid it has seen."""

    best: Best
    n_tried: int
    n_points: int
    is_regression: bool

    def facts(self) -> dict[str, Any]:
        """For machines: the accuracy is a fraction there."""
        C, gamma, rate = self.best
        facts = {} if C is None else {"C": 2.0**C}
        facts |= {} if gamma is None else {"gamma": 2.0**gamma}
        if self.is_regression:
            facts["mean_squared_error"] = rate
        else:
            facts["accuracy"] = rate / 100.0
        return facts | {"points_tried": self.n_tried, "points": self.n_points}


def run(arguments: list[str], context: Context) -> int:
    """Print the rate of every point, and the best at the end."""
    if not arguments:
        raise Failure(usage=USAGE)
    task = _task(arguments[:-1], arguments[-1])
    found = search(task, context)
    words = " ".join(str(value) for value in found.best.values())
    context.say(f"{words} {found.best.rate}")
    context.report(**found.facts())
    return 0


def default_task(data: str) -> Task:
    """What is done where nothing is said."""
    C, gamma = DEFAULT_STEPS
    title = os.path.basename(data)
    return Task(data, C, gamma, out=f"{title}.out", picture=f"{title}.png")


def _task(options: list[str], data: str) -> Task:
    title = os.path.basename(data)
    task = default_task(data)
    passed: list[str] = []
    words = deque(options)
    while words:
        word = words.popleft()
        if word in FLAGS:
            task = task._replace(**FLAGS[word](words.popleft() if words else ""))
        elif word in ("-c", "-g"):
            raise Failure(f"Use -log2c and -log2g. {HINT}")
        elif word == "-resume":
            has_path = bool(words) and not words[0].startswith("-")
            path = words.popleft() if has_path else f"{title}.out"
            task = task._replace(resume=path)
        else:
            passed.append(word)
    _check(task)
    return task._replace(options=tuple(passed))


def _steps(flag: str, text: str) -> Steps | None:
    if text == "null":
        return None
    try:
        begin, end, step = (float(part) for part in text.split(","))
        steps = Steps(begin, end, step)
        exponents = steps.values() if step else []
        if not exponents or max(map(abs, exponents)) > LARGEST_EXPONENT:
            raise ValueError(text)
    except (ValueError, OverflowError):
        raise Failure(
            f'{flag} needs begin,end,step or "null", with steps that lead from begin '
            f"to end and exponents up to {LARGEST_EXPONENT}; got {text!r}. {HINT}"
        ) from None
    return steps


FLAGS: dict[str, Callable[[str], dict[str, Any]]] = {  # what the next word means
    "-log2c": lambda word: {"C": _steps("-log2c", word)},
    "-log2g": lambda word: {"gamma": _steps("-log2g", word)},
    "-v": lambda word: {"n_folds": word},
    "-out": lambda word: {"out": None if word == "null" else word},
    "-png": lambda word: {"picture": word},
    "-gnuplot": lambda word: {"picture": None} if word == "null" else {},
    "-svmtrain": lambda word: {},
}


def _check(task: Task) -> None:
    if not is_readable(task.data):
        raise Failure(f"dataset not found: {task.data}. {HINT}")
    if task.resume is not None and not Path(task.resume).is_file():
        raise Failure(f"file for resumption not found: {task.resume}. {HINT}")
    if task.C is None and task.gamma is None:
        raise Failure(f"-log2c and -log2g should not be null simultaneously. {HINT}")


def search(task: Task, context: Context) -> Found:
    """Cross-validate every point of the plan that is not known already."""
    from maxmargin.interop.libsvm_training import REGRESSORS

    told, data = _read(task, context)
    is_regression = told.svm_type in REGRESSORS
    sign = -1.0 if is_regression else 1.0
    known = _resumed(task)
    best: Best | None = None
    for point, rate in known.items():
        best = _better(best, point, rate, sign)
        context.say(_line("resumed", point, rate, best))
    points = [point for point in plan(task.C, task.gamma) if point not in known]
    rate_of = _rates(data, told, points, context)
    with ExitStack() as stack:
        log = _log(task, stack)
        for point in points:
            rate = rate_of(point)
            if context.seconds_left() < 0.0 and best is not None:
                break  # the rate may be that of a fit that was cut short
            best, known[point] = _better(best, point, rate, sign), rate
            context.say(_line("local", point, rate, best), flush=True)
            if log is not None:
                log.write(log_line(point, rate))
                log.flush()
    assert best is not None, "a plan has at least one point"
    if task.picture is not None and task.C is not None and task.gamma is not None:
        draw_rates(known, task.picture, os.path.basename(task.data))
    n_points = len(known) + sum(point not in known for point in points)
    if len(known) < n_points:
        warn(STOPPED.format(len(known), n_points))
    return Found(best, len(known), n_points, is_regression)


def _resumed(task: Task) -> dict[Point, float]:
    """Rates of an earlier search of the same parameters."""
    known = known_rates(task.resume)
    kind = task.C is None, task.gamma is None
    alike = {p: r for p, r in known.items() if (p[0] is None, p[1] is None) == kind}
    if len(alike) < len(known):
        warn(OTHER_SEARCH.format(task.resume, len(known) - len(alike)))
    return alike


def _read(task: Task, context: Context) -> "tuple[SvmOptions, DataSet]":
    from maxmargin.cli.svm_train import WITH_VALUE, options_of, training_set
    from maxmargin.cli.training import task_of

    words = [*task.options, "-v", task.n_folds]
    training = task_of([*words, task.data], USAGE, WITH_VALUE, "q", "Unknown option")
    told = options_of(training.options)
    return told, training_set(training, told, context)


def _rates(
    data: "DataSet", told: "SvmOptions", points: list[Point], context: Context
) -> Callable[[Point], float]:
    """What tells the figure that svm-train -v prints, with as many digits."""
    from maxmargin.cli.progress import progress_line
    from maxmargin.cli.training import pace_of
    from maxmargin.interop.c_rand import CRand
    from maxmargin.interop.evaluation import score
    from maxmargin.interop.libsvm_cross_validation import cross_validate_svm, svm_folds
    from maxmargin.interop.libsvm_search import SvmGrid, can_share
    from maxmargin.interop.libsvm_training import REGRESSORS, quiet, warn_of_weights

    shared: list[SvmGrid] = []

    def predict(C: float, gamma: float, pace: "Pace") -> "FloatVector":
        if can_share(told):
            if not shared:
                warn_of_weights(data, told)
                gammas = sorted({_value(g, told.gamma) for _, g in points})
                folds = svm_folds(data, told, CRand())
                pace = replace(pace, callback=None)  # its line ends with this point
                shared.append(SvmGrid(data, replace(told), gammas, pace, folds))
            return shared[0].predict(C, gamma)
        own = replace(told, C=C, gamma=gamma)
        return cross_validate_svm(data, own, quiet, pace, CRand())

    def rate_of(point: Point) -> float:
        C, gamma = _value(point[0], told.C), _value(point[1], told.gamma)
        with progress_line(context) as line:
            scores = score(data.y, predict(C, gamma, pace_of(context, line)))
        is_regression = told.svm_type in REGRESSORS
        rate = scores.squared_error if is_regression else scores.accuracy
        return float(f"{rate:g}")

    return rate_of


def _value(exponent: Exponent, otherwise: float) -> float:
    return float(otherwise) if exponent is None else 2.0**exponent


def _better(best: Best | None, point: Point, rate: float, sign: float) -> Best:
    """The better of two; of equals with the same gamma, that with the smaller C."""
    C, gamma = point
    if best is None or sign * rate > sign * best.rate:
        return Best(C, gamma, rate)
    is_equal = rate == best.rate and gamma == best.gamma
    if is_equal and C is not None and best.C is not None and C < best.C:
        return Best(C, gamma, rate)
    return best


def _line(who: str, point: Point, rate: float, best: Best) -> str:
    exponents = " ".join(str(e) for e in point if e is not None)
    parts = []
    if best.C is not None:
        parts.append(f"c={2.0**best.C}")
    if best.gamma is not None:
        parts.append(f"g={2.0**best.gamma}")
    shown = ", ".join([*parts, f"rate={best.rate}"])
    return f"[{who}] {exponents} {rate} (best {shown})"


def _log(task: Task, stack: ExitStack) -> IO[str] | None:
    """The file of results, a line at a time: what is there can be resumed from."""
    if task.out is None:
        return None
    mode = "w" if task.resume is None else "a"
    try:
        return stack.enter_context(open(task.out, mode, encoding="ascii"))
    except OSError as error:
        raise Failure(f"can't open output file {task.out}") from error
