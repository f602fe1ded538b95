"""How is memory promised for a matrix whose size nobody knows yet?

The system hands out pages when they are first written to. A matrix made for the most
that may come thus costs what is really used, unless pages are huge: then every row
would cost two megabytes.
"""

import mmap

import numpy as np

from maxmargin.typing import KernelMatrix

NO_HUGE_PAGES = getattr(mmap, "MADV_NOHUGEPAGE", None)  # Linux has it
ITEM = np.dtype(np.float32)


def promised_square(side: int) -> KernelMatrix:
    """A C-ordered float32 matrix whose pages come into being when written to."""
    if side == 0:
        return np.empty((0, 0), dtype=ITEM)
    pages = mmap.mmap(-1, side * side * ITEM.itemsize)
    if NO_HUGE_PAGES is not None:
        pages.madvise(NO_HUGE_PAGES)
    return np.frombuffer(pages, dtype=ITEM).reshape(side, side)
