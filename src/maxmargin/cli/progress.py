"""What does somebody who waits at a terminal see?

One line on standard error that is written over, drawn by rich where that is installed.
Nothing at all where standard error is not a terminal.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from maxmargin._interrupts import cleaned_up
from maxmargin.cli.console import Context

PATIENCE = 0.5  # seconds; what ends sooner needs no line
WIDTH = 78
ERASE = "\r" + " " * WIDTH + "\r"


class Line(Protocol):
    """A line that can be written over."""

    def show(self, text: str) -> None: ...

    def clear(self) -> None: ...


class NoLine:
    """Where nobody looks."""

    def show(self, text: str) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Nothing to do."""


class PlainLine:
    """A carriage return and spaces."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.is_drawn = False

    def show(self, text: str) -> None:
        if time.monotonic() - self.began < PATIENCE:
            return
        sys.stderr.write("\r" + text[:WIDTH].ljust(WIDTH))
        sys.stderr.flush()
        self.is_drawn = True

    def clear(self) -> None:
        if self.is_drawn:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
            self.is_drawn = False


class RichLine:
    """A spinner beside the text."""

    def __init__(self) -> None:
        from rich.console import Console

        self.began = time.monotonic()
        self.console = Console(stderr=True)
        self.status = self.console.status("")
        self.is_drawn = False

    def show(self, text: str) -> None:
        if time.monotonic() - self.began < PATIENCE:
            return
        self.status.update(text)
        if not self.is_drawn:
            self.status.start()
            self.is_drawn = True

    def clear(self) -> None:
        if self.is_drawn:
            self.status.stop()
            self.is_drawn = False


@contextmanager
def progress_line(context: Context) -> Iterator[Line]:
    """A line that vanishes at the end, whatever that is."""
    line = _choose(context)
    try:
        with cleaned_up(line.clear):
            yield line
    finally:
        line.clear()


def _choose(context: Context) -> Line:
    if context.is_json or not sys.stderr.isatty():
        return NoLine()
    try:
        return RichLine()
    except ImportError:
        return PlainLine()
