"""Rows follow the product that they are made of in its launch on GPUs, with the bits of a kernel of their own."""

from __future__ import annotations

import dataclasses
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu import OpenCLBackend
from tests.fuse.test_siblings import weights
from tests.gpu.shapes import gpu_shaped, run_on_gpu, twin

WIDE = 1056
"""Numbers of a row: two blocks of the order of sums."""


def rows(records: int, numbers: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(records + seed).standard_normal((records, numbers)).astype(np.float32)


def normed(x: Element) -> Element:
    return fc.nn.rms_norm(x) * fc.constant(np.linspace(0.5, 2, x.shape[-1], dtype=np.float32))


def layer(x: Element, y: Element) -> list[Element]:
    """A product, what is added to it, and its norm; both are read later."""
    made = x @ weights(1, WIDE).T + y
    return [made, normed(made)]


@pytest.mark.parametrize("records", [1, 8, 9, 70])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_norm_follows_its_product(records: int, in_place: bool) -> None:
    x, y = rows(records, 96), rows(records, WIDE, 1)
    backend, whole = gpu_shaped(in_place=in_place), fc.Strategy(batch_bytes=1 << 24)
    run = run_on_gpu(*layer(fc.source(x), fc.source(y)), backend=backend, strategy=whole)
    assert len(run.plan.kernels) == 1
    assert run.launches == (1 if records <= 8 else 2)
    made, rows_made = (np.asarray(value) for value in run.values)
    alone = run_on_gpu(normed(fc.source(made)), backend=backend, strategy=whole)
    assert rows_made.tobytes() == alone.value.tobytes()
    one_by_one = run_on_gpu(*layer(fc.source(x), fc.source(y)), backend=backend, strategy=fc.Strategy(batch_bytes=1))
    assert [value.tobytes() for value in one_by_one.values] == [made.tobytes(), rows_made.tobytes()]
    assert one_by_one.launches == records


def test_a_device_without_fences_takes_a_second_launch() -> None:
    roots = layer(fc.source(rows(3, 96)), fc.source(rows(3, WIDE, 1)))
    device = twin(gpu_shaped().device)
    device.capabilities = dataclasses.replace(device.capabilities, device_fences=False)
    apart, together = run_on_gpu(*roots, backend=OpenCLBackend(device)), run_on_gpu(*roots)
    assert (apart.launches, together.launches) == (2, 1)
    assert [value.tobytes() for value in apart.values] == [value.tobytes() for value in together.values]
    assert "arrived" not in apart.plan.kernels[0].source
    assert any("a second launch of" in str(one) for one in apart.plan.reasons)
    assert not any("the last work-group" in str(one) for one in apart.plan.reasons)


def test_rows_of_siblings_and_of_several_layers() -> None:
    x = fc.source(rows(5, 96))
    made = normed(x @ weights(1, 96).T)
    heads = [made @ weights(2, 48).T, made @ weights(3, 64).T]
    last = normed(x + heads[1] @ weights(4, 96, inner=64).T)
    run = run_on_gpu(*heads, last)
    assert len(run.plan.kernels) == 3
    stored = run_on_gpu(x @ weights(1, 96).T).value
    again = normed(fc.source(np.asarray(stored)))
    apart = [run_on_gpu(again @ weights(2, 48).T).value, run_on_gpu(again @ weights(3, 64).T).value]
    assert [one.tobytes() for one in run.values[:2]] == [one.tobytes() for one in apart]


@pytest.mark.parametrize(
    "made",
    [
        lambda x: [fc.nn.softmax(x @ fc.constant(np.ones((96, 64), np.float32)))],
        lambda x: [normed(fc.reshape(x @ weights(1, 960).T, (-1, 10, 96)))],
        lambda x: [normed(fc.cumulative_sum(x @ weights(1, 96).T, axis=0))],
    ],
    ids=["products of floats", "several rows of one", "another kernel between"],
)
def test_what_stays_apart(made: object) -> None:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        plan = fc.plan(*made(fc.source(rows(5, 96))), device="gpu")  # type: ignore[operator]
    assert len(plan.kernels) >= 2


def test_the_plan_says_who_makes_them() -> None:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        plan = fc.plan(*layer(fc.source(rows(5, 96)), fc.source(rows(5, WIDE))), device="gpu")
    assert any("the last work-group of" in str(one) and "up to 8 records" in str(one) for one in plan.reasons)
