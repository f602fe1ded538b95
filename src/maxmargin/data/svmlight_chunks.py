"""How is a large file read on threads, with the same arrays for any number of them?

A block of bytes is cut into chunks of whole lines, always at the same places. Chunks
are read side by side into one table, each into as many rows and pairs as it can have;
gaps between them are closed afterwards. Memory holds the answer and one block: how long
the answer will be is guessed from the first block and the size of the file.
"""

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._threads import run_all
from maxmargin.data import svmlight_scan as scan
from maxmargin.data.svmlight_text import (
    Fault,
    Parsed,
    Rules,
    lacks_qid,
    read_label,
    read_pair,
    read_qid,
    show,
    too_long,
)
from maxmargin.errors import DataFormatError

BLOCK = 2**24  # bytes read at a time
CHUNK = 2**20  # bytes of a task: some milliseconds
MOST_INT32 = 2**31 - 1
SHORTEST_ROW, SHORTEST_PAIR = 2, 3  # bytes, with what parts them
SPARE = 1.05  # what the first block says of the whole file is not exact


class Block(NamedTuple):
    """Whole lines, whose they are, and how many lines came before them."""

    text: NDArray[np.uint8]
    chunks: list[tuple[int, int]]
    name: str
    lines_before: int = 0

    def error(self, fault: Fault, place: int) -> DataFormatError:
        """A mistake in the token at `place`, with its line and column."""
        before = self.text[:place]
        ends = np.flatnonzero(before == scan.LINE_FEED)
        start = int(ends[-1]) + 1 if len(ends) else 0
        return DataFormatError(
            str(fault),
            path=self.name,
            line=self.lines_before + len(ends) + 1,
            column=place - start + fault.offset + 1,
        )

    def token(self, place: int) -> bytes:
        """What stands at a place, up to the next blank or comment."""
        return self.text[place : scan.skip_token(self.text, place)].tobytes()


# Blocks.


def blocks_of(
    stream: io.RawIOBase, head: bytes, longest: int, name: str
) -> Iterator[Block]:
    """The lines of `head` and of the stream after it, a block at a time."""
    filled = len(head)
    buffer = bytearray(max(BLOCK, filled) + 1)
    buffer[:filled] = head
    is_last = False
    while not is_last:
        filled, is_last = _fill(stream, buffer, filled)
        if is_last and filled and buffer[filled - 1] != scan.LINE_FEED:
            buffer[filled] = scan.LINE_FEED
            filled += 1
        end = buffer.rfind(b"\n", 0, filled) + 1
        if end:
            yield _block(buffer, end, name)
        rest = buffer[end:filled]
        if len(rest) > longest:
            raise too_long(longest)
        if len(rest) > BLOCK // 2:  # make room for a long line
            buffer = bytearray(2 * len(rest) + BLOCK + 1)
        filled = len(rest)
        buffer[:filled] = rest


def _fill(stream: Any, buffer: bytearray, filled: int) -> tuple[int, bool]:
    """Read until the buffer is full (but for a last line feed) or the stream ends."""
    room = memoryview(buffer)[: len(buffer) - 1]
    while filled < len(room):
        n = stream.readinto(room[filled:])
        if not n:
            return filled, True
        filled += n
    return filled, False


def _block(buffer: bytearray, end: int, name: str) -> Block:
    chunks, begin = [], 0
    while begin < end:
        cut = buffer.find(b"\n", min(begin + CHUNK, end) - 1, end) + 1
        chunks.append((begin, cut))
        begin = cut
    text = np.frombuffer(buffer, dtype=np.uint8)[:end]
    return Block(text, chunks, name)


# Rows.


class Columns:
    """The arrays of the answer, which grow at their end.

    `n_bytes` is the size of the file, or 0 if nobody knows.
    """

    def __init__(self, rules: Rules, n_bytes: int) -> None:
        self.rules, self.n_bytes = rules, n_bytes
        width: Any = np.int32 if rules.highest <= MOST_INT32 else np.int64
        self.y, self.value = np.empty(0), np.empty(0)
        self.qid = np.empty(0, dtype=np.int64)
        self.ends, self.indices = np.empty(0, dtype=width), np.empty(0, dtype=width)
        self.n_rows = self.n_pairs = self.n_lines = 0
        self.lowest, self.highest = 2**62, -1

    def add(self, block: Block, n_threads: int) -> None:
        """Read a block and append its rows."""
        counts = self._count(block, n_threads)
        sizes = np.diff(block.chunks, axis=1).ravel()
        most_rows = np.minimum(counts[:, 0], sizes // SHORTEST_ROW + 1)
        most_pairs = np.minimum(counts[:, 1], sizes // SHORTEST_PAIR + 1)
        rows = self.n_rows + np.append(0, np.cumsum(most_rows))
        pairs = self.n_pairs + np.append(0, np.cumsum(most_pairs))
        self._reserve(int(rows[-1]), int(pairs[-1]), len(block.text))
        marks = np.zeros((len(block.chunks), scan.N_MARKS), dtype=np.int64)
        tables = [
            self._table(slice(rows[k], rows[k + 1]), slice(pairs[k], pairs[k + 1]))
            for k in range(len(block.chunks))
        ]

        def task(k: int) -> Any:
            begin, end = block.chunks[k]
            return lambda: scan.read_chunk(
                block.text, begin, end, self.rules, tables[k], marks[k]
            )

        run_all([task(k) for k in range(len(block.chunks))], n_threads)
        block = block._replace(lines_before=self.n_lines)
        for k, table in enumerate(tables):
            finish_chunk(block, self.rules, table, marks[k])
            self._append(table, marks[k])
        self.n_lines += int(counts[:, 0].sum())

    def _count(self, block: Block, n_threads: int) -> NDArray[np.int64]:
        """Line feeds and colons of each chunk."""

        def task(begin: int, end: int) -> Any:
            return lambda: count_marks(block.text[begin:end])

        counts = run_all([task(*chunk) for chunk in block.chunks], n_threads)
        return np.array(counts, dtype=np.int64)

    def _reserve(self, n_rows: int, n_pairs: int, n_bytes: int) -> None:
        """Room for so many, and at first for as many as the whole file may have."""
        if n_pairs > MOST_INT32 and self.indices.dtype == np.int32:
            self.ends = self.ends.astype(np.int64)
            self.indices = self.indices.astype(np.int64)
        if not self.n_rows and self.n_bytes > n_bytes:
            share = SPARE * self.n_bytes / n_bytes
            with suppress(MemoryError):  # a file with holes may claim any size
                self._enlarge(int(share * n_rows), int(share * n_pairs))
        self._enlarge(n_rows, n_pairs)

    def _enlarge(self, n_rows: int, n_pairs: int) -> None:
        self.y = enlarged(self.y, self.n_rows, n_rows)
        self.ends = enlarged(self.ends, self.n_rows, n_rows)
        if self.rules.needs_qid:
            self.qid = enlarged(self.qid, self.n_rows, n_rows)
        self.indices = enlarged(self.indices, self.n_pairs, n_pairs)
        self.value = enlarged(self.value, self.n_pairs, n_pairs)

    def _table(self, rows: slice, pairs: slice) -> scan.Table:
        qid = self.qid[rows]  # none, unless somebody asks for them
        y, ends = self.y[rows], self.ends[rows]
        return scan.Table(y, qid, ends, self.indices[pairs], self.value[pairs])

    def _append(self, table: scan.Table, marks: NDArray[np.int64]) -> None:
        """Move what a chunk found next to what there was."""
        n, m = int(marks[scan.ROWS]), int(marks[scan.PAIRS])
        rows = slice(self.n_rows, self.n_rows + n)
        pairs = slice(self.n_pairs, self.n_pairs + m)
        move(self.y[rows], table.y[:n])
        move(self.ends[rows], table.ends[:n])
        self.ends[rows] += self.n_pairs
        if self.rules.needs_qid:
            move(self.qid[rows], table.qid[:n])
        move(self.indices[pairs], table.indices[:m])
        move(self.value[pairs], table.value[:m])
        self.n_rows, self.n_pairs = rows.stop, pairs.stop
        self.lowest = min(self.lowest, int(marks[scan.LOWEST]))
        self.highest = max(self.highest, int(marks[scan.HIGHEST]))

    def result(self) -> Parsed:
        for column in (self.y, self.ends, self.qid):
            column.resize(min(self.n_rows, len(column)), refcheck=False)
        for column in (self.indices, self.value):
            column.resize(self.n_pairs, refcheck=False)
        return Parsed(
            self.y,
            self.qid,
            self.ends,
            self.indices,
            self.value,
            self.lowest,
            self.highest,
        )


def count_marks(text: NDArray[np.uint8]) -> tuple[int, int]:
    """Line feeds and colons: no fewer than there are rows and pairs."""
    lines = np.count_nonzero(text == scan.LINE_FEED)
    return int(lines), int(np.count_nonzero(text == scan.COLON))


def enlarged(column: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """The column, with room for `size` entries at least."""
    if len(column) >= size:
        return column
    longer = np.empty(max(size, int(1.25 * len(column))), dtype=column.dtype)
    longer[:used] = column[:used]
    return longer


def move(to: NDArray[Any], what: NDArray[Any]) -> None:
    """Copy, unless it is there already."""
    if to.ctypes.data != what.ctypes.data:
        to[:] = what


def parse_stream(
    stream: io.RawIOBase, head: bytes, rules: Rules, name: str, n_threads: int
) -> Parsed:
    """All rows of `head` and of the stream after it."""
    columns = Columns(rules, size_of(stream))
    try:
        for block in blocks_of(stream, head, rules.longest, name):
            columns.add(block, n_threads)
    except Fault as fault:
        line = columns.n_lines + 1
        raise DataFormatError(str(fault), path=name, line=line, column=1) from None
    return columns.result()


def size_of(stream: io.RawIOBase) -> int:
    """Bytes of a file that is not packed, 0 where only reading will tell."""
    if isinstance(stream, io.FileIO):
        return os.fstat(stream.fileno()).st_size
    return 0


# What compiled code leaves to Python.


def finish_chunk(
    block: Block, rules: Rules, table: scan.Table, marks: NDArray[np.int64]
) -> None:
    """Read the tokens that were left open, then raise the chunk's fault, if any."""
    if marks[scan.SLOW]:
        n, m = int(marks[scan.ROWS]), int(marks[scan.PAIRS])
        begin = int(marks[scan.BEGIN])
        left = left_open(table.y[:n], begin, is_label=True)
        left += left_open(table.value[:m], begin)
        for place, is_label, k in sorted(left):
            column = table.y if is_label else table.value
            read = read_label if is_label else read_value
            try:
                column[k] = read(block.token(place), rules)
            except Fault as fault:
                raise block.error(fault, place) from None
    if marks[scan.FAULT]:
        place = int(marks[scan.PLACE])
        raise block.error(find_fault(block, rules, marks), place)


def left_open(
    column: NDArray[np.float64], begin: int, is_label: bool = False
) -> list[tuple[int, bool, int]]:
    """Places of the tokens that Python has to read, and where their numbers go."""
    which = np.flatnonzero(np.isnan(column))
    places = (column[which].view(np.uint64) & scan.PLACE_BITS).astype(np.int64)
    pairs = zip((begin + places).tolist(), which.tolist(), strict=True)
    return [(place, is_label, k) for place, k in pairs]


def read_value(token: bytes, rules: Rules) -> float:
    return read_pair(token, -1, rules)[1]


def find_fault(block: Block, rules: Rules, marks: NDArray[np.int64]) -> Fault:
    """What plain Python says of the token that compiled code refused."""
    kind, place = int(marks[scan.FAULT]), int(marks[scan.PLACE])
    token = block.token(place)
    if kind == scan.LONG_LINE:
        return too_long(rules.longest)
    if kind == scan.NO_QID:
        return lacks_qid(token)
    try:
        if kind == scan.BAD_LABEL:
            read_label(token, rules)
        elif kind == scan.BAD_QID:
            read_qid(token)
        else:
            read_pair(token, int(marks[scan.PREVIOUS]), rules)
    except Fault as fault:
        return fault
    return Fault(f"{show(token)} cannot be read.")
