"""Self-attention along the stream: against NumPy in float64, whatever the batches, devices, texts and windows."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.nn.self_attention import _attend
from flowcompute.gpu.render import render
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu, run_on_gpu
from tests.support.slow import compiled_but, slow_but

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

DEVICES = ["numpy", "cpu", "gpu"]
EACH = [*itertools.product(DEVICES, (None, 1, 63, 65, 100), (None, [1, 5, 70, 3, 130, 21]))]
"""Devices, windows and lengths of texts. CI compiles one text without a window, and texts with one."""


def drawn(records: int, heads: int, kv_heads: int, size: int, width: int, dtype: Any = np.float32) -> Arrays:
    rng = np.random.default_rng(records + 7 * heads)
    shapes = (records, heads, size), (records, kv_heads, size), (records, kv_heads, width)
    q, k, v = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    return q, k, v


def positions(lengths: list[int]) -> np.ndarray:
    return np.concatenate([np.arange(0), *map(np.arange, lengths)]).astype(np.int32)


def exact(q: np.ndarray, k: np.ndarray, v: np.ndarray, at: np.ndarray, window: int | None) -> np.ndarray:
    heads, kv_heads = q.shape[1], k.shape[1]
    q, k, v = (one.astype(np.float64) for one in (q, k, v))
    made = np.zeros((*q.shape[:2], v.shape[2]))
    for i, head in itertools.product(range(len(q)), range(heads)):
        seen = slice(i - min(at[i] + 1, window or at[i] + 1) + 1, i + 1)
        kv = head * kv_heads // heads
        scores = k[seen, kv] @ q[i, head] / np.sqrt(q.shape[2])
        weights = np.exp(scores - scores.max())
        made[i, head] = weights / weights.sum() @ v[seen, kv]
    return made


def resolved(element: fc.Element, device: str, batch_bytes: int) -> np.ndarray:
    strategy = fc.Strategy(batch_bytes=batch_bytes)
    if device == "gpu":
        return resolve_on_gpu(element, strategy=strategy)[0]
    return element.resolve(device=device, strategy=strategy, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "window", "texts"),
    compiled_but(
        [
            case
            for case in EACH
            if case[1] in (None, 65) and (case[0] == "numpy" or (case[1] is None) == (case[2] is None))
        ],
        EACH,
    ),
)
def test_each_record_sees_those_before(device: str, window: int | None, texts: list[int] | None) -> None:
    q, k, v = drawn(230, 6, 2, 16, 24)
    at = positions([230] if texts is None else texts)
    extra = () if texts is None else (fc.source(at),)
    made = _attend(*map(fc.source, (q, k, v)), *extra, window=window, context=None, scale=None)
    # 400 bytes are one record. Two windows, inside of a tile and over its edge, stand for the others.
    sizes = (1 << 20, 4096, 400) if window in (1, 65) else (1 << 20, 4096)
    results = [resolved(made, device, batch_bytes) for batch_bytes in sizes]
    np.testing.assert_allclose(results[0], exact(q, k, v, at, window), rtol=2e-5, atol=2e-6)
    assert {one.tobytes() for one in results} == {results[0].tobytes()}


@pytest.mark.parametrize(
    ("device", "window"),
    [
        *((device, window) for device in ("numpy", "gpu") for window in (None, 20)),
        *(pytest.param("cpu", window, marks=pytest.mark.slow) for window in (None, 20)),
        pytest.param("isolated", None, marks=pytest.mark.slow),
        pytest.param("isolated", 20, marks=pytest.mark.compiles),
    ],
)
def test_texts_are_told_by_their_numbers(device: str, window: int | None) -> None:
    lengths = [1, 5, 70, 3, 40]
    q, k, v = drawn(sum(lengths), 4, 2, 16, 24)
    text = fc.source(np.repeat([7, 3, 7, 2**40, -1], lengths))
    made = fc.nn.self_attention(*map(fc.source, (q, k, v)), text=text, window=window, context=70)
    if device == "isolated":
        strategy = fc.Strategy(batch_bytes=4000)
        result = made.resolve(device="cpu", isolate=True, strategy=strategy, progress=False)
    else:
        result = resolved(made, device, 4000)
    np.testing.assert_allclose(result, exact(q, k, v, positions(lengths), window), rtol=2e-5, atol=2e-6)
    short = fc.nn.self_attention(*map(fc.source, (q, k, v)), text=text, window=window, context=69)
    with pytest.raises(fc.RunError, match="text of more records"):
        resolved(short, "cpu" if device == "isolated" else device, 4000)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.data())
def test_shapes_dtypes_and_texts(data: st.DataObject) -> None:
    kv_heads, share = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2, 3, 5]))
    size, width = data.draw(st.sampled_from([1, 3, 8, 17, 64])), data.draw(st.sampled_from([1, 5, 16, 65]))
    lengths = data.draw(st.lists(st.integers(1, 150), max_size=3))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.float16]))
    window = data.draw(st.one_of(st.none(), st.integers(1, 200)))
    device = data.draw(st.sampled_from(["numpy", "cpu"]))
    at = positions(lengths)
    q, k, v = drawn(len(at), kv_heads * share, kv_heads, size, width, dtype)
    made = _attend(*map(fc.source, (q, k, v, at)), window=window, context=None, scale=None)
    results = [resolved(made, device, batch_bytes) for batch_bytes in (1 << 20, data.draw(st.integers(300, 9000)))]
    assert (results[0].dtype, results[0].shape) == (dtype, (len(at), kv_heads * share, width))
    tolerance = {"float16": 2e-3, "float32": 3e-5, "float64": 1e-12}[np.dtype(dtype).name]
    np.testing.assert_allclose(results[0], exact(q, k, v, at, window), rtol=tolerance, atol=tolerance)
    assert results[1].tobytes() == results[0].tobytes()


@pytest.mark.parametrize("window", slow_but([70], [None, 70]))
def test_its_bits_are_those_of_attention(window: int | None) -> None:
    q, k, v = drawn(150, 4, 2, 32, 40)
    items = (fc.constant(np.ascontiguousarray(np.moveaxis(one, 0, 1))) for one in (q, k, v))
    whole = fc.nn.attention(*items, causal=True, window=window).resolve(device="cpu", progress=False)
    made = fc.nn.self_attention(*map(fc.source, (q, k, v)), window=window)
    assert np.array_equal(resolved(made, "cpu", 5000), np.moveaxis(whole, 0, 1))


def of_one_norm(x: fc.Element) -> fc.Element:
    """Return what attends to a view of a norm, and to numbers that kernels make of that view as they load it."""
    heads = fc.reshape(x - x.sum(axis=1, keepdims=True), (-1, 2, 4))
    return fc.nn.self_attention(heads, heads * 0.5, heads - 1)


def test_what_one_operand_reads_from_memory_is_stored_for_another() -> None:
    said = [reason.text for reason in fc.plan(of_one_norm(fc.source(np.zeros((9, 8), "f4"))), device="cpu").reasons]
    assert "subtract is stored: multiply needs it too" in said


@pytest.mark.compiles
def test_operands_may_be_made_of_a_view_of_one_norm() -> None:
    x = np.random.default_rng(4).standard_normal((90, 8)).astype("f4")
    heads = (x - x.sum(axis=1, keepdims=True)).reshape(-1, 2, 4)
    wanted = exact(heads, heads * np.float32(0.5), heads - 1, positions([90]), None)
    for device in DEVICES:
        np.testing.assert_allclose(resolved(of_one_norm(fc.source(x)), device, 3000), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_operands_may_be_views_of_one_product() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((90, 32)).astype("f4"), rng.standard_normal((32, 4 * 8 + 2 * 2 * 8)).astype("f4")
    every = fc.source(x) @ w
    q, k, v = every[:, :32], every[:, 32:48], every[:, 48:]
    q, k, v = (fc.reshape(one, (-1, heads, 8)) for one, heads in ((q, 4), (k, 2), (v, 2)))
    made = fc.nn.self_attention(q, k, v) * 2
    product = x.astype("f8") @ w
    parts = product[:, :32].reshape(-1, 4, 8), product[:, 32:48].reshape(-1, 2, 8), product[:, 48:].reshape(-1, 2, 8)
    for device in DEVICES:
        np.testing.assert_allclose(
            resolved(made, device, 3000), 2 * exact(*parts, positions([90]), None), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(
    ("device", "heads", "kv_heads", "records", "launches"),
    [("cpu", 6, 2, 42, 1), ("cpu", 6, 2, 43, 2), ("cpu", 130, 1, 2, 2), ("gpu", 6, 2, 5, 1), ("gpu", 6, 2, 6, 2)],
    ids=["one block", "two blocks", "heads that share keys in several blocks", "a block of a GPU", "two of a GPU"],
)
def test_few_records_are_added_and_attend_in_one_launch(
    device: str, heads: int, kv_heads: int, records: int, launches: int
) -> None:
    q, k, v = drawn(records, heads, kv_heads, 16, 8)
    made = fc.nn.self_attention(*map(fc.source, (q, k, v)), text=fc.source(np.arange(records) // 4))
    strategy = fc.Strategy(batch_bytes=1 << 20)
    run = run_on_gpu(made, strategy=strategy) if device == "gpu" else fc.run(made, device=device)
    assert run.launches == launches
    assert run.value.tobytes() == resolved(made, device, 1).tobytes(), "each record in a launch"
    np.testing.assert_allclose(run.value, exact(q, k, v, np.arange(records) % 4, None), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "records"), [(4, 4, 8), (6, 2, 2), (8, 1, 1), (9, 1, 1), (17, 1, 0)], ids=lambda one: str(one)
)
def test_the_kernel_of_few_records_takes_one_block(heads: int, kv_heads: int, records: int) -> None:
    kernel = plan_for_gpu(fc.nn.self_attention(*map(fc.source, drawn(90, heads, kv_heads, 8, 8)))).kernels[0].ir
    chosen = [items for items in range(1, 50) if kernel.of_items(items) is not kernel]
    assert chosen == [*range(1, records + 1)]
    assert all(kernel.of_items(items).phases(items) == range(2, 3) for items in chosen), "one launch"


@pytest.mark.parametrize("size", [128, 7])
def test_keys_are_loaded_in_whole_vectors_where_rows_are(size: int) -> None:
    q, k, v = drawn(90, 4, 2, size, size)
    kernel = plan_for_gpu(fc.nn.self_attention(*map(fc.source, (q, k, v)))).kernels[0].ir
    for one in (kernel, kernel.of_items(1)):
        text = render(one)
        assert ("(const __global float4 *)(state0" in text) == (size % 4 == 0)
        assert ("(const __global float4 *)(state1" in text) == (size % 4 == 0)


SLABS = [((4, 2, 128, 128), "f4"), ((5, 1, 80, 24), "f4"), ((2, 1, 256, 256), "f4"), ((6, 2, 20, 7), "f8")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "dtype"),
    compiled_but([SLABS[0], SLABS[3]], SLABS),
    ids=["one slab", "several slabs", "short slabs", "float64"],
)
def test_tokens_one_by_one_have_the_bits_of_all_at_once(shape: tuple[int, int, int, int], dtype: str) -> None:
    arrays = drawn(150, *shape, np.dtype(dtype))
    made = fc.nn.self_attention(*map(fc.source, arrays))
    whole, single = (resolved(made, "gpu", batch_bytes) for batch_bytes in (1 << 22, 1))
    np.testing.assert_allclose(whole, exact(*arrays, positions([150]), None), rtol=2e-5, atol=2e-6)
    assert single.tobytes() == whole.tobytes()


def test_items_without_heads() -> None:
    q, k, v = drawn(40, 1, 1, 8, 8)
    made = fc.nn.self_attention(*(fc.source(one[:, 0]) for one in (q, k, v)))
    assert made.shape == (40, 8)
    np.testing.assert_allclose(
        resolved(made, "cpu", 500), exact(q, k, v, positions([40]), None)[:, 0], rtol=1e-5, atol=1e-6
    )


# -- streams of unknown length ------------------------------------------------------------------------


def joined(arrays: Arrays) -> np.ndarray:
    return np.concatenate([one.reshape(len(one), -1) for one in arrays], axis=1)


def split(every: Any) -> list[Any]:
    """Queries of 4 heads, and keys and values of 2, of 16 numbers each."""
    q, k, v = every[:, :64], every[:, 64:96], every[:, 96:]
    return [fc.reshape(one, (-1, heads, 16)) for one, heads in ((q, 4), (k, 2), (v, 2))]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("window", [None, 20])
def test_a_flow_gives_the_bits_of_all_at_once(device: str, window: int | None) -> None:
    every = joined(drawn(300, 4, 2, 16, 16))
    expected = resolved(fc.nn.self_attention(*split(fc.source(every)), window=window), device, 1 << 20)
    context = 300 if window is None else None
    made = fc.nn.self_attention(*split(fc.feed((128,), dtype="float32")), window=window, context=context)
    with made.flow(device=device) as flow:
        parts = []
        for piece in np.split(every, np.cumsum([1, 1, 64, 0, 100, *[1] * 30])):
            flow.send(piece)
            parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == expected.tobytes()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_longer_text_than_the_context_is_refused(device: str) -> None:
    arrays = drawn(40, 2, 1, 8, 8)
    made = fc.nn.self_attention(*map(fc.source, arrays), context=39)
    with pytest.raises(fc.RunError, match=r"text of more records[\s\S]*test_self_attention\.py"):
        resolved(made, device, 500)
    assert len(resolved(fc.nn.self_attention(*map(fc.source, arrays), context=40), device, 500)) == 40


@pytest.mark.parametrize("device", slow_but(["numpy"], DEVICES))
def test_many_short_texts_need_no_more_rows_than_the_context(device: str) -> None:
    lengths = [3, 10, 1, 7, 10, 2] * 30
    at = positions(lengths)
    q, k, v = drawn(len(at), 2, 1, 8, 8)
    made = _attend(*map(fc.source, (q, k, v, at)), window=None, context=10, scale=None)
    np.testing.assert_allclose(resolved(made, device, 300), exact(q, k, v, at, None), rtol=2e-5, atol=2e-6)


def test_the_plan_counts_what_is_kept() -> None:
    feeds = [fc.feed((heads, 64), dtype="float32") for heads in (9, 3, 3)]
    made = fc.nn.self_attention(*feeds, context=8192)
    lines = dict(fc.plan(made, memory="1GiB", strategy=fc.Strategy(batch_bytes=1 << 14)).memory.items)
    (kept,) = [size for name, size in lines.items() if "keys and values" in name]
    assert 8192 * 2 * 3 * 64 * 4 <= kept < 1.2 * 8192 * 2 * 3 * 64 * 4
    with pytest.raises(fc.PlanError, match="keys and values"):
        fc.plan(made, memory="8MiB")


# -- state --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [("cpu", "cpu"), ("cpu", "numpy"), ("numpy", "cpu")])
def test_a_frozen_flow_goes_on_elsewhere(tmp_path: Path, first: str, second: str) -> None:
    every = joined(drawn(100, 4, 2, 16, 16))
    expected = resolved(fc.nn.self_attention(*split(fc.source(every))), second, 1 << 20)
    made = fc.nn.self_attention(*split(fc.feed((128,), dtype="float32")), context=1 << 16)
    with made.flow(device=first) as flow:
        flow.send(every[:37])
        flow.receive()
        flow.freeze(tmp_path / "kept")
    size = sum(path.stat().st_size for path in (tmp_path / "kept").rglob("*"))
    assert size < 37 * 2 * 2 * 16 * 4 + 30_000, "only rows that a later record sees are kept"
    warned = nullcontext() if first == second else pytest.warns(fc.CheckpointWarning, match="error bounds")
    with warned, fc.thaw(tmp_path / "kept").flow(device=second) as flow:
        flow.send(every[37:])
        rest = flow.receive()
    if first == second:
        assert rest.tobytes() == expected[37:].tobytes()
    np.testing.assert_allclose(rest, expected[37:], rtol=2e-5, atol=2e-6)


# -- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "options", "words"),
    [
        (((4, 8), (3, 8), (3, 8)), {}, "share heads"),
        (((4, 8), (2, 9), (2, 8)), {}, "compare"),
        (((4, 8), (2, 8), (1, 8)), {}, "compare"),
        (((4, 300), (2, 300), (2, 8)), {}, "heads of this size"),
        (((4, 8), (2, 8), (2, 8)), {"window": 0}, "window"),
        (((4, 8), (2, 8), (2, 8)), {"context": "a"}, "context"),
        (((4, 8, 2), (2, 8), (2, 8)), {}, "streams of items"),
    ],
)
def test_operands_that_do_not_fit_are_refused(shapes: Any, options: dict[str, Any], words: str) -> None:
    streams = [fc.source(np.zeros((5, *shape), "f4")) for shape in shapes]
    with pytest.raises(fc.SpecError, match=words):
        fc.nn.self_attention(*streams, **options)


def test_an_unknown_length_needs_a_context() -> None:
    feeds = [fc.feed((2, 8), dtype="float32") for _ in range(3)]
    with pytest.raises(fc.SpecError, match="context="):
        fc.nn.self_attention(*feeds)


def test_residents_are_left_to_attention() -> None:
    with pytest.raises(fc.SpecError, match="causal=True"):
        fc.nn.self_attention(*[fc.constant(np.zeros((5, 2, 8), "f4"))] * 3)


TURNED = [(64, "neighbours"), (32, "halves"), (24, "halves"), (6, "neighbours")]


def turned(x: fc.Element, at: fc.Element, order: Any) -> fc.Element:
    return fc.nn.rope(x, at, pairs=order)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("size", "order"),
    compiled_but([(24, "halves")], TURNED),
)
def test_rotations_are_computed_where_attention_loads_them(device: str, size: int, order: str) -> None:
    q, k, v = drawn(37, 6, 2, size, size)
    at = fc.source(np.arange(37))
    sources = [fc.source(one) for one in (q, k)]
    stored = [resolved(turned(one, at, order), device, 1 << 20) for one in sources]
    apart = fc.nn.self_attention(*map(fc.source, (*stored, v)))
    made = fc.nn.self_attention(*(turned(one, at, order) for one in sources), fc.source(v) * 2)
    doubled = fc.nn.self_attention(*map(fc.source, (*stored, v * 2)))
    for batch_bytes in (1 << 20, 3000):
        assert resolved(made, device, batch_bytes).tobytes() == resolved(doubled, device, batch_bytes).tobytes()
    if device != "numpy":
        planned = plan_for_gpu(made) if device == "gpu" else fc.plan(made, device="cpu")
        # Angles are computed once for all heads, and are another kernel than attention.
        assert len(planned.kernels) == 2, planned
        assert len(fc.plan(apart, device="cpu").kernels) == 1
