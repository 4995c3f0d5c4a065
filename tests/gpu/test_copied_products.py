"""Products of float32 in large tiles that are copied to local memory: emulated everywhere, and on a GPU that has room."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.lower.matmul import COPIED_MATMUL, TILED_MATMUL
from flowcompute.schedule.steps import RegionStep
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper, real_device
from tests.gpu.test_products import numbers, same

SMALL = fc.Strategy(tile_rows=128, tile_columns=128)
"""Tiles of another size, which the form leaves to the one beside it."""

Made = tuple[Element, np.ndarray]


def layer() -> Made:
    x = numbers((150, 520))
    return fc.maximum(fc.source(x, name="x") @ numbers((520, 300)) + numbers((300,)), 0), x


def right_factor_along_k() -> Made:
    x = numbers((129, 40))
    return fc.source(x, name="x") @ fc.constant(numbers((260, 40))).T, x


def stack_of_turned_matrices() -> Made:
    x = numbers((2, 3, 32, 132))
    return fc.matrix_transpose(fc.source(x, name="x")) @ fc.constant(numbers((3, 32, 256))), x


def odd_rows() -> Made:
    x = numbers((1, 2, 64, 129))
    return fc.matrix_transpose(fc.source(x, name="x")) @ fc.constant(numbers((2, 64, 256))), x


PRODUCTS: dict[str, Callable[[], Made]] = {
    "two panels, an epilogue, tiles that overlap": layer,
    "the right factor along k": right_factor_along_k,
    "stacks whose left factor lies across k": stack_of_turned_matrices,
    "neighbours that begin anywhere": odd_rows,
}


def form_of(root: Element, strategy: fc.Strategy | None = None) -> str:
    (step,) = (step for step in plan_on_paper(root, strategy=strategy).steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    return step.kernel.form


@pytest.mark.parametrize("name", PRODUCTS)
def test_large_tiles_have_the_bits_of_other_devices(name: str) -> None:
    root, x = PRODUCTS[name]()
    assert form_of(root) == COPIED_MATMUL.name
    assert form_of(root, SMALL) == TILED_MATMUL.name
    assert same(emulated(root, {"x": x}), np.asarray(fc.resolve(root, device="cpu")))


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(None, 40, 252), (None, 40, 258), (None, 24, 256), (None, 41, 256), (100, 40, 256)]
)
def test_small_and_odd_products_keep_smaller_tiles(rows: int | None, inner: int, columns: int) -> None:
    x = fc.source(numbers((4, rows, inner)) if rows else numbers((300, inner)))
    y = fc.source(numbers((4, inner, columns))) if rows else fc.constant(numbers((inner, columns)))
    assert form_of(x @ y) == TILED_MATMUL.name


def test_few_rows_are_left_to_smaller_tiles() -> None:
    root, _ = layer()
    (step,) = (step for step in plan_on_paper(root).steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    assert [step.kernel.of_items(rows).work_group for rows in (1, 128)] == [256, 256]
    assert step.kernel.of_items(128).tile == (128, 3)
    assert step.kernel.of_items(129).tile == (128, 2)


@pytest.mark.compiles
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_text_compiles(name: str) -> None:
    (kernel,) = (kernel for kernel in plan_on_paper(PRODUCTS[name]()[0]).kernels)
    assert compiles_without_assembly(kernel.source)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_device_has_the_bits_of_smaller_tiles(name: str) -> None:
    root, _ = PRODUCTS[name]()
    device = real_device()
    made, other = (fc.resolve(root, device=device, strategy=one) for one in (fc.Strategy(), SMALL))
    assert same(np.asarray(made), np.asarray(other))
