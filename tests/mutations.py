"""How does a good file become a bad one? Small accidents, and ill will."""

from __future__ import annotations

import hashlib
import re

import numpy as np

NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][+-]?\d+)?")
NASTY = (
    b"nan",
    b"inf",
    b"-inf",
    b"1e999",
    b"-1",
    b"0",
    b"2147483648",
    b"4294967296",
    b"9223372036854775808",
    b"1" * 400,
    b"0x10",
    b"1_0",
    b"1e",
    b".",
    b"--1",
    b"%n%s",
    b"\0",
    b"\xff\xfe",
    b":",
    b"1:2:3",
    b"",
    "١".encode(),
)


def mutated(rng: np.random.Generator, files: list[bytes]) -> bytes:
    """One of the files, with one to four accidents."""
    data = files[rng.integers(len(files))]
    for _ in range(rng.integers(1, 5)):
        accident = ACCIDENTS[rng.integers(len(ACCIDENTS))]
        data = accident(rng, data, files)
    return data


def resealed(data: bytes) -> bytes:
    """A native file whose digest matches what has become of it."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def _place(rng: np.random.Generator, data: bytes) -> int:
    return int(rng.integers(len(data) + 1))


def flipped(
    rng: np.random.Generator, data: bytes, files: list[bytes] | None = None
) -> bytes:
    """A few bytes changed, and none added or lost."""
    if not data:
        return data
    wrong = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        wrong[rng.integers(len(wrong))] = rng.integers(256)
    return bytes(wrong)


def _cut(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    return data[: _place(rng, data)]


def _drop(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    first = _place(rng, data)
    return data[:first] + data[first + int(rng.integers(1, 40)) :]


def _repeat(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    first = _place(rng, data)
    part = data[first : first + int(rng.integers(1, 200))]
    return data[:first] + part * int(rng.integers(2, 20)) + data[first:]


def _insert(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    first = _place(rng, data)
    return data[:first] + NASTY[rng.integers(len(NASTY))] + data[first:]


def _renumber(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    """Put something else where a number stood."""
    found = list(NUMBER.finditer(data[:5000]))
    if not found:
        return data
    match = found[rng.integers(len(found))]
    nasty = NASTY[rng.integers(len(NASTY))]
    return data[: match.start()] + nasty + data[match.end() :]


def _swap_lines(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.integers(len(lines), size=2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _splice(rng: np.random.Generator, data: bytes, files: list[bytes]) -> bytes:
    other = files[rng.integers(len(files))]
    return data[: _place(rng, data)] + other[_place(rng, other) :]


ACCIDENTS = (flipped, _cut, _drop, _repeat, _insert, _renumber, _swap_lines, _splice)
