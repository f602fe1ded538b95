"""How is memory promised for a matrix whose size nobody knows yet, and used again?

The system hands out pages when they are first written to. A matrix made for the most
that may come thus costs what is really used, unless pages are huge: then every row
would cost two megabytes. New pages cost more than the kernel values that go there, so
the squares of small problems, of which a fit may solve hundreds, are passed on.
"""

import mmap
import threading

import numpy as np

from maxmargin.typing import KernelMatrix

NO_HUGE_PAGES = getattr(mmap, "MADV_NOHUGEPAGE", None)  # Linux has it
ITEM = np.dtype(np.float32)
MOST_SPARE = 1 << 23  # values of a square that is passed on, which fits all: 32 MB

_lock = threading.Lock()
_spare: list[KernelMatrix] = []  # flat


def promised_square(side: int) -> KernelMatrix:
    """A C-ordered float32 matrix whose pages come into being when written to."""
    n = side * side
    with _lock:
        for k, flat in enumerate(_spare):
            if len(flat) >= n > 0:
                return _spare.pop(k)[:n].reshape(side, side)
    if n > MOST_SPARE:
        return _new_pages(n).reshape(side, side)
    return np.empty(MOST_SPARE, dtype=ITEM)[:n].reshape(side, side)


def pass_on(square: KernelMatrix) -> None:
    """The square is no longer needed: somebody else may write over it."""
    flat = square.base
    if isinstance(flat, np.ndarray) and len(flat) <= MOST_SPARE:
        with _lock:
            _spare.append(flat)


def forget_spares() -> None:
    """Give the memory back."""
    with _lock:
        _spare.clear()


def _new_pages(n: int) -> KernelMatrix:
    pages = mmap.mmap(-1, n * ITEM.itemsize)
    if NO_HUGE_PAGES is not None:
        pages.madvise(NO_HUGE_PAGES)
    return np.frombuffer(pages, dtype=ITEM)
