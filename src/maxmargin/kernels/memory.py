"""How is memory reserved for a matrix of unknown size, and used again?

The system hands out pages when they are first written to. A matrix made for the most
that may come thus costs what is really used, unless pages are huge: then every row
would cost two megabytes. New pages cost more than the kernel values that go there, so
the squares of small problems, of which a fit may solve hundreds, are passed on.
"""

import mmap
from collections import deque

import numpy as np

from maxmargin.typing import FloatMatrix, KernelMatrix

NO_HUGE_PAGES = getattr(mmap, "MADV_NOHUGEPAGE", None)  # Linux has it
ITEM = np.dtype(np.float32)
PRIVATE = {}  # a child that is forked has a copy; Windows has no children of that kind
if hasattr(mmap, "MAP_PRIVATE"):
    PRIVATE["flags"] = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
MOST_SPARE = 1 << 23  # values of a square that is passed on, which fits all: 32 MB
SPARE_SIDE = int(MOST_SPARE**0.5)

_spare: deque[KernelMatrix] = deque()  # flat, all of them as long: any will do


def promised_square(side: int) -> KernelMatrix:
    """A C-ordered float32 matrix whose pages come into being when written to."""
    n = side * side
    if n > MOST_SPARE:
        square: KernelMatrix = _new_pages(n, ITEM).reshape(side, side)
        return square
    try:
        flat = _spare.pop()
    except IndexError:
        flat = np.empty(MOST_SPARE, dtype=ITEM)
    return flat[:n].reshape(side, side)


def pass_on(square: KernelMatrix) -> None:
    """The square is no longer needed: others may write over it."""
    flat = square.base
    if isinstance(flat, np.ndarray) and len(flat) == MOST_SPARE:
        _spare.append(flat)


def forget_spares() -> None:
    """Give the memory back. No lock is held here: this may come at any moment."""
    _spare.clear()


def new_square(side: int) -> FloatMatrix:
    """A float64 matrix to write over, in small pages.

    Huge ones are read a little faster. But a virtual machine gives free huge pages back
    to its host, and to get one again costs five times as much as as many small ones.
    """
    pages = _new_pages(side * side, np.dtype(np.float64))
    square: FloatMatrix = pages.reshape(side, side)
    return square


def _new_pages(n: int, item: np.dtype[np.floating]) -> np.ndarray:
    pages = mmap.mmap(-1, n * item.itemsize, **PRIVATE)
    if NO_HUGE_PAGES is not None:
        pages.madvise(NO_HUGE_PAGES)
    return np.frombuffer(pages, dtype=item)
