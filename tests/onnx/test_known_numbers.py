"""Numbers that are followed when a model is composed: they are those that it would compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import flowcompute as fc
from tests.onnx.models import model, node, port

X = np.arange(4, dtype="f4")


def computed(nodes: list[Any], opset: int = 18, **values: Any) -> Any:
    made = model(
        nodes, [port("x", [4])], values={name: np.asarray(value) for name, value in values.items()}, opset=opset
    )
    return fc.onnx.load(made)(X).resolve(device="numpy", progress=False)


def branches() -> dict[str, Any]:
    kinds = [
        helper.make_graph([node("Mul", f"x {number}", "z")], "g", [], [port("z", [4])]) for number in ("one", "minus")
    ]
    return {"then_branch": kinds[0], "else_branch": kinds[1]}


@pytest.mark.parametrize(
    ("op", "a", "b", "holds"),
    [
        ("Sub", np.uint8(3), np.uint8(5), True),
        ("Mul", np.int32(65536), np.int32(65536), False),
        ("Div", np.float32(1), np.float32(0), True),
        ("Max", np.float32(np.nan), np.float32(20), False),
        ("Max", np.float32(20), np.float32(np.nan), False),
        ("Add", np.float32(np.inf), np.float32(-np.inf), False),
    ],
)
def test_a_condition_is_that_of_the_dtype_or_not_known(op: str, a: Any, b: Any, holds: bool) -> None:
    nodes = [node(op, "a b", "m"), node("Greater", "m nine", "k"), node("If", "k", "y", **branches())]
    try:
        got = computed(nodes, a=a, b=b, nine=a.dtype.type(9), one=np.float32(1), minus=np.float32(-1))
    except fc.onnx.UnsupportedError as error:
        assert error.reason == "unknown"
    else:
        np.testing.assert_array_equal(got, X if holds else -X)


def test_a_remainder_has_the_sign_that_fmod_says() -> None:
    nodes = [node("Mod", "a b", "m", fmod=1), node("Add", "m c", "s"), node("Reshape", "x s", "y")]
    assert computed(nodes, a=np.array([-5, 7]), b=np.array([3, 3]), c=np.array([4, 1])).shape == (2, 2)


def test_a_constant_of_a_shape_keeps_its_fraction() -> None:
    half = numpy_helper.from_array(np.array([0.5], "f4"))
    nodes = [node("ConstantOfShape", "s", "v", value=half), node("Pad", "x p v", "y")]
    got = computed(nodes, s=np.zeros(0, "i8"), p=np.array([1, 0]))
    np.testing.assert_array_equal(got, [0.5, 0, 1, 2, 3])


def test_a_number_cast_like_another_divides_like_it() -> None:
    nodes = [node("CastLike", "a two", "f"), node("Div", "f two", "q"), node("Pad", "x p q", "y")]
    got = computed(nodes, a=np.array(3), two=np.float32(2), p=np.array([1, 0]))
    np.testing.assert_array_equal(got, [1.5, 0, 1, 2, 3])


def test_operands_broadcast_from_an_axis_on() -> None:
    nodes = [
        node("Add", "a b", "s", axis=0, broadcast=1),
        node("Reshape", "s flat", "f"),
        node("Slice", "f", "t", starts=[1], ends=[3]),
        node("Reshape", "x t", "y"),
    ]
    try:
        assert computed(nodes, 6, a=np.zeros((2, 2), "i8"), b=np.array([4, 1]), flat=np.array([-1])).shape == (4, 1)
    except fc.onnx.UnsupportedError as error:
        assert error.reason == "unknown"


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Pow", "a a", "m")],
        [node("Mul", "a a", "m0"), *(node("Mul", f"m{at} m{at}", f"m{at + 1}") for at in range(59)),
         node("Identity", "m59", "m")],
        [node("Expand", "a huge", "m")],
    ],
)  # fmt: skip
def test_numbers_too_large_to_follow_are_not_known(nodes: list[Any]) -> None:
    values = {"a": np.array([1 << 40]), "huge": np.array([1 << 34])}
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        computed([*nodes, node("Reshape", "x m", "y")], **values)
    assert caught.value.reason == "unknown"
