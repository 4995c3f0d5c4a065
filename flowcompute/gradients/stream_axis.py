"""Gradients of changes of the stream axis."""

from __future__ import annotations

import math
from typing import Any

from flowcompute.elements import Compute
from flowcompute.elements.axes import concat, cut, flatten, reshape, window_between
from flowcompute.elements.creation import full_like, zeros_like
from flowcompute.elements.math import equal, greater_equal, less, logical_and, sum, where
from flowcompute.elements.streams import segment_sum, unshuffle
from flowcompute.gradients.cotangents import beside, full, is_number, positions
from flowcompute.gradients.rules import Contribution, refusal, refused, rule
from flowcompute.spec import BOOL


def _uncut(runs: Any) -> Any:
    """Return the records of a stream of runs."""
    shape = runs.spec.shape[1:]
    numbers = flatten(runs)
    if not shape:
        return numbers
    return reshape(cut(numbers, math.prod(shape)), (-1, *shape))


@rule("along.along")
def _along(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    if is_number(g):
        return (g,)
    return (segment_sum(full(node, g), positions(node), x.spec.shape[0]),)


@rule("rebatch.repeat")
def _repeat(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (sum(cut(full(node, g), node.attrs["count"]), axis=1),)


@rule("rebatch.flatten")
def _flatten(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    if is_number(g):
        return (g,)
    return (reshape(cut(full(node, g), node.attrs["numbers"]), (-1, *x.spec.shape)),)


@rule("rebatch.cut")
def _cut(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    if is_number(g) and node.attrs["tail"] == "error":
        return (g,)
    length, every, tail = x.spec.length, node.attrs["every"], node.attrs["tail"]
    made = _uncut(full(node, g))
    if tail == "error":
        return (made,)
    if length is None or tail == "emit":
        raise refusal(node, 'whole runs: tail="error", or a known length', "fc.cut(x, every=T) of whole runs")
    if tail == "pad":
        return (made[:length],)
    rest = length % every
    return (made if not rest else concat([made, zeros_like(x)[:rest]], axis=0),)


@rule("window.window")
def _window(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Add up windows of windows: record i stands in `size` of them, at another place in each."""
    (x,), attrs = node.inputs, node.attrs
    size, before, after = attrs["size"], attrs["before"], attrs["after"]
    if attrs["step"] != 1 or isinstance(attrs["pad"], str):
        raise refusal(node, "windows at step 1 that repeat no record at the ends", "fc.window(x, size=n)[::step]")
    length = x.spec.length
    if length is not None and length + before + after < size:
        return (zeros_like(x),)
    windows = window_between(full(node, g), size, 1, 0.0, size - 1 - before, size - 1 - after)
    made: Any = None
    for place in range(size):
        one = windows[:, place, size - 1 - place]
        made = one if made is None else made + one
    if length is None and before + after < size - 1:
        # As many records as there are: where they are too few for one window, that is an error when it runs.
        made = where(full_like(x, True, BOOL), made, 0.0)
    return (made,)


@rule("rebatch.shuffle")
def _shuffle(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (unshuffle(g, node) if g.spec.is_stream else g,)


@rule("rebatch.section")
def _section(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    start, stop, step = node.attrs["start"], node.attrs["stop"], node.attrs["step"]
    if g.spec.is_stream:
        raise refusal(node, "records that are folded as they are, as by fc.first", "differentiate each part by itself")
    at = positions(x)
    inside = greater_equal(at, start) if stop is None else logical_and(greater_equal(at, start), less(at, stop))
    if step > 1:
        inside = logical_and(inside, equal((at - start) % step, 0))
    return (where(beside(inside, x), g, 0.0),)


@rule("select.select")
def _select(node: Compute, g: Any) -> tuple[Contribution, ...]:
    x, mask = node.inputs
    if g.spec.is_stream:
        raise refusal(
            node, "a selection that is folded as it is", "fc.where(mask, x, 0) keeps the records that are left out"
        )
    return where(beside(mask, x), g, 0.0), None


refused("rebatch", "concat", "streams that are differentiated each by itself", "add the losses of the parts")
refused("rebatch", "each", 'runs of equal length: tail="error", "drop" or "pad"', 'fc.cut(x, every=T, tail="pad")')
refused("select", "try_host", "a function that drops no records, with a gradient", "fc.host(..., vjp=...) takes it")
refused("host", "host", "a function with a gradient", "give it one: fc.host(..., vjp=...); or use fc.stop_gradient")
refused(
    "host",
    "pack pack_rows cholesky det eigh eigvalsh inv matrix_power matrix_rank pinv qr slogdet solve svd svdvals",
    "operations whose gradient is known",
    "compute it with fc's operations, or put fc.stop_gradient around it",
)
