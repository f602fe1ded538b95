"""Which lines of a data file make a smaller one like it? (LIBSVM's subset.py.)"""

import math
import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from maxmargin.cli.console import (
    Context,
    Failure,
    check_writable,
    is_readable,
    written,
)

USAGE = """\
Usage: subset [options] dataset subset_size [output1] [output2]

Draws a random part of the lines of a dataset.

options:
-s method : how lines are drawn (default 0)
     0 -- stratified selection (classification only)
     1 -- random selection
--seed number : draw the same lines again

output1 : the subset (optional)
output2 : rest of the data (optional)
If output1 is omitted, the subset is written to standard output.
"""
TOO_FEW = (
    "Error: failed to have at least one instance per class: the data may be "
    "regression data, or unbalanced, or too few; use -s 1."
)


class Task(NamedTuple):
    """What the arguments ask for."""

    path: Path
    size: int
    is_stratified: bool
    seed: int | None
    outputs: tuple[str, ...]  # at most two: the subset, the rest


def run(arguments: list[str], context: Context) -> int:
    """Draw lines and write them in their old order."""
    task = _task(arguments)
    for output in task.outputs:
        check_writable(output, f"can't open output file {output}", str(task.path))
    if not is_readable(task.path):
        raise Failure(f"can't open input file {task.path}")
    lines = task.path.read_bytes().splitlines(keepends=True)
    if task.size > len(lines):
        raise Failure(f"subset_size is {task.size}, but there are {len(lines)} lines")
    draw = random.Random(task.seed)
    if task.is_stratified:
        chosen = stratified(labels_of(lines), task.size, draw)
    else:
        chosen = set(draw.sample(range(len(lines)), task.size))
    subset = [line for i, line in enumerate(lines) if i in chosen]
    if task.outputs:
        _write(task.outputs[0], subset)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(subset))
    if len(task.outputs) > 1:
        _write(task.outputs[1], [x for i, x in enumerate(lines) if i not in chosen])
    report = context.report if task.outputs else context.report_beside_data
    report(lines=len(lines), subset=len(subset), outputs=task.outputs)
    return 0


def _task(arguments: list[str]) -> Task:
    method, seed, i = "0", None, 0
    while i + 1 < len(arguments) and arguments[i].startswith("-"):
        flag, value = arguments[i], arguments[i + 1]
        if flag == "-s":
            method = value
        elif flag == "--seed":
            seed = _whole(value, "--seed")
        else:
            raise Failure(f"unknown option: {flag}", usage=USAGE)
        i += 2
    if method not in ("0", "1"):
        raise Failure(f"Unknown selection method {method}", usage=USAGE)
    names = arguments[i:]
    if not 2 <= len(names) <= 4:
        raise Failure(usage=USAGE)
    if len(set(names[2:])) < len(names[2:]):
        raise Failure(f"output1 and output2 are the same file: {names[2]}")
    size = _whole(names[1], "subset_size")
    return Task(Path(names[0]), size, method == "0", seed, tuple(names[2:]))


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Failure(f"{name} needs a whole number from 0 on, got {text!r}")
    return int(text)


def labels_of(lines: list[bytes]) -> list[bytes]:
    """The first word of each line."""
    labels = []
    for number, line in enumerate(lines, start=1):
        words = line.split(None, 1)
        if not words:
            raise Failure(f"Wrong input format at line {number}: the line is empty")
        labels.append(words[0])
    return labels


def stratified(labels: list[bytes], size: int, draw: random.Random) -> set[int]:
    """Lines in the proportions of their labels, and at least one of each."""
    members: dict[bytes, list[int]] = defaultdict(list)
    for i, label in enumerate(labels):
        members[label].append(i)
    chosen: set[int] = set()
    # rare labels first: what they round up is taken from the frequent ones
    for of_label in sorted(members.values(), key=len):
        share = max(1, math.ceil(len(of_label) * (size / len(labels))))
        share = min(share, size - len(chosen))
        if share == 0:
            raise Failure(TOO_FEW, code=255)
        chosen.update(draw.sample(of_label, share))
    return chosen


def _write(path: str, lines: list[bytes]) -> None:
    with written(path, f"can't open output file {path}") as stream:
        stream.write(b"".join(lines).decode("utf-8", errors="surrogateescape"))
