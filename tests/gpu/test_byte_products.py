"""Products of whole numbers of a byte by four sub-groups together: emulated everywhere, on Hopper where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.graph import build_graph
from flowcompute.jobs import job_planner
from flowcompute.lower import forms
from flowcompute.lower.matmul import PACKED_MATMUL, WARP_GROUP_MATMUL
from flowcompute.rewrite import multiply_bytes
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import HOPPER, NVIDIA
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper
from tests.gpu.test_warp_group_products import hopper

ROOM = 1 << 40


def whole(*shape: int, dtype: str = "i1", seed: int = 0) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng([seed, *shape]).integers(limits.min, limits.max + 1, shape).astype(dtype)


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in int32, which wraps."""
    return (a.astype("i8") @ b.astype("i8")).astype("i4")


Product = tuple[Element, dict[str, np.ndarray], np.ndarray]


def rows(many: int, inner: int, columns: int, dtypes: tuple[str, str] = ("i1", "i1")) -> Product:
    a, b = whole(many, inner, dtype=dtypes[0]), whole(inner, columns, dtype=dtypes[1], seed=1)
    return fc.matmul(fc.source(a, name="x"), fc.constant(b), dtype="int32"), {"x": a}, exact(a, b)


def overflowing() -> Product:
    """Sums beyond 2^31."""
    a, b = np.full((3, 33056), 255, "u1"), np.full((33056, 128), 255, "u1")
    b[:, ::2] = 0
    return fc.matmul(fc.source(a, name="x"), fc.constant(b), dtype="int32"), {"x": a}, exact(a, b)


def streams(part: slice, *stack: int) -> Product:
    x, y = whole(3, *stack, 136, 144), whole(3, *stack, 264, 144, seed=1)
    product = fc.matmul(fc.source(x, name="x")[..., part], fc.source(y, name="y")[..., part].mT, dtype="int32")
    return product, {"x": x, "y": y}, exact(x[..., part], y[..., part].swapaxes(-1, -2))


def stack_of_rows() -> Product:
    a, b = whole(3, 50, 144), whole(144, 136, seed=1)
    return fc.matmul(fc.source(a, name="x"), fc.constant(b), dtype="int32"), {"x": a}, exact(a, b)


PRODUCTS: dict[str, Callable[[], Product]] = {
    "a tile": lambda: rows(128, 128, 128),
    "more steps than stages": lambda: rows(130, 128 * 6 + 16, 136),
    "wide tiles": lambda: rows(200, 144, 264),
    "without signs": lambda: rows(140, 208, 144, ("u1", "u1")),
    "signs on the left": lambda: rows(140, 208, 144, ("i1", "u1")),
    "signs on the right": lambda: rows(140, 208, 144, ("u1", "i1")),
    "few records": lambda: rows(3, 80, 128),
    "short sums": lambda: rows(140, 16, 128),
    "sums that wrap": overflowing,
    "items of rows": stack_of_rows,
    "several matrices": lambda: streams(slice(None)),
    "a stack": lambda: streams(slice(None), 2),
    "parts": lambda: streams(slice(16, 128)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_bytes_are_multiplied_where_they_were_copied(name: str) -> None:
    root, arrays, wanted = PRODUCTS[name]()
    *_, step = (step for step in plan_on_paper(root, capabilities=HOPPER).steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    assert step.kernel.form == WARP_GROUP_MATMUL.name
    assert np.array_equal(emulated(root, arrays, capabilities=HOPPER), wanted)


def test_results_of_a_byte_wrap() -> None:
    a, b = whole(140, 144), whole(144, 136, seed=1)
    made = emulated(fc.source(a, name="x") @ fc.constant(b), {"x": a}, capabilities=HOPPER)
    assert made.dtype == np.int8
    assert np.array_equal(made, exact(a, b).astype("i1"))


def test_sums_are_scaled_by_the_same_kernel() -> None:
    product, arrays, wanted = rows(140, 144, 136)
    root = fc.astype(fc.clip(fc.round(fc.astype(product, "float32") * 0.001), -128, 127), "int8")
    made = emulated(root, arrays, capabilities=HOPPER)
    assert np.array_equal(made, np.clip(np.round(wanted.astype("f4") * np.float32(0.001)), -128, 127).astype("i1"))


def across() -> Element:
    x, y = whole(9, 128, 128), whole(9, 128, 128)
    return fc.matmul(fc.source(x), fc.source(y), dtype="int32")


@pytest.mark.parametrize(
    "make",
    [
        across,
        lambda: rows(200, 120, 128)[0],
        lambda: rows(200, 128, 120)[0],
        lambda: rows(200, 128, 128, ("i2", "i2"))[0],
        lambda: fc.matmul(fc.source(whole(200, 128)), fc.constant(whole(128, 128)), dtype="int64"),
        lambda: fc.matmul(fc.source(whole(200, 256))[:, ::2], fc.constant(whole(128, 128)), dtype="int32"),
    ],
    ids=["streams across k", "badly lying rows", "few columns", "int16", "int64", "strides"],
)
def test_other_products_have_other_forms(make: Callable[[], Element]) -> None:
    plan = plan_on_paper(make(), capabilities=HOPPER)
    assert all(step.kernel is None or step.kernel.form != WARP_GROUP_MATMUL.name for step in plan.steps)  # type: ignore[union-attr]


@pytest.mark.compiles
def test_texts_are_opencl_beside_their_assembly() -> None:
    *_, kernel = plan_on_paper(rows(200, 144, 264, ("u1", "i1"))[0], capabilities=HOPPER).kernels
    assert ".m64n256k32.s32.u8.s8 " in kernel.source
    assert compiles_without_assembly(kernel.source)


# -- factors that are turned --------------------------------------------------------------------------


def turning(*elements: Element, capabilities: Any = HOPPER, room: float = ROOM) -> int:
    """Count the copies of factors that a device makes."""
    graph = multiply_bytes(build_graph([fc.to_array().bind(one) for one in elements]), capabilities, room)
    return sum(node.op is not None and node.op.name == "positive" for node in graph.nodes)


def test_a_factor_is_turned_once_for_all_that_read_it() -> None:
    a, w = fc.source(whole(200, 144)), fc.constant(whole(144, 136))
    products = [fc.matmul(one, w, dtype="int32") for one in (a, fc.bitwise_invert(a))]
    assert turning(*products) == 1


@pytest.mark.parametrize(
    ("capabilities", "room"), [(NVIDIA, ROOM), (HOPPER, 2 * 144 * 136 - 1)], ids=["no groups", "no room"]
)
def test_factors_stay_where_nothing_is_won(capabilities: Any, room: float) -> None:
    product, *_ = rows(200, 144, 136)
    assert turning(product, room=2 * 144 * 136) == 1
    assert turning(product, capabilities=capabilities, room=room) == 0


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("name", ["more steps than stages", "short sums", "signs on the left", "items of rows"])
def test_turned_factors_change_no_answer(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As jobs on Hopper are planned, but for the device."""
    root, _, wanted = PRODUCTS[name]()
    monkeypatch.setattr(job_planner, "multiply_bytes", lambda graph, *_: multiply_bytes(graph, HOPPER, ROOM))
    options = {"device": device, "progress": False}
    assert np.array_equal(fc.resolve(root, **options), wanted)
    assert np.array_equal(fc.resolve(root, **options, strategy=fc.Strategy(batch_bytes=1 << 12)), wanted)


# -- on a device --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRODUCTS)
def test_hopper_has_the_bits_of_packed_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = hopper()
    root, arrays, wanted = PRODUCTS[name]()
    size = next(iter(arrays.values())).nbytes
    for strategy in (None, fc.Strategy(batch_bytes=max(1, size // 5))):
        made = fc.resolve(root, device=device, progress=False, strategy=strategy)
        assert np.array_equal(made, wanted), "no batch changes a bit"
    monkeypatch.setattr(forms, "FORMS", tuple(form for form in forms.FORMS if form is not WARP_GROUP_MATMUL))
    PLANS.clear()
    KERNELS.clear()
    plan = fc.plan(root, device=device)
    other = fc.resolve(root, device=device, progress=False)
    PLANS.clear()
    KERNELS.clear()
    assert any(kernel.form == PACKED_MATMUL.name for one in plan.passes for kernel in one.kernels)
    assert np.array_equal(other, wanted), "no form changes a bit"
