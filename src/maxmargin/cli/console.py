"""How does a command speak: lines, errors, JSON, and files that are whole or absent?"""

import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os.path import samefile
from typing import IO, Any, TypeAlias

from maxmargin import _clock

STANDARD_INPUT = "-"  # in place of a data file's name


class Failure(Exception):
    """A command cannot go on: one line for stderr, perhaps the usage, an exit code."""

    def __init__(self, message: str = "", *, usage: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.usage = usage
        self.code = code


@dataclass(frozen=True)
class Context:
    """What every command can be told."""

    is_json: bool = False
    n_threads: int | None = None  # None: all cores
    time_limit: float | None = None  # seconds
    began: float = field(default_factory=time.monotonic, compare=False)
    started: float = field(default_factory=_clock.now, compare=False)  # of the limit

    @property
    def cores(self) -> int:
        """Threads to work with."""
        from maxmargin._threads import count_cores

        return self.n_threads or count_cores()

    def seconds_left(self) -> float:
        """Of the time limit; infinite where there is none."""
        if self.time_limit is None:
            return float("inf")
        return self.started + self.time_limit - _clock.now()

    def say(self, line: str = "", end: str = "\n", *, flush: bool = False) -> None:
        """Write a line for people; nothing where a machine asked."""
        if not self.is_json:
            sys.stdout.write(line + end)
            if flush:  # for those who watch through a pipe
                sys.stdout.flush()

    def report(self, **facts: Any) -> None:
        """Write one JSON object for a machine; nothing where people read."""
        if self.is_json:
            sys.stdout.write(_json_line(facts) + "\n")

    def report_beside_data(self, **facts: Any) -> None:
        """The same on standard error, where standard output holds data."""
        if self.is_json:
            warn(_json_line(facts))


Command: TypeAlias = Callable[[list[str], Context], int]


def context_of(arguments: list[str]) -> tuple[Context, list[str]]:
    """Take `--json`, `--threads N` and `--time-limit S` out of the arguments."""
    is_json, threads, limit = False, None, None
    rest: list[str] = []
    ahead = iter(arguments)
    for argument in ahead:
        name, joined, value = argument.partition("=")
        if argument == "--json":
            is_json = True
        elif name == "--threads":
            threads = _count(name, value if joined else next(ahead, ""))
        elif name == "--time-limit":
            limit = _seconds(name, value if joined else next(ahead, ""))
        else:
            rest.append(argument)
    return Context(is_json, threads, limit), rest


def _count(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise Failure(f"{name} needs a whole number from 1 on, got {text!r}")
    return int(text)


def _seconds(name: str, text: str) -> float:
    with suppress(ValueError):
        if 0.0 < float(text) < float("inf"):
            return float(text)
    raise Failure(f"{name} needs a number of seconds above 0, got {text!r}")


def warn(line: str) -> None:
    """Write a line to stderr, in order with what was written to stdout."""
    with suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


@contextmanager
def written(path: str, failure: str) -> Iterator[IO[str]]:
    """A text file that appears under its name once it is complete.

    `failure` is what to say when it cannot be written.
    """
    from maxmargin.interop.files import write_atomically

    draft = io.StringIO()
    yield draft
    # bytes that were no UTF-8 when they were read are written as they were
    content = draft.getvalue().encode("utf-8", errors="surrogateescape")
    try:
        write_atomically(path, [content])
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(failure) from error


def check_writable(path: str, failure: str, *inputs: str) -> None:
    """Complain before long work rather than after it, and before data are lost."""
    from maxmargin.data.whole_files import is_device

    for name in inputs:
        if os.path.isfile(path) and os.path.isfile(name) and samefile(path, name):
            raise Failure(f"{failure}: it is also read from, and would be lost")
    if os.path.isdir(path):
        raise Failure(failure)
    folder = os.path.dirname(os.path.realpath(path))
    if not is_device(path) and not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(failure)


def is_readable(path: str | os.PathLike[str]) -> bool:
    """Whether there is something to read: a file, a pipe or a device, but no folder."""
    return os.path.exists(path) and not os.path.isdir(path)


def about(error: BaseException, path: str) -> str:
    """What an error says, in one line, without the name of the file."""
    return " ".join(str(error).split()).removeprefix(path).lstrip(":, ")


def _json_line(facts: dict[str, Any]) -> str:
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(value: Any) -> Any:
    """What JSON can hold: no NumPy, and null for nan and infinity."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
