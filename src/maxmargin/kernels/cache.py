"""Which rows of K are kept, and which one makes room? (LRU, as in LIBSVM.)"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin._jit import jit
from maxmargin.typing import IntVector, KernelMatrix

NOBODY = -1
N_USES, N_FILLED, N_MISSES = 0, 1, 2  # of `counts`
MIN_SLOTS = 2  # a pair of variables needs two rows at once
MEMORY_SHARE = 0.25  # of physical memory, for cache_size="auto"
UNKNOWN_MEMORY = 4 << 30  # assumed where the system does not report it
CONTAINER_LIMITS = (  # of Linux, in its second and its first form
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


class RowCache(NamedTuple):
    """Gram rows in memory: slot s holds row owner[s], and slot[owner[s]] == s.

    Columns are the active variables. There are few arrays here because each is seven
    arguments of every compiled function that gets one.
    """

    rows: KernelMatrix
    owner: IntVector  # slot -> row, NOBODY if free
    slot: IntVector  # row -> slot, NOBODY if absent
    last_use: IntVector
    counts: IntVector  # uses; slots ever filled, the first ones; rows waited for


@cache
def default_cache_bytes() -> int:
    """A quarter of the memory there is: the ceiling of cache_size="auto"."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = UNKNOWN_MEMORY
    return int(MEMORY_SHARE * min([memory, *_container_limits()]))


def _container_limits() -> list[int]:
    """What a container may use, if that is limited; "max" is no limit."""
    limits = []
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text()))
    return limits


def make_cache(n_rows: int, n_columns: int, dtype: DTypeLike, n_bytes: int) -> RowCache:
    """An empty cache of at most n_bytes, but of two rows at least."""
    row_bytes = np.dtype(dtype).itemsize * n_columns
    n_slots = int(np.clip(n_bytes // row_bytes, MIN_SLOTS, max(n_rows, MIN_SLOTS)))
    flat = np.empty(n_slots * n_columns, dtype=dtype)
    return _with_slots(flat, n_slots, n_columns, n_rows)


def _with_slots(
    flat: KernelMatrix, n_slots: int, n_columns: int, n_rows: int
) -> RowCache:
    return RowCache(
        rows=flat[: n_slots * n_columns].reshape(n_slots, n_columns),
        owner=np.full(n_slots, NOBODY),
        slot=np.full(n_rows, NOBODY),
        last_use=np.full(n_slots, NOBODY),
        counts=np.zeros(3, dtype=np.intp),
    )


def hold_all(K: KernelMatrix) -> RowCache:
    """A cache that holds every row from the start: slot s is row s, for good."""
    n_rows = len(K)
    order = np.arange(n_rows)
    return RowCache(
        rows=K,
        owner=order,
        slot=order,
        last_use=np.zeros(n_rows, dtype=np.intp),
        counts=np.array([0, n_rows, 0]),
    )


def keep_columns(cache: RowCache, keep: IntVector) -> RowCache:
    """The same rows over fewer columns; the memory saved becomes new slots."""
    flat = cache.rows.base
    assert isinstance(flat, np.ndarray), "rows are a part of one array"
    n_slots = min(len(flat) // len(keep), len(cache.slot))
    n_slots = max(n_slots, len(cache.owner))
    _compact(flat, cache.rows.shape[1], int(cache.counts[N_FILLED]), keep)
    narrow = _with_slots(flat, n_slots, len(keep), len(cache.slot))
    narrow.owner[: len(cache.owner)] = cache.owner
    narrow.last_use[: len(cache.owner)] = cache.last_use
    narrow.slot[:] = cache.slot
    narrow.counts[:] = cache.counts
    return narrow


def claim_slots(cache: RowCache, rows: IntVector) -> IntVector:
    """Give these rows the least recently used slots, in order; forget the owners."""
    slots = _oldest_slots(cache, len(rows))
    former = cache.owner[slots]
    cache.slot[former[former != NOBODY]] = NOBODY
    cache.owner[slots], cache.slot[rows] = rows, slots
    cache.last_use[slots] = cache.counts[N_USES]
    return slots


def _oldest_slots(cache: RowCache, n: int) -> IntVector:
    used = int(cache.counts[N_FILLED])
    if used + n <= len(cache.owner):
        cache.counts[N_FILLED] += n
        return np.arange(used, used + n)
    cache.counts[N_FILLED] = len(cache.owner)
    return np.sort(np.argpartition(cache.last_use, n - 1)[:n])


@jit
def find_row(cache: RowCache, row: int) -> int:
    """The slot of a row, marked as used; NOBODY if it must be computed first."""
    s = cache.slot[row]
    if s != NOBODY:
        cache.last_use[s] = cache.counts[N_USES]
        cache.counts[N_USES] += 1
    return s


@jit
def claim_slot(cache: RowCache, row: int) -> int:
    """Give a row the first free slot, or the least recently used one."""
    if cache.counts[N_FILLED] < len(cache.owner):
        s = cache.counts[N_FILLED]
        cache.counts[N_FILLED] += 1
    else:
        s = _oldest_slot(cache.last_use)
    if cache.owner[s] != NOBODY:
        cache.slot[cache.owner[s]] = NOBODY
    cache.owner[s], cache.slot[row] = row, s
    cache.last_use[s] = cache.counts[N_USES]
    cache.counts[N_USES] += 1  # or the next claim might take this very slot
    cache.counts[N_MISSES] += 1
    return s


@jit
def _oldest_slot(last_use: IntVector) -> int:
    oldest = 0
    for s in range(1, len(last_use)):
        if last_use[s] < last_use[oldest]:
            oldest = s
    return oldest


@jit
def _compact(flat: KernelMatrix, width: int, n_rows: int, keep: IntVector) -> None:
    """Move kept columns together, in place: every value moves towards the front."""
    n_keep = len(keep)
    for r in range(n_rows):
        for k in range(n_keep):
            flat[r * n_keep + k] = flat[r * width + keep[k]]
