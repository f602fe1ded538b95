"""How is a block of K transposed into its place? A small tile at a time.

Row by row, every value of a column would be fetched from another page.
"""

from maxmargin._jit import jit
from maxmargin.typing import KernelMatrix

TILE = 16
Range = tuple[int, int]  # first and one after the last


@jit
def copy_turned(
    source: KernelMatrix,
    rows: Range,
    columns: Range,
    out: KernelMatrix,
    corner: tuple[int, int],
) -> None:
    """Write source[rows, columns] transposed to `out`, from `corner` on."""
    for i in range(rows[0], rows[1], TILE):
        for j in range(columns[0], columns[1], TILE):
            place = corner[0] + j - columns[0], corner[1] + i - rows[0]
            last = min(i + TILE, rows[1]), min(j + TILE, columns[1])
            _copy_tile(source, (i, last[0]), (j, last[1]), out, place)


@jit
def _copy_tile(
    source: KernelMatrix,
    rows: Range,
    columns: Range,
    out: KernelMatrix,
    corner: tuple[int, int],
) -> None:
    for j in range(columns[0], columns[1]):
        target = out[corner[0] + j - columns[0]]
        for i in range(rows[0], rows[1]):
            target[corner[1] + i - rows[0]] = source[i, j]
