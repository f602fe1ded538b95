"""Is a file replaced at once, or not at all?"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin.interop import native
from maxmargin.interop.files import write_atomically
from maxmargin.models.linear_model import LinearModel

FIRST = LinearModel("L2R_LR", np.array([3, 1]), np.ones((1, 2)))
SECOND = LinearModel("L2R_LR", np.array([3, 1]), np.ones((1, 3)))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.mm"
    native.save(path, FIRST)
    before = path.read_bytes()

    def parts() -> Any:
        yield b"half"
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, parts())

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_keeps_links_and_permissions(tmp_path: Path) -> None:
    path, link = tmp_path / "model.mm", tmp_path / "link"
    native.save(path, FIRST)
    path.chmod(0o640)
    link.symlink_to(path)

    native.save(link, SECOND)

    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert native.load(path).n_features == 3


def test_new_files_have_ordinary_permissions(tmp_path: Path) -> None:
    native.save(tmp_path / "model.mm", FIRST)
    (tmp_path / "other").write_text("")

    ours, theirs = (os.stat(tmp_path / name) for name in ("model.mm", "other"))
    assert stat.S_IMODE(ours.st_mode) == stat.S_IMODE(theirs.st_mode)


def test_a_missing_folder_is_named_by_the_file_that_was_asked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "nowhere" / "model.mm"

    with pytest.raises(FileNotFoundError) as caught:
        native.save(path, FIRST)

    assert caught.value.filename == str(path)
