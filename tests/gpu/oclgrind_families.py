"""Families of kernels that run under oclgrind: graphs by the numbers that work-groups run along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element


def drawn(*shape: int, dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    """Numbers of about 1, integers up to 9."""
    rng = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def stream(*shape: int, **options: Any) -> Element:
    """A stream of such numbers."""
    return fc.source(drawn(*shape, **options))


def softmax(x: Element) -> Element:
    e = fc.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def half_formats(size: int) -> list[Element]:
    return [stream(size, 7, dtype=dtype) * 1.5 for dtype in ("f2", ml_dtypes.bfloat16)]


def row_values(x: Element) -> Element:
    return (x * fc.exp(fc.sqrt(x.sum(axis=1)))[:, None]).sum(axis=0)


def columns(size: int) -> list[Element]:
    x = stream(9, size)
    return [x.mean(axis=0), x.var(axis=0), x * 3]


def products(size: int, inner: int, width: int, dtype: Any = "f4") -> list[Element]:
    return [stream(size, inner, dtype=dtype) @ fc.constant(drawn(inner, width, dtype=dtype))]


def of_bytes(size: int) -> list[Element]:
    return [fc.matmul(stream(size, 21, dtype="i1"), drawn(21, 9, dtype="u1"), dtype="int32")]


def thin(size: int) -> list[Element]:
    return [stream(3, 1, 9) @ fc.constant(drawn(9, size))]


def depthwise(size: int) -> list[Element]:
    return [fc.nn.conv2d(stream(2, 3, 7, 2 * size + 3), drawn(3, 1, 3, 3), stride=2, groups=3)]


def layer(size: int) -> list[Element]:
    return [fc.maximum(stream(size, 20) * 2, 0) @ fc.constant(drawn(20, 19)) + drawn(19)]


def blocks(size: int) -> list[Element]:
    """Decoded in an element-wise kernel, in a product of thin and of many rows, and along rows."""
    # A block has up to 256 numbers: few records fill large work-groups, and many take the simulator too long.
    few = min(size, 64 + size // 32)
    weights = fc.dequantize(fc.constant(drawn(19, 2 * 18, dtype="u1")), "Q4_0")
    matrices = fc.dequantize(fc.constant(drawn(3, 5, 2 * 18, dtype="u1")), "Q4_0")
    rows = fc.dequantize(stream(few, 144, dtype="u1"), "Q4_K")
    return [
        rows * 2,
        rows.max(axis=1),
        stream(few, 64) @ weights.T,
        fc.nn.experts(stream(9, 64), matrices, stream(9, 4, dtype="i4") % 3) + 1,
        fc.dequantize(stream(3, 50 * few, dtype="u1"), "IQ1_S"),
    ]


def attention(size: int, **options: Any) -> list[Element]:
    return [fc.nn.attention(stream(2, 1, 5, 16), stream(2, 1, size, 16, seed=1), stream(2, 1, size, 4), **options)]


def queries(size: int) -> list[Element]:
    x = stream(1, 1, size, 8)
    return [fc.nn.attention(x, x, x, causal=True)]


def along_the_stream(size: int) -> list[Element]:
    x = stream(size)
    wide = fc.cumulative_sum(stream(size, 3, dtype="i4"), axis=0)
    return [fc.cumulative_sum(x * 2) + 1, fc.cumulative_max(x), wide, fc.cumulative_sum(x, exclusive=True)]


@fc.kernel
def divisor(a: Any, b: Any) -> Any:
    while b != 0:
        a, b = b, a % b
    return a


@fc.kernel
def summed_up(count: Any, total: Any, x: Any) -> Any:
    return count + 1, total + x


def wide_items(size: int) -> list[Element]:
    return [fc.cumulative_sum(stream(size + 60, width), axis=0) for width in (100, 256, 1500)]


def steps(size: int) -> list[Element]:
    x = stream(size, 3, dtype="i4")
    return [
        fc.scan(divisor, x[:, 0], init=0, associative=True),
        fc.scan(divisor, x, init=0),
        *fc.scan(summed_up, x, init=(0, 0.0)),
    ]


def recurrences(size: int) -> list[Element]:
    return [fc.linear_recurrence(stream(size) / 8, stream(size)), fc.ema(stream(size), 0.1)]


def state_space(size: int) -> list[Element]:
    u, b, c = stream(2, 9, size), stream(2, 9, 3), stream(2, 9, 3, seed=1)
    return [fc.nn.selective_scan(u, fc.abs(u) / 8, -fc.abs(fc.constant(drawn(size, 3))), b, c, drawn(size))]


def looking_back(size: int) -> list[Element]:
    size = min(size, 256)  # the most numbers of a head
    q, k, v = stream(18, 6, size), stream(18, 2, size, seed=1), stream(18, 2, 5, seed=2)
    return [
        fc.nn.self_attention(q, k, v) + 1,
        fc.nn.self_attention(q, k, v, text=fc.source(np.arange(18) // 7), window=5),
    ]


def trained(size: int) -> list[Element]:
    """Sums of columns and sums by key that stay on the device, in steps of which the last are recorded."""
    size = min(size, 100)
    letters, bias = (fc.parameter(drawn(*shape), name=name) for name, shape in (("letters", (5, 3)), ("bias", (size,))))
    looked_up = fc.take(letters, fc.source(np.arange(120).reshape(60, 2) % 5), axis=0)
    loss = fc.mean(((stream(60, size) - bias) ** 2).sum(axis=1) / size + (looked_up**2).sum(axis=(1, 2)), axis=0)
    learnt = fc.train.fit(loss, fc.train.sgd(0.01), batch=7)
    return [learnt["letters"], learnt["bias"], fc.exp(-learnt.losses)]


def trained_products(size: int) -> list[Element]:
    """Products of records whose blocks are copied behind each other on the device, with zeros behind the last ones."""
    size = min(size, 40)
    a, c = (fc.parameter(drawn(*shape), name=name) for name, shape in (("a", (size, 9)), ("c", (9, 5))))
    x = stream(60, 4, size)
    loss = fc.mean(((fc.nn.relu(x @ a) @ c) ** 2).sum(axis=(1, 2)), axis=0)
    learnt = fc.train.fit(loss, fc.train.sgd(0.0001), batch=7)
    return [learnt["a"], learnt["c"], learnt.losses * 1]


def put_together(size: int) -> list[Element]:
    x = stream(3, 4, size) * 2
    taken = np.arange(size)[::-2].copy()
    return [fc.pad(x, 1) + 1, fc.concat([x, x[:, :, 1:] + 1], axis=2) * 3, fc.take(x, taken, axis=2) + 1]


def turned(size: int) -> list[Element]:
    x = stream(2, 40, size)
    return [x.mT * 2 + stream(2, size, 40), fc.pad(x.mT, ((1, 2), (0, 0))) + 1]


def looked_up(size: int) -> list[Element]:
    table, indices = fc.constant(drawn(9, size)), stream(2, dtype="i4")
    return [
        fc.take(table * 2, indices, axis=0) + 1,
        fc.take(fc.constant(drawn(3, 9)), stream(size, dtype="i4"), axis=1) + 1,
        fc.take(fc.constant(drawn(size, 9)), indices, axis=1) + 1,
        fc.nn.experts(stream(2, size), fc.constant(drawn(3, 5, size)), stream(2, 4, dtype="i4") % 3) + 1,
    ]


@fc.kernel
def polynomial(x, n):
    total = 0.0
    for i in range(4):
        total = total * x + n if x > 0 else total + i
    return total


@fc.kernel(boundary="edge")
def stencil(u, *, i, j):
    return u[i - 1, j] + u[i + 1, j] + u[i, j - 2] - 3 * u[i, j]


FAMILIES: dict[str, Callable[[int], list[Element]]] = {
    "map": lambda n: [fc.nn.sigmoid(2 * stream(n) + 1) * fc.tanh(stream(n))],
    "map of bytes": lambda n: [fc.where(stream(n, dtype="i1") > 4, stream(n, dtype="u2"), 1)],
    "resident row": lambda n: [stream(5, n) * fc.constant(drawn(n))],
    "numbers": lambda n: [stream(n).sum(), (stream(n) * 2).max(), stream(n).var()],
    "short rows": lambda n: [stream(n, 3) / fc.sqrt((stream(n, 3) ** 2).sum(axis=1, keepdims=True))],
    "rows": lambda n: [softmax(stream(3, n))],
    "long rows": lambda n: [softmax(stream(2, 1024 + n))],
    "middle axis": lambda n: [stream(3, n, 3).sum(axis=1), stream(3, 2, n, 2).mean(axis=(1, 3))],
    "columns": columns,
    "columns beside row values": lambda n: [row_values(stream(n, 19))],
    "columns of many records": lambda n: [stream(n, 3).sum(axis=0)],
    "argmax": lambda n: [stream(5, n).argmax(axis=1), stream(n).argmax()],
    "top-k": lambda n: list(fc.top_k(stream(3, 3 + n), 3, axis=1)),
    "sort": lambda n: [fc.sort(stream(5, n) * 2), fc.argsort(stream(3, 2, n), descending=True)],
    "half formats": half_formats,
    "matmul": lambda n: products(n, 20, 19),
    "matmul, wide": lambda n: products(5, 20, n),
    "matmul, deep": lambda n: products(5, n, 7),
    "matmul of halves": lambda n: products(n, 20, 19, "f2"),
    "matmul of bytes": of_bytes,
    "thin matmul": thin,
    "depthwise convolution": depthwise,
    "layer": layer,
    "blocks": blocks,
    "attention": attention,
    "attention, causal": queries,
    "scan": along_the_stream,
    "wide scans": wide_items,
    "walk": lambda n: [fc.cumulative_sum(stream(n, 5), axis=1), fc.cumulative_max(stream(2, n, 3), axis=1)],
    "recurrence": recurrences,
    "steps of users": steps,
    "recurrence of rows": lambda n: [fc.linear_recurrence(stream(3, n) / 8, 1, axis=1)],
    "selective scan": state_space,
    "attention along the stream": looking_back,
    "trained": trained,
    "trained products": trained_products,
    "put together": put_together,
    "turned": turned,
    "looked up": looked_up,
    "user function": lambda n: [polynomial(stream(n), stream(n, dtype="i4"))],
    "neighbours": lambda n: [stencil(stream(3, 5, n))],
    "random numbers": lambda n: [stream(n) + fc.random.normal(n, seed=1)],
}
