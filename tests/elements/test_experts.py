"""Products with chosen matrices: the bits of the products one by one, and no other matrix is read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import flowcompute as fc
from tests.gpu.shapes import resolve_on_gpu

RECORDS = 41


def drawn(*shape: int, dtype: str = "f4") -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 3).astype(dtype)


def choices(count: int, *item: int) -> np.ndarray:
    return np.random.default_rng(count).integers(-count, count, (RECORDS, *item))


def resolved(element: Any, device: str, batch_bytes: int = 1 << 20) -> np.ndarray:
    strategy = fc.Strategy(batch_bytes=batch_bytes)
    if device == "gpu":
        return resolve_on_gpu(element, strategy=strategy)[0]
    made: np.ndarray = element.resolve(device=device, strategy=strategy, progress=False)
    return made


def same(made: np.ndarray, wanted: np.ndarray, device: str) -> None:
    """Devices give the same bits. BLAS has another order for numbers that lie in another way."""
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-4)
    assert device == "numpy" or made.tobytes() == wanted.tobytes()


def one_by_one(x: np.ndarray, weights: Any, chosen: np.ndarray, device: str) -> np.ndarray:
    """The products of all records with each matrix, of which the chosen ones are taken."""
    many = chosen.shape[1]
    rows = np.broadcast_to(x[:, None] if x.ndim == 2 else x, (RECORDS, many, x.shape[-1]))
    made = [resolved(fc.source(rows.reshape(-1, x.shape[-1])) @ one.T, device) for one in weights]
    stacked = np.stack([one.reshape(RECORDS, many, -1) for one in made])
    return stacked[chosen, np.arange(RECORDS)[:, None], np.arange(many)]


ONE, PANELS, ALONE = (6, 20, 33, 2, False), (3, 17, 600, 4, True), (1, 5, 3, 1, True)
"""Experts, numbers out and in, choices, and whether each choice has a row of its own."""


@pytest.mark.parametrize(
    ("sizes", "device"),
    [
        *((sizes, "numpy") for sizes in (ONE, PANELS, ALONE)),
        (ONE, "cpu"),
        *(pytest.param(sizes, "cpu", marks=pytest.mark.slow) for sizes in (PANELS, ALONE)),
        *(pytest.param(sizes, "gpu", marks=pytest.mark.slow) for sizes in (ONE, PANELS)),
    ],
)
def test_bits_are_those_of_products_one_by_one(sizes: tuple[int, int, int, int, bool], device: str) -> None:
    experts, out, inner, many, each = sizes
    weights, chosen = drawn(experts, out, inner), choices(experts, many)
    x = drawn(RECORDS, many, inner) if each else drawn(RECORDS, inner)
    made = fc.nn.experts(fc.source(x), weights, fc.source(chosen))
    assert (made.shape, made.dtype) == ((RECORDS, many, out), np.float32)
    results = [resolved(made, device, size) for size in (1 << 20, 3000)]
    assert results[0].tobytes() == results[1].tobytes()
    same(results[0], one_by_one(x, weights, chosen, device), device)
    lined_up = np.broadcast_to(x if each else x[:, None], (RECORDS, many, inner)).astype("f8")
    exact = np.einsum("nkoi,nki->nko", weights[chosen].astype("f8"), lined_up)
    np.testing.assert_allclose(results[0], exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("device", ["numpy", "cpu", pytest.param("gpu", marks=pytest.mark.slow)])
def test_blocks_are_decoded_where_they_are_loaded(device: str) -> None:
    raw = gguf.quants.quantize(drawn(6, 20, 64), gguf.GGMLQuantizationType.Q8_0)
    weights = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.Q8_0)
    x, chosen = drawn(RECORDS, 64), choices(6, 3)
    made = fc.nn.experts(fc.source(x), fc.dequantize(fc.constant(raw), "Q8_0"), fc.source(chosen))
    result = resolved(fc.nn.silu(made) * 2, device)
    # CPUs add along blocks of any format, of floats too.
    floats = fc.dequantize(fc.constant(weights.view(np.uint8)), "F32")
    plain = resolved(fc.nn.silu(fc.nn.experts(fc.source(x), floats, fc.source(chosen))) * 2, device)
    same(result, plain, device)
    plan = (fc.nn.silu(made) * 2).plan(device="cpu")
    assert len(plan.kernels) == 1, "one kernel decodes, multiplies, and computes what follows"
    assert not re.search("dequantize.*is stored", str(plan))


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f8", "i1", "i4", "u8"])
def test_dtypes_are_those_of_products(dtype: str) -> None:
    x, weights = drawn(RECORDS, 9).astype("i4"), drawn(4, 6, 9).astype("i4")
    stream, matrices = (fc.constant(one).astype(dtype) for one in (x, weights))
    chosen = choices(4, 2)
    rows = fc.source(stream.resolve(device="numpy", progress=False))
    made = fc.nn.experts(rows, matrices, fc.source(chosen))
    assert made.dtype == (rows @ matrices[0].T).dtype
    wanted = (x[:, None, None, :].astype("i8") * weights[chosen]).sum(axis=-1)
    np.testing.assert_array_equal(
        made.resolve(device="numpy", progress=False).astype("f8"), wanted.astype(made.dtype).astype("f8")
    )


def test_single_choices_give_vectors() -> None:
    x, weights, chosen = drawn(RECORDS, 5), drawn(4, 3, 5), choices(4)
    made = fc.nn.experts(fc.source(x), weights, fc.source(chosen))
    assert made.shape == (RECORDS, 3)
    wanted = np.einsum("noi,ni->no", weights[chosen], x)
    np.testing.assert_allclose(made.resolve(device="numpy", progress=False), wanted, rtol=1e-4, atol=1e-4)


def test_matrices_that_nobody_chooses_are_never_paged_in(tmp_path: Path) -> None:
    path = tmp_path / "experts.gguf"
    writer = gguf.GGUFWriter(str(path), "none")
    writer.add_tensor("experts", np.ones((32, 256, 512), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    # A file that was changed just now is read, since somebody may still write to it.
    os.utime(path, (0, 0))
    path.chmod(0o444)
    weights, x = fc.weights(path), np.ones((4, 512), np.float32)
    made = fc.nn.experts(fc.source(x), weights["experts"], fc.source(np.array([[3, 17]] * 4)))
    assert (made.resolve(device="cpu", progress=False) == 512).all()
    maps = Path("/proc/self/smaps").read_text()
    ((size, resident),) = re.findall(rf"{re.escape(str(path))}\nSize: +(\d+) kB\n(?:.*\n)*?Rss: +(\d+) kB", maps)
    assert int(size) >= 32 * 512
    # Two matrices of 512 KiB, and what the system maps around a page: up to 2 MiB.
    assert 2 * 512 <= int(resident) < int(size) // 2


def test_a_choice_out_of_range_names_its_record() -> None:
    chosen = np.zeros((9, 2), int)
    chosen[5, 1] = 4
    made = fc.nn.experts(fc.source(drawn(9, 5)), drawn(4, 3, 5), fc.source(chosen))
    for device in ("numpy", "cpu"):
        with pytest.raises(fc.RunError, match="5") as caught:
            made.resolve(device=device, progress=False)
        assert "experts" in str(caught.value)


@pytest.mark.parametrize(
    ("x", "weights", "chosen"),
    [
        (drawn(9, 5), drawn(4, 3, 6), np.zeros((9, 2), int)),
        (drawn(9, 3, 5), drawn(4, 3, 5), np.zeros((9, 2), int)),
        (drawn(9, 5), drawn(3, 5), np.zeros((9, 2), int)),
        (drawn(9, 5), drawn(4, 3, 5), np.zeros((9, 2))),
        (drawn(9, 5), drawn(4, 3, 5), np.zeros((9, 2, 2), int)),
        (drawn(9, 5), drawn(4, 3, 5), np.zeros((9, 0), int)),
        (drawn(9, 5), drawn(0, 3, 5), np.zeros((9, 2), int)),
        (drawn(9, 5), drawn(4, 3, 5), np.zeros((8, 2), int)),
        (drawn(9, 5) > 0, drawn(4, 3, 5) > 0, np.zeros((9, 2), int)),
    ],
    ids=["inner", "many", "matrix", "floats", "rank", "none", "no experts", "length", "bools"],
)
def test_what_does_not_fit_is_refused(x: np.ndarray, weights: np.ndarray, chosen: np.ndarray) -> None:
    with pytest.raises(fc.SpecError, match="experts"):
        fc.nn.experts(fc.source(x), weights, fc.source(chosen))


def test_resident_choices_are_refused() -> None:
    with pytest.raises(fc.SpecError, match="streams x"):
        fc.nn.experts(fc.source(drawn(9, 5)), drawn(4, 3, 5), np.zeros((9, 2), int))
