"""Where may data come from, and what is said when it cannot be had?"""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin.data import svmlight
from maxmargin.data.svmlight import TextData, read_svmlight
from maxmargin.errors import InvalidInput, UnreadableFile

SMALL_TEXT = b"+1 1:0.5 3:-2e-3  # a comment\n\n-1 2:1. 4:.25\r\n3.5 4:1e-30\n"


def is_same(a: TextData, b: TextData) -> bool:
    return np.array_equal(a.y, b.y) and (a.X != b.X).nnz == 0


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_packed_files_are_told_by_their_first_bytes(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    text = SMALL_TEXT * 3000
    path.write_bytes(pack(text[:70_000]) + pack(text[70_000:]) + b"\0" * 0)

    with np.errstate(over="ignore"):
        found = read_svmlight(path)
        expected = read_svmlight(text)

    assert is_same(found, expected)


def test_open_files_stay_open(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(SMALL_TEXT)

    with path.open("rb") as binary, path.open() as text:
        found = [read_svmlight(binary), read_svmlight(text)]  # type: ignore[arg-type]
        assert not binary.closed and not text.closed

    assert all(is_same(each, read_svmlight(path)) for each in found)


def test_paths_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt does not exist"):
        read_svmlight(tmp_path / "nowhere.txt")
    with pytest.raises(UnreadableFile, match="is a folder"):
        read_svmlight(tmp_path)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_svmlight("a\0b")
    with pytest.raises(InvalidInput, match="not as int"):
        read_svmlight(3)  # type: ignore[arg-type]


def test_a_disk_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(SMALL_TEXT)

    def fail(*_: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(svmlight, "read_head", fail)

    with pytest.raises(UnreadableFile, match=r"data\.txt cannot be read: Input/output"):
        read_svmlight(path)


def test_small_files_need_neither_numba_nor_scikit_learn(tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    code = (
        "import sys\nfrom maxmargin.data.svmlight import *\n"
        f"read = read_svmlight(b'1 1:2\\n')\nwrite_svmlight({str(path)!r}, *read[:2])\n"
        "print(*{'numba', 'sklearn', 'pandas', 'maxmargin'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["maxmargin"]
    assert path.read_bytes() == b"1 1:2\n"
