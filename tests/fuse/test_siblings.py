"""Products of one left factor share a launch, and keep the bits that each has alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu import OpenCLBackend
from flowcompute.lower.joined import first_groups
from tests.gpu.shapes import gpu_shaped

INNER = 96
BLOCK = {"Q8_0": 34, "Q4_1": 20}
CODE = ["cpu", "gpu"]


def weights(seed: int, outputs: int, kind: str = "Q8_0", inner: int = INNER) -> Element:
    """Blocks of 32 numbers each, whose scales are small and finite."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (outputs, inner // 32, BLOCK[kind]), dtype=np.uint8)
    blocks[..., 1] = blocks[..., 1] & 0x0F | 0x20
    blocks[..., 3] = blocks[..., 3] & 0x0F | 0x20
    return fc.dequantize(fc.constant(blocks.reshape(outputs, -1)), kind)


def rows(records: int) -> np.ndarray:
    return np.random.default_rng(records).standard_normal((records, INNER)).astype(np.float32)


def heads(x: Element) -> list[Element]:
    """Products of several widths and formats, some with operations behind them."""
    q = fc.tanh(x @ weights(1, 80).T)
    k = x @ weights(2, 17, "Q4_1").T + fc.constant(np.arange(17, dtype=np.float32))
    v = x @ weights(3, 16).T
    return [q, k, v]


def gated(x: Element) -> list[Element]:
    gate, up = x @ weights(4, 128).T, x @ weights(5, 128, "Q4_1").T
    return [(fc.nn.silu(gate) * up) @ weights(6, 24, inner=128).T + 1]


def resolved(made: Sequence[Element], shape: str, **options: int) -> list[bytes]:
    strategy = fc.Strategy(**options)
    if shape == "cpu":
        results = fc.resolve(*made, device="cpu", strategy=strategy, progress=False)
    else:
        with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped(in_place=True)):
            results = fc.resolve(*made, device="gpu", strategy=strategy, progress=False)
    return [one.tobytes() for one in (results if isinstance(results, (list, tuple)) else [results])]


def kernels(made: Sequence[Element], shape: str) -> int:
    if shape == "cpu":
        return len(fc.plan(*made, device="cpu").kernels)
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped(in_place=True)):
        return len(fc.plan(*made, device="gpu").kernels)


@pytest.mark.parametrize("shape", CODE)
@pytest.mark.parametrize("records", [1, 5, 70])
def test_products_of_one_factor_have_the_bits_of_each(shape: str, records: int) -> None:
    made = heads(fc.source(rows(records)))
    alone = [resolved([one], shape)[0] for one in made]
    assert resolved(made, shape) == alone
    # One record a batch.
    assert resolved(made, shape, batch_bytes=INNER * 4) == alone
    assert kernels(made, shape) == 1


@pytest.mark.parametrize("shape", CODE)
@pytest.mark.parametrize("records", [1, 40])
def test_what_unites_siblings_is_computed_where_it_is_loaded(shape: str, records: int) -> None:
    x = fc.source(rows(records))
    (made,) = gated(x)
    gate, up = (
        np.frombuffer(one, np.float32)
        for one in resolved([x @ weights(4, 128).T, x @ weights(5, 128, "Q4_1").T], shape)
    )
    stored = fc.nn.silu(fc.source(gate.reshape(-1, 128))) * fc.source(up.reshape(-1, 128))
    united = np.frombuffer(resolved([stored], shape)[0], np.float32).reshape(-1, 128)
    apart = fc.source(united) @ weights(6, 24, inner=128).T + 1
    assert resolved([made], shape) == resolved([apart], shape)
    assert kernels([made], shape) == 2


def dependent(x: Element) -> list[Element]:
    """The second product reads the first one through another step."""
    first = x @ weights(1, 32).T
    moved = fc.nn.softmax(first)
    return [first, x @ weights(2, 32).T * moved]


def elsewhere(x: Element) -> list[Element]:
    return [x @ weights(1, 32).T, (x * 2) @ weights(2, 32).T]


def of_floats(x: Element) -> list[Element]:
    return [x @ fc.constant(np.ones((INNER, 32), np.float32)), x @ fc.constant(np.zeros((INNER, 16), np.float32))]


@pytest.mark.parametrize("made", [dependent, elsewhere, of_floats])
def test_what_stays_apart(made: Callable[[Element], list[Element]]) -> None:
    results = made(fc.source(rows(5)))
    assert kernels(results, "cpu") >= 2
    assert resolved(results, "cpu") == [resolved([one], "cpu")[0] for one in results]


def many_products() -> list[Element]:
    x = fc.source(rows(4))
    return [x @ weights(seed, 16).T for seed in range(14)]


def test_a_kernel_takes_no_more_pointers_than_it_may() -> None:
    # Each has a weight, a result and the rows.
    assert kernels(many_products(), "cpu") == 3


@pytest.mark.compiles
def test_products_that_several_kernels_share_have_the_bits_of_each() -> None:
    made = many_products()
    assert resolved(made, "cpu") == [resolved([one], "cpu")[0] for one in made]


def test_a_discrete_device_joins_what_need_not_pass_through_it() -> None:
    x = fc.source(rows(40))
    made = [x @ weights(1, 640).T, x @ weights(2, 640).T]
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        joined, apart = fc.run(*made, device="gpu"), fc.run(*made, device="gpu", device_memory="168KiB")
    assert len(joined.plan.kernels) == 1
    assert len(apart.plan.kernels) == 2, "their weights take more than three quarters of it"
    for one, other in zip(joined.values, apart.values, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("records", [1, 5, 40])
def test_what_unites_siblings_follows_the_first_on_discrete_gpus(records: int) -> None:
    x = fc.source(rows(records))
    gate, up = x @ weights(4, 130).T, x @ weights(5, 130).T
    other = x @ weights(6, 16, "Q4_1").T
    made = [fc.nn.silu(gate) * up + fc.constant(np.arange(130, dtype=np.float32)), other]
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        run = fc.run(*made, device="gpu")
        apart = fc.run(fc.nn.silu(gate), up, device="gpu").values
        united = fc.source(np.asarray(apart[0])) * fc.source(np.asarray(apart[1])) + fc.constant(
            np.arange(130, dtype=np.float32)
        )
        wanted = fc.run(united, other, device="gpu").values
    assert run.launches == len(run.plan.kernels) == 1
    assert [one.tobytes() for one in run.values] == [one.tobytes() for one in wanted]


@given(st.lists(st.integers(1, 300), min_size=2, max_size=5), st.data())
def test_work_groups_are_shared_by_tiles(tiles: list[int], data: st.DataObject) -> None:
    """One of 192 groups had two of 192 tiles, so that the launch took twice as long."""
    places = [0, *itertools.accumulate(tiles)]
    groups = data.draw(st.integers(len(tiles), 3 * places[-1]))
    begins = [*first_groups(places, groups), groups]
    own = [after - before for before, after in itertools.pairwise(begins)]
    assert begins[0] == 0
    assert min(own) >= 1
    if groups >= places[-1]:
        turns = [-(-count // each) for count, each in zip(tiles, own, strict=True)]
        assert max(turns) == 1


def moved(x: Element) -> Element:
    """Other places of the first product."""
    return fc.flip(x @ weights(1, 32).T, axis=1) * (x @ weights(2, 32).T)


def mixed(x: Element) -> Element:
    """Products of two formats, whose tiles may differ."""
    return fc.tanh(x @ weights(1, 32).T) * (x @ weights(2, 32, "Q4_1").T)


@pytest.mark.parametrize("made", [moved, mixed])
def test_what_does_not_follow(made: Callable[[Element], Element]) -> None:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        assert len(fc.plan(made(fc.source(rows(5))), device="gpu").kernels) == 2
