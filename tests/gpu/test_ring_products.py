"""Products of one row by rings of sub-groups: emulated, with copies that arrive late, and on a GPU where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.compute import Constant
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import NVIDIA
from tests.gpu.emulator import emulate
from tests.gpu.tensor_devices import compiles_without_assembly, plan_on_paper, real_device
from tests.gpu.test_dequantized_products import LANES, RUN, few_bits, in_order, weights
from tests.quantized.blocks import any_bytes, assert_bits, meant, sizes

ONE_UNIT = replace(NVIDIA, units=1)
"""A device of one compute unit, which a few work-groups fill."""
# One chunk; fewer than a ring has stages; several tiles, the last of which lacks columns; two panels; and a ring of
# three stages where a device has one compute unit.
SHAPES = [("Q8_0", 16, 512), ("Q4_0", 3, 1024), ("Q5_0", 37, 512), ("Q8_0", 5, RUN * LANES + 1536), ("Q4_0", 270, 2560)]


def emulated_rows(x: np.ndarray, w: fc.Element) -> np.ndarray:
    """Each of these rows times weights, by the kernel of one row."""
    return emulated(x, lambda rows: rows @ w.T)[1]


def emulated(x: np.ndarray, make: Callable[[fc.Element], fc.Element]) -> tuple[Kernel, np.ndarray]:
    """The kernel of one row that makes something of rows, and what it makes of each of these."""
    plan = plan_on_paper(make(fc.source(x)), capabilities=ONE_UNIT)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    kernel = step.kernel.of_items(1)
    nodes = plan.graph.nodes
    arrays = {}
    for one in kernel.arguments:
        element, shape = nodes[one.value].element, nodes[one.value].spec.shape
        given = element.value if isinstance(element, Constant) else x
        arrays[one.value] = np.zeros((len(x), *shape), "f4") if one.kind == "output" else given.view(one.dtype)
    made = emulate(kernel, arrays, len(x), 2)
    value = nodes[plan.graph.roots[0]].inputs[0]
    return kernel, made[value].reshape(len(x), *nodes[value].spec.shape)


@pytest.mark.parametrize(("name", "columns", "inner"), SHAPES)
def test_rings_add_in_the_order_of_all_kernels(name: str, columns: int, inner: int) -> None:
    w, numbers = weights(name, columns, inner)
    x = few_bits(2, inner)
    assert_bits(emulated_rows(x, w), in_order(x, numbers))


def odd_scales(name: str, inner: int) -> tuple[Any, np.ndarray]:
    """Blocks of which each row has one scale, and the numbers."""
    numbers, size = sizes(name)
    scales = [0.0, -0.0, 6e-8, -6e-8, 6e-5, -1.0, 65504.0, np.inf, -np.inf, np.nan, 1.0]
    raw = any_bytes(name, len(scales), inner // numbers).reshape(len(scales), -1, size)
    raw[..., :2] = np.array(scales, "<f2").view(np.uint8).reshape(-1, 1, 2)
    # Numbers of one sign, and those of Q4_0 that are all zero.
    raw[[0, 1, 7, 8], :, 2:], raw[-1, :, 2:] = 0x7F if name == "Q8_0" else 0xFF, 0x88
    raw = raw.reshape(len(scales), -1)
    return fc.dequantize(fc.constant(raw), name), meant(raw, name)


@pytest.mark.parametrize("name", ["Q4_0", "Q5_0", "Q8_0"])
def test_zeros_keep_their_sign_and_infinite_scales_stay(name: str) -> None:
    w, numbers = odd_scales(name, 1024)
    rows = [
        few_bits(1, 1024)[0],
        np.full(1024, -0.0),
        np.full(1024, 0.0),
        np.full(1024, -1.0),
        np.full(1024, -(2.0**-149)),
    ]
    rows.append(np.where(np.arange(1024) == 700, np.inf, 1.0))
    x = np.array(rows, "f4")
    with np.errstate(all="ignore"):
        wanted = in_order(x, numbers)
    assert np.isinf(wanted).any()
    assert np.signbit(wanted[wanted == 0]).any()
    assert_bits(*(np.where(np.isnan(each), np.float32(np.nan), each) for each in (emulated_rows(x, w), wanted)))


@pytest.mark.parametrize("odd", [False, True], ids=["tame", "odd scales"])
@pytest.mark.parametrize("name", ["Q4_0", "Q5_0", "Q8_0"])
def test_two_products_that_follow_each_other_share_a_work_group(name: str, odd: bool) -> None:
    """Each has half of its sub-groups, and both are computed once more where one is zero or NaN."""
    columns, inner = 11 if odd else 37, 1024
    gate, first = odd_scales(name, inner) if odd else weights(name, columns, inner)
    up, second = weights(name, columns, inner, seed=1)
    x = np.stack([few_bits(1, inner)[0], np.full(inner, -0.0), np.full(inner, -1.0)]).astype("f4")
    with np.errstate(all="ignore"):
        wanted = in_order(x, first) * in_order(x, second)
        made = [
            emulated(x, lambda rows: (rows @ gate.T) * (rows @ up.T)),
            emulated(x, lambda rows: (rows @ up.T) * (rows @ gate.T)),
        ]
    for kernel, rows in made:
        assert_bits(*(np.where(np.isnan(each), np.float32(np.nan), each) for each in (rows, wanted)))
        assert kernel.tile[1] == -(-columns // 16)
        # A ring is filled once, or once more.
        assert repr(kernel.body).count("AwaitCopies") == (1 if name == "Q8_0" else 2)


def test_two_products_may_read_parts_of_one_matrix() -> None:
    both, numbers = weights("Q4_0", 64, 1024)
    x = few_bits(2, 1024)
    kernel, made = emulated(x, lambda rows: (rows @ both[:32].T) * (rows @ both[32:].T))
    wanted = in_order(x, numbers)
    assert_bits(made, wanted[:, :32] * wanted[:, 32:])
    assert repr(kernel.body).count("AwaitCopies") == 2


def single_row(name: str, columns: int, inner: int, capabilities: DeviceCapabilities = NVIDIA) -> Kernel:
    """The kernel of one row on paper, whose weights need no numbers."""
    count, size = sizes(name)
    w = fc.dequantize(fc.constant(np.zeros((columns, inner // count * size), np.uint8)), name)
    plan = plan_on_paper(fc.source(few_bits(1, inner)) @ w.T, capabilities=capabilities)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    return step.kernel.of_items(1)


def stages(kernel: Kernel) -> int:
    """Return the chunks of each ring, 0 where a kernel has none."""
    waits = re.findall(r"AwaitCopies\(pending=([0-9])\)", repr(kernel.body))
    return int(waits[0]) + 2 if waits and "SubGroupBarrier" in repr(kernel.body) else 0


def test_rows_that_fill_local_memory_have_no_rings() -> None:
    """Two work-groups have to fit into the local memory of a unit, and blocks have to come in whole pieces."""
    cases = [("Q8_0", 16384, True), ("Q8_0", 32768, False), ("Q6_K", 1024, False), ("Q8_0", 96, False)]
    for name, inner, rings in cases:
        assert bool(stages(single_row(name, 3, inner))) == rings, (name, inner)


def test_rings_are_shorter_where_all_work_groups_begin_at_once_then() -> None:
    """A unit has room for a few more work-groups then. Where these are enough or too few anyway, rings are longer."""
    for units, shorter in [(1, {256}), (2, {480, 512})]:
        # Fewer columns have narrower tiles.
        for columns in range(128 * units + 32, 641, 32):
            kernel = single_row("Q4_1", columns, 2560, replace(NVIDIA, units=units))
            assert stages(kernel) == (3 if columns in shorter else 4), (units, columns)


def test_rings_of_long_chunks_have_two_stages() -> None:
    """They hold as much as four stages of other chunks, where numbers have less than a byte and columns are many."""
    for name, columns, count in [
        ("Q4_0", 640, 2),
        ("Q5_0", 640, 2),
        ("Q4_0", 32, 4),
        ("Q4_1", 640, 4),
        ("Q8_0", 640, 4),
    ]:
        assert stages(single_row(name, columns, 2560, ONE_UNIT)) == count, (name, columns)


def test_shorter_rings_leave_room_for_two_work_groups_as_well() -> None:
    """All work-groups begin at once, one a unit, but none computes while another begins."""
    many = replace(NVIDIA, units=132)
    assert stages(single_row("Q8_0", 2048, 16384, many)) == 4
    assert stages(single_row("Q8_0", 2048, 50688, many)) == 0


@pytest.mark.compiles
def test_the_text_compiles() -> None:
    assert compiles_without_assembly(program_of(single_row("Q8_0", 37, 1024))[0])


def test_a_gpu_adds_like_cpus() -> None:
    device = real_device()
    for name, columns, inner in SHAPES:
        product = fc.source(few_bits(1, inner)) @ weights(name, columns, inner)[0].T
        assert_bits(product.resolve(device=device), product.resolve(device="cpu"))


def test_a_gpu_multiplies_two_products_like_cpus() -> None:
    device = real_device()
    for name, columns, inner in SHAPES:
        (gate, _), (up, _) = (weights(name, columns, inner, seed) for seed in (1, 2))
        rows = fc.source(few_bits(1, inner))
        made = (rows @ gate.T) * (rows @ up.T)
        assert_bits(made.resolve(device=device), made.resolve(device="cpu"))
