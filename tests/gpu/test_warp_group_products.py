"""Products of half formats by four sub-groups together: emulated everywhere, and on Hopper where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute import ir
from flowcompute.elements.element import Element
from flowcompute.gpu.device import all_devices
from flowcompute.gpu.device.retargeting import retargeted
from flowcompute.gpu.render import MARK
from flowcompute.lower import forms
from flowcompute.lower.matmul import WARP_GROUP_MATMUL
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from tests.golden.test_golden import HOPPER
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, handed_over, plan_on_paper, real_device

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def numbers(*shape: int, dtype: Any = "f2", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype("f8")


def turned(array: np.ndarray) -> Element:
    return fc.permute_dims(fc.constant(np.ascontiguousarray(array.T)), (1, 0))


def row_product(
    rows: int, inner: int, columns: int, dtype: Any = "f2", make: Callable[[np.ndarray], Element] = fc.constant
) -> tuple[Element, np.ndarray, np.ndarray]:
    a, b = numbers(rows, inner, dtype=dtype), numbers(inner, columns, dtype=dtype, seed=1)
    return fc.source(a, name="x") @ make(b), a, wide(a) @ wide(b)


def stacked(part: slice) -> tuple[Element, np.ndarray, np.ndarray]:
    a, b = numbers(3, 50, 72), numbers(72, 136, seed=1)
    return fc.source(a, name="x")[:, :, part] @ fc.constant(b[part]), a, wide(a)[:, :, part] @ wide(b[part])


PRODUCTS: dict[str, Callable[[], tuple[Element, np.ndarray, np.ndarray]]] = {
    "a tile": lambda: row_product(128, 64, 128),
    "columns along k": lambda: row_product(128, 64, 128, make=turned),
    "more steps than stages": lambda: row_product(130, 64 * 6 + 8, 128),
    "more steps than stages, columns along k": lambda: row_product(130, 64 * 6 + 8, 136, make=turned),
    "wide tiles": lambda: row_product(200, 72, 264),
    "wide tiles, columns along k": lambda: row_product(200, 72, 264, make=turned),
    "bfloat16": lambda: row_product(140, 200, 144, BFLOAT16),
    "few records": lambda: row_product(3, 80, 128),
    "one number of k beyond a step": lambda: row_product(20, 72, 128),
    "a stack": lambda: stacked(slice(None)),
    "a part of each item": lambda: stacked(slice(8, 72)),
}


def on_hopper(root: Element, array: np.ndarray) -> np.ndarray:
    return emulated(root, {"x": array}, capabilities=HOPPER)


def kernel_of(root: Element) -> ir.Kernel:
    (step,) = plan_on_paper(root, capabilities=HOPPER).steps
    return step.kernel  # type: ignore[no-any-return, union-attr]


@pytest.mark.parametrize("name", PRODUCTS)
def test_boxes_are_multiplied_where_they_were_copied(name: str) -> None:
    root, array, wanted = PRODUCTS[name]()
    assert kernel_of(root).form == WARP_GROUP_MATMUL.name
    np.testing.assert_allclose(wide(on_hopper(root, array)), wanted, rtol=1e-3, atol=1e-3)


def several(name: str, dtype: Any = "f2") -> tuple[Element, dict[str, np.ndarray], np.ndarray]:
    """A product of several matrices, its streams by name, and what it is in float64."""
    x, y = numbers(3, 136, 72, dtype=dtype), numbers(3, 72, 264, dtype=dtype, seed=1)
    a, b = fc.source(x, name="x"), fc.source(y, name="y")
    if name == "along k":
        b = fc.source(np.ascontiguousarray(y.swapaxes(1, 2)), name="y").mT
    elif name == "a stack":
        x, y = numbers(2, 3, 128, 64, dtype=dtype), numbers(2, 3, 64, 128, dtype=dtype, seed=1)
        a, b = fc.source(x, name="x"), fc.source(y, name="y")
    elif name == "one left matrix":
        return fc.constant(x[0]) @ b, {"y": y}, wide(x[0]) @ wide(y)
    elif name == "parts":
        return a[:, :, 8:] @ b[:, :64], {"x": x, "y": y}, wide(x)[:, :, 8:] @ wide(y)[:, :64]
    elif name.startswith("turned"):
        a = fc.source(np.ascontiguousarray(x.swapaxes(1, 2)), name="x").mT
        stored = x.swapaxes(1, 2)
        if name == "turned, along k":
            b = fc.source(np.ascontiguousarray(y.swapaxes(1, 2)), name="y").mT
            return a @ b, {"x": stored.copy(), "y": y.swapaxes(1, 2).copy()}, wide(x) @ wide(y)
        return a @ b, {"x": stored.copy(), "y": y}, wide(x) @ wide(y)
    kept = y.swapaxes(1, 2) if name == "along k" else y
    return a @ b, {"x": x, "y": np.ascontiguousarray(kept)}, wide(x) @ wide(y)


SEVERAL = ("records", "along k", "a stack", "one left matrix", "parts", "turned", "turned, along k")


@pytest.mark.parametrize("name", SEVERAL)
def test_several_matrices_are_multiplied(name: str) -> None:
    root, arrays, wanted = several(name)
    assert kernel_of(root).form == WARP_GROUP_MATMUL.name
    made = emulated(root, arrays, capabilities=HOPPER)
    np.testing.assert_allclose(wide(made), wanted, rtol=1e-3, atol=2e-2)
    assert np.array_equal(made, emulated(root, arrays))


def test_forms_have_the_same_bits() -> None:
    root, array, _ = row_product(140, 300, 136, BFLOAT16)
    assert np.array_equal(on_hopper(root, array), emulated(root, {"x": array}))


@pytest.mark.parametrize("columns", [264, 512])
def test_tiles_that_are_handed_over_have_the_bits_of_whole_ones(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tiles of five steps by three work-groups."""
    root, array, _ = row_product(200, 64 * 5, columns)
    whole = on_hopper(root, array)
    with handed_over(monkeypatch, "flowcompute.lower.matmul.tensor_cores.warp_group_matmul.LEAST_STEPS") as places:
        made = emulated(root, {"x": array}, few=True, capabilities=HOPPER)
    assert sorted(places) == [1, 1, 2, 2]
    assert np.array_equal(made, whole)


@pytest.mark.parametrize(
    ("tiles", "shares"), [(1, False), (5, False), (6, True), (7, True), (8, False), (11, True), (13, False)]
)
def test_tiles_are_shared_where_whole_ones_leave_units_idle(tiles: int, shares: bool) -> None:
    """Of five units: two rounds for six tiles, and three for eleven."""
    device = replace(HOPPER, units=5)
    root = fc.source(numbers(8, 2048), name="x") @ fc.constant(numbers(2048, 128))
    (step,) = plan_on_paper(root, capabilities=device).steps
    kernel = step.kernel  # type: ignore[union-attr]
    launched = kernel.of_items(128 * tiles)
    assert (launched is kernel.of_few) == shares == (launched.shares == 5)


def test_plans_count_what_is_handed_over() -> None:
    """Sums of a tile of 128 x 128 in float32, for each unit."""
    root = fc.source(numbers(8, 2048), name="x") @ fc.constant(numbers(2048, 128))
    plan = plan_on_paper(root, capabilities=replace(HOPPER, units=5, host_memory=False))
    assert dict(plan.memory.device_items)["what work-groups hand over"] == 5 * 128 * 128 * 4


def test_what_follows_is_computed_by_the_same_kernel() -> None:
    product, a, exact = row_product(140, 64, 144, BFLOAT16)
    bias = numbers(144, dtype="f4", seed=2)
    root = fc.tanh(product + bias) * 2
    np.testing.assert_allclose(on_hopper(root, a), np.tanh(exact + bias) * 2, rtol=1e-5, atol=1e-5)


def test_the_emulator_notices_a_wrong_place(monkeypatch: pytest.MonkeyPatch) -> None:
    root, array, wanted = PRODUCTS["more steps than stages"]()
    stage = "flowcompute.lower.matmul.tensor_cores.warp_group_matmul.GroupMultiply"

    def shifted(sums: Any, tiles: str, a: Any, b: Any, *rest: Any, **more: Any) -> ir.GroupMultiply:
        return ir.GroupMultiply(sums, tiles, a, b - 64 * 64, *rest, **more)

    monkeypatch.setattr(stage, shifted)
    PLANS.clear()
    KERNELS.clear()
    made = on_hopper(root, array)
    PLANS.clear()
    KERNELS.clear()
    assert not np.allclose(wide(made), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("root", "why"),
    [
        (fc.source(numbers(200, 64)) @ fc.constant(numbers(64, 120)), "fewer than 128"),
        (fc.source(numbers(200, 60)) @ fc.constant(numbers(60, 128)), "multiples of 16 bytes"),
        (fc.source(numbers(200, 64)) @ fc.constant(numbers(64, 132)), "multiples of 16 bytes"),
        (fc.source(numbers(9, 64, 128)) @ fc.source(numbers(9, 128, 128)), "several matrices"),
        (fc.source(numbers(200, 128))[:, ::2] @ fc.constant(numbers(64, 128)), "no neighbours"),
        (fc.tanh(fc.constant(numbers(64, 64))) @ fc.constant(numbers(64, 128)), "fewer than 128"),
        (fc.source(numbers(200, 64, dtype="f4")) @ fc.constant(numbers(64, 128, dtype="f4")), "no half format"),
    ],
    ids=["few columns", "badly lying rows", "badly lying columns", "matrices", "strides", "few rows", "float32"],
)
def test_other_products_have_other_forms(root: Element, why: str) -> None:
    plan = plan_on_paper(root, capabilities=HOPPER)
    assert all(step.kernel is None or step.kernel.form != WARP_GROUP_MATMUL.name for step in plan.steps)  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [fc.constant, turned], ids=["across k", "along k"])
def test_texts_are_opencl_beside_their_assembly(make: Callable[[np.ndarray], Element]) -> None:
    product, *_ = row_product(200, 72, 264, make=make)
    (kernel,) = plan_on_paper(fc.tanh(product) * 2, capabilities=HOPPER).kernels
    assert compiles_without_assembly(kernel.source)
    assert kernel.source.count(MARK) > 10


def test_instructions_stand_alone_in_their_lines() -> None:
    """What is behind the mark is one line of the text, so that nothing else becomes a comment."""
    product, *_ = row_product(200, 72, 264)
    (kernel,) = plan_on_paper(product, capabilities=HOPPER).kernels
    for line in kernel.source.splitlines():
        if MARK in line:
            _, instruction = line.split(MARK)
            assert instruction.split('"')[0].rstrip().endswith((";", "}")), line
            assert "\\n" not in instruction


def test_only_ptx_for_hopper_is_retargeted() -> None:
    text = f".version 9.0\n.target sm_90, texmode_independent\n{{\n\t{MARK}wgmma.fence.sync.aligned;\n}}\0".encode()
    made = retargeted(text)
    assert made == b".version 9.0\n.target sm_90a, texmode_independent\n{\n\twgmma.fence.sync.aligned;\n}\0"
    for other in (b"\x7fELF", text.replace(b"sm_90", b"sm_100"), text.replace(b"sm_90", b"sm_90a"), text + text):
        assert retargeted(other) is None


# -- on a device --------------------------------------------------------------------------------------


def hopper() -> str:
    """Return what to give as `device=`; skip the test where no device has groups of sub-groups."""
    device = real_device()
    gpus = [one for one in all_devices() if one.kind == "gpu"]
    if not gpus[int(device.partition(":")[2])].has_warp_groups():
        pytest.skip("needs a GPU of compute capability 9.0 with NVIDIA's OpenCL driver")
    return device


def relative(made: Any, wanted: np.ndarray) -> float:
    return float(np.abs(np.asarray(made).astype("f8") - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("name", PRODUCTS)
def test_hopper_gives_the_same(name: str) -> None:
    device = hopper()
    root, _, wanted = PRODUCTS[name]()
    assert relative(fc.resolve(root, device=device, progress=False), wanted) < 1e-3


@pytest.mark.parametrize("make", [fc.constant, turned], ids=["across k", "along k"])
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16], ids=str)
@pytest.mark.parametrize("shape", [(1000, 704, 520), (1023, 1032, 1024), (4100, 64, 256), (5, 5000, 256)], ids=str)
def test_bits_are_those_of_single_sub_groups(
    shape: tuple[int, int, int], dtype: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = hopper()
    root, a, exact = row_product(*shape, dtype, make)
    made = np.asarray(fc.resolve(root, device=device, progress=False))
    assert relative(made, exact) < (1e-3 if made.dtype == np.float16 else 1e-5)
    again = fc.resolve(root, device=device, progress=False, strategy=fc.Strategy(batch_bytes=a.nbytes // 5))
    assert np.array_equal(made, again), "no batch changes a bit"
    monkeypatch.setattr(forms, "FORMS", tuple(form for form in forms.FORMS if form is not WARP_GROUP_MATMUL))
    PLANS.clear()
    KERNELS.clear()
    other = fc.resolve(root, device=device, progress=False)
    PLANS.clear()
    KERNELS.clear()
    assert np.array_equal(made, other), "no form changes a bit"


def test_what_is_not_finite_goes_through() -> None:
    device = hopper()
    a, b = numbers(300, 128), numbers(128, 128, seed=1)
    a[7, 3], a[200, 100] = np.inf, np.nan
    made = np.asarray(fc.resolve(fc.source(a, name="x") @ fc.constant(b), device=device, progress=False))
    with np.errstate(all="ignore"):
        wanted = wide(a) @ wide(b)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(made), np.isinf(wanted))


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16], ids=str)
def test_hopper_gives_the_same_for_several_matrices(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = hopper()
    root, _, exact = several(name, dtype)
    made = np.asarray(fc.resolve(root, device=device, progress=False))
    assert relative(made, exact) < (1e-3 if made.dtype == np.float16 else 1e-5)
    assert np.array_equal(made, fc.resolve(root, device=device, progress=False, strategy=fc.Strategy(batch_bytes=1)))
    monkeypatch.setattr(forms, "FORMS", tuple(form for form in forms.FORMS if form is not WARP_GROUP_MATMUL))
    PLANS.clear()
    KERNELS.clear()
    other = fc.resolve(root, device=device, progress=False)
    PLANS.clear()
    KERNELS.clear()
    assert np.array_equal(made, other), "no form changes a bit"
