"""Random graphs of functions that take kernels of their own: layers of networks, scans, selections, lookups, windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.errors import SpecError

RECORDS, CHANNELS, HEIGHT, WIDTH = 40, 4, 6, 8
ITEM = (CHANNELS, HEIGHT, WIDTH)
BLOCK_BYTES = 34
"""Bytes of a block of 32 numbers of Q8_0."""


def constant(*shape: int | None) -> Element:
    """A constant of a shape, where sizes may be those of a stream of unknown length."""
    return fc.constant(np.full([size or 1 for size in shape], 0.25, np.float32))


def decoded(rows: int | None) -> Element:
    """A constant of 32 columns that is stored in blocks."""
    return fc.dequantize(np.zeros((rows or 1, BLOCK_BYTES), np.uint8), "Q8_0")


@fc.kernel(boundary="edge")
def stencil(u: Any, *, i: Any, j: Any) -> Any:
    return u[i - 1, j] + u[i, j + 1] - 2 * u[i, j]


@fc.kernel
def running(total: Any, x: Any) -> Any:
    return total / 2 + x


Layer = Callable[[Element, Element], Any]
"""Makes a value of two streams of items of any shape; what does not fit their shapes raises a SpecError."""

LAYERS: dict[str, Layer] = {
    "add": lambda x, y: x + y,
    "scale": lambda x, y: x * constant(x.shape[-1]) + 1,
    "relu": lambda x, y: fc.nn.relu(x),
    "silu": lambda x, y: fc.nn.silu(x),
    "choose": lambda x, y: fc.where(x > y, x, y * 2),
    "group norm": lambda x, y: fc.nn.group_norm(x, groups=2),
    "instance norm": lambda x, y: fc.nn.instance_norm(x),
    "layer norm": lambda x, y: fc.nn.layer_norm(x),
    "norm of two axes": lambda x, y: fc.nn.layer_norm(x, axis=(-2, -1)),
    "rms norm": lambda x, y: fc.nn.rms_norm(x, weight=constant(x.shape[-1])),
    "softmax": lambda x, y: fc.nn.softmax(x),
    "softmax of rows": lambda x, y: fc.nn.softmax(x, axis=1),
    "conv1d": lambda x, y: fc.nn.conv1d(x, constant(3, (*x.shape, 1)[1], 3), padding=1),
    "conv2d": lambda x, y: fc.nn.conv2d(x, constant(CHANNELS, (*x.shape, 1)[1], 3, 3), padding=1),
    "max pool": lambda x, y: fc.nn.max_pool2d(x, 2),
    "padded pool": lambda x, y: fc.nn.max_pool2d(x, 3, stride=1, padding=1),
    "mean pool": lambda x, y: fc.nn.avg_pool2d(x, 3, stride=1, padding=1),
    "pool of rows": lambda x, y: fc.nn.max_pool1d(x, 2, stride=1),
    "unfold": lambda x, y: fc.nn.unfold(x, 2, x.ndim - 1),
    "attention": lambda x, y: fc.nn.attention(x, y, x + y),
    "causal attention": lambda x, y: fc.nn.attention(x, x, y, causal=True),
    "selective scan": lambda x, y: fc.nn.selective_scan(x, fc.abs(y), -constant(x.shape[-1], 2), x[..., :2], y[..., :2]),
    "product": lambda x, y: x @ constant(x.shape[-1], WIDTH),
    "product with weights made before": lambda x, y: x @ fc.exp(constant(x.shape[-1], WIDTH)),
    "product of streams": lambda x, y: x @ fc.permute_dims(y, (*range(y.ndim - 2), y.ndim - 1, y.ndim - 2)),
    "decoded weights": lambda x, y: x @ decoded(x.shape[-1])[:, :WIDTH],
    "decoded items": lambda x, y: fc.dequantize(fc.source(np.zeros((RECORDS, HEIGHT, BLOCK_BYTES), np.uint8)), "Q8_0"),
    "decoded what is made": lambda x, y: fc.dequantize(
        fc.source(np.zeros((RECORDS, HEIGHT, BLOCK_BYTES), np.uint8)) ^ np.uint8(1), "Q8_0"
    ),
    "sum": lambda x, y: fc.sum(x, axis=-1),
    "maxima": lambda x, y: fc.max(x, axis=1, keepdims=True),
    "centred columns": lambda x, y: x - fc.mean(x, axis=0),
    "cumulative sum": lambda x, y: fc.cumulative_sum(x, axis=0),
    "cumulative sum of items": lambda x, y: fc.cumulative_sum(x, axis=x.ndim - 1),
    "ema": lambda x, y: fc.ema(x, 0.5),
    "recurrence": lambda x, y: fc.linear_recurrence(x, y, axis=0),
    "stencil": lambda x, y: stencil(x),
    "scan by a kernel": lambda x, y: fc.scan(running, x, init=0.0),
    "scan by a step": lambda x, y: fc.scan(lambda state, one: state + one, x, init=np.zeros(x.shape[1:], np.float32)),
    "selection": lambda x, y: x[fc.any(fc.reshape(x, (-1, int(np.prod(x.shape[1:])))) > 0, axis=1)],
    "window": lambda x, y: fc.window(x, 3).mean(axis=1),
    "padded window": lambda x, y: fc.window(x, 3, pad="edge").max(axis=1),
    "differences": lambda x, y: fc.diff(x, axis=0),
    "every second": lambda x, y: x[::2],
    "lookup": lambda x, y: fc.take(constant(9, WIDTH), fc.astype(fc.clip(fc.sum(x, axis=-1), 0, 8), "int32"), axis=0),
    "lookup of what is made": lambda x, y: fc.take(
        fc.exp(constant(9, WIDTH)), fc.source(np.zeros(RECORDS, np.int32)), axis=0
    ),
    "lookup of blocks": lambda x, y: fc.take(
        decoded(9), fc.source(np.zeros((RECORDS, 3), np.int32)), axis=0
    ),
    "rows taken": lambda x, y: fc.take(x, np.array([0, -1, 0]), axis=1),
    "sorted": lambda x, y: fc.sort(x),
    "order": lambda x, y: fc.argsort(x) + 1,
    "searched": lambda x, y: fc.searchsorted(fc.exp(constant(9)), x),
    "along": lambda x, y: fc.take_along_axis(x, fc.argsort(y, axis=-1), axis=-1),
    "rolled": lambda x, y: fc.roll(x, 1, axis=1),
    "triangle": lambda x, y: fc.tril(x),
    "attention of a text": lambda x, y: fc.nn.self_attention(x, y, x + y, context=RECORDS),
    "padded": lambda x, y: fc.pad(x, 1),
    "joined": lambda x, y: fc.concat([x, y], axis=1),
    "stacked": lambda x, y: fc.stack([x, y], axis=1),
    "token": lambda x, y: fc.concat([constant(1, *x.shape[2:]), x, y], axis=1),
    "token that is made before": lambda x, y: fc.concat([x, fc.exp(constant(1, *x.shape[2:]))], axis=1),
    "stacked with what is resident": lambda x, y: fc.stack([constant(*x.shape[1:]), x], axis=1) * 2,
    "table of places taken": lambda x, y: fc.take(x, np.array([[0, -1], [0, 0]]), axis=1),
    "parts gathered": lambda x, y: fc.gather_nd(x, fc.astype(y[:, :2, :1] > 0, "int32"), 1),
    "scattered": lambda x, y: fc.scatter_elements(x, fc.astype(y > 0, "int64") * 0, y, 1, "add"),
    "transposed convolution": lambda x, y: fc.nn.conv_transpose2d(x, constant(x.shape[1], 2, 3, 2), stride=(2, 1)),
    "resized": lambda x, y: fc.nn.resize(x, scale=1.5, axes=x.ndim - 1),
    "nearest": lambda x, y: fc.nn.resize(x, scale=2, axes=x.ndim - 1, method="nearest"),
    "places of a pool": lambda x, y: fc.nn.max_pool1d(x, 2, stride=1, return_indices=True)[1],
    "sampled": lambda x, y: fc.nn.grid_sample(x, y[:, 0, :, :2]),
    "recurrent": lambda x, y: fc.nn.gru(x, constant(6, x.shape[-1]), constant(6, 2))[0],
    "items turned": lambda x, y: fc.permute_dims(x, (0, *reversed(range(1, x.ndim)))),
    "flipped": lambda x, y: fc.flip(x, x.ndim - 1),
    "cut": lambda x, y: x[:, 1:],
    "flat items": lambda x, y: fc.reshape(x, (-1, int(np.prod(x.shape[1:])))),
    "host": lambda x, y: fc.host(np.square, x),
    "noise": lambda x, y: x + fc.random.normal(RECORDS, shape=x.shape[1:], seed=1),
}  # fmt: skip


@st.composite
def layered(draw: st.DrawFn, steps: int = 6, first: str | None = None) -> list[Element]:
    """One to three roots of a graph of random layers; `first` forces a layer."""
    item = draw(st.sampled_from([ITEM, ITEM, (HEIGHT, WIDTH), (WIDTH,)]), label="item")
    values: list[Element] = [fc.source(np.ones((RECORDS, *item), np.float32)) for _ in range(2)]
    names = [first] if first is not None else []
    names += draw(st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=steps), label="layers")
    for name in names:
        x, y = (draw(st.sampled_from(values[-4:])) for _ in range(2))
        try:
            values.append(LAYERS[name](x, y))
        except SpecError:
            continue  # these shapes do not fit the layer
    last = len(values) - 1
    chosen = draw(st.lists(st.integers(0, last), max_size=2, unique=True), label="roots")
    return [values[i] for i in dict.fromkeys([last, *chosen])]
