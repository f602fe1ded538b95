"""How are files read and written? Whole, or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, TypeAlias

from maxmargin.data.whole_files import whole_file
from maxmargin.errors import ModelFormatError

PathLike: TypeAlias = str | os.PathLike[str]


class Content(NamedTuple):
    """A file's bytes, and its name where it has one."""

    data: bytes
    path: str | None = None

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Refuse the file; for text, say which line."""
        line = None if offset is None else self.data.count(b"\n", 0, offset) + 1
        raise ModelFormatError(message, path=self.path, line=line)


Source: TypeAlias = PathLike | bytes | BinaryIO | Content


def read_content(source: Source) -> Content:
    """All of a file, given by its name, its bytes or an open file."""
    if isinstance(source, Content):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return Content(bytes(source))
    if isinstance(source, str | os.PathLike):
        return Content(Path(source).read_bytes(), os.fspath(source))
    if not hasattr(source, "read"):
        raise TypeError(
            "A model file is given as a path, as bytes or as a file open for reading, "
            f"not as {type(source).__name__}."
        )
    data = source.read()
    if not isinstance(data, bytes):
        raise TypeError(
            f"A model file must be opened in binary mode, got {type(data).__name__}: "
            "use open(path, 'rb')."
        )
    return Content(data)


def write_atomically(path: PathLike, parts: Iterable[bytes]) -> None:
    """Write a file that is complete as soon as it can be seen.

    Whatever fails before leaves `path` as it was.
    """
    with whole_file(path) as out:
        out.writelines(parts)
