"""How are the dot products of a strip and a panel made in LLVM? All in registers.

Numba makes no such code of loops. The steps are those of any blocked product: load the
panel's vectors, multiply each by one number of the strip, sum up; then the exponential
of every sum, and whatever becomes of it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from maxmargin._processor import LEVEL, WITH_AVX512
from maxmargin.data.lanes import spread_over
from maxmargin.kernels import elementwise, single

STRIP = 4  # rows
VECTOR_BYTES, N_VECTORS = (
    (64, 4) if LEVEL == WITH_AVX512 else (32, 2)
)  # one register each for STRIP * N_VECTORS sums
INT, DOUBLE = ir.IntType(64), ir.DoubleType()
ONCE = ("contract",)  # a product and a sum are rounded once, as `jit` allows


class Precision(NamedTuple):
    """What the code depends on."""

    element: Any
    bytes: int
    n_terms: int  # of the exponential's polynomial
    log2_e: float
    ln2: tuple[float, float]  # its first bits, and the rest
    round_to_int: float  # adding it leaves a whole number in the lowest bits
    bias: int  # of the exponent of such a number
    fraction: int  # bits after which that exponent stands
    smallest: float  # e**x is no smaller than e to this

    @property
    def lanes(self) -> int:
        return VECTOR_BYTES // self.bytes

    @property
    def panel(self) -> int:
        """Rows of a panel."""
        return self.lanes * N_VECTORS

    @property
    def vector(self) -> Any:
        return ir.VectorType(self.element, self.lanes)


IN_SINGLE = Precision(
    element=ir.FloatType(),
    bytes=4,
    n_terms=8,
    log2_e=float(single.LOG2_E),
    ln2=(float(single.LN2_HIGH), float(single.LN2_LOW)),
    round_to_int=float(single.ROUND_TO_INT),
    bias=127,
    fraction=23,
    smallest=float(single.SMALLEST),
)
IN_DOUBLE = Precision(
    element=DOUBLE,
    bytes=8,
    n_terms=13,
    log2_e=elementwise.LOG2_E,
    ln2=(elementwise.LN2_HIGH, elementwise.LN2_LOW),
    round_to_int=elementwise.ROUND_TO_INT,
    bias=1023,
    fraction=52,
    smallest=elementwise.SMALLEST,
)


@intrinsic
def store_block(
    context: Any, strips: Any, panels: Any, ends: Any, twice: Any, target: Any
) -> Any:
    """Kernel values to `target`: (out, place in it, length of its rows)."""
    return types.void(strips, panels, ends, twice, target), _emit(_store_values)


@intrinsic
def add_block(
    context: Any, strips: Any, panels: Any, ends: Any, twice: Any, target: Any
) -> Any:
    """Kernel values times weights to `target`: (weight, out)."""
    return types.void(strips, panels, ends, twice, target), _emit(_add_values)


def _emit(finish: Callable[..., None]) -> Any:
    """Code for one strip and one panel; `finish` emits what uses the values."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(kind: Any, argument: Any) -> Any:
            return context.make_array(kind)(context, builder, argument).data

        strip_kinds, panel_kinds = signature.args[0], signature.args[1]
        is_single = panel_kinds[0].dtype == types.float32
        precision = IN_SINGLE if is_single else IN_DOUBLE
        strips = cgutils.unpack_tuple(builder, arguments[0])
        panels = cgutils.unpack_tuple(builder, arguments[1])
        s, p, n_columns = cgutils.unpack_tuple(builder, arguments[2])
        first_row = builder.mul(s, INT(STRIP))
        first_column = builder.mul(p, INT(precision.panel))
        own = builder.gep(data(strip_kinds[1], strips[1]), [first_row])
        others = builder.gep(data(panel_kinds[1], panels[1]), [first_column])
        rows = builder.gep(
            data(strip_kinds[0], strips[0]), [builder.mul(first_row, n_columns)]
        )
        columns = builder.gep(
            data(panel_kinds[0], panels[0]), [builder.mul(first_column, n_columns)]
        )
        code = _Code(builder, precision)
        dots = code.dots(rows, columns, n_columns)
        twice = spread_over(builder, arguments[3], precision.vector)
        values = [
            [code.value(dots[i][v], twice, (own, i), (others, v)) for v in ALL_VECTORS]
            for i in range(STRIP)
        ]
        target = cgutils.unpack_tuple(builder, arguments[4])
        rest = [
            data(kind, argument) if isinstance(kind, types.Array) else argument
            for kind, argument in zip(signature.args[4], target, strict=True)
        ]
        finish(code, values, rest, (first_row, first_column))
        return context.get_dummy_value()

    return generate


ALL_VECTORS = range(N_VECTORS)


class _Code:
    """Steps that are written down for a builder, in one precision."""

    def __init__(self, builder: Any, precision: Precision) -> None:
        self.builder, self.precision = builder, precision

    def dots(self, rows: Any, columns: Any, n_columns: Any) -> Any:
        """<x, z> for a strip and a panel, all sums in registers."""
        builder, kind = self.builder, self.precision.vector
        sums = [
            [cgutils.alloca_once_value(builder, self._all(0.0)) for _ in ALL_VECTORS]
            for _ in range(STRIP)
        ]
        with cgutils.for_range(builder, n_columns, intp=INT) as loop:
            place = builder.mul(loop.index, INT(self.precision.panel))
            here = builder.gep(columns, [place])
            there = builder.gep(rows, [builder.mul(loop.index, INT(STRIP))])
            near = [self._load(here, v) for v in ALL_VECTORS]
            for i in range(STRIP):
                x = builder.load(builder.gep(there, [INT(i)]))
                spread = spread_over(builder, x, kind)
                for v in ALL_VECTORS:
                    total = builder.load(sums[i][v])
                    total = self.multiply_add(spread, near[v], total)
                    builder.store(total, sums[i][v])
        return [[builder.load(total) for total in totals] for totals in sums]

    def value(
        self, dots: Any, twice: Any, own: tuple[Any, int], others: tuple[Any, int]
    ) -> Any:
        """e ** min(own + others + twice dots, 0)."""
        builder = self.builder
        x = builder.load(builder.gep(own[0], [INT(own[1])]))
        spread = spread_over(builder, x, self.precision.vector)
        terms = builder.fadd(spread, self._load(*others))
        return self._exp(self._clip(self.multiply_add(twice, dots, terms)))

    def _exp(self, x: Any) -> Any:
        """e**x for x <= 0: 2**n times a polynomial on |r| <= ln(2)/2 (Cody & Waite)."""
        builder, precision = self.builder, self.precision
        whole = self._all(precision.round_to_int)
        shifted = self.multiply_add(x, self._all(precision.log2_e), whole)
        n = builder.fsub(shifted, whole)
        r = self.multiply_add(n, self._all(-precision.ln2[0]), x)
        r = self.multiply_add(n, self._all(-precision.ln2[1]), r)
        value = self._all(1.0 / math.factorial(precision.n_terms - 1))
        for k in range(precision.n_terms - 2, -1, -1):
            value = self.multiply_add(value, r, self._all(1.0 / math.factorial(k)))
        kind = ir.VectorType(ir.IntType(8 * precision.bytes), precision.lanes)
        bits = builder.bitcast(shifted, kind)
        bits = builder.add(bits, kind([precision.bias] * precision.lanes))
        power = builder.shl(bits, kind([precision.fraction] * precision.lanes))
        return builder.fmul(value, builder.bitcast(power, precision.vector))

    def _clip(self, x: Any) -> Any:
        for limit, order in ((0.0, "<"), (self.precision.smallest, ">")):
            is_inside = self.builder.fcmp_ordered(order, x, self._all(limit))
            x = self.builder.select(is_inside, x, self._all(limit))
        return x

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        product = self.builder.fmul(a, b, flags=ONCE)
        return self.builder.fadd(product, c, flags=ONCE)

    def vector_at(self, base: Any, v: int, kind: Any) -> Any:
        place = self.builder.gep(base, [INT(v * self.precision.lanes)])
        return self.builder.bitcast(place, kind.as_pointer())

    def _load(self, base: Any, v: int) -> Any:
        pointer = self.vector_at(base, v, self.precision.vector)
        return self.builder.load(pointer, align=self.precision.bytes)

    def _all(self, x: float) -> Any:
        """The same number in every lane."""
        number = float(np.float32(x)) if self.precision is IN_SINGLE else x
        return self.precision.vector([number] * self.precision.lanes)


def _store_values(code: _Code, values: Any, rest: Any, firsts: Any) -> None:
    builder, precision = code.builder, code.precision
    out, place, stride = rest
    for i, row in enumerate(values):
        start = builder.add(place, builder.mul(INT(i), stride))
        target = builder.gep(out, [start])
        for v, value in enumerate(row):
            pointer = code.vector_at(target, v, precision.vector)
            builder.store(value, pointer, align=precision.bytes)


def _add_values(code: _Code, values: Any, rest: Any, firsts: Any) -> None:
    """Sums are in float64 whatever the values are."""
    builder = code.builder
    wide = ir.VectorType(DOUBLE, code.precision.lanes)
    weight, out = rest
    weights, target = builder.gep(weight, [firsts[0]]), builder.gep(out, [firsts[1]])
    spread = [
        spread_over(builder, builder.load(builder.gep(weights, [INT(i)])), wide)
        for i in range(STRIP)
    ]
    for v in ALL_VECTORS:
        pointer = code.vector_at(target, v, wide)
        total = builder.load(pointer, align=8)
        for i in range(STRIP):
            value = values[i][v]
            if code.precision is IN_SINGLE:
                value = builder.fpext(value, wide)
            total = code.multiply_add(spread[i], value, total)
        builder.store(total, pointer, align=8)
