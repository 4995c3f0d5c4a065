"""Attention of half formats by four sub-groups together: emulated everywhere, and on Hopper where there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute import ir
from flowcompute.elements.element import Element
from flowcompute.gpu.render import MARK
from flowcompute.lower import forms
from flowcompute.lower.attention import WARP_GROUP_ATTENTION
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import HOPPER
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper
from tests.gpu.test_tensor_attention import Case
from tests.gpu.test_warp_group_products import hopper

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

CASES = {
    "a block and a tile": Case(128, 64, 64, 64),
    "more tiles than stages": Case(128, 64 * 7, 16, 16),
    "ragged": Case(150, 70, 24, 40),
    "a slab and a half": Case(130, 130, 96, 88),
    "two sizes": Case(130, 200, 128, 48),
    "small results of large queries": Case(200, 100, 48, 128),
    "heads that share keys": Case(140, 70, 32, 16, heads=4, kv_heads=2),
    "bfloat16": Case(150, 130, 16, 16, dtype=BFLOAT16),
    "a mask": Case(130, 70, 16, 16, masked=True),
    "causal": Case(300, 300, 16, 16, causal=True),
    "causal, fewer keys": Case(270, 140, 16, 16, causal=True),
    "causal, more keys": Case(140, 300, 16, 16, causal=True),
    "a window": Case(170, 300, 16, 16, causal=True, window=20),
    "a window and a mask": Case(140, 140, 16, 16, causal=True, window=9, masked=True),
    "no finite numbers": Case(130, 40, 16, 16, odd=True),
    "in turns": Case(130, 64 * 7, 16, 96),
    "in turns, causal": Case(200, 300, 16, 72, causal=True, dtype=BFLOAT16),
    "none where it is unseen": Case(166, 180, 8, 8, causal=True, odd=True),
}
LARGE = {
    "long": Case(1000, 1100, 128, 128, heads=3, causal=True),
    "long, all keys": Case(1024, 2000, 128, 128, heads=8, kv_heads=2),
    "long, of two sizes": Case(300, 900, 64, 128, dtype=BFLOAT16),
}


def streams(case: Case) -> dict[str, np.ndarray]:
    return dict(zip("qkv", case.arrays(), strict=True))


def kernel_of(root: Element) -> ir.Kernel:
    (step,) = plan_on_paper(root, capabilities=HOPPER).steps
    return step.kernel  # type: ignore[no-any-return, union-attr]


@pytest.mark.parametrize("name", CASES)
def test_attention_has_its_definition(name: str) -> None:
    case = CASES[name]
    assert kernel_of(case.root()).form == WARP_GROUP_ATTENTION.name
    case.check(emulated(case.root(), streams(case), capabilities=HOPPER))


@pytest.mark.parametrize("name", ["bfloat16", "two sizes", "causal", "a window", "a window and a mask"])
def test_forms_have_the_same_bits(name: str) -> None:
    case = CASES[name]
    made = emulated(case.root(), streams(case), capabilities=HOPPER)
    assert np.array_equal(made, emulated(case.root(), streams(case)))


def test_infinite_values_before_an_odd_tile_of_a_window_change_no_bit() -> None:
    case = Case(128, 228, 16, 16, causal=True, window=20)
    arrays = streams(case)
    assert -(-(case.keys - 64) // 64) % 2, "keys from 64 on are seen, in an odd number of tiles"
    whole = emulated(case.root(), arrays, capabilities=HOPPER)
    arrays["v"][..., :64, :] = np.inf
    assert np.array_equal(whole, emulated(case.root(), arrays, capabilities=HOPPER))


@pytest.mark.parametrize(("columns", "causal"), [(16, False), (96, True)])
def test_weights_below_the_normal_numbers_count(columns: int, causal: bool) -> None:
    """Compare bfloat16 beside one key whose weight is 1 and whose values are 0, and others whose weights are 0."""
    case = Case(192, 320, 16, columns, dtype=BFLOAT16, causal=causal)
    arrays = streams(case)
    q, k, v = (arrays[name] for name in "qkv")
    q[:], k[:], v[:] = 0, 0, 2.0**100
    q[..., 0], k[..., 0], k[:, :, 20::3, 0] = 32, -11.0625, -30
    k[:, :, 0], v[:, :, 0] = 0, 0
    made = emulated(case.root(), arrays, capabilities=HOPPER)
    assert np.array_equal(made, emulated(case.root(), arrays))
    below = made[:, :, 150:].astype("f8") / 2.0**100
    assert np.all((below > 0) & (below < 320 * 2.0**-126))


def test_what_follows_is_computed_by_the_same_kernel() -> None:
    case = Case(130, 70, 16, 18)
    bias = np.arange(18, dtype="f4")
    made = emulated(fc.tanh(case.root() * 2 + bias), streams(case), capabilities=HOPPER)
    product = emulated(case.root(), streams(case), capabilities=HOPPER).astype("f4")
    np.testing.assert_allclose(made, np.tanh(product * 2 + bias), atol=4e-3)


def test_the_emulator_notices_weights_that_change_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(
        products: tuple[ir.GroupMultiply, ...], behind: tuple[tuple[ir.Stmt, ...], ...]
    ) -> ir.OverlappedMultiply:
        (last,) = products[2].a[:1]  # type: ignore[index]
        changed = ir.Assign(last, ir.ConstantValue(0))
        return ir.OverlappedMultiply(products, (behind[0], (*behind[1], changed), behind[2]))

    monkeypatch.setattr("flowcompute.lower.attention.warp_group_attention.OverlappedMultiply", hurried)
    PLANS.clear()
    KERNELS.clear()
    case = CASES["two sizes"]
    with pytest.raises(AssertionError, match="too early"):
        emulated(case.root(), streams(case), capabilities=HOPPER)
    PLANS.clear()
    KERNELS.clear()


def test_the_emulator_notices_queries_that_are_replaced_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(*fields: Any, behind: int) -> ir.FillStages:
        assert behind
        return ir.FillStages(*fields, behind=0)

    monkeypatch.setattr("flowcompute.lower.attention.warp_group_attention.FillStages", hurried)
    case = CASES["causal"]
    with pytest.raises(AssertionError, match="Not equal"):
        case.check(emulated(case.root(), streams(case), capabilities=HOPPER))


def test_the_emulator_notices_a_turn_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.lower.attention.warp_group_attention.PassTurn", ir.TakeTurn)
    PLANS.clear()
    KERNELS.clear()
    case = CASES["in turns"]
    with pytest.raises(AssertionError, match="takes the turn"):
        emulated(case.root(), streams(case), capabilities=HOPPER)
    PLANS.clear()
    KERNELS.clear()


@pytest.mark.parametrize(
    ("root", "why"),
    [
        (Case(127, 200, 16, 16).root(), "fewer than 128"),
        (Case(128, 200, 136, 16).root(), "more than 128"),
        (Case(128, 200, 16, 136).root(), "more than 128"),
        (Case(128, 200, 20, 16).root(), "multiples of 16 bytes"),
        (Case(128, 200, 16, 16, dtype="f4").root(), "no half format"),
        (fc.nn.attention(*(fc.source(a)[..., ::-1, :] for a in Case(130, 130, 16, 16).arrays())), "opposite order"),
    ],
    ids=["few queries", "large queries", "large values", "badly lying rows", "float32", "backwards"],
)
def test_other_attention_has_other_forms(root: Element, why: str) -> None:
    plan = plan_on_paper(root, capabilities=HOPPER)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    task = LoweringTask(plan.graph, step.region, KernelStyle(HOPPER), {}, "k0")
    assert why in str(WARP_GROUP_ATTENTION.accepts(task))
    assert step.kernel is not None
    assert step.kernel.form != WARP_GROUP_ATTENTION.name


def test_texts_are_opencl_beside_their_assembly() -> None:
    case = replace(CASES["a window and a mask"], heads=2)
    (kernel,) = plan_on_paper(fc.tanh(case.root()) * 2, capabilities=HOPPER).kernels
    assert compiles_without_assembly(kernel.source)
    assert kernel.source.count(MARK) > 10


# -- on a device --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES | LARGE)
def test_hopper_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device, case = hopper(), (CASES | LARGE)[name]
    made = np.asarray(fc.resolve(case.root(), device=device, progress=False))
    case.check(made)
    single = fc.Strategy(batch_bytes=1)
    again = np.asarray(fc.resolve(case.root(), device=device, progress=False, strategy=single))
    assert np.array_equal(made, again, equal_nan=True), "no batch changes a bit"
    monkeypatch.setattr(forms, "FORMS", tuple(form for form in forms.FORMS if form is not WARP_GROUP_ATTENTION))
    PLANS.clear()
    KERNELS.clear()
    other = np.asarray(fc.resolve(case.root(), device=device, progress=False))
    PLANS.clear()
    KERNELS.clear()
    assert np.array_equal(made, other, equal_nan=True), "no form changes a bit"
