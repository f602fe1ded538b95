"""How do sparse rows meet many others at once? Side by side, a vector at a time.

Some rows are spread over a buffer, with their values for one feature next to each
other. Whoever comes then reads a few numbers for each value it has, whichever of the
features these are. Numba makes no vectors of loops that short: the inner one is written
for LLVM.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import DTypeLike

from maxmargin._jit import PLAIN, jit, jit_new
from maxmargin.data.lanes import INT, LINE, ONCE, aligned_zeros, spread_over
from maxmargin.typing import IntVector, KernelMatrix

N_VECTORS = 2  # of one line of the cache each: the rows that are spread
N_WAYS = 4  # sums of their own, so that none waits for another
MOST_BUFFER = 1 << 30  # bytes of address space; few of its pages are ever touched
TURN = 16  # rows whose values are turned at once

Parts = tuple[KernelMatrix, IntVector, IntVector]  # data, indices, indptr


def sparse_dots(a: Parts, b: Parts, n_columns: int, out: KernelMatrix) -> None:
    """<x_i, z_j> for every row of a and of b, of `out`'s precision, as all are."""
    size = N_VECTORS * LINE // out.itemsize
    if n_columns * size * out.itemsize > MOST_BUFFER:
        a, b, n_columns = _renumbered(a, b)
    _meet_all(a, b, _zeros(n_columns, size, out.dtype), out)


def _renumbered(a: Parts, b: Parts) -> tuple[Parts, Parts, int]:
    """The same rows with a column for each that a has, and a last one for all others.

    What b has in that last column meets zeros. Costs a sort of the indices.
    """
    a, b = _own_values(a), _own_values(b)
    columns, place = np.unique(a[1], return_inverse=True)
    found = np.minimum(np.searchsorted(columns, b[1]), max(len(columns) - 1, 0))
    is_shared = columns[found] == b[1] if len(columns) else np.zeros(len(b[1]), bool)
    others = np.where(is_shared, found, len(columns))
    kind = a[1].dtype
    return (
        (a[0], place.astype(kind), a[2]),
        (b[0], others.astype(kind), b[2]),
        len(columns) + 1,
    )


def _own_values(parts: Parts) -> Parts:
    """A block of rows without the values of the rows around it."""
    data, indices, indptr = parts
    begin, end = indptr[0], indptr[-1]
    return data[begin:end], indices[begin:end], indptr - begin


def _zeros(n_rows: int, size: int, dtype: DTypeLike) -> KernelMatrix:
    return aligned_zeros(n_rows * size, dtype).reshape(n_rows, size)


@jit_new
def _meet_all(a: Parts, b: Parts, buffer: KernelMatrix, out: KernelMatrix) -> None:
    size = buffer.shape[1]
    room = np.empty((TURN, size), dtype=buffer.dtype)
    for first in range(0, out.shape[0], size):
        last = min(first + size, out.shape[0])
        _spread(a, (first, last), 1.0, buffer)
        for j in range(0, out.shape[1], TURN):
            n_turned = min(TURN, out.shape[1] - j)
            for k in range(n_turned):
                meet(b[0], b[1], (b[2][j + k], b[2][j + k + 1]), buffer, room[k])
            _turn(room[:n_turned], out[first:last], j)
        _spread(a, (first, last), 0.0, buffer)


@jit
def _spread(
    a: Parts, span: tuple[int, int], scale: float, buffer: KernelMatrix
) -> None:
    """Write rows of a span, times a scale, to columns of the buffer."""
    data, indices, indptr = a
    for i in range(span[0], span[1]):
        for p in range(indptr[i], indptr[i + 1]):
            buffer[indices[p], i - span[0]] = scale * data[p]


@jit
def _turn(room: KernelMatrix, out: KernelMatrix, first: int) -> None:
    """Rows of the room become columns, from the first one on."""
    for i in range(out.shape[0]):
        for k in range(room.shape[0]):
            out[i, first + k] = room[k, i]


def meet(
    data: KernelMatrix,
    indices: IntVector,
    span: tuple[int, int],
    buffer: KernelMatrix,
    out: KernelMatrix,
) -> None:
    """out = the values in a span times the rows of the buffer that they stand for."""
    here = slice(*span)
    out[:] = data[here] @ buffer[indices[here]]


@overload(meet, jit_options=PLAIN)
def _compile_meet(data: Any, indices: Any, span: Any, buffer: Any, out: Any) -> Any:
    def compiled(data: Any, indices: Any, span: Any, buffer: Any, out: Any) -> Any:
        _meet(data, indices, (np.int64(span[0]), np.int64(span[1])), buffer, out)

    return compiled


@intrinsic
def _meet(
    context: Any, data: Any, indices: Any, span: Any, buffer: Any, out: Any
) -> Any:
    return types.void(data, indices, span, buffer, out), _emit_meet


def _emit_meet(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    names = "data", "indices", "span", "buffer", "out"
    kinds = dict(zip(names, signature.args, strict=True))
    given = dict(zip(names, arguments, strict=True))
    element = ir.FloatType() if kinds["out"].dtype == types.float32 else ir.DoubleType()
    lanes = LINE // (kinds["out"].dtype.bitwidth // 8)
    vector, align = ir.VectorType(element, lanes), LINE // lanes

    def start_of(name: str) -> Any:
        return context.make_array(kinds[name])(context, builder, given[name]).data

    data, indices, buffer, out = map(start_of, ("data", "indices", "buffer", "out"))
    start, stop = cgutils.unpack_tuple(builder, given["span"])
    nothing = vector([0.0] * lanes)
    sums = [
        [cgutils.alloca_once_value(builder, nothing) for _ in range(N_VECTORS)]
        for _ in range(N_WAYS)
    ]

    def vectors_at(base: Any) -> list[Any]:
        places = [builder.gep(base, [INT(v * lanes)]) for v in range(N_VECTORS)]
        return [builder.bitcast(place, vector.as_pointer()) for place in places]

    def add(p: Any, totals: list[Any]) -> None:
        column = builder.load(builder.gep(indices, [p]))
        if column.type != INT:
            column = builder.zext(column, INT)
        row = builder.gep(buffer, [builder.mul(column, INT(N_VECTORS * lanes))])
        spread = spread_over(builder, builder.load(builder.gep(data, [p])), vector)
        for near, total in zip(vectors_at(row), totals, strict=True):
            value = builder.load(near, align=align)
            product = builder.fmul(spread, value, flags=ONCE)
            builder.store(builder.fadd(builder.load(total), product, flags=ONCE), total)

    rest = builder.urem(builder.sub(stop, start), INT(N_WAYS))
    middle = builder.sub(stop, rest)
    for first, last, n_ways in ((start, middle, N_WAYS), (middle, stop, 1)):
        with cgutils.for_range_slice(builder, first, last, INT(n_ways), INT) as (p, _):
            for way in range(n_ways):
                add(builder.add(p, INT(way)), sums[way])
    for v, target in enumerate(vectors_at(out)):
        ways = [builder.load(totals[v]) for totals in sums]
        while len(ways) > 1:
            ways = [builder.fadd(*ways[k : k + 2]) for k in range(0, len(ways), 2)]
        builder.store(ways[0], target, align=align)
    return context.get_dummy_value()
