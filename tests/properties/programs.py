"""Random programs: elements of the project and, beside each, what an oracle apart from it says of the value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.errors import SpecError
from flowcompute.ir.reduction_order import BLOCK, fold_block
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, SUPPORTED_DTYPES, UINT64, is_float
from tests.properties import bounds
from tests.properties.bounds import Bound
from tests.properties.values import Program, Value, numbers

ROW_STEPS = 2 * (4 + 8 + 4)
"""Roundings between a number of a row and the row's sum: four steps, eight halvings, and blocks in float64."""

LENGTHS = (0, 1, 2, 3, 7, 31, 64, 97, 257, 1023, 1024, 1025, 2053, 4099)
SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33)
MOST_NUMBERS = 40_000

FLOATS = (FLOAT32, FLOAT32, FLOAT64, FLOAT16, BFLOAT16)


@st.composite
def programs(draw: st.DrawFn, steps: int = 5) -> Program:
    """A program of a few sources, residents and operations, with one to three roots."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="data"))
    program = Program()
    item = draw(_item_shapes(), label="item")
    program.length = draw(st.sampled_from([n for n in LENGTHS if n * max(1, math.prod(item)) <= MOST_NUMBERS]))
    builder = Builder(draw, rng, program, item)
    for _ in range(draw(st.integers(1, 2), label="sources")):
        builder.source()
    with np.errstate(all="ignore"):
        for _ in range(draw(st.integers(1, steps), label="steps")):
            builder.step()
    last = len(program.values) - 1
    chosen = draw(st.lists(st.integers(0, last), max_size=2, unique=True), label="roots")
    program.roots = [program.values[i] for i in dict.fromkeys([last, *chosen])]
    return program


@st.composite
def _item_shapes(draw: st.DrawFn) -> tuple[int, ...]:
    form = draw(st.sampled_from(["number", "row", "row", "row", "matrix", "matrix", "box", "deep", "long", "empty"]))
    if form == "long":
        return draw(st.sampled_from([(1024,), (1031,), (2050,), (3, 1100), (5000,)]))
    if form == "empty":
        return draw(st.sampled_from([(0,), (0, 3), (4, 0)]))
    rank = {"number": 0, "row": 1, "matrix": 2, "box": 3, "deep": 4}[form]
    small = SIZES if rank < 3 else SIZES[:5]
    return tuple(draw(st.lists(st.sampled_from(small), min_size=rank, max_size=rank)))


class Builder:
    """Draws one operation after the other; what the project refuses by its rules is left out."""

    def __init__(self, draw: st.DrawFn, rng: np.random.Generator, program: Program, item: tuple[int, ...]) -> None:
        self.draw = draw
        self.rng = rng
        self.program = program
        self.item = item

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    # -- leaves ---------------------------------------------------------------------------------

    def data(self, shape: tuple[int, ...], dtype: np.dtype | None = None) -> np.ndarray:
        kind = self.pick(["small", "spread", "special"])
        wanted = self.pick([*FLOATS, *SUPPORTED_DTYPES]) if dtype is None else dtype
        return numbers(self.rng, wanted, shape, kind)

    def source(self, item: tuple[int, ...] | None = None, dtype: np.dtype | None = None) -> Value:
        if item is None:
            item = tuple(1 if size > 1 and self.pick([False] * 4 + [True]) else size for size in self.item)
        length = self.program.length
        array = self.data((length, *item), dtype)
        if self.pick([False] * 7 + [True]):
            cut = self.draw(st.integers(0, length))
            element: Element = fc.iterate([array[:cut], array[cut:]], shape=item, dtype=array.dtype)
            line = f"fc.iterate(2 batches of {array.dtype.name}{array.shape})"
        else:
            element, line = fc.source(array), f"fc.source({array.dtype.name}{array.shape})"
        self.program.add(line, element, bounds.exactly(array), True)
        return self.program.values[-1]

    def resident(self, beside: Value, dtype: np.dtype | None = None) -> Value:
        """A constant that broadcasts with a value: of lower rank, or cut along the stream."""
        shape = beside.bound.shape
        own = shape[1:] if beside.stream and self.pick([True] * 5 + [False]) else shape
        if len(own) and self.pick([True, False]):
            own = own[self.draw(st.integers(0, len(own))) :]
        own = tuple(
            1 if size > 1 and axis and self.pick([False, False, True]) else size for axis, size in enumerate(own)
        )
        array = self.data(own, dtype if dtype is not None else self.pick([beside.dtype, FLOAT32, INT64]))
        self.program.add(f"fc.constant({array.dtype.name}{own})", fc.constant(array), bounds.exactly(array), True)
        return self.program.values[-1]

    # -- operations -----------------------------------------------------------------------------

    def step(self) -> None:
        value = self.pick(self.program.values[-3:])
        form = self.pick(
            [
                "unary",
                "binary",
                "binary",
                "binary",
                "scalar",
                "where",
                "cast",
                "reduce",
                "reduce",
                "fold",
                "fold",
                "product",
            ]
        )
        getattr(self, f"_{form}")(value)

    def name(self, value: Value) -> str:
        return f"v{next(i for i, own in enumerate(self.program.values) if own is value)}"

    def partner(self, value: Value) -> Value:
        """Something to combine with a value."""
        fitting = [
            other
            for other in self.program.values
            if other.after == value.after
            and (not (other.stream and value.stream) or other.element.ndim == value.element.ndim)
        ]
        fresh = self.pick(["resident", "source", "old", "old"])
        if fresh == "resident" or (value.after and fresh == "source"):
            return self.resident(value)
        if fresh == "source" and value.stream:
            return self.source(value.element.spec.shape)
        return self.pick(fitting)

    def fits(self, *values: Value) -> bool:
        """Whether no resident value is cut along a stream of another length, which is only found out in the run."""
        rank = max((value.element.ndim for value in values if value.stream), default=-1)
        lengths = (
            {value.bound.shape[0] for value in values if value.element.ndim == rank and not value.stream}
            if rank > 0
            else set()
        )
        return lengths <= {1, self.program.length}

    def _unary(self, value: Value) -> None:
        name = self.pick(UNARY)
        function = getattr(fc, name) if name != "sigmoid" else fc.nn.sigmoid
        try:
            element = function(value.element)
        except SpecError:
            return
        inner = value.bound if name == "logical_not" else self._promoted(value.bound, element.inputs[0].dtype)
        if name == "logical_not":
            inner = bounds.cast(value.bound, BOOL)
        bound = bounds.unary(name, NUMPY.get(name, getattr(np, name, None)), inner, element.dtype, element.op.ulp)
        self.program.add(f"fc.{name}({self.name(value)})", element, bound, element.op.ulp == 0, value)

    def _promoted(self, bound: Bound, dtype: np.dtype) -> Bound:
        return bounds.cast(bound, dtype)

    def _binary(self, value: Value) -> None:
        other = self.partner(value)
        pair = (value, other) if self.pick([True, False]) else (other, value)
        self._apply_binary(self.pick(BINARY), pair[0].element, pair[1].element, pair, (pair[0].bound, pair[1].bound))

    def _scalar(self, value: Value) -> None:
        number = self.pick([0, 1, -1, 2, 3, 100, 0.5, 1.0, -2.5, True])
        name = self.pick(BINARY)
        try:
            probe = getattr(fc, name)(value.element, number)
        except SpecError:
            return
        if probe.op.name != name or any(
            len(one.inputs) for one in probe.inputs if one is not value.element and not _is_cast(one)
        ):
            return  # a comparison of int64 with a Python number beyond its range, rewritten
        weak = bounds.exactly(np.asarray(number, probe.inputs[1].dtype))
        self._apply_binary(name, value.element, number, (value,), (value.bound, weak))

    def _apply_binary(
        self, name: str, left: Any, right: Any, values: tuple[Value, ...], operands: tuple[Bound, Bound]
    ) -> None:
        if not self.fits(*values):
            return
        try:
            element = getattr(fc, name)(left, right)
        except SpecError:
            return
        if element.op.name != name:
            # uint64 against signed integers: by value, exactly.
            a, b = (operand.value.astype(object) for operand in operands)
            with np.errstate(all="ignore"):
                result = np.asarray(NUMPY_OBJECT[name](a, b)).astype(bool)
            bound = bounds.certain(result, bounds._unsure(*operands), BOOL)
        else:
            dtype = element.inputs[0].dtype
            a, b = (bounds.cast(operand, dtype) for operand in operands)
            bound = bounds.binary(name, NUMPY.get(name, getattr(np, name, None)), a, b, element.dtype)
        words = [self.name(value) for value in values]
        if len(values) == 1:
            words.append(repr(right))
        self.program.add(f"fc.{name}({', '.join(words)})", element, bound, True, *values)

    def _where(self, value: Value) -> None:
        other = self.partner(value)
        conditions = [v for v in (value, other, *self.program.values) if v.dtype == BOOL and v.after == value.after]
        chosen = self.pick(conditions) if conditions else None
        if chosen is None:
            self._apply_binary("less", value.element, other.element, (value, other), (value.bound, other.bound))
            if self.program.values[-1].dtype != BOOL:
                return
            chosen = self.program.values[-1]
        if not self.fits(chosen, value, other):
            return
        try:
            element = fc.where(chosen.element, value.element, other.element)
        except SpecError:
            return
        pair = [bounds.cast(one.bound, element.dtype) for one in (value, other)]
        line = f"fc.where({self.name(chosen)}, {self.name(value)}, {self.name(other)})"
        self.program.add(line, element, bounds.choose(chosen.bound, *pair), True, chosen, value, other)

    def _cast(self, value: Value) -> None:
        dtype = self.pick(SUPPORTED_DTYPES)
        element = fc.astype(value.element, dtype)
        self.program.add(
            f"fc.astype({self.name(value)}, {dtype.name!r})", element, bounds.cast(value.bound, dtype), True, value
        )

    # -- reductions -----------------------------------------------------------------------------

    def _reduce(self, value: Value) -> None:
        first = 1 if value.stream else 0
        axes = tuple(range(first, value.bound.value.ndim))
        if not axes:
            return
        chosen = tuple(sorted(self.draw(st.sets(st.sampled_from(axes), min_size=1))))
        self._reduction(value, self.pick(REDUCTIONS), chosen)

    def _fold(self, value: Value) -> None:
        rest = range(1, value.bound.value.ndim)
        axes: tuple[int, ...] | None = tuple(sorted({0, *self.draw(st.sets(st.sampled_from(rest)))})) if rest else (0,)
        if not value.stream and not value.bound.value.ndim:
            return
        if self.pick([False] * 4 + [True]):
            axes = None
        self._reduction(value, self.pick(REDUCTIONS), axes)

    def _reduction(self, value: Value, name: str, axes: tuple[int, ...] | None) -> None:
        keepdims = self.pick([False, True])
        if name in ("argmin", "argmax") and axes is not None:
            axes = axes[:1]
        axis: Any = axes[0] if axes is not None and len(axes) == 1 else axes
        whole = axes if axes is not None else tuple(range(value.bound.value.ndim))
        if name in ("min", "max", "argmin", "argmax") and 0 in [value.bound.shape[one] for one in whole]:
            return  # refused, when composed or when run
        element = getattr(fc, name)(value.element, axis, keepdims=keepdims)
        inner = _inner_dtype(name, value.dtype)
        result = element.dtype
        steps = self._roundings(value, whole)
        bound = bounds.reduced(name, bounds.cast(value.bound, inner), whole, keepdims, _wide_result(name, inner), steps)
        line = f"fc.{name}({self.name(value)}, {axis}, keepdims={keepdims})"
        self.program.add(line, element, bounds.cast(bound, result), True, value)

    @staticmethod
    def _roundings(value: Value, axes: tuple[int, ...]) -> float:
        if value.stream and 0 in axes:
            kept = math.prod(size for axis, size in enumerate(value.bound.shape) if axis and axis not in axes)
            return ROW_STEPS + (fold_block(kept) if kept != 1 else ROW_STEPS)
        return ROW_STEPS

    def _product(self, value: Value) -> None:
        if value.bound.value.ndim < 1 or value.dtype == BOOL:
            return
        if self.pick([True, False]) and value.element.ndim >= 2:
            self._matmul(value)
        else:
            self._vecdot(value)

    def _vecdot(self, value: Value) -> None:
        fitting = [
            v
            for v in self.program.values
            if v.bound.shape == value.bound.shape and v.after == value.after and v.stream == value.stream
        ]
        other = self.pick(fitting)
        axis = self.pick([-1, -1, 0])
        if 0 in value.bound.shape[1:]:
            return
        try:
            element = fc.vecdot(value.element, other.element, axis=axis)
        except SpecError:
            return
        inner = _half_in_single(
            np.result_type(value.dtype, other.dtype) if BFLOAT16 not in (value.dtype, other.dtype) else element.dtype
        )
        a, b = (bounds.cast(one.bound, inner) for one in (value, other))
        steps = self._roundings(value, (axis % a.value.ndim,))
        bound = bounds.products(a, b, lambda x, y: np.sum(x * y, axis=axis, dtype=np.result_type(x, y)), inner, steps)
        line = f"fc.vecdot({self.name(value)}, {self.name(other)}, axis={axis})"
        self.program.add(line, element, bounds.cast(bound, element.dtype), not is_float(inner), value, other)

    def _matmul(self, value: Value) -> None:
        inner = value.bound.shape[-1]
        columns = self.pick([1, 2, 5, 16, 19])
        dtype = self.pick([value.dtype, FLOAT32])
        array = self.data((inner, columns), dtype if dtype != BOOL else FLOAT32)
        constant = fc.constant(array)
        try:
            element = fc.matmul(value.element, constant)
        except SpecError:
            return
        wide = _half_in_single(element.dtype)
        a, b = bounds.cast(value.bound, wide), bounds.cast(bounds.exactly(array), wide)
        # Panels of 512 in order, with one rounding for each product.
        bound = bounds.products(a, b, np.matmul, wide, min(inner, 512) + inner // 512 + 2)
        line = f"fc.matmul({self.name(value)}, fc.constant({array.dtype.name}{array.shape}))"
        self.program.add(line, element, bounds.cast(bound, element.dtype), not is_float(wide), value)


def _is_cast(element: Element) -> bool:
    return getattr(element, "op", None) is not None and element.op.name == "astype"


def _half_in_single(dtype: np.dtype) -> np.dtype:
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def _inner_dtype(name: str, dtype: np.dtype) -> np.dtype:
    """The dtype in which a reduction is computed."""
    if name in ("mean", "var"):
        return FLOAT64 if dtype.kind in "biu" else _half_in_single(dtype)
    if name in ("sum", "prod"):
        return INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else _half_in_single(dtype)
    return BOOL if name in ("any", "all") else dtype


def _wide_result(name: str, inner: np.dtype) -> np.dtype:
    return INT64 if name in ("argmin", "argmax") else inner


UNARY = (
    "negative", "abs", "sqrt", "square", "sign", "floor", "ceil", "round", "trunc", "isnan", "isfinite", "signbit",
    "logical_not", "reciprocal", "exp", "tanh", "sin", "log1p", "atan", "sigmoid",
)  # fmt: skip
BINARY = (
    "add", "add", "subtract", "subtract", "multiply", "multiply", "divide", "maximum", "minimum", "floor_divide",
    "remainder", "less", "greater_equal", "equal", "not_equal", "bitwise_and", "bitwise_xor",
)  # fmt: skip
REDUCTIONS = ("sum", "sum", "mean", "var", "min", "max", "argmin", "argmax", "any", "all", "prod")

NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "atan": np.arctan,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "reciprocal": lambda x: np.where(x == 0, 0, 1 // np.where(x == 0, 1, x)) if x.dtype.kind in "iu" and (x >= 0).all()
    else np.where(np.abs(x) == 1, x, 0) if x.dtype.kind in "iu" else 1 / x,
    "round": np.round,
    # No NaN of these programs has a sign: sources hold np.nan, and operations make NaNs without.
    "signbit": lambda x: np.signbit(x) & ~np.isnan(x),
}  # fmt: skip
"""What NumPy calls otherwise, or refuses."""
NUMPY_OBJECT = {
    "less": np.less, "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal,
}  # fmt: skip

assert BLOCK == 1024
