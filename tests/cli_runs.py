"""How do tests run commands, and compare what they print with what others print?"""

from __future__ import annotations

import io
import math
import random
import re
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from maxmargin.cli import main

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])", re.I)
NOTICE = "maxmargin: machine code is made"
DOTS = re.compile(r"^[.*]*$")


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def command(*arguments: object) -> Outcome:
    """Run one of our commands in this process; no word about compilation is kept."""
    raw = io.BytesIO()
    out, err = io.TextIOWrapper(raw, encoding="utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    out.flush()
    return Outcome(code, raw.getvalue().decode(), without_notice(err.getvalue()))


def without_notice(err: str) -> str:
    """What a command wrote to standard error, but for the line about compilation."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if NOTICE not in line)


def real(*arguments: object) -> Outcome:
    """Run somebody else's program."""
    done = subprocess.run(
        [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def form(text: str) -> list[str]:
    """Lines without their numbers; repeated lines, and rows of dots, once."""
    lines: list[str] = []
    for line in text.splitlines():
        words = " ".join(NUMBER.sub("N", line).split())
        words = "*" if DOTS.match(line.strip()) else words
        if not lines or lines[-1] != words:
            lines.append(words)
    return lines


def numbers(text: str, name: str) -> list[float]:
    """All numbers that stand after `name =`."""
    pattern = rf"(?<![\w]){re.escape(name)}\s*=\s*([-+.\deEnaif]+)"
    return [float(found) for found in re.findall(pattern, text)]


def assert_like(ours: str, theirs: str, names: dict[str, float]) -> None:
    """The same words in the same order, and named numbers near one another."""
    assert form(ours) == form(theirs)
    for name, tolerance in names.items():
        found, expected = numbers(ours, name), numbers(theirs, name)
        assert len(found) == len(expected), name
        for a, b in zip(found, expected, strict=True):
            assert math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance), name


def write_classes(path: Path, n_classes: int = 2, n: int = 90) -> Path:
    """Samples of classes that overlap, the same on every machine."""
    draw = random.Random(0).random
    lines = []
    for i in range(n):
        k = i % n_classes
        values = [
            round(2.0 * draw() - 1.0 + 0.5 * math.cos(j + 2.0 * k), 3)
            for j in range(1, 6)
        ]
        label = (1, -1)[k] if n_classes == 2 else k + 1
        lines.append(_line(label, values))
    path.write_text("".join(lines))
    return path


def write_numbers(path: Path, n: int = 60) -> Path:
    """Samples with a number to predict."""
    draw = random.Random(1).random
    lines = []
    for _ in range(n):
        values = [round(2.0 * draw() - 1.0, 3) for _ in range(4)]
        target = round(2.0 * values[0] - values[2] + draw(), 3)
        lines.append(_line(target, values))
    path.write_text("".join(lines))
    return path


def _line(label: float, values: list[float]) -> str:
    pairs = "".join(f" {j}:{v:g}" for j, v in enumerate(values, start=1) if v)
    return f"{label:g}{pairs}\n"
