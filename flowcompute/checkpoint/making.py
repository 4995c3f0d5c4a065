"""How an operation is made again from its operands and attributes: by the very function that users call, where one is.

A maker gives the Compute that the function would make now. Whoever asks compares it with what was
kept (operation, operands, attributes, spec), so that what no function makes is refused. Makers
without such a function check what the function would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from flowcompute.checkpoint.fields import MOST, Fields, refuse
from flowcompute.elements.along import CUT, SECTION, WINDOW, concat_streams, cut, flatten, repeat, section, select
from flowcompute.elements.along import window as windows_along
from flowcompute.elements.compute import Compute, Constant, broadcast, common_length, elementwise
from flowcompute.elements.each import each
from flowcompute.elements.generate import Generator, generated_spec
from flowcompute.elements.linalg import MATMUL, matmul, vecdot
from flowcompute.elements.logic import where
from flowcompute.elements.nn.attention import ATTENTION, attention
from flowcompute.elements.nn.windows import slide
from flowcompute.elements.op import Attrs, Op
from flowcompute.elements.pad import pad
from flowcompute.elements.reduce import fold_stream, reduce_items
from flowcompute.elements.shape import broadcast_to, concat, permute_dims, reshape, stack, take
from flowcompute.elements.spool import spool
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, Spec, Stream, is_float


@dataclass(frozen=True)
class Kept:
    """What is known of a Compute that is made again.

    Attributes:
        op: its operation.
        inputs: its operands, made already.
        attrs: its attributes, to be taken one by one.
        spec: what it is said to have. Only what operands and attributes do not say is taken from here.
    """

    op: Op
    inputs: tuple[Any, ...]
    attrs: Fields
    spec: Spec

    def one(self) -> Any:
        """The only operand."""
        return self.operands(1)[0]

    def operands(self, *counts: int) -> tuple[Any, ...]:
        """The operands, as many as one of these counts."""
        if len(self.inputs) not in counts:
            refuse("has another number of operands", expected=" or ".join(map(str, counts)), got=len(self.inputs))
        return self.inputs

    def stream(self) -> Any:
        """The only operand, a stream."""
        return self.streams(1)[0]

    def streams(self, *counts: int) -> tuple[Any, ...]:
        """The operands, all of them streams."""
        if not all(one.spec.is_stream for one in self.operands(*counts)):
            refuse("takes streams", got=", ".join(str(one.spec) for one in self.inputs))
        return self.inputs

    def compute(
        self, dtype: np.dtype, shape: tuple[int, ...], stream: Stream | None = None, attrs: Attrs | None = None
    ) -> Compute:
        """The Compute of this spec and these attributes."""
        return Compute(self.op, self.inputs, Spec(dtype, shape, stream), attrs)


Maker = Callable[[Kept], Any]


def require(sound: bool, what: str) -> None:
    """Raise CheckpointError unless it is so."""
    if not sound:
        refuse(f"{what}: this does not fit its operands")


def _axis(kept: Kept, axis: int | None) -> int:
    """An axis of items as users count it; None is the stream."""
    return 0 if axis is None else axis + kept.inputs[0].spec.is_stream


# -- element by element ------------------------------------------------------------------------------


def made_elementwise(kept: Kept) -> Any:
    """By the table's own rules."""
    return elementwise(kept.op, *kept.operands(kept.op.arity))


def made_where(kept: Kept) -> Any:
    """`fc.where`."""
    return where(*kept.operands(3))


def made_cast(kept: Kept) -> Any:
    """A cast to any dtype, its own included."""
    x, dtype = kept.one(), kept.attrs.take("dtype")
    require(isinstance(dtype, np.dtype), "dtype")
    return kept.compute(dtype, x.spec.shape, x.spec.stream, {"dtype": dtype})


def made_generator(kept: Kept) -> Any:
    """Numbers made of their positions and of constants."""
    assert isinstance(kept.op, Generator)
    for one in kept.operands(kept.op.arity):
        require(isinstance(one, Constant) and one.spec == Spec(UINT64, ()), "a key")
    length = kept.spec.length
    require(length is not None, "its length")
    dtypes = {"range": (INT64,), "integers": (UINT64,)}
    allowed = dtypes.get(kept.op.name, (FLOAT32 if kept.op.bits == 32 else FLOAT64,))
    require(kept.spec.dtype in allowed, "dtype")
    spec = generated_spec(kept.op.name, kept.spec.dtype, kept.spec.shape, length or 0)
    return Compute(kept.op, kept.inputs, spec)


def made_along(kept: Kept) -> Any:
    """A resident value cut along the stream."""
    x = kept.one()
    require(not x.spec.is_stream and x.ndim > 0, "a resident value with rows")
    return kept.compute(x.dtype, x.spec.shape[1:], Stream(x.spec.shape[0]))


# -- reductions --------------------------------------------------------------------------------------


_HALF = (FLOAT16, BFLOAT16)


def made_reduction(kept: Kept) -> Any:
    """The primitive over item axes."""
    op, name = kept.op, kept.op.name
    if name == "vecdot":
        left, right = kept.operands(2)
        (axis,) = kept.attrs.wholes("axes", length=1) or (0,)
        require(not kept.attrs.flag("keepdims"), "keepdims")
        return vecdot(left, right, axis + (left.spec.is_stream or right.spec.is_stream))
    x = kept.one()
    shape = x.spec.shape
    axes, keepdims = kept.attrs.wholes("axes"), kept.attrs.flag("keepdims")
    require(all(a < b for a, b in pairwise(axes)) and all(a < len(shape) for a in axes), "axes")
    require(name in ("sum", "prod", "any", "all") or all(shape[axis] for axis in axes), "axes")
    return reduce_items(op, (x,), shape, axes, _reduced(name, x.dtype), keepdims)


def _reduced(name: str, dtype: np.dtype) -> np.dtype:
    """The dtype of the primitive's result."""
    if name in ("argmin", "argmax"):
        return INT64
    if name in ("any", "all"):
        return BOOL
    if name in ("sum", "prod", "vecdot"):
        require(dtype not in (BOOL, *_HALF), "dtype")
    if name in ("mean", "var"):
        require(dtype in (FLOAT32, FLOAT64), "dtype")
    return dtype


def made_fold(kept: Kept) -> Any:
    """The primitive over the stream axis."""
    name, attrs = kept.op.name, kept.attrs
    keepdims = attrs.flag("keepdims")
    if name == "vecdot":
        inputs = kept.operands(2)
        aligned, shape, stream = broadcast(name, list(inputs))
        require(stream is not None and all(map(_is, aligned, inputs)), "operands")
        require(inputs[0].dtype == inputs[1].dtype and not keepdims, "operands")
        return fold_stream(kept.op, inputs, shape, _reduced(name, inputs[0].dtype), False)
    several = name in ("argmin", "argmax", "var")
    inputs = kept.streams(*((1, 2) if several else (1,)))
    x, shape = inputs[0], inputs[0].spec.shape
    extra: Attrs = {}
    if several:
        extra["inner"] = attrs.whole("inner", least=1 if name != "var" else 0)
        require(len(inputs) == 2 or extra["inner"] == 1, "inner")
        other = INT64 if name != "var" else x.dtype
        require(len(inputs) == 1 or (inputs[1].spec.shape, inputs[1].dtype) == (shape, other), "operands")
        common_length(name, list(inputs))
    if name == "var":
        extra["correction"] = attrs.real("correction")
    return fold_stream(kept.op, inputs, shape, _reduced(name, x.dtype), keepdims, **extra)


def _is(one: object, other: object) -> bool:
    return one is other


_EACH = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "vecdot")


def made_each(kept: Kept) -> Any:
    """A fold begun anew every so many records."""
    fold = kept.attrs.choice("fold", _EACH)
    inputs = kept.streams(2 if fold == "vecdot" else 1)
    every, correction = kept.attrs.whole("every", least=1), kept.attrs.real("correction")
    x = inputs[0]
    require(all(one.dtype == x.dtype and one.spec.shape == x.spec.shape for one in inputs), "operands")
    common_length(fold, list(inputs))
    return each(fold, inputs, every, _reduced(fold, x.dtype), x.spec.shape, correction)


# -- along the stream --------------------------------------------------------------------------------


def made_along_stream(kept: Kept) -> Any:
    """Selections, sections, cuts, windows, repetitions, streams end to end."""
    op, attrs = kept.op, kept.attrs
    if op.name == "select":
        return select(*kept.streams(2))
    if op.name == "concat":
        require(len({one.dtype for one in kept.streams(*range(2, len(kept.inputs) + 1))}) == 1, "operands")
        return concat_streams(kept.inputs)
    x = kept.stream()
    if op is SECTION:
        return section(x, attrs.whole("start"), attrs.maybe("stop", attrs.whole), attrs.whole("step", least=1))
    if op is CUT:
        every, tail = attrs.whole("every", least=1), attrs.choice("tail", ("error", "drop", "pad", "emit"))
        return cut(x, every, tail=tail, fill=attrs.take("fill"))  # type: ignore[arg-type]
    if op is WINDOW:
        return _made_window(kept, x)
    if op.name == "flatten":
        attrs.whole("numbers")
        return flatten(x)
    return repeat(x, attrs.whole("count"))


def _made_window(kept: Kept, x: Any) -> Any:
    attrs = kept.attrs
    size, step = attrs.whole("size", least=1), attrs.whole("step", least=1)
    before, after = attrs.whole("before", most=size - 1), attrs.whole("after", most=size - 1)
    padding = attrs.take("pad")
    own = windows_along(x, size, step, pad=padding)
    made = {"size": size, "step": step, "pad": padding, "before": before, "after": after}
    if repr(own.attrs) == repr(made):
        return own
    # Those of a convolution stand otherwise beyond the ends, or only differ in the 0 that is there.
    require(type(padding) is int and padding == 0 and step == 1, "pad")
    length = x.spec.length
    padded = length + before + after if length else 0
    windows = None if length is None else max(0, padded - size + 1)
    return kept.compute(x.dtype, (size, *x.spec.shape), Stream(windows), made)


def made_spool(kept: Kept) -> Any:
    """`fc.spool`."""
    attrs = kept.attrs
    return spool(kept.one(), folder=attrs.maybe("folder", attrs.text), limit=attrs.maybe("limit", attrs.whole))


# -- items seen in another way -----------------------------------------------------------------------


def made_view(kept: Kept) -> Any:
    """Views that have a function of their own."""
    name, attrs = kept.op.name, kept.attrs
    # Of values that are known users' functions make another one at once, which may be of any size.
    require(not all(isinstance(one, Constant) for one in kept.inputs) or name in ("broadcast_to", "take"), "operands")
    if name in ("stack", "concat"):
        axis = attrs.whole("axis", most=63)
        return (stack if name == "stack" else concat)(kept.inputs, _axis(kept, axis) if kept.inputs else axis)
    if name == "take":
        x, indices = kept.operands(2)
        return take(x, indices, _axis(kept, attrs.whole("axis", most=63)))
    x = kept.one()
    lead = (-1,) if x.spec.is_stream else ()
    if name == "permute_dims":
        axes = tuple(_axis(kept, axis) for axis in attrs.wholes("axes", most=63))
        return permute_dims(x, ((0,) if lead else ()) + axes)
    if name == "reshape":
        return reshape(x, (*lead, *kept.spec.shape))
    if name == "broadcast_to":
        return broadcast_to(x, (*lead, *kept.spec.shape))
    if name == "pad":
        mode = attrs.choice("mode", ("constant", "edge", "reflect", "wrap"))
        require(all(isinstance(pair, tuple) and len(pair) == 2 for pair in attrs.items("widths")), "widths")
        fill: Any = attrs.take("fill")
        return pad(x, attrs.take("widths"), mode, fill)  # type: ignore[arg-type]
    windows, count = attrs.items("windows"), len(x.spec.shape)
    require(all(isinstance(one, tuple) and len(one) == 4 and _sizes(*one, count) for one in windows), "windows")
    require(len({one[0] for one in windows}) == len(windows), "windows")
    return slide(name, x, tuple(windows))


def _sizes(axis: Any, size: Any, step: Any, dilation: Any, axes: int) -> bool:
    numbers = (size, step, dilation)
    return type(axis) is int and 0 <= axis < axes and all(type(one) is int and 0 < one < MOST for one in numbers)


def made_index(kept: Kept) -> Any:
    """Basic indexing of items."""
    x = kept.one()
    index = kept.attrs.items("index", 2 * 64)
    sizes = list(x.spec.shape)
    require(sum(key is not None for key in index) == len(sizes), "index")
    shape = []
    for key in index:
        if key is None:
            shape.append(1)
            continue
        size = sizes.pop(0)
        if isinstance(key, tuple):
            require(_is_range(key, size), "index")
            shape.append(key[1])
        else:
            require(type(key) is int and 0 <= key < size, "index")
    require(len(shape) <= 64, "index")
    return kept.compute(x.dtype, tuple(shape), x.spec.stream, {"index": tuple(index)})


def _is_range(key: tuple[Any, ...], size: int) -> bool:
    """Whether (first, count, step) names places of an axis."""
    if len(key) != 3 or not all(type(one) is int for one in key):
        return False
    first, count, step = key
    if not (-1 <= first <= size and 0 <= count <= size and 0 < abs(step) < MOST):
        return False
    return count == 0 or bool(0 <= first < size and 0 <= first + (count - 1) * step < size)


# -- products ----------------------------------------------------------------------------------------


def made_product(kept: Kept) -> Any:
    """Matrix products, and those whose right factor is windows."""
    left, right = kept.operands(2)
    if "depth" not in kept.attrs:
        made: Any = matmul(left, right)
        return made if made.op is MATMUL else made.inputs[0]  # before it is rounded to a half format
    depth, columns = kept.attrs.whole("depth", least=1, most=63), kept.attrs.whole("columns", least=1, most=63)
    seen, weights = right.spec.shape, left.spec.shape
    own = len(seen) - depth - columns
    require(not left.spec.is_stream and len(weights) > 1 and own >= 0, "operands")
    require(left.dtype == right.dtype and left.dtype not in (BOOL, *_HALF), "dtype")
    require(math.prod(seen[own : own + depth]) == weights[-1], "depth")
    try:
        lead = np.broadcast_shapes(weights[:-2], seen[:own])
    except ValueError:
        lead = ()
        require(False, "operands")
    shape = (*lead, weights[-2], *seen[own + depth :])
    return kept.compute(left.dtype, shape, right.spec.stream, {"depth": depth, "columns": columns})


def made_product_fold(kept: Kept) -> Any:
    """`X.T @ Y` of two streams."""
    streams = kept.streams(1, 2)
    left, right = streams[0], streams[-1]
    require(left.ndim <= 2 >= right.ndim, "operands")
    return matmul(left if left.ndim == 1 else left.T, right)


def made_attention(kept: Kept) -> Any:
    """`fc.nn.attention`, before its result is rounded."""
    q, k, v, *mask = kept.operands(3, 4)
    attrs = kept.attrs
    made: Any = attention(
        q,
        k,
        v,
        causal=attrs.flag("causal"),
        window=attrs.maybe("window", attrs.whole),
        mask=mask[0] if mask else None,
        scale=attrs.real("scale"),
    )
    return made if made.op is ATTENTION else made.inputs[0]


# -- folds on the host, scans ------------------------------------------------------------------------


def made_statistic(kept: Kept) -> Any:
    """Folds of one stream beyond reductions."""
    x, name, attrs, shape = kept.stream(), kept.op.name, kept.attrs, kept.spec.shape
    if name in ("first", "last"):
        require(x.spec.length != 0, "an empty stream")
        return kept.compute(x.dtype, x.spec.shape)
    if name in ("cov", "corrcoef"):
        require(x.ndim <= 2, "operands")
        extra = {"correction": attrs.real("correction")} if name == "cov" else {}
        return kept.compute(FLOAT64, 2 * x.spec.shape, None, extra)
    require(x.ndim == 1, "operands")
    if name == "quantile":
        return _made_quantile(kept, x)
    require(len(shape) == 1 and shape[0] >= 1, "shape")
    if name == "bincount":
        require(x.dtype.kind in "biu", "dtype")
        return kept.compute(INT64, shape)
    require(x.spec.length is None or shape[0] <= x.spec.length, "shape")
    return kept.compute(x.dtype if name == "top_k_values" else INT64, shape)


def _made_quantile(kept: Kept, x: Any) -> Any:
    wanted = kept.attrs.items("q", 1 << 20)
    require(all(type(one) is float and 0 <= one <= 1 for one in wanted), "q")
    require(math.prod(kept.spec.shape) == len(wanted), "q")
    base = FLOAT32 if x.dtype == BFLOAT16 else x.dtype
    floats = [np.result_type(base, other) for other in (FLOAT16, FLOAT32, FLOAT64)]
    require(kept.spec.dtype in (x.dtype if is_float(x.dtype) else FLOAT64, *floats), "dtype")
    return kept.compute(kept.spec.dtype, kept.spec.shape, None, {"q": tuple(wanted)})


def made_histogram(kept: Kept) -> Any:
    """Counts between edges that are known."""
    x, edges = kept.operands(2)
    require(x.spec.is_stream and isinstance(edges, Constant), "operands")
    values = edges.value
    require(values.ndim == 1 and len(values) > 1 and values.dtype.kind in "iuf", "edges")
    require(bool(np.all(values[:-1] <= values[1:])), "edges")
    return kept.compute(INT64, (len(values) - 1,), None, {"equal": kept.attrs.flag("equal")})


def made_segments(kept: Kept) -> Any:
    """Folds by key."""
    values, keys = kept.streams(2)
    name, shape = kept.op.name, kept.spec.shape
    require(keys.dtype.kind in "biu" and keys.spec.shape == (), "keys")
    require(shape[1:] == values.spec.shape and len(shape) == values.ndim and shape[0] >= 1, "shape")
    sums = (INT64, UINT64, FLOAT32, FLOAT64)
    allowed = {"segment_sum": sums, "segment_mean": sums[2:]}.get(name, (values.dtype,))
    require(values.dtype in allowed, "dtype")
    common_length(name, [values, keys])
    return kept.compute(values.dtype, shape)


def made_scan(kept: Kept) -> Any:
    """Scans of the tables."""
    x, name, attrs = kept.one(), kept.op.name, kept.attrs
    axis = attrs.maybe("axis", attrs.whole)
    require(x.spec.is_stream if axis is None else axis < len(x.spec.shape), "axis")
    require(x.dtype not in _HALF and (x.dtype != BOOL or name in ("cumulative_max", "cumulative_min")), "dtype")
    made: Attrs = {"axis": axis}
    if name == "ema":
        alpha = made["alpha"] = attrs.take("alpha")
        require(type(alpha) in (int, float) and 0 < alpha <= 1 and axis is None and is_float(x.dtype), "alpha")
    return kept.compute(x.dtype, x.spec.shape, x.spec.stream, made)
