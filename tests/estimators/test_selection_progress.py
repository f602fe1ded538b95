"""What does somebody see who waits for a search?"""

from __future__ import annotations

import io
import sys

import pytest
from datasets import load

from maxmargin import SVCCV

CURSOR_BACK = "\x1b[?25h"


class Terminal(io.StringIO):
    """An output that claims to be looked at."""

    def isatty(self) -> bool:
        return True


def output_of(verbose: int, screen: io.StringIO) -> str:
    X, y = load("heart", 60)
    search = SVCCV(Cs=[1.0, 2.0, 4.0], gammas=["scale"], cv=2, verbose=verbose)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        patch.setenv("COLUMNS", "100")
        patch.setenv("TERM", "xterm")
        search.fit(X, y)
    return screen.getvalue()


def test_a_terminal_shows_a_bar() -> None:
    pytest.importorskip("rich", reason="rich is not installed")

    shown = output_of(1, Terminal())

    assert "3/3" in shown
    assert "best 0." in shown
    assert "[maxmargin]" not in shown
    assert CURSOR_BACK in shown


@pytest.mark.parametrize(
    ("verbose", "screen"), [(1, io.StringIO()), (2, Terminal())], ids=["file", "asked"]
)
def test_lines_elsewhere(verbose: int, screen: io.StringIO) -> None:
    lines = output_of(verbose, screen).splitlines()

    assert [line.split(":")[0] for line in lines] == [
        f"[maxmargin] {k} of 3" for k in (1, 2, 3)
    ]


def test_without_rich_lines_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)

    assert output_of(1, Terminal()).count("[maxmargin]") == 3


def test_nothing_is_shown_unless_asked_for() -> None:
    assert output_of(0, Terminal()) == ""


def test_a_bar_ends_when_the_search_fails() -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    screen = Terminal()
    X, y = load("heart", 60)

    def stop(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        patch.setenv("TERM", "xterm")
        with pytest.raises(KeyboardInterrupt):
            SVCCV(Cs=[1.0], cv=2, verbose=1, callback=stop).fit(X, y)

    assert CURSOR_BACK in screen.getvalue()
