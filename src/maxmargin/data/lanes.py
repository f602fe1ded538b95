"""How does one row meet the weights of all classes at once? Side by side, in vectors.

The weights of all classes for one feature are contiguous: a row of W, in blocks of
LANES classes. A verb works on listed blocks only, and keeps what belongs to them
packed, one block after the other. Numba makes vectors of long loops only, and these are
short; so the loops that matter are written for LLVM here.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import DTypeLike

from maxmargin._jit import FAST
from maxmargin.data.row_verbs import RowParts
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

LANES = 8  # classes in a block: a vector of AVX-512, and a line of the cache
MOST = 4  # blocks worked on in one pass over a row: they stay in registers
LINE = 64  # bytes


def lane_zeros(n_rows: int, n_classes: int) -> FloatMatrix:
    """Zeros for `n_classes` numbers a row, padded to whole blocks, in whole lines."""
    width = -(-n_classes // LANES) * LANES
    return aligned_zeros(n_rows * width, np.float64).reshape(n_rows, width)


def aligned_zeros(n: int, dtype: DTypeLike) -> np.ndarray:
    """Numbers that begin with a line of the cache."""
    size = np.dtype(dtype).itemsize
    room = np.zeros(n + LINE // size, dtype=dtype)
    skip = -(room.ctypes.data // size) % (LINE // size)
    return room[skip : skip + n]


def row_times(
    x: tuple[RowParts, int, float],
    W: FloatMatrix,
    offset: FloatVector,
    blocks: IntVector,
    out: FloatVector,
) -> None:
    """out = offset + x W for the classes of some blocks.

    x is (rows, i, bias): the constant feature belongs to the last row of W.
    """
    at = _lanes_of(blocks)
    out[: len(at)] = offset[at] + _plain_row(x, len(W)) @ W[:, at]


def row_add_outer(
    x: tuple[RowParts, int, float],
    W: FloatMatrix,
    blocks: IntVector,
    step: FloatVector,
) -> None:
    """Add the outer product of x and step to some blocks of W."""
    at = _lanes_of(blocks)
    W[:, at] += np.outer(_plain_row(x, len(W)), step[: len(at)])


def _lanes_of(blocks: IntVector) -> IntVector:
    return (LANES * blocks[:, None] + np.arange(LANES)).ravel()


def _plain_row(x: tuple[RowParts, int, float], n_columns: int) -> FloatVector:
    rows, i, bias = x
    row = np.zeros(n_columns)
    row[-1] = bias
    if len(rows) == 1:
        row[: rows[0].shape[1]] = rows[0][i]
        return row
    data, indices, indptr = rows
    span = slice(indptr[i], indptr[i + 1])
    row[indices[span]] += data[span]
    return row


@overload(row_times, jit_options=FAST)
def _compile_times(x: Any, W: Any, offset: Any, blocks: Any, out: Any) -> Any:
    if len(x[0]) == 1:

        def dense(x: Any, W: Any, offset: Any, blocks: Any, out: Any) -> Any:
            rows, i, bias = x
            _dense_times((rows[0][i], bias), W, blocks, offset, out)

        return dense

    def sparse(x: Any, W: Any, offset: Any, blocks: Any, out: Any) -> Any:
        rows, i, bias = x
        data, indices, indptr = rows
        values = data, bias, indices, indptr[i], indptr[i + 1]
        _sparse_times(values, W, blocks, offset, out)

    return sparse


@overload(row_add_outer, jit_options=FAST)
def _compile_outer(x: Any, W: Any, blocks: Any, step: Any) -> Any:
    if len(x[0]) == 1:

        def dense(x: Any, W: Any, blocks: Any, step: Any) -> Any:
            rows, i, bias = x
            _dense_outer((rows[0][i], bias), W, blocks, step)

        return dense

    def sparse(x: Any, W: Any, blocks: Any, step: Any) -> Any:
        rows, i, bias = x
        data, indices, indptr = rows
        values = data, bias, indices, indptr[i], indptr[i + 1]
        _sparse_outer(values, W, blocks, step)

    return sparse


@intrinsic
def _sparse_times(
    context: Any, x: Any, W: Any, blocks: Any, offset: Any, out: Any
) -> Any:
    return types.void(x, W, blocks, offset, out), _emit(_Sparse, _emit_times)


@intrinsic
def _sparse_outer(context: Any, x: Any, W: Any, blocks: Any, step: Any) -> Any:
    return types.void(x, W, blocks, step), _emit(_Sparse, _emit_outer)


@intrinsic
def _dense_times(
    context: Any, x: Any, W: Any, blocks: Any, offset: Any, out: Any
) -> Any:
    return types.void(x, W, blocks, offset, out), _emit(_Dense, _emit_times)


@intrinsic
def _dense_outer(context: Any, x: Any, W: Any, blocks: Any, step: Any) -> Any:
    return types.void(x, W, blocks, step), _emit(_Dense, _emit_outer)


# What the compiler is told.

INT, NUMBER = ir.IntType(64), ir.DoubleType()
VECTOR = ir.VectorType(NUMBER, LANES)
ZEROS = VECTOR([0.0] * LANES)
ONCE = ("contract",)  # a product and a sum are rounded once, as `jit` allows


class _Row:
    """The arguments of a verb: x, W, blocks, then one or two rows of lanes."""

    span: tuple[Any, Any]  # where the values of x begin and end

    def __init__(
        self, context: Any, builder: Any, kinds: Sequence[Any], arguments: Sequence[Any]
    ) -> None:
        def open_array(kind: Any, argument: Any) -> Any:
            return context.make_array(kind)(context, builder, argument)

        arrays = list(map(open_array, kinds[1:], arguments[1:]))
        self.builder = builder
        self.W, self.blocks, *self.lanes = [array.data for array in arrays]
        self.height, self.width = cgutils.unpack_tuple(builder, arrays[0].shape)
        self.n_blocks = cgutils.unpack_tuple(builder, arrays[1].shape)[0]
        values, self.bias, *rest = cgutils.unpack_tuple(builder, arguments[0])
        values = open_array(kinds[0][0], values)
        self.values = values.data
        self.open_rest(
            values, [open_array(kinds[0][2], rest[0]), *rest[1:]] if rest else []
        )

    def open_rest(self, values: Any, rest: Sequence[Any]) -> None:
        """Find the span."""
        raise NotImplementedError

    def column(self, p: Any) -> Any:
        """Which column value p is in."""
        raise NotImplementedError

    def value(self, p: Any) -> Any:
        """Value p, as float64."""
        x = self.builder.load(self.builder.gep(self.values, [p]))
        return x if x.type == NUMBER else self.builder.fpext(x, NUMBER)

    def wide(self, x: Any) -> Any:
        """An index, as int64."""
        return x if x.type == INT else self.builder.zext(x, INT)

    def places(self, first: Any, count: int) -> tuple[list[Any], list[Any]]:
        """Where `count` blocks of the list lie: in a row of W, and packed."""
        packed = [self.builder.add(first, INT(k)) for k in range(count)]
        listed = [
            self.wide(self.builder.load(self.builder.gep(self.blocks, [k])))
            for k in packed
        ]
        return self._lanes(listed), self._lanes(packed)

    def _lanes(self, blocks: list[Any]) -> list[Any]:
        return [self.builder.mul(block, INT(LANES)) for block in blocks]

    def vectors(self, base: Any, places: list[Any]) -> list[Any]:
        """Pointers to vectors at lanes of a row."""
        pointer = VECTOR.as_pointer()
        return [
            self.builder.bitcast(self.builder.gep(base, [place]), pointer)
            for place in places
        ]

    def weights_of(self, column: Any) -> Any:
        """Where the row of W for one column of X begins."""
        return self.builder.gep(self.W, [self.builder.mul(column, self.width)])

    def for_each(self, body: Callable[[Any, Any, int], None], n_ways: int) -> None:
        """Call body(value, column, way) for all values, the constant feature first.

        Values go n_ways by turns, so that sums need not wait for each other.
        """
        builder, (start, stop) = self.builder, self.span
        body(self.bias, builder.sub(self.height, INT(1)), 0)
        rest = builder.urem(builder.sub(stop, start), INT(n_ways))
        middle = builder.sub(stop, rest)
        for first, last, ways in ((start, middle, n_ways), (middle, stop, 1)):
            with cgutils.for_range_slice(builder, first, last, INT(ways), INT) as (
                p,
                _,
            ):
                for way in range(ways):
                    q = builder.add(p, INT(way))
                    body(self.value(q), self.column(q), way)


class _Sparse(_Row):
    def open_rest(self, values: Any, rest: Sequence[Any]) -> None:
        indices, start, stop = rest
        self.indices = indices.data
        self.span = self.wide(start), self.wide(stop)

    def column(self, p: Any) -> Any:
        return self.wide(self.builder.load(self.builder.gep(self.indices, [p])))


class _Dense(_Row):
    def open_rest(self, values: Any, rest: Sequence[Any]) -> None:
        self.span = INT(0), cgutils.unpack_tuple(self.builder, values.shape)[0]

    def column(self, p: Any) -> Any:
        return p  # zeros are not skipped: to find them would cost more


def _emit(kind: type[Any], passes: Callable[[Any, Any, int], None]) -> Any:
    """Code for a list of blocks of any length: MOST a pass, and what is left."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row = kind(context, builder, signature.args, arguments)
        step = INT(MOST)
        with cgutils.for_range_slice(builder, INT(0), row.n_blocks, step, INT) as (
            first,
            _,
        ):
            left = builder.sub(row.n_blocks, first)
            end = builder.append_basic_block("lanes.end")
            switch = builder.switch(left, builder.append_basic_block("lanes.most"))
            for count in range(1, MOST + 1):
                block = switch.default
                if count < MOST:
                    block = builder.append_basic_block(f"lanes.{count}")
                    switch.add_case(INT(count), block)
                builder.position_at_end(block)
                passes(row, first, count)
                builder.branch(end)
            builder.position_at_end(end)
        return context.get_dummy_value()

    return generate


def _emit_times(row: Any, first: Any, count: int) -> None:
    builder, n_ways = row.builder, MOST // count
    listed, packed = row.places(first, count)
    offsets = [_load(builder, p) for p in row.vectors(row.lanes[0], listed)]
    sums = [
        [cgutils.alloca_once(builder, VECTOR) for _ in listed] for _ in range(n_ways)
    ]
    for way, totals in enumerate(sums):
        for offset, total in zip(offsets, totals, strict=True):
            builder.store(ZEROS if way else offset, total)

    def add(x: Any, column: Any, way: int) -> None:
        spread = spread_over(builder, x, VECTOR)
        weights = row.vectors(row.weights_of(column), listed)
        for weight, total in zip(weights, sums[way], strict=True):
            product = builder.fmul(spread, _load(builder, weight), flags=ONCE)
            builder.store(builder.fadd(builder.load(total), product, flags=ONCE), total)

    row.for_each(add, n_ways)
    for target, *totals in zip(row.vectors(row.lanes[1], packed), *sums, strict=True):
        values = [builder.load(total) for total in totals]
        _store(builder, reduce(builder.fadd, values), target)


def _emit_outer(row: Any, first: Any, count: int) -> None:
    builder = row.builder
    listed, packed = row.places(first, count)
    steps = [_load(builder, p) for p in row.vectors(row.lanes[0], packed)]

    def add(x: Any, column: Any, way: int) -> None:
        spread = spread_over(builder, x, VECTOR)
        weights = row.vectors(row.weights_of(column), listed)
        for weight, step in zip(weights, steps, strict=True):
            product = builder.fmul(spread, step, flags=ONCE)
            more = builder.fadd(_load(builder, weight), product, flags=ONCE)
            _store(builder, more, weight)

    row.for_each(add, 1)


def _load(builder: Any, pointer: Any) -> Any:
    return builder.load(pointer, align=8)


def _store(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, pointer, align=8)


def spread_over(builder: Any, x: Any, kind: Any) -> Any:
    """One number in every lane of a vector."""
    nothing = ir.Constant(kind, ir.Undefined)
    vector = builder.insert_element(nothing, x, ir.IntType(32)(0))
    first = ir.VectorType(ir.IntType(32), kind.count)([0] * kind.count)
    return builder.shuffle_vector(vector, nothing, first)
