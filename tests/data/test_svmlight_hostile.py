"""Do hostile data files end in an error of ours, soon, and in little memory?"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from maxmargin.data import svmlight, svmlight_chunks
from maxmargin.data.svmlight import read_svmlight
from maxmargin.errors import DataFormatError

MEGABYTE = 2**20
MOST_SECONDS = 1.0
N_MUTANTS = max(100, int(1000 * datasets.SCALE))

SEEDS = [
    b"+1 1:0.5 3:-2e-3 7:1\n-1 2:1. 4:.25\n0 1:0 10:123456\n" * 3,
    b"1 qid:1 1:0.25 2:0.5\n2 qid:1 3:1 # good\n\n1 qid:2 1:1\r\n" * 3,
    b"-1 0:1 1:4.0 2:6.0\n1 0:2 1:6.0 2:9.0\n",
    b"3 1:0.12345678901234567 2:1e-300 3:9007199254740993\n" * 4,
    b"# comment : with # signs\n1\n2 5:1e22\n\t3  6:-0 \n",
]
WORDS = [b":", b" ", b"\n", b"\r", b"#", b"\0", b"\t", b"-", b"+", b".", b"e", b"nan"]
WORDS += [b"inf", b"1e999", b"qid:", b"99999999999", b"9" * 50, b"0", b"1:1", b","]
WORDS += [b"\xff", b"0x1", b"_", b"1e-400", b"0:", b"::", b" 2147483648:1", b"\x0b"]


def mutate(text: bytes, rng: random.Random) -> bytes:
    """One to six random edits."""
    edited = bytearray(text)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(edited) + 1)
        to = min(len(edited), at + rng.randint(0, 12))
        kind = rng.randrange(5)
        if kind == 0:
            del edited[at:to]
        elif kind == 1:
            edited[at:at] = rng.choice(WORDS)
        elif kind == 2:
            edited[at:at] = edited[at:to] * rng.randint(1, 40)
        elif kind == 3 and at < len(edited):
            edited[at] ^= 1 << rng.randrange(8)
        else:
            edited[at:to] = rng.choice(WORDS)
    return bytes(edited)


def outcome(text: bytes, options: dict[str, Any]) -> Any:
    """The arrays as bytes, or the words and place of the error."""
    try:
        X, y, qid = read_svmlight(text, **options)
    except DataFormatError as error:
        return str(error), error.line, error.column
    arrays = (X.data, X.indices, X.indptr, y, () if qid is None else qid)
    return X.shape, *(np.asarray(array).tobytes() for array in arrays)


def compiled(text: bytes, rules: Any, name: str) -> Any:
    return svmlight_chunks.parse_stream(io.BytesIO(), text, rules, name, 2)


def peak_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if "VmHWM" in line)


# ------------------------------------------------------------------------------ mutants
@pytest.mark.slow
@pytest.mark.boundscheck
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_mutants_are_read_or_refused_the_same_both_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(0)
    monkeypatch.setattr(svmlight_chunks, "CHUNK", 64)
    compiled(b"1 1:1\n", svmlight._make_rules("auto", None, (9, 9)), "")
    before, slowest, n_read = peak_memory(), 0.0, 0

    for _ in range(N_MUTANTS):
        text = mutate(rng.choice(SEEDS), rng)
        options = {
            "index_base": rng.choice(["auto", "auto", 0, 1]),
            "with_qid": rng.random() < 0.2,
            "finite": rng.random() < 0.8,
        }
        began = time.process_time()
        plain = outcome(text, options)
        with monkeypatch.context() as patch:
            patch.setattr(svmlight, "parse_plain", compiled)
            fast = outcome(text, options)
        slowest = max(slowest, time.process_time() - began)
        n_read += len(plain) > 3
        assert plain == fast, (text, options)

    assert 0 < n_read < N_MUTANTS
    assert slowest < 2 * MOST_SECONDS
    assert peak_memory() - before < 100 * MEGABYTE


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_mutants_of_packed_files_are_read_or_refused(pack: Any) -> None:
    rng = random.Random(1)
    packed = pack(b"".join(SEEDS[:1]) * 20)
    expected, n_read = outcome(packed, {}), 0

    for _ in range(N_MUTANTS // 10):
        began = time.process_time()
        found = outcome(mutate(packed, rng), {})
        n_read += found == expected
        assert time.process_time() - began < MOST_SECONDS

    assert n_read < N_MUTANTS // 10


# ----------------------------------------------------------------------- by human hands
def ascending(n: int) -> bytes:
    return b" ".join(b"%d:1" % j for j in range(1, n + 1))


BIG = 2 * MEGABYTE  # more than what plain Python is given
HOSTILE = {
    "binary": bytes(range(256)) * 9000,
    "nothing but zero bytes": b"\0" * BIG,
    "zero bytes in one line": b"1 1:1" + b"\0" * BIG,
    "nothing but colons": b":" * BIG,
    "colons after a label": b"1 " + b":" * BIG,
    "pairs without values": b"1" + b" 1:" * (BIG // 3),
    "nothing but commas": b"1," * BIG,
    "one digit, for ever": b"7" * BIG,
    "one digit, for ever, as an index": b"1 " + b"7" * BIG,
    "one digit, for ever, as a value": b"1 1:" + b"7" * BIG,
    "zeros, for ever": b"1 1:0." + b"0" * BIG + b"1",
    "an exponent, for ever": b"1 1:1e" + b"9" * BIG,
    "a negative exponent, for ever": b"1 1:1e-" + b"9" * BIG,
    "signs, for ever": b"1 1:" + b"-" * BIG,
    "blanks, for ever": b" " * BIG,
    "blank lines, for ever": b"\n" * BIG,
    "returns, for ever": b"1 1:1\r" * (BIG // 6),
    "a comment, for ever": b"# :" + b": 1:1" * (BIG // 5),
    "comments, for ever": b"#:\n" * (BIG // 3),
    "the largest index and one more": b"1 2147483648:1\n",
    "an index that wraps to 1 in 32 bits": b"1 4294967297:1\n",
    "an index that wraps to 1 in 64 bits": b"1 18446744073709551617:1\n",
    "an index below zero": b"1 -1:1\n",
    "descending": b"1 3:1 2:1 1:1\n" * 9,
    "one index, many times": b"1" + b" 1:1" * (BIG // 4),
    "a label too many": b"1 2 1:1\n",
    "several labels": b"1,2,3 1:1\n" * 9,
    "nan": b"nan 1:nan\n" * 9,
    "too large for a float": b"1 1:1e309\n",
    "UTF-16": "1 1:1\n".encode("utf-16") * 9,
    "an empty file": b"",
    "an empty gzip": gzip.compress(b""),
    "a truncated gzip": gzip.compress(b"1 1:1\n" * 999)[:-9],
    "a truncated bzip2": bz2.compress(b"1 1:1\n" * 999)[:-9],
    "a truncated xz": lzma.compress(b"1 1:1\n" * 999)[:-9],
    "a gzip with a name that never ends": b"\x1f\x8b\x08\x08" + b"a" * BIG,
    "gzip, then something else": gzip.compress(b"1 1:1\n") + b"trailing",
    "a gzip bomb of zero bytes": gzip.compress(b"\0" * (64 * MEGABYTE)),
    "a bzip2 bomb of zero bytes": bz2.compress(b"\0" * (64 * MEGABYTE)),
    "an xz bomb of zero bytes": lzma.compress(b"\0" * (64 * MEGABYTE)),
    "a gzip bomb of blank lines": gzip.compress(b"\n" * (64 * MEGABYTE)),
    "a gzip bomb of good lines": gzip.compress(b"1 1:1\n" * (8 * MEGABYTE)),
    "an xz bomb of good lines": lzma.compress(b"1 1:1\n" * (8 * MEGABYTE)),
    "a gzip in a gzip": gzip.compress(gzip.compress(b"1 1:1\n" * 999)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused_soon_and_cheaply(text: bytes) -> None:
    read_svmlight(b"1 1:1\n" * 20_000)  # compiled by now
    tracemalloc.start()
    began = time.process_time()

    with pytest.raises(DataFormatError) as caught:
        read_svmlight(text)

    seconds, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < MOST_SECONDS
    assert peak < 10 * len(text) + 100 * MEGABYTE
    assert len(str(caught.value)) < 300


FAIR = {
    "labels only": b"1\n" * BIG,
    "short pairs": (b"1 " + ascending(9) + b"\n") * (BIG // 40),
    "one long line": b"1 " + ascending(200_000),
    "many comments": b"1 1:1 # ::::::::::::::::\n" * (BIG // 25),
    "many blank lines": b"\n\n\n\n\n\n\n\n1 1:1\n" * (BIG // 14),
    "long zeros": b"1 1:" + b"0" * 1900 + b"1\n",
    "wide": b"1 2147483647:1\n",
    "hard to round": b"1 1:0.1000000000000000055511151231257827021181583404541015625\n"
    * (BIG // 500),
}


@pytest.mark.parametrize("text", FAIR.values(), ids=FAIR.keys())
def test_odd_but_fair_files_are_read_cheaply(text: bytes) -> None:
    read_svmlight(b"1 1:1\n" * 20_000)
    tracemalloc.start()

    found = read_svmlight(text)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows = [line for line in text.split(b"\n") if line.partition(b"#")[0].strip()]
    assert len(found.y) == len(rows)
    assert peak < 10 * len(text) + 100 * MEGABYTE


def test_limits_can_be_raised_for_files_that_are_meant() -> None:
    text = b"1 1:1\n" * 2_000_000
    packed = lzma.compress(text)

    with pytest.raises(DataFormatError, match="pass max_bytes"):
        read_svmlight(packed)

    assert len(read_svmlight(packed, max_bytes=len(text)).y) == 2_000_000
    with pytest.raises(DataFormatError, match="more than max_bytes = 1,000"):
        read_svmlight(text, max_bytes=1000)


def test_a_line_longer_than_the_limit_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        n_read = 0

        def read(self, size: int = -1) -> bytes:
            self.n_read += size
            return b"1" * size

    endless = Endless()

    with pytest.raises(DataFormatError, match="line 1, column 1: a line of more than"):
        read_svmlight(endless, max_line_bytes=10**6)  # type: ignore[arg-type]

    assert endless.n_read < 10 * svmlight_chunks.BLOCK


@pytest.mark.skipif(sys.platform != "linux", reason="needs files with holes")
def test_a_file_with_a_hole_cannot_claim_memory(tmp_path: Path) -> None:
    path = tmp_path / "hole.txt"
    path.write_bytes(b"1 1:1\n" * 3_000_000)
    with path.open("r+b") as file:
        file.truncate(2**43)
    began = time.process_time()

    with pytest.raises(DataFormatError, match=r"a label must be|more than"):
        read_svmlight(path, max_line_bytes=2**20)

    assert time.process_time() - began < 5 * MOST_SECONDS


def test_indices_become_wider_when_there_are_too_many_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"1 1:1 20:2\n-1 3:1 4:1 5:1\n" * 40
    expected = read_svmlight(text, n_features=20)
    monkeypatch.setattr(svmlight_chunks, "MOST_INT32", 50)
    monkeypatch.setattr(svmlight_chunks, "BLOCK", 99)

    rules = svmlight._make_rules("auto", 20, (20, 999))
    found = compiled(text, rules, "")

    assert found.indices.dtype == found.ends.dtype == np.int64
    assert np.array_equal(found.indices, expected.X.indices)
    assert np.array_equal(found.ends, expected.X.indptr[1:])
    assert np.array_equal(found.value, expected.X.data)
