"""How is a table printed? Columns as wide as they need to be, numbers to the right."""

from collections.abc import Sequence


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print heads, a rule and rows; the first two columns are words."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        cells = [
            text.ljust(width) if k < 2 else text.rjust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip(), flush=True)
