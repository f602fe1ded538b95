"""Does a release gather every note once, and refuse a misnamed one?"""

import changelog
import pytest

NOTES = {
    "README.md": "How to write one.",
    "solver.fixed.md": "Fits no longer\nstall.\n",
    "kernel.added.md": "A new kernel.\n",
    "alpha.added.md": "Another.\n",
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    (tmp_path / "changelog.d").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "changelog.d" / name).write_text(text)
    return tmp_path


def test_release_moves_notes_into_a_section(root):
    changelog.release(root, "0.1.0", "2026-01-31")

    assert (root / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-01-31)\n\n"
        "### Added\n\n- Another.\n- A new kernel.\n\n"
        "### Fixed\n\n- Fits no longer stall.\n"
    )
    assert [path.name for path in (root / "changelog.d").iterdir()] == ["README.md"]


def test_newer_release_comes_first(root):
    changelog.release(root, "0.1.0", "2026-01-31")
    (root / "changelog.d" / "more.changed.md").write_text("More.")
    changelog.release(root, "0.2.0", "2026-02-28")

    text = (root / "CHANGELOG.md").read_text()
    assert text.index("Unreleased") < text.index("## 0.2.0") < text.index("## 0.1.0")
    assert text.count("\n\n\n") == 0


def test_nothing_to_release_is_an_error(root):
    changelog.release(root, "0.1.0", "2026-01-31")

    with pytest.raises(ValueError, match="no notes"):
        changelog.release(root, "0.2.0", "2026-02-28")


def test_notes_of_this_repository_are_well_named():
    changelog.find_notes(changelog.ROOT / "changelog.d")


@pytest.mark.parametrize(
    "name", ["solver.md", "solver.improved.md", "solver.fixed.txt"]
)
def test_misnamed_note_is_an_error(root, name):
    (root / "changelog.d" / name).write_text("What?")

    with pytest.raises(ValueError, match=name):
        changelog.release(root, "0.1.0", "2026-01-31")
