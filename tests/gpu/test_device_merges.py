"""Blocks of folds that a discrete device merges in steps of trainings, in code for GPUs that PoCL runs."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.folds import Fold
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.run.built_kernels import BuiltKernels
from flowcompute.gpu.run.folds.device_merges import DeviceMerges
from flowcompute.gpu.run.folds.fold_device import FoldDevice, KeptForFolds
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.graph import build_graph
from flowcompute.ir import FoldSpec
from flowcompute.lower import KernelStyle
from flowcompute.schedule.passes import StepMaker
from flowcompute.strategy.strategy import Strategy
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

RNG = np.random.default_rng(17)
WIDTH = 3000
"""Blocks have 16 records."""


@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize(("dtype", "result"), [("f4", "f4"), ("f4", "f8"), ("f8", "f8"), ("f8", "f4")])
def test_bits_are_those_of_the_host(op: str, dtype: str, result: str) -> None:
    graph = build_graph([fc.sum(fc.source(np.zeros((1, WIDTH), dtype)), axis=0)])
    node = graph.nodes[graph.roots[0]]
    spec = FoldSpec(op, np.dtype(dtype), (WIDTH,), np.dtype(result), (WIDTH,), selected=op == "sum")
    device, built = gpu_shaped().device, BuiltKernels()
    launcher = LocalLauncher(device, 0)
    there = FoldDevice(
        device,
        launcher.memory,
        launcher,
        lambda one: built.get(one, launcher),
        KernelStyle(device.capabilities),
        KeptForFolds(),
    )
    try:
        for cuts in ([0], [5], [16], [3, 13, 1, 40, 16, 32, 7], [161], [160]):
            mine, wanted = DeviceMerges(node, spec, there, sum(cuts) or None, stays=False), Fold(spec)
            mine.reserve()
            for place, records in enumerate(cuts):
                phase = wanted.stop % 16
                blocks = RNG.standard_normal((-(-(phase + records) // 16), WIDTH)).astype(dtype)
                blocks[:, :4] = [-0.0, np.inf, 1e30, -np.nan]
                blocks[::2, 1:3] *= -1
                buffer = there.buffer(("blocks", place), blocks.dtype, max(blocks.size, 1))
                there.upload(blocks, buffer)
                mine.push_blocks(buffer, phase, records)
                wanted.push_open_blocks([blocks], phase, records)
            assert mine.result().tobytes() == wanted.result().tobytes()
    finally:
        launcher.close()


@pytest.mark.parametrize("records", [7, 16, 1000])
def test_steps_give_the_bits_of_blocks_that_the_host_merges(records: int) -> None:
    x = RNG.standard_normal((90, WIDTH), dtype=np.float32)

    def fitted() -> list[bytes]:
        bias = fc.parameter(np.zeros(WIDTH, np.float32), name="bias")
        loss = fc.mean(fc.sum((fc.source(x) - bias) ** 2, axis=1), axis=0)
        trained = fc.train.fit(loss, fc.train.sgd(0.1), batch=45)
        strategy: Any = Strategy(batch_bytes=records * x.itemsize * WIDTH, joined_batches=1)
        found = fc.resolve(trained["bias"], trained.losses, device="gpu", strategy=strategy, progress=False)
        return [one.tobytes() for one in found]

    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        used = mock.patch.object(DeviceMerges, "push_blocks", autospec=True, side_effect=DeviceMerges.push_blocks)
        with used as on_device:
            got = fitted()
        assert on_device.call_count == 2 * -(-45 // records)
        with used as on_device, mock.patch.object(StepMaker, "_is_merged_there", return_value=False):
            assert fitted() == got
        assert not on_device.called


def test_the_sum_of_the_only_block_stays_where_it_is() -> None:
    x, labels = RNG.standard_normal((24, 6), dtype=np.float32), np.arange(24) % 3
    first = [RNG.standard_normal(shape, dtype=np.float32) for shape in ((6, 5), (5,), (5, 3))]

    def trained() -> list[bytes]:
        a, b, c = parameters = [fc.parameter(one, name=name) for one, name in zip(first, "abc", strict=True)]
        scores = fc.nn.relu(fc.source(x) @ a + b) @ c
        with fc.train.Trainer(parameters, fc.train.sgd(0.1), device="gpu") as trainer:
            trainer.step(fc.nn.cross_entropy(scores, fc.source(labels), reduction="mean"))
            return [one.tobytes() for one in trainer.values.values()]

    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        with mock.patch.object(DeviceMerges, "_launch") as launch:
            got = trained()
        assert not launch.called
        with mock.patch.object(StepMaker, "_is_merged_there", return_value=False):
            assert trained() == got
