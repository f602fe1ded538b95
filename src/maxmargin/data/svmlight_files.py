"""How are bytes of a data file had, packed or not, and how is a file replaced whole?

What a file is packed with is told by its first bytes, not by its name. Unpacking goes
on piece by piece, and stops where a small file claims to be a huge one.
"""

import bz2
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias, cast

from maxmargin.data.whole_files import is_device, whole_file
from maxmargin.errors import DataFormatError, InvalidInput, MissingFile, UnreadableFile

Source: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
PIECE = 2**18  # bytes of a packed file taken at a time
XZ_MEMORY = 2**27  # the greatest preset of xz needs half of that
GROWTH = 200  # text packs to a tenth, seldom to a hundredth
FREE_GROWTH = 2**23  # bytes that even a tiny file may unpack to


class Chained(io.RawIOBase):
    """Bytes already read, then the rest of the stream they came from."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.head or self.rest.read(len(buffer))
        if isinstance(piece, str):  # a file opened as text
            piece = piece.encode()
        piece = piece or b""
        n = min(len(piece), len(buffer))
        buffer[:n] = piece[:n]
        self.head = bytes(piece[n:])
        return n


class Unpacked(io.RawIOBase):
    """What a packed stream holds, however many members it has."""

    def __init__(self, stream: io.RawIOBase, kind: str, most: int | None) -> None:
        self.stream, self.kind, self.most = stream, kind, most
        self.unpacker = _unpacker(kind)
        self.waiting = b""  # packed bytes not yet looked at
        self.n_in = self.n_out = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(buffer):
            if self.unpacker.eof and not self._begin_next():
                return 0
            piece = self._unpack(len(buffer))
            if piece:
                buffer[: len(piece)] = piece
                self._count(len(piece))
                return len(piece)
        return 0

    def _begin_next(self) -> bool:
        """Whether another member follows; some tools pad the end with zeros."""
        self.waiting = self.unpacker.unused_data.lstrip(b"\0")
        while not self.waiting and (piece := self._take()):
            self.waiting = piece.lstrip(b"\0")
        if self.waiting:
            self.unpacker = _unpacker(self.kind)
        return bool(self.waiting)

    def _take(self) -> bytes:
        piece = self.stream.read(PIECE) or b""
        self.n_in += len(piece)
        return piece

    def _unpack(self, most: int) -> bytes:
        """Up to `most` bytes, and none if more has to be taken in first."""
        unpacker = self.unpacker
        needs_input = getattr(unpacker, "needs_input", True)
        if needs_input and not self.waiting:
            self.waiting = self._take()
            if not self.waiting:
                raise DataFormatError(f"the {self.kind} file ends too early.")
        try:
            piece: bytes = unpacker.decompress(self.waiting, most)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as error:
            raise DataFormatError(
                f"the {self.kind} file is damaged ({error})."
            ) from error
        self.waiting = getattr(unpacker, "unconsumed_tail", b"")
        return piece

    def _count(self, n: int) -> None:
        self.n_out += n
        most = self.most
        if most is None:
            most = max(FREE_GROWTH, GROWTH * self.n_in)
        if self.n_out > most:
            raise DataFormatError(
                f"the {self.kind} file unpacks to more than {most:,} bytes; if that "
                "is meant, pass max_bytes."
            )


def _unpacker(kind: str) -> Any:
    if kind == "gzip":
        return zlib.decompressobj(wbits=31)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY)


class Counted(io.RawIOBase):
    """A stream that says stop after `most` bytes."""

    def __init__(self, stream: io.RawIOBase, most: int) -> None:
        self.stream, self.most, self.n_out = stream, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self.stream.readinto(buffer) or 0
        self.n_out += n
        if self.n_out > self.most:
            raise DataFormatError(
                f"the file has more than max_bytes = {self.most:,} bytes."
            )
        return n


@contextmanager
def opened(source: Source, max_bytes: int | None = None) -> Iterator[io.RawIOBase]:
    """The unpacked bytes of a path, of bytes, or of an open file (left open)."""
    if isinstance(source, bytes):
        yield _unpacked(io.BytesIO(source), max_bytes)
    elif hasattr(source, "read"):
        yield _unpacked(source, max_bytes)
    elif isinstance(source, str | os.PathLike):
        with _open(os.fspath(source)) as file, _named(source, "read"):
            yield _unpacked(file, max_bytes)
    else:
        raise InvalidInput(
            "A data file is given as a path, as bytes or as a file open for reading, "
            f"not as {type(source).__name__}."
        )


@contextmanager
def rewindable(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """An open data file that can be read more than once, from its start each time.

    A pipe gives its bytes only once, so they are kept in memory.
    """
    with _open(os.fspath(path)) as file, _named(path, "read"):
        if file.seekable():
            yield cast(BinaryIO, file)
            return
        content = _NamedBytes(file.readall())
        content.name = os.fspath(path)
        yield content


class _NamedBytes(io.BytesIO):
    """Bytes of a file, with its name for messages."""

    name: str


@contextmanager
def _named(path: str | os.PathLike[str], done: str) -> Iterator[None]:
    """Let an error of the disk say which file it is about."""
    try:
        yield
    except UnreadableFile:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFile(f"{path} cannot be {done}: {reason}.") from error


def read_head(stream: io.RawIOBase, size: int) -> bytes:
    """The next `size` bytes, or fewer where the stream ends before."""
    head = b""
    while len(head) < size and (piece := stream.read(size - len(head))):
        head += piece
    return head


def name_of(source: Any) -> str:
    """What errors call a source."""
    if isinstance(source, bytes):
        return "<bytes>"
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        return name if isinstance(name, str) else "<stream>"
    return str(source)


def _unpacked(stream: Any, max_bytes: int | None) -> io.RawIOBase:
    longest = max(map(len, MAGIC))
    head = b""
    while len(head) < longest and (piece := stream.read(longest - len(head))):
        head += piece.encode() if isinstance(piece, str) else piece
    whole = _direct(stream, head) or Chained(head, stream)
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return Unpacked(whole, kind, max_bytes)
    return whole if max_bytes is None else Counted(whole, max_bytes)


def _direct(stream: Any, head: bytes) -> Any:
    """A regular file itself, from its start: no detour for its bytes."""
    if isinstance(stream, io.FileIO) and stream.seekable():
        stream.seek(-len(head), os.SEEK_CUR)
        return stream
    return None


def _open(path: str) -> io.FileIO:
    if os.path.isdir(path):  # its own error is not the same everywhere
        raise UnreadableFile(f"{path} is a folder; the path of a file was expected.")
    try:
        return io.FileIO(path, "r")
    except FileNotFoundError as error:
        raise MissingFile(f"{path} does not exist.") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableFile(f"{path!r} cannot be read: {reason}.") from error


# Writing.


@contextmanager
def replaced(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of `target` when all is written, or never.

    Names that end in .gz, .bz2 or .xz are packed.
    """
    path = os.fspath(target)
    if os.path.isdir(path):
        raise UnreadableFile(f"{path} is a folder; the path of a file is needed.")
    suffix = "" if is_device(path) else os.path.splitext(path)[1]
    with (
        _named(path, "written"),
        whole_file(path) as file,
        _packed(file, suffix) as stream,
    ):
        yield stream


@contextmanager
def _packed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        import gzip

        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    elif suffix == ".bz2":
        with bz2.BZ2File(file, "wb") as packed_2:
            yield cast(BinaryIO, packed_2)
    elif suffix == ".xz":
        with lzma.LZMAFile(file, "wb") as packed_x:
            yield cast(BinaryIO, packed_x)
    else:
        yield file
