"""Values that are filled part by part: what pads surround is joined, to the bits of the sum of pads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu import OpenCLBackend
from flowcompute.graph import Graph, build_graph
from flowcompute.rewrite import join_pads
from flowcompute.schedule import planner
from tests.gpu.shapes import gpu_shaped

X = np.random.default_rng(3).standard_normal((5, 4, 6)).astype(np.float32)
X[:, :, ::2] *= -0.0
X[0, 0, :3] = np.nan, np.inf, -np.inf


def numbers(dtype: Any = np.float32, scale: float = 1) -> Element:
    return fc.source(X.astype(dtype), name=f"x{scale}") * np.array(scale, dtype)


def padded(value: Element, before: int, behind: int, axis: int = 2, **how: Any) -> Any:
    return fc.pad(value, [(before, behind) if one == axis else (0, 0) for one in range(value.ndim)], **how)


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if node.op is not None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("flat", [False, True], ids=["as they are", "reshaped"])
def test_parts_that_fill_a_value_are_joined_to_the_same_bits(dtype: Any, flat: bool) -> None:
    a, b, c = (numbers(dtype, scale) for scale in (1, -3, 5))
    parts = [padded(b, 6, 6), padded(a, 0, 12), padded(c, 12, 0)]
    if flat:
        parts = [fc.reshape(part, (-1, 72)) for part in parts]
    graph = build_graph([(parts[0] + parts[1] + parts[2]) * 1])
    joined = join_pads(graph)
    assert ops(joined).count("concat") == 1
    assert ops(joined).count("add") == 1
    assert "pad" not in ops(joined)
    root = joined.nodes[joined.roots[0]].element
    assert root.spec == graph.nodes[graph.roots[0]].spec
    wanted = np.concatenate([X.astype(dtype) * np.array(scale, dtype) for scale in (1, -3, 5)], axis=2) + dtype(0)
    made = np.asarray((parts[0] + parts[1] + parts[2]).resolve(progress=False)).reshape(wanted.shape)
    assert made.tobytes() == np.where(np.isnan(wanted), dtype(np.nan), wanted).tobytes()


OTHERS: dict[str, Callable[[Element, Element], Any]] = {
    "a gap": lambda a, b: padded(a, 0, 7) + padded(b, 7, 0),
    "an overlap": lambda a, b: padded(a, 0, 5) + padded(b, 5, 0),
    "an end that nothing fills": lambda a, b: padded(a, 0, 7) + padded(b, 6, 1),
    "another filling": lambda a, b: padded(a, 0, 6, constant_values=1) + padded(b, 6, 0),
    "zeros with a sign": lambda a, b: padded(a, 0, 6, constant_values=-0.0) + padded(b, 6, 0, constant_values=-0.0),
    "edges": lambda a, b: padded(a, 0, 6, mode="edge") + padded(b, 6, 0),
    "several axes": lambda a, b: fc.pad(a, [(0, 0), (0, 4), (0, 6)]) + fc.pad(b, [(0, 0), (4, 0), (6, 0)]),
    "different axes": lambda a, b: padded(a[:, :, :4], 0, 4) + fc.reshape(padded(b[:, :, :4], 4, 0, 1), (-1, 4, 8)),
    "something that is no pad": lambda a, b: padded(a, 0, 6) + fc.concat([b, b], axis=2),
    "a difference": lambda a, b: padded(a, 0, 6) - padded(b, 6, 0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_stay(name: str) -> None:
    graph = build_graph([OTHERS[name](numbers(), numbers(scale=2))])
    assert ops(join_pads(graph)) == ops(graph)


@pytest.mark.parametrize("shape", [(2, 12), (3, 8), (4, 6), (6, 4), (8, 3), (12, 2)], ids=str)
def test_parts_of_other_ranks_stay(shape: tuple[int, int]) -> None:
    """One part begins where the other ends, but along another axis of another shape."""
    flat = fc.reshape(numbers(), (-1, 24))
    part = fc.reshape(padded(fc.reshape(flat, (-1, *shape))[:, :, :1], 0, shape[1] - 1), (-1, 24))
    graph = build_graph([part + padded(flat[:, :23], 1, 0, 1)])
    assert ops(graph).count("pad") == 2
    assert ops(join_pads(graph)) == ops(graph)


def test_a_sum_that_somebody_else_reads_stays() -> None:
    a, b, c = (numbers(scale=scale) for scale in (1, 2, 3))
    first = padded(a, 0, 12) + padded(b, 6, 6)
    graph = build_graph([first + padded(c, 12, 0), first * 2])
    assert "concat" not in ops(join_pads(graph))


def loss_of_parts() -> tuple[Element, Element]:
    """Return a parameter, and a loss of queries, keys and values of one product with it."""
    w = fc.parameter(np.random.default_rng(1).standard_normal((6, 9)).astype(np.float32), name="w")
    packed = fc.reshape(fc.source(X[1:]) @ w, (-1, 4, 3, 3))
    q, k, v = (packed[:, :, place] for place in range(3))
    return w, (q * k * v).sum(axis=(1, 2)).mean()


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_steps_join_the_gradients_of_parts_of_a_value(device: str) -> None:
    _, loss = loss_of_parts()
    ((step, *_),) = fc.train.fit(loss, fc.train.sgd(0.1), batch=2).losses.plan(device=device).inner.values()
    assert "pad" not in ops(step.graph)
    assert "concat" in ops(step.graph)


@pytest.mark.compiles
def test_gradients_of_parts_of_a_value_keep_their_bits_on_a_discrete_device() -> None:
    def trained() -> list[bytes]:
        w, loss = loss_of_parts()
        with fc.train.Trainer([w], fc.train.sgd(0.1), device="gpu") as trainer:
            losses = [trainer.step(loss) for _ in range(8)]
            return [np.asarray(losses).tobytes(), trainer.values["w"].tobytes()]

    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        with mock.patch.object(planner, "join_pads", wraps=join_pads) as used:
            made = trained()
        assert any(ops(call.args[0]).count("pad") == 3 for call in used.call_args_list)
        with mock.patch.object(planner, "join_pads", lambda graph: graph):
            assert trained() == made
