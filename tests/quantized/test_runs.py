"""Runs of neighbouring numbers: what lanes compute is what the format says of their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowcompute.elements.quantized import BLOCK_FORMATS
from flowcompute.elements.quantized.decoding import Byte, Expression, OfFloats, Place, Whole, in_order, operands
from flowcompute.elements.quantized.numpy_decoding import _evaluated
from flowcompute.elements.quantized.runs import (
    RAISED,
    bounds_of,
    exact_products,
    has_exact_bias,
    lanes_of,
    offset_between,
)
from tests.quantized.blocks import NAMES, any_bytes, sizes

RUNS = [(name, lanes) for name in NAMES for lanes in (8, 16) if sizes(name)[0] % lanes == 0]


def values(wanted: Expression, blocks: np.ndarray, places: np.ndarray) -> dict[Expression, Any]:
    """The values of an expression and of its parts, at some places of some blocks."""
    known: dict[Expression, Any] = {}
    with np.errstate(all="ignore"):
        for node in in_order(wanted):
            of = [known[one] for one in operands(node)]
            known[node] = places if isinstance(node, Place) else _evaluated(node, of, blocks, len(places))
    return known


@pytest.mark.parametrize(("name", "lanes"), RUNS)
def test_a_lane_is_the_number_at_its_place(name: str, lanes: int) -> None:
    value, numbers, raw = BLOCK_FORMATS[name].value, sizes(name)[0], any_bytes(name, 5, 1)
    whole = values(value, raw, np.arange(numbers, dtype=np.int32))
    first, each = np.arange(0, numbers, lanes, dtype=np.int32), lanes_of(BLOCK_FORMATS[name], lanes)
    assert set(each) == set(whole)
    for lane, own in enumerate(each[value]):
        got = np.broadcast_to(values(own, raw, first)[own], (5, len(first)))
        np.testing.assert_array_equal(got.view("u4"), whole[value][:, lane::lanes].view("u4"))


@pytest.mark.parametrize("name", [name for name in NAMES if sizes(name)[0] % 16 == 0])
def test_a_run_may_be_known_to_begin_among_some_numbers(name: str) -> None:
    value, numbers, raw = BLOCK_FORMATS[name].value, sizes(name)[0], any_bytes(name, 5, 1)
    whole = values(value, raw, np.arange(numbers, dtype=np.int32))[value]
    for begin in range(0, numbers, 16):
        first = np.arange(0, 16, 4, dtype=np.int32)
        for lane, own in enumerate(lanes_of(BLOCK_FORMATS[name], 4, begin, 16)[value]):
            got = np.broadcast_to(values(own, raw, first)[own], (5, len(first)))
            np.testing.assert_array_equal(got.view("u4"), whole[:, begin + lane : begin + 16 : 4].view("u4"))


def test_halves_of_a_block_read_the_same_word() -> None:
    """Loads of both are one only where their places are the same expression."""
    low, high = (lanes_of(BLOCK_FORMATS["Q4_0"], 4, begin, 16) for begin in (0, 16))
    places = [{own for node, every in half.items() if isinstance(node, Byte) for own in every} for half in (low, high)]
    assert places[0] == places[1]


@pytest.mark.parametrize("name", NAMES)
def test_no_value_is_out_of_its_bounds(name: str) -> None:
    block_format = BLOCK_FORMATS[name]
    bounds, places = bounds_of(block_format), np.arange(block_format.numbers, dtype=np.int32)
    found = values(block_format.value, any_bytes(name, 300, 1), places)
    for node, of in found.items():
        if isinstance(node, Whole):
            low, high = bounds[node]
            assert low <= np.min(of)
            assert np.max(of) <= high


@pytest.mark.parametrize("name", NAMES)
def test_exact_products_are_not_rounded(name: str) -> None:
    block_format = BLOCK_FORMATS[name]
    exact = exact_products(block_format)
    found = values(block_format.value, any_bytes(name, 300, 1), np.arange(block_format.numbers, dtype=np.int32))
    for node in exact:
        assert isinstance(node, OfFloats)
        with np.errstate(all="ignore"):
            wide = np.multiply(found[node.left], found[node.right], dtype=np.float64)
        np.testing.assert_array_equal(found[node], wide)


def test_quants_by_scales_are_exact_products() -> None:
    # d * q of 11 and 4 bits; (d * scale) * q of 11, 6 and 4 bits, and dmin * minimum.
    assert [len(exact_products(BLOCK_FORMATS[name])) for name in ("Q4_1", "Q4_K", "F32", "MXFP4")] == [1, 3, 0, 0]


def shared(name: str) -> list[Byte]:
    """The bytes of a format that all lanes of a run of 16 read alike."""
    each = lanes_of(BLOCK_FORMATS[name], 16)
    return [node for node, own in each.items() if isinstance(node, Byte) and len(set(own)) == 1]


def neighbours(name: str) -> list[Byte]:
    """The bytes of a format that lie beside each other for a run of 16."""
    found = []
    for node, own in lanes_of(BLOCK_FORMATS[name], 16).items():
        if isinstance(node, Byte):
            places = [one.at for one in own if isinstance(one, Byte)]
            if [offset_between(places[0], place) for place in places] == list(range(16)):
                found.append(node)
    return found


@pytest.mark.parametrize(
    ("name", "one", "run"),
    [("Q4_0", 2, 1), ("Q4_1", 4, 1), ("Q8_0", 2, 1), ("Q4_K", 7, 1), ("Q5_K", 7, 2), ("Q6_K", 3, 2), ("IQ4_XS", 5, 1)],
)
def test_scales_are_shared_and_numbers_are_neighbours(name: str, one: int, run: int) -> None:
    assert (len(shared(name)), len(neighbours(name))) == (one, run)


def test_a_bias_and_a_scale_are_exact_as_one_multiply_add() -> None:
    """Check all finite scales, subnormal ones among them; zeros are +0 then."""
    biases = {"Q4_0": (8, 16), "Q5_0": (16, 32), "Q8_0": (128, 256)}
    assert {name for name in NAMES if has_exact_bias(BLOCK_FORMATS[name])} == set(biases)
    halves = np.arange(1 << 16, dtype=np.uint16).view("f2").astype("f4")
    scales = halves[np.isfinite(halves)][:, None]
    for bias, count in biases.values():
        numbers = np.arange(count, dtype="f4")
        addend = scales * np.float32(RAISED + bias)
        assert (addend == scales.astype("f8") * (RAISED + bias)).all()
        # Sums of these two products are exact in float64.
        made = (scales.astype("f8") * (RAISED + numbers) - addend).astype("f4")
        wanted = scales * (numbers - np.float32(bias)) + np.float32(0)
        np.testing.assert_array_equal(made.view("u4"), wanted.view("u4"))
