"""The table of block formats is what the installed gguf knows, and every format is decoded bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowcompute as fc
from flowcompute.elements.quantized import BLOCK_FORMATS
from tests.gpu.shapes import gpu_shaped, resolve_on_gpu
from tests.properties.cases import cases
from tests.quantized.blocks import NAMES, any_bytes, assert_bits, meant, sizes, tame

EDGES = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF, 0x3C00], "<u2")
"""Float16: zeros, subnormals, the largest, infinities, NaNs and 1."""


def known_to_gguf() -> set[str]:
    """The names of the types whose blocks gguf decodes."""
    known = set()
    for kind in GGMLQuantizationType:
        try:
            dequantize(np.zeros((1, 4096 * 27), np.uint8).view(np.uint8)[:, : 27 * sizes(kind.name)[1]], kind)
        except NotImplementedError:
            continue
        known.add(kind.name)
    return known


def test_the_table_has_exactly_what_gguf_decodes() -> None:
    assert set(BLOCK_FORMATS) == known_to_gguf()
    for name, block_format in BLOCK_FORMATS.items():
        assert (block_format.numbers, block_format.block_bytes) == sizes(name), name


@pytest.mark.parametrize("name", NAMES)
@cases(10)
@given(data=st.data())
def test_numpy_decodes_any_bytes(name: str, data: st.DataObject) -> None:
    shape = (data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3)) * sizes(name)[1])
    raw = data.draw(hnp.arrays(np.uint8, shape, fill=st.just(data.draw(st.integers(0, 255)))))
    for stream in (False, True):
        element = fc.dequantize(fc.source(raw) if stream else fc.constant(raw), name)
        expected = meant(raw, name)
        assert_bits(element.resolve(device="numpy"), expected, name)


@pytest.mark.parametrize("name", NAMES)
def test_each_bit_of_a_block_means_what_gguf_says(name: str) -> None:
    size = sizes(name)[1]
    flipped = np.repeat(tame(name, 1, 1), 8 * size, axis=0)
    for bit in range(8 * size):
        flipped[bit, bit // 8] ^= 1 << bit % 8
    assert_bits(fc.dequantize(fc.constant(flipped), name).resolve(device="numpy"), meant(flipped, name), name)


def with_edges(name: str) -> np.ndarray:
    """Blocks of any bytes, in which each pair of bytes is once each of the edges of float16."""
    size = sizes(name)[1]
    rows = [any_bytes(name, 40, 1)]
    if size > 1:
        edged = np.repeat(tame(name, 1, 1), len(EDGES) * (size - 1), axis=0)
        for row, (edge, at) in enumerate((edge, at) for edge in EDGES for at in range(size - 1)):
            edged[row, at : at + 2] = edge.reshape(1).view(np.uint8)
        rows.append(edged)
    whole = np.concatenate(rows)
    return whole[: len(whole) // 3 * 3].reshape(-1, 3 * size)


@pytest.mark.compiles
@pytest.mark.parametrize("name", NAMES)
def test_kernels_decode_any_bytes(name: str) -> None:
    raw = with_edges(name)
    expected = meant(raw, name)
    for stream in (False, True):
        element = fc.dequantize(fc.source(raw) if stream else fc.constant(raw), name)
        assert_bits(element.resolve(), expected, (name, stream))
        assert_bits(element.resolve(strategy=fc.Strategy(batch_bytes=4096)), expected, (name, stream))
        assert_bits(resolve_on_gpu(element)[0], expected, (name, stream, "a kernel for GPUs"))


@pytest.mark.parametrize("name", ["Q4_0", "Q4_K", "IQ2_XS"])
def test_a_kernel_decodes(name: str) -> None:
    raw = any_bytes(name, 9, 3)
    assert_bits(fc.dequantize(fc.source(raw), name).resolve(), meant(raw, name), name)


@settings(max_examples=10)
@given(rows=st.integers(0, 9), batch=st.sampled_from([1, 600, 1 << 14]), name=st.sampled_from(["Q5_1", "MXFP4"]))
@example(rows=9, batch=1, name="Q5_1")
def test_batches_change_no_bit(rows: int, batch: int, name: str) -> None:
    raw = any_bytes(name, rows, 2, seed=rows)
    got = fc.dequantize(fc.source(raw), name).resolve(strategy=fc.Strategy(batch_bytes=batch), device="numpy")
    assert_bits(got, meant(raw, name), (rows, batch))


def test_the_simulated_gpu_is_one() -> None:
    assert gpu_shaped().description.capabilities.code_shape == "gpu"
