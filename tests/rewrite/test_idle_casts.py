"""Casts to the dtype that a value has are left out of steps of trainings where they change no bit."""

from __future__ import annotations

from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu import OpenCLBackend
from flowcompute.graph import build_graph
from flowcompute.rewrite import drop_idle_casts
from flowcompute.schedule import planner
from tests.gpu.shapes import gpu_shaped

HALF = ml_dtypes.bfloat16
X = np.random.default_rng(3).standard_normal((5, 4, 6)).astype(np.float32)


def casts(root: Element) -> int:
    graph = drop_idle_casts(build_graph([root]))
    return sum(node.op is not None and node.op.name == "astype" for node in graph.nodes)


def test_casts_that_change_no_bit_are_left_out() -> None:
    x, half = fc.source(X), fc.source(X.astype(HALF))
    assert casts((x + 1).astype(HALF).astype(HALF)) == 1
    assert casts(fc.permute_dims(half + half, (0, 2, 1)).astype(HALF)) == 0
    assert casts(fc.source(X.astype(np.int32)).astype(np.int32) + 1) == 0


def test_casts_that_round_or_change_a_nan_are_kept() -> None:
    x, half = fc.source(X), fc.source(X.astype(HALF))
    assert casts(half.astype(HALF)) == 1
    assert casts(x.astype(HALF).astype(np.float32)) == 2
    assert casts((x + 1).astype(np.float32)) == 1


def test_a_pinned_cast_is_kept() -> None:
    half = fc.source(X.astype(HALF))
    assert casts((half + half).astype(HALF).on("cpu")) == 1


@pytest.mark.compiles
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_steps_have_the_same_bits_without_them(device: str) -> None:
    first = np.random.default_rng(4).standard_normal((24, 3), dtype=np.float32)

    def stepped() -> tuple[bytes, int]:
        w, x = fc.parameter(first, name="w"), fc.source(X)
        with (
            fc.train.Trainer([w], fc.train.sgd(0.1), device=device) as trainer,
            mock.patch.object(planner, "make_plan", wraps=planner.make_plan) as planned,
        ):
            turned = fc.reshape(fc.permute_dims((x * 3).astype(HALF), (0, 2, 1)), (-1, 24)).astype(HALF)
            trainer.step(fc.mean(((turned @ w.astype(HALF)) ** 2).sum(axis=1)))
            plan: Any = planned.call_args.args[0]
            return trainer.values["w"].tobytes(), len(plan.nodes)

    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()) if device == "gpu" else mock.MagicMock():
        made, nodes = stepped()
        with mock.patch.object(planner, "drop_idle_casts", lambda graph: graph):
            wanted, more = stepped()
    assert made == wanted
    assert nodes < more
