"""Parts of the records of a step: at whole blocks, about equally long, with few nodes of the tree to bring."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.gpu import OpenCLBackend
from flowcompute.ir import ProductShape, largest_nodes, waiting_nodes
from flowcompute.schedule.placement import divided_records
from tests.gpu.test_sharing import DEVICES


@given(length=st.integers(1, 1 << 20), count=st.integers(2, 5), block=st.sampled_from([1, 256, 768, 4096]))
def test_parts_begin_at_whole_blocks_and_are_about_equally_long(length: int, count: int, block: int) -> None:
    one: Any = SimpleNamespace(clocks=())
    clock: Any = SimpleNamespace(length=length, values=frozenset({7}))
    shape: Any = SimpleNamespace(block=block)
    starts = divided_records._starts(one, clock, {7: SimpleNamespace(block=64)}, {3: shape}, count)  # type: ignore[dict-item]
    whole = math.lcm(block, 64)
    if not starts:
        assert length < 2 * count * whole
        return
    assert starts[0] == 0
    assert len(starts) == count
    assert all(start % whole == 0 for start in starts)
    for begin, end in zip(starts, [*starts[1:], length], strict=True):
        assert 0 < end - begin <= length / count + max(whole, length / count / divided_records.EVEN) + whole


@given(first=st.integers(0, 300), blocks=st.integers(0, 300))
def test_nodes_are_those_of_the_tree(first: int, blocks: int) -> None:
    nodes = [*largest_nodes(first, blocks)]
    assert (
        divided_records._nodes(10, 10 * first, 10 * (first + blocks) + 9) == len(nodes) <= waiting_nodes(first, blocks)
    )


def test_large_steps_are_divided_and_small_ones_are_not() -> None:
    def told(width: int, records: int, dtype: str = "f4") -> str:
        x = fc.source(np.broadcast_to(np.zeros(1, dtype), (records, width)))
        w = fc.parameter(np.zeros((width, width), dtype), name="w")
        trained = fc.train.fit(fc.mean(fc.nn.relu(fc.nn.relu(x @ w) @ w)), fc.train.adam(0.1), batch=records)
        with mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", 2]):
            reasons = fc.plan(trained["w"], memory="64GiB", device_memory="64GiB").reasons
        (one,) = [str(one) for one in reasons if "devices" in str(one) and f"a step of {records} records" in str(one)]
        return one

    assert "divided among 2 devices, from records 0, 32768 on" in told(4096, 1 << 16)
    assert "divided among 2 devices, from records 0, 131072 on" in told(1024, 1 << 18)
    assert "on the first device alone: bringing" in told(1024, 1 << 14)
    assert "on the first device alone: bringing" in told(4096, 1 << 12)


def test_blocks_are_multiplied_together_as_far_as_their_products_have_room() -> None:
    assert [ProductShape(1, width, width).together(None) for width in (64, 1024, 4096, 8192, 20_000)] == [
        16,
        16,
        4,
        1,
        1,
    ]
    shape = ProductShape(1, 1024, 1024)
    assert [shape.together(shape.block * blocks) for blocks in (0, 1, 2, 3, 4, 100)] == [1, 1, 2, 2, 4, 16]
