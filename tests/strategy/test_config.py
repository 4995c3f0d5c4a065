"""What users fix for a run, as they write it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.strategy.config import parse_bytes

X = fc.source(np.ones(1000, np.float32))


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [
        ("24MiB", 24 << 20),
        ("24 mb", 24 * 10**6),
        ("0.5GiB", 1 << 29),
        ("100", 100),
        ("1TB", 10**12),
        (10**7, 10**7),
        (np.int64(10**7), 10**7),
        (np.uint8(200), 200),
        (1e7, 10**7),
        (np.float32(4096), 4096),
    ],
)
def test_sizes(size: Any, size_bytes: int) -> None:
    assert parse_bytes(size) == size_bytes
    made = fc.plan(X.sum(), memory=1 << 30, device_memory=size, device="numpy")
    assert made.config.device_memory_bytes == size_bytes


@pytest.mark.parametrize(
    "size", ["", "lots", "50%", "-5MiB", True, np.True_, 1.5, float("nan"), float("inf"), [1], b"1"]
)
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(PlanError, match="cannot read memory= as a size") as caught:
        fc.plan(X * 2, memory=size, device="numpy")
    assert caught.value.expected == 'bytes as a whole number, or text like "24MiB", "24MB", "0.5GiB" or "100"'


@pytest.mark.parametrize("size", [0, -1, "0", "0.5", -1e7, np.int64(0)])
def test_sizes_are_positive(size: Any) -> None:
    with pytest.raises(PlanError, match="cannot use device_memory= that is not positive") as caught:
        fc.plan(X * 2, device_memory=size, device="numpy")
    assert caught.value.hint == "leave device_memory= out for the default"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("24M", 'memory="24MiB" counts by 1024, memory="24MB" by 1000'),
        ("1.5 g", 'memory="1.5GiB" counts by 1024'),
        ("2ki", 'memory="2KiB" counts by 1024'),
        ("1e6", "memory=1000000"),
    ],
)
def test_what_may_be_meant_by_it_is_named(size: str, words: str) -> None:
    with pytest.raises(PlanError, match="cannot read memory= as a size") as caught:
        fc.plan(X * 2, memory=size, device="numpy")
    assert str(caught.value.hint).startswith(words)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"strategy": {"depth": 3, "batch_bytes": 1024}}, "strategy=fc.Strategy(depth=3, batch_bytes=1024)"),
        ({"strategy": "fast"}, "strategy=fc.Strategy(depth=3)"),
        ({"precision": "tf32"}, 'precision="tf32x3"'),
        ({"precision": "low"}, 'leave it out for "exact"'),
    ],
)
def test_options_that_are_something_else(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        fc.plan(X * 2, device="numpy", **options)
    assert caught.value.hint == hint
