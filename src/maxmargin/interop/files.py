"""How are files read and written? Whole, or not at all."""

import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, TypeAlias

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
    data = source.read()
    if not isinstance(data, bytes):
        raise TypeError(
            f"A model file must be opened in binary mode, got {type(data).__name__}: "
            "use open(path, 'rb')."
        )
    return Content(data)


def write_atomically(path: PathLike, parts: Iterable[bytes]) -> None:
    """Write a file that is complete as soon as it can be seen.

    The parts go to a new file in the same folder, which replaces `path` when it is
    safely on disk. Whatever fails before leaves `path` as it was.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or /dev/stdout
        with target.open("wb") as out:
            out.writelines(parts)
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.writelines(parts)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, _mode_of(target))
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(target.parent)


def _mode_of(target: Path) -> int:
    """The permissions of the file to be replaced, or those of any new file."""
    with suppress(OSError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """The new name is safe only when its folder is; not every system can do this."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
