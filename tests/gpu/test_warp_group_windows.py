"""Convolutions of half formats by four sub-groups together: emulated everywhere, and on Hopper where there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute import ir
from flowcompute.elements.axes import PAD
from flowcompute.elements.element import Element
from flowcompute.elements.math import MATMUL
from flowcompute.gpu.render import MARK
from flowcompute.graph import build_graph
from flowcompute.lower.flat import TRANSPOSE
from flowcompute.lower.matmul import WARP_GROUP_MATMUL, WARP_GROUP_WINDOWS
from flowcompute.lower.matmul.tensor_cores.warp_group_windows import COLUMNS, WIDE, Patches, patches_of
from flowcompute.rewrite import multiply_halves
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import HOPPER
from tests.gpu.emulator import emulate
from tests.gpu.tensor_devices import compiles_without_assembly, plan_on_paper
from tests.gpu.test_warp_group_products import BFLOAT16, hopper, numbers, relative

BOUNDS = {np.dtype("f2"): 2e-3, BFLOAT16: 1.6e-2}


def kernels_of(plan: Plan) -> list[ir.Kernel]:
    return [step.kernel for step in plan.steps if isinstance(step, RegionStep) and step.kernel is not None]


def emulated(root: Element, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The value of one kernel that convolves a stream `x`, with the weights as its plan has them stored."""
    plan = plan_on_paper(root, capabilities=HOPPER)
    *before, kernel = kernels_of(plan)
    assert kernel.form == WARP_GROUP_WINDOWS.name
    assert len(before) == 1, "the images are padded, channels last"
    arrays = {}
    for argument in kernel.arguments:
        node = plan.graph.nodes[argument.value]
        if argument.kind == "output":
            arrays[node.id] = np.empty((len(x), *node.spec.shape), node.spec.dtype)
        elif argument.kind == "input" and node.op is PAD:
            widths = [(0, 0), *node.attrs["widths"]]
            arrays[node.id] = np.pad(np.moveaxis(x, 1, -1), widths)
        elif argument.kind == "input" and node.spec.shape == (len(weights), weights[0].size):
            arrays[node.id] = np.moveaxis(weights, 1, -1).reshape(node.spec.shape)
        elif argument.kind == "input":
            arrays[node.id] = node.element.value  # type: ignore[attr-defined]
    ((value, made),) = emulate(kernel, arrays, len(x) * kernel.units, 3).items()
    return made.reshape(len(x), *plan.graph.nodes[value].spec.shape)


def convolved(x: Any, weights: np.ndarray, how: dict[str, Any], bias: Any = None) -> Element:
    return (fc.nn.conv2d if weights.ndim == 4 else fc.nn.conv1d)(x, fc.constant(weights), bias, **how)


def exact(x: np.ndarray, weights: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    made = convolved(fc.source(x.astype("f8")), weights.astype("f8"), how)
    return np.asarray(made.resolve(device="numpy", progress=False))


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    # what it is: images, weights, arguments
    "rows of 64": ((2, 64, 3, 64), (128, 64, 3, 3), {"padding": 1}),
    "rows of two patches, odd channels": ((1, 72, 3, 72), (20, 72, 3, 3), {"padding": 1}),
    "small images share a tile": ((5, 16, 8, 8), (24, 16, 3, 3), {"padding": 1}),
    "images of 7 x 7": ((6, 16, 7, 7), (70, 16, 3, 3), {"padding": 1}),
    "tiles of 7 steps of 32 columns": ((1, 16, 5, 56), (64, 16, 3, 3), {"padding": 1}),
    "no padding, odd width of results": ((3, 8, 9, 13), (16, 8, 3, 2), {}),
    "uneven padding, dilated": ((2, 8, 10, 16), (130, 8, 2, 3), {"padding": ((2, 0), (1, 3)), "dilation": (1, 2)}),
    "1 x 1": ((2, 64, 4, 16), (128, 64, 1, 1), {}),
    "one axis": ((3, 16, 40), (16, 16, 5), {"padding": 2}),
}


def drawn(name: str, dtype: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    images, kernel, how = CONVOLUTIONS[name]
    return numbers(*images, dtype=dtype), numbers(*kernel, dtype=dtype, seed=1), how


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_patches_are_multiplied_where_they_were_copied(name: str, dtype: np.dtype) -> None:
    x, weights, how = drawn(name, dtype)
    made = emulated(convolved(fc.source(x, name="x"), weights, how), x, weights)
    assert made.dtype == dtype
    assert relative(made, exact(x, weights, how)) < BOUNDS[dtype]


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_images_whose_windows_are_pixels_are_multiplied_as_they_are(dtype: np.dtype) -> None:
    x, weights = numbers(3, 72, 12, 24, dtype=dtype), numbers(136, 72, 1, 1, dtype=dtype, seed=1)
    root = fc.maximum(convolved(fc.source(x, name="x"), weights, {}), 0)
    plan = plan_on_paper(root, capabilities=HOPPER)
    (kernel,) = kernels_of(plan)
    assert kernel.form == WARP_GROUP_MATMUL.name
    arrays = {
        node.id: weights.reshape(136, 72) if node.spec.shape == (136, 72) else x
        for node in (plan.graph.nodes[one.value] for one in kernel.arguments if one.kind == "input")
        if node.spec.dtype == dtype
    }
    arrays |= {
        one.value: plan.graph.nodes[one.value].element.value  # type: ignore[attr-defined]
        for one in kernel.arguments
        if one.kind in ("input", "scalar") and one.value not in arrays
    }
    (output,) = (one.value for one in kernel.arguments if one.kind == "output")
    arrays[output] = np.empty((3, 136, 12, 24), dtype)
    made = emulate(kernel, arrays, 3 * kernel.units, 3)[output].reshape(arrays[output].shape)
    assert relative(made, np.maximum(exact(x, weights, {}), 0)) < BOUNDS[dtype]


@pytest.mark.parametrize(
    ("images", "weights", "how"),
    [
        ((3, 72, 12, 25), (136, 72, 1, 1), {}),
        ((3, 72, 12, 24), (136, 72, 1, 1), {"padding": 1}),
        ((3, 72, 12, 24), (120, 72, 1, 1), {}),
        ((3, 72, 8, 8), (136, 72, 1, 1), {}),
    ],
    ids=["odd pixels", "padding", "few outputs", "few pixels"],
)
def test_other_images_of_pixels_are_turned_around(images: Any, weights: Any, how: Any) -> None:
    root = convolved(fc.source(numbers(*images), name="x"), numbers(*weights), how)
    copy, product = kernels_of(plan_on_paper(root, capabilities=HOPPER))
    assert copy.form == TRANSPOSE.name
    # Channels are along k then, and pixels are its rows.
    assert product.form in (WARP_GROUP_MATMUL.name, WARP_GROUP_WINDOWS.name)


@pytest.mark.parametrize(
    ("places", "patches"),
    [
        ((56, 56), (4, 56, 1)),
        ((64, 64), (4, 64, 1)),
        ((32, 32), (8, 32, 1)),
        ((28, 28), (4, 28, 2)),
        ((7, 7), (7, 8, 4)),
        ((1, 20), (1, 24, 8)),
    ],
)
def test_patches_cover_a_result_with_few_columns(places: tuple[int, int], patches: tuple[int, int, int]) -> None:
    assert patches_of(places, 32) == Patches(*patches)


@pytest.mark.parametrize("height", [1, 3, 13, 200])
def test_any_result_has_patches_that_copies_bring(height: int) -> None:
    for width in range(1, 300):
        one = patches_of((height, width), 32)
        assert not one.pixels % 8
        assert not one.pixels * one.count % 32
        assert one.pixels * one.count <= COLUMNS
        assert one.columns >= min(width, WIDE)


def test_little_local_memory_leaves_convolutions_to_other_forms() -> None:
    plan = plan_on_paper(fc.nn.conv2d(IMAGES, WEIGHTS, padding=1), capabilities=replace(HOPPER, local_bytes=64 << 10))
    assert WARP_GROUP_WINDOWS.name not in {kernel.form for kernel in kernels_of(plan)}


def test_what_follows_is_computed_by_the_same_kernel() -> None:
    x, weights, how = drawn("small images share a tile", np.dtype("f2"))
    bias = numbers(len(weights), seed=2)
    root = fc.maximum(convolved(fc.source(x, name="x"), weights, how, fc.constant(bias)), 0)
    wanted = np.maximum(exact(x, weights, how) + bias.astype("f8")[:, None, None], 0)
    assert relative(emulated(root, x, weights), wanted) < 2e-3


IMAGES = fc.source(numbers(2, 16, 8, 16), name="x")
WEIGHTS = fc.constant(numbers(16, 16, 3, 3))
OTHERS = {
    "a stride": lambda: fc.nn.conv2d(IMAGES, WEIGHTS, stride=2, padding=1),
    "groups": lambda: fc.nn.conv2d(IMAGES, fc.constant(numbers(32, 8, 3, 3)), groups=2),
    "odd channels": lambda: fc.nn.conv2d(IMAGES[:, :12], fc.constant(numbers(16, 12, 3, 3))),
    "few channels of results": lambda: fc.nn.conv2d(IMAGES, fc.constant(numbers(8, 16, 3, 3))),
    "sums that stay float32": lambda: fc.nn.conv2d(IMAGES, WEIGHTS, dtype="float32"),
    "three axes": lambda: fc.nn.conv3d(fc.source(numbers(2, 16, 4, 8, 16)), fc.constant(numbers(16, 16, 1, 3, 3))),
    "resident images": lambda: fc.nn.conv2d(fc.constant(numbers(2, 16, 8, 16)), WEIGHTS),
    "float32": lambda: fc.nn.conv2d(fc.astype(IMAGES, "float32"), WEIGHTS),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_have_other_forms(name: str) -> None:
    forms = {kernel.form for kernel in kernels_of(plan_on_paper(OTHERS[name](), capabilities=HOPPER))}
    assert "tiled matmul" in forms
    assert WARP_GROUP_WINDOWS.name not in forms


def test_names_stay_and_padded_images_are_shared() -> None:
    both = [
        fc.nn.conv2d(IMAGES, WEIGHTS, padding=1),
        fc.nn.conv2d(IMAGES, fc.constant(numbers(16, 16, 3, 3)), padding=1),
    ]
    asked = build_graph([fc.to_array().bind(one) for one in both])
    graph = multiply_halves(asked, HOPPER)
    names = [node.name for node in graph.nodes]
    assert len(names) == len(set(names))
    assert [graph.nodes[i].name for i in graph.roots] == [asked.nodes[i].name for i in asked.roots]
    assert {node.name for node in asked.nodes if node.op is MATMUL} <= {*names}
    assert sum(node.op is PAD for node in graph.nodes) == sum(node.op is PAD for node in asked.nodes)


def test_the_text_is_opencl_beside_its_assembly() -> None:
    *_, kernel = plan_on_paper(fc.nn.conv2d(IMAGES, WEIGHTS, padding=1), capabilities=HOPPER).kernels
    assert compiles_without_assembly(kernel.source)
    assert kernel.source.count(MARK) > 10


# -- on Hopper -------------------------------------------------------------------------------------------


LARGE: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "large": ((9, 200, 57, 56), (136, 200, 3, 3), {"padding": 1}),
    "pixels of whole images": ((7, 200, 28, 30), (136, 200, 1, 1), {}),
    "small images": ((301, 64, 7, 8), (64, 64, 3, 3), {"padding": 1}),
}


@pytest.mark.parametrize("name", [*CONVOLUTIONS, *LARGE])
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_hopper_gives_the_same_for_any_batch(name: str, dtype: np.dtype) -> None:
    device = hopper()
    images, kernel, how = {**CONVOLUTIONS, **LARGE}[name]
    x, weights = numbers(*images, dtype=dtype), numbers(*kernel, dtype=dtype, seed=1)
    root = convolved(fc.source(x, name="x"), weights, how)
    made = np.asarray(fc.resolve(root, device=device, progress=False))
    assert relative(made, exact(x, weights, how)) < BOUNDS[dtype]
    again = fc.resolve(root, device=device, progress=False, strategy=fc.Strategy(batch_bytes=x[0].nbytes))
    assert np.array_equal(made, again), "no batch changes a bit"
