"""Products of float32 in three terms by four sub-groups together: emulated everywhere, and on Hopper where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.lower import forms
from flowcompute.lower.matmul import TENSOR_MATMUL, WARP_GROUP_TERMS
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import HOPPER
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper
from tests.gpu.test_warp_group_products import hopper, numbers, wide

Made = TypeVar("Made")
BOUND = 1.25 * 2.0**-20
"""Of the sum of |a| |b|: what the parts of factors leave out, beside the error of summation."""


def row_product(rows: int, inner: int, columns: int) -> tuple[Element, np.ndarray, np.ndarray]:
    a, b = numbers(rows, inner, dtype="f4"), numbers(inner, columns, dtype="f4", seed=1)
    return fc.source(a, name="x") @ fc.constant(b), a, b


def in_terms(root: Element, array: np.ndarray, **config: Any) -> np.ndarray:
    return emulated(root, {"x": array}, precision="tf32x3", **config)


def form_of(root: Element, **config: Any) -> str:
    (step,) = plan_on_paper(root, capabilities=HOPPER, **config).steps
    assert isinstance(step, RegionStep)
    assert step.kernel is not None
    return step.kernel.form


PRODUCTS = {
    "a tile": (128, 32, 128),
    "more steps than stages": (130, 32 * 6 + 4, 132),
    "few records": (3, 40, 128),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_parts_are_multiplied_where_they_were_split(name: str) -> None:
    root, a, b = row_product(*PRODUCTS[name])
    assert form_of(root, precision="tf32x3") == WARP_GROUP_TERMS.name
    made = in_terms(root, a, capabilities=HOPPER)
    assert (np.abs(made - wide(a) @ wide(b)) <= BOUND * (np.abs(wide(a)) @ np.abs(wide(b)))).all()
    assert np.array_equal(made, in_terms(root, a)), "no form changes a bit"


def test_a_stack_and_a_part_of_each_item() -> None:
    a, b = numbers(3, 50, 40, dtype="f4"), numbers(40, 136, dtype="f4", seed=1)
    root = fc.source(a, name="x")[:, :, 4:36] @ fc.constant(b[4:36])
    assert form_of(root, precision="tf32x3") == WARP_GROUP_TERMS.name
    made, exact = in_terms(root, a, capabilities=HOPPER), wide(a)[:, :, 4:36] @ wide(b[4:36])
    assert (np.abs(made - exact) <= BOUND * (np.abs(wide(a))[:, :, 4:36] @ np.abs(wide(b[4:36])))).all()


def test_what_follows_is_computed_by_the_same_kernel() -> None:
    product, a, b = row_product(140, 64, 144)
    bias = numbers(144, dtype="f4", seed=2)
    made = in_terms(fc.tanh(product + bias) * 2, a, capabilities=HOPPER)
    np.testing.assert_allclose(made, np.tanh(wide(a) @ wide(b) + bias) * 2, rtol=1e-5, atol=1e-5)


def test_the_emulator_notices_a_stage_that_nobody_split(monkeypatch: pytest.MonkeyPatch) -> None:
    root, a, b = row_product(*PRODUCTS["a tile"])
    monkeypatch.setattr(
        "flowcompute.lower.matmul.tensor_cores.warp_group_terms._ThreeTermLowering._split", lambda *_: ()
    )
    made = with_fresh_plans(lambda: in_terms(root, a, capabilities=HOPPER))
    assert not np.allclose(made, wide(a) @ wide(b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("root", "precision"),
    [
        (row_product(200, 64, 128)[0], "exact"),
        (row_product(200, 64, 120)[0], "tf32x3"),
        (row_product(200, 62, 128)[0], "tf32x3"),
        (row_product(200, 64, 130)[0], "tf32x3"),
        (fc.source(numbers(9, 64, 128, dtype="f4")) @ fc.source(numbers(9, 128, 128, dtype="f4")), "tf32x3"),
    ],
    ids=["exact", "few columns", "badly lying rows", "badly lying columns", "matrices"],
)
def test_other_products_have_other_forms(root: Element, precision: Any) -> None:
    plan = plan_on_paper(root, capabilities=HOPPER, precision=precision)
    names = {step.kernel.form for step in plan.steps if isinstance(step, RegionStep) and step.kernel is not None}
    assert WARP_GROUP_TERMS.name not in names


def test_texts_are_opencl_beside_their_assembly() -> None:
    product, *_ = row_product(200, 72, 132)
    (kernel,) = plan_on_paper(fc.tanh(product) * 2, capabilities=HOPPER, precision="tf32x3").kernels
    assert compiles_without_assembly(kernel.source)
    assert kernel.source.count("wgmma.mma_async") == 2 * 2 * 3, "two parts of two steps of three terms"


def with_fresh_plans(made: Callable[[], Made]) -> Made:
    """What is made while a form or a lowering is another one; kept plans must not know."""
    PLANS.clear()
    KERNELS.clear()
    try:
        return made()
    finally:
        PLANS.clear()
        KERNELS.clear()


# -- on a device --------------------------------------------------------------------------------------


def special(shape: tuple[int, int], kind: str, seed: int = 0) -> np.ndarray:
    made = numbers(*shape, dtype="f4", seed=seed)
    if kind == "positive":
        return np.abs(made)
    if kind == "zeros of both signs":
        return np.where(made < 0, np.float32(-0.0), np.float32(0.0))
    if kind == "tiny and huge":
        return made * np.float32(2.0) ** (np.arange(shape[1]) % 200 - 100).astype("f4")
    if kind == "not finite":
        made[1, 2], made[-1, 3], made[2, 0] = np.inf, -np.inf, np.nan
    return made


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((1000, 704, 520), "normal"),
        ((1023, 1036, 1024), "positive"),
        ((300, 64, 256), "zeros of both signs"),
        ((300, 200, 136), "tiny and huge"),
        ((300, 128, 128), "not finite"),
        ((5, 5000, 256), "normal"),
        ((300, 4, 128), "normal"),
    ],
    ids=str,
)
def test_bits_are_those_of_single_sub_groups(
    shape: tuple[int, int, int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = hopper()
    a, b = special(shape[:2], kind), special(shape[1:], kind, seed=1)
    root = fc.source(a, name="x") @ fc.constant(b)

    def resolved(**options: Any) -> np.ndarray:
        return np.asarray(fc.resolve(root, device=device, precision="tf32x3", progress=False, **options))

    made = resolved()
    again = resolved(strategy=fc.Strategy(batch_bytes=max(1, a.nbytes // 5)))
    assert np.array_equal(made.view("u4"), again.view("u4")), "no batch changes a bit"
    if kind in ("normal", "positive"):
        size = np.abs(wide(a)) @ np.abs(wide(b))
        assert (np.abs(made - wide(a) @ wide(b)) <= 2.0**-19 * size).all()
    assert forms_on(device, root) == {WARP_GROUP_TERMS.name}
    monkeypatch.setattr(forms, "FORMS", tuple(form for form in forms.FORMS if form is not WARP_GROUP_TERMS))
    other, by_single = with_fresh_plans(lambda: (resolved(), forms_on(device, root)))
    assert by_single == {TENSOR_MATMUL.name}
    assert np.array_equal(np.isnan(made), np.isnan(other))
    finite = ~np.isnan(made)
    assert np.array_equal(made[finite].view("u4"), other[finite].view("u4")), "no form changes a bit"


def forms_on(device: str, root: Element) -> set[str]:
    steps = fc.plan(root, device=device, precision="tf32x3").steps
    return {step.kernel.form for step in steps if isinstance(step, RegionStep) and step.kernel is not None}
