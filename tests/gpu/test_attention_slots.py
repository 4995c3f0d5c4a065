"""Self-attention along the stream where records of several texts come in turns: each text as if it were alone."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from tests.gpu.test_self_attention import Arrays, drawn, exact, joined, positions, resolved, split
from tests.support.slow import slow_but


def turns(lengths: list[int], slots: int, seed: int) -> np.ndarray:
    """Give the text of each record: those of a slot one after the other, slots in random turns of a few records."""
    rng = np.random.default_rng(seed)
    texts = np.arange(len(lengths))
    waiting = [np.repeat(texts[slot::slots], lengths[slot::slots]).tolist() for slot in range(slots)]
    found: list[int] = []
    while some := [one for one in waiting if one]:
        one, items = some[rng.integers(len(some))], int(rng.integers(1, 6))
        found += one[:items]
        del one[:items]
    return np.array(found, np.int32)


def attention(arrays: Arrays, **options: Any) -> Any:
    return fc.nn.self_attention(*map(fc.source, arrays), **options)


def require_as_alone(arrays: Arrays, text: np.ndarray, made: np.ndarray, device: str, **options: Any) -> None:
    for one in np.unique(text):
        own = text == one
        parts: Any = tuple(array[own] for array in arrays)
        assert resolved(attention(parts, **options), device, 1 << 20).tobytes() == made[own].tobytes()
        at = positions([int(own.sum())])
        np.testing.assert_allclose(made[own], exact(*parts, at, options["window"]), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("device", "window"),
    [
        ("numpy", None),
        ("cpu", None),
        *(pytest.param(device, 20, marks=pytest.mark.slow) for device in ("numpy", "gpu")),
        *(pytest.param(*case, marks=pytest.mark.compiles) for case in (("cpu", 20), ("gpu", None))),
    ],
)
def test_a_text_has_the_bits_that_it_has_alone(device: str, window: int | None) -> None:
    lengths = [3, 70, 1, 66, 9]
    text = turns(lengths, 3, seed=len(device))
    arrays = drawn(len(text), 6, 2, 16, 24)
    made = attention(arrays, text=fc.source(text), slots=3, window=window, context=70)
    # All at once, where slots begin anew and are full inside of a batch, and record by record (400 bytes).
    results = [resolved(made, device, size) for size in (1 << 20, 400)]
    assert {one.tobytes() for one in results} == {results[0].tobytes()}
    require_as_alone(arrays, text, results[0], device, window=window, context=70)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(st.data())
def test_random_turns(data: st.DataObject) -> None:
    slots = data.draw(st.integers(2, 5))
    lengths = data.draw(st.lists(st.integers(1, 80), min_size=1, max_size=5))
    text = turns(lengths, slots, data.draw(st.integers(0, 99)))
    # Numbers of the texts may be any: those of a slot are equal modulo the count of slots.
    text = text + slots * data.draw(st.sampled_from([0, -7, 10**6]))
    window = data.draw(st.one_of(st.none(), st.integers(1, 90)))
    device = data.draw(st.sampled_from(["numpy", "cpu"]))
    arrays = drawn(len(text), 4, 2, 8, 8)
    context = max(lengths) + data.draw(st.integers(0, 3))
    made = attention(arrays, text=fc.source(text), slots=slots, window=window, context=context)
    result = resolved(made, device, data.draw(st.sampled_from([200, 2000, 1 << 20])))
    require_as_alone(arrays, text, result, device, window=window, context=context)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_slot_holds_its_context_and_no_more(device: str) -> None:
    text = np.tile([0, 1], 30)
    arrays = drawn(60, 2, 1, 8, 8)
    made = attention(arrays, text=fc.source(text), slots=2, context=30)
    assert len(resolved(made, device, 500)) == 60
    short = attention(arrays, text=fc.source(text), slots=2, context=29)
    with pytest.raises(fc.RunError, match="at most 29 records"):
        resolved(short, device, 500)


def test_the_plan_counts_each_slot() -> None:
    def kept(slots: int) -> int:
        feeds = [fc.feed((heads, 64), dtype="float32") for heads in (9, 3, 3)]
        made = fc.nn.self_attention(*feeds, text=fc.feed(dtype="int32"), context=8192, slots=slots)
        plan = fc.plan(made, memory="4GiB", strategy=fc.Strategy(batch_bytes=1 << 14))
        (size,) = [size for name, size in plan.memory.items if "keys and values" in name]
        with pytest.raises(fc.PlanError, match="keys and values"):
            fc.plan(made, memory=size // 2)
        return int(size)

    assert kept(8) == 8 * kept(1)


@pytest.mark.parametrize("devices", slow_but(["cpu cpu"], ["cpu cpu", "cpu numpy", "numpy cpu"]))
def test_a_frozen_flow_goes_on_with_all_texts(tmp_path: Path, devices: str) -> None:
    first, second = devices.split()
    text = turns([40, 30, 25, 20, 9], 3, seed=5)
    arrays = drawn(len(text), 4, 2, 16, 16)
    every = joined(arrays)
    expected = resolved(attention(arrays, text=fc.source(text), slots=3), second, 1 << 20)
    made = fc.nn.self_attention(
        *split(fc.feed((128,), dtype="float32", name="x")),
        text=fc.feed(dtype="int32", name="text"),
        slots=3,
        context=50,
    )
    with made.flow(device=first) as flow:
        flow.send(x=every[:70], text=text[:70])
        flow.receive()
        flow.freeze(tmp_path / "kept")
    warned = nullcontext() if first == second else pytest.warns(fc.CheckpointWarning, match="error bounds")
    with warned, fc.thaw(tmp_path / "kept").flow(device=second) as flow:
        rest = []
        for part in (slice(70, 71), slice(71, 90), slice(90, None)):
            flow.send(x=every[part], text=text[part])
            rest.append(flow.receive())
    result = np.concatenate(rest)
    if first == second:
        assert result.tobytes() == expected[70:].tobytes()
    np.testing.assert_allclose(result, expected[70:], rtol=2e-5, atol=2e-6)


def test_slots_without_texts_are_refused() -> None:
    arrays = drawn(5, 2, 1, 8, 8)
    with pytest.raises(fc.SpecError, match="text="):
        attention(arrays, slots=2)
    for slots in (0, -1, 2.5, True, 10**6):
        with pytest.raises(fc.SpecError, match="slots"):
            attention(arrays, text=fc.source(np.zeros(5, int)), slots=slots)
