"""What do the arguments of our own commands say? Flags, and names of files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from maxmargin.cli.console import Failure


class Flag(NamedTuple):
    """One flag: how its value is read, and what it is without being said."""

    read: Callable[[str, str], Any]  # of the flag's name and the word after it
    default: Any = None


def switch(default: bool = False) -> Flag:
    """A flag without a value."""
    return Flag(_switch, default)


def _switch(name: str, text: str) -> bool:
    if text:
        raise Failure(f"{name} takes no value, got {text!r}")
    return True


def one_of(*choices: str) -> Flag:
    """A word out of a few; the first is the default."""

    def read(name: str, text: str) -> str:
        if text not in choices:
            raise Failure(f"{name} is one of {', '.join(choices)}; got {text!r}")
        return text

    return Flag(read, choices[0])


def word(default: str | None = None) -> Flag:
    """Any word."""

    def read(name: str, text: str) -> str:
        if not text:
            raise Failure(f"{name} needs a value")
        return text

    return Flag(read, default)


def whole(smallest: int, default: int | None = None) -> Flag:
    """A whole number, not below `smallest`."""

    def read(name: str, text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < smallest:
            raise Failure(f"{name} needs a whole number from {smallest} on: {text!r}")
        return int(text)

    return Flag(read, default)


def positive(default: float | None = None) -> Flag:
    """A number above zero."""

    def read(name: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0.0 < value < float("inf"):
            raise Failure(f"{name} needs a finite number above 0, got {text!r}")
        return value

    return Flag(read, default)


@dataclass(frozen=True)
class Parsed:
    """Values by flag, and what is no flag."""

    values: dict[str, Any]
    names: list[str]

    def __getitem__(self, flag: str) -> Any:
        return self.values[flag]


def parse(
    arguments: Sequence[str], flags: dict[str, Flag], usage: str, n_names: range
) -> Parsed:
    """Read flags (`--name value` or `--name=value`) and count the other words."""
    values = {name: flag.default for name, flag in flags.items()}
    names: list[str] = []
    ahead = iter(arguments)
    for argument in ahead:
        if not argument.startswith("-") or argument == "-":
            names.append(argument)
            continue
        name, joined, text = argument.partition("=")
        if name in ("-h", "-?"):
            raise Failure(usage=usage, code=0)
        if name not in flags:
            raise Failure(f"unknown option: {name}", usage=usage)
        if not joined and flags[name].read is not _switch:
            text = next(ahead, "")
        values[name] = flags[name].read(name, text)
    if len(names) not in n_names:
        raise Failure(usage=usage)
    return Parsed(values, names)
