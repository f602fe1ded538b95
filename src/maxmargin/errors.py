"""What can go wrong, and which built-in error does each mistake resemble?

MaxMarginError
├── InvalidInput (ValueError)             data or a parameter cannot be used
│   ├── InfeasibleProblem                 no point meets the constraints
│   ├── ModelFormatError                  a model file is damaged, or not one of ours
│   ├── DataFormatError                   a data file says what it must not say
│   └── UnreadableFile (OSError)          a file cannot be read or written
│       └── MissingFile (FileNotFoundError)
└── NotAvailable (NotImplementedError)    asked for something not there yet
"""

from enum import Enum
from typing import Never, NoReturn


class MaxMarginError(Exception):
    """Base of every error this package raises on its own account."""


class InvalidInput(MaxMarginError, ValueError):
    """Data or a parameter cannot be used; the message says what to do."""


class InfeasibleProblem(InvalidInput):
    """The constraints contradict one another, as with too large a nu."""


class ModelFormatError(InvalidInput):
    """A model file cannot be read, or a model cannot be written in that form.

    `path` is the file's name where it has one, `line` counts from 1 in text files.
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None
    ) -> None:
        self.message, self.path, self.line = message, path, line
        super().__init__(message, path, line)

    def __str__(self) -> str:
        place = [self.path] if self.path else []
        if self.line is not None:
            place.append(f"line {self.line}")
        return f"{', '.join(place)}: {self.message}" if place else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _model_format_error, (self.message, self.path, self.line)


def _model_format_error(
    message: str, path: str | None, line: int | None
) -> ModelFormatError:
    return ModelFormatError(message, path=path, line=line)


class DataFormatError(InvalidInput):
    """A data file cannot be read: in `path`, at `line` and `column` (from 1)."""

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        places = (path, line and f"line {line}", column and f"column {column}")
        place = ", ".join(str(part) for part in places if part)
        super().__init__(f"{place}: {message}" if place else message)
        self.reason, self.path, self.line, self.column = message, path, line, column

    def in_file(self, path: str) -> "DataFormatError":
        """The same mistake, with the file it is in."""
        return DataFormatError(
            self.reason, path=path, line=self.line, column=self.column
        )


class UnreadableFile(InvalidInput, OSError):
    """A file is missing, is a folder, or may not be read or written."""


class MissingFile(UnreadableFile, FileNotFoundError):
    """No file has this name."""


class NotAvailable(MaxMarginError, NotImplementedError):
    """A known feature that this version does not offer."""


def refuse(kind: Never, what: str) -> NoReturn:
    """The end of a chain of cases over all kernels, machines or losses.

    To a type checker this is `typing.assert_never`: it reports the case that is
    missing. At run time the error names it.
    """
    value: object = kind
    name = type(value).__name__
    if isinstance(value, str | Enum):
        name = value.name if isinstance(value, Enum) else value
    raise NotAvailable(
        f"{what} is not available for {name}: this case has not been written yet."
    )
