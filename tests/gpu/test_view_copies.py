"""Views of resident values that a device copies by strides; matrices are turned tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu.run.view_copies import ViewCopy
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.graph import build_graph
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

UNITS = 2


def copied(array: np.ndarray, view: Any) -> tuple[ViewCopy, np.ndarray]:
    """Return what a device makes of a view of an array, which is given as a function of an element, and how."""
    graph = build_graph([view(fc.constant(array) * np.ones((), array.dtype))])
    node = graph.nodes[graph.roots[0]]
    copy = ViewCopy.of(node, graph.nodes[node.inputs[0]].spec)
    launcher = LocalLauncher(gpu_shaped().device, 0)
    try:
        memory = launcher.memory
        made = np.empty(node.spec.shape, node.spec.dtype)
        source, target = memory.input(0, array, fresh=False), memory.output(1, made)
        kernel = copy.built(launcher)
        launcher.launch(kernel, copy.values(source, target), copy.groups(UNITS), copy.work_group, [target], timed=False)
        memory.fetch(1, made)
        return copy, made
    finally:
        launcher.close()


@pytest.mark.parametrize("dtype", ["f2", "f8"])
@pytest.mark.parametrize("shape", [(64, 64), (65, 130), (300, 64), (129, 700)], ids=str)
def test_matrices_are_turned_by_tiles(shape: tuple[int, int], dtype: str) -> None:
    array = (np.arange(shape[0] * shape[1]) % 251).reshape(shape).astype(dtype)
    copy, made = copied(array, lambda x: fc.permute_dims(x, (1, 0)))
    assert copy.is_turned
    np.testing.assert_array_equal(made, array.T)


def test_parts_of_matrices_are_turned() -> None:
    array = np.arange(200 * 170, dtype=np.float32).reshape(200, 170)
    copy, made = copied(array, lambda x: fc.permute_dims(x, (1, 0)))
    assert copy.groups(1000) == 3 * 4
    np.testing.assert_array_equal(made, array.T)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: fc.permute_dims(x[:20], (1, 0)),
        lambda x: x[:, ::2],
        lambda x: fc.permute_dims(fc.reshape(x, (10, 10, 100)), (2, 0, 1)),
    ],
    ids=["few rows", "apart", "three axes"],
)
def test_other_views_are_copied_number_by_number(view: Any) -> None:
    array = np.arange(10_000, dtype=np.float32).reshape(100, 100)
    copy, made = copied(array, view)
    assert not copy.is_turned
    np.testing.assert_array_equal(made, np.asarray(view(fc.constant(array)).resolve(progress=False)))
