"""Item types: they mean a shape and perhaps a dtype, wherever an item shape is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.items import ItemType
from flowcompute.errors import SpecError

TYPES: list[tuple[Any, tuple[int, ...]]] = [
    (fc.Number, ()),
    (fc.Number(), ()),
    (fc.Vector(4), (4,)),
    (fc.Vector(0), (0,)),
    (fc.Matrix(2, 3), (2, 3)),
]


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(5 * int(np.prod(shape)), dtype=np.float32).reshape(5, *shape)


@pytest.mark.parametrize(("item", "shape"), TYPES, ids=repr)
def test_an_item_type_stands_for_its_shape(item: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    data = numbers(shape)
    stream = fc.iterate([data], shape=item, dtype="float32")
    doubled = fc.host(lambda x: x * 2, fc.source(np.zeros(5)), shape=item, dtype="float32")
    random = fc.random.uniform(5, shape=item, seed=1)
    assert stream.spec.shape == doubled.spec.shape == random.spec.shape == shape
    assert stream.resolve().tobytes() == data.tobytes()
    if data.size:
        data.tofile(tmp_path / "x.raw")
        assert fc.open(tmp_path / "x.raw", shape=item, dtype="float32").resolve().tobytes() == data.tobytes()


def test_an_item_type_may_say_the_dtype(tmp_path: Path) -> None:
    data = np.arange(20, dtype=np.int16).reshape(5, 4)
    data.tofile(tmp_path / "x.raw")
    item = fc.Vector(4, "int16")
    assert item.dtype == np.int16
    made: list[fc.Element] = [
        fc.iterate([data], shape=item),
        fc.open(tmp_path / "x.raw", shape=item),
        fc.open(tmp_path / "x.raw", shape=item, dtype=np.int16),
        fc.host(lambda x: x.astype(np.int16), fc.source(data.astype(np.float64)), shape=item),
        fc.random.integers(5, low=0, high=3, shape=item, seed=1),
    ]
    assert [element.dtype for element in made] == [np.dtype(np.int16)] * 5
    for element in made[:4]:
        assert np.array_equal(element.resolve(), data)
    assert fc.random.normal(5, shape=fc.Number("float64"), seed=1).dtype == np.float64
    assert fc.random.normal(5, shape=fc.Matrix(2, 2, "bfloat16"), seed=1).dtype.name == "bfloat16"


def test_the_byte_order_of_a_file_stays_with_the_file(tmp_path: Path) -> None:
    data = np.arange(8, dtype=">f4").reshape(2, 4)
    data.tofile(tmp_path / "x.raw")
    stream = fc.open(tmp_path / "x.raw", shape=fc.Vector(4, "float32"), dtype=">f4")
    assert np.array_equal(stream.resolve(), data)
    with pytest.raises(SpecError, match=r"cannot give an item type a byte order[\s\S]*give dtype= to fc.open"):
        fc.Vector(4, ">f4")


def test_they_are_plain_values() -> None:
    assert fc.Vector(4, "float32") == fc.Vector(np.int64(4), np.float32)
    assert fc.Vector(4) != fc.Vector(4, "float32")
    assert fc.Vector(4) != fc.Vector(5)
    assert len({fc.Matrix(2, 3), fc.Matrix(2, 3), fc.Matrix(3, 2), fc.Number()}) == 3
    assert [repr(item) for item, _ in TYPES[1:]] == ["Number()", "Vector(4)", "Vector(0)", "Matrix(2, 3)"]
    assert repr(fc.Matrix(2, 3, "bfloat16")) == "Matrix(2, 3, 'bfloat16')"
    with pytest.raises(dataclasses.FrozenInstanceError):
        fc.Vector(4).n = 5  # type: ignore[misc]
    assert isinstance(fc.Number(), ItemType)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fc.Vector(-1), "cannot take size="),
        (lambda: fc.Vector(True), "cannot take size="),
        (lambda: fc.Vector(2.0), "cannot take size="),
        (lambda: fc.Matrix(2, "3"), "cannot take size="),
        (lambda: fc.Vector(2, "complex64"), "is not supported"),
        (lambda: fc.iterate([], shape=fc.Vector(4)), "cannot iterate without a dtype"),
        (
            lambda: fc.iterate([], shape=fc.Vector(4, "int8"), dtype="int16"),
            r"cannot take dtype=[\s\S]*int8, as in Vector\(4, 'int",
        ),
        (
            lambda: fc.host(len, fc.source(np.zeros(2)), shape=fc.Vector(4, "int8"), dtype="i2"),
            "cannot take dtype= beside the item type's own",
        ),
        (lambda: fc.host(len, fc.source(np.zeros(2)), shape=fc.Vector), "cannot take shape="),
        (lambda: fc.random.uniform(3, shape=fc.Vector(4, "int8")), "cannot draw numbers in this dtype"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        make()
