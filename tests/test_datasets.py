"""Can the suite run without a folder of data sets, and does it know what needs one?"""

from __future__ import annotations

from pathlib import Path

import conftest
import datasets
import numpy as np
import pytest
import readme_examples

MOST_ASKED = 400  # rows that tests need, not only "at most"


@pytest.mark.parametrize("name", datasets.STAND_INS)
def test_a_stand_in_has_enough_rows_of_every_class(name: str) -> None:
    X, y, is_regression = datasets._bundled(name)

    assert len(y) == X.shape[0] >= MOST_ASKED
    assert is_regression or np.bincount(y).min() >= 100


def test_no_folder_is_used_but_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    assert datasets.folder() is None

    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    assert datasets.folder() == tmp_path

    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="unset it"):
        datasets.folder()


def test_functions_that_load_a_set_are_known() -> None:
    def through_a_module() -> None:
        datasets.load("heart", 10)

    def through_a_helper() -> Path:
        return readme_examples.write_heart(Path("nowhere"))

    def through_a_name_alone() -> float:
        return datasets.SCALE

    assert conftest.loads_data(through_a_module)
    assert conftest.loads_data(through_a_helper)
    assert not conftest.loads_data(through_a_name_alone)
