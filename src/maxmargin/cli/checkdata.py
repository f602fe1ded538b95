"""Is every line of a data file well formed? (LIBSVM's checkdata.py.)"""

from collections.abc import Iterator
from pathlib import Path

from maxmargin.cli.console import Context, Failure, is_readable

USAGE = "Usage: checkdata dataset\n"
NOT_A_PAIR = (
    "feature '{}' not an <index>:<value> pair, <index> integer, <value> real number "
)


def run(arguments: list[str], context: Context) -> int:
    """Print what is wrong, line by line; exit code 1 if anything is."""
    if len(arguments) != 1:
        raise Failure(usage=USAGE)
    path = Path(arguments[0])
    if not is_readable(path):
        context.say(f"dataset {path} not found")
        context.report(error=f"dataset {path} not found")
        return 1
    problems: list[dict[str, int | str]] = []  # for machines, which read all at once
    bad_lines = set()
    for number, mistake in _all_mistakes(path):
        bad_lines.add(number)
        context.say(f"line {number}: {mistake}")
        if context.is_json:
            problems.append({"line": number, "message": mistake})
    n_bad = len(bad_lines)
    context.say(f"Found {n_bad} lines with error." if n_bad else "No error.")
    context.report(lines_with_error=n_bad, problems=problems)
    return 1 if n_bad else 0


def _all_mistakes(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers of lines, from 1, with what is wrong there."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            for mistake in mistakes(line):
                yield number, mistake


def mistakes(line: str) -> Iterator[str]:
    """What is wrong with one line, its newline included."""
    if not line.endswith("\n"):
        yield "missing a newline character in the end"
    words = line.split()
    if not words:
        yield "missing label, perhaps an empty line?"
        return
    yield from _label_mistakes(words[0])
    previous_index, previous = -1, ""
    for word in words[1:]:
        index = _index_of(word)
        if index is None:
            yield NOT_A_PAIR.format(word)
            previous = word
            continue
        if index < 0:
            yield f"feature index must be positive; wrong feature {word}"
        elif index <= previous_index:
            yield (
                "feature indices must be in an ascending order, "
                f"previous/current features {previous} {word}"
            )
        previous_index, previous = index, word


def _label_mistakes(label: str) -> Iterator[str]:
    if "," in label:
        if not all(is_number(part) for part in label.split(",")):
            yield f"label {label} is not a valid multi-label form"
    elif not is_number(label):
        yield f"label {label} is not a number"


def _index_of(word: str) -> int | None:
    """The index of an index:value pair; None where it is no such pair."""
    index, colon, value = word.partition(":")
    if not colon or not is_number(value):
        return None
    digits = index[1:] if index[:1] in ("+", "-") else index
    return int(index) if digits.isascii() and digits.isdigit() else None


def is_number(text: str) -> bool:
    """Is it a finite number as C writes them: no nan, no inf, no underscores?"""
    lower = text.lower()
    if "nan" in lower or "inf" in lower or "_" in lower:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
