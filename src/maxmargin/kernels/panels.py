"""How is a Gaussian kernel computed without leaving the registers? Strip by panel.

BLAS writes dot products to memory, and the exponential fetches them from there. For
rows of up to some hundred features that traffic costs more than the arithmetic. Here a
strip of four rows meets a panel of 64: their products are summed in registers, become
kernel values there, and are stored, or added up, at once. Strips and panels hold their
rows side by side, feature by feature. Numba makes no such code of loops, so the inner
one is written for LLVM.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from maxmargin._jit import PLAIN, jit
from maxmargin.data.lanes import aligned_zeros, spread_over
from maxmargin.kernels.single import (
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    ROUND_TO_INT,
    Singles,
)
from maxmargin.typing import FloatMatrix, FloatVector, IntVector

HAS_WIDE_VECTORS = binding.get_host_cpu_features().get("avx512f", False)
LANES, N_VECTORS = (16, 4) if HAS_WIDE_VECTORS else (8, 2)
STRIP, PANEL = (
    4,
    LANES * N_VECTORS,
)  # rows; one register each for STRIP * N_VECTORS sums
SMALLEST = -87.0  # e**x is no smaller than e**-87: 1.6e-38


def room_for(n: int, n_columns: int, width: int) -> Singles:
    """Zeros for n rows in strips or panels of a width, in whole lines of the cache."""
    shape = -(-n // width), n_columns, width
    return aligned_zeros(shape[0] * shape[1] * shape[2], np.float32).reshape(shape)


def exponents_for(values: FloatVector | Singles, width: int) -> Singles:
    """Filled up with zeros to whole strips or panels."""
    out = aligned_zeros(-(-len(values) // width) * width, np.float32)
    out[: len(values)] = values
    return out


@jit
def pack(values: FloatMatrix, middle: FloatVector, panels: Singles) -> None:
    """Rows of a matrix, less their middle, side by side in panels."""
    for i in range(len(values)):
        row, panel, lane = values[i], panels[i // PANEL], i % PANEL
        for c in range(len(row)):
            panel[c, lane] = row[c] - middle[c]


@jit
def repack(panels: Singles, index: IntVector, packed: Singles) -> None:
    """Some rows of all panels, side by side in new strips or panels."""
    n_blocks, n_columns, width = packed.shape
    flat, place = panels.reshape(-1), np.empty(width, dtype=np.intp)
    for b in range(n_blocks):
        n_lanes = min(width, len(index) - b * width)
        for lane in range(n_lanes):
            k = index[b * width + lane]
            place[lane] = k // PANEL * n_columns * PANEL + k % PANEL
        for c in range(n_columns):
            row = packed[b, c]
            for lane in range(n_lanes):
                row[lane] = flat[place[lane] + c * PANEL]


Pair = tuple[int, int]
Side = tuple[Singles, Singles]  # strips or panels, and their part of the exponent


@jit
def store_values(
    strips: Side,
    panels: Side,
    twice: np.float32,
    out: Singles,
    spans: tuple[Pair, Pair],
) -> None:
    """Write the kernel between rows of strips and of panels to their place in `out`.

    The spans are of strips and of panels, those of all of `out`.
    """
    room = np.empty((STRIP, PANEL), dtype=np.float32)
    for p in range(spans[1][0], spans[1][1]):
        left = p * PANEL
        width = min(PANEL, out.shape[1] - left)
        for s in range(spans[0][0], spans[0][1]):
            top = s * STRIP
            height = min(STRIP, out.shape[0] - top)
            if width == PANEL and height == STRIP:
                meet_and_store(strips, panels, (s, p), twice, out, (top, left))
                continue
            meet_and_store(strips, panels, (s, p), twice, room, (0, 0))
            copy_part(room, (height, width), out, (top, left))


@jit
def copy_part(room: Singles, shape: Pair, out: Singles, corner: Pair) -> None:
    """The first rows and columns of a block, to `out` from a corner on."""
    for i in range(shape[0]):
        for j in range(shape[1]):
            out[corner[0] + i, corner[1] + j] = room[i, j]


@jit
def add_values(
    strips: Side,
    panels: Side,
    twice: np.float32,
    weight: FloatVector,
    out: FloatVector,
    spans: tuple[Pair, Pair],
) -> None:
    """out += the weighted sum of rows; weight and out fill strips and panels up."""
    for p in range(spans[1][0], spans[1][1]):
        for s in range(spans[0][0], spans[0][1]):
            meet_and_add(strips, panels, (s, p), twice, weight, out)


def meet_and_store(
    strips: Side,
    panels: Side,
    which: Pair,
    twice: np.float32,
    out: Singles,
    corner: Pair,
) -> None:
    """The kernel of one strip and one panel, written to `out` from a corner on."""
    top, left = corner
    out[top : top + STRIP, left : left + PANEL] = _values(strips, panels, which, twice)


def meet_and_add(
    strips: Side,
    panels: Side,
    which: Pair,
    twice: np.float32,
    weight: FloatVector,
    out: FloatVector,
) -> None:
    """The kernel of one strip and one panel, weighted and added to the panel's sums."""
    s, p = which
    values = _values(strips, panels, which, twice).astype(np.float64)
    out[p * PANEL : (p + 1) * PANEL] += weight[s * STRIP : (s + 1) * STRIP] @ values


def _values(strips: Side, panels: Side, which: Pair, twice: np.float32) -> Singles:
    s, p = which
    own = strips[1][s * STRIP : (s + 1) * STRIP]
    others = panels[1][p * PANEL : (p + 1) * PANEL]
    dots = strips[0][s].T @ panels[0][p]
    values: Singles = np.exp(
        np.clip((own[:, None] + others) + twice * dots, np.float32(SMALLEST), 0.0)
    )
    return values


@overload(meet_and_store, jit_options=PLAIN)
def _compile_store(
    strips: Any, panels: Any, which: Any, twice: Any, out: Any, corner: Any
) -> Any:
    def store(
        strips: Any, panels: Any, which: Any, twice: Any, out: Any, corner: Any
    ) -> Any:
        place = corner[0] * out.shape[1] + corner[1]
        ends = which[0], which[1], strips[0].shape[1]
        _store(strips, panels, ends, twice, (out, place, out.shape[1]))

    return store


@overload(meet_and_add, jit_options=PLAIN)
def _compile_add(
    strips: Any, panels: Any, which: Any, twice: Any, weight: Any, out: Any
) -> Any:
    def add(
        strips: Any, panels: Any, which: Any, twice: Any, weight: Any, out: Any
    ) -> Any:
        ends = which[0], which[1], strips[0].shape[1]
        _add(strips, panels, ends, twice, (weight, out))

    return add


@intrinsic
def _store(
    context: Any, strips: Any, panels: Any, ends: Any, twice: Any, target: Any
) -> Any:
    return types.void(strips, panels, ends, twice, target), _emit(_store_block)


@intrinsic
def _add(
    context: Any, strips: Any, panels: Any, ends: Any, twice: Any, target: Any
) -> Any:
    return types.void(strips, panels, ends, twice, target), _emit(_add_block)


# What the compiler is told.

INT, SINGLE, DOUBLE = ir.IntType(64), ir.FloatType(), ir.DoubleType()
VECTOR = ir.VectorType(SINGLE, LANES)
BITS = ir.VectorType(ir.IntType(32), LANES)
WIDE = ir.VectorType(DOUBLE, LANES)
ONCE = ("contract",)  # a product and a sum are rounded once, as `jit` allows
FACTORIALS = 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0


def _emit(finish: Callable[..., None]) -> Any:
    """Code for one strip and one panel; `finish` says what becomes of the values."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(kind: Any, argument: Any) -> Any:
            return context.make_array(kind)(context, builder, argument).data

        strip_kinds, panel_kinds = signature.args[0], signature.args[1]
        strips = cgutils.unpack_tuple(builder, arguments[0])
        panels = cgutils.unpack_tuple(builder, arguments[1])
        s, p, n_columns = cgutils.unpack_tuple(builder, arguments[2])
        first_row, first_column = (
            builder.mul(s, INT(STRIP)),
            builder.mul(p, INT(PANEL)),
        )
        own = builder.gep(data(strip_kinds[1], strips[1]), [first_row])
        others = builder.gep(data(panel_kinds[1], panels[1]), [first_column])
        rows = builder.gep(
            data(strip_kinds[0], strips[0]), [builder.mul(first_row, n_columns)]
        )
        columns = builder.gep(
            data(panel_kinds[0], panels[0]), [builder.mul(first_column, n_columns)]
        )
        dots = _emit_dots(builder, rows, columns, n_columns)
        twice = spread_over(builder, arguments[3], VECTOR)
        values = [
            [
                _emit_value(builder, dots[i][v], twice, (own, i), (others, v))
                for v in range(N_VECTORS)
            ]
            for i in range(STRIP)
        ]
        target = cgutils.unpack_tuple(builder, arguments[4])
        rest = [
            data(kind, argument) if isinstance(kind, types.Array) else argument
            for kind, argument in zip(signature.args[4], target, strict=True)
        ]
        finish(builder, values, rest, (first_row, first_column))
        return context.get_dummy_value()

    return generate


def _emit_dots(builder: Any, rows: Any, columns: Any, n_columns: Any) -> Any:
    """<x, z> for a strip and a panel, all sums in registers."""
    zero = VECTOR([0.0] * LANES)
    sums = [
        [cgutils.alloca_once_value(builder, zero) for _ in range(N_VECTORS)]
        for _ in range(STRIP)
    ]
    with cgutils.for_range(builder, n_columns, intp=INT) as loop:
        here = builder.gep(columns, [builder.mul(loop.index, INT(PANEL))])
        there = builder.gep(rows, [builder.mul(loop.index, INT(STRIP))])
        near = [_load(builder, here, v) for v in range(N_VECTORS)]
        for i in range(STRIP):
            x = builder.load(builder.gep(there, [INT(i)]))
            spread = spread_over(builder, x, VECTOR)
            for v in range(N_VECTORS):
                product = builder.fmul(spread, near[v], flags=ONCE)
                total = builder.fadd(builder.load(sums[i][v]), product, flags=ONCE)
                builder.store(total, sums[i][v])
    return [[builder.load(total) for total in totals] for totals in sums]


def _emit_value(
    builder: Any, dots: Any, twice: Any, own: tuple[Any, int], others: tuple[Any, int]
) -> Any:
    """e ** min(own + others + twice dots, 0)."""
    x = builder.load(builder.gep(own[0], [INT(own[1])]))
    terms = builder.fadd(spread_over(builder, x, VECTOR), _load(builder, *others))
    product = builder.fmul(twice, dots, flags=ONCE)
    exponent = builder.fadd(terms, product, flags=ONCE)
    return _emit_exp(builder, _clip(builder, exponent))


def _emit_exp(builder: Any, x: Any) -> Any:
    """e**x for x <= 0: 2**n times a polynomial on |r| <= ln(2)/2 (Cody & Waite)."""

    def multiply_add(a: Any, b: Any, c: Any) -> Any:
        return builder.fadd(builder.fmul(a, b, flags=ONCE), c, flags=ONCE)

    shifted = multiply_add(x, _all(LOG2_E), _all(ROUND_TO_INT))
    n = builder.fsub(shifted, _all(ROUND_TO_INT))
    r = multiply_add(n, _all(-LN2_HIGH), x)
    r = multiply_add(n, _all(-LN2_LOW), r)
    value = _all(1.0 / FACTORIALS[0])
    for factorial in FACTORIALS[1:]:
        value = multiply_add(value, r, _all(1.0 / factorial))
    bits = builder.add(builder.bitcast(shifted, BITS), BITS([127] * LANES))
    power = builder.bitcast(builder.shl(bits, BITS([23] * LANES)), VECTOR)
    return builder.fmul(value, power)


def _clip(builder: Any, x: Any) -> Any:
    for limit, order in ((0.0, "<"), (SMALLEST, ">")):
        is_inside = builder.fcmp_ordered(order, x, _all(limit))
        x = builder.select(is_inside, x, _all(limit))
    return x


def _store_block(builder: Any, values: Any, rest: Any, firsts: Any) -> None:
    out, place, stride = rest
    for i, row in enumerate(values):
        start = builder.add(place, builder.mul(INT(i), stride))
        target = builder.gep(out, [start])
        for v, value in enumerate(row):
            builder.store(value, _vector_at(builder, target, v, VECTOR), align=4)


def _add_block(builder: Any, values: Any, rest: Any, firsts: Any) -> None:
    weight, out = rest
    first_row, first_column = firsts
    weights = builder.gep(weight, [first_row])
    target = builder.gep(out, [first_column])
    spread = [
        spread_over(builder, builder.load(builder.gep(weights, [INT(i)])), WIDE)
        for i in range(STRIP)
    ]
    for v in range(N_VECTORS):
        pointer = _vector_at(builder, target, v, WIDE)
        total = builder.load(pointer, align=8)
        for i in range(STRIP):
            value = builder.fpext(values[i][v], WIDE)
            product = builder.fmul(spread[i], value, flags=ONCE)
            total = builder.fadd(total, product, flags=ONCE)
        builder.store(total, pointer, align=8)


def _all(x: float | np.float32) -> Any:
    return VECTOR([float(np.float32(x))] * LANES)


def _vector_at(builder: Any, base: Any, v: int, kind: Any) -> Any:
    place = builder.gep(base, [INT(v * LANES)])
    return builder.bitcast(place, kind.as_pointer())


def _load(builder: Any, base: Any, v: int) -> Any:
    return builder.load(_vector_at(builder, base, v, VECTOR), align=4)
