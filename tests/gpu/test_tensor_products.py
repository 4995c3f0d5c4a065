"""Products of half formats by tensor cores: emulated everywhere, and on such a device where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.lower.matmul.tensor_cores.tensor_matmul import SHAPES, TensorWorkGroup
from tests.golden.test_golden import GPU, NVIDIA
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper, real_device

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def numbers(*shape: int, dtype: Any = "f2", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype("f8")


def row_product(rows: int, inner: int, columns: int, dtype: Any = "f2") -> tuple[Element, np.ndarray, np.ndarray]:
    a, b = numbers(rows, inner, dtype=dtype), numbers(inner, columns, dtype=dtype, seed=1)
    return fc.source(a, name="x") @ fc.constant(b), a, wide(a) @ wide(b)


def _turned(array: np.ndarray) -> fc.Element:
    return fc.permute_dims(fc.constant(np.ascontiguousarray(array.swapaxes(-1, -2))), (1, 0))


def layouts() -> dict[str, Callable[[], tuple[Element, np.ndarray, np.ndarray]]]:
    a, w = numbers(3, 72, 40), numbers(40, 48, seed=1)
    odd, stack = numbers(2, 35, 21), numbers(2, 2, 3, 24, 16)
    x = fc.source(a, name="x")
    across = fc.permute_dims(x, (0, 2, 1))
    ragged = fc.source(odd, name="x")
    stacked = fc.source(stack, name="x")
    tall = numbers(150, 64)
    return {
        "a resident matrix": lambda: (x @ fc.constant(w), a, wide(a) @ wide(w)),
        "a resident matrix, turned": lambda: (x @ _turned(w), a, wide(a) @ wide(w)),
        "turned on the left": lambda: (across @ x, a, wide(a).swapaxes(1, 2) @ wide(a)),
        "turned on the right": lambda: (x @ across, a, wide(a) @ wide(a).swapaxes(1, 2)),
        "odd sizes": lambda: (ragged @ fc.permute_dims(ragged, (0, 2, 1)), odd, wide(odd) @ wide(odd).swapaxes(1, 2)),
        "odd sizes, turned": lambda: (fc.permute_dims(ragged, (0, 2, 1)) @ ragged, odd, wide(odd).swapaxes(1, 2) @ odd),
        "parts": lambda: (x[:, 8:40, 8:] @ fc.constant(w[8:]), a, wide(a)[:, 8:40, 8:] @ wide(w[8:])),
        "parts that lie badly": lambda: (x[:, 1:33, 3:] @ fc.constant(w[3:]), a, wide(a)[:, 1:33, 3:] @ wide(w[3:])),
        "stacks": lambda: (
            stacked @ fc.permute_dims(stacked, (0, 1, 2, 4, 3)),
            stack,
            wide(stack) @ wide(stack).swapaxes(3, 4),
        ),
        "stacks beside one matrix": lambda: (stacked @ fc.constant(w[:16]), stack, wide(stack) @ wide(w[:16])),
        "a part of a stack beside one matrix": lambda: (
            stacked[:, :, 1:] @ fc.constant(w[:16]),
            stack,
            wide(stack)[:, :, 1:] @ wide(w[:16]),
        ),
        "several tiles": lambda: (
            fc.source(tall, name="x") @ fc.constant(numbers(64, 280)),
            tall,
            wide(tall) @ wide(numbers(64, 280)),
        ),
        "more of k than is under way": lambda: row_product(20, 300, 16),
        "one step of k, not whole": lambda: row_product(20, 9, 20),
    }


@pytest.mark.parametrize("name", layouts())
def test_fragments_are_read_where_they_were_brought(name: str) -> None:
    root, array, wanted = layouts()[name]()
    made = emulated(root, {"x": array})
    np.testing.assert_allclose(wide(made), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("tile", [*SHAPES[2], TensorWorkGroup(128, 128, 32, 4, 64, 64)], ids=str)
@pytest.mark.parametrize("along_k", [True, False])
def test_every_tile(tile: TensorWorkGroup, along_k: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.lower.matmul.tensor_cores.tensor_matmul.choose_tile", lambda *_: tile)
    x = numbers(1, 40, 40)
    a, b = fc.source(x, name="x"), fc.permute_dims(fc.source(x, name="x"), (0, 2, 1))
    root = a @ b if along_k else b @ a
    wanted = wide(x) @ wide(x).swapaxes(1, 2) if along_k else wide(x).swapaxes(1, 2) @ wide(x)
    np.testing.assert_allclose(wide(emulated(root, {"x": x})), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("tile", SHAPES[4], ids=str)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)], ids=str)
def test_float32_is_multiplied_in_parts(
    tile: TensorWorkGroup, turned: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowcompute.lower.matmul.tensor_cores.tensor_matmul.choose_tile", lambda *_: tile)
    x = numbers(1, 45, 45, dtype="f4")
    sides = [fc.permute_dims(fc.source(x, name="x"), (0, 2, 1)) if turn else fc.source(x, name="x") for turn in turned]
    arrays = [wide(x).swapaxes(1, 2) if turn else wide(x) for turn in turned]
    made = emulated(sides[0] @ sides[1], {"x": x}, precision="tf32x3")
    bound = np.abs(arrays[0]) @ np.abs(arrays[1])
    assert (np.abs(made - arrays[0] @ arrays[1]) <= 2.0**-20 * bound).all()


def test_precision_is_one_of_those_there_are() -> None:
    root, *_ = row_product(20, 20, 20, "f4")
    with pytest.raises(fc.PlanError, match="'exact', 'fast', 'tf32x3'"):
        fc.plan(root, precision="tf32")  # type: ignore[arg-type]
    assert (
        fc.plan(root, device="cpu", precision="tf32x3").kernels[0].source
        == fc.plan(root, device="cpu").kernels[0].source
    )


def test_what_follows_is_computed_before_anything_is_stored() -> None:
    product, a, exact = row_product(40, 32, 50, BFLOAT16)
    bias = numbers(50, dtype="f4", seed=2)
    made = emulated(fc.tanh(product + bias) * 2, {"x": a})
    np.testing.assert_allclose(made, np.tanh(exact + bias) * 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "root",
    [
        fc.source(numbers(20, 32, dtype="f4")) @ fc.constant(numbers(32, 20, dtype="f4")),
        fc.source(numbers(20, 32)) @ fc.constant(numbers(32, 20, dtype="f4")),
        fc.source(numbers(20, 32)) @ fc.constant(numbers(32, 3)),
        fc.source(numbers(20, 64))[:, ::2] @ fc.constant(numbers(32, 20)),
    ],
    ids=["float32", "of two dtypes", "few columns", "no neighbours"],
)
def test_other_products_have_tiles_of_plain_numbers(root: Element) -> None:
    sources = [kernel.source for kernel in plan_on_paper(root).kernels]
    assert any("fma(" in source for source in sources)
    assert not any("fc_multiply" in source for source in sources)


def test_other_devices_have_tiles_of_plain_numbers() -> None:
    root, *_ = row_product(64, 64, 64)
    assert "fma(" in plan_on_paper(root, capabilities=GPU).kernels[0].source
    for itemsize, tiles in SHAPES.items():
        assert all(tile.local_bytes(itemsize) <= NVIDIA.local_bytes for tile in tiles)
        assert tiles[-1].local_bytes(itemsize) <= 48 << 10, "every device has as much"


@pytest.mark.parametrize(("shape", "dtype"), [((70, 33, 51), "f2"), ((70, 64, 67), "f4")], ids=str)
def test_texts_are_opencl_but_for_their_assembly(shape: tuple[int, int, int], dtype: Any) -> None:
    product, *_ = row_product(*shape, dtype)
    (kernel,) = plan_on_paper(fc.tanh(product) * 2, precision="tf32x3").kernels
    assert compiles_without_assembly(kernel.source)


# -- on a device --------------------------------------------------------------------------------------


def relative(made: Any, wanted: np.ndarray) -> float:
    return float(np.abs(np.asarray(made).astype("f8") - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("name", layouts())
def test_layouts_on_a_device(name: str) -> None:
    device = real_device()
    root, _, wanted = layouts()[name]()
    assert relative(fc.resolve(root, device=device), wanted) < 1e-3


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16], ids=str)
@pytest.mark.parametrize("shape", [(1000, 700, 520), (1023, 1025, 1024), (4100, 64, 256), (17, 5000, 33)], ids=str)
def test_products_on_a_device(shape: tuple[int, int, int], dtype: Any) -> None:
    device = real_device()
    root, a, exact = row_product(*shape, dtype)
    made = fc.resolve(root, device=device)
    assert relative(made, exact) < (1e-3 if made.dtype == np.float16 else 1e-5)
    again = fc.resolve(root, device=device, strategy=fc.Strategy(batch_bytes=a.nbytes // 5))
    assert np.array_equal(made, again), "no batch changes a bit"


def test_float32_in_parts_on_a_device() -> None:
    device = real_device()
    root, a, exact = row_product(1000, 1030, 520, "f4")
    made = np.asarray(fc.resolve(root, device=device, precision="tf32x3"))
    b = numbers(1030, 520, dtype="f4", seed=1)
    assert (np.abs(made - exact) <= 2.0**-19 * (np.abs(wide(a)) @ np.abs(wide(b)))).all()
    assert not np.array_equal(made, fc.resolve(root, device=device))
