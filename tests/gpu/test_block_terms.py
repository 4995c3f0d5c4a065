"""Products with decoded numbers by tensor cores: emulated, and on a GPU where there is one."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.compute import Constant
from flowcompute.elements.quantized import BLOCK_FORMATS, factors_of
from flowcompute.elements.quantized.numpy_decoding import decode
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import NVIDIA
from tests.gpu.emulator import emulate
from tests.gpu.tensor_devices import compiles_without_assembly, plan_on_paper, real_device
from tests.quantized.blocks import assert_bits, meant, sizes, tame

SLICES, STEP, CHUNK = 4, 16, 256
MANY_UNITS = replace(NVIDIA, units=132)
ONE_UNIT = replace(NVIDIA, units=1)
"""A device that columns of two work-groups fill."""
FORMATS = [name for name, one in BLOCK_FORMATS.items() if factors_of(one) is not None]
# Parts of k with fewer chunks than a ring, with more, and none; columns of several work-groups, the last of which lacks
# some; words that begin between two others.
SHAPES = [("Q8_0", 37, 512), ("Q4_0", 70, 4096), ("Q4_0", 3, 2304), ("Q6_K", 20, 1536), ("Q5_0", 5, 128)]


def weights(name: str, columns: int, inner: int, seed: int = 0) -> np.ndarray:
    """Blocks of `columns` rows of `inner` numbers."""
    return tame(name, columns, inner // sizes(name)[0], seed)


def kernel_of(product: Any, rows: int, capabilities: DeviceCapabilities = MANY_UNITS) -> tuple[Any, Kernel]:
    """The plan of a product of rows, and the kernel of so many."""
    plan = plan_on_paper(product, capabilities=capabilities, precision="tf32x3")
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    return plan, step.kernel.of_items(rows)


def emulated(x: np.ndarray, product: Any, rows: int, capabilities: DeviceCapabilities = MANY_UNITS) -> np.ndarray:
    """Return what the kernel of so many rows makes of these."""
    plan, kernel = kernel_of(product, rows, capabilities)
    nodes = plan.graph.nodes
    arrays = {}
    for one in kernel.arguments:
        element, shape = nodes[one.value].element, nodes[one.value].spec.shape
        given = element.value if isinstance(element, Constant) else x
        arrays[one.value] = np.zeros((len(x), *shape), "f4") if one.kind == "output" else given.view(one.dtype)
    value = nodes[plan.graph.roots[0]].inputs[0]
    return emulate(kernel, arrays, len(x), 2)[value].reshape(len(x), *nodes[value].spec.shape)


def product_of(x: np.ndarray, raw: np.ndarray, name: str) -> Any:
    return fc.source(x) @ fc.dequantize(fc.constant(raw), name).T


def drawn(rows: int, inner: int, seed: int = 1) -> np.ndarray:
    """Numbers of all 24 bits and of many sizes."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, inner)) * 2.0 ** rng.integers(-6, 7, (rows, inner))).astype("f4")


def terms_of(x: np.ndarray) -> list[np.ndarray]:
    """The three numbers of bfloat16 whose sum each number is, the greatest first."""
    found, rest = [], x
    for _ in range(3):
        found.append((rest.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32))
        rest = rest - found[-1]
    assert not rest.any()
    return found


def in_order(x: np.ndarray, raw: np.ndarray, name: str) -> np.ndarray:
    """The product, added as `block_terms.py` says."""
    factors = factors_of(BLOCK_FORMATS[name])
    assert factors is not None
    whole, scale = decode(factors.whole, raw).astype("f8"), decode(factors.scale, raw)
    numbers, inner = sizes(name)[0], x.shape[1]
    assert_bits((whole * scale).astype("f4"), meant(raw, name))
    blocks = np.gcd(inner // numbers, max(2, CHUNK // numbers))
    length = -(-inner // numbers // (SLICES * blocks)) * blocks * numbers
    sums = []
    for term in terms_of(x):
        parts = []
        for first in range(0, inner, length):
            own = np.zeros((len(x), len(raw)), "f4")
            for begin in range(first, min(inner, first + length), factors.shared):
                part = np.zeros((len(x), len(raw)), "f4")
                for k in range(begin, begin + factors.shared, STEP):
                    part = (part + term[:, k : k + STEP].astype("f8") @ whole[:, k : k + STEP].T).astype("f4")
                own = (part.astype("f8") * scale[:, begin] + own).astype("f4")
            parts.append(own)
        sums.append(reduce(np.add, parts))
    return np.asarray(sums[2] + sums[1] + sums[0])


@pytest.mark.parametrize(("name", "columns", "inner"), SHAPES)
def test_rows_are_added_in_one_order(name: str, columns: int, inner: int) -> None:
    """One row has the bits that it has among many, on devices of any size."""
    raw = weights(name, columns, inner)
    x = drawn(3, inner)
    product = product_of(x, raw, name)
    wanted = in_order(x, raw, name)
    known = set()
    for capabilities in (MANY_UNITS, ONE_UNIT):
        for rows in (1, 2, 8, 40):
            # Few columns have one kernel on both devices.
            kernel = repr(kernel_of(product, rows, capabilities)[1])
            if kernel not in known:
                assert_bits(emulated(x, product, rows, capabilities), wanted, (capabilities.units, rows))
                known.add(kernel)
    assert len(known) == (8 if columns == 70 else 4)


def test_rows_of_several_tiles() -> None:
    raw, x = weights("Q4_0", 18, 1024), drawn(19, 1024)
    product = product_of(x, raw, "Q4_0")
    wanted = in_order(x, raw, "Q4_0")
    for rows in (1, 8, 40):
        assert_bits(emulated(x, product, rows), wanted, rows)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_a_scale_times_a_whole_number(name: str) -> None:
    inner = 2 * sizes(name)[0] * 4
    raw, x = weights(name, 9, inner), drawn(2, inner)
    numbers = meant(raw, name).astype("f8")
    got = emulated(x, product_of(x, raw, name), 2)
    assert_bits(got, in_order(x, raw, name))
    # Products are exact, and sums of few roundings.
    assert (np.abs(got - x @ numbers.T) <= 16 * 2.0**-24 * (np.abs(x) @ np.abs(numbers).T)).all()


def test_whole_numbers_are_exact_in_bfloat16() -> None:
    for name in FORMATS:
        factors = factors_of(BLOCK_FORMATS[name])
        assert factors is not None
        whole = decode(factors.whole, tame(name, 4, 64))
        assert_bits(whole.astype(ml_dtypes.bfloat16).astype("f4"), whole, name)


def test_formats_with_a_minimum_have_no_such_factors() -> None:
    assert set(FORMATS) == {"Q4_0", "Q5_0", "Q8_0", "Q6_K", "TQ1_0", "TQ2_0"}


def test_infinities_and_nan_make_nan() -> None:
    """Lower terms of an infinity are NaN, as `precision="tf32x3"` has it. A row is none of its neighbours."""
    raw, x = weights("Q8_0", 4, 256), np.ones((4, 256), "f4")
    x[1, 7], x[2, 9] = np.inf, -np.inf
    x[3, 12] = np.array(0x7F800001, np.uint32).view("f4")
    got = emulated(x, product_of(x, raw, "Q8_0"), 4)
    assert np.isfinite(got[0]).all()
    assert np.isnan(got[1:]).all()


def test_what_surrounds_a_product_is_computed_there() -> None:
    """The factor of a row where it is loaded, and what follows where results are stored."""
    raw, x = weights("Q4_0", 21, 512), drawn(5, 512)
    rows = fc.source(x)
    made = emulated(x, (rows * 0.5) @ fc.dequantize(fc.constant(raw), "Q4_0").T + 2.0, 5)
    assert_bits(made, in_order(x * np.float32(0.5), raw, "Q4_0") + np.float32(2))


def test_two_products_that_follow_each_other_share_a_launch() -> None:
    gate, up, x = weights("Q4_0", 19, 512), weights("Q4_0", 19, 512, seed=1), drawn(3, 512)
    rows = fc.source(x)
    product = (rows @ fc.dequantize(fc.constant(gate), "Q4_0").T) * (rows @ fc.dequantize(fc.constant(up), "Q4_0").T)
    wanted = in_order(x, gate, "Q4_0") * in_order(x, up, "Q4_0")
    for count in (1, 8):
        assert_bits(emulated(x, product, count), wanted, count)


def test_products_of_other_forms_have_launches_of_their_own() -> None:
    x = fc.source(drawn(3, 512))
    first, second = (x @ fc.dequantize(fc.constant(weights(name, 16, 512)), name).T for name in ("Q4_0", "Q4_1"))
    plan = plan_on_paper(first, second, capabilities=MANY_UNITS, precision="tf32x3")
    forms = [kernel.ir.form for kernel in plan.kernels]
    assert forms == ["term matmul", "dequantized group matmul"]
    both = plan_on_paper(first, second, capabilities=MANY_UNITS)
    assert len(both.kernels) == 1


def test_only_tf32x3_has_terms() -> None:
    raw, x = weights("Q4_0", 32, 512), drawn(8, 512)
    product = product_of(x, raw, "Q4_0")
    for precision, terms in (("exact", False), ("fast", False), ("tf32x3", True)):
        plan = plan_on_paper(product, capabilities=MANY_UNITS, precision=precision)
        assert ("HalvesOfRun" in repr([kernel.ir for kernel in plan.kernels])) == terms, precision
    plan = plan_on_paper(product, capabilities=replace(MANY_UNITS, tensor_cores=False), precision="tf32x3")
    assert "HalvesOfRun" not in repr([kernel.ir for kernel in plan.kernels])


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["Q4_0", "Q8_0", "Q6_K"])
def test_the_text_compiles(name: str) -> None:
    x = drawn(1, 2048)
    product = product_of(x, weights(name, 40, 2048), name)
    for rows in (1, 8):
        assert compiles_without_assembly(program_of(kernel_of(product, rows)[1])[0])


def test_a_gpu_gives_each_row_the_same_bits_in_any_batch() -> None:
    device = real_device()
    for name, columns, inner in SHAPES:
        raw, x = weights(name, columns, inner), drawn(40, inner)
        numbers = meant(raw, name).astype("f8")
        wanted = None
        for rows in (40, 1, 2, 3, 8, 16):
            got = product_of(x[:rows], raw, name).resolve(device=device, precision="tf32x3")
            wanted = got if wanted is None else wanted
            assert_bits(got, wanted[:rows], (name, rows))
        assert wanted is not None
        assert (np.abs(wanted - x @ numbers.T) <= 16 * 2.0**-24 * (np.abs(x) @ np.abs(numbers).T)).all()
