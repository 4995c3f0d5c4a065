"""At least one job for each class of elements and each operation that users can make."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math import product_of_rows
from flowcompute.elements.quantized import BLOCK_FORMATS
from flowcompute.spec import BFLOAT16
from tests.checkpoint.ends import ENDS, twice
from tests.checkpoint.network_elements import NETWORKS
from tests.checkpoint.numeric_elements import NUMERIC
from tests.checkpoint.operands import Build, items, numbers, rows, unknown
from tests.checkpoint.source_elements import SOURCES
from tests.checkpoint.trainings import TRAININGS
from tests.model_files.files import gguf_file, placed_weight, safetensors_file

TEXT = "float f(float a, float b) { return a + 2 * b; }"


def of_weights(blocks: fc.NamedWeights, plain: fc.NamedWeights) -> tuple[Any, ...]:
    numbers = rows("f4", (5, 512)) @ blocks["Q4_0"].T, blocks["f32"] + 1, blocks.raw("i8") + 1, blocks["i8"] + 1
    return (*numbers, plain["f16"] * 2, plain["u8"] + 1, plain.raw("f64") + 1)


@fc.kernel
def divided(a: Any, b: Any) -> Any:
    q = a / b if b != 0 else 0.0
    return q, a - q * b


@fc.kernel
def shifted(a: Any, b: Any, x: Any) -> Any:
    return b, a + x


@fc.kernel
def collatz(n: Any, most: Any) -> Any:
    steps = 0
    seen = [0] * 4
    while n > 1:
        if steps >= most:
            break
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        steps += 1
        seen[steps % 4] = n
    for i in range(3):
        if seen[i] > 100:
            continue
        steps += seen[i]
    low, high = divided(float(steps), 2.0)
    return low + math.exp(high) * 0.0


@fc.kernel
def remainder(a: Any, b: Any) -> Any:
    return (a + b) % 7


@fc.kernel(boundary="edge")
def smoothed(x: Any, *, i: int) -> Any:
    return (x[i - 1] + x[i] + x[i + 1]) / 3 + i * 0.0


def step(carry: np.ndarray, item: np.ndarray) -> np.ndarray:
    return carry * 0.5 + item


FUNCTIONS: dict[str, Build] = {
    "host": lambda folder: (
        fc.host(twice, rows()),
        fc.host(
            lambda a, b: (a[:, :1] + b[:1]).astype("f8"),
            rows(),
            fc.constant(np.ones(6, "f4")),
            shape=(1,),
            dtype="f8",
            name="h",
        ),
        fc.host(twice, numbers(), on_error="skip"),
        fc.host(twice, numbers(), on_error="dead_letter", dead_letter=folder / "bad.jsonl"),
        fc.host(np.sort, fc.constant(np.arange(3.0))),
    ),
    "scan": lambda _: (
        fc.scan(step, rows("f8"), init=np.zeros(6)),
        fc.scan(lambda carry, a, b: carry + a * b, numbers(), numbers(), init=0.0, name="s"),
        fc.scan(remainder, rows("f8"), init=np.arange(6.0)),
        fc.scan(remainder, rows("i8"), init=0, axis=1, associative=True),
        fc.scan(remainder, numbers("f2"), init=0, associative=True, name="r"),
        *fc.scan(shifted, rows("f8"), init=(np.arange(6.0), 0.0), name="d"),
    ),
    "kernel": lambda _: (
        *divided(rows(), 2),
        collatz(numbers("i8"), 40),
        collatz(numbers("u1"), np.int16(9)),
        divided(fc.constant(3.0), rows("f2"))[1],
    ),
    "kernel of neighbours": lambda _: (smoothed(rows("f8")), smoothed(numbers())),
    "blocks": lambda _: (
        *(fc.dequantize(rows("u1", (12, one.block_bytes)), name) for name, one in BLOCK_FORMATS.items()),
        fc.dequantize(rows("u1", (12, 36))[:, 18:], "Q4_0"),
        fc.nn.relu(rows("f4", (5, 32)) @ fc.dequantize(fc.constant(np.ones((3, 34), "u1")), "Q8_0").T),
    ),
    "weights": lambda folder: of_weights(fc.weights(gguf_file(folder)), fc.weights(safetensors_file(folder))),
    "placed weights": lambda folder: (placed_weight(folder) + 1,),
    "opencl": lambda _: fc.opencl(TEXT, rows(), rows() + 1, name="own"),
    "spool": lambda folder: fc.spool(numbers(), folder=folder, limit=1 << 20, name="sp") - fc.spool(numbers()).mean(),
}

REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std")


def _reduced(name: str, x: Any) -> tuple[Any, ...]:
    function = getattr(fc, name)
    return tuple(function(x, axis, keepdims=keep) for axis in (None, 0, 1, (1, 2)) for keep in (False, True))


def _of_runs(name: str) -> Any:
    return getattr(fc, name)(fc.cut(numbers(), 5, tail="emit"), axis=1)


OPERATIONS_BY_NAME: dict[str, Build] = {
    **{name: lambda _, name=name: _reduced(name, items(3, 4)) for name in REDUCTIONS},
    **{f"{name} in halves": lambda _, name=name: getattr(fc, name)(rows("f2"), axis=0) for name in REDUCTIONS},
    **{f"{name} of a resident": lambda _, name=name: getattr(fc, name)(np.ones((2, 3)), 1) for name in REDUCTIONS},
    **{
        f"{name} of runs": lambda _, name=name: _of_runs(name)
        for name in ("sum", "prod", "min", "max", "any", "all", "mean", "var", "argmin")
    },
    **{
        name: lambda _, name=name: tuple(
            getattr(fc, name)(x, axis, keepdims=keep)
            for x, axis in ((rows(), 1), (rows(), 0), (rows(), None), (numbers(), 0))
            for keep in (False, True)
        )
        for name in ("argmin", "argmax")
    },
    "no axes": lambda _: (fc.sum(rows(), ()), fc.max(rows(), ())),
    "sum in a dtype": lambda _: (rows("i1").sum(dtype="i2"), rows("f4").sum(axis=0, dtype="f8")),
    "corrected": lambda _: (rows().var(correction=1), rows().var(axis=0, correction=1.5), rows().std(axis=1)),
    "vecdot": lambda _: (
        fc.vecdot(rows(), rows() + 1),
        fc.vecdot(rows(), np.ones(6, "f4")),
        fc.vecdot(np.ones(6, "f4"), rows()),
        fc.vecdot(numbers(), numbers() + 1),
        fc.vecdot(numbers(), np.ones(12)),
        fc.vecdot(rows(), rows() * 2, axis=0),
        fc.vecdot(np.ones(3), np.ones(3)),
        fc.vecdot(items(3, 4), np.ones(3)[:, None], axis=1),
        fc.vecdot(fc.cut(numbers(), 5, tail="emit"), fc.cut(numbers() + 1, 5, tail="emit")),
    ),
    "matmul": lambda _: (
        rows() @ np.ones((6, 3), "f4"),
        items(3, 4) @ items(4, 2),
        items(3, 4) @ np.ones((4, 2)),
        np.ones((2, 3)) @ items(3, 4),
        np.ones((5, 2, 3)) @ items(3, 4),
        fc.constant(np.ones((2, 3))) @ np.ones((3, 4)),
        rows("f2") @ np.ones((6, 3), "f2"),
        np.ones(3) @ items(3, 4),
    ),
    "products of streams": lambda _: (
        rows().T @ (rows() + 1),
        rows().T @ numbers("f4"),
        numbers("f4") @ rows(),
        np.ones((2, 12), "f4") @ rows(),
        (lambda x: x.T @ x)(rows()),
        product_of_rows(items(3, 4), items(3, 2)),
        (lambda x: product_of_rows(x, x))(items(3, 4)),
        (lambda a: fc.source(a).T @ fc.source(a))(np.ones((6, 4), "f4")),
    ),
    "attention": lambda _: (
        fc.nn.attention(items(4, 3, 8), items(2, 5, 8), items(2, 5, 6)),
        fc.nn.attention(rows("f2", (5, 3, 8)), np.ones((4, 8), "f2"), np.ones((4, 8), "f2"), causal=True, window=2),
        fc.nn.attention(items(3, 8), items(4, 8), items(4, 8), mask=np.eye(3, 4, dtype=bool), scale=2),
        fc.nn.attention(*[fc.constant(np.ones((3, 8)))] * 3),
    ),
    "views": lambda _: (
        items(3, 4)[:, 1:, ::-2],
        items(3, 4)[:, None, 0],
        items(3, 4)[:, -1, [0, 2]],
        items(3, 4)[:, ::-1, 1:1],
        fc.permute_dims(items(3, 4), (0, 2, 1)),
        fc.permute_dims(items(3, 4).sum(axis=0), (1, 0)),
        fc.reshape(items(3, 4), (-1, 12)),
        fc.reshape(items(3, 4).sum(axis=0), (2, 6)),
        fc.broadcast_to(items(1, 4), (-1, 3, 4)),
        fc.broadcast_to(rows().sum(axis=0), (2, 6)),
        fc.take(items(3, 4), [0, -1, 1], axis=1),
        fc.take(rows(), fc.bincount(numbers("u1"), 7) % 6, axis=1),
        fc.take(fc.constant(np.ones((7, 3))), items(2, 4).astype("i4"), axis=0) * 2,
        fc.take(np.arange(9.0), numbers("u1")),
        fc.take(rows().sum(axis=0) * 2, fc.argmax(rows(), axis=1)),
        fc.stack([rows(), rows() + 1], axis=1),
        fc.stack([rows().sum(axis=0), np.ones(6, "f4")]),
        fc.concat([rows(), rows("f4", (12, 2))], axis=1),
        fc.concat([rows().sum(axis=0), np.ones(2, "f4")]),
        fc.concat([np.ones(2, "f4"), rows(), np.ones((12, 1), "f4")], axis=1),
        fc.stack([np.ones(6, "f4"), rows()], axis=2),
        fc.flip(items(3, 4), (1, 2)),
        fc.squeeze(fc.expand_dims(rows(), 1), 1),
        fc.moveaxis(items(3, 4), 2, 1),
    ),
    "sorting": lambda _: (
        fc.sort(items(3, 4), 1),
        fc.argsort(rows(), descending=True),
        fc.sort(rows().sum(axis=0)),
        fc.searchsorted(np.arange(100.0), rows(), side="right"),
        fc.searchsorted(fc.constant(np.arange(100.0)), np.arange(3)),
        fc.take_along_axis(rows(), fc.argsort(rows(), descending=True)),
        fc.take_along_axis(rows(), np.zeros((1, 2), int)),
        fc.take_along_axis(np.ones((1, 6)), fc.argsort(rows())),
        fc.take_along_axis(rows().sum(axis=0), np.array([1, -1])),
    ),
    "pad": lambda _: (
        fc.pad(items(3, 4), 1),
        fc.pad(rows(), ((0, 0), (2, 3)), "reflect"),
        fc.pad(rows(), 2, constant_values=math.nan),
        fc.pad(rows("?"), 2, constant_values=1),
        fc.pad(rows().sum(axis=0), (1, 0), "wrap"),
        fc.pad(rows("u1"), (0, 2), "edge"),
    ),
    "along the stream": lambda _: (
        numbers()[numbers() > 0],
        rows()[np.arange(12) % 2 == 0],
        rows()[2:9:3],
        unknown()[1:5],
        unknown()[1:],
        rows()[-3:],
        rows()[4],
        unknown()[-1],
        unknown()[3],
        fc.cut(numbers(), 4),
        fc.cut(numbers(), 5, tail="pad", fill=math.nan),
        fc.cut(rows("?"), 5, tail="pad", fill=True),
        fc.cut(rows("f2"), 5, tail="pad", fill=-0.0),
        fc.cut(unknown(), 5, tail="drop"),
        fc.flatten(rows()),
        fc.repeat(unknown(), 3, axis=0),
        fc.repeat(rows(), 0, axis=0),
        fc.concat([numbers(), unknown(), numbers("i4")]),
        fc.first(rows()),
        fc.last(unknown()),
        fc.first(unknown()),
    ),
    "windows": lambda _: (
        fc.window(rows(), 3),
        fc.window(numbers(), 4, 2, pad="reflect"),
        fc.window(unknown(), 1, pad="edge"),
        fc.window(numbers(), 5, pad=math.inf),
        fc.window(numbers("i4"), 4, pad=7),
        fc.diff(rows(), 2, axis=0),
        fc.convolve(numbers(), [1.0, 2, 3]),
        fc.convolve(rows("f8"), [1.0, 2, 3, 4], "same"),
        fc.convolve(unknown(), [1.0, 2], "valid"),
        fc.convolve(numbers("i4"), np.array([1, 2, 3], "i4")),
    ),
    "shuffles": lambda _: (
        *fc.shuffle(rows() * 2 + np.ones((12, 6)), numbers("i4"), seed=2**64 - 1, epoch=3, block=2),
        fc.shuffle(fc.cut(rows(), 4)[1:], seed=0, window=2),
        fc.grad((fc.shuffle(x := rows("f8"), seed=1) * np.arange(6.0)).sum(), x),
    ),
    "views of parameters": lambda _: (
        rows() @ (p := fc.parameter(np.arange(12, dtype="f4").reshape(2, 6))).T,
        rows().sum() + fc.reshape(p, (3, 4)),
        rows().sum() + fc.pad(p, 1),
        rows().sum() + fc.concat([p, p], axis=0),
        rows().sum() + fc.stack([p, p], axis=0),
        rows().sum() + fc.flip(p, axis=0),
        rows().sum() + fc.nn.max_pool1d(p[None], 2),
    ),
    "reductions back": lambda _: (
        fc.grad(fc.log(fc.vecdot(s := rows("f8"), s + 1) + fc.exp(s.max(axis=1))).sum(), s),
        fc.grad((fc.sqrt((t := rows() + 5.0).sum(axis=1)) * t.min(axis=1)).sum(), t),
    ),
    "a convolution back": lambda _: fc.grad(
        (fc.nn.conv2d(y := items(2, 4, 5), w := fc.parameter(np.ones((3, 2, 2, 2), "f4"))) ** 2).sum(), [y, w]
    ),
    "cut along": lambda _: (numbers() * np.ones((12,)), rows() + np.ones((12, 6)), rows() + np.ones((1, 6))),
    "scans": lambda _: (
        *(
            getattr(fc, f"cumulative_{name}")(x, axis)
            for name in ("sum", "prod", "max", "min")
            for x, axis in ((rows(), 0), (rows("i2"), 1), (rows("f2"), 0), (rows().sum(axis=0), 0))
        ),
        fc.cumulative_sum(rows("?"), 0, dtype="f4"),
        fc.cumulative_max(rows("?"), 0),
        fc.cumulative_prod(rows(), 1, exclusive=True),
        fc.cumulative_sum(rows(), 0, exclusive=True),
        fc.linear_recurrence(rows(), rows(), 0),
        fc.nn.selective_scan(
            cubes := fc.source(np.ones((12, 4, 3), "f4")), cubes, np.ones((3, 2), "f4"), *[cubes[:, :, :2]] * 2
        ),
        fc.nn.self_attention(cubes, cubes[:, :2], cubes[:, :2], window=3),
        fc.nn.self_attention(cubes.astype("f2"), cubes, cubes, text=numbers("i4"), context=7, scale=0.5),
        fc.nn.self_attention(cubes, cubes, cubes, text=numbers("i4"), context=12, slots=3),
        fc.linear_recurrence(np.ones((6,), "f8"), rows("f2"), 1),
        fc.ema(rows(), 0.25),
        fc.ema(numbers("i4"), np.float64(0.5)),
        fc.ema(rows("f2"), 1),
    ),
    "positions": lambda _: (
        fc.nn.position(rows()),
        fc.nn.position(unknown()),
        fc.nn.position(numbers(), numbers("i4")),
        fc.nn.position(numbers(), numbers("u8"), slots=5),
        fc.nn.rope(rows("f2"), numbers("i4")),
        fc.nn.rope(
            rows(),
            numbers("i8"),
            5e5,
            "halves",
            4,
            "yarn",
            factor=4.0,
            original_context=64,
            frequency_factors=fc.sum(rows("f4", (5, 2)), axis=0) + 9,
        ),
    ),
    "statistics": lambda _: (
        fc.cov(rows()),
        fc.cov(numbers(), correction=0),
        fc.corrcoef(rows()),
        fc.histogram(rows(), bins=5, range=(-2, 2))[0],
        fc.histogram(numbers(), bins=[-1.0, 0, 3])[0],
        fc.bincount(numbers("u1"), 7),
        fc.segment_sum(rows("f2"), numbers("u1"), 7),
        fc.segment_sum(rows("i1"), np.arange(12), 12),
        fc.segment_mean(rows(), numbers("u1"), 7),
        fc.segment_min(np.ones((12, 2)), numbers("u1"), 7),
        fc.segment_max(rows("?"), numbers("u1"), 7),
        *fc.top_k(numbers(), 3),
        *fc.top_k(unknown(), 2),
        *fc.unique_counts(numbers(), max_values=9),
        fc.unique_values(rows("u1")),
        fc.unique_values(np.ones((2, 3))),
        fc.quantile(numbers(), 0.5),
        fc.quantile(numbers("i4"), [[0.25], [0.75]]),
        fc.quantile(items(3, 4), [0.25, 0.75], axis=0),
        fc.median(rows(BFLOAT16), axis=0),
        fc.quantile(rows(BFLOAT16, (12,)), np.float32([0.5])),
        fc.count_nonzero(rows(), axis=0),
    ),
    "where": lambda _: (
        fc.where(rows() > 0, rows(), 0),
        fc.where(rows("?"), rows(BFLOAT16), 1.5),
        fc.where(numbers() > 0, True, False),
    ),
    "casts": lambda _: (rows().astype("i2"), rows().astype("f4"), rows("i8").astype("bfloat16"), fc.clip(rows("i4"))),
    "mixed signs": lambda _: (rows("u8") < rows("i8"), rows("i8") == rows("u8"), rows("i1") < 300, rows("u8") >= 0),
    "powers": lambda _: (rows() ** 2.5, rows() ** rows(), rows("i4") ** rows("u1"), 2 ** rows()),
}


def elementwise() -> dict[str, Build]:
    """A job for each element-wise function, of every dtype that it takes."""
    public = {name: getattr(room, name) for room in (fc, fc.nn) for name in room.__all__}
    found = {name: value for name, value in public.items() if isinstance(value, Function)}
    return {name: lambda _, function=function: _in_all_dtypes(function) for name, function in found.items()}


def _in_all_dtypes(function: Function) -> tuple[Any, ...]:
    made = []
    for dtype in ("?", "i2", "u8", "f2", BFLOAT16, "f8"):
        try:
            made.append(function(*[rows(dtype)] * function.op.arity))
            made += [function(rows(dtype), 1)] if function.op.arity == 2 else []
        except fc.SpecError:
            continue
    assert made, function
    return tuple(made)


JOBS: dict[str, Build] = {
    **SOURCES,
    **ENDS,
    **FUNCTIONS,
    **OPERATIONS_BY_NAME,
    **NUMERIC,
    **NETWORKS,
    **TRAININGS,
    **elementwise(),
}
