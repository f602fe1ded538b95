"""Which command was asked for, and how does it end?

Nothing heavy is imported here: a command's module is loaded once its name is known, and
its libraries once it has work to do, so that help appears at once.
"""

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from maxmargin.cli.console import Command, Failure, context_of, warn

INTERRUPTED = 130  # what a shell reports for Ctrl-C
COMMANDS = {
    "fit": "scale, search and train on a data file; report; write a model",
    "apply": "predict a data file with any model",
    "inspect": "say what a model file holds",
    "convert": "rewrite a model: native, LIBSVM, LIBLINEAR, ONNX",
    "compile": "make all machine code now, so that no fit has to",
    "svm-train": "LIBSVM's svm-train",
    "svm-predict": "LIBSVM's svm-predict",
    "svm-scale": "LIBSVM's svm-scale",
    "train": "LIBLINEAR's train",
    "predict": "LIBLINEAR's predict",
    "grid": "LIBSVM's grid.py: cross-validate a grid of C and gamma",
    "easy": "LIBSVM's easy.py: scale, grid, train, predict",
    "subset": "LIBSVM's subset.py: draw lines of a data file",
    "checkdata": "LIBSVM's checkdata.py: find mistakes in a data file",
}
FRIENDLY = 5  # the first so many are our own
ANYWHERE = """\
every command also takes:
  --threads N       threads to work with (default: all cores)
  --time-limit S    stop training after S seconds, and keep the best so far
  --json            one JSON object on standard output instead of lines
  --help            what the command takes
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for errors, or 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _leave_the_pipe()
    except KeyboardInterrupt:
        warn("interrupted")
        return INTERRUPTED
    return code


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        sys.stdout.write(overview())
        return 0 if arguments else 1
    if arguments[0] == "--version":
        from maxmargin import __version__

        sys.stdout.write(f"maxmargin {__version__}\n")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        warn(f"unknown command: {name}; `maxmargin --help` lists them")
        return 1
    module = import_module(f"maxmargin.cli.{name.replace('-', '_')}")
    if "--help" in rest:
        sys.stdout.write(module.USAGE)
        return 0
    return _guarded(module.run, rest)


def _guarded(run: Command, arguments: list[str]) -> int:
    """Turn every expected error into one line on stderr and an exit code."""
    from maxmargin.errors import MaxMarginError

    try:
        context, rest = context_of(arguments)
        if context.is_json:  # a machine reads standard error, too
            logging.getLogger("maxmargin").setLevel(logging.ERROR)
        return run(rest, context)
    except Failure as failure:
        return _fail(failure)
    except BrokenPipeError:
        raise
    except MaxMarginError as error:
        warn(_one_line(error))
    except OSError as error:
        warn(f"{error.filename or 'a file'}: {error.strerror or error}")
    except MemoryError as error:
        warn(f"out of memory: {_one_line(error) or 'the data do not fit'}")
    return 1


def _fail(failure: Failure) -> int:
    if str(failure):
        warn(str(failure))
    sys.stdout.write(failure.usage)
    return failure.code


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _leave_the_pipe() -> int:
    """The reader has gone: say nothing, and let nothing be flushed at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def overview() -> str:
    """The text of `maxmargin --help`."""
    lines = [f"  {name:<12} {text}\n" for name, text in COMMANDS.items()]
    own, theirs = "".join(lines[:FRIENDLY]), "".join(lines[FRIENDLY:])
    return (
        "Usage: maxmargin COMMAND [options] files\n\n"
        f"support vector machines:\n{own}\n"
        f"with LIBSVM's and LIBLINEAR's options and output:\n{theirs}\n{ANYWHERE}"
    )
