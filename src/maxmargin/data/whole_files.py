"""How does a file appear under its name? Whole, or not at all."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from maxmargin._interrupts import cleaned_up

STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when all is written, or never.

    It is in the same folder, and safely on disk before it gets its name. Streams,
    pipes and devices are written to as they are.
    """
    number = STREAMS.get(os.fspath(path))
    if number is not None:  # opened anew, it would begin at the start of a file
        sys.stdout.flush()
        with os.fdopen(os.dup(number), "wb") as out:
            yield out
    elif is_device(path):
        with open(path, "wb") as out:
            yield out
    else:
        yield from _replacing(Path(os.path.realpath(path)))


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether it is there, and no file that could be replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


def _replacing(target: Path) -> Iterator[BinaryIO]:
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name[:64]}.", dir=target.parent
        )
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(target)) from error
    try:
        with cleaned_up(lambda: os.unlink(name)):
            with os.fdopen(handle, "wb") as out:
                yield out
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
