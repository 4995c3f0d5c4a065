"""Views and windows that meet streams of another clock: what enters that clock as it is was copied out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import flowcompute as fc
from flowcompute.graph.graph import build_graph
from flowcompute.ir.access import Storage, is_dense, storage
from tests.gpu.shapes import resolve_on_gpu

X = np.arange(40, dtype=np.float32).reshape(20, 2) ** 2
ODD = np.arange(20) % 2 == 1


def smooth(column: Any) -> Any:
    return fc.window(column, 3, pad="edge").mean(axis=1)


def numpy_smooth(column: np.ndarray) -> np.ndarray:
    return sliding_window_view(np.pad(column, 1, mode="edge"), 3).mean(axis=1, dtype=np.float32)


def pairs(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(sliding_window_view(np.concatenate([x, x[-1:]]), 2, axis=0), -1, 1)


MEETINGS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "a column and its smooth form": (lambda x: x[:, 1] - smooth(x[:, 1]), X[:, 1] - numpy_smooth(X[:, 1])),
    "a row backwards": (
        lambda x: x[:, ::-1] * fc.window(x, 2, pad="edge").sum(axis=1),
        X[:, ::-1] * pairs(X).sum(axis=1),
    ),
    "windows and windows of them": (
        lambda x: (pair := fc.window(x[:, 0], 2, pad="edge")) + fc.window(pair, 2, pad="edge").sum(axis=1),
        pairs(X[:, 0]) + pairs(pairs(X[:, 0])).sum(axis=1),
    ),
    "a view of windows": (
        lambda x: (later := fc.window(x[:, 0], 2, pad="edge")[:, 1]) - smooth(later),
        pairs(X[:, 0])[:, 1] - numpy_smooth(pairs(X[:, 0])[:, 1]),
    ),
    "windows end to end": (
        lambda x: fc.concat([fc.window(x, 2, pad="edge")[:, 1], x]) * x.max(axis=0),
        np.concatenate([pairs(X)[:, 1], X]) * X.max(axis=0),
    ),
    "selected windows": (lambda x: fc.window(x, 2, pad="edge")[ODD][:, 1] + x[ODD], pairs(X)[ODD][:, 1] + X[ODD]),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_views_and_windows_enter_other_clocks(name: str) -> None:
    build, wanted = MEETINGS[name]
    for batch_bytes in (None, 8, 48):
        strategy = fc.Strategy(batch_bytes=batch_bytes)
        for device in ("numpy", "cpu"):
            made = build(fc.source(X)).resolve(device=device, strategy=strategy, progress=False)
            np.testing.assert_allclose(made, wanted, rtol=1e-6, err_msg=f"{device}, batches of {batch_bytes} bytes")
    (made,) = resolve_on_gpu(build(fc.source(X)))
    np.testing.assert_allclose(made, wanted, rtol=1e-6, err_msg="code for GPUs")


def test_what_enters_lies_in_memory_of_its_own() -> None:
    window = fc.window(fc.source(X), 3)
    graph = build_graph([window[:, 1]])
    view = graph.roots[0]
    value = graph.nodes[view].inputs[0]
    assert storage(graph, view) == Storage(value, 2, 2, (1,))
    assert storage(graph, view, {view}) == Storage(view, 0, 2, (1,))
    assert storage(graph, view, {value}) == Storage(value, 2, 6, (1,))
    assert not is_dense(graph, value)
    assert is_dense(graph, value, {value})
