"""Caches of layers that are given the same records place them once, and hold the rows that each would hold alone."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.scans import KeyValueCache, SlotCache
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.run.chains.launch_chain import ChainMaker, LaunchChain
from tests.gpu.shapes import gpu_shaped
from tests.models.architecture_files import VOCABULARY, write_architecture

HEADS, SIZE = 2, 4
WIDTH, RECORDS = HEADS * SIZE, 150
WEIGHTS = np.random.default_rng(0).standard_normal((4, WIDTH, WIDTH)).astype(np.float32) / 3
DATA = np.random.default_rng(1).standard_normal((RECORDS, WIDTH)).astype(np.float32)
ONE_BY_ONE = fc.Strategy(batch_bytes=WIDTH * 4)


def attending(x: fc.Element, window: int | None = None, slots: int = 1, text: fc.Element | None = None) -> fc.Element:
    """Return four layers that attend to earlier records, the first two of them through a window."""
    for number, weights in enumerate(WEIGHTS):
        heads = fc.reshape(x @ fc.constant(weights), (-1, HEADS, SIZE))
        seen = fc.nn.self_attention(
            heads, heads * 0.5, heads - 1, context=200, window=window if number < 2 else None, slots=slots, text=text
        )
        x = fc.tanh(fc.reshape(seen, (-1, WIDTH)))
    return x


def fed(window: int | None = None, slots: int = 1) -> fc.Element:
    """Return the layers of what is sent, whose texts are numbered."""
    sent = fc.feed(shape=(WIDTH + 1,), dtype="float32")
    return attending(sent[:, :WIDTH], window, slots, sent[:, WIDTH].astype("int32"))


def numbered(texts: int) -> np.ndarray:
    """Return records of so many texts in turns, with their numbers."""
    return np.concatenate([DATA, (np.arange(RECORDS) % texts)[:, None].astype(np.float32)], axis=1)


@pytest.mark.parametrize(("cache", "slots"), [(KeyValueCache, 1), (SlotCache, 2)])
@pytest.mark.parametrize(("window", "kinds"), [(None, 1), (5, 2)])
def test_layers_place_a_record_once(cache: type, slots: int, window: int | None, kinds: int) -> None:
    data = numbered(slots)[:8]
    with (
        mock.patch.object(cache, "place", autospec=True, side_effect=cache.place) as place,
        fed(window, slots).flow(device="cpu") as flow,
    ):
        for record in data:
            place.reset_mock()
            flow.send(record[None])
            assert place.call_count == kinds
        made = [flow.receive() for _ in data]
    for text in range(slots):
        alone = attending(fc.source(data[text::slots, :WIDTH]), window).resolve(device="cpu", progress=False)
        np.testing.assert_array_equal(np.concatenate(made)[text::slots], alone)


@pytest.mark.parametrize("slots", [1, 2])
def test_rows_that_are_dropped_are_dropped_by_all(slots: int) -> None:
    """A flow whose caches are full goes on in another one at any record, which had placed others before."""
    data, made = numbered(slots), list[np.ndarray]()
    with (
        fed(5, slots).flow(device="cpu", strategy=ONE_BY_ONE) as first,
        fed(5, slots).flow(device="cpu", strategy=ONE_BY_ONE) as second,
    ):
        flows = [first, second]
        second.send(data[:3])
        second.receive()
        for place, record in enumerate(data):
            flows[0].send(record[None])
            made.append(flows[0].receive())
            if place % 50 == 49:
                flows[1].carry_on(flows[0].carried())
                flows.reverse()
    for text in range(slots):
        alone = attending(fc.source(DATA[text::slots]), 5).resolve(device="cpu", progress=False)
        np.testing.assert_array_equal(np.concatenate(made)[text::slots], alone)


@pytest.mark.compiles
@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_chains_go_on_where_somebody_looks_in_between(tmp_path: Path, device: str) -> None:
    """Rows of each layer that a snapshot has fetched are fetched anew after the next token."""
    tokens = np.random.default_rng(3).integers(3, len(VOCABULARY), 22).astype(np.int32)
    model = fc.models.load(write_architecture(tmp_path / "model.gguf", "llama", kind="Q8_0"))
    chained: list[int] = []
    again = LaunchChain.again

    def counted(chain: LaunchChain, *arguments: Any) -> None:
        again(chain, *arguments)
        chained.append(len(chain.launches))

    shaped = mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped())
    with (
        shaped if device == "gpu" else contextlib.nullcontext(),
        mock.patch.multiple("flowcompute.gpu.run.chains.launch_chain", LEAST=4, SHARED=1),
        mock.patch.object(ChainMaker, "_is_short", return_value=True),
        mock.patch.object(LaunchChain, "again", counted),
    ):
        whole = model.logits(fc.source(tokens)).resolve(device=device, progress=False)
        with model.logits(fc.feed(dtype="int32")).flow(device=device) as flow:
            for place, token in enumerate(tokens):
                flow.send(token[None])
                assert flow.receive().tobytes() == whole[place : place + 1].tobytes()
                if place in (8, 9, 10, 15):
                    flow.carry_on(flow.carried())
                elif place in (13, 14):
                    flow.carried()
    assert len(chained) > 10
