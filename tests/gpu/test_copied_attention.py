"""Attention of float32 in large blocks that are copied to local memory: emulated everywhere, and on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.ir import Array
from flowcompute.lower.attention import COPIED_ATTENTION, TILED_ATTENTION
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import NVIDIA
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, handed_over, plan_on_paper, real_device
from tests.gpu.test_tensor_attention import Case
from tests.support.slow import slow_but

SMALL = fc.Strategy(work_group=128, block_rows=64)
"""Blocks of another size, which the form leaves to the one beside it."""


def exact(queries: int, keys: int, size: int, columns: int, **options: Any) -> Case:
    """A case of float32."""
    return Case(queries, keys, size, columns, **{"heads": 2, "kv_heads": 2, "dtype": "f4", **options})


ONE_HEAD = {"heads": 1, "kv_heads": 1}
"""For cases of two blocks, whose second head would be emulated for nothing: others have several."""
CASES = {
    "a block and a tile": exact(128, 64, 32, 32),
    "two sizes": exact(130, 64, 64, 128),
    "ragged": exact(150, 130, 48, 32),
    "heads that share keys": exact(128, 70, 32, 64, heads=4),
    "a mask": exact(130, 70, 32, 32, masked=True),
    "causal": exact(160, 160, 32, 32, causal=True),
    "causal, fewer keys": exact(200, 100, 32, 32, causal=True),
    "causal, more keys": exact(130, 200, 32, 32, causal=True),
    "a window and a mask": exact(150, 200, 48, 32, causal=True, window=70, masked=True, **ONE_HEAD),
    "no finite numbers": exact(130, 90, 32, 32, odd=True),
    "none where it is unseen": exact(166, 180, 32, 32, causal=True, odd=True, **ONE_HEAD),
}
LARGE = {
    "long, causal": exact(1000, 1100, 128, 128, heads=40, kv_heads=8, causal=True),
    "long, all keys": exact(1024, 1000, 128, 128, heads=20, kv_heads=20),
    "long, shared blocks": exact(1000, 1100, 64, 128, heads=40, kv_heads=8),
    "long, of two sizes": exact(600, 900, 64, 128, heads=40, kv_heads=40),
}


def streams(case: Case) -> dict[str, np.ndarray]:
    return dict(zip("qkv", case.arrays(), strict=True))


def form_of(root: Element, **options: Any) -> str:
    (step,) = plan_on_paper(root, **options).steps
    return step.kernel.form  # type: ignore[union-attr]


def same(left: np.ndarray, right: np.ndarray) -> bool:
    return np.array_equal(left.view("u4"), right.view("u4"))


PARTS_OF_OTHERS = ["ragged", "heads that share keys", "a mask", "causal", "causal, more keys", "no finite numbers"]
"""Cases whose sizes, masks and numbers are those of two others together. The emulator takes ten seconds for one."""


@pytest.mark.parametrize("name", slow_but(["a block and a tile", "causal, fewer keys"], CASES, PARTS_OF_OTHERS))
def test_large_blocks_have_the_bits_of_smaller_ones(name: str) -> None:
    case = CASES[name]
    assert form_of(case.root()) == COPIED_ATTENTION.name
    assert form_of(case.root(), strategy=SMALL) == TILED_ATTENTION.name
    made = emulated(case.root(), streams(case))
    case.check(made)
    assert same(made, emulated(case.root(), streams(case), strategy=SMALL))


@pytest.mark.slow
def test_blocks_that_are_handed_over_have_the_bits_of_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four blocks of four tiles by three work-groups. The last tile has keys that do not exist."""
    case = exact(128, 200, 32, 128, heads=4)
    whole = emulated(case.root(), streams(case))
    with handed_over(monkeypatch, "flowcompute.lower.attention.tiled.copied_attention.LEAST_TILES") as places:
        made = emulated(case.root(), streams(case), few=True)
    assert sorted(places) == [1, 1, 2, 2]
    case.check(made)
    assert same(made, whole)


def test_what_follows_is_computed_by_the_same_kernel() -> None:
    case = CASES["a block and a tile"]
    made = emulated(fc.tanh(case.root() * 2 + 1), streams(case))
    np.testing.assert_allclose(made, np.tanh(emulated(case.root(), streams(case)) * 2 + 1), atol=1e-6)


@pytest.mark.parametrize(
    ("root", "why"),
    [
        (exact(128, 64, 32, 32, heads=1, kv_heads=1).root(), "fewer large blocks"),
        (exact(100, 64, 32, 32).root(), "fewer large blocks"),
        (exact(128, 64, 36, 32).root(), "another size"),
        (exact(128, 64, 144, 32).root(), "another size"),
        (exact(128, 64, 32, 96).root(), "another size"),
        (exact(128, 64, 32, 32, dtype="f2").root(), "no float32"),
        (fc.nn.attention(*(fc.source(a)[..., ::-1] for a in exact(128, 64, 32, 32).arrays())), "side by side"),
        (fc.nn.attention(*(fc.source(a)[..., 1:] for a in exact(128, 64, 33, 33).arrays())), "multiples of four"),
    ],
    ids=["one block", "few queries", "odd queries", "large queries", "odd values", "halves", "backwards", "unaligned"],
)
def test_other_attention_has_other_forms(root: Element, why: str) -> None:
    plan = plan_on_paper(root)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    task = LoweringTask(plan.graph, step.region, KernelStyle(NVIDIA), {}, "k0")
    assert why in str(COPIED_ATTENTION.accepts(task))
    assert step.kernel is not None
    assert step.kernel.form != COPIED_ATTENTION.name


@pytest.mark.parametrize("name", CASES)
def test_devices_with_little_local_memory_take_smaller_blocks(name: str) -> None:
    """Drivers tell 48 KiB of most devices, where a larger kernel does not compile."""
    for local_bytes in (48 << 10, 96 << 10, NVIDIA.local_bytes):
        plan = plan_on_paper(CASES[name].root(), capabilities=replace(NVIDIA, local_bytes=local_bytes))
        (kernel,) = plan.kernels
        arrays = [one for one in kernel.ir.body if isinstance(one, Array)]
        assert arrays
        assert sum(one.size * one.dtype.itemsize for one in arrays) <= local_bytes
        assert local_bytes > 48 << 10 or kernel.ir.form == TILED_ATTENTION.name


@pytest.mark.compiles
def test_texts_are_opencl_beside_their_assembly() -> None:
    case = replace(CASES["a window and a mask"], heads=4, kv_heads=2)
    (kernel,) = plan_on_paper(fc.tanh(case.root()) * 2).kernels
    assert compiles_without_assembly(kernel.source)


@pytest.mark.parametrize("name", CASES | LARGE)
def test_a_device_has_the_bits_of_smaller_blocks(name: str) -> None:
    device, case = real_device(), (CASES | LARGE)[name]
    made, other = (
        np.asarray(fc.resolve(case.root(), device=device, strategy=one, progress=False))
        for one in (fc.Strategy(), SMALL)
    )
    case.check(made)
    assert same(made, other)
