"""Does `fit` say what its search has tried, and in which folds?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import command, write_classes

QUICK = ["--C", "4", "--gamma", "0.5"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path / "two")
    return tmp_path


def test_a_search_that_is_cut_short_says_how_much_was_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from maxmargin.cli.selecting import Search

    n_left = [2]  # settings for which there is time
    try_one = Search._try

    def try_two(search: Search, *arguments: Any) -> None:
        if n_left[0]:
            n_left[0] -= 1
            try_one(search, *arguments)

    monkeypatch.setattr(Search, "_try", try_two)

    done = command("fit", "--json", "--time-limit", "600", "two", "m")

    facts = json.loads(done.out)
    assert (facts["settings_tried"], facts["settings_planned"]) == (2, 24)
    assert done.err.startswith("WARNING: the time limit ended the search after 2 of 24")
    assert facts["C"] == 4.0  # the first guess, not the corner of the grid


def test_a_whole_search_says_nothing_of_limits() -> None:
    done = command("fit", "--json", "--time-limit", "600", "--gamma", "1", "two", "m")

    facts = json.loads(done.out)
    assert facts["settings_tried"] == facts["settings_planned"] == 6
    assert done.err == ""


def test_fit_reports_the_folds_that_there_were() -> None:
    Path("few").write_text("".join(f"{i % 2} 1:{i}\n" for i in range(8)))

    facts = json.loads(
        command("fit", "--json", "--folds", "50", *QUICK, "few", "m").out
    )

    assert facts["folds"] == 8
