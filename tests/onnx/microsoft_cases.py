"""Nodes of onnxruntime's own domain with inputs, and what they give by plain formulas in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper

rng = np.random.default_rng(92)
Arrays = list[Any]


@dataclass(frozen=True)
class Case:
    """A node.

    Attributes:
        op: its operator.
        inputs: arrays; None for one that is left out.
        outputs: how many are asked for.
        formula: makes them, in float64 where that says more.
        attributes: of the node.
        without: outputs before the last one that are not asked for.
    """

    op: str
    inputs: Arrays
    outputs: int
    formula: Callable[..., Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    without: tuple[int, ...] = ()

    def model(self) -> Any:
        names = ["" if one is None else f"x{place}" for place, one in enumerate(self.inputs)]
        outputs = ["" if place in self.without else f"y{place}" for place in range(self.outputs)]
        domain = "" if self.op == "SimplifiedLayerNormalization" else "com.microsoft"
        node = helper.make_node(self.op, names, outputs, domain=domain, **self.attributes)
        ports = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
            for name, one in zip(names, self.inputs, strict=True)
            if one is not None
        ]
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name]
        for one in made:
            one.ClearField("type")
        graph = helper.make_graph([node], "case", ports, made)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def feed(self) -> dict[str, Any]:
        return {f"x{place}": one for place, one in enumerate(self.inputs) if one is not None}

    def wanted(self) -> Arrays:
        made = self.formula(*self.inputs, **self.attributes)
        every = list(made) if isinstance(made, tuple) else [made]
        return [one for place, one in enumerate(every) if place < self.outputs and place not in self.without]


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape).astype("f4")


def gelu(x: Any, bias: Any = 0) -> Any:
    x = (x + bias).astype("f8")
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def fast_gelu(x: Any, bias: Any = 0) -> Any:
    x = (x + bias).astype("f8")
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * gamma + (
        0 if beta is None else beta
    )


def rms_norm(x: Any, gamma: Any, epsilon: float) -> Any:
    return x / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + epsilon) * gamma


def skip_layer(x: Any, skip: Any, gamma: Any, beta: Any, bias: Any = 0, *, epsilon: float) -> Any:
    total = x + skip + bias
    mean, spread = total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + epsilon)
    return layer_norm(total, gamma, beta, epsilon), mean, spread, total


def skip_simplified(x: Any, skip: Any, gamma: Any, bias: Any, *, epsilon: float) -> Any:
    total = x + skip + bias
    return rms_norm(total, gamma, epsilon), None, None, total


def embedded(ids: Any, segments: Any, words: Any, places: Any, parts: Any, gamma: Any, beta: Any, mask: Any, **_: Any):  # type: ignore[no-untyped-def]
    total = words[ids] + places[: ids.shape[1]] + parts[segments]
    return layer_norm(total, gamma, beta, 1e-5), mask.sum(1).astype("i4")


def turn(x: Any, places: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """Turn (batch, heads, rows, d) as complex numbers."""
    half = cos.shape[1]
    part = x[..., : 2 * half].astype("f8")
    pairs = (part[..., 0::2] + 1j * part[..., 1::2]) if interleaved else (part[..., :half] + 1j * part[..., half:])
    made = pairs * (cos[places] + 1j * sin[places])[:, None]
    if interleaved:
        joined = np.stack([made.real, made.imag], -1).reshape(part.shape)
    else:
        joined = np.concatenate([made.real, made.imag], -1)
    return np.concatenate([joined, x[..., 2 * half :]], -1)


def split(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def join(x: Any) -> Any:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def rotary(x: Any, places: Any, cos: Any, sin: Any, *, interleaved: int = 0, num_heads: int = 0) -> Any:
    at = places[0] + np.arange(x.shape[-2])[None] if places.ndim == 1 else places
    if x.ndim == 4:
        return turn(x, at, cos, sin, bool(interleaved))
    heads = num_heads or x.shape[2] // (2 * cos.shape[1])
    return join(turn(split(x, heads), at, cos, sin, bool(interleaved)))


def attend(q: Any, k: Any, v: Any, added: Any, scale: float | None, softcap: float = 0) -> Any:
    scores = q.astype("f8") @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    e = np.exp(scores + added - (scores + added).max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def grouped(
    q: Any, k: Any, v: Any, past_k: Any, past_v: Any, counted: Any, total: Any, cos: Any = None, sin: Any = None,
    *, num_heads: int, kv_num_heads: int, do_rotary: int = 0, rotary_interleaved: int = 0,
    local_window_size: int = -1, softcap: float = 0.0, scale: float = 0.0,
) -> Any:  # fmt: skip
    """One sequence after the other, each with the rows that it has."""
    if k is None:
        width = q.shape[2] // (num_heads + 2 * kv_num_heads)
        q, k, v = np.split(q, [num_heads * width, (num_heads + kv_num_heads) * width], axis=2)
    q, k, v = split(q, num_heads), split(k, kv_num_heads), split(v, kv_num_heads)
    rows, made, keys, values = q.shape[2], [], [], []
    for one in range(len(q)):
        before = max(int(counted[one]) + 1 - rows, 0)
        at = before + np.arange(rows)[None]
        q1, k1 = q[one : one + 1], k[one : one + 1]
        if do_rotary:
            q1, k1 = (turn(x, at, cos, sin, bool(rotary_interleaved)) for x in (q1, k1))
        k1 = np.concatenate([past_k[one : one + 1, :, :before], k1], 2)
        v1 = np.concatenate([past_v[one : one + 1, :, :before], v[one : one + 1]], 2)
        key = np.arange(k1.shape[2])
        seen = key <= at[0][:, None]
        if local_window_size > 0:
            seen &= key > at[0][:, None] - local_window_size
        many = num_heads // kv_num_heads
        added = np.where(seen, 0, -np.inf)
        made.append(attend(q1, k1.repeat(many, 1), v1.repeat(many, 1), added, scale, softcap))
        keys.append(k1)
        values.append(v1)
    if len({one.shape for one in keys}) > 1:
        return join(np.concatenate(made)), None, None
    return join(np.concatenate(made)), np.concatenate(keys), np.concatenate(values)


def multi_head(
    q: Any, k: Any, v: Any, bias: Any = None, mask: Any = None, added: Any = None, past_k: Any = None,
    past_v: Any = None, *, num_heads: int, unidirectional: int = 0, scale: float = 0.0, mask_filter_value: float = -1e4,
) -> Any:  # fmt: skip
    if bias is not None:
        q, k, v = (x + b for x, b in zip((q, k, v), np.split(bias, 3), strict=True))
    q, k, v = (split(one, num_heads) for one in (q, k, v))
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    rows, total = q.shape[2], k.shape[2]
    more: Any = 0 if added is None else added
    if mask is not None:
        there = np.arange(total) < mask[:, None] if mask.ndim == 1 else mask != 0
        more = more + np.where(there, 0, mask_filter_value).reshape(len(q), 1, -1, total)
    if unidirectional:
        more = more + np.where(np.arange(total) <= np.arange(rows)[:, None] + total - rows, 0, -np.inf)
    return join(attend(q, k, v, more, scale)), k, v


def lowest_first(rows: Any, bits: int) -> Any:
    return np.array([[(int(byte) >> at) % 2**bits for byte in row for at in range(0, 8, bits)] for row in rows])


def packed(a: Any, b: Any, scales: Any, zeros: Any = None, order: Any = None, bias: Any = 0, *, K: int, N: int,
           bits: int, block_size: int) -> Any:  # fmt: skip
    """Each byte by itself: the lowest bits first."""
    blocks = scales.size // N
    numbers = lowest_first(b.reshape(N, -1), bits)
    if zeros is None:
        zero = np.full((N, blocks), 2.0 ** (bits - 1))
    elif zeros.dtype == np.uint8:
        zero = lowest_first(zeros.reshape(N, -1), bits)
    else:
        zero = zeros.reshape(N, -1)
    spread = (scales.reshape(N, blocks).repeat(block_size, 1), zero[:, :blocks].repeat(block_size, 1))
    return a.astype("f8") @ ((numbers - spread[1]) * spread[0])[:, :K].T + bias


ANGLES = np.outer(np.arange(16), 10.0 ** -np.arange(0, 4, 0.5)).astype("f4")
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)
HEADS = {"num_heads": 4, "kv_num_heads": 2}
SHARED = {"do_rotary": 1, **HEADS}


def past(*shape: int) -> tuple[Any, Any]:
    return normal(*shape), normal(*shape)


def group(rows: int, before: int, counted: list[int] | None = None) -> Arrays:
    counts = np.array([before + rows - 1] * 2 if counted is None else counted, "i4")
    return [normal(2, rows, 64), normal(2, rows, 32), normal(2, rows, 32), *past(2, 2, before, 16), counts,
            np.array(before + rows, "i4"), COS, SIN]  # fmt: skip


def bits(count: int, depth: int, columns: int, size: int, *, zeros: str = "") -> Case:
    blocks = -(-depth // size)
    arrays = [normal(3, depth), rng.integers(0, 256, (columns, blocks, size * count // 8), np.uint8),
              rng.random(columns * blocks, "f4") / 10]  # fmt: skip
    if zeros == "packed":
        arrays.append(rng.integers(0, 256, columns * -(-blocks * count // 8), np.uint8))
    elif zeros == "float":
        arrays.append(normal(columns, blocks))
    return Case("MatMulNBits", arrays, 1, packed, {"K": depth, "N": columns, "bits": count, "block_size": size})


EPS = {"epsilon": 1e-5}
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4")

CASES = {
    "Gelu": Case("Gelu", [normal(3, 5) * 3], 1, gelu),
    "BiasGelu": Case("BiasGelu", [normal(2, 3, 5), normal(5)], 1, gelu),
    "FastGelu": Case("FastGelu", [normal(2, 3, 5), normal(5)], 1, fast_gelu),
    "FastGelu alone": Case("FastGelu", [normal(2, 3, 5)], 1, fast_gelu),
    "QuickGelu": Case("QuickGelu", [normal(3, 5)], 1, lambda x, alpha: x / (1 + np.exp(-alpha * x)), {"alpha": 1.5}),
    "SkipLayerNormalization": Case(
        "SkipLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)], 4, skip_layer, EPS
    ),
    "SkipSimplifiedLayerNormalization": Case(
        "SkipSimplifiedLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)], 4,
        skip_simplified, EPS, (1, 2),
    ),
    "SimplifiedLayerNormalization": Case(
        "SimplifiedLayerNormalization", [normal(2, 3, 8), normal(8)], 1,
        lambda x, gamma, epsilon, axis: rms_norm(x, gamma, epsilon), {"axis": -1, "epsilon": 1e-3},
    ),
    "EmbedLayerNormalization": Case(
        "EmbedLayerNormalization",
        [rng.integers(0, 9, (2, 5)).astype("i4"), rng.integers(0, 2, (2, 5)).astype("i4"), normal(9, 8), normal(6, 8),
         normal(2, 8), normal(8), normal(8), MASK], 2, embedded, EPS,
    ),
    "rotary of (B, H, S, D)": Case(
        "RotaryEmbedding", [normal(2, 3, 5, 16), rng.integers(0, 16, (2, 5)), COS, SIN], 1, rotary
    ),
    "rotary of (B, S, H D)": Case("RotaryEmbedding", [normal(2, 5, 48), np.array([7]), COS, SIN], 1, rotary),
    "rotary of pairs": Case(
        "RotaryEmbedding", [normal(2, 5, 48), np.array([7]), COS, SIN], 1, rotary, {"interleaved": 1}
    ),
    "grouped, a prompt": Case("GroupQueryAttention", group(5, 0), 3, grouped, SHARED),
    "grouped, a token": Case("GroupQueryAttention", group(1, 6), 3, grouped, SHARED),
    "grouped, some tokens": Case("GroupQueryAttention", group(3, 6), 3, grouped, SHARED),
    "grouped, pairs": Case("GroupQueryAttention", group(1, 6), 3, grouped, {**SHARED, "rotary_interleaved": 1}),
    "grouped, a window": Case("GroupQueryAttention", group(4, 0), 3, grouped, {**SHARED, "local_window_size": 2}),
    "grouped, a cap": Case("GroupQueryAttention", group(1, 6), 3, grouped, {**SHARED, "softcap": 2.0, "scale": 0.7}),
    "grouped, packed": Case(
        "GroupQueryAttention", [normal(2, 3, 128), None, None, *group(3, 0)[3:]], 3, grouped, SHARED
    ),
    "grouped, not turned": Case("GroupQueryAttention", group(1, 6)[:7], 3, grouped, HEADS),
    "heads": Case(
        "MultiHeadAttention", [normal(2, 3, 32), normal(2, 5, 32), normal(2, 5, 32)], 1, multi_head, {"num_heads": 4}
    ),
    "heads with a bias and lengths": Case(
        "MultiHeadAttention", [normal(2, 5, 32), normal(2, 5, 32), normal(2, 5, 32), normal(96), np.array([2, 5], "i4")],
        1, multi_head, {"num_heads": 4, "scale": 0.3},
    ),
    "heads with a mask": Case(
        "MultiHeadAttention", [normal(2, 3, 32), normal(2, 5, 32), normal(2, 5, 32), None, MASK], 1, multi_head,
        {"num_heads": 4},
    ),
    "heads with past keys": Case(
        "MultiHeadAttention",
        [normal(2, 3, 32), normal(2, 3, 32), normal(2, 3, 32), None, None, normal(1, 4, 3, 7), *past(2, 4, 4, 8)], 3,
        multi_head, {"num_heads": 4},
    ),
    "heads that look back": Case(
        "MultiHeadAttention", [normal(2, 5, 32), normal(2, 5, 32), normal(2, 5, 32)], 1, multi_head,
        {"num_heads": 4, "unidirectional": 1},
    ),
    "4 bits": bits(4, 64, 6, 32),
    "4 bits, zero points": bits(4, 96, 6, 32, zeros="packed"),
    "4 bits, floats as zero points": bits(4, 64, 6, 16, zeros="float"),
    "4 bits, a part of a block": bits(4, 40, 6, 16),
    "8 bits": bits(8, 64, 6, 32),
    "2 bits": bits(2, 64, 6, 32, zeros="packed"),
}  # fmt: skip
