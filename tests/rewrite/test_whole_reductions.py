"""Reductions of whole resident values by blocks: the bits of the reduction of one row."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.graph import build_graph
from flowcompute.ir import BLOCK
from flowcompute.rewrite import split_whole_reductions
from flowcompute.rewrite.reductions import whole_reductions
from tests.gpu.shapes import gpu_shaped
from tests.properties.cases import cases


def numbers(count: int, dtype: str) -> np.ndarray:
    """Return numbers of many magnitudes, whose sum depends on the order."""
    rng = np.random.default_rng(count)
    return (rng.standard_normal(count) * 10.0 ** rng.integers(-6, 7, count)).astype(dtype)


@cases(40)
@given(st.integers(1, 40 * BLOCK), st.sampled_from(["float32", "float64"]))
def test_the_tree_of_blocks_has_the_bits_of_a_row(count: int, dtype: str) -> None:
    value = fc.parameter(numbers(count, dtype))
    with (
        mock.patch.object(whole_reductions, "LEAST_NUMBERS", BLOCK),
        mock.patch.object(whole_reductions, "_MERGED_BITS", 2),
    ):
        graph = build_graph([fc.to_array().bind(value.sum())])
        made = split_whole_reductions(graph)
    # Without a whole last block, or most of one, a row stays a row.
    split = count > BLOCK and not 0 < count % BLOCK <= BLOCK // 4
    assert (made is not graph) == split
    if split:
        (root,) = made.roots
        by_blocks = made.nodes[made.nodes[root].inputs[0]].element
        one, other = fc.resolve(value.sum(), by_blocks, device="numpy", progress=False)
        assert one.tobytes() == other.tobytes()


def trained(**options: Any) -> tuple[bytes, set[int]]:
    """Train a matrix of six blocks on a discrete device; gives its bytes, and how many rows each kernel reduces."""
    rng, rows = np.random.default_rng(0), set[int]()
    w = fc.parameter(rng.standard_normal((96, 64), dtype=np.float32), name="w")
    x = fc.source(rng.standard_normal((8, 96), dtype=np.float32))
    launch = OpenCLRunner._launch

    def noted(self: Any, kernel: Any, *given: Any, **more: Any) -> Any:
        if "blocks" in kernel.region:
            rows.add(kernel.units)
        return launch(self, kernel, *given, **more)

    with (
        mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()),
        mock.patch.object(OpenCLRunner, "_launch", noted),
        fc.train.Trainer([w], fc.train.sgd(0.1), device="gpu", **options) as trainer,
    ):
        trainer.step(fc.mean(fc.vecdot(x @ w, x @ w)))
        return np.asarray(trainer.values["w"]).tobytes(), rows


@pytest.mark.compiles
@pytest.mark.parametrize("options", [{"clip_norm": 1e-2}, {"loss_scale": "dynamic"}])
def test_gradients_are_reduced_by_blocks_on_discrete_devices(options: dict[str, Any]) -> None:
    expected, rows = trained(**options)
    assert not rows
    with mock.patch.object(whole_reductions, "LEAST_NUMBERS", BLOCK):
        found, rows = trained(**options)
    assert found == expected
    assert 6 in rows


@pytest.mark.parametrize("reduced", [fc.max, fc.min, fc.any, fc.all])
def test_reductions_in_any_order(reduced: Any) -> None:
    array = numbers(3 * BLOCK + 8, "float32").reshape(7, -1)
    value = fc.parameter(array) if reduced in (fc.max, fc.min) else fc.constant(array > 0)
    with mock.patch.object(whole_reductions, "LEAST_NUMBERS", BLOCK):
        made = split_whole_reductions(build_graph([fc.to_array().bind(reduced(value, keepdims=True))]))
    by_blocks = made.nodes[made.nodes[made.roots[0]].inputs[0]].element
    one, other = fc.resolve(reduced(value, keepdims=True), by_blocks, device="numpy", progress=False)
    assert len(made.nodes) >= 8
    assert (one.shape, one.tobytes()) == (other.shape, other.tobytes())
