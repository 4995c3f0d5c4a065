"""Gradients of views of items: each number goes back to where it was read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements import Compute, Constant, cast
from flowcompute.elements.axes import expand_dims, flip, moveaxis, pad, permute_dims, reshape, take
from flowcompute.elements.creation import zeros_like
from flowcompute.elements.math import equal, matmul, sum, where
from flowcompute.elements.search import argsort, scatter_elements, take_along_axis
from flowcompute.elements.streams import sum_rows_by_key
from flowcompute.gradients.cotangents import full, is_number, summed_to, wide
from flowcompute.gradients.rules import Contribution, Equivalent, no_gradient, refusal, rule


def _lead(x: Any) -> tuple[int, ...]:
    return (-1,) if x.spec.is_stream else ()


def _padded(x: Any, widths: list[tuple[int, int]]) -> Any:
    return pad(x, widths) if any(map(any, widths)) else x


def _spread(x: Any, axis: int, step: int) -> Any:
    """Put `step` - 1 zeros between numbers along an item axis."""
    shape = x.spec.shape
    if step == 1 or shape[axis] < 2:
        return x
    lead = x.spec.is_stream
    opened = expand_dims(x, axis + 1 + lead)
    widened = _padded(opened, [(0, step - 1) if i == axis + 1 else (0, 0) for i in range(len(shape) + 1)])
    size = shape[axis] * step
    made = reshape(widened, (*_lead(x), *shape[:axis], size, *shape[axis + 1 :]))
    return made[(*[slice(None)] * (axis + lead), slice(0, size - step + 1))]


@rule("view.index")
def _index(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    cotangent = full(node, g)
    keys = [key for key in node.attrs["index"] if key is not None]
    sizes = [1 if isinstance(key, int) else key[1] for key in keys]
    made = reshape(cotangent, (*_lead(x), *sizes))
    widths = []
    for axis, (key, size) in enumerate(zip(keys, x.spec.shape, strict=True)):
        first, count, step = (key, 1, 1) if isinstance(key, int) else key
        if count and step < 0:
            made = flip(made, axis=axis + x.spec.is_stream)
            first, step = first + (count - 1) * step, -step
        made = _spread(made, axis, step)
        widths.append((first, size - first - (count - 1) * step - 1) if count else (0, size))
    return (_padded(made, widths),)


@rule("view.pad")
def _pad(node: Compute, g: Any) -> tuple[Contribution, ...] | Equivalent:
    (x,) = node.inputs
    widths, mode = node.attrs["widths"], node.attrs["mode"]
    lead = [slice(None)] * x.spec.is_stream
    if mode == "constant":
        keys = (slice(before, before + size) for (before, _), size in zip(widths, x.spec.shape, strict=True))
        return (full(node, g)[(*lead, *keys)],)
    made: Any = x
    for axis, (pair, size) in enumerate(zip(widths, x.spec.shape, strict=True)):
        if any(pair):
            made = take(made, np.pad(np.arange(size), pair, mode=mode), axis=axis + x.spec.is_stream)
    return Equivalent(made)


@rule("view.permute_dims")
def _permute(node: Compute, g: Any) -> tuple[Contribution, ...]:
    lead = int(node.spec.is_stream)
    order = np.argsort(node.attrs["axes"]).tolist()
    return (g if is_number(g) else permute_dims(full(node, g), [*range(lead), *(axis + lead for axis in order)]),)


@rule("view.reshape")
def _reshape(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    return (g if is_number(g) else reshape(full(node, g), (*_lead(x), *x.spec.shape)),)


@rule("view.broadcast_to")
def _broadcast(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (summed_to(node.inputs[0], g, node.spec.shape, node.spec.is_stream, node),)


@rule("view.spool")
def _spool(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (g,)


@rule("view.concat")
def _concat(node: Compute, g: Any) -> tuple[Contribution, ...]:
    if is_number(g):
        return (g,) * len(node.inputs)
    cotangent, axis, at, made = full(node, g), node.attrs["axis"], 0, []
    for one in node.inputs:
        size = one.spec.shape[axis]
        made.append(cotangent[(*[slice(None)] * (axis + node.spec.is_stream), slice(at, at + size))])
        at += size
    return tuple(made)


@rule("view.stack")
def _stack(node: Compute, g: Any) -> tuple[Contribution, ...]:
    if is_number(g):
        return (g,) * len(node.inputs)
    cotangent, before = full(node, g), [slice(None)] * (node.attrs["axis"] + node.spec.is_stream)
    return tuple(cotangent[(*before, place)] for place in range(len(node.inputs)))


@rule("view.windows")
def _windows(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Add windows up where they overlap, one axis after the other; windows side by side are what they were cut from."""
    (x,) = node.inputs
    made, lead, joined = full(node, g), int(node.spec.is_stream), False
    for axis, size, step, dilation in reversed(node.attrs["windows"]):
        whole = x.spec.shape[axis]
        if step == size > 1 and dilation == 1:
            made, joined = _joined(made, axis, whole), True
            continue
        parts: Any = None
        for place in range(size):
            one = _spread(made[..., place], axis, step)
            before = place * dilation
            widths = [(0, 0)] * len(one.spec.shape)
            widths[axis] = (before, whole - before - one.spec.shape[axis])
            one = _padded(one, widths)
            parts = one if parts is None else parts + one
        made = parts
    assert made.ndim == len(x.spec.shape) + lead
    # As a sum of what is spread among zeros, which knows no -0.
    return (made + 0.0 if joined else made,)


def _joined(made: Any, axis: int, whole: int) -> Any:
    """Put windows that lie side by side along an item axis, their numbers last, one after the other."""
    lead = made.spec.is_stream
    shape = made.spec.shape
    made = moveaxis(made, -1, axis + 1 + lead)
    count = shape[axis] * shape[-1]
    made = reshape(made, (*_lead(made), *shape[:axis], count, *shape[axis + 1 : -1]))
    return _padded(made, [(0, whole - count if i == axis else 0) for i in range(len(shape) - 1)])


# -- at indices -------------------------------------------------------------------------------------------------------


def _from_the_front(places: Any, size: int) -> Any:
    """Return places along an axis that are counted from its front; those below 0 are counted from its end."""
    wide = cast(places, np.dtype("int64"))
    return where(wide < 0, wide + size, wide)


@rule("view.take")
def _take(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Multiply by the matrix of who took what: numbers that were taken twice add up."""
    x, where_ = node.inputs
    axis, lead = node.attrs["axis"] + node.spec.is_stream, int(node.spec.is_stream)
    size = x.spec.shape[axis - lead]
    taken = where_.value % size if isinstance(where_, Constant) else _from_the_front(where_, size)
    chosen = cast(equal(expand_dims(taken, 1), np.arange(size)), node.dtype)
    rows = moveaxis(full(node, g), axis, -1)
    flat = reshape(rows, (*_lead(node), math.prod(rows.spec.shape[:-1]), rows.spec.shape[-1]))
    made = reshape(matmul(flat, chosen), (*_lead(node), *rows.spec.shape[:-1], size))
    return moveaxis(made, -1, axis), None


@rule("view.lookup")
def _lookup(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Sum by key: each record's cotangent goes to the rows that it took."""
    table, indices = node.inputs
    axis, rows = node.attrs["axis"], table.spec.shape[node.attrs["axis"]]
    own = len(indices.spec.shape)
    order = [0, *range(axis + 1, axis + own + 1), *range(1, axis + 1), *range(axis + own + 1, node.ndim)]
    cotangent = cast(permute_dims(full(node, g), order), wide(node.dtype))
    summed = sum_rows_by_key(cotangent, indices, rows)
    return moveaxis(summed, 0, axis), None


@rule("view.take_along_axis")
def _take_along(node: Compute, g: Any) -> tuple[Contribution, ...]:
    x, at = node.inputs
    axis, lead = node.attrs["axis"], int(node.spec.is_stream)
    size = x.spec.shape[axis]
    last = -1
    places = moveaxis(at, axis + at.spec.is_stream, last)
    rows = moveaxis(full(node, g), axis + lead, last)
    hits = equal(expand_dims(_from_the_front(places, size), places.ndim), np.arange(size))
    summed = moveaxis(sum(where(hits, expand_dims(rows, rows.ndim), 0.0), axis=-2), last, axis + lead)
    shape = (*node.spec.shape[:axis], size, *node.spec.shape[axis + 1 :])
    return summed_to(x, summed, shape, node.spec.is_stream, summed), None


@rule("view.sort")
def _sort(node: Compute, g: Any) -> Equivalent:
    (x,) = node.inputs
    return Equivalent(take_along_axis(x, argsort(x, -1, descending=node.attrs["descending"]), -1))


@rule("view.scatter")
def _scatter(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Give a number's cotangent to what was put there last, or, where numbers add up, to all of it."""
    x, at, numbers = node.inputs
    reduction, axis = node.attrs["reduction"], node.attrs["axis"] + node.spec.is_stream
    if reduction not in ("set", "add"):
        raise refusal(node, 'reduction="set" or "add"', "fc.segment_max finds extremes by key")
    cotangent = full(node, g)
    shape = np.broadcast_shapes(at.spec.shape, numbers.spec.shape)
    if node.spec.is_stream and not at.spec.is_stream:
        at = expand_dims(at, 0)
    first = (*[slice(None)] * node.spec.is_stream, *(slice(0, size) for size in shape))
    keys = list(first)
    keys[axis] = slice(None)
    seen = take_along_axis(cotangent[tuple(keys)], at, axis)
    if reduction == "set":
        order = np.arange(1, math.prod(shape) + 1).reshape((1,) * (node.ndim - len(shape)) + shape)
        last = scatter_elements(zeros_like(x, np.int64), at, order, axis)
        seen = where(equal(take_along_axis(last[tuple(keys)], at, axis), order), seen, 0.0)
        cotangent = where(equal(last, 0), cotangent, 0.0)
    whole = seen if seen.spec.is_stream or not node.spec.is_stream else full(node, seen)
    return cotangent, None, summed_to(numbers, whole, shape, node.spec.is_stream, whole)


no_gradient("view", "argsort indices searchsorted")
