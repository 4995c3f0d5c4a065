"""Training on a device that has no room for all parameters: each kernel reads what the step before has made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.memory.streamed_weights import StreamedWeights
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

RNG = np.random.default_rng(9)
WIDTH, LAYERS, SIDE, IMAGE_LAYERS = 96, 4, 24, 5
ROWS = RNG.standard_normal((8, WIDTH), dtype=np.float32)
IMAGES = RNG.standard_normal((6, 6, SIDE, SIDE), dtype=np.float32)
GPU: dict[str, Any] = {"device": "gpu"}


@pytest.fixture(autouse=True)
def _discrete() -> Iterator[None]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        yield


def weights(place: int, *shape: int) -> Any:
    numbers = np.random.default_rng(place).standard_normal(shape, dtype=np.float32)
    return fc.parameter(numbers / np.float32(np.prod(shape[1:]) ** 0.5), name=f"w{place}")


def dense() -> Any:
    h = fc.source(ROWS)
    for place in range(LAYERS):
        h = fc.tanh(h @ weights(place, WIDTH, WIDTH))
    return (h * h).mean()


def convolved() -> Any:
    h = fc.source(IMAGES)
    for place in range(IMAGE_LAYERS):
        h = fc.nn.relu(fc.nn.conv2d(h, weights(place, 6, 6, 3, 3), padding=1))
    return (h * h).mean()


def fitted(loss: Any) -> tuple[Any, ...]:
    trained = fc.train.fit(loss, fc.train.sgd(0.5), batch=3, epochs=2)
    return *trained.values(), trained.losses


def least(graph: tuple[Any, ...], most: int) -> int:
    """Find the least limit in bytes that a plan can keep, to a hundredth, below one that it can keep."""
    below = 0
    while most - below > most // 100:
        limit = (most + below) // 2
        try:
            fc.plan(*graph, **GPU, device_memory=limit)
        except PlanError:
            below = limit
        else:
            most = limit
    return most


def bits(values: Any) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in values]


@pytest.mark.filterwarnings("ignore:no room on:flowcompute.errors.DeviceWarning")
@pytest.mark.parametrize("loss", [dense, convolved])
def test_no_device_memory_changes_a_bit(loss: Any) -> None:
    graph = fitted(loss())
    ample = bits(fc.resolve(*graph, **GPU, progress=False))
    pinned: list[Any] = []
    streamed = 0
    buffer = StreamedWeights.buffer

    def counted(*given: Any) -> Any:
        nonlocal streamed
        streamed += 1
        return buffer(*given)

    with (
        mock.patch.object(StreamedWeights, "buffer", counted),
        mock.patch.object(DeviceMemory, "pin", lambda _, array: pinned.append(array)),
    ):
        for limit in (smallest := least(graph, 1 << 24), smallest * 21 // 20):
            assert bits(fc.resolve(*graph, **GPU, progress=False, device_memory=limit)) == ample, limit
    assert streamed, "the least limit has parameters streamed"
    assert not pinned, "each step's parameters would stay pinned until the end"
