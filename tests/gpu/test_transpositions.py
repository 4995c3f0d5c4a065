"""Values that go through tiles of local memory, since they lie along another axis than the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.lower.flat import TRANSPOSE, transpose_form
from flowcompute.lower.flat.transpose_form import LEAST, SIDE
from tests.golden.test_golden import CPU, GPU
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu, run_on_gpu
from tests.gpu.tensor_devices import plan_on_paper
from tests.properties.cases import cases

pytestmark = pytest.mark.compiles

DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", ml_dtypes.bfloat16, "f4", "f8")


def numbers(*shape: int, dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def checked(root: Element, *, form: str = TRANSPOSE.name) -> np.ndarray:
    """The value of a root of one kernel of this form, which is NumPy's bit for bit."""
    (kernel,) = plan_for_gpu(root).kernels
    assert kernel.ir.form == form
    wanted, (made,) = np.asarray(root.resolve(device="numpy", progress=False)), resolve_on_gpu(root)
    assert made.dtype == wanted.dtype
    assert made.shape == wanted.shape
    assert made.tobytes() == wanted.tobytes()
    return made


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_dtype_is_moved(dtype: Any) -> None:
    x = numbers(3, 67, 50, dtype=dtype)
    np.testing.assert_array_equal(checked(+fc.permute_dims(fc.source(x), (0, 2, 1))), x.transpose(0, 2, 1))


@given(st.data())
@cases(30)
def test_any_order_of_axes_any_padding_any_batch(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 16, 17, 40, 64, 65, 130]), min_size=2, max_size=4)))
    while np.prod(shape) > 40_000:
        shape = shape[1:]
    order = data.draw(st.permutations(range(len(shape))))
    x = numbers(data.draw(st.integers(1, 3)), *shape, dtype=data.draw(st.sampled_from(["f4", "f2", "i1", "i8"])))
    turned = fc.permute_dims(fc.source(x), (0, *(1 + axis for axis in order)))
    if data.draw(st.booleans()):
        # NumPy mirrors an axis of one number, too.
        mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
        widths = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in shape]
        turned = fc.pad(turned, widths, mode)
    root = turned * np.asarray(3, x.dtype)
    wanted = np.asarray(root.resolve(device="numpy", progress=False))
    (made,) = resolve_on_gpu(root, strategy=fc.Strategy(batch_bytes=data.draw(st.sampled_from([1, 1 << 20]))))
    assert made.tobytes() == wanted.tobytes()


X = numbers(5, 40, 70)

CASES: dict[str, Callable[[Element], Element]] = {
    "with what lies straight": lambda x: x.mT * 2 + numbers(70, 40) - fc.source(numbers(5, 70, 40, seed=1)),
    "with a row and a column": lambda x: x.mT * numbers(40) + numbers(70, 1),
    "two values": lambda x: x.mT - fc.source(numbers(5, 40, 70, seed=1), name="y").mT,
    "several results": lambda x: fc.maximum(x.mT, 0) + fc.where(x.mT > 0, x.mT, 1),
    "rounded": lambda x: x.astype("f2").mT * 3,
    "backwards": lambda x: x[:, ::-1, ::-1].mT + 1,
    "a part": lambda x: x[:, :, 1:].mT + 1,
    "channels innermost": lambda x: fc.pad(x.mT, ((1, 2), (0, 0))) + 1,
    "padded by edges": lambda x: fc.pad(x.mT, ((2, 0), (0, 0)), "edge") * numbers(40),
    "padded by a number": lambda x: fc.pad(x.mT, ((1, 1), (0, 0)), constant_values=0.1) * 2,
}


@pytest.mark.parametrize("name", CASES)
def test_what_stands_beside_is_computed_by_the_same_kernel(name: str) -> None:
    checked(CASES[name](fc.source(X)))


def test_planes_are_counted_as_one_axis() -> None:
    x = numbers(2, 40, 9, 11)
    root = fc.pad(fc.permute_dims(fc.source(x), (0, 2, 3, 1)), ((1, 0), (2, 1), (0, 0))) * 1
    wanted = np.pad(x.transpose(0, 2, 3, 1), ((0, 0), (1, 0), (2, 1), (0, 0)))
    np.testing.assert_array_equal(checked(root), wanted)


def test_axes_between_are_walked() -> None:
    x = numbers(2, 66, 3, 62)
    for order in ((0, 3, 2, 1), (0, 2, 3, 1), (0, 3, 1, 2)):
        np.testing.assert_array_equal(checked(+fc.permute_dims(fc.source(x), order)), x.transpose(order))


@pytest.mark.parametrize("dtype", ["f2", ml_dtypes.bfloat16, "f4", "f8"], ids=str)
def test_nans_keep_the_bits_that_they_have_elsewhere(dtype: Any) -> None:
    width = np.dtype(dtype).itemsize
    bits = np.random.default_rng(1).integers(0, 1 << 8 * width - 1, (4, 64, 30), dtype=np.uint64).astype(f"u{width}")
    bits[:, ::3] |= np.array(np.nan, dtype).view(bits.dtype)
    turned = fc.source(bits.view(dtype)).mT
    for root in (+turned, fc.pad(turned, ((1, 1), (0, 0))) * 1):
        assert [kernel.ir.form for kernel in plan_for_gpu(root).kernels] == [TRANSPOSE.name]
        (made,), (again,) = resolve_on_gpu(root), resolve_on_gpu(root, strategy=fc.Strategy(batch_bytes=1))
        assert made.tobytes() == again.tobytes() == np.asarray(root.resolve(progress=False)).tobytes()


def test_a_resident_value_is_turned_once() -> None:
    w = numbers(40, 70)
    run = run_on_gpu(+fc.permute_dims(fc.constant(w) * 2, (1, 0)) + fc.source(numbers(3, 70, 40)))
    np.testing.assert_array_equal(run.value, (w * 2).T + numbers(3, 70, 40))


OTHERS: dict[str, Callable[[], Element]] = {
    "few rows": lambda: fc.source(numbers(3, 256, LEAST - 1)).mT + 1,
    "few columns": lambda: fc.source(numbers(3, LEAST - 1, 256)).mT + 1,
    "short runs in memory": lambda: fc.permute_dims(fc.source(numbers(3, 40, 40, 4)), (0, 1, 3, 2)) + 1,
    "small items": lambda: fc.source(numbers(9, 16, 17)).mT + 1,
    "items that just do not fit tiles": lambda: fc.source(numbers(9, 65, 67)).mT + 1,
    "nothing turned": lambda: fc.pad(fc.source(numbers(3, 40, 40)), ((1, 1), (0, 0))) + 1,
    "a padded inner axis": lambda: fc.pad(fc.source(numbers(3, 40, 40)).mT, ((0, 0), (1, 1))) + 1,
    "padding of what is computed there": lambda: fc.pad((fc.source(X) * 2).mT, ((1, 1), (0, 0))) + 1,
    "bools": lambda: ~fc.source(numbers(3, 40, 40) > 0).mT,
    "rows that are reduced": lambda: fc.source(numbers(3, 40, 40)).mT.sum(axis=2),
    "numbers by their positions": lambda: (
        fc.source(numbers(3, 40, 40)).mT + fc.random.normal(3, shape=(40, 40), seed=1)
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_fit_has_another_form(name: str) -> None:
    assert TRANSPOSE.name not in {kernel.ir.form for kernel in plan_for_gpu(OTHERS[name]()).kernels}


def test_other_devices_have_other_forms() -> None:
    root = fc.source(numbers(3, 40, 40)).mT + 1
    small = replace(GPU, local_bytes=SIDE * SIDE)
    for capabilities, expected in ((GPU, True), (small, False), (CPU, False)):
        (kernel,) = plan_on_paper(root, capabilities=capabilities).kernels
        assert (kernel.ir.form == TRANSPOSE.name) is expected


def test_places_that_need_64_bits_have_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    x = fc.source(numbers(3, 40, 40))
    for most, expected in ((40 * 40, False), (40 * 40 + 1, True)):
        monkeypatch.setattr(transpose_form, "MOST_NUMBERS", most)
        (kernel,) = plan_on_paper(x.mT + most, capabilities=GPU).kernels
        assert (kernel.ir.form == TRANSPOSE.name) is expected


@pytest.mark.parametrize("columns", [1023, 1025, 4097, 20_000])
def test_long_rows_that_move_alone_are_shared_by_work_groups(columns: int) -> None:
    """Neighbours stay neighbours, so nothing goes through tiles. No number is left out, and none is moved twice."""
    x = fc.source(numbers(3, 2, 2, columns, dtype="f4"))
    moved = fc.permute_dims(x, (0, 2, 1, 3)) * np.float32(3)
    checked(moved, form="rows")
    (kernel,) = plan_for_gpu(moved).kernels
    assert kernel.ir.tile == (1, -(-4 * columns // 4096))
    made, whole = (resolve_on_gpu(moved, strategy=fc.Strategy(batch_bytes=size)) for size in (1, 1 << 20))
    assert made[0].tobytes() == whole[0].tobytes()
