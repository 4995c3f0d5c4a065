"""Kernels of folds on a device: a block's product, sums and casts of its numbers, and the value of an only block.

They are lowered from small graphs of their own, by the forms that every region has: so a block is multiplied by the
same code as any product, in the same panels along k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from flowcompute.elements import Compute, Constant, Kind, cast
from flowcompute.elements.axes import matrix_transpose
from flowcompute.elements.math import add, divide, matmul
from flowcompute.elements.training import GivenStream
from flowcompute.fuse import build_regions
from flowcompute.graph import build_graph
from flowcompute.ir import Kernel
from flowcompute.lower.forms import lower
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.spec import FLOAT64, Spec, Stream
from flowcompute.strategy import KernelKnobs

LARGEST_TILE, SMALL_TILE, NARROW_TILE = 128, 32, 16
"""Sides of tiles of a product: the largest, the smallest that larger ones are cut to, and that of a narrow result."""

MADE = 2
"""What the kernels of this file call their result; operands are 0 and 1."""


@lru_cache(64)
def lower_product(dtype: np.dtype, rows: int, left: int, right: int, style: KernelStyle, blocks: int = 1) -> Kernel:
    """Return the kernel that multiplies each of some blocks: `A.T @ B` of `(rows, left)` and `(rows, right)`."""
    operands = (_given(place, dtype, (rows, numbers)) for place, numbers in enumerate((left, right)))
    one, other = operands
    name, tiled = (
        f"product_{rows}_{left}_{right}_{dtype.name}",
        replace(style, wanted=_tiles(left, right, style, blocks)),
    )
    return _lowered(matmul(matrix_transpose(one), other), name, tiled)


def _tiles(left: int, right: int, style: KernelStyle, blocks: int) -> KernelKnobs:
    """Return the sides of tiles, halved as long as there are fewer tiles than units; those of the form where not.

    A block's product has a small result and a long sum: tiles as large as the result would leave most units idle.
    """
    sides = [min(LARGEST_TILE, max(NARROW_TILE, 1 << (side - 1).bit_length())) for side in (left, right)]
    knobs, units = style.wanted, style.capabilities.units
    while blocks * -(-left // sides[0]) * -(-right // sides[1]) < units and max(sides) > SMALL_TILE:
        longer = sides.index(max(sides))
        sides[longer] //= 2
        knobs = replace(knobs, tile_rows=sides[0], tile_columns=sides[1])
    return knobs


@lru_cache(8)
def lower_sum(style: KernelStyle) -> Kernel:
    """Return the kernel that adds two nodes of a tree, number by number, in float64."""
    return _lowered(add(_given(0, FLOAT64, ()), _given(1, FLOAT64, ())), "sum_of_nodes", style)


@lru_cache(16)
def lower_cast(dtype: np.dtype, result: np.dtype, style: KernelStyle) -> Kernel:
    """Return the kernel that rounds or widens numbers to another dtype."""
    return _lowered(cast(_given(0, dtype, ()), result), f"cast_{dtype.name}_{result.name}", style)


@lru_cache(64)
def lower_end(
    dtype: np.dtype, result: np.dtype, records: int, style: KernelStyle, *, selected: bool
) -> tuple[Kernel, Mapping[int, np.ndarray]]:
    """Return the kernel that makes the value of a sum of its only block: rounded, with a NaN that is canonical.

    Args:
        dtype, result: of the block, and of the value.
        records: by which a mean is divided; 1 for a sum.
        style: of the kernel.
        selected: whether it may be a sum of nothing, which is 0 and not -0.

    Returns:
        The kernel, and by their values the numbers that it takes.
    """
    total: Any = divide(cast(_given(0, dtype, ()), FLOAT64), float(records))
    total = add(total, 0.0) if selected else total
    made = cast(total, result)
    numbers = {node.id: node.element.value for node in build_graph([made]).nodes if isinstance(node.element, Constant)}
    return _lowered(made, f"end_{dtype.name}_{result.name}_{records}_{selected}", style), numbers


def _given(place: int, dtype: np.dtype, shape: tuple[int, ...]) -> GivenStream:
    return GivenStream(place, Spec(dtype, shape, Stream(None)))


def _lowered(made: object, name: str, style: KernelStyle) -> Kernel:
    assert isinstance(made, Compute)
    graph = build_graph([made])
    computed = [node.id for node in graph.nodes if node.kind in (Kind.ELEMENTWISE, Kind.CONTRACT)]
    (region,), _, _ = build_regions(graph, [0] * len(graph.nodes), computed, {graph.roots[0]})
    kernel = lower(graph, region, style, {}, name)
    places = {node.id: node.element.place for node in graph.nodes if isinstance(node.element, GivenStream)}
    assert all(one.kind in ("input", "output", "scalar") for one in kernel.arguments), "it reads arrays and numbers"
    arguments = tuple(
        one if one.kind == "scalar" else replace(one, value=places.get(one.value, MADE)) for one in kernel.arguments
    )
    return replace(kernel, name=name, arguments=arguments, contract=style.precision == "fast")
