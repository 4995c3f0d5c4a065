"""Changes of the stream axis: selections, sections, cuts, windows, and streams end to end."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from flowcompute.elements.alignment import common_dtype, common_length
from flowcompute.elements.arguments import array_of, one_of, whole
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.math import vecdot
from flowcompute.elements.op import Attrs, KeptOp, Kind, Op, Rebuild
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BOOL, Spec, Stream, format_shape

Tail = Literal["error", "drop", "pad", "emit"]
_TAILS = ("error", "drop", "pad", "emit")


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _rebuild_select(kept: KeptOp) -> Compute:
    return select(*kept.streams(2))


def _rebuild_section(kept: KeptOp) -> Any:
    attrs = kept.attrs
    stop = attrs.maybe("stop", attrs.whole)
    return section(kept.stream(), attrs.whole("start"), stop, attrs.whole("step", least=1))


def _rebuild_cut(kept: KeptOp) -> Compute:
    tail: Any = kept.attrs.choice("tail", _TAILS)
    return cut(kept.stream(), kept.attrs.whole("every", least=1), tail=tail, fill=kept.attrs.take("fill"))


def _rebuild_flatten(kept: KeptOp) -> Any:
    kept.attrs.whole("numbers")
    return flatten(kept.stream())


def _rebuild_repeat(kept: KeptOp) -> Compute:
    return repeat_records(kept.stream(), kept.attrs.whole("count"))


def _rebuild_concat(kept: KeptOp) -> Any:
    return concat_streams(kept.inputs)


def _rebuild_window(kept: KeptOp) -> Compute:
    x, attrs = kept.stream(), kept.attrs
    size, step = attrs.whole("size", least=1), attrs.whole("step", least=1)
    before, after = attrs.whole("before", most=size - 1), attrs.whole("after", most=size - 1)
    padding = attrs.take("pad")
    own = window(x, size, step, pad=padding)
    if repr((own.attrs["pad"], own.attrs["before"], own.attrs["after"])) == repr((padding, before, after)):
        return own
    # Those of a convolution stand otherwise beyond the ends, or only differ in the 0 that is there.
    kept.require(type(padding) is int and padding == 0 and step == 1, "windows of fc.window or of fc.convolve")
    return window_between(x, size, step, padding, before, after)


def _op(name: str, kind: Kind, rebuild: Rebuild, arity: int = 1) -> Op:
    return Op(name, arity, kind, np.asarray, _kept, arithmetic=False, rebuild=rebuild)


SELECT = _op("select", Kind.SELECT, _rebuild_select, 2)
SECTION = _op("section", Kind.REBATCH, _rebuild_section)
CUT = _op("cut", Kind.REBATCH, _rebuild_cut)
FLATTEN = _op("flatten", Kind.REBATCH, _rebuild_flatten)
REPEAT = _op("repeat", Kind.REBATCH, _rebuild_repeat)
CONCAT_STREAMS = _op("concat", Kind.REBATCH, _rebuild_concat, 2)
WINDOW = _op("window", Kind.WINDOW, _rebuild_window)


def _stream(op: str, x: Operand) -> Any:
    element = as_element(x, op)
    if not element.spec.is_stream:
        raise SpecError(
            "cannot run along the stream of what is none",
            element=op,
            site=user_site(),
            expected="a stream",
            got=str(element.spec),
        )
    return element


def select(x: Operand, mask: Operand) -> Compute:
    """Select the records at which a stream of bools is true; also `x[mask]`. The length is unknown until it has run.

    Args:
        x: a stream.
        mask: a stream of single bools, as long as `x`.

    Raises:
        SpecError: if the mask is no stream of single bools, or as long as another stream than `x`.
    """
    element, chosen = _stream("select", x), _stream("select", mask)
    if chosen.dtype != BOOL or chosen.spec.shape != ():
        raise SpecError(
            "cannot select by this mask",
            element="select",
            site=user_site(),
            expected="bool(?,) stream",
            got=str(chosen.spec),
            hint="reduce the items first: fc.all(mask, axis=1)" if chosen.dtype == BOOL else "compare: x[x > 0]",
        )
    common_length("select", [element, chosen])
    return Compute(SELECT, (element, chosen), Spec(element.dtype, element.spec.shape, Stream(None)))


def section(x: Operand, start: int | None, stop: int | None, step: int | None) -> Compute | Any:
    """Take records `start` to `stop`, each `step`-th, as Python's slices but forwards only; also `x[start:stop:step]`.

    Args:
        x: a stream.
        start, stop: bounds, None for the ends; negative ones count from the end.
        step: from one record to the next, from 1 on; None for 1.

    Raises:
        SpecError: for a step below 1, or negative bounds where the length is unknown.
    """
    element = _stream("section", x)
    length = element.spec.length
    step = 1 if step is None else operator.index(step)
    if step < 1:
        raise SpecError(
            "cannot read a stream backwards or without a step",
            element="section",
            site=user_site(),
            expected="a step of 1 or more",
            got=str(step),
            hint="write it to a file and read that backwards, or flip items: x[:, ::-1]",
        )
    first_bound, last_bound = (None if bound is None else operator.index(bound) for bound in (start, stop))
    if length is None and any(bound is not None and bound < 0 for bound in (first_bound, last_bound)):
        raise SpecError(
            "cannot count from the end of a stream of unknown length",
            element="section",
            site=user_site(),
            expected="bounds of 0 or more",
            got=f"[{'' if start is None else start}:{'' if stop is None else stop}]",
            hint="fc.last(x) is the last record; a file has a length: x >> fc.save(path), then fc.open(path)[-n:]",
        )
    if length is not None:
        first, last, _ = slice(first_bound, last_bound, step).indices(length)
        if (first, step) == (0, 1) and last == length:
            return element
        records = len(range(first, last, step))
        attrs: Attrs = {"start": first, "stop": max(first, last), "step": step}
        return Compute(SECTION, (element,), Spec(element.dtype, element.spec.shape, Stream(records)), attrs)
    first, end = first_bound or 0, last_bound
    if (first, end, step) == (0, None, 1):
        return element
    attrs = {"start": first, "stop": end, "step": step}
    return Compute(SECTION, (element,), Spec(element.dtype, element.spec.shape, Stream(None)), attrs)


@public
def cut(x: Operand, every: int, *, tail: Tail = "error", fill: Any = 0) -> Compute:
    """Cut a stream `(N, *item)` into runs `(N / every, every, *item)`.

    Args:
        x: a stream.
        every: records in a run.
        tail: what becomes of records at the end that make no whole run: "error", "drop", "pad" with `fill`, or "emit" a
            shorter run. Only sum, prod, min, max, any, all and vecdot along the cut axis can take that.
        fill: number to pad with, in the stream's dtype.

    Raises:
        SpecError: if the known length is no multiple of `every` and `tail` is "error".
    """
    element = _stream("cut", x)
    every = whole("cut", "every", every, 1)
    tail = one_of("cut", "tail", tail, _TAILS)
    length = element.spec.length
    if tail == "error" and length is not None and length % every:
        raise SpecError(
            "cannot cut the stream into whole runs",
            element="cut",
            site=user_site(),
            expected=f"a multiple of {every} records",
            got=f"{length}",
            hint='say what to do with the rest: tail="drop", "pad" or "emit"',
        )
    runs = None if length is None else length // every if tail in ("error", "drop") else -(-length // every)
    attrs: Attrs = {"every": every, "tail": tail, "fill": _number("cut", "fill", fill, element.dtype)}
    return Compute(CUT, (element,), Spec(element.dtype, (every, *element.spec.shape), Stream(runs)), attrs)


def _number(op: str, what: str, value: Any, dtype: np.dtype) -> Any:
    """Return a number in a dtype, as plain data."""
    words = f"what {dtype.name} can hold"
    number = array_of(op, what, value, words, dtype, 0)
    if number.ndim == 0:
        return number[()].item()
    raise SpecError(
        f"cannot take {what}=",
        element=op,
        site=user_site(),
        expected=words,
        got=short_repr(value),
    )


@public
def flatten(x: Operand) -> Compute | Any:
    """Flatten a stream of items to a stream of their numbers, `(N, *item)` to `(N * numbers,)`.

    Raises:
        SpecError: if `x` is no stream.
    """
    element = _stream("flatten", x)
    if element.spec.shape == ():
        return element
    numbers, length = element.spec.item_numbers, element.spec.length
    stream = Stream(None if length is None else length * numbers)
    return Compute(FLATTEN, (element,), Spec(element.dtype, (), stream), {"numbers": numbers})


def repeat_records(x: Operand, count: int) -> Compute:
    """Repeat each record of a stream `count` times in a row."""
    element = _stream("repeat", x)
    length = element.spec.length
    stream = Stream(None if length is None else length * count)
    return Compute(REPEAT, (element,), Spec(element.dtype, element.spec.shape, stream), {"count": count})


def concat_streams(streams: Sequence[Operand]) -> Compute | Any:
    """Join streams of equal items one after the other; dtypes promote as NumPy's.

    Args:
        streams: streams whose items have one shape.

    Raises:
        SpecError: if their items differ in shape, or one of them is no stream.
    """
    elements = [_stream("concat", one) for one in streams]
    if not elements:
        raise SpecError("cannot join no streams", element="concat", site=user_site(), expected="at least one stream")
    first = elements[0]
    for other in elements[1:]:
        if other.spec.shape != first.spec.shape:
            raise SpecError(
                "cannot join streams of items of different shape",
                element="concat",
                site=user_site(),
                expected=format_shape(first.spec.shape),
                got=format_shape(other.spec.shape),
            )
    if len(elements) == 1:
        return first
    dtype = common_dtype("concat", elements)
    inputs = tuple(cast(element, dtype) for element in elements)
    lengths = [element.spec.length for element in elements]
    total = None if None in lengths else sum(length for length in lengths if length is not None)
    return Compute(CONCAT_STREAMS, inputs, Spec(inputs[0].dtype, first.spec.shape, Stream(total)))


@public
def window(x: Operand, size: int, step: int = 1, *, pad: Literal["edge", "reflect"] | float | None = None) -> Compute:
    """Return neighbouring records together: record t is records `t * step` to `t * step + size` of `x`.

    Nothing is copied `size` times: kernels read the overlapping records where they lie, so
    `fc.window(x, size=5).mean(axis=1)` is one kernel.

    Args:
        x: a stream `(N, *item)`.
        size: records in a window.
        step: records from one window to the next.
        pad: None gives only whole windows, `N - size + 1` of them at step 1. Else `(size - 1) // 2` records are added
            before the stream and `size // 2` behind it. They are copies of the first and last one ("edge"), mirrored
            ones ("reflect", as `numpy.pad`), or a number.

    Returns:
        A stream `(windows, size, *item)`.

    Raises:
        SpecError: if `x` is no stream, a size or step no count, or `pad` no number of its dtype.
    """
    element = _stream("window", x)
    size, step = whole("window", "size", size, 1), whole("window", "step", step, 1)
    if pad is None:
        return window_between(element, size, step, None, 0, 0)
    padding = (
        pad if isinstance(pad, str) and pad in ("edge", "reflect") else _number("window", "pad", pad, element.dtype)
    )
    return window_between(element, size, step, padding, (size - 1) // 2, size // 2)


def window_between(element: Any, size: int, step: int, pad: Any, before: int, after: int) -> Compute:
    """Return windows of a stream to which `before` and `after` records are added at its ends; `pad` says which."""
    length = element.spec.length
    windows = None
    if length is not None:
        # Nothing is added to a stream without records.
        padded = length + before + after if length else 0
        windows = max(0, (padded - size) // step + 1)
    attrs: Attrs = {"size": size, "step": step, "pad": pad, "before": before, "after": after}
    return Compute(WINDOW, (element,), Spec(element.dtype, (size, *element.spec.shape), Stream(windows)), attrs)


@public
def convolve(x: Operand, taps: Operand, mode: Literal["full", "same", "valid"] = "full") -> Compute | Any:
    """Convolve a stream with a resident vector (an FIR filter), as `numpy.convolve` along the stream.

    Args:
        x: a stream `(N, *item)`; every number of an item is filtered by itself.
        taps: a resident vector, not longer than the stream.
        mode: "full" gives `N + taps - 1` records, "same" N, "valid" `N - taps + 1`.

    Raises:
        SpecError: if `taps` is no resident vector.
    """
    element, filter_ = _stream("convolve", x), as_element(taps, "convolve")
    if filter_.spec.is_stream or filter_.ndim != 1 or filter_.shape[0] == 0:
        raise SpecError(
            "cannot convolve with these taps",
            element="convolve",
            site=user_site(),
            expected="(k,)",
            got=str(filter_.spec),
        )
    mode = one_of("convolve", "mode", mode, ("full", "same", "valid"))
    size = filter_.spec.shape[0]
    before, after = {"full": (size - 1, size - 1), "same": (size // 2, size - 1 - size // 2), "valid": (0, 0)}[mode]
    windows = window_between(element, size, 1, None if mode == "valid" else 0, before, after)
    backwards = Constant(filter_.value[::-1]) if isinstance(filter_, Constant) else filter_[::-1]
    if element.spec.shape == ():
        return vecdot(windows, backwards)
    lined_up = backwards[(slice(None), *[None] * len(element.spec.shape))]
    return Element.apply("sum", windows * lined_up, axis=1)
