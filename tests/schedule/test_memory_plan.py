"""The plan's bytes: what views copy on the host is in them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu.run.folds.fold_blocks import FoldBlocks
from tests.gpu.shapes import plan_for_gpu

ITEM = (32, 32)
RECORDS = 2048
STRATEGY = fc.Strategy(batch_bytes=4 << 20)
ALLOWED_BYTES = 1 << 20
"""What the interpreter allocates besides, less than any copy here."""

ORDER = np.arange(31, -1, -1)

COPIED: dict[str, tuple[Callable[[Element], Element], int]] = {
    # a view, and how many numbers of an item it puts together
    "pad": (lambda x: fc.pad(x, ((0, 0), (1, 1), (2, 2))), 34 * 36),
    "concat of item axes": (lambda x: fc.concat([x, x[:, ::-1]], axis=1), 64 * 32),
    "stack": (lambda x: fc.stack([x, x], axis=1), 64 * 32),
    "take": (lambda x: fc.take(x, ORDER, axis=1), 32 * 32),
    "reshape without strides": (lambda x: fc.reshape(fc.permute_dims(x, (0, 2, 1)), (RECORDS, 1024)), 1024),
}
SEEN: dict[str, Callable[[Element], Element]] = {
    "transposed": lambda x: fc.permute_dims(x, (0, 2, 1)),
    "every other": lambda x: x[:, ::2, 3:],
    "reshape": lambda x: fc.reshape(x, (RECORDS, 1024)),
    "spread": lambda x: fc.broadcast_to(x[:, :1], (RECORDS, 8, 32)),
}


def source() -> Element:
    return fc.source(np.ones((RECORDS, *ITEM), np.float32))


def on_the_host(view: Element) -> Element:
    """A number of each item, by a function on the host: where nothing is computed beside a view, the host copies."""
    return fc.host(lambda batch: batch.reshape(len(batch), -1)[:, 0], view, shape=()).sum()


def copies(plan: fc.Plan) -> list[int]:
    """Bytes of what is copied."""
    return [size for what, size in plan.memory.items if "(host copy)" in what]


def peak_of(roots: list[Element]) -> int:
    """The most bytes that Python and NumPy held at a time while these ran."""
    fc.resolve(*roots, device="cpu", strategy=STRATEGY)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        fc.resolve(*roots, device="cpu", strategy=STRATEGY)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", COPIED)
def test_what_a_view_copies_is_planned(form: str) -> None:
    view, numbers = COPIED[form]
    roots = [on_the_host(view(source()))]
    plan = fc.plan(*roots, device="cpu", strategy=STRATEGY)
    assert copies(plan) == [plan.batch_items * numbers * 4]
    peak = peak_of(roots)
    assert copies(plan)[0] > ALLOWED_BYTES
    assert copies(plan)[0] <= peak <= plan.memory.host_bytes + ALLOWED_BYTES


def test_a_copy_that_a_destination_takes_is_there_beside_the_result() -> None:
    view, numbers = COPIED["pad"]
    padded = view(source())
    roots = [padded, on_the_host(padded)]
    plan = fc.plan(*roots, device="cpu", strategy=STRATEGY)
    assert copies(plan) == [plan.batch_items * numbers * 4]
    assert peak_of(roots) <= plan.memory.host_bytes + ALLOWED_BYTES


@pytest.mark.parametrize("form", SEEN)
def test_what_is_only_seen_takes_nothing(form: str) -> None:
    roots = [SEEN[form](source()).sum(axis=0)]
    plan = fc.plan(*roots, device="cpu", strategy=STRATEGY)
    assert copies(plan) == []
    assert peak_of(roots) <= plan.memory.host_bytes + ALLOWED_BYTES


def test_copies_count_against_the_budget() -> None:
    root = on_the_host(fc.pad(source(), ((0, 0), (1, 1), (2, 2))))
    least = 8 << 20
    plan = fc.plan(root, device="cpu", memory=least)
    assert 0 < sum(copies(plan)) <= plan.memory.host_bytes <= least


def test_what_a_worker_sees_of_operands_depends_on_no_device_of_its_own_memory() -> None:
    x = fc.source(np.ones((9, 64), np.float32)) @ np.ones((64, 64), np.float32)
    options = {"device": "cpu", "isolate": True}
    whole = fc.plan(x, **options).memory.items
    assert ("constant (shared with the worker)", 64 * 64 * 4) in whole
    assert fc.plan(x, **options, device_memory="1KiB").memory.items == whole


def test_blocks_that_a_small_batch_cuts_through_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen records of a block of 128 have the accumulators of two blocks all the same."""
    held, real = [], FoldBlocks.make

    def make(self: FoldBlocks, *arguments: Any) -> None:
        real(self, *arguments)
        held.append(sum(array.nbytes for array in self._partials.values()))

    monkeypatch.setattr(FoldBlocks, "make", make)
    run = fc.run(
        fc.source(np.ones((64, 4096), np.float32)).var(axis=0),
        device="cpu",
        strategy=fc.Strategy(batch_bytes=1 << 16),
        progress=False,
    )
    assert run.plan.batch_items <= 16
    assert 0 < max(held) <= dict(run.plan.memory.items)["var (blocks) x 1"]


def test_the_budget_of_a_device_says_nothing_where_there_is_none() -> None:
    x = fc.source(np.ones(1000, np.float32))
    text = "device at device_memory: accepted, not applied: all is computed in the host's memory"
    for device in ("cpu", "numpy", ["cpu", "numpy"]):
        assert text in str(fc.plan(x * 2, device=device, device_memory="4GiB"))
        assert "device_memory" not in str(fc.plan(x * 2, device=device, memory="4GiB"))
    assert "device_memory" not in str(plan_for_gpu(x * 2, device_memory="4GiB"))


def test_batches_grow_until_their_records_outweigh_the_weights_that_they_read() -> None:
    """A record of 65,536 sums takes 256 KiB, so 32 are 8 MiB; the decoded weights take as much as 256 records."""
    weights = fc.dequantize(fc.constant(np.zeros((1 << 16, 272), np.uint8)), "Q8_0")
    sums = fc.argmax(fc.feed((256,), dtype="float32") @ weights.T, axis=1)
    assert 250 <= fc.plan(sums, device="cpu").batch_items <= 256
    assert fc.plan(sums, device="cpu", strategy=fc.Strategy(batch_bytes=8 << 20)).batch_items == 32
    for records, batch in ((100, 100), (256, 256), (600, 300), (1000, 250)):
        stream = fc.source(np.zeros((records, 256), np.float32))
        assert fc.plan(fc.argmax(stream @ weights.T, axis=1), device="cpu").batch_items == batch
    least = 48 << 20
    small = fc.plan(sums, device="cpu", memory=least)
    assert 32 < small.batch_items < 128
    assert small.memory.host_bytes <= least


@pytest.mark.parametrize("records", [100, 5000])
def test_batches_of_short_streams_are_as_large_as_those_of_long_ones(records: int) -> None:
    """A record takes 256 KiB: 32 are 8 MiB. Short streams had batches in the proportion of a million to their length."""
    feed, stream = fc.feed((1 << 16,), dtype="float32"), fc.source(np.broadcast_to(np.float32(1), (records, 1 << 16)))
    for x in (feed, stream):
        assert fc.plan(fc.sort(x, axis=1).sum(axis=1), device="cpu").batch_items == 32
