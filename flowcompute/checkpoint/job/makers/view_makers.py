"""Makers of what sees items or the stream in another way; see `maker.py`."""

from __future__ import annotations

from typing import Any

from flowcompute.checkpoint.job.fields import MOST
from flowcompute.checkpoint.job.makers.maker import Kept, counted_axis, require
from flowcompute.elements import Constant, spool
from flowcompute.elements.axes import (
    CUT,
    SECTION,
    WINDOW,
    broadcast_to,
    concat,
    concat_streams,
    cut,
    flatten,
    pad,
    permute_dims,
    repeat,
    reshape,
    section,
    select,
    stack,
    take,
)
from flowcompute.elements.axes import window as windows_along
from flowcompute.elements.nn import slide
from flowcompute.spec import Stream

# -- along the stream --------------------------------------------------------------------------------


def made_along_stream(kept: Kept) -> Any:
    """Selections, sections, cuts, windows, repetitions, streams end to end."""
    op, attrs = kept.op, kept.attrs
    if op.name == "select":
        return select(*kept.streams(2))
    if op.name == "concat":
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
        return (stack if name == "stack" else concat)(kept.inputs, counted_axis(kept, axis) if kept.inputs else axis)
    if name == "take":
        x, indices = kept.operands(2)
        return take(x, indices, counted_axis(kept, attrs.whole("axis", most=63)))
    x = kept.one()
    lead = (-1,) if x.spec.is_stream else ()
    if name == "permute_dims":
        axes = tuple(counted_axis(kept, axis) for axis in attrs.wholes("axes", most=63))
        return permute_dims(x, ((0,) if lead else ()) + axes)
    if name == "reshape":
        return reshape(x, (*lead, *kept.spec.shape))
    if name == "broadcast_to":
        return broadcast_to(x, (*lead, *kept.spec.shape))
    if name == "pad":
        mode = attrs.choice("mode", ("constant", "edge", "reflect", "wrap"))
        fill: Any = attrs.take("fill")
        return pad(x, attrs.items("widths"), mode, fill)  # type: ignore[arg-type]
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
    return kept.compute(x.dtype, tuple(shape), x.spec.stream, {"index": tuple(index)})


def _is_range(key: tuple[Any, ...], size: int) -> bool:
    """Whether (first, count, step) names places of an axis."""
    if len(key) != 3 or not all(type(one) is int for one in key):
        return False
    first, count, step = key
    if not (-1 <= first <= size and 0 <= count <= size and 0 < abs(step) < MOST):
        return False
    return count == 0 or bool(0 <= first < size and 0 <= first + (count - 1) * step < size)
