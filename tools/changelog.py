"""What changed in this release? Gathers changelog.d/ into CHANGELOG.md."""

import argparse
import datetime
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
KINDS = ("added", "changed", "fixed")
HEADING = "## Unreleased\n"


def find_notes(folder: Path) -> dict[str, list[Path]]:
    """The notes of each kind, by name; a misnamed file is an error."""
    notes: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        parts = path.name.split(".")
        if len(parts) != 3 or parts[1] not in KINDS or parts[2] != "md":
            expected = f"<topic>.<{'|'.join(KINDS)}>.md"
            raise ValueError(f"A note is named {expected}, got {path.name}.")
        notes[parts[1]].append(path)
    return notes


def write_section(version: str, date: str, notes: dict[str, list[Path]]) -> str:
    """One release as Markdown: a heading for each kind, a bullet for each note."""
    lines = [f"## {version} ({date})", ""]
    for kind, paths in notes.items():
        if not paths:
            continue
        bullets = [" ".join(path.read_text("utf-8").split()) for path in paths]
        lines += [f"### {kind.capitalize()}", "", *(f"- {b}" for b in bullets), ""]
    return "\n".join(lines)


def release(root: Path, version: str, date: str) -> None:
    """Move every note into a new section below the heading Unreleased."""
    notes = find_notes(root / "changelog.d")
    if not any(notes.values()):
        raise ValueError("changelog.d has no notes: there is nothing to release.")
    changelog = root / "CHANGELOG.md"
    before, heading, after = changelog.read_text("utf-8").partition(HEADING)
    if not heading:
        raise ValueError(f"CHANGELOG.md needs a line {HEADING.strip()!r}.")
    section = write_section(version, date, notes)
    text = f"{before}{heading}\n{section}{after}".rstrip() + "\n"
    changelog.write_text(text, "utf-8")
    for path in chain.from_iterable(notes.values()):
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()
    release(ROOT, options.version, options.date)


if __name__ == "__main__":
    main()
